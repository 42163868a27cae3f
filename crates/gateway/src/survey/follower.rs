//! Following the carrier: how fast to send where it does not carry the configured rate.
//!
//! Loss alone says nothing here: the links that this gateway is for lose packets whatever their load. A queue in front of the
//! carrier's bottleneck shows as delay beyond the smallest seen, but so does a longer path or somebody else's queue. What tells
//! them apart is an experiment:
//!
//! 1. **Watch** delay above a bound, or more loss than is known to be the channel's, that lasts for two seconds, and measure
//!    what arrives meanwhile: a bottleneck that is always busy lets through what it carries.
//! 2. **Drain**: send half of that. If delay or loss goes down, it was our doing; if not, everything stays as it was, and
//!    there is no further experiment for a while.
//! 3. **Follow**: send what was measured, and after a while try a little more, up to the configured rate.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use super::minimum::Minimum;
use super::report::{Sample, Span, Totals};

/// Decides the rate to send at.
#[derive(Debug)]
pub struct Follower {
    configured: Option<Rate>,
    /// Bytes that a datagram occupies on the line besides its own.
    overhead: i64,
    state: State,
    /// What is followed at present; `None` while the configured rate holds.
    followed: Option<Rate>,
    delay: Minimum<i64>,
    round_trip: Minimum<Duration>,
    /// Shares of bytes lost lately while no queue stood, the newest last: the channel's losses, not the bottleneck's.
    losses: VecDeque<f64>,
    /// The share of bytes that was lost all the same when less was sent.
    accepted_loss: f64,
    /// Delay beyond the smallest, as of the newest sample.
    queueing: Duration,
    /// After a false alarm there is none before this.
    quiet_until: Instant,
    alarm_pause: Duration,
    raise_at: Instant,
    raise_pause: Duration,
    told: Option<Rate>,
    /// Times at which the rate was followed downward.
    pub reductions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Calm,
    Watch(Watch),
    Drain(Drain),
}

/// What arrived while something was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Watch {
    all: Span,
    /// The part of it that is being measured.
    part: Span,
    parts: u32,
    /// The largest of the parts' rates: blockages make others smaller.
    best: u64,
}

/// What happens when less is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drain {
    since: Instant,
    /// What arrived before, in bits per second, and what was wrong.
    arrived: u64,
    queueing: Duration,
    loss: f64,
    /// Whether a sample began within the experiment, so that the next one's span does.
    begun: bool,
    all: Span,
}

/// What whoever runs the gateway should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The carrier carries less than is sent; it is paced at what it carries.
    TooFast {
        /// What it carries, with all headers.
        measured: Rate,
        /// How long packets waited.
        queueing: Duration,
        /// How many bytes of a hundred were lost.
        lost: u8,
    },
    /// The configured rate is carried again.
    Recovered,
}

/// A queue that stands longer than this is noticed, or than a quarter of a round trip: TCP's own bursts are shorter.
const BOUND: Duration = Duration::from_millis(100);
/// And than this many packets of 1500 bytes at the present rate.
const BOUND_BITS: u64 = 4 * 1500 * 8;
/// Loss beyond the channel's that is noticed: more than it varies by in a few seconds.
const LOSS_BOUND: f64 = 0.1;
/// How long either must last: outages of links that repeat frames below us are shorter.
const PERSISTENCE: Duration = Duration::from_secs(2);
/// An arrival rate is measured over at least this, and this often.
const PART: Duration = Duration::from_millis(400);
const PARTS: u32 = 3;
/// What is followed is a little below what was measured, so that the rest of the queue drains.
const MARGIN: f64 = 0.97;
/// The followed rate never goes below one part in this many of the configured one, or this.
const LOWEST_SHARE: u64 = 50;
const LOWEST: Rate = Rate::from_bps(8_000);
/// Growth of a followed rate in a second of sending at it.
const GROWTH: f64 = 0.01;
/// Before a followed rate grows: at first, and at most, doubled each time that growing was too much.
const RAISE_PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(160));
/// After a false alarm, likewise.
const ALARM_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(960));
/// How long smallest values hold: longer than a congested hour's calm moments are apart, shorter than clocks drift far.
const MEMORY: Duration = Duration::from_secs(300);
/// An experiment takes at least this long, so that a share of losses can be told.
const SHORTEST_DRAIN: Duration = Duration::from_secs(1);
/// A share of losses counts from this many datagrams on.
const LOSS_SAMPLE: u64 = 5;
const LOSSES_KEPT: usize = 31;

