//! TCP's sequence numbers as offsets in streams, from the handshake that shows where each stream begins.

use core::net::IpAddr;
use std::collections::BTreeMap;

use base::SeqNum;
use base::wire::ip::{self, Protocol};
use base::wire::tcp::{self, Flags};
use base::wire::udp;
use rustc_hash::FxHashMap;

use super::event::{PacketMark, PacketStep, Segment};

/// Source and destination of a stream.
type Ends = (IpAddr, u16, IpAddr, u16);

/// The streams of all connections, by their two ends.
#[derive(Debug, Default)]
pub(crate) struct Streams(FxHashMap<Ends, Stream>);

#[derive(Debug)]
struct Stream {
    /// The sequence number of offset zero.
    origin: SeqNum,
    /// One past the last byte that was sent.
    sent_up_to: u64,
    received: Received,
}

/// Which bytes of a stream a host has received.
#[derive(Debug, Default)]
struct Received {
    next: u64,
    /// Runs beyond a gap: from their first byte to the one after their last.
    beyond: BTreeMap<u64, u64>,
}

impl Streams {
    /// The segment that a host sends or receives; `None` if the packet is none.
    pub(crate) fn segment(&mut self, packet: &[u8], sent: bool) -> Option<Segment> {
        let packet = ip::View::parse(packet).ok().filter(|view| view.protocol() == Protocol::TCP)?;
        let view = tcp::View::parse(packet.payload()).ok()?;
        let header = tcp::Repr::parse(&view, packet.src(), packet.dst()).ok()?;
        let ends = (packet.src(), header.src_port, packet.dst(), header.dst_port);
        let len = view.payload().len() as u32;
        if sent && header.flags.has(Flags::SYN) {
            self.begin(ends, header.seq + 1);
        }
        let seq = if header.flags.has(Flags::SYN) { 0 } else { self.offset(ends, header.seq) };
        let back = (ends.2, ends.3, ends.0, ends.1);
        let ack = header.flags.has(Flags::ACK).then(|| self.offset(back, header.ack));
        let block = |block: &tcp::SackBlock| (self.offset(back, block.start), self.offset(back, block.end));
        let sack = header.options.sack.as_slice().iter().map(block).collect();
        let again = match self.0.get_mut(&ends) {
            Some(stream) if len > 0 => {
                let range = seq..seq + u64::from(len);
                if sent { stream.note_sent(range) } else { !stream.received.add(range) }
            }
            _ => false,
        };
        let (from, to) = (header.src_port, header.dst_port);
        Some(Segment {
            sent,
            from,
            to,
            seq,
            len,
            flags: header.flags.0,
            ack,
            window: header.window,
            sack,
            again,
        })
    }

    /// What a link tells of a packet.
    pub(super) fn packet(&self, packet: &[u8], step: PacketStep) -> PacketMark {
        let bytes = packet.len() as u32;
        let unknown = PacketMark { step, from: 0, to: 0, seq: 0, len: 0, bytes };
        let Ok(view) = ip::View::parse(packet) else { return unknown };
        if view.protocol() == Protocol::UDP
            && let Ok(udp) = udp::View::parse(view.payload())
        {
            let len = udp.payload().len() as u32;
            return PacketMark { from: udp.src_port(), to: udp.dst_port(), len, ..unknown };
        }
        if view.protocol() == Protocol::TCP
            && let Ok(tcp) = tcp::View::parse(view.payload())
            && let Ok(header) = tcp::Repr::parse(&tcp, view.src(), view.dst())
        {
            let (from, to, len) = (header.src_port, header.dst_port, tcp.payload().len() as u32);
            let syn = header.flags.has(Flags::SYN);
            let seq = if syn { 0 } else { self.offset((view.src(), from, view.dst(), to), header.seq) };
            return PacketMark { from, to, seq, len, ..unknown };
        }
        unknown
    }

    /// A SYN sent again begins nothing; another one between the same ends begins another connection.
    fn begin(&mut self, ends: Ends, origin: SeqNum) {
        if self.0.get(&ends).is_none_or(|stream| stream.origin != origin) {
            self.0.insert(ends, Stream { origin, sent_up_to: 0, received: Received::default() });
        }
    }

    /// The offset of a number within 2 GiB of what was sent last; 0 before the stream, as in a probe of a closed window.
    fn offset(&self, ends: Ends, number: SeqNum) -> u64 {
        let Some(stream) = self.0.get(&ends) else { return 0 };
        let distance = number.distance(stream.origin + stream.sent_up_to as u32);
        stream.sent_up_to.saturating_add_signed(i64::from(distance))
    }
}

impl Stream {
    /// Whether any of it was sent before.
    fn note_sent(&mut self, range: core::ops::Range<u64>) -> bool {
        let again = range.start < self.sent_up_to;
        self.sent_up_to = self.sent_up_to.max(range.end);
        again
    }
}

impl Received {
    /// Adds bytes; whether any of them is new.
    fn add(&mut self, range: core::ops::Range<u64>) -> bool {
        let start = range.start.max(self.next);
        if range.end <= start {
            return false;
        }
        // All runs that touch the new one become one with it.
        let (mut low, mut high) = (start, range.end);
        let touching: Vec<_> =
            self.beyond.range(..=high).filter(|(_, end)| **end >= low).map(|(a, b)| (*a, *b)).collect();
        let known = touching.iter().any(|&(a, b)| a <= low && high <= b);
        for (a, b) in touching {
            self.beyond.remove(&a);
            (low, high) = (low.min(a), high.max(b));
        }
        if low <= self.next {
            self.next = high;
        } else {
            self.beyond.insert(low, high);
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wholly_known_is_not_new() {
        let mut received = Received::default();
        assert!(received.add(0..10) && !received.add(0..10) && received.add(5..15));
        assert!(received.add(20..30) && received.add(40..50));
        assert!(!received.add(22..30) && received.add(25..45));
        assert_eq!(received.beyond, BTreeMap::from([(20, 50)]));
        assert!(received.add(15..20) && received.next == 50 && received.beyond.is_empty());
        assert!(!received.add(30..50) && received.add(49..51));
    }

    #[test]
    fn offsets_follow_numbers_around() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let ends = (address, 1, address, 2);
        let mut streams = Streams::default();
        streams.begin(ends, SeqNum(u32::MAX - 99));
        streams.begin(ends, SeqNum(u32::MAX - 99));
        let mut at = 0_u64;
        // Three times around.
        while at < 3 << 32 {
            at += 1 << 30;
            let number = SeqNum(u32::MAX - 99) + at as u32;
            assert_eq!(streams.offset(ends, number), at);
            streams.0.get_mut(&ends).unwrap().note_sent(0..at);
        }
        assert_eq!(streams.offset((address, 2, address, 1), SeqNum(7)), 0);
        streams.begin(ends, SeqNum(5));
        assert_eq!(streams.offset(ends, SeqNum(12)), 7);
        assert_eq!(streams.offset(ends, SeqNum(4)), 0);
    }
}
