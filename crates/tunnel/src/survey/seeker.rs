//! The rate to send at: what the path carries for us, found without being told, with a short queue in front of its bottleneck.
//!
//! Loss alone says nothing here ([`super::losses`]). What is used instead, for each window of a few reports:
//!
//! 1. **Capacity.** While a queue stands, the bottleneck is never idle: what it lets through is what it carries. It counts where it differs from what we sent,
//!    so that a delay of other origin changes nothing. While none stands, the capacity is at least what we sent and what arrived of it.
//! 2. **Rate.** Capacity, less in proportion to the queue beyond 20 ms or less. What is under way is known, so the queue that it will meet is too: the law
//!    looks ahead by a round trip, and does not repeat a correction that is on its way. Without a queue the rate grows above the capacity, by more and more.
//! 3. **Trains** ([`super::train`]) tell of a capacity far above in one round trip.
//! 4. **Experiments.** A queue, or losses, that sending less does not reduce is not our doing: the first counts as the path's delay from then on, and the rate is
//!    half of what trains find at least, since somebody else keeps that queue; the second as the channel's.
//! 5. **Circuit breaker** (RFC 8084). While nearly nothing arrives, or nobody answers, only a trickle is sent.
//!
//! All rates are bits per second on the line, headers included.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use super::losses::{self, Losses};
use super::minimum::Minimum;
use super::report::{Sample, Span, Totals};
use super::standing::Standing;
use super::train::Passage;

/// What the configuration says of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Nothing: it is to be found.
    Find,
    /// What it is; less is sent if the path carries less.
    Known(Rate),
    /// As fast as the carrier takes it, whatever is found.
    Unlimited,
}

/// Finds the rate to send at.
#[derive(Debug)]
pub struct Seeker {
    aim: Aim,
    /// Bytes that a datagram occupies on the line besides its own.
    overhead: i64,
    capacity: f64,
    /// Growth above the capacity, as a part of it, while no queue stands.
    growth: f64,
    grown_at: Instant,
    /// Rates that held of late, from when.
    paced: VecDeque<(Instant, f64)>,
    rate: f64,
    queue: Standing,
    round_trip: Minimum<Duration>,
    /// The newest, queues included.
    present_round_trip: Duration,
    /// Whether the newest sample came after an outage.
    was_outage: bool,
    losses: Losses,
    window: Window,
    /// What the bottleneck let through in the latest window, if a queue stood and we used what we may.
    carried: Option<f64>,
    lossy: Window,
    /// Whether a little more is lost than the channel loses, as by a queue that is too short to be seen.
    overflows: bool,
    experiment: Option<Experiment>,
    queue_quiet: Quiet,
    loss_quiet: Quiet,
    drained_at: Instant,
    /// What trains found, the newest last.
    trains: VecDeque<(Instant, f64)>,
    jump: Jump,
    /// What a train found, where it is more than is configured.
    too_slow: Option<f64>,
    is_slow_told: bool,
    /// Whether somebody else's queue was found at the bottleneck of late.
    shared_until: Instant,
    /// Experiments with a queue that failed, one after the other.
    failures: u32,
    share: f64,
    share_cut_at: Instant,
    /// Since when nobody has answered what asks for an answer.
    unanswered_since: Option<Instant>,
    starved_since: Option<Instant>,
    /// Since when the capacity has been known, and what of it was told.
    wrong_since: Option<Instant>,
    told: Option<f64>,
    /// Experiments that were made.
    pub experiments: u64,
}

/// What left and arrived over a few reports.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    span: Span,
    since: Option<Instant>,
    /// Whether a queue stood at each of the reports.
    is_busy: bool,
}

/// Whether something is wrong for which we are the reason.
#[derive(Clone, Copy, Debug)]
struct Experiment {
    cause: Cause,
    since: Instant,
    /// Before it.
    capacity: f64,
    queue: Duration,
    losses: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Queue,
    Losses,
}

/// A time without experiments of a kind, after one that failed.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    until: Instant,
    length: Duration,
}

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

/// Steps that are taken on the word of trains.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The latest, and when, while it is not known to be right.
    to: Option<(f64, Instant)>,
    not_before: Instant,
    pause: Duration,
}

