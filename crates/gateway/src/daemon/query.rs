//! `longhaul gateway status`: a running gateway answers whoever asks on its machine with its status, as JSON.
//!
//! The socket has a name in Linux's abstract namespace (`name`): it needs no directory, belongs to the network namespace that the
//! device is in, and goes with the process. Such names have no permissions, so each side looks at who the other is. A gateway answers
//! root and its own user; `asking` says whose answers count.
//!
//! Anybody may connect, so nobody who may not ask holds a place: a question is a connection and nothing else, and is refused when it is
//! looked at, or answered with the next status that is begun (`telling`). The kernel's queue is emptied faster than it is long, so that
//! whoever may ask gets into it.

mod asking;
mod name;

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use base::{Duration, Instant};

use super::Status;
use super::telling::Text;

pub use asking::{AskError, Asked, ask};
pub use name::{Place, running};

/// Where questions come.
#[derive(Debug)]
pub(super) struct Queries {
    listener: UnixListener,
    /// Questions are looked at no sooner, so that askers take no time from packets, however many there are.
    look_at: Instant,
    /// Who waits for a status to be made, the oldest first.
    asking: VecDeque<Asker>,
    /// Answers that are on their way, the oldest first, and when they go on.
    answering: VecDeque<Answering>,
    go_on_at: Instant,
}

/// Somebody who asked.
#[derive(Debug)]
struct Asker {
    stream: UnixStream,
    user: libc::uid_t,
    asked: Instant,
}

/// An answer that is on its way.
#[derive(Debug)]
struct Answering {
    asker: Asker,
    text: Text,
    /// Pieces of the text that were sent, and bytes of the next one.
    pieces: usize,
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
        let (asking, answering) = Default::default();
        Ok(Self { listener, look_at: Instant::ZERO, asking, answering, go_on_at: Instant::ZERO })
    }

    /// What becomes readable with a question, while one may be asked.
    pub(super) fn fd(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        (self.look_at <= now).then(|| self.listener.as_fd())
    }

    /// When [`Queries::serve`] wants to be called though nobody may have asked, or when one may be asked again.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let look = (self.look_at > now).then_some(self.look_at);
        let go_on = (!self.answering.is_empty()).then_some(self.go_on_at);
        [look, go_on].into_iter().flatten().min()
    }

    /// Whether somebody waits for a status.
    pub(super) fn are_asked(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Hears new questions, if there are any, and goes on with answers; a bounded amount of both.
    pub(super) fn serve(&mut self, now: Instant, is_readable: bool) {
        if is_readable && self.look_at <= now {
            self.look(now);
        }
        if self.go_on_at <= now && !self.answering.is_empty() {
            self.answering.retain_mut(|it| now < it.until && it.advance());
            self.go_on_at = now + ANSWER_PAUSE;
        }
    }

    /// Hears those who have asked and may know, a few at most.
    fn look(&mut self, now: Instant) {
        let mut pause = STRANGER_PAUSE;
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let user = owner(&stream).filter(|&user| user == ROOT || user == own_user());
                    if let Some(user) = user.filter(|_| stream.set_nonblocking(true).is_ok()) {
                        pause = PAUSE;
                        make_room(&mut self.asking, MOST_ASKING, |it| it.user == user);
                        self.asking.push_back(Asker { stream, user, asked: now });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // There is no descriptor left, perhaps: it stays readable.
                Err(_) => {
                    pause = PAUSE;
                    break;
                }
            }
        }
        self.look_at = now + pause;
    }

    /// Answers all who had asked when this status was begun.
    pub(super) fn answer(&mut self, now: Instant, began: Instant, text: &Text) {
        while let Some(asker) = self.asking.pop_front_if(|it| it.asked <= began) {
            let user = asker.user;
            let mut answering =
                Answering { asker, text: Arc::clone(text), pieces: 0, sent: 0, until: now + PATIENCE };
            if answering.advance() {
                make_room(&mut self.answering, MOST_ANSWERING, |it| it.asker.user == user);
                self.answering.push_back(answering);
            }
        }
    }
}

/// Removes the oldest of a user's, if those are so many that there is no room for one more.
fn make_room<T>(queue: &mut VecDeque<T>, most: usize, is_users: impl Fn(&T) -> bool) {
    if queue.iter().filter(|it| is_users(it)).count() >= most
        && let Some(oldest) = queue.iter().position(is_users)
    {
        queue.remove(oldest);
    }
}

impl Answering {
    /// Sends what the asker's socket takes, within limits; whether there is more to send, and somebody to send it to.
    fn advance(&mut self) -> bool {
        let mut left = ANSWER_AT_ONCE;
        while let Some(piece) = self.text.get(self.pieces) {
            let rest = &piece.as_bytes()[self.sent..];
            if rest.is_empty() {
                (self.pieces, self.sent) = (self.pieces + 1, 0);
                continue;
            }
            if left == 0 {
                return true;
            }
            match self.asker.stream.write(&rest[..rest.len().min(left)]) {
                Ok(0) => return false,
                Ok(sent) => {
                    self.sent += sent;
                    left -= sent;
                }
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
    rustix::process::geteuid().as_raw()
}

const ROOT: libc::uid_t = 0;
/// Connections that are looked at in one go: 16,000 a second, for a thirtieth of a processor, empty a queue of 4096
/// (`net.core.somaxconn`) in a quarter of a second.
const AT_ONCE: usize = 32;
/// Time until the next look, after one in which somebody was heard and after any other.
const PAUSE: Duration = Duration::from_millis(10);
const STRANGER_PAUSE: Duration = Duration::from_millis(2);
/// Bytes that an asker is sent in one go, and time until the next: 128 MB/s, if the asker reads as fast.
const ANSWER_AT_ONCE: usize = 128 << 10;
const ANSWER_PAUSE: Duration = Duration::from_millis(1);
/// How long an asker may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Questions of each of the two users that wait for a status, and answers to each that wait for room; the oldest makes room for a further
/// one.
const MOST_ASKING: usize = 32;
const MOST_ANSWERING: usize = 8;

#[cfg(test)]
mod tests;
