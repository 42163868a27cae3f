//! SIGTERM and SIGINT as a readable descriptor, so that an event loop ends in order.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _};

/// Becomes readable when the process is asked to end.
#[derive(Debug)]
pub struct Signals(File);

impl Signals {
    /// Takes the two signals over for this thread, and those that it starts.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a signal set is plain old data; each call gets a pointer to it that is valid for the call.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Whether the process was asked to end.
    #[must_use]
    pub fn received(&mut self) -> bool {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        matches!(self.0.read(&mut info), Ok(len) if len > 0)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