/// What whoever runs the gateway should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The rate was found, or is another by more than half.
    Found {
        /// What the path carries, with all headers.
        measured: Rate,
    },
    /// The path carries less than the configured rate; it is paced at what it carries, unless it is not to be paced.
    TooFast {
        /// What it carries, with all headers.
        measured: Rate,
        /// How long packets waited.
        queueing: Duration,
        /// How many bytes of a hundred were lost beyond what the channel loses.
        lost: u8,
    },
    /// The path carries more than the configured rate.
    TooSlow {
        /// What it carries, with all headers.
        measured: Rate,
    },
}

/// The queue that is kept: a quarter of a round trip within these bounds, enough to see that the bottleneck is busy, or two packets.
const TARGET: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(20));
const TARGET_PACKETS: u64 = 2;
/// Of 1500 bytes.
const PACKET_BITS: u64 = 1500 * 8;
/// A queue of this many targets makes an experiment.
const HIGH: u64 = 2;
/// The time in which a queue is to reach its target, at least, and half a round trip.
const SETTLING: Duration = Duration::from_millis(200);
/// A rate is measured over so much time and so many datagrams, losses over more.
const WINDOW: (Duration, u64) = (Duration::from_millis(200), 12);
const LOSS_WINDOW: (Duration, u64) = (Duration::from_millis(400), 40);
/// Arrivals that differ from what was sent by this part tell of the bottleneck.
const DIFFERENCE: f64 = 0.03;
/// A rate counts as used from this part on.
const USED: f64 = 0.9;
/// On a link that is known to be slower, padding takes too long.
const SLOWEST_FOR_PADDING: Rate = Rate::from_bps(2_000_000);
/// Before anything is known.
const INITIAL: f64 = 256_000.0;
/// At least.
const LOWEST: f64 = 8_000.0;
/// Stamps in a row without an answer: an outage, which says nothing of rates, unless another follows at once.
const OUTAGE: usize = 5;
/// The queue is let run empty this often, for so long, to see the path's own delay.
const DRAIN_EVERY: Duration = Duration::from_secs(15);
const DRAIN_FOR: Duration = Duration::from_millis(300);
/// By how much less is sent meanwhile, if a queue may have been taken for the path's delay.
const DEEP_DRAIN: f64 = -0.5;
const LONGEST_DRAIN: Duration = Duration::from_secs(1);
/// After an experiment that failed there is none before this, doubled each time.
const QUIET: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(160));
/// Of a bottleneck with somebody else's queue.
pub const SHARE: f64 = 0.5;
/// What is left of the share each time that the queue has overflowed for so long, at least so much; and what it gains in a window without.
const SHARE_CUT: f64 = 0.9;
const SHARE_CUT_EVERY: Duration = Duration::from_secs(4);
const LEAST_SHARE: f64 = 0.1;
const SHARE_GAIN: f64 = 0.02;
/// Arrivals are not told apart better than by a part of this.
const SHORTEST_PASSAGE: Duration = Duration::from_millis(2);
/// What trains find holds for so long.
const TRAIN_MEMORY: Duration = Duration::from_secs(30);
const TRAINS: usize = 5;
/// Two trains that find more than this make the rate jump, to this part of what they found.
const FAR_ABOVE: f64 = 1.2;
const TRUSTED: f64 = 0.97;
const LONGEST_JUMP: f64 = 4.0;
/// After a jump that was too high there is none before this, doubled each time.
const JUMP_PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(160));
/// The circuit breaker acts after so long, on a link that loses more than this.
const PATIENCE: Duration = Duration::from_secs(10);
const STARVED: f64 = 0.95;
/// What it leaves of the rate.
const TRICKLE: f64 = 0.02;
/// A configured rate is wrong by a fifth, for so long.
const WRONG: f64 = 0.2;
const WRONG_FOR: Duration = Duration::from_secs(10);

