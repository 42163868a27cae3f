//! The log of one run, and what experiments ask about its blockages.

use core::ops::Range;
use std::io;

use base::{Duration, Instant};
use link::FrameKind;

use crate::observe::events::{Frame, LinkDirection, PacketStep, Segment, SenderState};
use crate::papers::faulkner::setting::logged;
use crate::run::{Run, Watch};
use crate::scenario::Scenario;

/// Bytes of data in a full segment, with time stamps.
pub(super) const SEGMENT: f64 = 1448.0;

const LINK: &str = "satellite";
const SENDER: &str = "server";
const RECEIVER: &str = "terminal";

/// A run of one bulk transfer with every event logged.
pub(super) struct Trace {
    run: Run,
    /// The frames towards the terminal and those from it.
    down: Vec<Frame>,
    up: Vec<Frame>,
}

impl Trace {
    pub(super) fn of(scheme: &str, scenario: &Scenario, seed: u64) -> io::Result<Self> {
        let run = logged(scheme, scenario, seed, Watch { progress: true, ..Watch::default() })?;
        let frames = |direction| run.log.frames(LINK, direction);
        Ok(Self { down: frames(LinkDirection::Down), up: frames(LinkDirection::Up), run })
    }

    /// The blockages that end before the run does.
    pub(super) fn blockages(&self) -> Vec<Range<Instant>> {
        let log = &self.run.log;
        let all = log.blockages(LINK, LinkDirection::Down).into_iter();
        all.filter(|blockage| blockage.end < log.ended_at()).collect()
    }

    /// Frames towards the terminal.
    pub(super) fn down(&self) -> &[Frame] {
        &self.down
    }

    /// Times, each with the bytes that the application had by then.
    pub(super) fn progress(&self) -> &[(Instant, u64)] {
        self.run.progress.first().map_or(&[], |received| &received.points)
    }

    /// Bytes that the application had by a time.
    pub(super) fn received(&self, by: Instant) -> u64 {
        let points = self.progress();
        let next = points.partition_point(|(at, _)| *at <= by);
        points[..next].last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Seconds from a time until the application has so many bytes more than at that time.
    pub(super) fn until_received(&self, from: Instant, more: u64) -> Option<f64> {
        let goal = self.received(from) + more;
        let (at, _) = self.progress().iter().find(|(_, bytes)| *bytes >= goal)?;
        Some(at.saturating_since(from).as_secs_f64())
    }

    /// Data segments that the sender sent.
    pub(super) fn sent(&self) -> impl Iterator<Item = (Instant, &Segment)> {
        self.run.log.segments(SENDER).filter(|(_, segment)| segment.sent && segment.len > 0)
    }

    /// Acknowledgements that reached the sender, with the offset that each expects next.
    pub(super) fn acknowledged(&self) -> impl Iterator<Item = (Instant, u64)> {
        let received = self.run.log.segments(SENDER).filter(|(_, segment)| !segment.sent);
        received.filter_map(|(at, segment)| Some((at, segment.ack?)))
    }

    /// Acknowledgements that the receiver sent, with the offset that each expects next.
    pub(super) fn acknowledgements(&self) -> impl Iterator<Item = (Instant, u64)> {
        let sent = self.run.log.segments(RECEIVER).filter(|(_, segment)| segment.sent);
        sent.filter_map(|(at, segment)| Some((at, segment.ack?)))
    }

    /// Segments with data that was sent again within a time.
    pub(super) fn resent(&self, within: Range<Instant>) -> usize {
        self.sent().filter(|(at, segment)| within.contains(at) && segment.again).count()
    }

    /// Packets towards the terminal that the queue before the link had dropped by a time.
    pub(super) fn dropped(&self, by: Instant) -> usize {
        let packets = self.run.log.packets(LINK, LinkDirection::Down).take_while(|(at, _)| *at <= by);
        packets.filter(|(_, packet)| packet.step == PacketStep::Dropped).count()
    }

    /// Segments sent and not acknowledged at a time.
    pub(super) fn flight(&self, at: Instant) -> f64 {
        let sent = self.sent().take_while(|(then, _)| *then <= at);
        let sent = sent.map(|(_, segment)| segment.seq + u64::from(segment.len)).max().unwrap_or(0);
        let acknowledged = self.acknowledged().take_while(|(then, _)| *then <= at);
        let acknowledged = acknowledged.map(|(_, ack)| ack).max().unwrap_or(0);
        sent.saturating_sub(acknowledged) as f64 / SEGMENT
    }

    /// The sender's state at a time.
    pub(super) fn state(&self, at: Instant) -> Option<SenderState> {
        let before = self.run.log.sender_states(SENDER).take_while(|(then, _)| *then <= at);
        before.last().map(|(_, state)| state)
    }

    /// Seconds from a time until the next TCP data reaches the terminal.
    pub(super) fn until_data(&self, from: Instant) -> Option<f64> {
        let is_data = |segment: &Segment| !segment.sent && segment.len > 0;
        let mut data = self.run.log.segments(RECEIVER).filter(|(at, segment)| *at > from && is_data(segment));
        Some(data.next()?.0.saturating_since(from).as_secs_f64())
    }

    /// Whether the link towards the terminal goes over what it has outstanding, or sends new data, as a blockage ends.
    pub(super) fn is_outstanding(&self, at: Instant) -> bool {
        let before = self.down.partition_point(|frame| frame.on_air.start <= at);
        self.down[..before].last().is_some_and(|frame| frame.kind != FrameKind::Control)
    }

    /// Seconds from a blockage's end until an intact frame reaches the other end, in the direction that takes longer. What
    /// left the terminal before the blockage has arrived long before its end.
    pub(super) fn until_frame(&self, blockage: &Range<Instant>) -> Option<f64> {
        let first = |frames: &[Frame]| {
            let mut arrivals = frames.iter().filter_map(|frame| frame.arrived_at);
            arrivals.find(|at| *at > blockage.end).map(|at| at.saturating_since(blockage.end).as_secs_f64())
        };
        Some(first(&self.down)?.max(first(&self.up)?))
    }

    /// Seconds from a time until the run ended.
    pub(super) fn left(&self, from: Instant) -> f64 {
        self.run.log.ended_at().saturating_since(from).as_secs_f64()
    }

    /// When the link starts the first frame of a segment that TCP sent at a time.
    pub(super) fn first_frame(&self, sent_at: Instant, segment: &Segment) -> Option<Instant> {
        let mut packets = self.run.log.packets(LINK, LinkDirection::Down);
        let taken = packets.find(|(at, packet)| {
            *at >= sent_at && packet.step == PacketStep::Taken && packet.seq == segment.seq && packet.len > 0
        })?;
        let mut new = self.down.iter().filter(|frame| frame.kind == FrameKind::New);
        new.find(|frame| frame.on_air.start >= taken.0).map(|frame| frame.on_air.start)
    }
}

/// So many seconds after a time.
pub(super) fn after(at: Instant, seconds: f64) -> Instant {
    at + Duration::from_secs_f64(seconds)
}
