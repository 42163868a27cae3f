//! The rate to send at: what the path carries for us, found without being told, with a short queue in front of its bottleneck.
//!
//! Loss alone says nothing here, and delay alone little. What is used instead, each in a file of its own (docs/rate.md tells the same story):
//!
//! 1. [`bottleneck`]: what the bottleneck carries, from what passes it while a queue stands.
//! 2. [`queue`]: the queue that stands there, and the one that should; [`pacing`] sets the rate by both.
//! 3. [`trains`]: steps on the word of trains, which tell of a capacity far above in one round trip.
//! 4. [`experiments`]: whether a queue, or [`losses`], become less when less is sent, so that they are our doing.
//! 5. [`gaps`]: losses that come all at once, which say nothing of a rate.
//! 6. [`sharing`]: our part of the bottleneck while somebody else keeps a queue there.
//! 7. [`credibility`] and [`floor`]: samples and delays that cannot be the path's.
//! 8. [`openness`]: whether there is a bottleneck at all.
//! 9. [`breaker`]: a trickle while nearly nothing arrives, or nobody answers.
//! 10. [`telling`]: what whoever runs the gateway is told.
//!
//! All rates are bits per second on the line, headers included.

pub mod aim;
pub mod bottleneck;
pub mod breaker;
mod conclusions;
pub mod credibility;
pub mod experiments;
pub mod floor;
pub mod gaps;
pub mod losses;
pub mod minimum;
pub mod openness;
pub mod pacing;
pub mod queue;
pub mod sharing;
pub mod standing;
pub mod telling;
pub mod trains;
pub mod virtual_flows;
pub mod window;

use base::{Duration, Instant, Rate};

use super::report::{self, Sample, Span};
use super::train::TrainReport;
use bottleneck::Capacity;
use breaker::Breaker;
use credibility::Credibility;
use experiments::{Cause, Experiments};
use gaps::Gaps;
use losses::Losses;
use openness::Openness;
use pacing::{Outlook, Pacing};
use queue::Queue;
use sharing::Sharing;
use telling::Telling;
use trains::TrainEstimates;
use window::{Line, Windows};

pub use aim::Aim;
pub use telling::Finding;

/// Finds the rate to send at.
#[derive(Debug)]
pub struct RateController {
    aim: Aim,
    line: Line,
    queue: Queue,
    credibility: Credibility,
    losses: Losses,
    gaps: Gaps,
    windows: Windows,
    capacity: Capacity,
    pacing: Pacing,
    trains: TrainEstimates,
    experiments: Experiments,
    sharing: Sharing,
    breaker: Breaker,
    openness: Openness,
    telling: Telling,
    /// When something was told last of what arrives.
    told_at: Option<Instant>,
}

/// More than one datagram of so many make a train policed, beyond chance and the channel's losses. Ours.
const LOST_OF: u64 = 8;
/// Without an answer for so long at least nothing is tried. Ours.
const BLIND: Duration = Duration::from_secs(1);
/// Bits of a long datagram.
const LONG_BITS: u64 = 12_000;
/// The lowest rate, bits per second: a datagram of 1000 bytes a second. Ours.
const LOWEST: f64 = 8_000.0;

impl RateController {
    /// For a line on which a datagram takes `overhead` bytes besides its own.
    #[must_use]
    pub fn new(aim: Aim, overhead: i64) -> Self {
        let capacity = aim.capacity();
        Self {
            aim,
            line: Line { overhead },
            queue: Queue::default(),
            credibility: Credibility::default(),
            losses: Losses::default(),
            gaps: Gaps::default(),
            windows: Windows::default(),
            pacing: Pacing::new(capacity.bits()),
            capacity,
            trains: TrainEstimates::default(),
            experiments: Experiments::default(),
            sharing: Sharing::default(),
            breaker: Breaker::default(),
            openness: Openness::default(),
            telling: Telling::default(),
            told_at: None,
        }
    }

    /// The other end's clock is another one from now on.
    pub fn restart(&mut self) {
        self.queue.restart();
        self.credibility = Credibility::default();
        self.windows.clear();
        self.experiments.abandon();
        self.breaker.restart();
    }

    /// Takes over another configured rate, as if nothing had been found out under the former one.
    pub fn configure(&mut self, aim: Aim, overhead: i64) {
        let former = core::mem::replace(self, Self::new(aim, overhead));
        (self.queue, self.losses) = (former.queue, former.losses);
    }

