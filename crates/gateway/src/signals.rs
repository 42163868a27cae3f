//! SIGTERM, SIGINT and SIGHUP as a readable descriptor, so that an event loop ends or reads its configuration again in order.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _};

/// Becomes readable when a signal has come.
#[derive(Debug)]
pub struct Signals(File);

/// What the process was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To end: SIGTERM or SIGINT.
    End,
    /// To read its configuration again: SIGHUP.
    Reload,
}

impl Signals {
    /// Takes SIGTERM and SIGINT over for this thread, and those that it starts.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new() -> io::Result<Self> {
        Self::of(&[libc::SIGTERM, libc::SIGINT])
    }

    /// Takes SIGHUP over too, which would end the process otherwise.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn with_reload() -> io::Result<Self> {
        Self::of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
    }

    fn of(signals: &[libc::c_int]) -> io::Result<Self> {
        // SAFETY: a signal set is plain old data; each call gets a pointer to it that is valid for the call.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// The next signal that has come.
    pub fn poll(&mut self) -> Option<Signal> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        let len = self.0.read(&mut info).ok()?;
        // The structure starts with the signal's number.
        let number = u32::from_ne_bytes(*info[..len].first_chunk()?);
        Some(if number == libc::SIGHUP as u32 { Signal::Reload } else { Signal::End })
    }

    /// Whether the process was asked to end.
    #[must_use]
    pub fn received(&mut self) -> bool {
        self.poll() == Some(Signal::End)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
