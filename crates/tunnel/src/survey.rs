//! What a gateway finds out about the path that its carrier takes: round trip, queueing delay, rate and largest packet.
//!
//! Sans-I/O, like the session whose control datagrams carry it: `now` is a parameter and what to send is polled.

pub mod mtu;
pub mod passage;
pub mod rate;
pub mod report;
pub mod silence;
pub mod train;

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use crate::config::{Overhead, Way};
use crate::control::Kind;
use crate::due::Due;
use crate::session::OVERHEAD;
use mtu::PathMtu;
use passage::Passage;
use rate::{Aim, Finding, RateController};
use report::Reports;
use train::{Train, Trains};

/// A control datagram's kind and body.
pub type Control = (Kind, Vec<u8>);

/// What is known of a path. Drain order: after [`Survey::handle_control`] and when [`Survey::poll_timeout`] says so, send what
/// [`Survey::poll_control`] gives and the train of [`Survey::poll_train`], take [`Survey::poll_finding`], and read rate, size and round trip again.
#[derive(Debug)]
pub struct Survey {
    /// What the ends tell each other of what arrives.
    pub reports: Reports,
    /// The rate to send at.
    pub rate_controller: RateController,
    /// The largest packet; `None` where the carrier has no packets to speak of.
    pub mtu: Option<PathMtu>,
    /// What has become of what was sent.
    pub passage: Passage,
    trains: Trains,
    /// Whether there has been a session.
    has_begun: bool,
    /// Bytes that the carrier and the session add to the body of a control datagram, with its kind.
    overhead: usize,
    /// Whether a rate is looked for, or a known one is watched.
    minds_rate: bool,
    waiting: VecDeque<Control>,
    findings: VecDeque<Finding>,
}

/// Control datagrams that wait at most.
const WAITING_LIMIT: usize = 8;

impl Survey {
    /// A path of which nothing is known but what was configured: the rate, what a datagram takes on the line besides its own
    /// bytes, the shortest and longest packet. `overhead` bytes are around the body of a control datagram.
    #[must_use]
    pub fn new(aim: Aim, on_line: i64, sizes: (Option<usize>, usize), overhead: usize) -> Self {
        let rate = known(aim);
        // Without the headers of the carrier's packets.
        let shortest =
            sizes.0.map_or(u64::MAX, |shortest| (shortest + OVERHEAD).saturating_sub(overhead) as u64);
        let mut survey = Self {
            reports: Reports::new(rate).with_long_above(shortest),
            rate_controller: RateController::new(aim, on_line),
            mtu: sizes.0.map(|shortest| PathMtu::new(shortest, sizes.1, rate)),
            passage: Passage::default(),
            trains: Trains::default(),
            has_begun: false,
            overhead,
            minds_rate: aim != Aim::Unlimited,
            waiting: VecDeque::new(),
            findings: VecDeque::new(),
        };
        survey.set_rate(rate);
        survey
    }

    /// The path that a tunnel's configuration describes, with this much around a packet on the line.
    #[must_use]
    pub fn over(way: &Way, overhead: Overhead) -> Self {
        let carrier = &way.carrier;
        let sizes = (carrier.shortest_limit, carrier.packet_limit);
        Self::new(way.aim(), way.on_line(overhead), sizes, carrier.header_len + OVERHEAD)
    }

    /// Another rate is configured, as if nothing had been found out about the former one. `on_line` as in [`Survey::new`].
    pub fn configure(&mut self, aim: Aim, on_line: i64) {
        self.rate_controller.configure(aim, on_line);
        self.minds_rate = aim != Aim::Unlimited;
        self.set_rate(known(aim));
    }