impl Follower {
    /// For a line of this rate, `None` if nobody knows it, on which a datagram takes `overhead` bytes besides its own.
    #[must_use]
    pub fn new(configured: Option<Rate>, overhead: i64) -> Self {
        Self {
            configured,
            overhead,
            state: State::Calm,
            followed: None,
            delay: Minimum::over(MEMORY),
            round_trip: Minimum::over(MEMORY),
            losses: VecDeque::new(),
            accepted_loss: 0.0,
            queueing: Duration::ZERO,
            quiet_until: Instant::ZERO,
            alarm_pause: ALARM_PAUSE.0,
            raise_at: Instant::ZERO,
            raise_pause: RAISE_PAUSE.0,
            told: None,
            reductions: 0,
        }
    }

    /// The other end's clock is another one from now on.
    pub const fn restart(&mut self) {
        self.state = State::Calm;
        self.delay.clear();
    }

    /// Takes over another configured rate, as if nothing had been found out about the former one.
    pub fn configure(&mut self, configured: Option<Rate>, overhead: i64) {
        *self = Self { delay: self.delay, round_trip: self.round_trip, ..Self::new(configured, overhead) };
    }

    /// How fast to send; `None`: as fast as the carrier takes it.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        match self.state {
            State::Drain(drain) => Some(self.bounded(drain.arrived / 2)),
            _ => self.lasting_rate(),
        }
    }

    /// How fast to send but for an experiment.
    #[must_use]
    pub fn lasting_rate(&self) -> Option<Rate> {
        self.followed.or(self.configured)
    }

    /// The rate that is followed instead of the configured one.
    #[must_use]
    pub const fn followed(&self) -> Option<Rate> {
        self.followed
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.get()
    }

    /// How long the newest sample waited on the path.
    #[must_use]
    pub const fn queueing(&self) -> Duration {
        self.queueing
    }

    /// Takes what the other end says about what we sent.
    pub fn on_sample(&mut self, now: Instant, sample: &Sample) -> Option<Finding> {
        self.round_trip.observe(now, sample.round_trip);
        self.delay.observe(now, sample.delay);
        let smallest = self.delay.get().unwrap_or(sample.delay);
        self.queueing = Duration::from_nanos(sample.delay.saturating_sub(smallest).cast_unsigned());
        let is_lossy = sample.span.and_then(|span| loss(&span)).is_some_and(|loss| loss > self.loss_bound());
        match self.state {
            // What left before says nothing about it.
            State::Drain(drain) if sample.sent_at < drain.since => None,
            State::Drain(drain) => self.drain(now, sample, drain),
            _ if self.queueing <= self.bound() && !is_lossy => {
                self.state = State::Calm;
                sample.span.and_then(|span| self.calm(now, &span))
            }
            State::Calm => {
                self.state = State::Watch(Watch::default());
                None
            }
            State::Watch(watch) => {
                if let Some(span) = sample.span {
                    self.watch(now, watch, &span);
                }
                None
            }
        }
    }

    fn observe_loss(&mut self, span: &Span) {
        if let Some(loss) = loss(span) {
            if self.losses.len() == LOSSES_KEPT {
                self.losses.pop_front();
            }
            self.losses.push_back(loss);
        }
    }

    /// The median, which blockages that last longer than a report's interval leave alone.
    fn channel_loss(&self) -> f64 {
        let mut losses: Vec<f64> = self.losses.iter().copied().collect();
        losses.sort_by(f64::total_cmp);
        losses.get(losses.len() / 2).copied().unwrap_or(0.0)
    }

    const fn loss_bound(&self) -> f64 {
        self.accepted_loss + LOSS_BOUND
    }

    /// A queue that stands longer than this is too long.
    fn bound(&self) -> Duration {
        let packets = self.rate().map_or(Duration::ZERO, |rate| rate.time_for(BOUND_BITS));
        let quarter = Duration::from_nanos(self.round_trip().map_or(0, |time| time.as_nanos() / 4));
        BOUND.max(quarter).max(packets)
    }

    fn bounded(&self, bits: u64) -> Rate {
        let lowest = self.configured.map_or(LOWEST.as_bps(), |rate| rate.as_bps() / LOWEST_SHARE);
        Rate::from_bps(bits.max(lowest).min(self.configured.map_or(u64::MAX, Rate::as_bps)))
    }

    fn bits(&self, totals: Totals) -> u64 {
        let overhead = (totals.datagrams.cast_signed()).saturating_mul(self.overhead);
        totals.bytes.saturating_add_signed(overhead).saturating_mul(8)
    }

    /// No queue: what is lost is the channel's doing, and a followed rate may grow.
    fn calm(&mut self, now: Instant, span: &Span) -> Option<Finding> {
        self.observe_loss(span);
        if self.losses.len() == LOSSES_KEPT {
            // What an outage had us accept is over.
            self.accepted_loss = self.accepted_loss.min(self.channel_loss());
        }
        let rate = self.followed?;
        let sent = self.bits(span.sent) as f64;
        let used = sent >= 0.9 * rate.bits_in(span.sent_in) as f64;
        let little = Duration::from_nanos(self.bound().as_nanos() / 4);
        if !used || now < self.raise_at || self.queueing > little {
            return None;
        }
        let grown = rate.as_bps() as f64 * (1.0 + GROWTH * span.sent_in.as_secs_f64().min(1.0));
        let grown = Rate::from_bps(grown.ceil() as u64);
        self.followed = Some(grown);
        if self.configured.is_none_or(|configured| grown < configured) {
            return None;
        }
        self.followed = None;
        self.told.take().map(|_| Finding::Recovered)
    }

    fn watch(&mut self, now: Instant, mut watch: Watch, span: &Span) {
        watch.all.add(span);
        watch.part.add(span);
        if watch.part.received_in >= PART {
            let bits = u128::from(self.bits(watch.part.received)) * 1_000_000_000;
            let rate = bits / u128::from(watch.part.received_in.as_nanos());
            watch.best = watch.best.max(u64::try_from(rate).unwrap_or(u64::MAX));
            watch.parts += 1;
            watch.part = Span::default();
        }
        self.state = State::Watch(watch);
        let lasts = watch.all.received_in >= PERSISTENCE && watch.parts >= PARTS;
        let loss = loss(&watch.all).unwrap_or(0.0);
        // A few packets are no queue, however long a step in the delay is.
        let queued = Rate::from_bps(watch.best).bits_in(self.queueing);
        let is_ours = queued >= BOUND_BITS || loss > self.loss_bound();
        if lasts && is_ours && now >= self.quiet_until {
            self.state = State::Drain(Drain {
                since: now,
                arrived: watch.best,
                queueing: self.queueing,
                loss,
                begun: false,
                all: Span::default(),
            });
        }
    }

    /// Whether it was our doing shows when less is sent.
    fn drain(&mut self, now: Instant, sample: &Sample, mut drain: Drain) -> Option<Finding> {
        if let (true, Some(span)) = (drain.begun, sample.span) {
            drain.all.add(&span);
            self.observe_loss(&span);
        }
        drain.begun = true;
        self.state = State::Drain(drain);
        let bound = self.bound();
        let had_queue = drain.queueing > bound;
        let drained = had_queue && self.queueing.saturating_mul(2) <= bound;
        let patience = SHORTEST_DRAIN.max(drain.queueing.saturating_mul(3));
        if !drained && sample.sent_at < drain.since + patience {
            return None;
        }
        self.state = State::Calm;
        let remaining = loss(&drain.all);
        let less_queue = had_queue && self.queueing.as_nanos() <= drain.queueing.as_nanos() / 10 * 7;
        let less_loss =
            drain.loss > self.loss_bound() && remaining.is_some_and(|loss| loss <= drain.loss / 2.0);
        if less_queue || less_loss {
            return self.follow(now, &drain);
        }
        // Not our queue, and not our losses: they are how the path is now.
        self.delay.clear();
        self.delay.observe(now, sample.delay);
        self.accepted_loss = self.accepted_loss.max(remaining.unwrap_or(0.0));
        self.quiet_until = now + self.alarm_pause;
        self.alarm_pause = self.alarm_pause.saturating_mul(2).min(ALARM_PAUSE.1);
        None
    }

    /// What arrived is what the bottleneck carries, less what the channel loses.
    fn follow(&mut self, now: Instant, drain: &Drain) -> Option<Finding> {
        let carried = drain.arrived as f64 / (1.0 - self.channel_loss());
        let before = self.lasting_rate().map_or(u64::MAX, Rate::as_bps);
        let measured = self.bounded((carried as u64).min(before));
        let near = |former: Rate| former.as_bps().abs_diff(measured.as_bps()) < measured.as_bps() / 5;
        self.raise_pause = match self.told {
            Some(former) if near(former) => self.raise_pause.saturating_mul(2).min(RAISE_PAUSE.1),
            _ => RAISE_PAUSE.0,
        };
        self.raise_at = now + self.raise_pause;
        self.alarm_pause = ALARM_PAUSE.0;
        self.reductions += 1;
        self.followed = Some(self.bounded((measured.as_bps() as f64 * MARGIN) as u64));
        if self.told.is_some_and(near) {
            return None;
        }
        self.told = Some(measured);
        Some(Finding::TooFast {
            measured: measured.rounded(),
            queueing: drain.queueing,
            lost: (drain.loss * 100.0) as u8,
        })
    }
}

/// The share of bytes lost, if enough left to tell.
fn loss(span: &Span) -> Option<f64> {
    let arrived = span.received.bytes as f64 / span.sent.bytes.max(1) as f64;
    (span.sent.datagrams >= LOSS_SAMPLE).then(|| (1.0 - arrived).clamp(0.0, 0.9))
}
