//! What a TCP sender's host saw: every data segment and every acknowledgement, per connection.

use base::wire::ip::{self, Protocol};
use base::wire::tcp::{self, Flags};
use base::{Instant, Packet, SeqNum};
use rustc_hash::FxHashMap;

use crate::engine::{Direction, Observer};

/// A data segment that left the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentMark {
    /// When it left.
    pub at: Instant,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Bytes of data.
    pub len: u32,
    /// Whether any of it had been sent before.
    pub again: bool,
    /// Its number among all packets that the host sent, from 1.
    pub number: u64,
}

/// One connection's marks.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Source and destination port of the data.
    pub ports: (u16, u16),
    /// Data segments in the order in which they left.
    pub segments: Vec<SegmentMark>,
    /// Times at which the cumulative acknowledgement advanced, with the stream offset that it reached.
    pub acks: Vec<(Instant, u64)>,
    /// Segments past the limit, which were counted and not kept.
    pub unkept: u64,
    /// Sequence number of stream offset zero, once the handshake has shown it.
    origin: Option<SeqNum>,
    sent_up_to: u64,
    acked_up_to: u64,
}

/// Marks that one flow keeps at most.
const KEPT: usize = 200_000;
/// Marks that all flows of a host keep at most, 40 bytes each: of thousands of flows no figure shows more. Ours.
const KEPT_IN_ALL: usize = 5 * KEPT;

/// Watches the data that one host sends, one flow a connection, in the order of their handshakes.
#[derive(Clone, Debug, Default)]
pub struct FlowTrace {
    flows: Vec<Flow>,
    /// The place of each flow among them, by its ports.
    places: FxHashMap<(u16, u16), usize>,
    /// Packets that the host sent.
    sent: u64,
    /// Marks of all flows.
    kept: usize,
}

impl FlowTrace {
    /// The connections seen.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    fn flow(&mut self, ports: (u16, u16)) -> &mut Flow {
        let place = *self.places.entry(ports).or_insert(self.flows.len());
        if place == self.flows.len() {
            self.flows.push(Flow { ports, ..Flow::default() });
        }
        &mut self.flows[place]
    }

    fn note(&mut self, now: Instant, direction: Direction, packet: &[u8]) -> Option<()> {
        let packet = ip::View::parse(packet).ok().filter(|view| view.protocol() == Protocol::TCP)?;
        let view = tcp::View::parse(packet.payload()).ok()?;
        let header = tcp::Repr::parse(&view, packet.src(), packet.dst()).ok()?;
        match direction {
            Direction::Sent => {
                let (number, room) = (self.sent, self.kept < KEPT_IN_ALL);
                let flow = self.flow((header.src_port, header.dst_port));
                if header.flags.has(Flags::SYN) {
                    flow.origin = Some(header.seq + 1);
                }
                let len = view.payload().len() as u32;
                let kept = flow.note_segment(now, header.seq, len, number, room);
                self.kept += usize::from(kept);
            }
            Direction::Received if header.flags.has(Flags::ACK) => {
                let room = self.kept < KEPT_IN_ALL;
                let kept = self.flow((header.dst_port, header.src_port)).note_ack(now, header.ack, room);
                self.kept += usize::from(kept);
            }
            Direction::Received => {}
        }
        Some(())
    }
}

impl Flow {
    /// The stream offset of `seq`, which lies within 2 GiB of `near`.
    fn offset_of(&self, seq: SeqNum, near: u64) -> Option<u64> {
        let origin = self.origin?;
        let distance = seq.distance(origin + near as u32);
        near.checked_add_signed(i64::from(distance))
    }

    /// Whether it kept a mark of the segment, if there is `room` for one.
    fn note_segment(&mut self, now: Instant, seq: SeqNum, len: u32, number: u64, room: bool) -> bool {
        let Some(offset) = self.offset_of(seq, self.sent_up_to).filter(|_| len > 0) else { return false };
        let again = offset < self.sent_up_to;
        self.sent_up_to = self.sent_up_to.max(offset + u64::from(len));
        let keeps = room && self.segments.len() < KEPT;
        if keeps {
            self.segments.push(SegmentMark { at: now, offset, len, again, number });
        } else {
            self.unkept += 1;
        }
        keeps
    }

    /// Whether it kept a mark of the acknowledgement, if there is `room` for one.
    fn note_ack(&mut self, now: Instant, ack: SeqNum, room: bool) -> bool {
        let Some(offset) = self.offset_of(ack, self.acked_up_to) else { return false };
        let keeps = room && offset > self.acked_up_to && self.acks.len() < KEPT;
        if keeps {
            self.acked_up_to = offset;
            self.acks.push((now, offset));
        }
        keeps
    }
}

impl Observer for FlowTrace {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        self.sent += u64::from(direction == Direction::Sent);
        // Other packets than TCP's are not its business.
        let _ = self.note(now, direction, packet);
    }
}
