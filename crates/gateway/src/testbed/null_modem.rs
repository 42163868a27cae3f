//! A serial line without hardware: two pseudo-terminals, and what carries bytes from each to the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base::Duration;

use crate::carrier::serial::make_raw;
use crate::readiness::{Interest, wait};

/// A line between two serial devices, which gateways can be told to use.
#[derive(Debug)]
pub struct NullModem {
    ends: [End; 2],
}

#[derive(Debug)]
struct End {
    line: File,
    /// Kept open, so that a gateway that ends does not hang the line up.
    _device: File,
    path: PathBuf,
    /// Bytes that the device is still to take.
    waiting: Vec<u8>,
}

/// Bytes carried at once.
const READ_LEN: usize = 1024;
/// Room for `/dev/pts/` and a number.
const PATH_LEN: usize = 64;

impl NullModem {
    /// A line with nothing on it.
    ///
    /// # Errors
    /// No pseudo-terminals left.
    pub fn open() -> io::Result<Self> {
        Ok(Self { ends: [End::open()?, End::open()?] })
    }

    /// The device at an end, 0 or 1.
    #[must_use]
    pub fn device(&self, end: usize) -> &Path {
        &self.ends[end].path
    }

    /// Waits for at most `patience` and carries what there is. `line` sees the bytes from each end and may change them,
    /// take some away and add others.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn carry(&mut self, patience: Duration, mut line: impl FnMut(usize, &mut Vec<u8>)) -> io::Result<()> {
        let [a, b] = &self.ends;
        // Who cannot write waits: the gateway at the other end then finds its buffer full.
        let (to_a, to_b) = (!a.waiting.is_empty(), !b.waiting.is_empty());
        let interests =
            [Interest::either(a.line.as_fd(), !to_b, to_a), Interest::either(b.line.as_fd(), !to_a, to_b)];
        let ready = wait(interests, Some(patience))?;
        for (from, ready) in ready.iter().enumerate() {
            if ready.read && self.ends[1 - from].waiting.is_empty() {
                let mut bytes = vec![0; READ_LEN];
                let len = unless_blocked(self.ends[from].line.read(&mut bytes))?;
                bytes.truncate(len);
                line(from, &mut bytes);
                self.ends[1 - from].waiting = bytes;
            }
        }
        self.ends.iter_mut().try_for_each(End::write)
    }
}

impl End {
    fn open() -> io::Result<Self> {
        let (mut line, mut device) = (-1, -1);
        let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
        // SAFETY: the two descriptors are written to, and nothing else is given.
        if unsafe { libc::openpty(&raw mut line, &raw mut device, name, settings, size) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new and nobody else's.
        let (line, device) = unsafe { (File::from_raw_fd(line), File::from_raw_fd(device)) };
        make_raw(&device, 115_200)?;
        let mut name = [0_u8; PATH_LEN];
        // SAFETY: the name is written to memory of the given length.
        let result = unsafe { libc::ptsname_r(line.as_raw_fd(), name.as_mut_ptr().cast(), name.len()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: the request changes a flag of the descriptor.
        if unsafe { libc::fcntl(line.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(PATH_LEN);
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&name[..len]));
        Ok(Self { line, _device: device, path, waiting: Vec::new() })
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let written = unless_blocked(self.line.write(&self.waiting))?;
            self.waiting.drain(..written);
        }
        Ok(())
    }
}

fn unless_blocked(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        result => result,
    }
}
