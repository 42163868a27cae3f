//! The serial carrier: a datagram an EFL frame, on a serial device or a pseudo-terminal in raw mode.
//!
//! The line has 8 data bits, no parity and one stop bit, and falls silent when there is nothing to say. A byte's most
//! significant bit comes first in EFL's stream, whatever order the hardware has.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use base::{Duration, Instant};
use link::efl::{Deframer, Framer};

use super::Sent;
use crate::config;
use crate::random;

/// An open serial device.
#[derive(Debug)]
pub struct SerialCarrier {
    device: File,
    framer: Framer,
    deframer: Deframer,
    /// A frame of which the kernel took a part only, and how much.
    unsent: Vec<u8>,
    sent: usize,
    /// How long the line may pause within a frame.
    pause: Duration,
    /// When the last bytes came.
    heard_at: Instant,
}

/// Bytes of one read: what the kernel keeps for a terminal.
const READ_LEN: usize = 4096;
/// Longer than adapters collect bytes before they tell: 16 ms for many USB chips.
const PAUSE: Duration = Duration::from_millis(100);
/// Further pause, for a line on which a byte takes longer than that.
const PAUSE_BYTES: u64 = 4;

impl SerialCarrier {
    /// Opens the device and makes it raw.
    ///
    /// # Errors
    /// No such device, no right, or no terminal.
    pub fn open(config: &config::Serial) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let device = options.open(&config.device)?;
        make_raw(&device, config.baud.get())?;
        let (framer, deframer) = match config.efl_key {
            Some(key) => (Framer::keyed(key, random::system().draw()), Deframer::keyed(key)),
            None => (Framer::clear(), Deframer::clear()),
        };
        Ok(Self {
            device,
            framer,
            deframer,
            unsent: Vec::new(),
            sent: 0,
            pause: PAUSE + config.line_rate().time_for(PAUSE_BYTES * 8),
            heard_at: Instant::ZERO,
        })
    }

    /// Sends one datagram.
    pub fn send(&mut self, datagram: &[u8]) -> Sent {
        if !self.flush() {
            return Sent::Full;
        }
        self.unsent.clear();
        self.sent = 0;
        if self.framer.frame(datagram, &mut self.unsent).is_err() {
            return Sent::Refused;
        }
        // What does not fit the kernel's buffer waits here, one frame at most.
        self.flush();
        Sent::Yes
    }

    /// Whether something was framed and not written.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.sent < self.unsent.len()
    }

    /// Writes what was framed and not written; whether nothing is left.
    pub fn flush(&mut self) -> bool {
        while self.has_unsent() {
            match self.device.write(&self.unsent[self.sent..]) {
                Ok(0) => return false,
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // The device is gone: reading says so, and ends the gateway.
                Err(_) => self.sent = self.unsent.len(),
            }
        }
        true
    }

    /// Reads what has arrived, a buffer at most, and hands each datagram in it to `handle`.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing; that the device is gone.
    pub fn receive(&mut self, now: Instant, mut handle: impl FnMut(&mut [u8])) -> io::Result<()> {
        let mut bytes = [0; READ_LEN];
        match self.device.read(&mut bytes) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the serial device has hung up"));
            }
            Ok(len) => {
                self.heard_at = now;
                self.deframer.handle_bytes(&bytes[..len], &mut handle);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.poll_timeout().is_some_and(|due| due <= now) {
                    self.deframer.handle_silence(&mut handle);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// When a frame that is under way has paused for too long.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deframer.is_waiting().then(|| self.heard_at + self.pause)
    }

    /// What the deframer counted.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.deframer.counters().named().to_vec()
    }
}

impl AsFd for SerialCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Raw mode at any baud rate (bit/s): the kernel's own structure takes rates that the C library has no constant for.
///
/// # Errors
/// It is no terminal, or cannot have the rate.
pub fn make_raw(device: &File, baud: u32) -> io::Result<()> {
    // SAFETY: the structure is plain old data, and both requests take a pointer to it that is valid for the call.
    let result = unsafe {
        let mut settings: libc::termios2 = std::mem::zeroed();
        if libc::ioctl(device.as_raw_fd(), libc::TCGETS2, &raw mut settings) < 0 {
            return Err(io::Error::last_os_error());
        }
        settings.c_iflag = 0;
        settings.c_oflag = 0;
        settings.c_lflag = 0;
        settings.c_cflag = libc::CS8 | libc::CREAD | libc::CLOCAL | libc::BOTHER;
        settings.c_ispeed = baud;
        settings.c_ospeed = baud;
        settings.c_cc[libc::VMIN] = 1;
        settings.c_cc[libc::VTIME] = 0;
        libc::ioctl(device.as_raw_fd(), libc::TCSETS2, &raw const settings)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
