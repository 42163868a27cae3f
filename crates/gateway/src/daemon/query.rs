//! `longhaul gateway status`: a running gateway answers whoever asks on its machine with its status, as JSON.
//!
//! The socket has a name in Linux's abstract namespace, made of the device's: it needs no directory, belongs to the network namespace
//! that the device is in, and goes with the process. Such names have no permissions, so each side looks at who the other is: a gateway
//! answers root and its own user, and an answer counts only if it comes from root or from the user who asks.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use super::Status;

/// Where questions come.
#[derive(Debug)]
pub(super) struct Queries(UnixListener);

impl Queries {
    /// Listens for questions about the gateway of the device `tun`.
    ///
    /// # Errors
    /// Somebody else listens under that name.
    pub(super) fn open(tun: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(tun)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Answers one question, if there is one and its asker may know. An answer fits the socket's buffer; where it does not, the asker
    /// gets its beginning, and the gateway goes on.
    pub(super) fn answer(&self, status: impl FnOnce() -> Status) {
        let Ok((mut asker, _)) = self.0.accept() else { return };
        if asker.set_nonblocking(true).is_ok() && is_allowed(&asker) {
            let _ = asker.write_all(format!("{:#}\n", status()).as_bytes());
        }
    }
}

impl AsFd for Queries {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The devices whose gateways run in this network namespace, by name.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn running() -> io::Result<Vec<String>> {
    let all = std::fs::read_to_string("/proc/net/unix")?;
    let marked = format!("@{PREFIX}");
    let names = all
        .lines()
        .filter_map(|line| Some(line.split_whitespace().nth(7)?.strip_prefix(&marked)?.to_owned()));
    let mut names: Vec<String> = names.collect();
    // A connection that is being made is listed beside its listener.
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Asks the gateway of the device `tun` for its status.
///
/// # Errors
/// There is none, it does not answer within a second, or it does not answer this user.
pub fn ask(tun: &str) -> io::Result<Status> {
    let gateway = UnixStream::connect_addr(&address(tun)?)?;
    if !is_allowed(&gateway) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "what answers is another user's"));
    }
    gateway.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    gateway.take(LONGEST).read_to_end(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it answers root and its own user only"));
    }
    serde_json::from_slice(&answer).map_err(io::Error::from)
}

fn address(tun: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{tun}"))
}

/// Whether the process at the other end is root's or this one's user's.
fn is_allowed(stream: &UnixStream) -> bool {
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
    // SAFETY: it has no arguments and cannot fail.
    result == 0 && (who.uid == 0 || who.uid == unsafe { libc::geteuid() })
}

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
        let queries = Queries::open(&name).unwrap();
        assert_eq!(Queries::open(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(running().unwrap().contains(&name));
        // Nobody asks: nothing is made, and nothing blocks.
        queries.answer(|| panic!("nobody asked"));
        let asker = std::thread::spawn({
            let name = name.clone();
            move || ask(&name)
        });
        let mut answered = false;
        while !answered {
            queries.answer(|| {
                answered = true;
                serde_json::json!({ "pid": 7 })
            });
        }
        assert_eq!(asker.join().unwrap().unwrap()["pid"], 7);
        drop(queries);
        assert!(!running().unwrap().contains(&name));
    }
}
