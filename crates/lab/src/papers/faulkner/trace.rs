//! The log of a bulk transfer over the link "satellite", and what probes ask about its blockages.

use core::ops::Range;

use base::{Duration, Instant};
use link::FrameKind;

use crate::observe::EventLog;
use crate::observe::events::{Frame, LinkDirection, PacketStep, Segment, SenderState};
use crate::run::{Run, Watch};

/// Bytes of data in a full segment, with time stamps.
pub(super) const SEGMENT: f64 = 1448.0;

const LINK: &str = "satellite";
const SENDER: &str = "server";
const RECEIVER: &str = "terminal";

/// A finished run with every event logged.
pub(super) struct Trace<'a> {
    run: &'a Run,
    /// The frames towards the terminal and those from it.
    down: Vec<Frame>,
    up: Vec<Frame>,
}

impl<'a> Trace<'a> {
    /// What a run has to keep for it.
    pub(super) const fn watch(watch: &mut Watch) {
        (watch.events, watch.progress) = (true, true);
    }

    pub(super) fn of(run: &'a Run) -> Self {
        let frames = |direction| run.log.frames(LINK, direction);
        Self { run, down: frames(LinkDirection::Down), up: frames(LinkDirection::Up) }
    }

    const fn log(&self) -> &'a EventLog {
        &self.run.log
    }

    /// All blockages; the last one may end with the run.
    pub(super) fn blockages(&self) -> Vec<Range<Instant>> {
        self.log().blockages(LINK, LinkDirection::Down)
    }

    /// The blockages as a figure shades them.
    pub(super) fn shades(&self) -> impl Iterator<Item = (f64, f64)> {
        self.blockages().into_iter().map(|blocked| (blocked.start.as_secs_f64(), blocked.end.as_secs_f64()))
    }

    /// Frames towards the terminal.
    pub(super) fn down(&self) -> &[Frame] {
        &self.down
    }

    /// Times, each with the bytes that the application had by then.
    fn progress(&self) -> &[(Instant, u64)] {
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
        Some(seconds(from, *at))
    }

    /// Data segments that the sender sent.
    pub(super) fn sent(&self) -> impl Iterator<Item = (Instant, &Segment)> {
        self.log().segments(SENDER).filter(|(_, segment)| segment.sent && segment.len > 0)
    }

    /// Acknowledgements that reached the sender, with the offset that each expects next.
    pub(super) fn acknowledged(&self) -> impl Iterator<Item = (Instant, u64)> {
        let received = self.log().segments(SENDER).filter(|(_, segment)| !segment.sent);
        received.filter_map(|(at, segment)| Some((at, segment.ack?)))
    }

    /// Acknowledgements that the receiver sent, with the offset that each expects next.
    pub(super) fn acknowledgements(&self) -> impl Iterator<Item = (Instant, u64)> {
        let sent = self.log().segments(RECEIVER).filter(|(_, segment)| segment.sent);
        sent.filter_map(|(at, segment)| Some((at, segment.ack?)))
    }

    /// When data were sent again within a time.
    pub(super) fn resent(&self, within: Range<Instant>) -> Vec<Instant> {
        let again = self.sent().filter(|(at, segment)| segment.again && within.contains(at));
        again.map(|(at, _)| at).collect()
    }

    /// Packets towards the terminal that the queue before the link had dropped by a time.
    pub(super) fn dropped(&self, by: Instant) -> usize {
        let packets = self.log().packets(LINK, LinkDirection::Down).take_while(|(at, _)| *at <= by);
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
        let before = self.log().sender_states(SENDER).take_while(|(then, _)| *then <= at);
        before.last().map(|(_, state)| state)
    }

    /// Seconds from a time until the next TCP data reaches the terminal.
    pub(super) fn until_data(&self, from: Instant) -> Option<f64> {
        let is_data = |segment: &Segment| !segment.sent && segment.len > 0;
        let mut data = self.log().segments(RECEIVER).filter(|(at, segment)| *at > from && is_data(segment));
        Some(seconds(from, data.next()?.0))
    }

    /// Whether the last frame towards the terminal before a time carried data: the link has some outstanding.
    pub(super) fn is_outstanding(&self, at: Instant) -> bool {
        let before = self.down.partition_point(|frame| frame.on_air.start <= at);
        self.down[..before].last().is_some_and(|frame| frame.kind != FrameKind::Control)
    }

    /// Seconds from a blockage's end until an intact frame reaches the other end, in the direction that takes longer. What
    /// left before the blockage has arrived long before its end.
    pub(super) fn until_frame(&self, reopened: Instant) -> Option<f64> {
        let first = |frames: &[Frame]| {
            let mut arrivals = frames.iter().filter_map(|frame| frame.arrived_at);
            arrivals.find(|at| *at > reopened).map(|at| seconds(reopened, at))
        };
        Some(first(&self.down)?.max(first(&self.up)?))
    }

    /// Seconds from a time until the run ended.
    pub(super) fn left(&self, from: Instant) -> f64 {
        seconds(from, self.log().ended_at())
    }

    /// When the link starts the first frame of the segment that TCP sent at a time.
    pub(super) fn first_frame(&self, sent_at: Instant) -> Option<Instant> {
        let (_, segment) = self.sent().find(|(then, _)| *then == sent_at)?;
        let mut packets = self.log().packets(LINK, LinkDirection::Down);
        let (taken, _) = packets.find(|(at, packet)| {
            *at >= sent_at && packet.step == PacketStep::Taken && packet.seq == segment.seq && packet.len > 0
        })?;
        let mut new = self.down.iter().filter(|frame| frame.kind == FrameKind::New);
        new.find(|frame| frame.on_air.start >= taken).map(|frame| frame.on_air.start)
    }
}

/// From a time to a later one.
pub(super) fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_since(from).as_secs_f64()
}

/// So many seconds after a time.
pub(super) fn after(at: Instant, seconds: f64) -> Instant {
    at + Duration::from_secs_f64(seconds)
}
