//! The rate to send at: what the path carries for us, found without being told, with a short queue in front of its bottleneck.
//!
//! Loss alone says nothing here, and delay alone little. What is used instead, each in a file of its own (docs/rate.md tells the same story):
//!
//! 1. [`capacity`]: what the bottleneck carries, from what passes it while a queue stands.
//! 2. [`queue`]: the queue that stands there, and the one that should; [`pacing`] sets the rate by both.
//! 3. [`trains`]: steps on the word of trains, which tell of a capacity far above in one round trip.
//! 4. [`experiments`]: whether a queue, or [`losses`], become less when less is sent, so that they are our doing.
//! 5. [`sharing`]: our part of the bottleneck while somebody else keeps a queue there.
//! 6. [`breaker`]: a trickle while nearly nothing arrives, or nobody answers.
//! 7. [`telling`]: what whoever runs the gateway is told.
//!
//! All rates are bits per second on the line, headers included.

pub mod aim;
pub mod breaker;
pub mod capacity;
pub mod credibility;
pub mod experiments;
pub mod floor;
pub mod losses;
pub mod minimum;
pub mod openness;
pub mod pacing;
pub mod queue;
pub mod sharing;
pub mod standing;
pub mod telling;
pub mod trains;
pub mod window;

use base::{Duration, Instant, Rate};