    /// How fast to send; `None`: as fast as the carrier takes it.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Option<Rate> {
        if self.aim == Aim::Unlimited || (self.openness.is_open() && !self.breaker.is_open(now)) {
            return None;
        }
        let trickle = breaker::trickle(self.capacity.bits());
        let rate = match self.pacing.rate() {
            _ if self.breaker.is_open(now) => trickle,
            rate if self.is_blind(now) => rate.min(self.capacity.bits()),
            rate => rate,
        };
        Some(Rate::from_bps(rate.max(LOWEST) as u64))
    }

    /// Whether nothing has been told of what arrives for longer than it should take. Nothing is tried then: what is too much would fill a queue.
    fn is_blind(&self, now: Instant) -> bool {
        let interval = report::interval(Some(Rate::from_bps(self.capacity.bits() as u64)));
        let usual = self.queue.present_round_trip() + interval;
        self.told_at.is_some_and(|at| now > at + usual.saturating_mul(2).max(BLIND))
    }

    /// How fast to send for more than the present moment.
    #[must_use]
    pub fn capacity(&self) -> Option<Rate> {
        (!self.is_unlimited()).then(|| Rate::from_bps(self.capacity.bits() as u64))
    }

    /// Whether nothing is to be paced: as configured, or because there is no bottleneck.
    fn is_unlimited(&self) -> bool {
        self.aim == Aim::Unlimited || self.openness.is_open()
    }

    /// What a train may find: what the last one did, if that was far more than is known. There is no train while only a trickle is to be sent, nor
    /// while it would overflow somebody else's queue, or a policer whose losses are looked at.
    #[must_use]
    pub fn expected(&self, now: Instant) -> Option<Rate> {
        let expected = self.trains.expected(self.capacity.bits());
        let disturbs = self.sharing.is_sure(now) || self.experiments.cause() == Some(Cause::Losses);
        let has_trains = !self.is_unlimited() && !self.breaker.is_open(now) && !disturbs;
        has_trains.then(|| Rate::from_bps(expected as u64))
    }

    /// Whether something has been wrong of late, so that even short trains would help.
    #[must_use]
    pub fn is_in_doubt(&self, now: Instant) -> bool {
        self.experiments.is_in_doubt(now)
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.queue.round_trip()
    }

    /// The smallest one-way delay of late, in ns, plus an unknown constant.
    #[must_use]
    pub fn least_delay(&self) -> Option<i64> {
        self.queue.least_delay()
    }

    /// How long the newest stamp waited on the path.
    #[must_use]
    pub fn queueing(&self) -> Duration {
        self.queue.newest()
    }

    /// What the channel loses of a hundred bytes, as far as it is known.
    #[must_use]
    pub fn channel_loss(&self) -> f64 {
        self.losses.channel()
    }

    /// Experiments that were made.
    #[must_use]
    pub const fn experiments(&self) -> u64 {
        self.experiments.made()
    }

    /// Whether trains of frames would tell anything that is not configured.
    #[must_use]
    pub fn wants_trains(&self) -> bool {
        self.aim == Aim::Find
    }

    /// Whether trains of padding may be sent at the start.
    #[must_use]
    pub fn wants_padding(&self) -> bool {
        self.aim.wants_padding()
    }

    /// How many TCP flows inside have something to send; what is fair beside others follows from it.
    pub const fn set_inside(&mut self, now: Instant, count: u64) {
        self.sharing.set_inside(now, count);
    }

    /// Something has been sent that the other end is to answer.
    pub fn on_asked(&mut self, now: Instant) {
        self.breaker.on_asked(now);
    }

    /// What the other end's frames acknowledge: `count` more of the `sent` datagrams that have left have arrived, whatever becomes of its answers to ours.
    pub fn on_progress(&mut self, now: Instant, count: u64, sent: u64) {
        self.breaker.on_progress(now, count, sent);
    }

    /// Takes in the delays of a sample; whether it can be believed. If not, it tells nothing else, and [`RateController::on_sample`] is not for it.
    pub fn take_delays(&mut self, now: Instant, sample: &Sample) -> bool {
        self.breaker.on_answer();
        let capacity = self.capacity.bits();
        let (above, high) = (self.queue.above(sample.delay), self.queue.high(capacity));
        let mut is_credible = self.credibility.judge(sample, above, high, self.losses.channel());
        if is_credible {
            self.queue.observe(now, sample, capacity);
            // Others may confirm it.
            is_credible = !self.queue.is_early();
        }
        if !is_credible && self.aim != Aim::Unlimited {
            // Nothing is tried while nothing can be seen.
            self.pace(now, self.pacing.rate().min(capacity));
        }
        is_credible
    }

    /// Takes what the other end says about what we sent, if it can be believed ([`RateController::take_delays`]).
    pub fn on_sample(&mut self, now: Instant, sample: &Sample) -> Option<Finding> {
        self.told_at = Some(now);
        if let Some(span) = sample.span {
            self.breaker.on_span(now, &span);
        }
        let heard = sample.span.map(|span| span.without(sample.silence));
        let sample = &Sample { span: heard, ..*sample };
        let is_standing = self.queue.newest() >= self.queue.high(self.capacity.bits());
        let is_gap = sample.span.is_some_and(|span| self.gaps.observe(&span, &self.losses, is_standing));
        match sample.span {
            Some(span) if !is_gap => {
                if self.is_flooded(now, &span) {
                    self.retreat(now, &span);
                }
                self.windows.add(sample.sent_at, &span, self.queue.is_busy(self.capacity.bits()));
                if let Some(window) = self.windows.take_rate() {
                    self.measure(now, &window);
                }
                if let Some(window) = self.windows.take_losses() {
                    self.watch_losses(now, &window);
                }
            }
            _ => self.windows.clear(),
        }
        if let Some(before) = self.experiments.poll_vain(now, self.loss_window()) {
            self.capacity.raise(before.capacity);
        }
        self.watch_queue(now, sample);
        self.share(now, sample);
        if self.aim != Aim::Unlimited {
            let (under_way, is_shared) = (self.line.bits(sample.after), self.sharing.is_sure(now));
            let outlook = Outlook { sent_at: sample.sent_at, under_way, is_shared };
            let rate = self.pacing.wanted(now, outlook, &self.capacity, &self.queue, &self.experiments);
            self.pace(now, rate);
        }
        self.openness.on_sample(now, self.queue.is_long(self.capacity.bits()));
        self.telling.on_queue(now, self.queue.standing());
        if self.openness.is_open() {
            return None;
        }
        self.telling.poll(now, self.aim, &self.capacity, self.capacity.is_known(&self.queue))
    }

    /// Whether far more of a train was lost than the channel loses, and no queue explains it.
    #[must_use]
    pub fn is_policed(&self, passage: &TrainReport) -> bool {
        let TrainReport { sent, received, .. } = *passage;
        if passage.is_padding || self.queue.newest() >= self.queue.target(self.capacity.bits()) {
            return false;
        }
        let span = Span { sent, received, ..Span::default() };
        self.losses.count_beyond(&span) * LOST_OF > sent.datagrams
    }

    /// How long it takes until so many long datagrams have left at the present rate as tell of losses.
    fn loss_window(&self) -> Duration {
        let bits = window::LOSSES.1 * LONG_BITS;
        Rate::from_bps(self.pacing.rate().max(LOWEST) as u64).time_for(bits)
    }

    /// Takes what a train found; after how much time another one should follow, if it should not wait as usual.
    pub fn on_train(&mut self, now: Instant, train: &TrainReport) -> Option<Duration> {
        let found = self.trains.observe(now, train, self.line, self.losses.channel())?;
        self.queue.on_train(now.saturating_since(train.sent_at));
        self.told_at = Some(now);
        if train.is_padding {
            return self.open(now, found, train).then_some(Duration::ZERO);
        }
        if self.aim != Aim::Find {
            return None;
        }
        let bits = self.capacity.bits();
        if self.openness.on_train(now, train, self.line.bits(train.received), bits) {
            return Some(openness::SPACING);
        }
        if !self.trains.may_jump(now) || self.experiments.cause().is_some() || self.sharing.is_sure(now) {
            return None;
        }
        match self.trains.poll_jump(now, bits) {
            Some(to) if !self.queue.is_long(bits) => {
                self.set_capacity(now, to, self.queue.least_growth(bits));
                self.trains.on_jump(now, self.capacity.bits());
                None
            }
            _ => self.trains.is_above(bits).then_some(Duration::ZERO),
        }
    }

    fn set_capacity(&mut self, now: Instant, to: f64, growth: f64) {
        self.capacity.set(now, to, growth);
        self.experiments.abandon();
        self.pace(now, to);
    }

    /// Paces at `rate` from now on, within what is configured, which bounds what is believed of the path too.
    fn pace(&mut self, now: Instant, rate: f64) {
        self.capacity.limit(self.aim.most());
        self.capacity.raise(LOWEST);
        self.pacing.set(now, rate.min(self.aim.most()));
    }
}

#[cfg(test)]
mod tests;
