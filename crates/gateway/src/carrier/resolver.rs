//! Where a name is: the system's resolver, which blocks, asked on a thread of its own.
//!
//! A thread lives as long as one question, so there is none while the address is known and in use. It starts with
//! the rights that its parent has left.

use std::io::{self, PipeReader, PipeWriter};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{Builder, JoinHandle};

use crate::config::HostName;

/// A question on its way; readable once there is an answer.
#[derive(Debug)]
pub struct Lookup {
    thread: JoinHandle<Answer>,
    /// Its other end belongs to the thread, and is closed when that is done.
    done: PipeReader,
}

/// The addresses of a name, with its port and in the system's order of preference, or why there are none.
pub type Answer = io::Result<Vec<SocketAddr>>;

impl Lookup {
    /// Asks for the addresses of `name`.
    ///
    /// # Errors
    /// There is no room for a thread or a pipe.
    pub fn start(name: &HostName) -> io::Result<Self> {
        let (host, port) = (name.name().to_owned(), name.port());
        Self::with(move || (host.as_str(), port).to_socket_addrs().map(Iterator::collect))
    }

    fn with(resolve: impl FnOnce() -> Answer + Send + 'static) -> io::Result<Self> {
        let (done, open): (PipeReader, PipeWriter) = io::pipe()?;
        let thread = Builder::new().name("resolver".to_owned()).spawn(move || {
            // Closed also by a panic.
            let _open = open;
            resolve()
        })?;
        Ok(Self { thread, done })
    }

    /// The answer, for which it waits unless the descriptor is readable.
    ///
    /// # Errors
    /// What the system's resolver says.
    pub fn finish(self) -> Answer {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the resolver's thread has panicked")))
    }
}

impl AsFd for Lookup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use base::Duration;

    use super::*;
    use crate::readiness::{Interest, wait};

    fn is_ready(lookup: &Lookup, millis: u64) -> bool {
        wait([Interest::read(lookup.as_fd())], Some(Duration::from_millis(millis))).unwrap()[0].read
    }

    #[test]
    fn a_lookup_is_readable_when_it_is_done_and_not_before() {
        let (permit, permitted) = mpsc::channel();
        let address = SocketAddr::from(([192, 0, 2, 7], 7000));
        let lookup = Lookup::with(move || {
            permitted.recv().unwrap();
            Ok(vec![address])
        })
        .unwrap();
        assert!(!is_ready(&lookup, 10));
        permit.send(()).unwrap();
        assert!(is_ready(&lookup, 60_000));
        assert_eq!(lookup.finish().unwrap(), [address]);
    }

    #[test]
    fn a_failure_is_an_answer_too() {
        for lookup in [
            Lookup::with(|| Err(io::ErrorKind::NotFound.into())).unwrap(),
            Lookup::with(|| panic!("on purpose")).unwrap(),
        ] {
            assert!(is_ready(&lookup, 60_000));
            assert!(lookup.finish().is_err());
        }
    }
}
