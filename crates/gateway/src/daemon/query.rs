//! `longhaul gateway status`: a running gateway answers whoever asks on its machine with its status, as JSON.
//!
//! The socket has a name in Linux's abstract namespace (`name`): it needs no directory, belongs to the network namespace that the
//! device is in, and goes with the process. Such names have no permissions, so each side looks at who the other is. A gateway answers
//! root and its own user; `asking` says whose answers count.
//!
//! Anybody may connect, so nobody who does holds a place: a question is a connection and nothing else, and is answered or refused
//! when it is looked at. The kernel's queue is emptied faster than it is long, so that whoever may ask gets into it.

mod asking;
mod name;

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use base::{Duration, Instant};

use super::Status;

pub use asking::{AskError, Asked, ask};
pub use name::{Place, running};

/// Where questions come.
#[derive(Debug)]
pub(super) struct Queries {
    listener: UnixListener,
    /// Questions are looked at no sooner, so that askers take no time from packets, however many there are.
    look_at: Instant,
    /// Answers that did not fit the asker's socket, the oldest first.
    answering: VecDeque<Answering>,
}

/// An answer that is on its way.
#[derive(Debug)]
struct Answering {
    asker: UnixStream,
    user: libc::uid_t,
    text: Arc<[u8]>,
    sent: usize,
    until: Instant,
}

impl Queries {
    /// Listens for questions about the gateway of the device `tun`. `number` is one that nobody can foresee, who would take the name
    /// otherwise.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn open(tun: &str, number: u64) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&Place::new(tun, number).address()?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, look_at: Instant::ZERO, answering: VecDeque::new() })
    }

    /// What becomes readable with a question, while one may be asked.
    pub(super) fn fd(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        (self.look_at <= now).then(|| self.listener.as_fd())
    }

    /// When [`Queries::serve`] wants to be called though nobody may have asked, or when one may be asked again.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        (self.look_at > now || !self.answering.is_empty()).then_some(self.look_at)
    }

    /// Whether answers are on their way that are to go on now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.look_at <= now && !self.answering.is_empty()
    }

    /// Answers those who have asked and may know, a few at most and all the same, and goes on with earlier answers.
    pub(super) fn serve(&mut self, now: Instant, status: impl FnOnce() -> Status) {
        self.answering.retain_mut(|it| now < it.until && it.advance());
        let (mut asked_by, mut pause) =
            (Vec::new(), if self.answering.is_empty() { STRANGER_PAUSE } else { PAUSE });
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                Ok((asker, _)) => {
                    let user = owner(&asker).filter(|&user| user == ROOT || user == own_user());
                    asked_by.extend(user.map(|user| (asker, user)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // There is no descriptor left, perhaps: it stays readable.
                Err(_) => {
                    pause = PAUSE;
                    break;
                }
            }
        }
        if !asked_by.is_empty() {
            pause = PAUSE;
            let text: Arc<[u8]> = format!("{:#}\n", status()).into_bytes().into();
            for (asker, user) in asked_by {
                self.answer(now, asker, user, Arc::clone(&text));
            }
        }
        self.look_at = now + pause;
    }

    /// The next look is no sooner than that.
    pub(super) fn pause_until(&mut self, at: Instant) {
        self.look_at = self.look_at.max(at);
    }

    fn answer(&mut self, now: Instant, asker: UnixStream, user: libc::uid_t, text: Arc<[u8]>) {
        if asker.set_nonblocking(true).is_err() {
            return;
        }
        let mut answering = Answering { asker, user, text, sent: 0, until: now + PATIENCE };
        if !answering.advance() {
            return;
        }
        let of_user = || self.answering.iter().enumerate().filter(|(_, it)| it.user == user);
        if of_user().count() >= MOST_ANSWERING
            && let Some((oldest, _)) = of_user().next()
        {
            self.answering.remove(oldest);
        }
        self.answering.push_back(answering);
    }
}

impl Answering {
    /// Sends what the asker's socket takes; whether there is more to send, and somebody to send it to.
    fn advance(&mut self) -> bool {
        while self.sent < self.text.len() {
            match self.asker.write(&self.text[self.sent..]) {
                Ok(0) => return false,
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        false
    }
}

/// The user whose process is at the other end: who connected, or who listens.
fn owner(stream: &UnixStream) -> Option<libc::uid_t> {
    let mut who = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure and its length are valid for writing, and the kernel writes no more than that length.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(who.uid)
}

fn own_user() -> libc::uid_t {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

const ROOT: libc::uid_t = 0;
/// Connections that are looked at in one go: 16,000 a second, for a thirtieth of a processor, empty a queue of 4096
/// (`net.core.somaxconn`) in a quarter of a second.
const AT_ONCE: usize = 32;
/// Time until the next look, after one in which somebody was answered and after any other.
const PAUSE: Duration = Duration::from_millis(10);
const STRANGER_PAUSE: Duration = Duration::from_millis(2);
/// How long an asker may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers to each of the two users that wait for room; the oldest makes room for a further one.
const MOST_ANSWERING: usize = 8;

#[cfg(test)]
mod tests;
