//! What the controller concludes from trains, windows and queues: where one part's finding is another's reason.

use base::{Duration, Instant};

use super::capacity::Measured;
use super::experiments::{Before, Cause, Verdict};
use super::sharing::Seen;
use super::window::Window;
use super::{Aim, RateController, breaker, capacity, losses, trains};
use crate::survey::report::{Sample, Span};
use crate::survey::train::Passage;

/// Who has this part of what trains find shares with nobody. Ours.
const ALONE: f64 = 0.85;

/// Who gets less than this part of what would arrive if he were alone is not. Ours.
const CROWDED: f64 = 0.7;

/// Who gets less than this is a minority. Ours: less than beside one other.
const MINORITY: f64 = 0.4;

/// An experiment with losses leaves this part of the capacity. Ours.
const LEAST_TRIED: f64 = 0.5;

/// If no train has been told of for so long, none will be. Ours.
const TRAINLESS: Duration = Duration::from_secs(3);

/// Where trains found less, bits per second, none is expected, and that none comes tells nothing: a path that has become slower looks the same. Ours.
const WITH_TRAINS: f64 = 2e6;

/// A capacity that becomes less than this part of itself is another bottleneck's: what left before tells nothing about it. Ours.
const OTHER: f64 = 0.5;

/// A span of at least so long of which this part is lost beyond the channel's losses. Ours: half of what arrives between two reports; a path that has become half
/// as fast is left to windows.
const FLOODED: (Duration, f64) = (Duration::from_millis(50), 0.75);

