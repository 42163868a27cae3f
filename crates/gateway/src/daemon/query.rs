//! `longhaul gateway status`: a running gateway answers whoever asks on its machine with its status, as JSON.
//!
//! The socket has a name in Linux's abstract namespace, made of the device's: it needs no directory, belongs to the network namespace
//! that the device is in, and goes with the process. Such names have no permissions, so each side looks at who the other is: a gateway
//! answers root and its own user. An answer counts if it comes from root or from the user who asks; root, whose system it is, is told
//! whose answer it has.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use base::Instant;
use socket2::{Domain, SockAddr, Socket, Type};

use super::Status;
use crate::config::InterfaceName;

/// Where questions come.
#[derive(Debug)]
pub(super) struct Queries {
    listener: UnixListener,
    /// The next question is looked at no sooner, so that askers take no time from packets, however many there are.
    not_before: Instant,
}

impl Queries {
    /// Listens for questions about the gateway of the device `tun`.
    ///
    /// # Errors
    /// Somebody else listens under that name.
    pub(super) fn open(tun: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("{PREFIX}{tun}"))?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, not_before: Instant::ZERO })
    }

    /// What becomes readable with a question, while one may be asked.
    pub(super) fn fd(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        (self.not_before <= now).then(|| self.listener.as_fd())
    }

    /// When one may be asked again, if not now.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        (self.not_before > now).then_some(self.not_before)
    }

    /// Answers one question, if there is one and its asker may know. An answer fits the socket's buffer; where it does not, the asker
    /// gets its beginning, and the gateway goes on.
    pub(super) fn answer(&mut self, now: Instant, status: impl FnOnce() -> Status) {
        let mut pause = REFUSED_PAUSE;
        if let Ok((mut asker, _)) = self.listener.accept()
            && asker.set_nonblocking(true).is_ok()
            && matches!(owner(&asker), Some(user) if user == ROOT || user == own_user())
        {
            pause = PAUSE;
            let _ = asker.write_all(format!("{:#}\n", status()).as_bytes());
        }
        self.not_before = now + pause;
    }
}

/// The devices whose gateways run in this network namespace, by name.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn running() -> io::Result<Vec<String>> {
    let all = std::fs::read("/proc/net/unix")?;
    // Others may have names of any bytes; those of devices are printable.
    let marked = format!("@{PREFIX}");
    let names = all.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let name = line.split_whitespace().nth(7)?.strip_prefix(&marked)?;
        let is_device = InterfaceName::try_from(name.to_owned()).is_ok()
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        is_device.then(|| name.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    // A connection that is being made is listed beside its listener.
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Asks the gateway of the device `tun` for its status. Root takes an answer from everybody: `answered_by_user` tells whose it is, since
/// a gateway that was started as another user listens as that one.
///
/// # Errors
/// There is none, it does not answer within a second, or it does not answer this user.
pub fn ask(tun: &str) -> io::Result<Status> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Holds for connecting too: somebody else's listener may have a full queue.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(format!("\0{PREFIX}{tun}"))?)?;
    let gateway = UnixStream::from(OwnedFd::from(socket));
    let answers = owner(&gateway).ok_or_else(|| io::Error::other("who answers is not known"))?;
    if own_user() != ROOT && answers != ROOT && answers != own_user() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "what answers is another user's"));
    }
    let mut answer = Vec::new();
    gateway.take(LONGEST).read_to_end(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it answers root and its own user only"));
    }
    let mut status: Status = serde_json::from_slice(&answer).map_err(io::Error::from)?;
    if let Some(status) = status.as_object_mut() {
        status.insert("answered_by_user".to_owned(), answers.into());
    }
    Ok(status)
}

/// The user whose process is at the other end.
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
/// Time until the next question, after one that was answered and after one that was not.
const PAUSE: base::Duration = base::Duration::from_millis(10);
const REFUSED_PAUSE: base::Duration = base::Duration::from_millis(100);
/// Before a device's name in that of its gateway's socket.
const PREFIX: &str = "longhaul-gateway/";
/// How long an answer may take: a gateway's turns are milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer at most; one has a few thousand.
const LONGEST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_an_answer_and_a_name_one_gateway() {
        let name = format!("test{}", std::process::id());
        assert_eq!(ask(&name).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let mut queries = Queries::open(&name).unwrap();
        assert_eq!(Queries::open(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(running().unwrap().contains(&name));
        // Nobody asks: nothing is made, and nothing blocks; then there is a pause.
        queries.answer(Instant::ZERO, || panic!("nobody asked"));
        let again = Instant::ZERO + REFUSED_PAUSE;
        assert_eq!(
            (queries.fd(Instant::ZERO).is_none(), queries.poll_timeout(Instant::ZERO)),
            (true, Some(again))
        );
        assert!(queries.fd(again).is_some() && queries.poll_timeout(again).is_none());
        let asker = std::thread::spawn({
            let name = name.clone();
            move || ask(&name)
        });
        let mut answered = false;
        while !answered {
            queries.answer(Instant::ZERO, || {
                answered = true;
                serde_json::json!({ "pid": 7 })
            });
        }
        let answer = asker.join().unwrap().unwrap();
        assert_eq!((&answer["pid"], &answer["answered_by_user"]), (&7.into(), &own_user().into()));
        drop(queries);
        assert!(!running().unwrap().contains(&name));
    }

    /// Anybody may listen under any name: such names are no devices, and a listener that takes nobody does not hold an asker up.
    #[test]
    fn names_and_listeners_of_others_do_no_harm() {
        let bytes = [PREFIX.as_bytes(), &[0xff, 0x1b, b'[']].concat();
        let _odd = UnixListener::bind_addr(&SocketAddr::from_abstract_name(bytes).unwrap()).unwrap();
        let wrong = format!("{PREFIX}\u{1b}[31mevil{}", std::process::id());
        let _wrong = UnixListener::bind_addr(&SocketAddr::from_abstract_name(wrong).unwrap()).unwrap();
        assert!(running().unwrap().iter().all(|name| name.bytes().all(|byte| byte.is_ascii_graphic())));
        let name = format!("full{}", std::process::id());
        let queries = Queries::open(&name).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            let asker = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            asker.set_nonblocking(true).unwrap();
            match asker.connect(&SockAddr::unix(format!("\0{PREFIX}{name}")).unwrap()) {
                Ok(()) => waiting.push(asker),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock, "after {}", waiting.len());
        assert_eq!(ask(&name).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(queries);
    }
}