impl Seeker {
    /// For a line on which a datagram takes `overhead` bytes besides its own.
    #[must_use]
    pub fn new(aim: Aim, overhead: i64) -> Self {
        let (capacity, growth) = match aim {
            Aim::Find => (INITIAL, 1.0),
            Aim::Known(rate) => (rate.as_bps() as f64, 0.0),
            Aim::Unlimited => (f64::INFINITY, 0.0),
        };
        Self {
            aim,
            overhead,
            capacity,
            growth,
            grown_at: Instant::ZERO,
            paced: VecDeque::new(),
            rate: capacity,
            queue: Standing::default(),
            round_trip: Minimum::over(ROUND_TRIP_MEMORY),
            present_round_trip: Duration::ZERO,
            was_outage: false,
            losses: Losses::default(),
            window: Window::default(),
            carried: None,
            lossy: Window::default(),
            overflows: false,
            experiment: None,
            queue_quiet: Quiet::default(),
            loss_quiet: Quiet::default(),
            drained_at: Instant::ZERO,
            trains: VecDeque::new(),
            jump: Jump { to: None, not_before: Instant::ZERO, pause: JUMP_PAUSE.0 },
            too_slow: None,
            is_slow_told: false,
            shared_until: Instant::ZERO,
            failures: 0,
            share: SHARE,
            share_cut_at: Instant::ZERO,
            unanswered_since: None,
            starved_since: None,
            wrong_since: None,
            told: None,
            experiments: 0,
        }
    }

    /// The other end's clock is another one from now on.
    pub fn restart(&mut self) {
        self.queue.clear();
        (self.window, self.lossy) = (Window::default(), Window::default());
        (self.experiment, self.unanswered_since, self.starved_since) = (None, None, None);
    }

    /// Takes over another configured rate, as if nothing had been found out under the former one.
    pub fn configure(&mut self, aim: Aim, overhead: i64) {
        let fresh = Self::new(aim, overhead);
        let former = core::mem::replace(self, fresh);
        (self.queue, self.round_trip, self.losses) = (former.queue, former.round_trip, former.losses);
    }

