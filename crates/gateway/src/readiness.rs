//! Waiting for descriptors and for a time, to the nanosecond.
//!
//! A gateway has a few descriptors, so `ppoll` costs what `epoll_pwait2` does and keeps no state.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use base::Duration;

/// What to wait for on a descriptor, and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'a> {
    /// `None` for nothing to wait for.
    fd: Option<BorrowedFd<'a>>,
    read: bool,
    write: bool,
}

impl<'a> Interest<'a> {
    /// Readable.
    #[must_use]
    pub const fn read(fd: BorrowedFd<'a>) -> Self {
        Self { fd: Some(fd), read: true, write: false }
    }

    /// Readable, if there is a descriptor now.
    #[must_use]
    pub const fn read_if_any(fd: Option<BorrowedFd<'a>>) -> Self {
        Self { fd, read: true, write: false }
    }

    /// Readable if `read`, writable if `write`.
    #[must_use]
    pub const fn either(fd: BorrowedFd<'a>, read: bool, write: bool) -> Self {
        Self { fd: Some(fd), read, write }
    }

    /// Readable if `read`, writable if `write`, if there is a descriptor now.
    #[must_use]
    pub const fn either_if_any(fd: Option<BorrowedFd<'a>>, read: bool, write: bool) -> Self {
        Self { fd, read, write }
    }
}

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Reading will not block.
    pub read: bool,
    /// Writing will not block.
    pub write: bool,
}

/// Waits until a descriptor is ready or `timeout` has passed; `None` waits for ever.
///
/// # Errors
/// What the kernel says, other than that a signal came.
pub fn wait<const N: usize>(
    interests: [Interest<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[Ready; N]> {
    let mut polled = interests.map(|interest| libc::pollfd {
        // The kernel passes over descriptors below zero.
        fd: interest.fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: if interest.read { libc::POLLIN } else { 0 } | if interest.write { libc::POLLOUT } else { 0 },
        revents: 0,
    });
    let timeout = timeout.map(|span| libc::timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array and the time, if any, outlive the call; no signal mask is given.
    let count = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, timeout, std::ptr::null()) };
    if count < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok([Ready::default(); N])
        } else {
            Err(error)
        };
    }
    Ok(polled.map(|fd| Ready {
        // An error or a hang-up is found by reading.
        read: fd.revents & !libc::POLLOUT != 0,
        write: fd.revents & libc::POLLOUT != 0,
    }))
}

/// What to wait for, and more of it.
#[must_use]
pub fn joined<'a, const N: usize, const M: usize, const ALL: usize>(
    some: [Interest<'a>; N],
    others: [Interest<'a>; M],
) -> [Interest<'a>; ALL] {
    const { assert!(N + M == ALL) };
    let mut all = some.into_iter().chain(others);
    core::array::from_fn(|_| all.next().unwrap_or(Interest::read_if_any(None)))
}

/// Asks the kernel to wake this thread when it said, not 50 us later to save power.
pub fn wake_exactly() {
    // Err leaves the slack as it was.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn no_descriptor_is_never_ready() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let interests = [Interest::read_if_any(None), Interest::read_if_any(Some(reader.as_fd()))];
        let ready = wait(interests, None).unwrap();
        assert_eq!(ready, [Ready::default(), Ready { read: true, write: false }]);
    }
}
