//! No protocol at all: one packet a frame, no recovery, a short drop-tail buffer.
//!
//! The frame's first nibble says what it is. 4 and 6 are an IP packet and 0 is one with metadata in front, whole
//! and without overhead. 1 is a fragment of a packet that was longer than a frame, with four bytes in front: the
//! nibble, two unused bits, *first* and *last* in the low bits; then a 24-bit count of fragments. A packet with a
//! missing fragment is dropped and counted. The line must keep order.
//!
//! On a link as in Faulkner 2004 this is what a scheme without a link layer sends (`papers`' notes: one packet and
//! 40 bits of framing, which the line adds).

use std::collections::VecDeque;

use base::{Instant, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full};
use crate::limit::Limit;
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::ready::Ready;
use crate::slack;
use crate::treatment::Treatment;

mod fragment;

use fragment::{Fragments, Header};

pub(crate) use fragment::HEADER_LEN as FRAGMENT_HEADER_LEN;

/// What a scenario may say about `plain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "Plain")]
pub struct Config {
    /// Size of the MAC buffer in packets, 1 to 65536. Default: 10 (ours: so few that packets wait in the IP queue).
    pub buffer: Limit<1, 65_536, 10>,
}

/// One end of a link without recovery.
#[derive(Debug)]
pub struct Plain {
    limit: usize,
    /// Bytes of a frame at most.
    max_len: usize,
    waiting: VecDeque<Packet>,
    /// Bytes that their buffers take, and may take.
    memory: (usize, usize),
    /// Bytes of the first waiting packet that left in fragments.
    cut: usize,
    /// Its marks, once it is being cut.
    marks: Marks,
    /// Number of the next fragment.
    next_fragment: u32,
    fragments: Fragments,
    ready: Ready,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    frames_sent: u64,
    fragments_sent: u64,
    frames_received: u64,
    malformed: u64,
}

impl Plain {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        Self {
            limit: config.buffer.get() as usize,
            max_len: line.frame_limit(),
            waiting: VecDeque::new(),
            memory: (0, usize::MAX),
            cut: 0,
            marks: Marks::default(),
            next_fragment: 0,
            fragments: Fragments::default(),
            ready: Ready::holding(READY),
            counters: Counters::default(),
        }
    }

    /// The first packet has left.
    fn drop_first(&mut self) {
        self.memory.0 -= self.waiting.pop_front().map_or(0, |packet| packet.capacity());
        slack::give_back(&mut self.waiting);
    }

    fn poll_fragment(&mut self, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let packet = self.waiting.front()?;
        let end = packet.len().min(self.cut.saturating_add(self.max_len - fragment::HEADER_LEN));
        let last = end == packet.len();
        if self.cut == 0 {
            // Fragments need their order, which routers keep only among equals.
            self.marks = Marks::of(packet).without_dscp();
        }
        let header = Header { first: self.cut == 0, last, number: self.next_fragment };
        out.extend_from_slice(&header.emit());
        out.extend_from_slice(&packet[self.cut..end]);
        self.next_fragment = fragment::after(self.next_fragment);
        self.counters.fragments_sent += 1;
        self.cut = end;
        if last {
            self.cut = 0;
            self.drop_first();
        }
        Some(complete(self.marks))
    }
}

impl Endpoint for Plain {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        if !self.has_room(treatment) {
            return Err(Full(packet));
        }
        self.memory.0 += packet.capacity();
        self.waiting.push_back(packet);
        Ok(())
    }

    fn has_room(&self, _treatment: Treatment) -> bool {
        let (held, most) = self.memory;
        self.waiting.len() < self.limit && (held <= most || self.waiting.is_empty())
    }

    fn memory(&self) -> usize {
        self.memory.0 + slack::room(&self.waiting) + self.fragments.memory() + self.ready.memory()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.memory.1 = bytes;
    }

    fn handle_frame(&mut self, _now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.counters.frames_received += 1;
        let result = match frame.first() {
            None => Err(Discard::Truncated(0)),
            Some(first) if is_whole(*first) => {
                // It may have overtaken fragments of another packet.
                self.ready.push(Packet::from_slice(frame));
                Ok(())
            }
            Some(_) => self.fragments.handle(frame).map(|packet| {
                if let Some(packet) = packet {
                    self.ready.push(packet);
                }
            }),
        };
        self.counters.malformed +=
            u64::from(matches!(result, Err(Discard::Malformed | Discard::Truncated(_))));
        result
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_frame(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let packet = self.waiting.front()?;
        let whole =
            self.cut == 0 && packet.len() <= self.max_len && packet.first().is_some_and(|b| is_whole(*b));
        if !whole {
            let started = self.poll_fragment(out);
            self.counters.frames_sent += u64::from(started.is_some());
            return started;
        }
        out.extend_from_slice(packet);
        let marks = Marks::of(packet);
        self.drop_first();
        self.counters.frames_sent += 1;
        Some(complete(marks))
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.ready.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn demand(&self, _now: Instant) -> Demand {
        if self.waiting.is_empty() { Demand::Nothing } else { Demand::Fresh }
    }

    /// Nothing is cut in advance: every frame from now on fits.
    fn set_line(&mut self, line: &LineLimits) {
        self.max_len = line.frame_limit();
    }

    /// A packet that was partly sent starts again.
    fn reset(&mut self) {
        self.cut = 0;
        self.next_fragment = 0;
        self.fragments.abort();
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        vec![
            ("frames-sent", c.frames_sent),
            ("fragments-sent", c.fragments_sent),
            ("frames-received", c.frames_received),
            ("frames-malformed", c.malformed),
            ("packets-incomplete", self.fragments.incomplete()),
            ("packets-not-taken", self.ready.dropped()),
        ]
    }
}

/// What arrives is in order; what is lost stays lost.
pub const CAPABILITIES: Capabilities = Capabilities {
    recovers_losses: false,
    keeps_order: true,
    needs_order: false,
    carries_super_segments: false,
    has_classes: false,
    wants_fillers: false,
    several_lines: false,
};

/// Packets. Ours: a frame completes one, and the owner takes it.
const READY: usize = 1024;

/// What a frame is that carries a packet with these marks: complete when it starts.
const fn complete(marks: Marks) -> FrameInfo {
    FrameInfo { kind: FrameKind::New, late_len: 0, marks }
}

/// Whether a frame that starts with this byte is a whole packet.
const fn is_whole(first: u8) -> bool {
    matches!(first >> 4, 0 | 4 | 6)
}

#[cfg(test)]
mod tests;
