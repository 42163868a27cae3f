//! A path as a fluid, in steps of a report: a bottleneck with a queue, a channel that loses, and others who send. It is told to a controller as reports
//! and trains would.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use super::super::{Aim, Finding, RateController};
use crate::survey::report::{Long, Sample, Span, Totals};
use crate::survey::silence::Silence;
use crate::survey::train::TrainReport;

/// The path, a sender who always has something to send, and what has been seen of both.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) controller: RateController,
    pub(super) now: Instant,
    /// Bits per second that the bottleneck lets through.
    pub(super) carries: f64,
    /// The round trip without a queue.
    pub(super) round_trip: Duration,
    /// Seconds that the queue may hold.
    pub(super) holds: f64,
    /// The part that is lost behind the bottleneck.
    pub(super) loses: f64,
    /// Bits per second of others, who keep a queue of so many seconds at least.
    pub(super) others: (f64, f64),
    /// Bits per second that the sender has at most.
    pub(super) has: f64,
    /// Whether trains leave.
    pub(super) has_trains: bool,
    /// What stands in the queue, in seconds.
    pub(super) queue: f64,
    /// Of the datagrams that have left: those that got through.
    pub(super) arrived: f64,
    pub(super) sent: f64,
    pub(super) findings: Vec<(Instant, Finding)>,
    left: Totals,
    /// Datagrams that are still to be counted as whole ones.
    rest: (f64, f64),
    /// Seconds that the stamp before waited.
    waited: f64,
    under_way: VecDeque<(Instant, Sample, Totals)>,
}

/// Between two reports.
pub(super) const STEP: Duration = Duration::from_millis(100);
/// Bytes and bits of a datagram.
const DATAGRAM: u64 = 1000;
const BITS: f64 = 8000.0;
/// Datagrams of a train.
const TRAIN: u64 = 20;

pub(super) fn seconds(count: f64) -> Duration {
    Duration::from_secs_f64(count)
}

impl Path {
    /// A bottleneck of so many Mbit/s, 200 ms away and back, that holds a second.
    pub(super) fn new(aim: Aim, carries: f64) -> Self {
        Self {
            controller: RateController::new(aim, 0),
            now: Instant::ZERO + Duration::from_secs(1),
            carries: carries * 1e6,
            round_trip: Duration::from_millis(200),
            holds: 1.0,
            loses: 0.0,
            others: (0.0, 0.0),
            has: f64::INFINITY,
            has_trains: false,
            queue: 0.0,
            arrived: 0.0,
            sent: 0.0,
            findings: Vec::new(),
            left: Totals::default(),
            rest: (0.0, 0.0),
            waited: 0.0,
            under_way: VecDeque::new(),
        }
    }

    /// The capacity that is believed, in Mbit/s.
    pub(super) fn believed(&self) -> f64 {
        self.controller.capacity().map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 1e6)
    }

    /// The rate that is paced at, in Mbit/s.
    pub(super) fn rate(&self) -> f64 {
        self.controller.rate(self.now).map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 1e6)
    }

    /// Lets seconds pass; the mean queue, and Mbit/s that arrived.
    pub(super) fn pass(&mut self, time: f64) -> (f64, f64) {
        let (mut queue, arrived, steps) = (0.0, self.arrived, (time / STEP.as_secs_f64()).round() as u64);
        for _ in 0..steps {
            self.step();
            queue += self.queue / steps as f64;
        }
        (queue, (self.arrived - arrived) * BITS / 1e6 / time)
    }

    fn step(&mut self) {
        let dt = STEP.as_secs_f64();
        self.now += STEP;
        let rate =
            self.controller.rate(self.now).map_or(1e9, |rate: Rate| rate.as_bps() as f64).min(self.has);
        let offered = rate * dt / BITS;
        let all = offered + self.others.0 * dt / BITS;
        // What the queue has no room for is dropped evenly.
        let room = (self.holds + dt - self.queue) * self.carries / BITS;
        let kept = (room / all.max(1e-9)).min(1.0);
        self.queue = (self.queue + all * kept * BITS / self.carries - dt).max(self.others.1);
        let passed = offered * kept * (1.0 - self.loses);
        (self.sent, self.arrived) = (self.sent + offered, self.arrived + passed);
        let (sent, received) = (whole(&mut self.rest.0, offered), whole(&mut self.rest.1, passed));
        self.left.add(sent.datagrams, sent.bytes);
        let received_in = seconds((dt + self.queue - self.waited).max(0.0));
        self.waited = self.queue;
        let wait = seconds(self.queue);
        let sample = Sample {
            sent_at: self.now,
            round_trip: self.round_trip + wait,
            delay: wait.as_nanos().cast_signed(),
            span: Some(Span { sent, sent_in: STEP, received, received_in }),
            missed: 0,
            after: Totals::default(),
            long: Long::default(),
            silence: Silence::default(),
        };
        self.under_way.push_back((self.now + self.round_trip + wait, sample, self.left));
        if self.has_trains && self.now.as_nanos().is_multiple_of(5 * STEP.as_nanos()) {
            self.train();
        }
        self.hear();
    }

    /// Answers that have come by now.
    fn hear(&mut self) {
        while let Some((_, mut sample, left)) = self.under_way.pop_front_if(|(at, ..)| *at <= self.now) {
            sample.after = self.left.since(left);
            if self.controller.take_delays(self.now, &sample) {
                let finding = self.controller.on_sample(self.now, &sample);
                self.findings.extend(finding.map(|finding| (self.now, finding)));
            }
        }
    }

    /// A train of frames that left a round trip ago.
    fn train(&mut self) {
        if self.controller.expected(self.now).is_some() {
            let passage = self.passage(false);
            let _ = self.controller.on_train(self.now, &passage);
        }
    }

    /// What a train shows that is answered now.
    pub(super) fn passage(&self, is_padding: bool) -> TrainReport {
        let sent = Totals { datagrams: TRAIN, bytes: TRAIN * DATAGRAM };
        let arrived = (TRAIN as f64 * (1.0 - self.loses)).round() as u64;
        let received = Totals { datagrams: arrived, bytes: arrived * DATAGRAM };
        TrainReport {
            is_padding,
            is_long: true,
            sent_at: self.now - self.round_trip,
            sent,
            sent_in: Duration::from_millis(1),
            received,
            received_in: seconds(TRAIN as f64 * BITS / self.carries),
        }
    }
}

/// As many datagrams as are whole; the rest is kept.
fn whole(rest: &mut f64, more: f64) -> Totals {
    *rest += more;
    let datagrams = rest.floor();
    *rest -= datagrams;
    Totals { datagrams: datagrams as u64, bytes: datagrams as u64 * DATAGRAM }
}
