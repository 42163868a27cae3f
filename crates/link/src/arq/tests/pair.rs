//! For tests: two ends and the line between them.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate};

use crate::endpoint::{Demand, Endpoint, FrameKind};
use crate::line::LineLimits;
use crate::treatment::Treatment;

/// Frames of up to 100 bytes 1 ms each.
pub(crate) const LINE: LineLimits = LineLimits::new(100, Some(Rate::from_bps(800_000)));
pub(crate) const MS: Duration = Duration::from_millis(1);

/// What a line does with the frame that was just put on it.
pub(crate) type Fate<'a> = &'a mut dyn FnMut(usize, &mut VecDeque<Option<Vec<u8>>>);

#[derive(Debug)]
pub(crate) struct Pair<E> {
    pub(crate) ends: [E; 2],
    pub(crate) lines: [VecDeque<Option<Vec<u8>>>; 2],
    /// Frames that a line holds.
    pub(crate) delay: usize,
    pub(crate) now: Instant,
    /// Frames with data that each line lost.
    pub(crate) lost: [u64; 2],
}

impl<E: Endpoint> Pair<E> {
    pub(crate) fn new(end: impl Fn() -> E, delay: usize) -> Self {
        Self { ends: [end(), end()], lines: Default::default(), delay, now: Instant::ZERO, lost: [0; 2] }
    }

    /// A millisecond goes by: each end sends a frame if it has something to say, and one arrives at each.
    pub(crate) fn step(&mut self, fate: Fate<'_>) -> [Vec<Packet>; 2] {
        self.now += MS;
        for (side, (end, line)) in self.ends.iter_mut().zip(&mut self.lines).enumerate() {
            if end.poll_timeout().is_some_and(|due| due <= self.now) {
                end.handle_timeout(self.now);
            }
            let mut frame = Vec::new();
            let speaks = end.demand(self.now) > Demand::Nothing;
            let info = speaks.then(|| end.poll_frame(self.now, &mut frame)).flatten();
            assert!(frame.len() <= LINE.frame_limit());
            line.push_back(info.map(|_| frame));
            fate(side, line);
            let was_lost = line.back().is_some_and(Option::is_none);
            self.lost[side] += u64::from(was_lost && info.is_some_and(|i| i.kind != FrameKind::Control));
        }
        for (line, end) in self.lines.iter_mut().zip(self.ends.iter_mut().rev()) {
            if line.len() > self.delay
                && let Some(frame) = line.pop_front().flatten()
            {
                let _ = end.handle_frame(self.now, &frame);
            }
        }
        self.ends.each_mut().map(|end| core::iter::from_fn(|| end.poll_packet()).collect())
    }

    /// Hands packets to the first end as it has room, and gives what comes out at the other, with the time, in `steps` steps.
    pub(crate) fn carry(
        &mut self,
        packets: impl IntoIterator<Item = Packet>,
        steps: u32,
        fate: Fate<'_>,
    ) -> Vec<(Instant, Packet)> {
        let (mut packets, mut arrived) = (packets.into_iter(), Vec::new());
        for _ in 0..steps {
            while self.ends[0].has_room(Treatment::Reliable)
                && let Some(packet) = packets.next()
            {
                self.ends[0].offer(self.now, packet, Treatment::Reliable).unwrap();
            }
            let [_, there] = self.step(fate);
            arrived.extend(there.into_iter().map(|packet| (self.now, packet)));
        }
        arrived
    }

    /// Whether an end waits for nothing but the time to forget what is over.
    pub(crate) fn is_at_rest(&self, side: usize) -> bool {
        self.ends[side].poll_timeout().is_none_or(|due| due > self.now + Duration::from_secs(20))
    }

    pub(crate) fn count(&self, side: usize, name: &str) -> u64 {
        let counters = self.ends[side].counters();
        counters.iter().find(|(counter, _)| *counter == name).unwrap().1
    }
}

/// A UDP packet of `flow` with its number in the last four bytes.
pub(crate) fn packet(flow: u8, number: u32, len: usize) -> Packet {
    let mut bytes = vec![0; len.max(32)];
    (bytes[0], bytes[9], bytes[15]) = (0x45, 17, flow);
    bytes[21] = flow;
    bytes[len.max(32) - 4..].copy_from_slice(&number.to_be_bytes());
    Packet::from_slice(&bytes)
}

pub(crate) fn flow_and_number(packet: &Packet) -> (u8, u32) {
    (packet[15], u32::from_be_bytes(*packet.last_chunk().unwrap()))
}

/// Nothing happens to any frame.
pub(crate) fn intact(_side: usize, _line: &mut VecDeque<Option<Vec<u8>>>) {}

/// Each frame has the next fate: lost, overtaken by five, repeated, or nothing; and nothing once there are no more.
pub(crate) fn fated(fates: Vec<u8>) -> impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>) {
    let mut fates = fates.into_iter();
    move |_, line| {
        let len = line.len();
        match fates.next() {
            Some(0..=2) => {
                line.pop_back();
                line.push_back(None);
            }
            Some(3) if len > 6 => line.swap(len - 1, len - 6),
            Some(4) => {
                let again = line.back().cloned().flatten();
                line.push_back(again);
            }
            _ => {}
        }
    }
}
