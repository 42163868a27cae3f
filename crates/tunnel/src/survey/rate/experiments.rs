//! Experiments: whether something is wrong for which we are the reason.
//!
//! Less is sent for a while. A queue that does not drain then is somebody else's, or the path is longer than it was; losses that do not become fewer are the
//! channel's. After an experiment that failed there is none of its kind for a while, doubled each time.

use base::{Duration, Instant};

/// The experiment that is made now, and when there may be another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Experiments {
    current: Option<Experiment>,
    queue_quiet: Quiet,
    loss_quiet: Quiet,
    made: u64,
    /// When the latest began.
    begun_at: Option<Instant>,
    /// For how long a queue has been a little too long, less the time for which it has not.
    small_for: Duration,
    watched_at: Instant,
    /// What stood when the queue was last left to run empty, and the least that stood since.
    drain: Option<(Duration, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Experiment {
    cause: Cause,
    since: Instant,
    before: Before,
}

/// What was so before an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Before {
    /// The capacity that was believed, in bits per second.
    pub capacity: f64,
    /// What arrived, in bits per second; infinite if that is not known.
    pub arrived: f64,
    /// The queue that stood, or the longest since.
    pub queue: Duration,
    /// The share that was lost.
    pub losses: f64,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue stands that is too long.
    Queue,
    /// One stands that is a little too long, and has for a while.
    SmallQueue,
    /// More is lost than the channel loses.
    Losses,
}

/// What an experiment showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It was our doing.
    Ours(Before),
    /// Things have become worse meanwhile, for another reason. An experiment with a queue goes on.
    Overtaken(Before),
    /// It was not.
    NotOurs(Before),
}

/// A time without experiments of a kind.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    until: Instant,
    length: Duration,
}

/// After an experiment that failed there is none before the first, doubled each time up to the second. Ours.
const QUIET: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(160));
/// Losses that become more by this part of all while less is sent have become so for another reason. Ours: more than chance does.
const RISE: f64 = 0.1;
/// An experiment with losses takes so long at most, or as long as a window that tells of losses where that is longer. Ours: forty datagrams, at half of 128 kbit/s.
const LONGEST: Duration = Duration::from_secs(5);
/// After an experiment began something may be wrong for so long. Ours.
const DOUBT: Duration = Duration::from_secs(10);
/// A queue must drain within this many of its lengths. Ours.
const DRAINING: u64 = 3;

/// A queue that is a little too long for so long makes an experiment: the rate follows the queue within much less. Ours.
const SMALL_FOR: Duration = Duration::from_secs(3);
/// A little is this many quarters of the target, at least. Ours.
const SMALL: u64 = 5;

impl Default for Quiet {
    fn default() -> Self {
        Self { until: Instant::ZERO, length: QUIET.0 }
    }
}

impl Quiet {
    fn lengthen(&mut self, now: Instant) {
        self.until = now + self.length;
        self.length = self.length.saturating_mul(2).min(QUIET.1);
    }

    /// Whether the latest experiment failed.
    fn is_after_failure(&self) -> bool {
        self.length > QUIET.0
    }
}

impl Experiments {
    /// Experiments that were made.
    #[must_use]
    pub const fn made(&self) -> u64 {
        self.made
    }

    /// Whether something has been wrong of late.
    #[must_use]
    pub fn is_in_doubt(&self, now: Instant) -> bool {
        self.begun_at.is_some_and(|at| now < at + DOUBT)
    }

