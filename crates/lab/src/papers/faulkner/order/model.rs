//! The published rules, as plainly as they can be written (Faulkner 2004, 2.3): every frame is looked at in every step.

use std::collections::BTreeMap;

use link::FrameKind;
use link::cotmll::Ack;

/// Sequence numbers on the air.
const SPACE: u64 = 1024;

/// A sender's window.
#[derive(Debug)]
pub(super) struct Model {
    window: u64,
    /// Frames that no cumulative acknowledgement covers.
    frames: BTreeMap<u64, Frame>,
    /// The next new frame.
    next: u64,
    /// Frames of the packet that waits.
    waiting: u32,
    transmissions: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// When it was sent last, counted in transmissions.
    sent: u64,
    acknowledged: bool,
    flagged: bool,
}

impl Model {
    pub(super) const fn new(window: u32) -> Self {
        Self { window: window as u64, frames: BTreeMap::new(), next: 0, waiting: 0, transmissions: 0 }
    }

    /// A packet of so many frames waits from now on.
    pub(super) const fn offer(&mut self, frames: u32) {
        self.waiting = frames;
    }

    /// Frames in the window.
    pub(super) fn in_flight(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The number on the air of the frame at this place of the window.
    pub(super) fn on_air(&self, place: u64) -> u16 {
        ((self.base() + place) % SPACE) as u16
    }

    fn base(&self) -> u64 {
        self.next - self.in_flight()
    }

    /// What goes next, and that it has gone.
    pub(super) fn choose(&mut self) -> (FrameKind, Option<u16>) {
        let outstanding = || self.frames.iter().filter(|(_, frame)| !frame.acknowledged);
        let flagged = outstanding().find(|(_, frame)| frame.flagged).map(|(&number, _)| number);
        let oldest = outstanding().min_by_key(|(_, frame)| frame.sent).map(|(&number, _)| number);
        let (kind, number) = if let Some(number) = flagged {
            (FrameKind::Retransmission, number)
        } else if self.waiting > 0 && self.in_flight() < self.window {
            self.waiting -= 1;
            self.next += 1;
            (FrameKind::New, self.next - 1)
        } else if let Some(number) = oldest {
            (FrameKind::Filler, number)
        } else {
            return (FrameKind::Control, None);
        };
        self.transmissions += 1;
        let frame = self.frames.entry(number).or_default();
        (frame.sent, frame.flagged) = (self.transmissions, false);
        (kind, Some((number % SPACE) as u16))
    }

    /// Takes an acknowledgement; one of frames that are not in flight says nothing.
    pub(super) fn acknowledge(&mut self, ack: Ack) {
        let place = |number: u16| (u64::from(number) + SPACE - self.base() % SPACE) % SPACE;
        match ack {
            Ack::Cumulative(number) => {
                let covered = place(number);
                if covered <= self.in_flight() {
                    self.frames = self.frames.split_off(&(self.base() + covered));
                }
            }
            Ack::Block { start, count } => {
                let offset = place(start);
                if offset > 0 && offset + u64::from(count) <= self.in_flight() {
                    self.acknowledge_block(self.base() + offset, u64::from(count));
                }
            }
        }
    }

    /// What precedes a block is lost, unless it was sent after all of the block that is news.
    fn acknowledge_block(&mut self, start: u64, count: u64) {
        let news = self.frames.range_mut(start..start + count).filter(|(_, frame)| !frame.acknowledged);
        let mut latest = None;
        for (_, frame) in news {
            latest = latest.max(Some(frame.sent));
            (frame.acknowledged, frame.flagged) = (true, false);
        }
        let Some(latest) = latest else { return };
        for (_, frame) in self.frames.range_mut(..start) {
            frame.flagged |= !frame.acknowledged && frame.sent < latest;
        }
    }
}
