//! Class 010: packets that are sent once.
//!
//! The thesis defines the class and no more. Its frames are counted apart from those of class 001, outside window
//! and acknowledgements, since a frame that is never sent again would leave a gap there that never closes. The count shows
//! the receiver that a frame is missing: it then gives up the packet that it was putting together.

use base::Packet;

use crate::endpoint::Discard;
use crate::ready::Ready;
use crate::reassembly::Reassembly;

use super::trailer::{Ack, SubProtocol, Trailer};
use super::window::{beyond, on_air};

/// The packet that is being cut.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pending: Option<Packet>,
    cut: usize,
    next: u64,
}

impl Sender {
    /// Whether a packet waits to be cut, wholly or partly.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes the next packet; none may be pending.
    pub(super) fn offer(&mut self, packet: Packet) {
        debug_assert!(!self.is_pending(), "one packet at a time");
        self.pending = Some(packet);
        self.cut = 0;
    }

    /// Appends a frame of at most `room` bytes and a trailer; whether there was one.
    pub(super) fn poll(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let Some(packet) = &self.pending else { return false };
        let start = self.cut;
        let end = packet.len().min(start + room);
        let last = end == packet.len();
        let trailer = Trailer {
            protocol: SubProtocol::Unreliable,
            first: start == 0,
            last,
            tx: on_air(self.next),
            ack: Ack::Cumulative(0),
        };
        out.extend_from_slice(&packet[start..end]);
        out.extend_from_slice(&trailer.emit());
        self.next += 1;
        self.cut = end;
        if last {
            self.pending = None;
        }
        true
    }

    /// Starts to count anew; a packet that was partly sent starts again.
    pub(super) fn reset(&mut self) {
        self.cut = 0;
        self.next = 0;
    }
}

/// Puts the frames together as they come.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Frames up to the latest, wrapping with the numbers on the air; `None` before the first.
    next: Option<u64>,
    reassembly: Reassembly,
    late: u64,
    missing: u64,
}

impl Receiver {
    /// Takes a frame; a packet that it completes goes to `ready`.
    pub(super) fn handle(
        &mut self,
        trailer: &Trailer,
        payload: &[u8],
        ready: &mut Ready,
    ) -> Result<(), Discard> {
        let next = self.next.unwrap_or(0);
        let skipped = beyond(next, trailer.tx);
        if self.next.is_some() && skipped >= LATE_FROM {
            self.late += 1;
            return Err(Discard::Late(trailer.tx.into()));
        }
        if skipped > 0 {
            self.missing += skipped;
            self.reassembly.abort();
        }
        self.next = Some(next + skipped + 1);
        if let Some(packet) = self.reassembly.push(trailer.first, trailer.last, payload) {
            ready.push(packet);
        }
        Ok(())
    }

    /// Forgets the sender.
    pub(super) fn reset(&mut self) {
        self.next = None;
        self.reassembly.abort();
    }

    /// Frames that came after later ones.
    pub(super) const fn late(&self) -> u64 {
        self.late
    }

    /// Frames that were skipped, modulo the sequence space in each gap.
    pub(super) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Packets of which a fragment was missing.
    pub(super) const fn incomplete(&self) -> u64 {
        self.reassembly.incomplete()
    }
}

/// Frames beyond the expected one from which a number is taken for a late frame, not for a gap. Ours: the line keeps
/// order, so a number far ahead nearly always means that a blockage swallowed many; 32 are enough for a carrier's
/// duplicates.
const LATE_FROM: u64 = 1024 - 32;