    /// How fast to send; `None`: as fast as the carrier takes it.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Option<Rate> {
        if self.aim == Aim::Unlimited {
            return None;
        }
        let silent = self.unanswered_since.is_some_and(|at| now >= at + PATIENCE);
        let starved = self.starved_since.is_some_and(|since| now >= since + PATIENCE);
        let rate = if silent || starved { self.capacity * TRICKLE } else { self.rate };
        Some(Rate::from_bps(rate.max(LOWEST) as u64))
    }

    /// How fast to send for more than the present moment.
    #[must_use]
    pub fn capacity(&self) -> Option<Rate> {
        (self.aim != Aim::Unlimited).then(|| Rate::from_bps(self.capacity as u64))
    }

    /// What a train may find: what the last one did, if that was far more than is known.
    #[must_use]
    pub fn expected(&self) -> Option<Rate> {
        let last = self.trains.back().map_or(0.0, |train| train.1);
        let most = last.min(self.capacity * LONGEST_JUMP);
        let expected = if last > FAR_ABOVE * self.capacity { most } else { self.capacity };
        (self.aim != Aim::Unlimited).then(|| Rate::from_bps(expected as u64))
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.get()
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

    /// Whether trains of frames would tell anything that is not configured.
    #[must_use]
    pub fn wants_trains(&self) -> bool {
        self.aim == Aim::Find
    }

    /// Whether trains of padding may be sent at the start.
    #[must_use]
    pub fn wants_padding(&self) -> bool {
        match self.aim {
            Aim::Find => true,
            Aim::Known(rate) => rate >= SLOWEST_FOR_PADDING,
            Aim::Unlimited => false,
        }
    }

    /// Something has been sent that the other end is to answer.
    pub fn on_asked(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Takes what the other end says about what we sent.
    pub fn on_sample(&mut self, now: Instant, sample: &Sample) -> Option<Finding> {
        self.unanswered_since = None;
        self.round_trip.observe(now, sample.round_trip);
        self.present_round_trip = sample.round_trip;
        self.queue.observe(now, sample.delay);
        self.watch_circuit(now, sample);
        let is_outage = sample.missed >= OUTAGE && !self.was_outage;
        self.was_outage = sample.missed >= OUTAGE;
        match sample.span {
            Some(span) if !is_outage => self.observe(now, sample.sent_at, &span),
            _ => (self.window, self.lossy) = (Window::default(), Window::default()),
        }
        self.experiment(now, sample);
        self.control(now, sample);
        self.judge(now)
    }

    /// Takes what a train found; whether the next one should not wait.
    pub fn on_train(&mut self, now: Instant, passage: &Passage) -> bool {
        let Some(found) = self.found(passage) else { return false };
        if self.trains.len() == TRAINS {
            self.trains.pop_front();
        }
        self.trains.push_back((now, found));
        if self.present_round_trip == Duration::ZERO {
            self.present_round_trip = now.saturating_since(passage.sent_at);
        }
        let is_above = found > FAR_ABOVE * self.capacity;
        if passage.is_padding {
            self.open(now, found, passage);
            return false;
        }
        if self.aim != Aim::Find || now < self.jump.not_before || self.experiment.is_some() {
            return false;
        }
        let before = self.trains.iter().rev().nth(1).map_or(0.0, |train| train.1);
        let both = found.min(before).min(self.capacity * LONGEST_JUMP);
        if both > FAR_ABOVE * self.capacity && self.queue.standing() < self.target().saturating_mul(2) {
            self.set_capacity(now, both * TRUSTED, self.least_growth());
            self.jump.to = Some((self.capacity, now));
            return false;
        }
        is_above
    }

    /// Starts from what a train of padding found: a short one tells little.
    fn open(&mut self, now: Instant, found: f64, passage: &Passage) {
        let is_long = passage.is_long;
        if is_long && passage.sent.datagrams >= losses::SAMPLE {
            let arrived = passage.received.bytes as f64 / passage.sent.bytes.max(1) as f64;
            self.losses.accept((1.0 - arrived).clamp(0.0, 1.0));
        }
        match self.aim {
            Aim::Find if is_long => self.set_capacity(now, found * TRUSTED, self.least_growth()),
            Aim::Find if self.trains.len() == 1 => self.set_capacity(now, found, 1.0),
            Aim::Known(rate) if is_long && (rate.as_bps() as f64) < (1.0 - WRONG) * found => {
                self.too_slow = Some(found);
            }
            _ => {}
        }
    }

    fn set_capacity(&mut self, now: Instant, to: f64, growth: f64) {
        (self.capacity, self.rate) = (to, to);
        (self.growth, self.grown_at) = (growth, now);
        self.experiment = None;
        self.pace(now);
    }

    fn found(&self, passage: &Passage) -> Option<f64> {
        let sent = self.bits(passage.sent) as f64;
        let arrived = self.bits(passage.received) as f64 / (1.0 - self.losses.channel());
        let time = passage.received_in.max(passage.sent_in).max(SHORTEST_PASSAGE).as_secs_f64();
        // A part of it must have come, or what is measured is something else.
        (arrived * 4.0 > sent).then(|| sent.min(arrived) / time)
    }

    /// What trains found lately, the middle one.
    fn bottleneck(&self, now: Instant) -> Option<f64> {
        let mut recent: Vec<f64> =
            self.trains.iter().filter(|(at, _)| now < *at + TRAIN_MEMORY).map(|(_, found)| *found).collect();
        recent.sort_by(f64::total_cmp);
        recent.get(recent.len() / 2).copied()
    }

    fn bits(&self, totals: Totals) -> u64 {
        let overhead = totals.datagrams.cast_signed().saturating_mul(self.overhead);
        totals.bytes.saturating_add_signed(overhead).saturating_mul(8)
    }

    fn target(&self) -> Duration {
        let packets = TARGET_PACKETS * PACKET_BITS;
        let quarter = self.round_trip().map_or(TARGET.1, |time| Duration::from_nanos(time.as_nanos() / 4));
        quarter
            .clamp(TARGET.0, TARGET.1)
            .max(Duration::from_secs_f64(packets as f64 / self.capacity.max(LOWEST)))
    }

    fn settling(&self) -> Duration {
        let half = Duration::from_nanos(self.present_round_trip.as_nanos() / 2);
        SETTLING.max(half).max(self.target())
    }

    fn least_growth(&self) -> f64 {
        self.target().as_secs_f64() / self.settling().as_secs_f64()
    }

    /// What was allowed to leave since `since`, in bits per second: before the first rate that is remembered, as much as by that.
    fn allowed(&self, since: Instant, span: Duration) -> f64 {
        let until = since + span;
        let mut bits = 0.0;
        let mut end = until;
        for (from, rate) in self.paced.iter().rev() {
            let from = (*from).max(since);
            if from < end {
                bits += rate * end.saturating_since(from).as_secs_f64();
                end = from;
            }
        }
        let first = self.paced.front().map_or(self.rate, |(_, rate)| *rate);
        bits += first * end.saturating_since(since).as_secs_f64();
        bits / span.as_secs_f64().max(1e-9)
    }

    /// Takes in what left and arrived between two stamps, and acts on it once it is enough.
    fn observe(&mut self, now: Instant, sent_at: Instant, span: &Span) {
        let since = Instant::from_nanos(sent_at.as_nanos().saturating_sub(span.sent_in.as_nanos()));
        let is_busy = self.queue.standing().saturating_mul(2) >= self.target();
        for window in [&mut self.window, &mut self.lossy] {
            window.is_busy = is_busy && (window.is_busy || window.since.is_none());
            window.since.get_or_insert(since);
            window.span.add(span);
        }
        if self.window.is_full(WINDOW) {
            let window = core::mem::take(&mut self.window);
            self.measure(now, &window);
        }
        if self.lossy.is_full(LOSS_WINDOW) {
            let window = core::mem::take(&mut self.lossy);
            self.watch_losses(now, &window);
        }
    }

    fn is_used(&self, window: &Window) -> bool {
        let Some(since) = window.since else { return false };
        let allowed = self.allowed(since, window.span.sent_in);
        self.bits(window.span.sent) as f64 >= USED * allowed * window.span.sent_in.as_secs_f64()
    }

    fn measure(&mut self, now: Instant, window: &Window) {
        let Window { span, is_busy, .. } = window;
        let (sent_in, received_in) = (span.sent_in.as_secs_f64(), span.received_in.as_secs_f64());
        if sent_in <= 0.0 || received_in <= 0.0 || self.aim == Aim::Unlimited {
            return;
        }
        let sent = self.bits(span.sent) as f64;
        let arrived = self.bits(span.received) as f64 / (1.0 - self.losses.channel());
        // A bottleneck lets through what the channel then loses, but not what its own queue drops.
        let through = if self.losses.are_some(span) { arrived.min(sent) } else { sent };
        let (offered, carried) = (sent / sent_in, through / received_in);
        self.overflows = self.losses.are_some(span);
        if self.overflows {
            (self.growth, self.grown_at) = (self.least_growth(), now);
        }
        let differs = (carried - offered).abs() > DIFFERENCE * offered;
        self.carried = (*is_busy && self.is_used(window)).then_some(carried);
        if *is_busy && differs && (carried > offered || self.is_used(window)) {
            self.check_jump(now, carried);
            self.capacity = carried;
            self.growth = self.least_growth();
            self.grown_at = now;
        } else if self.is_used(window) && (offered.min(carried) > self.capacity || !is_busy) {
            let before = self.capacity;
            self.capacity = self.capacity.max(offered.min(carried));
            let pause = self.present_round_trip.max(WINDOW.0);
            // Only what was sent beyond what is known shows that there is more.
            let was_probed = offered >= 0.98 * before && !self.overflows;
            let is_empty = self.queue.newest() < self.target();
            if !is_busy && was_probed && is_empty && now >= self.grown_at + pause {
                self.growth = (self.growth * 2.0).clamp(self.least_growth(), 1.0);
                self.grown_at = now;
            }
        }
        if now < self.shared_until {
            self.share(now);
        }
    }

    /// Whether somebody else keeps a queue at the bottleneck, as far as is known.
    fn is_contended(&self, now: Instant) -> bool {
        now < self.shared_until && self.queue.is_accepted()
    }

    /// While that queue overflows there may be several others: the share becomes less, and more again when it does not.
    fn contend(&mut self, now: Instant, overflows: bool) {
        if !overflows {
            self.share = (self.share + SHARE_GAIN).min(SHARE);
        } else if now >= self.share_cut_at + SHARE_CUT_EVERY {
            self.share = (self.share * SHARE_CUT).max(LEAST_SHARE);
            self.share_cut_at = now;
        }
        if overflows {
            self.failures = self.failures.max(2);
            self.shared_until = self.shared_until.max(now + PATIENCE);
        }
    }

    /// Takes a share of the bottleneck while somebody else keeps a queue there: no less, and no more once that is sure.
    fn share(&mut self, now: Instant) {
        let Some(found) = self.bottleneck(now) else { return };
        self.capacity = self.capacity.max(found * self.share);
        if self.failures > 1 && self.queue.is_accepted() {
            self.capacity = self.capacity.min(found * self.share);
            (self.growth, self.grown_at) = (self.least_growth(), now);
        }
    }

    /// Whether the latest jump went too high.
    fn check_jump(&mut self, now: Instant, carried: f64) {
        let Some((to, at)) = self.jump.to else { return };
        if now < at + self.present_round_trip {
            return;
        }
        if carried < 0.8 * to {
            self.jump.not_before = now + self.jump.pause;
            self.jump.pause = self.jump.pause.saturating_mul(2).min(JUMP_PAUSE.1);
        } else {
            self.jump.pause = JUMP_PAUSE.0;
        }
        self.jump.to = None;
    }

    /// RFC 8084: whether nearly nothing has arrived for long. What ends that is traffic that does arrive.
    fn watch_circuit(&mut self, now: Instant, sample: &Sample) {
        let Some(span) = sample.span else { return };
        if losses::share(&span).is_some_and(|share| share > STARVED) {
            self.starved_since.get_or_insert(now.saturating_sub(span.sent_in));
        }
    }

    /// Losses beyond the channel's: ours, if there are fewer when less is sent.
    fn watch_losses(&mut self, now: Instant, window: &Window) {
        let share = losses::share(&window.span).unwrap_or(0.0);
        if share < STARVED / 2.0 {
            self.starved_since = None;
        }
        match self.experiment {
            Some(experiment) if experiment.cause == Cause::Losses => {
                if window.since.is_none_or(|since| since < experiment.since) {
                    return;
                }
                self.experiment = None;
                self.losses.accept(share);
                if share > experiment.losses / 2.0 {
                    self.capacity = self.capacity.max(experiment.capacity);
                    self.loss_quiet.lengthen(now);
                } else {
                    self.capacity /= 1.0 - share;
                    self.loss_quiet = Quiet::default();
                }
            }
            None => {
                self.losses.observe(&window.span);
                if self.is_contended(now) {
                    return self.contend(now, self.losses.are_more(&window.span));
                }
                let is_worse = self.losses.are_more(&window.span) || self.losses.last();
                // What was accepted may have been ours after all: it is tried again now and then.
                let is_doubtful = self.loss_quiet.is_after_failure() && share > 0.0;
                let may_begin = self.is_used(window) && share <= STARVED && now >= self.loss_quiet.until;
                if (is_worse || is_doubtful) && may_begin {
                    self.begin(now, Cause::Losses, share);
                    // So much certainly passes.
                    let arrived = self.bits(window.span.received) as f64;
                    let carried = arrived / window.span.received_in.as_secs_f64().max(1e-9);
                    self.check_jump(now, carried);
                    self.capacity = self.capacity.min(carried);
                }
            }
            Some(_) => {}
        }
    }

    fn begin(&mut self, now: Instant, cause: Cause, losses: f64) {
        self.experiments += 1;
        let queue = self.queue.standing();
        self.experiment = Some(Experiment { cause, since: now, capacity: self.capacity, queue, losses });
    }

    /// A queue that does not drain is somebody else's, or the path is longer than it was.
    fn experiment(&mut self, now: Instant, sample: &Sample) {
        let standing = self.queue.standing();
        let Some(experiment) = &mut self.experiment else {
            if standing >= self.target().saturating_mul(HIGH) && now >= self.queue_quiet.until {
                self.begin(now, Cause::Queue, 0.0);
                self.capacity = self.capacity.min(self.carried.unwrap_or(self.capacity));
            }
            return;
        };
        if experiment.cause != Cause::Queue {
            return;
        }
        if sample.sent_at < experiment.since {
            // It left before, and found what was under way.
            experiment.queue = experiment.queue.max(standing);
            return;
        }
        let (since, queue) = (experiment.since, experiment.queue);
        if standing.saturating_mul(2) <= queue || standing < self.target().saturating_mul(2) {
            self.experiment = None;
            self.queue_quiet = Quiet::default();
            self.failures = 0;
        } else if sample.sent_at >= since + queue.saturating_mul(3) + self.settling() {
            self.experiment = None;
            self.queue.accept(now);
            self.queue_quiet.lengthen(now);
            self.failures += 1;
            self.shared_until = self.queue_quiet.until + PATIENCE;
            self.share(now);
        }
    }

    /// Sets the rate by the queue that what leaves now will meet.
    fn control(&mut self, now: Instant, sample: &Sample) {
        if self.aim == Aim::Unlimited {
            return;
        }
        let queue = self.queue.standing().as_secs_f64();
        let least = self.least_growth();
        let under_way = self.bits(sample.after) as f64 / self.capacity;
        let coming = under_way - now.saturating_since(sample.sent_at).as_secs_f64();
        // While the capacity is only known to be no less, what is under way is no queue.
        let is_known = self.growth <= least * 1.01;
        let ahead = if is_known || coming < 0.0 { (queue + coming).max(0.0) } else { queue };
        if now >= self.drained_at + DRAIN_EVERY {
            self.drained_at = now;
        }
        let drain_for =
            if self.queue.is_accepted() { self.present_round_trip.min(LONGEST_DRAIN) } else { DRAIN_FOR };
        let drains = now < self.drained_at + drain_for && self.drained_at > Instant::ZERO;
        // Twice as deep as it should be, in case the path's own delay has not been seen for long.
        let target = self.target().as_secs_f64() * if drains { -1.0 } else { 1.0 };
        let mut wanted = (target - ahead) / self.settling().as_secs_f64();
        if drains && self.queue.is_accepted() {
            wanted = wanted.min(DEEP_DRAIN);
        }
        let floor = match self.experiment {
            Some(Experiment { cause: Cause::Losses, .. }) => -0.5,
            Some(_) => -0.5,
            None if now < self.queue_quiet.until => -0.05,
            None => -0.5,
        };
        let grows = ahead <= target && !drains;
        let most = if self.overflows { 0.0 } else { 1.0 };
        let mut gain = if grows && !is_known { self.growth.max(wanted) } else { wanted.max(floor) }.min(most);
        if matches!(self.experiment, Some(Experiment { cause: Cause::Losses, .. })) {
            gain = gain.min(-0.1);
        }
        self.rate = self.capacity * (1.0 + gain);
        self.pace(now);
    }

    fn pace(&mut self, now: Instant) {
        if let Aim::Known(rate) = self.aim {
            let most = rate.as_bps() as f64;
            (self.capacity, self.rate) = (self.capacity.min(most), self.rate.min(most));
        }
        self.capacity = self.capacity.max(LOWEST);
        if self.paced.len() == PACED {
            self.paced.pop_front();
        }
        self.paced.push_back((now, self.rate.max(LOWEST)));
    }

    /// What to tell.
    fn judge(&mut self, now: Instant) -> Option<Finding> {
        if let Some(found) = self.too_slow.take()
            && !self.is_slow_told
        {
            self.is_slow_told = true;
            return Some(Finding::TooSlow { measured: Rate::from_bps(found as u64).rounded() });
        }
        let measured = |bits: f64| Rate::from_bps(bits as u64).rounded();
        match self.aim {
            Aim::Find => {
                let is_new =
                    self.told.is_none_or(|told| self.capacity > 1.5 * told || self.capacity < told / 1.5);
                // Growth is over, and has been for a while.
                let is_settled = self.growth <= self.least_growth() * 1.01;
                if !(is_new && is_settled) {
                    self.wrong_since = None;
                    return None;
                }
                self.lasts(now).then(|| {
                    self.told = Some(self.capacity);
                    Finding::Found { measured: measured(self.capacity) }
                })
            }
            Aim::Known(rate) => {
                let configured = rate.as_bps() as f64;
                if self.capacity >= (1.0 - WRONG) * configured {
                    self.wrong_since = None;
                    return None;
                }
                (self.told.is_none() && self.lasts(now)).then(|| {
                    self.told = Some(self.capacity);
                    Finding::TooFast {
                        measured: measured(self.capacity),
                        queueing: self.queue.standing(),
                        lost: 0,
                    }
                })
            }
            Aim::Unlimited => None,
        }
    }

    /// Whether what is wrong has been so for long enough.
    fn lasts(&mut self, now: Instant) -> bool {
        now >= *self.wrong_since.get_or_insert(now) + WRONG_FOR
    }
}

/// Rates that are remembered.
const PACED: usize = 128;
/// How long a smallest round trip holds.
const ROUND_TRIP_MEMORY: Duration = Duration::from_secs(300);

impl Window {
    fn is_full(&self, (time, datagrams): (Duration, u64)) -> bool {
        self.span.received_in >= time && self.span.sent.datagrams >= datagrams
    }
}
