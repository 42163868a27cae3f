//! The endpoint of a peer that breaks every rule of the link: it sends what costs the other end most.

use base::{Instant, Packet, Rng};
use link::{Capabilities, Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Marks, Treatment};

/// It takes nothing in, and always has something to say. Its frames are those of coded ARQ.
#[derive(Debug)]
pub(crate) struct Rogue {
    luck: Rng,
    serial: u32,
}

/// Flags of a frame's trailer (`link::arq::frame`).
const RELIABLE: u8 = 1 << 5;
const REPAIR: u8 = 3 << 5;
const FIRST: u8 = 1 << 4;
/// Sequences in a window.
const WINDOW: u32 = 1 << 17;

impl Rogue {
    pub(crate) fn new() -> Self {
        Self { luck: Rng::named(1, "rogue"), serial: 0 }
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.luck.unit() * f64::from(end)) as u32
    }

    /// A frame's trailer, which acknowledges what `next` says.
    fn finish(&mut self, flags: u8, sequence: u32, next: u32, frame: &mut Vec<u8>) {
        self.serial += 1;
        let back = flags & FIRST != 0;
        frame.extend(back.then_some(0));
        frame.extend([flags, back.into()]);
        for number in [sequence, self.serial, next, 0] {
            frame.extend_from_slice(&number.to_be_bytes()[1..]);
        }
        frame.push(0);
    }

    /// One of the things that cost much for their length, or mislead.
    fn forge(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        match self.below(5) {
            // A byte far ahead, which has to wait for all before it.
            0 => {
                frame.push(1);
                let ahead = self.below(WINDOW);
                self.finish(RELIABLE, ahead, 0, &mut frame);
            }
            // A short sum of many frames that nobody has.
            1 | 2 => {
                let count = 1 + self.below(120);
                frame.extend([0, count as u8, 7, 7, 7, 7, 7]);
                let end = count + self.below(3000);
                self.finish(REPAIR, end, 0, &mut frame);
            }
            // The first part of a packet without an end.
            3 => {
                frame.resize(300, 0x45);
                let ahead = self.below(WINDOW);
                self.finish(RELIABLE | FIRST, ahead, 0, &mut frame);
            }
            // It has all that there is and more, or forgets what it had; or nothing of it means anything.
            _ => {
                let next = self.below(1 << 24);
                self.finish(RELIABLE, 0, next, &mut frame);
                let at = self.below(frame.len() as u32) as usize;
                frame[at] = self.below(256) as u8;
            }
        }
        frame.push(self.below(6) as u8);
        frame
    }
}

impl Endpoint for Rogue {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: true,
            needs_order: false,
            carries_super_segments: false,
            has_classes: true,
            wants_fillers: false,
            several_lines: false,
        }
    }

    fn offer(&mut self, _now: Instant, packet: Packet, _treatment: Treatment) -> Result<(), Full> {
        Err(Full(packet))
    }

    fn has_room(&self, _treatment: Treatment) -> bool {
        false
    }

    fn handle_frame(&mut self, _now: Instant, _frame: &[u8]) -> Result<(), Discard> {
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_frame(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        out.extend(self.forge());
        Some(FrameInfo { kind: FrameKind::New, late_len: 0, marks: Marks::default() })
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn demand(&self, _now: Instant) -> Demand {
        Demand::Fresh
    }

    fn reset(&mut self) {}

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