impl RateController {
    /// Starts from what a train of padding found: a short one tells little. Whether another one should confirm it.
    pub(super) fn open(&mut self, now: Instant, found: f64, passage: &Passage) -> bool {
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

    /// Tells the capacity from a window.
    pub(super) fn measure(&mut self, now: Instant, window: &Window) {
        if self.aim == Aim::Unlimited {
            return;
        }
        let Some(measured) = Measured::of(window, self.line, &self.losses, &self.pacing) else { return };
        if self.sharing.is_sure(now) {
            return;
        }
        let before = self.capacity.bits();
        if self.capacity.observe(now, &measured, &self.queue) {
            if self.capacity.bits() < OTHER * before {
                self.experiments.restart_losses(now);
                if !self.sharing.is_found(now) {
                    self.trains.forget();
                }
            }
            self.trains.check_jump(now, measured.carried, self.queue.present_round_trip());
        }
        if self.sharing.is_found(now) {
            self.raise_to_share(now);
        }
    }

    /// Whether the bottleneck lets through clearly less for us than trains find that it carries.
    fn has_others(&self, now: Instant) -> bool {
        let found = self.trains.bottleneck(now).unwrap_or(f64::INFINITY);
        self.capacity.carried().is_some_and(|carried| carried < ALONE * found)
    }

    /// Whether others take most of the bottleneck, while a queue is too long or something is lost: `arrived` bits per second arrive of what we send, and the
    /// bottleneck lets through far more of trains, which the channel hits alike. Whoever takes the losses of a crowd for the channel's makes it worse, and all
    /// together carry nothing. A path that has become slower looks so too, but for trains that leave from then on: so this takes a first sign, and trains
    /// that left after it. Where none come back, a long queue above the path's own delay tells.
    fn is_crowded(&mut self, now: Instant, arrived: f64) -> bool {
        let since = self.sharing.suspected_since(now);
        let passed = self.trains.passed_since(since.unwrap_or(Instant::ZERO));
        let is_above = self.is_above_empty();
        let is_suspect = passed.map_or(is_above || since.is_some(), |passed| arrived < CROWDED * passed);
        self.sharing.suspect(now, is_suspect);
        let expects_trains = self.trains.latest() >= WITH_TRAINS;
        let is_due = |since| passed.is_some() || (is_above && expects_trains && now >= since + TRAINLESS);
        is_suspect && since.is_some_and(is_due)
    }

    /// Shares with a crowd from now on, beginning with what `arrived` of what we send, as far as that is known.
    fn join(&mut self, now: Instant, arrived: f64) {
        self.sharing.on_crowd(now, arrived.min(self.pacing.rate()));
    }

    /// Whether a long queue stands above the path's own delay as it was before anything was accepted.
    fn is_above_empty(&self) -> bool {
        self.queue.is_above_empty(self.capacity.bits().max(self.trains.latest()))
    }

    /// While somebody else may keep a queue at the bottleneck, its capacity for us is no less than our part of it.
    fn raise_to_share(&mut self, now: Instant) {
        if let Some(found) = self.trains.bottleneck(now) {
            self.capacity.raise(found * self.sharing.most());
        }
    }

    /// Once it is sure that somebody else keeps a queue at the bottleneck, its capacity for us is what our flows would take.
    pub(super) fn share(&mut self, now: Instant, sample: &Sample) {
        let bits = self.capacity.bits();
        let seen = Seen {
            sent_at: sample.sent_at,
            lost: sample.span.map_or(0, |span| self.losses.count_beyond(&span)),
            is_empty: self.queue.is_empty(bits.max(self.trains.latest())),
            round_trip: self.queue.present_round_trip(),
            bottleneck: self.trains.bottleneck(now),
        };
        if let Some(share) = self.sharing.observe(now, &seen, self.pacing.rate()) {
            self.capacity.set(now, share, self.queue.least_growth(share));
            self.experiments.abandon();
        }
    }

    /// Losses beyond the channel's: ours, if there are fewer when less is sent.
    pub(super) fn watch_losses(&mut self, now: Instant, window: &Window) {
        let share = losses::share(&window.span).unwrap_or(0.0);
        self.telling.on_losses(now, self.losses.beyond(&window.span));
        if self.losses.are_more(&window.span) {
            self.openness.close(now);
        }
        match self.experiments.cause() {
            Some(Cause::Queue | Cause::SmallQueue) => {}
            Some(Cause::Losses) => self.judge_losses(now, window, share),
            None => self.look_at_losses(now, window, share),
        }
    }

    /// What an experiment with losses showed, of which a window lost a `share`.
    fn judge_losses(&mut self, now: Instant, window: &Window, share: f64) {
        let sent = self.line.rate(window.span.sent, window.span.sent_in);
        let Some(verdict) = self.experiments.judge_losses(now, window.since, share, sent) else { return };
        let lasts = match verdict {
            Verdict::Ours(_) => self.losses.are_more(&window.span),
            Verdict::Overtaken(_) => true,
            Verdict::NotOurs(_) => false,
        };
        if lasts {
            // Fewer, and still more than the channel's; or more than before. It may be that too much is still sent.
            return self.try_losses(now, window, share);
        }
        match verdict {
            Verdict::NotOurs(before) => {
                if self.is_crowded(now, before.arrived) {
                    return self.join(now, before.arrived);
                }
                self.capacity.raise(before.capacity);
                self.telling.forget_losses();
            }
            Verdict::Ours(_) | Verdict::Overtaken(_) => self.capacity.divide(1.0 - share),
        }
        self.losses.accept(share);
    }

    /// Whether what a window lost is a crowd's doing, or is to be tried.
    fn look_at_losses(&mut self, now: Instant, window: &Window, share: f64) {
        self.losses.observe(&window.span);
        let are_more = self.losses.are_more(&window.span);
        let is_blind = share > losses::LITTLE && (!self.trains.may_jump(now) || self.is_above_empty());
        let is_used = self.pacing.is_used(window, self.line);
        let arrived = self.arrived(&window.span);
        if (are_more || is_blind) && !self.sharing.is_sure(now) && is_used && self.is_crowded(now, arrived) {
            return self.join(now, arrived);
        }
        if are_more && self.queue.is_accepted() && self.has_others(now) {
            self.sharing.on_overflow(now);
        }
        if self.sharing.is_found(now) && self.queue.is_accepted() {
            return;
        }
        let may_try = self.experiments.may_try_losses(now, are_more || self.losses.last(), share);
        if may_try && share <= breaker::STARVED && is_used {
            self.try_losses(now, window, share);
        }
    }

    /// Whether a single span tells of a path that has become far slower: most of it was lost, and its end has waited in a long queue, half as long again as
    /// what stood before it. A channel that loses much delays nothing.
    pub(super) fn is_flooded(&self, now: Instant, span: &Span) -> bool {
        let (newest, standing) = (self.queue.newest(), self.queue.standing());
        self.aim != Aim::Unlimited
            && self.experiments.is_overtaken(losses::share(span).unwrap_or(0.0))
            && !self.sharing.is_found(now)
            && span.received_in >= FLOODED.0
            && self.losses.beyond(span) >= FLOODED.1
            && newest >= self.queue.high(self.capacity.bits())
            && newest.saturating_mul(2) >= standing.saturating_mul(3)
    }

    /// Sends what has arrived of late until windows tell more: what is sent meanwhile would only be dropped.
    pub(super) fn retreat(&mut self, now: Instant, span: &Span) {
        let share = losses::share(span).unwrap_or(0.0);
        self.windows.clear();
        let arrived = self.arrived(span);
        self.experiments.begin(now, Cause::Losses, Before { losses: share, arrived, ..self.before() });
        self.capacity.limit(arrived.max(self.capacity.bits() * capacity::LEAST));
    }

    /// Sends only what certainly passes, to see whether fewer are lost.
    fn try_losses(&mut self, now: Instant, window: &Window, share: f64) {
        let arrived = self.arrived(&window.span);
        self.experiments.begin(now, Cause::Losses, Before { losses: share, arrived, ..self.before() });
        self.trains.check_jump(now, arrived, self.queue.present_round_trip());
        // Half of it tells enough; an outage may be behind it, during which nothing arrived.
        self.capacity.limit(arrived.max(self.capacity.bits() * LEAST_TRIED));
    }

    /// Bits per second that arrived.
    fn arrived(&self, span: &Span) -> f64 {
        self.line.rate(span.received, span.received_in)
    }

    /// What is so before an experiment with a queue.
    fn before(&self) -> Before {
        let arrived = self.capacity.carried().unwrap_or(f64::INFINITY);
        let capacity = self.capacity.bits();
        Before { capacity, arrived, queue: self.queue.standing(), losses: 0.0 }
    }

    /// A queue that does not drain is somebody else's, or the path is longer than it was, or jitter.
    pub(super) fn watch_queue(&mut self, now: Instant, sample: &Sample) {
        if self.sharing.is_sure(now) {
            return;
        }
        if let Some(Before { arrived, .. }) = self.experiments.losses_before()
            && self.is_crowded(now, arrived)
        {
            return self.join(now, arrived);
        }
        // A queue that comes and goes ends no experiment, and the rate would fall further and further.
        // Only where trains come back: a path that has become slower looks the same.
        if let Some(begun_at) = self.experiments.long_queue_since()
            && sample.sent_at >= begun_at + self.queue.settling(self.capacity.bits())
            && self.trains.passed_since(begun_at).is_some()
            && let Some(carried) = self.capacity.carried()
            && self.trains.bottleneck(now).is_some_and(|found| carried < MINORITY * found)
            && self.is_crowded(now, carried)
        {
            return self.join(now, carried);
        }
        let (bits, standing) = (self.capacity.bits(), self.queue.standing());
        let target = self.queue.target(bits);
        let is_lasting = self.experiments.may_try_small_queue(now, standing, target);
        let is_draining = self.pacing.is_of_drain(sample.sent_at);
        if self.experiments.watch_drain(is_draining, standing, target) && !self.sharing.is_found(now) {
            self.queue.accept(now);
        }
        let Some(cause) = self.experiments.cause() else {
            if self.queue.is_long(bits) && now >= self.experiments.queue_quiet_until() {
                self.experiments.begin(now, Cause::Queue, self.before());
                // Other limits than the rate, such as a window, may have built it.
                self.capacity.limit(self.capacity.passed().max(bits * capacity::LEAST));
            } else if is_lasting && !self.sharing.is_found(now) {
                self.experiments.begin(now, Cause::SmallQueue, self.before());
            }
            return;
        };
        let low = if cause == Cause::Queue { self.queue.high(bits) } else { target };
        let settling = self.queue.settling(bits);
        match (self.experiments.judge_queue(now, sample.sent_at, standing, low, settling), cause) {
            (None, _) => {}
            // What is only a little of all neither empties a queue nor fills it.
            (
                Some(Verdict::Ours(Before { arrived, .. }) | Verdict::Overtaken(Before { arrived, .. })),
                Cause::Queue,
            ) if self.is_crowded(now, arrived) => {
                self.join(now, arrived);
            }
            (Some(Verdict::Ours(_)), Cause::Queue) => self.sharing.on_drained(),
            (Some(Verdict::NotOurs(before)), Cause::Queue) => {
                self.queue.accept(now);
                if self.has_others(now) {
                    self.sharing.on_not_drained(self.experiments.queue_quiet_until());
                    self.raise_to_share(now);
                } else {
                    self.capacity.raise(before.capacity);
                }
            }
            // It was measured while the queue drained.
            (Some(Verdict::Ours(_) | Verdict::Overtaken(_)), _) => {}
            (Some(Verdict::NotOurs(_)), _) => self.queue.accept(now),
        }
    }
}
