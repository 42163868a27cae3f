//! A protocol that lives on timers: stop-and-wait with a time-out, and a receiver that holds packets back for a while.
//!
//! COTMLL and `plain` have none, and later protocols will. Without its timers nothing of this one arrives, so it
//! shows that whoever drives an endpoint looks at them.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet};
use link::{
    Capabilities, Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, LineLimits, Marks, Treatment,
};

/// Bytes in front of a packet: type and number.
const HEADER_LEN: usize = 2;
const DATA: u8 = 0;
const ACK: u8 = 1;

/// Frames in which the other end should have answered, besides the round trip.
const FRAMES: u64 = 3;

/// One end.
#[derive(Debug)]
pub(crate) struct Repeater {
    line: LineLimits,
    round_trip: Duration,
    hold: Duration,
    /// The packet that waits for its acknowledgement, and how often it was sent.
    current: Option<(Packet, Treatment)>,
    transmissions: u32,
    number: u8,
    /// When the current packet is sent again.
    again_at: Option<Instant>,
    acknowledge: Option<u8>,
    /// The number that comes next, what has arrived, and when it goes up.
    expected: u8,
    held: VecDeque<(Instant, Packet)>,
    ready: VecDeque<Packet>,
    timeouts: u64,
    given_up: u64,
}

impl Repeater {
    /// An end for a line with this round trip, whose receiver holds each packet for `hold`.
    pub(crate) fn new(line: LineLimits, round_trip: Duration, hold: Duration) -> Self {
        Self {
            line,
            round_trip,
            hold,
            current: None,
            transmissions: 0,
            number: 0,
            again_at: None,
            acknowledge: None,
            expected: 0,
            held: VecDeque::new(),
            ready: VecDeque::new(),
            timeouts: 0,
            given_up: 0,
        }
    }

    fn time_out(&self) -> Duration {
        let frame = |rate: base::Rate| rate.time_for(self.line.frame_limit() as u64 * 8);
        self.round_trip + self.line.rate().map_or(Duration::ZERO, frame) * FRAMES
    }

    fn finish(&mut self) {
        self.current = None;
        self.again_at = None;
        self.number = self.number.wrapping_add(1);
    }
}

impl Endpoint for Repeater {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: true,
            needs_order: false,
            carries_super_segments: false,
            has_classes: false,
            wants_fillers: false,
            several_lines: false,
        }
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        if self.current.is_some() {
            return Err(Full(packet));
        }
        assert!(packet.len() + HEADER_LEN <= self.line.frame_limit(), "packets fit frames here");
        self.current = Some((packet, treatment));
        self.transmissions = 0;
        Ok(())
    }

    fn has_room(&self, _treatment: Treatment) -> bool {
        self.current.is_none()
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        match *frame {
            [ACK, number] if number == self.number => self.finish(),
            [ACK, _] => {}
            [DATA, number, ref packet @ ..] => {
                self.acknowledge = Some(number);
                // A sender that gave up goes on with the next number.
                if number.wrapping_sub(self.expected) > 127 {
                    return Err(Discard::Duplicate(number.into()));
                }
                self.expected = number.wrapping_add(1);
                self.held.push_back((now + self.hold, Packet::from_slice(packet)));
            }
            _ => return Err(Discard::Malformed),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, packet)) = self.held.pop_front_if(|(due, _)| *due <= now) {
            self.ready.push_back(packet);
        }
        if self.again_at.is_some_and(|due| due <= now) {
            self.again_at = None;
            self.timeouts += 1;
            if self.current.as_ref().is_some_and(|(_, treatment)| treatment.is_once()) {
                self.given_up += 1;
                self.finish();
            }
        }
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        if let Some(number) = self.acknowledge.take() {
            out.extend_from_slice(&[ACK, number]);
            return Some(FrameInfo { kind: FrameKind::Control, late_len: 0, marks: Marks::default() });
        }
        if self.again_at.is_some() {
            return None;
        }
        let (packet, _) = self.current.as_ref()?;
        out.extend_from_slice(&[DATA, self.number]);
        out.extend_from_slice(packet);
        self.again_at = Some(now + self.time_out());
        self.transmissions += 1;
        let kind = if self.transmissions == 1 { FrameKind::New } else { FrameKind::Retransmission };
        Some(FrameInfo { kind, late_len: 0, marks: Marks::of(packet) })
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.ready.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let release = self.held.front().map(|(due, _)| *due);
        release.into_iter().chain(self.again_at).min()
    }

    fn demand(&self, _now: Instant) -> Demand {
        let may_send = self.current.is_some() && self.again_at.is_none();
        if self.acknowledge.is_some() || may_send { Demand::Fresh } else { Demand::Nothing }
    }

    fn reset(&mut self) {
        (self.number, self.expected, self.transmissions, self.again_at) = (0, 0, 0, None);
        self.acknowledge = None;
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("time-outs", self.timeouts), ("packets-given-up", self.given_up)]
    }
}