use super::report::Sample;
use super::train::Passage;
use breaker::Breaker;
use capacity::{Capacity, Measured};
use credibility::Credibility;
use experiments::{Cause, Experiments, Verdict};
use losses::Losses;
use openness::Openness;
use pacing::{Outlook, Pacing};
use queue::Queue;
use sharing::Sharing;
use telling::Telling;
use trains::Trains;
use window::{Line, Window, Windows};

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
    windows: Windows,
    capacity: Capacity,
    pacing: Pacing,
    trains: Trains,
    experiments: Experiments,
    sharing: Sharing,
    breaker: Breaker,
    openness: Openness,
    telling: Telling,
}

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
            windows: Windows::default(),
            pacing: Pacing::new(capacity.bits()),
            capacity,
            trains: Trains::default(),
            experiments: Experiments::default(),
            sharing: Sharing::default(),
            breaker: Breaker::default(),
            openness: Openness::default(),
            telling: Telling::default(),
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
        let trickle = self.capacity.bits() * breaker::TRICKLE;
        let rate = if self.breaker.is_open(now) { trickle } else { self.pacing.rate() };
        Some(Rate::from_bps(rate.max(LOWEST) as u64))
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

    /// What a train may find: what the last one did, if that was far more than is known. There is no train while only a trickle is to be sent.
    #[must_use]
    pub fn expected(&self, now: Instant) -> Option<Rate> {
        let expected = self.trains.expected(self.capacity.bits());
        let has_trains = !self.is_unlimited() && !self.breaker.is_open(now);
        has_trains.then(|| Rate::from_bps(expected as u64))
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.queue.round_trip()
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

    /// Something has been sent that the other end is to answer.
    pub fn on_asked(&mut self, now: Instant) {
        self.breaker.on_asked(now);
    }

    /// What the other end's frames acknowledge: more of what was sent has arrived, whatever becomes of its answers to ours.
    pub fn on_progress(&mut self, now: Instant) {
        self.breaker.on_progress(now);
    }

    /// Takes in the delays of a sample; whether it can be believed. If not, it tells nothing else, and [`RateController::on_sample`] is not for it.
    pub fn is_credible(&mut self, now: Instant, sample: &Sample) -> bool {
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

    /// Takes what the other end says about what we sent, if it can be believed ([`RateController::is_credible`]).
    pub fn on_sample(&mut self, now: Instant, sample: &Sample) -> Option<Finding> {
        let is_outage = self.windows.is_outage(sample.missed);
        match sample.span {
            Some(span) if !is_outage => {
                self.breaker.on_span(now, &span);
                self.windows.add(sample.sent_at, &span, self.queue.is_busy(self.capacity.bits()));
                if let Some(window) = self.windows.take_rate() {
                    self.measure(now, &window);
                }
                if let Some(window) = self.windows.take_losses() {
                    self.watch_losses(now, &window);
                }
            }
            span => {
                span.inspect(|span| self.breaker.on_span(now, span));
                self.windows.clear();
            }
        }
        self.watch_queue(now, sample);
        if self.aim != Aim::Unlimited {
            let outlook = Outlook { sent_at: sample.sent_at, under_way: self.line.bits(sample.after) };
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

    /// Takes what a train found; after how much time another one should follow, if it should not wait as usual.
    pub fn on_train(&mut self, now: Instant, passage: &Passage) -> Option<Duration> {
        let found = self.trains.observe(now, passage, self.line, self.losses.channel())?;
        self.queue.on_train(now.saturating_since(passage.sent_at));
        if passage.is_padding {
            return self.open(now, found, passage).then_some(Duration::ZERO);
        }
        if self.aim != Aim::Find {
            return None;
        }
        let bits = self.capacity.bits();
        if self.openness.on_train(now, passage, self.line.bits(passage.received), bits) {
            return Some(openness::SPACING);
        }
        if !self.trains.may_jump(now) || self.experiments.cause().is_some() {
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

    /// Starts from what a train of padding found: a short one tells little. Whether another one should confirm it.
    fn open(&mut self, now: Instant, found: f64, passage: &Passage) -> bool {
        let is_long = passage.is_long;
        if is_long && passage.sent.datagrams >= losses::SAMPLE {
            let arrived = passage.received.bytes as f64 / passage.sent.bytes.max(1) as f64;
            self.losses.accept((1.0 - arrived).clamp(0.0, 1.0));
        }
        match self.aim {
            Aim::Find if is_long => {
                let trusted = found * trains::TRUSTED;
                self.set_capacity(now, trusted, self.queue.least_growth(trusted));
            }
            Aim::Find if self.trains.is_first() => self.set_capacity(now, found, 1.0),
            Aim::Find if found > self.capacity.bits() => {
                self.set_capacity(now, found, self.queue.least_growth(found));
            }
            Aim::Known(rate) if is_long => return self.telling.on_train(rate, found),
            _ => {}
        }
        false
    }

    fn set_capacity(&mut self, now: Instant, to: f64, growth: f64) {
        self.capacity.set(now, to, growth);
        self.experiments.abandon();
        self.pace(now, to);
    }

    /// Tells the capacity from a window.
    fn measure(&mut self, now: Instant, window: &Window) {
        if self.aim == Aim::Unlimited {
            return;
        }
        let is_used = self.pacing.is_used(window, self.line);
        let Some(measured) = Measured::of(window, self.line, &self.losses, is_used) else { return };
        if self.capacity.observe(now, &measured, &self.queue) {
            self.trains.check_jump(now, measured.carried, self.queue.present_round_trip());
        }
        if self.sharing.is_found(now) {
            self.take_share(now);
        }
    }

    /// Takes a share of the bottleneck while somebody else keeps a queue there: no less, and no more once that is sure.
    fn take_share(&mut self, now: Instant) {
        let Some(found) = self.trains.bottleneck(now) else { return };
        let share = found * self.sharing.share();
        self.capacity.raise(share);
        if self.sharing.is_sure() && self.queue.is_accepted() {
            self.capacity.limit(share);
            self.capacity.settle(now, &self.queue);
        }
    }

    /// Losses beyond the channel's: ours, if there are fewer when less is sent.
    fn watch_losses(&mut self, now: Instant, window: &Window) {
        let share = losses::share(&window.span).unwrap_or(0.0);
        self.breaker.on_window(share);
        self.telling.on_losses(now, self.losses.beyond(&window.span));
        if self.losses.are_more(&window.span) {
            self.openness.close(now);
        }
        match self.experiments.cause() {
            Some(Cause::Queue | Cause::SmallQueue) => {}
            Some(Cause::Losses) => {
                let Some(verdict) = self.experiments.judge_losses(now, window.since, share) else { return };
                self.losses.accept(share);
                match verdict {
                    Verdict::NotOurs { capacity } => {
                        self.capacity.raise(capacity);
                        self.telling.forget_losses();
                    }
                    Verdict::Ours => self.capacity.divide(1.0 - share),
                }
            }
            None => {
                self.losses.observe(&window.span);
                let are_more = self.losses.are_more(&window.span);
                if self.sharing.is_found(now) && self.queue.is_accepted() {
                    return self.sharing.contend(now, are_more);
                }
                let may_try = self.experiments.may_try_losses(now, are_more || self.losses.last(), share);
                if may_try && share <= breaker::STARVED && self.pacing.is_used(window, self.line) {
                    self.try_losses(now, window, share);
                }
            }
        }
    }

    /// Sends only what certainly passes, to see whether fewer are lost.
    fn try_losses(&mut self, now: Instant, window: &Window, share: f64) {
        let standing = self.queue.standing();
        self.experiments.begin(now, Cause::Losses, self.capacity.bits(), standing, share);
        let arrived = self.line.bits(window.span.received) as f64;
        let carried = arrived / window.span.received_in.as_secs_f64().max(1e-9);
        self.trains.check_jump(now, carried, self.queue.present_round_trip());
        self.capacity.limit(carried);
    }

    /// A queue that does not drain is somebody else's, or the path is longer than it was, or jitter.
    fn watch_queue(&mut self, now: Instant, sample: &Sample) {
        let (bits, standing) = (self.capacity.bits(), self.queue.standing());
        let target = self.queue.target(bits);
        let is_lasting = self.experiments.may_try_small_queue(now, standing, target);
        let is_draining = self.pacing.is_of_drain(sample.sent_at);
        if self.experiments.watch_drain(is_draining, standing, target) && !self.sharing.is_found(now) {
            self.queue.accept(now);
        }
        let Some(cause) = self.experiments.cause() else {
            if self.queue.is_long(bits) && now >= self.experiments.queue_quiet_until() {
                self.experiments.begin(now, Cause::Queue, bits, standing, 0.0);
                self.capacity.limit(self.capacity.carried().unwrap_or(bits));
            } else if is_lasting && !self.sharing.is_found(now) {
                self.experiments.begin(now, Cause::SmallQueue, bits, standing, 0.0);
            }
            return;
        };
        let low = if cause == Cause::Queue { self.queue.high(bits) } else { target };
        let settling = self.queue.settling(bits);
        match (self.experiments.judge_queue(now, sample.sent_at, standing, low, settling), cause) {
            (None, _) => {}
            (Some(Verdict::Ours), Cause::Queue) => self.sharing.on_drained(),
            (Some(Verdict::NotOurs { .. }), Cause::Queue) => {
                self.queue.accept(now);
                self.sharing.on_not_drained(self.experiments.queue_quiet_until());
                self.take_share(now);
            }
            // It was measured while the queue drained.
            (Some(Verdict::Ours), _) => {}
            (Some(Verdict::NotOurs { .. }), _) => self.queue.accept(now),
        }
    }

    /// Paces at `rate` from now on, within what is configured.
    fn pace(&mut self, now: Instant, rate: f64) {
        self.capacity.limit(self.aim.most());
        self.capacity.raise(LOWEST);
        self.pacing.set(now, rate.min(self.aim.most()));
    }
}
