//! A capture file in the classic pcap format, with nanosecond times and raw IP packets.

use core::fmt;
use std::io::{self, Write};

use base::{Instant, Packet};

use crate::engine::{Direction, Observer};

/// Nanosecond pcap, written in this machine's byte order (readers tell by the magic).
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets begin with their IP header: `LINKTYPE_RAW` of the tcpdump.org registry.
const LINKTYPE_RAW: u32 = 101;
/// Longest packet kept whole.
const SNAP_LEN: u32 = 262_144;
/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// Writes every packet that a node sends or receives to `out`.
pub struct Capture<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Capture<W> {
    /// Starts a capture file on `out`.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC.to_ne_bytes())?;
        out.write_all(&2_u16.to_ne_bytes())?;
        out.write_all(&4_u16.to_ne_bytes())?;
        for field in [0, 0, SNAP_LEN, LINKTYPE_RAW] {
            out.write_all(&field.to_ne_bytes())?;
        }
        Ok(Self { out, failed: None })
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, now: Instant, packet: &[u8]) -> io::Result<()> {
        let len = packet.len() as u32;
        let (secs, nanos) = (now.as_nanos() / NANOS, now.as_nanos() % NANOS);
        for field in [secs as u32, nanos as u32, len.min(SNAP_LEN), len] {
            self.out.write_all(&field.to_ne_bytes())?;
        }
        self.out.write_all(&packet[..len.min(SNAP_LEN) as usize])
    }
}

impl<W: Write> Observer for Capture<W> {
    fn on_packet(&mut self, now: Instant, _: Direction, packet: &Packet) {
        if self.failed.is_none() {
            self.failed = self.write(now, packet).err();
        }
    }
}

impl<W> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture(failed: {:?})", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_a_header_and_a_record_per_packet() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        let at = Instant::from_nanos(3 * NANOS + 7);
        capture.on_packet(at, Direction::Sent, &Packet::from_slice(&[0x45; 40]));
        capture.finish().unwrap();
        assert_eq!(file.len(), 24 + 16 + 40);
        let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(20)), (MAGIC, LINKTYPE_RAW));
        assert_eq!((word(24), word(28), word(32), word(36)), (3, 7, 40, 40));
    }
}