    /// The line has this rate, as far as is known: what the survey itself sends takes a small part of it.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.reports.set_rate(rate);
        if !self.minds_rate {
            self.reports.take_time();
        }
        if let Some(mtu) = &mut self.mtu {
            mtu.set_rate(rate);
        }
    }

    /// A session is established. A peer that has `restarted` counts from zero. Padding is sent where it `may`, if it tells anything.
    pub fn on_established(&mut self, now: Instant, restarted: bool, may_pad: bool) {
        if restarted {
            self.reports.restart();
            self.rate_controller.restart();
        }
        if may_pad && (restarted || !self.has_begun) {
            self.has_begun = true;
            if self.rate_controller.wants_padding() && self.mtu.is_some() {
                self.trains.restart();
            }
        }
        self.reports.on_traffic(now);
    }

    /// Takes a control datagram; false if it is of no kind of ours.
    pub fn handle_control(&mut self, now: Instant, kind: Kind, body: &[u8]) -> bool {
        match kind {
            Kind::Report => {
                if let Some(sample) = self.reports.handle_report(now, body) {
                    if !self.rate_controller.take_delays(now, &sample) {
                        self.reports.disbelieve();
                        return true;
                    }
                    if let Some(span) = &sample.span {
                        self.passage.on_span(now, span);
                    }
                    self.findings.extend(self.rate_controller.on_sample(now, &sample));
                    if let Some(mtu) = &mut self.mtu {
                        mtu.on_sample(now, &sample);
                    }
                }
            }
            Kind::Probe => {
                if let Some(answer) = PathMtu::answer(body) {
                    self.send(Kind::ProbeAnswer, answer.to_vec());
                }
            }
            Kind::ProbeAnswer => {
                if let Some(mtu) = &mut self.mtu {
                    mtu.handle_answer(now, body);
                }
            }
            Kind::Train => {
                if let Some(answer) = self.trains.handle_mark(now, body, self.reports.received()) {
                    self.send(Kind::TrainAnswer, answer);
                }
            }
            Kind::TrainAnswer => {
                let round_trip = self.round_trip();
                if let Some(passage) = self.trains.handle_answer(now, body, round_trip) {
                    self.trains.space(passage.sent_at, self.rate_controller.is_policed(&passage));
                    if let Some(wait) = self.rate_controller.on_train(now, &passage) {
                        self.trains.hurry(now + wait, &passage);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// What the other end's frames say: `count` more of what was sent have arrived.
    pub fn on_progress(&mut self, now: Instant, count: u64) {
        self.rate_controller.on_progress(now, count, self.reports.sent().datagrams);
    }

    /// A control datagram to send, by kind and body.
    pub fn poll_control(&mut self, now: Instant) -> Option<Control> {
        if let Some(waiting) = self.waiting.pop_front() {
            return Some(waiting);
        }
        if let Some((marks, size)) = self.mtu.as_mut().and_then(|mtu| mtu.poll_probe(now)) {
            let mut padded = marks[0].to_vec();
            padded.resize(size.saturating_sub(self.overhead), 0);
            self.send(Kind::Probe, marks[1].to_vec());
            return Some((Kind::Probe, padded));
        }
        let report = self.reports.poll_report(now)?;
        if self.reports.waits() {
            self.rate_controller.on_asked(now);
        }
        Some((Kind::Report, report))
    }

    /// A train that should leave now, with the mark in front of it: `waiting` bytes could be in it, in datagrams of `len` bytes with all headers.
    /// After its datagrams comes [`Survey::end_train`].
    pub fn poll_train(&mut self, now: Instant, len: usize, waiting: u64) -> Option<(Train, Control)> {
        let rate = self.rate_controller.expected(now)?;
        let waiting = if self.rate_controller.wants_trains() { waiting } else { 0 };
        let train = self.trains.poll(
            now,
            rate,
            self.round_trip(),
            len,
            waiting,
            self.rate_controller.is_in_doubt(now),
        )?;
        let mark = self.trains.begin(now, train, self.reports.sent(), self.round_trip());
        Some((train, (Kind::Train, mark)))
    }

    /// The next train leaves at `until` or later.
    pub fn postpone_train(&mut self, until: Instant) {
        self.trains.postpone(until);
    }

    /// A datagram of padding for the train, at most as long as packets may be.
    #[must_use]
    pub fn padding(&self) -> Control {
        let (mut body, size) = self.trains.padding();
        let size = self.mtu.as_ref().map_or(size, |mtu| size.min(mtu.size()));
        body.resize(size.saturating_sub(self.overhead).max(body.len()), 0);
        (Kind::Train, body)
    }

    /// The mark behind the train that has left.
    pub fn end_train(&mut self, now: Instant) -> Control {
        (Kind::Train, self.trains.end(now, self.reports.sent()))
    }

    /// When [`Survey::poll_control`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.due(now).map(|due| due.from)
    }

    /// When [`Survey::poll_control`] wants to be called, and how late it may be.
    pub(crate) fn due(&self, now: Instant) -> Option<Due> {
        // What may not leave does not wait: an answer says when it may again.
        let train = self.trains.poll_timeout().filter(|_| self.rate_controller.expected(now).is_some());
        let probe = self.mtu.as_ref().and_then(PathMtu::poll_timeout);
        let waiting = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        Due::first(
            [self.reports.due()].into_iter().chain([probe, waiting, train].map(|due| due.map(Due::at))),
        )
    }

    /// Whether there is a train that may not leave, and nobody knows for how long.
    #[must_use]
    pub fn holds_back(&self, now: Instant) -> bool {
        self.trains.poll_timeout().is_some() && self.rate_controller.expected(now).is_none()
    }

    /// What whoever runs the gateway should know.
    pub fn poll_finding(&mut self) -> Option<Finding> {
        self.findings.pop_front()
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.rate_controller.round_trip()
    }

    /// The smallest one-way delay of late, in ns and plus a constant, which is the same for all ways between two ends.
    #[must_use]
    pub fn least_delay(&self) -> Option<i64> {
        self.rate_controller.least_delay()
    }

    fn send(&mut self, kind: Kind, body: Vec<u8>) {
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push_back((kind, body));
        }
    }
}

/// The rate, if the configuration has one.
const fn known(aim: Aim) -> Option<Rate> {
    match aim {
        Aim::Known(rate) => Some(rate),
        Aim::Find | Aim::Unlimited => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where no rate is looked for, a report waits until it tells of a whole burst.
    #[test]
    fn reports_have_time_only_where_no_rate_is_looked_for() {
        let known = Aim::Known(Rate::from_bps(10_000_000));
        let now = Instant::ZERO + Duration::from_secs(1);
        for (former, present, waits) in [
            (Aim::Unlimited, known, false),
            (known, Aim::Unlimited, true),
            (Aim::Unlimited, Aim::Find, false),
        ] {
            let mut survey = Survey::new(former, 0, (Some(576), 1500), 70);
            survey.configure(present, 0);
            survey.reports.on_traffic(now);
            assert!(survey.reports.poll_report(now).is_some(), "the first");
            let now = now + Duration::from_secs(1);
            survey.reports.on_traffic(now);
            assert_eq!(survey.reports.poll_report(now).is_none(), waits, "{former:?}, then {present:?}");
        }
    }
}
