//! The host chooses its initial sequence number and its timestamps; a script has numbers of its own for both.

use base::wire::tcp::Flags;

use crate::option::TcpOption;
use crate::segment::{Expectation, Segment};

/// Between a script's numbers and those on the wire. The peer's are the same in both.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    /// The host's initial sequence number on the wire.
    wire_isn: Option<u32>,
    /// The host's initial sequence number in the script.
    script_isn: u32,
    /// Timestamps of the host's, in the script and on the wire, the first one first.
    timestamps: Vec<(u32, u32)>,
}

impl Translation {
    /// Whether the host has sent no SYN yet.
    pub(crate) const fn is_new(&self) -> bool {
        self.wire_isn.is_none()
    }

    /// The host has sent this: its SYN tells where its numbers begin.
    pub(crate) fn note_sent(&mut self, sent: &Segment) {
        if sent.flags.has(Flags::SYN) {
            self.wire_isn = Some(sent.seq);
        }
    }

    /// A SYN in the script tells where its numbers begin.
    pub(crate) const fn note_expected(&mut self, expected: &Expectation) {
        if expected.flags.has(Flags::SYN) {
            self.script_isn = expected.seq;
        }
    }

    /// The script's timestamp and that on the wire are the same moment.
    pub(crate) fn note_timestamps(&mut self, expected: &Expectation, sent: &Segment) {
        let script = expected.options.iter().flatten().find_map(value);
        if let (Some(script), Some(wire)) = (script, sent.options.iter().find_map(value)) {
            self.timestamps.push((script, wire));
        }
    }

    fn offset(&self) -> u32 {
        self.wire_isn.unwrap_or(0).wrapping_sub(self.script_isn)
    }

    /// The peer's segment as it goes out on the wire.
    pub(crate) fn to_wire(&self, segment: &Segment) -> Segment {
        let mut segment = segment.clone();
        let offset = self.offset();
        if segment.flags.has(Flags::ACK) {
            segment.ack = segment.ack.wrapping_add(offset);
        }
        for option in &mut segment.options {
            match option {
                TcpOption::Sack(blocks) => blocks.iter_mut().for_each(|(start, end)| {
                    (*start, *end) = (start.wrapping_add(offset), end.wrapping_add(offset));
                }),
                TcpOption::Timestamps { echo, .. } => *echo = self.timestamp_to_wire(*echo),
                _ => {}
            }
        }
        segment
    }

    /// A timestamp that the host really sent, or one as far from the first as the script says. Zero is none.
    fn timestamp_to_wire(&self, echo: u32) -> u32 {
        let known = self.timestamps.iter().rev().find(|(script, _)| *script == echo);
        match (known, self.timestamps.first()) {
            (Some((_, wire)), _) => *wire,
            (None, Some((script, wire))) if echo != 0 => wire.wrapping_add(echo.wrapping_sub(*script)),
            _ => echo,
        }
    }

    /// The host's segment in the script's numbers. Timestamps no further than `tolerance` milliseconds from what is expected
    /// become that.
    pub(crate) fn to_script(
        &self,
        segment: &Segment,
        expected: Option<&Expectation>,
        tolerance: u64,
    ) -> Segment {
        let mut segment = segment.clone();
        if self.wire_isn.is_some() {
            segment.seq = segment.seq.wrapping_sub(self.offset());
        }
        let wanted = expected.and_then(|it| it.options.iter().flatten().find_map(value));
        for option in &mut segment.options {
            if let TcpOption::Timestamps { value, .. } = option {
                let script = match self.timestamps.first() {
                    Some((script, wire)) => script.wrapping_add(value.wrapping_sub(*wire)),
                    None => wanted.unwrap_or(*value),
                };
                let near = |wanted: &u32| {
                    u64::from((wanted.wrapping_sub(script) as i32).unsigned_abs()) <= tolerance
                };
                *value = wanted.filter(near).unwrap_or(script);
            }
        }
        segment
    }
}

const fn value(option: &TcpOption) -> Option<u32> {
    if let TcpOption::Timestamps { value, .. } = option { Some(*value) } else { None }
}
