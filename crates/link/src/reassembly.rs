//! Fragments, in their order, put together to packets.

use base::Packet;

use crate::MAX_PACKET;

/// One packet in the making.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    partial: Option<Packet>,
    /// The rest of a packet that the sender gave up is passed over, and not counted.
    skipping: bool,
    incomplete: u64,
}

impl Reassembly {
    /// Takes the next fragment; answers the packet that it completes.
    ///
    /// A packet that never ended, has no start, or grows beyond [`MAX_PACKET`] is dropped and counted.
    #[inline]
    pub(crate) fn push(&mut self, first: bool, last: bool, payload: &[u8]) -> Option<Packet> {
        if first {
            self.skipping = false;
            self.abort();
            let packet = Packet::from_slice(payload);
            if last {
                return Some(packet);
            }
            self.partial = Some(packet);
            return None;
        }
        self.extend(last, payload)
    }

    fn extend(&mut self, last: bool, payload: &[u8]) -> Option<Packet> {
        let Some(packet) = &mut self.partial else {
            // Counted where the packet's end shows, so that it counts once.
            self.incomplete += u64::from(last && !self.skipping);
            self.skipping &= !last;
            return None;
        };
        let len = packet.len() + payload.len();
        if len > MAX_PACKET {
            self.partial = None;
            self.incomplete += u64::from(last);
            return None;
        }
        if len > packet.capacity() {
            // More than one small buffer: a super-segment, which gets a large one at once.
            let mut large = Packet::with_capacity(MAX_PACKET);
            large.extend_from_slice(packet);
            *packet = large;
        }
        packet.extend_from_slice(payload);
        if last { self.partial.take() } else { None }
    }

    /// Whatever was begun will never be complete.
    pub(crate) fn abort(&mut self) {
        self.incomplete += u64::from(self.partial.take().is_some());
    }

    /// The sender has given up the packet that was begun, or that would have been.
    pub(crate) fn skip(&mut self) {
        self.partial = None;
        self.skipping = true;
    }

    /// Whether a packet was begun.
    pub(crate) const fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Packets dropped for a missing fragment.
    pub(crate) const fn incomplete(&self) -> u64 {
        self.incomplete
    }
}
