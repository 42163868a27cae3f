//! Fragments, in their order, put together to packets.

use base::Packet;

use crate::MAX_PACKET;

/// One packet in the making: whatever comes, one buffer of [`MAX_PACKET`] bytes of memory at most, and each byte is copied twice at most.
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

    /// Bytes of memory that the packet takes.
    pub(crate) fn memory(&self) -> usize {
        self.partial.as_ref().map_or(0, Packet::capacity)
    }

    /// Packets dropped for a missing fragment.
    pub(crate) const fn incomplete(&self) -> u64 {
        self.incomplete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a packet of `len` bytes in fragments of 1000.
    fn put_together(reassembly: &mut Reassembly, len: usize) -> Option<usize> {
        let packet = vec![7; len];
        let fragments = packet.chunks(1000).enumerate();
        let last = len.div_ceil(1000) - 1;
        let packets = fragments.filter_map(|(n, payload)| reassembly.push(n == 0, n == last, payload));
        packets.map(|packet| packet.len()).last()
    }

    #[test]
    fn a_packet_longer_than_any_is_dropped_whole_and_counted_once() {
        let mut reassembly = Reassembly::default();
        assert_eq!(put_together(&mut reassembly, MAX_PACKET), Some(MAX_PACKET));
        assert_eq!(reassembly.incomplete(), 0);
        for (dropped, len) in [MAX_PACKET + 1, MAX_PACKET + 5000].into_iter().enumerate() {
            assert_eq!(put_together(&mut reassembly, len), None, "{len} bytes");
            assert_eq!(reassembly.incomplete(), dropped as u64 + 1);
            assert!(!reassembly.is_partial(), "nothing of it is kept");
        }
        assert_eq!(put_together(&mut reassembly, 2500), Some(2500), "the next one is not hurt");
        assert_eq!(reassembly.incomplete(), 2);
    }

    #[test]
    fn a_packet_without_end_does_not_grow() {
        let mut reassembly = Reassembly::default();
        assert!(reassembly.push(true, false, &[7; 1000]).is_none());
        for _ in 0..1000 {
            assert!(reassembly.push(false, false, &[7; 1000]).is_none());
            let kept = reassembly.partial.as_ref().map_or(0, Packet::capacity);
            assert!(kept <= MAX_PACKET, "{kept} bytes are kept");
        }
    }

    /// What the sender gave up is counted there: only what is missing for another reason counts here.
    #[test]
    fn the_rest_of_what_was_given_up_is_passed_over() {
        let mut reassembly = Reassembly::default();
        assert!(reassembly.push(true, false, b"begun").is_none());
        reassembly.skip();
        for last in [false, true] {
            assert!(reassembly.push(false, last, b"rest").is_none());
            assert_eq!(reassembly.incomplete(), 0);
        }
        // That was its end: of these the start is missing, and each counts once, where it ends.
        for (last, count) in [(false, 0), (true, 1), (true, 2)] {
            assert!(reassembly.push(false, last, b"rest").is_none());
            assert_eq!(reassembly.incomplete(), count);
        }
        reassembly.skip();
        assert!(reassembly.push(true, false, b"pac").is_none());
        assert_eq!(&*reassembly.push(false, true, b"ket").unwrap(), b"packet");
        assert!(reassembly.push(false, true, b"rest").is_none());
        assert_eq!(reassembly.incomplete(), 3, "a new packet ends what is passed over");
    }
}
