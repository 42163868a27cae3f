//! What the controller concludes from trains, windows and queues: where one part's finding is another's reason.

use base::{Duration, Instant};

use super::bottleneck::Measured;
use super::experiments::{Before, Cause, Verdict};
use super::sharing::Seen;
use super::window::Window;
use super::{Aim, RateController, bottleneck, breaker, losses, trains};
use crate::survey::report::{Sample, Span};
use crate::survey::train::TrainReport;

/// From this part of what trains find on, nobody else uses the bottleneck. Ours.
const ALONE: f64 = 0.85;

/// Below this part of what would arrive without others, there are others. Ours.
const CROWDED: f64 = 0.7;

/// Below this part of what trains find, others have most of the bottleneck. Ours: less than beside one other.
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
    pub(super) fn open(&mut self, now: Instant, found: f64, passage: &TrainReport) -> bool {
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

    /// Looks at losses beyond the channel's, and sends less for a while: they are ours if there are fewer then.
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
        self.capacity.limit(arrived.max(self.capacity.bits() * bottleneck::LEAST));
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

    /// Sends less while a queue stands, and judges what came of it: one that does not drain is somebody else's, or the path is longer than it
    /// was, or jitter.
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
                self.capacity.limit(self.capacity.passed().max(bits * bottleneck::LEAST));
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

#[cfg(test)]
mod tests {
    use super::super::bottleneck::Measured;
    use super::*;
    use crate::survey::report::{Long, Totals};
    use crate::survey::silence::Silence;
    use base::Rate;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn totals(datagrams: u64) -> Totals {
        Totals { datagrams, bytes: 1000 * datagrams }
    }

    /// A capacity of 10 Mbit/s is believed; the newest four stamps waited so many milliseconds.
    fn controller(waits: [u64; 4]) -> RateController {
        let mut controller = RateController::new(Aim::Find, 0);
        controller.capacity.set(at(0), 10e6, 0.0);
        for (wait, now) in waits.into_iter().zip((1000..).step_by(100)) {
            let sample = Sample {
                sent_at: at(now),
                round_trip: Duration::from_millis(600 + wait),
                delay: (wait * 1_000_000).cast_signed(),
                span: None,
                missed: 0,
                after: Totals::default(),
                long: Long::default(),
                silence: Silence::default(),
            };
            controller.queue.observe(at(now), &sample, 10e6);
        }
        controller
    }

    /// Of a hundred datagrams so many arrived, within so many milliseconds.
    fn span(arrived: u64, millis: u64) -> Span {
        let time = Duration::from_millis(millis);
        Span { sent: totals(100), sent_in: time, received: totals(arrived), received_in: time }
    }

    /// A train of which so much arrived at 10 Mbit/s.
    fn passage(sent: u64, arrived: u64, is_long: bool) -> TrainReport {
        let time = Duration::from_micros(800 * arrived);
        TrainReport {
            is_padding: true,
            is_long,
            sent_at: at(1000),
            sent: totals(sent),
            sent_in: Duration::ZERO,
            received: totals(arrived),
            received_in: time,
        }
    }

    #[test]
    fn three_quarters_lost_behind_a_queue_that_grew_by_half_is_a_flood() {
        let is_flooded =
            |waits, arrived, millis| controller(waits).is_flooded(at(1400), &span(arrived, millis));
        assert!(is_flooded([0, 0, 0, 40], 25, 50));
        assert!(!is_flooded([0, 0, 0, 40], 26, 50), "less was lost");
        assert!(!is_flooded([0, 0, 0, 40], 25, 49), "in a moment");
        assert!(!is_flooded([0, 0, 0, 39], 25, 50), "the queue is not long");
        assert_eq!([59, 60].map(|wait| is_flooded([0, 40, 40, wait], 25, 50)), [false, true]);
        let mut unlimited = controller([0, 0, 0, 40]);
        unlimited.aim = Aim::Unlimited;
        assert!(!unlimited.is_flooded(at(1400), &span(25, 50)));
        let mut shared = controller([0, 0, 0, 40]);
        shared.sharing.on_not_drained(at(1400));
        assert!(!shared.is_flooded(at(1400), &span(25, 50)), "others fill it");
    }

    /// What arrived is sent, but an eighth of what was believed at least.
    #[test]
    fn after_a_flood_as_much_is_sent_as_arrives_of_it() {
        for (arrived, capacity) in [(25, 4e6), (1, 1.25e6)] {
            let mut controller = controller([0, 0, 0, 40]);
            controller.windows.add(at(1400), &span(100, 1000), true);
            controller.retreat(at(1400), &span(arrived, 50));
            assert!((controller.capacity.bits() - capacity).abs() < 1.0, "{}", controller.capacity.bits());
            let before = controller.experiments.losses_before().expect("it is tried whether it helps");
            let (losses, rate) = (1.0 - arrived as f64 / 100.0, arrived as f64 * 160e3);
            assert!(
                (before.losses - losses).abs() < 1e-9 && (before.arrived - rate).abs() < 1.0,
                "{before:?}"
            );
            assert_eq!(before.capacity, 10e6);
            assert!(controller.windows.take_rate().is_none(), "what left before tells nothing");
        }
    }

    #[test]
    fn a_long_train_of_padding_tells_what_the_channel_loses() {
        for (passage, loss) in [
            (passage(40, 30, true), 0.25),
            (passage(20, 15, true), 0.25),
            (passage(19, 15, true), 0.0),
            (passage(40, 30, false), 0.0),
        ] {
            let mut controller = controller([0; 4]);
            controller.open(at(1400), 10e6, &passage);
            assert!((controller.losses.channel() - loss).abs() < 1e-9, "{passage:?}");
        }
    }

    /// A short one tells that there is at least so much, which a configuration says better.
    #[test]
    fn a_short_train_contradicts_no_configured_rate() {
        let mut known = RateController::new(Aim::Known(Rate::from_bps(5_000_000)), 0);
        assert!(!known.open(at(1400), 10e6, &passage(4, 4, false)));
        assert!(known.open(at(1400), 10e6, &passage(40, 40, true)));
        assert_eq!(known.capacity.bits(), 5e6);
    }

    /// Trains find 10 Mbit/s, of which so much passes for us.
    fn beside_others(carried: f64) -> RateController {
        let mut controller = controller([30; 4]);
        for _ in 0..2 {
            controller.trains.observe(at(1400), &passage(40, 40, true), controller.line, 0.0);
        }
        let measured = Measured {
            offered: 10e6,
            carried,
            is_busy: true,
            is_used: true,
            overflows: false,
            since: at(1000),
            is_drained: false,
        };
        controller.capacity.observe(at(1400), &measured, &controller.queue);
        controller
    }

    #[test]
    fn who_gets_clearly_less_than_trains_find_is_not_alone() {
        assert_eq!([8.4e6, 8.6e6].map(|carried| beside_others(carried).has_others(at(1400))), [true, false]);
    }

    #[test]
    fn our_part_of_a_bottleneck_is_that_of_our_flows_beside_one_other() {
        for (inside, share) in [(1, 5e6), (4, 8e6)] {
            let mut controller = beside_others(2e6);
            controller.sharing.set_inside(at(1400), inside);
            controller.raise_to_share(at(1400));
            assert!((controller.capacity.bits() - share).abs() < 1e4, "{}", controller.capacity.bits());
        }
    }

    /// Less than half is another bottleneck, of which the trains of before tell nothing, unless others are known to be there.
    #[test]
    fn trains_of_before_tell_nothing_of_another_bottleneck() {
        for (carried, is_shared, remembers) in [(4.9, false, false), (5.1, false, true), (4.9, true, true)] {
            let mut controller = beside_others(10e6);
            if is_shared {
                controller.sharing.on_not_drained(at(1400));
            }
            let received_in = Duration::from_secs_f64(10.0 / carried);
            let sent_in = Duration::from_secs(1);
            let span = Span { sent: totals(1250), sent_in, received: totals(1250), received_in };
            controller.measure(at(2000), &Window { span, since: Some(at(1000)), is_busy: true });
            assert_eq!(controller.trains.bottleneck(at(2000)).is_some(), remembers, "{carried}, {is_shared}");
        }
    }
}