    /// What the present one is about.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.current.map(|experiment| experiment.cause)
    }

    /// What was so before the present one, if it is about losses.
    #[must_use]
    pub fn losses_before(&self) -> Option<Before> {
        let experiment = self.current.filter(|experiment| experiment.cause == Cause::Losses);
        experiment.map(|experiment| experiment.before)
    }

    /// When one about a long queue began that goes on.
    #[must_use]
    pub fn long_queue_since(&self) -> Option<Instant> {
        self.begun_at.filter(|_| self.cause() == Some(Cause::Queue))
    }

    /// Whether no experiment with losses goes on, or a `share` that is lost says that things have become worse since it began.
    #[must_use]
    pub fn is_overtaken(&self, share: f64) -> bool {
        let experiment = self.current.filter(|experiment| experiment.cause == Cause::Losses);
        experiment.is_none_or(|experiment| share > experiment.before.losses + RISE)
    }

    /// No experiment goes on; it showed nothing.
    pub const fn abandon(&mut self) {
        self.current = None;
    }

    /// Until when there is no experiment with a queue.
    #[must_use]
    pub const fn queue_quiet_until(&self) -> Instant {
        self.queue_quiet.until
    }

    /// Whether an experiment with losses may begin: they `rise`, or what was accepted may have been ours after all, and is tried again now and then.
    #[must_use]
    pub fn may_try_losses(&self, now: Instant, rise: bool, share: f64) -> bool {
        let is_doubtful = self.loss_quiet.is_after_failure() && share > 0.0;
        (rise || is_doubtful) && now >= self.loss_quiet.until
    }

    /// An experiment begins: what stands, is lost and believed before it.
    pub const fn begin(&mut self, now: Instant, cause: Cause, before: Before) {
        self.made += 1;
        self.begun_at = Some(now);
        self.current = Some(Experiment { cause, since: now, before });
    }

    /// Ends an experiment with losses that has found nothing out for too long, as on a line that is blocked again and again: what was so before it. A `window` that tells of losses takes so long.
    pub fn poll_vain(&mut self, now: Instant, window: Duration) -> Option<Before> {
        let vain = self.current.filter(|experiment| {
            experiment.cause == Cause::Losses && now >= experiment.since + LONGEST.max(window)
        })?;
        self.current = None;
        self.loss_quiet.lengthen(now);
        Some(vain.before)
    }

    /// An experiment with losses counts from now on: the bottleneck carries much less than was sent until now.
    pub fn restart_losses(&mut self, now: Instant) {
        if let Some(experiment) = self.current.as_mut().filter(|experiment| experiment.cause == Cause::Losses)
        {
            experiment.since = now;
        }
    }

    /// A `share` of what left from `since` on, `tried` bits per second, was lost: what an experiment with losses showed. A channel goes on losing the same share; a
    /// bottleneck lets as much through as before, so that the share falls.
    pub fn judge_losses(
        &mut self,
        now: Instant,
        since: Option<Instant>,
        share: f64,
        tried: f64,
    ) -> Option<Verdict> {
        let experiment = self.current.filter(|experiment| experiment.cause == Cause::Losses)?;
        if since.is_none_or(|since| since < experiment.since) {
            return None;
        }
        let is_overtaken = self.is_overtaken(share);
        self.current = None;
        if is_overtaken {
            return Some(Verdict::Overtaken(experiment.before));
        }
        let Before { capacity, losses, .. } = experiment.before;
        let fallen = (1.0 - (1.0 - losses) * capacity / tried.max(1.0)).max(0.0);
        if share > (losses + fallen) / 2.0 {
            self.loss_quiet.lengthen(now);
            return Some(Verdict::NotOurs(experiment.before));
        }
        self.loss_quiet = Quiet::default();
        Some(Verdict::Ours(experiment.before))
    }

    /// Whether an experiment with a small queue may begin: `standing` has been more than `target` for long. Jitter looks like that, since it delays what
    /// leaves in close order more than what leaves alone.
    pub fn may_try_small_queue(&mut self, now: Instant, standing: Duration, target: Duration) -> bool {
        let passed = now.saturating_since(self.watched_at);
        self.watched_at = now;
        self.small_for = if standing.saturating_mul(4) < target.saturating_mul(SMALL) {
            self.small_for.saturating_sub(passed)
        } else {
            (self.small_for + passed).min(SMALL_FOR)
        };
        self.current.is_none() && self.small_for >= SMALL_FOR
    }

    /// Takes in the queue `standing` that a stamp found, which left while the queue was to run empty, if it `is_draining`; whether it did not. Then what stands
    /// is none: where jitter makes up all of the queue that is kept, nothing else would tell.
    pub fn watch_drain(&mut self, is_draining: bool, standing: Duration, target: Duration) -> bool {
        if is_draining {
            let (before, least) = self.drain.unwrap_or((standing, standing));
            self.drain = Some((before, least.min(standing)));
            return false;
        }
        self.drain.take().is_some_and(|(before, least)| {
            before.saturating_mul(2) >= target && least.saturating_mul(2) > before && self.current.is_none()
        })
    }

    /// `standing` is the queue that a stamp of `sent_at` found, `low` one that may stand: what an experiment with a queue showed.
    pub fn judge_queue(
        &mut self,
        now: Instant,
        sent_at: Instant,
        standing: Duration,
        low: Duration,
        settling: Duration,
    ) -> Option<Verdict> {
        let experiment = self.current.as_mut().filter(|experiment| experiment.cause != Cause::Losses)?;
        let is_long = experiment.cause == Cause::Queue;
        if sent_at < experiment.since {
            // It left before, and found what was under way.
            experiment.before.queue = experiment.before.queue.max(standing);
            return None;
        }
        let Experiment { since, before, .. } = *experiment;
        let queue = before.queue;
        if standing > queue {
            // It still grows: what is sent has not become little enough yet.
            (experiment.since, experiment.before.queue) = (sent_at, standing);
            let begun_at = self.begun_at.unwrap_or(now);
            return (is_long && sent_at >= begun_at + settling).then_some(Verdict::Overtaken(before));
        }
        if standing.saturating_mul(2) <= queue || standing < low {
            self.current = None;
            if is_long {
                self.queue_quiet = Quiet::default();
            } else {
                self.small_for = Duration::ZERO;
            }
            return Some(Verdict::Ours(before));
        }
        if sent_at < since + queue.saturating_mul(DRAINING) + settling {
            return None;
        }
        if standing.saturating_mul(4) <= queue.saturating_mul(3) {
            // It drains, only more slowly.
            (experiment.since, experiment.before.queue) = (sent_at, standing);
            return None;
        }
        self.current = None;
        self.small_for = Duration::ZERO;
        if is_long {
            self.queue_quiet.lengthen(now);
        }
        Some(Verdict::NotOurs(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const BEFORE: Before =
        Before { capacity: 5e6, arrived: 4e6, queue: Duration::from_millis(100), losses: 0.2 };

    const fn for_ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn begun(cause: Cause) -> Experiments {
        let mut experiments = Experiments::default();
        experiments.begin(ms(1000), cause, BEFORE);
        experiments
    }

    #[test]
    fn losses_that_do_not_become_half_as_many_are_not_ours() {
        let not_ours = Some(Verdict::NotOurs(BEFORE));
        for (since, share, verdict) in
            [(999, 0.0, None), (1000, 0.11, not_ours), (1000, 0.1, Some(Verdict::Ours(BEFORE)))]
        {
            let mut experiments = begun(Cause::Losses);
            assert_eq!(experiments.judge_losses(ms(2000), Some(ms(since)), share, 4e6), verdict, "{share}");
            assert_eq!(experiments.cause().is_none(), verdict.is_some());
        }
        assert_eq!(
            begun(Cause::Queue).judge_losses(ms(2000), Some(ms(1500)), 0.9, 4e6),
            None,
            "that is another cause"
        );
    }

    #[test]
    fn losses_that_become_more_while_less_is_sent_tell_nothing() {
        for (share, verdict) in [
            (0.3, Verdict::NotOurs(BEFORE)),
            (0.31, Verdict::Overtaken(BEFORE)),
            (0.9, Verdict::Overtaken(BEFORE)),
        ] {
            let mut experiments = begun(Cause::Losses);
            assert_eq!(
                experiments.judge_losses(ms(2000), Some(ms(1500)), share, 4e6),
                Some(verdict),
                "{share}"
            );
            assert!(
                experiments.may_try_losses(ms(2000), true, share) == (verdict == Verdict::Overtaken(BEFORE))
            );
        }
    }

    #[test]
    fn an_experiment_with_losses_that_begins_anew_counts_what_leaves_from_then_on() {
        let mut experiments = begun(Cause::Losses);
        experiments.restart_losses(ms(1200));
        assert_eq!(experiments.judge_losses(ms(2000), Some(ms(1199)), 0.0, 4e6), None);
        assert_eq!(experiments.judge_losses(ms(2000), Some(ms(1200)), 0.0, 4e6), Some(Verdict::Ours(BEFORE)));
    }

    /// Of 5 Mbit/s a fifth was lost, so 4 passed: of 4.5 a bottleneck loses a ninth, of 3 nothing.
    #[test]
    fn losses_fall_as_far_as_less_is_sent() {
        for (tried, most) in [(4.5e6, 0.155), (4e6, 0.1), (3e6, 0.1)] {
            for (share, verdict) in
                [(most - 0.01, Verdict::Ours(BEFORE)), (most + 0.01, Verdict::NotOurs(BEFORE))]
            {
                let mut experiments = begun(Cause::Losses);
                let judged = experiments.judge_losses(ms(2000), Some(ms(1500)), share, tried);
                assert_eq!(judged, Some(verdict), "{share} of {tried}");
            }
        }
    }

    #[test]
    fn an_experiment_with_losses_that_finds_nothing_out_ends() {
        let mut experiments = begun(Cause::Losses);
        let mut poll = |at| experiments.poll_vain(ms(at), for_ms(4000));
        assert_eq!([poll(5999), poll(6000)], [None, Some(BEFORE)]);
        let mut slow = begun(Cause::Losses);
        let mut poll = |at| slow.poll_vain(ms(at), for_ms(8000));
        assert_eq!([poll(8999), poll(9000)], [None, Some(BEFORE)], "as long as a window takes");
        assert!(experiments.cause().is_none() && !experiments.may_try_losses(ms(6000), true, 0.5));
        assert_eq!(begun(Cause::Queue).poll_vain(ms(60_000), for_ms(1)), None);
    }

    #[test]
    fn a_queue_that_still_grows_has_its_time_from_then_on() {
        let mut experiments = begun(Cause::Queue);
        let mut judge = |sent_at, standing| {
            experiments.judge_queue(ms(9000), ms(sent_at), for_ms(standing), for_ms(40), for_ms(200))
        };
        assert_eq!([judge(1199, 300), judge(2298, 299)], [None; 2]);
        let before = Before { queue: for_ms(300), ..BEFORE };
        assert_eq!(judge(2299, 299), Some(Verdict::NotOurs(before)));
    }

    #[test]
    fn after_a_failure_losses_are_tried_again_later_and_later() {
        let mut experiments = begun(Cause::Losses);
        assert!(
            experiments.may_try_losses(ms(0), true, 0.1) && !experiments.may_try_losses(ms(0), false, 0.1)
        );
        let mut now = ms(2000);
        for seconds in [10, 20, 40, 80, 160, 160] {
            experiments.begin(now, Cause::Losses, Before { losses: 0.1, ..BEFORE });
            experiments.judge_losses(now, Some(now), 0.1, 4e6);
            let again = now + Duration::from_secs(seconds);
            assert!(!experiments.may_try_losses(again - for_ms(1), true, 0.1), "{seconds} s");
            assert!(experiments.may_try_losses(again, false, 0.1), "what was accepted is in doubt");
            assert!(!experiments.may_try_losses(again, false, 0.0), "nothing is lost");
            now = again;
        }
    }

    #[test]
    fn a_queue_is_ours_if_half_of_it_drains_in_time() {
        let not_ours = Some(Verdict::NotOurs(BEFORE));
        for (sent_at, standing, verdict) in [
            (999, 10, None),
            (1100, 50, Some(Verdict::Ours(BEFORE))),
            (1100, 51, None),
            (1499, 100, None),
            (1500, 75, None),
            (1500, 76, not_ours),
        ] {
            let mut experiments = begun(Cause::Queue);
            let found =
                experiments.judge_queue(ms(2000), ms(sent_at), for_ms(standing), for_ms(40), for_ms(200));
            assert_eq!(found, verdict, "{standing} ms at {sent_at}");
            let is_quiet = experiments.queue_quiet_until() == ms(12_000);
            assert_eq!(is_quiet, verdict == not_ours);
        }
    }

    #[test]
    fn a_small_queue_is_in_question_after_three_seconds_more_than_it_is_not_there() {
        let mut experiments = Experiments::default();
        let mut may_try =
            |millis, standing| experiments.may_try_small_queue(ms(millis), for_ms(standing), for_ms(20));
        assert_eq!([may_try(0, 24), may_try(2999, 25), may_try(3000, 25)], [false, false, true]);
        assert_eq!([may_try(3500, 24), may_try(3999, 38), may_try(4000, 38)], [false, false, true]);
        assert_eq!([may_try(9000, 24), may_try(11_999, 38), may_try(12_000, 38)], [false, false, true]);
    }

    #[test]
    fn a_small_queue_that_stays_is_not_followed_by_a_quiet_time() {
        let mut experiments = begun(Cause::SmallQueue);
        let mut judge = |sent_at, standing| {
            experiments.judge_queue(ms(2000), ms(sent_at), for_ms(standing), for_ms(20), for_ms(200))
        };
        assert_eq!(judge(1400, 80), None);
        assert_eq!(judge(1500, 80), Some(Verdict::NotOurs(BEFORE)));
        assert_eq!(experiments.queue_quiet_until(), Instant::ZERO);
    }

    #[test]
    fn a_queue_that_drains_slowly_has_more_time() {
        let mut experiments = begun(Cause::Queue);
        let mut judge = |sent_at, standing| {
            experiments.judge_queue(ms(2000), ms(sent_at), for_ms(standing), for_ms(10), for_ms(200))
        };
        assert_eq!([judge(1500, 75), judge(1924, 57)], [None; 2]);
        let before = Before { queue: for_ms(75), ..BEFORE };
        assert_eq!(judge(1925, 57), Some(Verdict::NotOurs(before)));
    }

    #[test]
    fn a_queue_that_does_not_run_empty_is_none() {
        for (standing, is_none) in [
            ([20, 22, 18, 21], true),
            ([20, 14, 10, 15], false),
            ([9, 9, 9, 9], false),
            ([20, 30, 11, 20], true),
        ] {
            let mut experiments = Experiments::default();
            for standing in standing {
                assert!(!experiments.watch_drain(true, for_ms(standing), for_ms(20)));
            }
            assert_eq!(experiments.watch_drain(false, for_ms(20), for_ms(20)), is_none, "{standing:?}");
            assert!(!experiments.watch_drain(false, for_ms(20), for_ms(20)), "that is over");
        }
    }

    #[test]
    fn what_was_under_way_counts_to_the_queue_that_must_drain() {
        let mut experiments = begun(Cause::Queue);
        let mut judge = |sent_at, standing| {
            experiments.judge_queue(ms(2000), ms(sent_at), for_ms(standing), for_ms(40), for_ms(200))
        };
        assert_eq!((judge(900, 300), judge(1899, 160)), (None, None));
        assert_eq!(judge(1900, 150), Some(Verdict::Ours(Before { queue: for_ms(300), ..BEFORE })));
    }

    #[test]
    fn a_queue_that_grows_for_long_grows_for_another_reason() {
        let mut experiments = begun(Cause::Queue);
        let mut judge = |sent_at, standing| {
            experiments.judge_queue(ms(2000), ms(sent_at), for_ms(standing), for_ms(40), for_ms(200))
        };
        assert_eq!(judge(1199, 110), None, "what is sent has just become less");
        let before = Before { queue: for_ms(110), ..BEFORE };
        assert_eq!(judge(1200, 120), Some(Verdict::Overtaken(before)));
        assert_eq!(
            judge(1300, 60),
            Some(Verdict::Ours(Before { queue: for_ms(120), ..BEFORE })),
            "it goes on"
        );
    }

    #[test]
    fn what_was_so_before_is_told_of_experiments_with_losses() {
        let told = [Cause::Losses, Cause::Queue].map(|cause| begun(cause).losses_before());
        assert_eq!((told, Experiments::default().losses_before()), ([Some(BEFORE), None], None));
    }

    #[test]
    fn something_may_be_wrong_for_ten_seconds_after_an_experiment_began() {
        let mut experiments = begun(Cause::Queue);
        experiments.abandon();
        assert_eq!([1000, 10_999, 11_000].map(|now| experiments.is_in_doubt(ms(now))), [true, true, false]);
        assert!(!Experiments::default().is_in_doubt(ms(0)));
    }

    #[test]
    fn an_experiment_is_overtaken_by_more_losses_or_if_there_is_none() {
        assert!(Experiments::default().is_overtaken(0.0) && begun(Cause::Queue).is_overtaken(0.0));
        let experiments = begun(Cause::Losses);
        let before = experiments.losses_before().unwrap().losses;
        assert!(!experiments.is_overtaken(before) && experiments.is_overtaken(before + RISE + 0.01));
    }
}
