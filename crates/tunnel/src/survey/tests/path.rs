//! A path with a bottleneck, packet by packet: two surveys at its ends, and perhaps another flow through the same queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, Rate, Rng};

use crate::survey::rate::{Aim, Finding};
use crate::survey::{Control, Survey};

/// Bytes of a datagram without headers, and what the line adds.
const LEN: u64 = 1472;
const HEADER: u64 = 28;
const PACKET_BITS: u64 = (LEN + HEADER) * 8;

/// What the path does.
#[derive(Clone)]
pub(super) struct Path {
    /// Mbit/s from a time in seconds on.
    pub(super) rates: Vec<(f64, f64)>,
    /// One way.
    pub(super) delay: Duration,
    /// The longest that a packet waits; what would wait longer is dropped.
    pub(super) queue: Duration,
    /// What the channel loses behind the queue, from a time in seconds on.
    pub(super) losses: Vec<(f64, f64)>,
    /// What one packet takes more than another, at most, without overtaking it.
    pub(super) jitter: Duration,
    /// From this time on the path is so much longer.
    pub(super) longer: Option<(f64, Duration)>,
    /// Bytes that pass at once, refilled at this rate in Mbit/s, before anything is dropped.
    pub(super) policer: Option<(f64, f64)>,
    /// Nothing passes for so long, so often.
    pub(super) blocked: Option<(Duration, Duration)>,
    /// What we have to send in Mbit/s, from a time on; all that may leave unless told.
    pub(super) wanted: Vec<(f64, f64)>,
    /// Somebody on the path, from a time in seconds to another.
    pub(super) attacker: Option<(Attack, f64, f64)>,
    /// Somebody else, from a time in seconds to another.
    pub(super) other: Option<(Other, f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Other {
    /// At so many Mbit/s.
    Constant(f64),
    /// As much as BBR: paced at what it got at best, twice that under way at most.
    Bbr,
    /// A window that grows by a packet a round trip and is halved by a loss.
    Reno,
}

/// What somebody on the path does to datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Attack {
    /// Copies this part of them, control datagrams among them, and delivers the copies so much earlier.
    Copies(f64, Duration),
    /// Drops all that is as short as control datagrams are.
    DropsControl,
    /// Delivers all that so much later.
    DelaysControl(Duration),
}

impl Path {
    pub(super) fn new(megabits: f64, round_trip: u64) -> Self {
        Self {
            rates: vec![(0.0, megabits)],
            delay: Duration::from_micros(round_trip * 500),
            queue: Duration::from_millis(round_trip.max(20)),
            losses: vec![(0.0, 0.0)],
            jitter: Duration::ZERO,
            longer: None,
            policer: None,
            blocked: None,
            wanted: vec![(0.0, f64::INFINITY)],
            attacker: None,
            other: None,
        }
    }
}

fn at(steps: &[(f64, f64)], now: Instant) -> f64 {
    let now = now.as_secs_f64();
    steps.iter().rev().find(|(from, _)| *from <= now).map_or(0.0, |step| step.1)
}

#[derive(Debug)]
enum Event {
    /// We may send.
    Turn,
    /// Of ours, at the other end; `None`: data.
    Arrival(Option<Control>),
    /// From the other end.
    Answer(Control),
    /// A frame from there that acknowledges more data.
    Progress,
    /// The other flow may send.
    OtherTurn,
    /// Its acknowledgement: when the packet left, and what had been delivered then.
    OtherAck(Instant, u64),
    OtherLoss,
}

/// What came of it, in tenths of a second.
#[derive(Default)]
pub(super) struct Outcome {
    /// Mbit/s of ours that passed the bottleneck, lost behind it or not.
    pub(super) passed: Vec<f64>,
    pub(super) other: Vec<f64>,
    /// Milliseconds that a packet would have waited.
    pub(super) queue: Vec<f64>,
    pub(super) findings: Vec<(f64, Finding)>,
    /// Whether nothing was paced.
    pub(super) unlimited: Vec<bool>,
    pub(super) dropped: u64,
    pub(super) sent: u64,
}

impl Outcome {
    /// The mean from one time to another, in seconds.
    pub(super) fn mean(series: &[f64], from: f64, to: f64) -> f64 {
        let part = &series[(from * 10.0) as usize..((to * 10.0) as usize).min(series.len())];
        part.iter().sum::<f64>() / part.len() as f64
    }

    pub(super) fn passed(&self, from: f64, to: f64) -> f64 {
        Self::mean(&self.passed, from, to)
    }

    /// What part of the datagrams the bottleneck dropped.
    pub(super) fn drop_share(&self) -> f64 {
        self.dropped as f64 / self.sent.max(1) as f64
    }

    pub(super) fn median_queue(&self, from: f64, to: f64) -> f64 {
        let mut part = self.queue[(from * 10.0) as usize..(to * 10.0) as usize].to_vec();
        part.sort_by(f64::total_cmp);
        part[part.len() / 2]
    }
}

/// The other flow.
struct Rival {
    kind: Other,
    from: Instant,
    to: Instant,
    delivered: u64,
    under_way: u64,
    window: f64,
    /// Its delivery rates in bits per second, by round trip.
    rates: VecDeque<(Instant, f64)>,
    shortest: Duration,
    round: u64,
    round_at: Instant,
    halved_at: Instant,
    probed_at: Instant,
}

pub(super) struct World {
    path: Path,
    near: Survey,
    far: Survey,
    now: Instant,
    events: BTreeMap<Reverse<(Instant, u64)>, Event>,
    count: u64,
    /// When the bottleneck is free.
    free_at: Instant,
    /// When our pacer is.
    paced: Instant,
    last_arrival: Instant,
    tokens: (f64, Instant),
    rng: Rng,
    rival: Option<Rival>,
    /// Datagrams of a train that are still to leave.
    train: Option<u64>,
    /// Of the attacker's, so that the path is the same without him.
    attack_rng: Rng,
    /// When the newest frame that acknowledges data left.
    acked_at: Instant,
    outcome: Outcome,
}

/// Between two turns of a sender that has nothing or may not.
const TICK: Duration = Duration::from_millis(1);
/// Bits per second that the machine sends at most.
const MACHINE: f64 = 1e9;
/// Between two frames that acknowledge data.
const ACKNOWLEDGED: Duration = Duration::from_millis(50);

impl World {
    pub(super) fn new(aim: Aim, path: Path, seed: u64) -> Self {
        let survey = |aim| Survey::new(aim, HEADER as i64, (Some(576), 1500), 61);
        let seconds = |at: f64| Instant::ZERO + Duration::from_secs_f64(at);
        let rival = path.other.map(|(kind, from, to)| Rival {
            kind,
            from: seconds(from),
            to: seconds(to),
            delivered: 0,
            under_way: 0,
            window: 10.0,
            rates: VecDeque::new(),
            shortest: Duration::MAX,
            round: 0,
            round_at: Instant::ZERO,
            halved_at: Instant::ZERO,
            probed_at: Instant::ZERO,
        });
        let mut world = Self {
            near: survey(aim),
            far: survey(Aim::Unlimited),
            now: Instant::ZERO,
            events: BTreeMap::new(),
            count: 0,
            free_at: Instant::ZERO,
            paced: Instant::ZERO,
            last_arrival: Instant::ZERO,
            tokens: (path.policer.map_or(0.0, |policer| policer.0), Instant::ZERO),
            rng: Rng::named(seed, "path"),
            rival,
            train: None,
            attack_rng: Rng::named(seed, "attacker"),
            acked_at: Instant::ZERO,
            outcome: Outcome::default(),
            path,
        };
        world.near.on_established(true);
        world.far.on_established(true);
        world.push(TICK, Event::Turn);
        if let Some(rival) = &world.rival {
            let from = rival.from.saturating_since(Instant::ZERO);
            world.push(from, Event::OtherTurn);
        }
        world
    }

    fn push(&mut self, after: Duration, event: Event) {
        self.count += 1;
        self.events.insert(Reverse((self.now + after, self.count)), event);
    }

    pub(super) fn run(mut self, seconds: u64) -> Outcome {
        let end = Instant::ZERO + Duration::from_secs(seconds);
        let bins = seconds as usize * 10;
        (self.outcome.passed, self.outcome.other) = (vec![0.0; bins + 1], vec![0.0; bins + 1]);
        while let Some((Reverse((at, _)), event)) = self.events.pop_last() {
            self.now = at;
            while self.outcome.queue.len() < (at.as_nanos() / 100_000_000) as usize {
                let waits = self.free_at.saturating_since(at).as_secs_f64() * 1000.0;
                self.outcome.queue.push(waits);
                self.outcome.unlimited.push(self.near.rate_controller.rate(at).is_none());
            }
            if at >= end {
                break;
            }
            self.handle(event);
        }
        self.outcome
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Turn => self.turn(),
            Event::Arrival(control) => {
                self.far.reports.on_received(datagram_len(control.as_ref()));
                match control {
                    Some((kind, body)) => _ = self.far.handle_control(self.now, kind, &body),
                    None => self.acknowledge(),
                }
                self.answer();
            }
            Event::Answer((kind, body)) => {
                self.near.reports.on_received(body.len() as u64);
                self.near.handle_control(self.now, kind, &body);
                while let Some(finding) = self.near.poll_finding() {
                    self.outcome.findings.push((self.now.as_secs_f64(), finding));
                }
            }
            Event::Progress => self.near.on_progress(self.now),
            Event::OtherTurn => self.rival_turn(),
            Event::OtherAck(sent_at, delivered) => self.rival_ack(sent_at, delivered),
            Event::OtherLoss => self.rival_loss(),
        }
    }

    /// Data have come: a frame says so now and then.
    fn acknowledge(&mut self) {
        self.far.reports.on_traffic();
        if self.now >= self.acked_at + ACKNOWLEDGED && !self.rng.chance(at(&self.path.losses, self.now)) {
            self.acked_at = self.now;
            self.push(self.path.delay, Event::Progress);
        }
    }

    fn answer(&mut self) {
        while let Some(control) = self.far.poll_control(self.now) {
            if !self.rng.chance(at(&self.path.losses, self.now))
                && let Some(arrives) = self.attacked(self.now + self.path.delay, true)
            {
                self.push(arrives.saturating_since(self.now), Event::Answer(control));
            }
        }
    }

    /// What the daemon does in a turn of its loop.
    fn turn(&mut self) {
        self.answer();
        while let Some(control) = self.near.poll_control(self.now) {
            self.send(Some(control));
        }
        let wanted = at(&self.path.wanted, self.now);
        let waiting = if wanted.is_infinite() { 1 << 20 } else { 0 };
        if let Some((train, mark)) = self.near.poll_train(self.now, 1500, waiting) {
            self.send(Some(mark.clone()));
            if train.padded {
                self.send(Some(mark));
                (0..train.datagrams).for_each(|_| self.send(Some(self.near.padding())));
                let mark = self.near.end_train(self.now);
                self.send(Some(mark.clone()));
                self.send(Some(mark));
            } else {
                self.train = Some(train.datagrams);
            }
        }
        let capacity = self.near.rate_controller.capacity();
        self.near.set_rate(capacity);
        self.far.set_rate(capacity);
        let rate = self.near.rate_controller.rate(self.now).map_or(MACHINE, |rate| rate.as_bps() as f64);
        let rate = Rate::from_bps(rate.min(wanted * 1e6).min(MACHINE) as u64);
        while let Some(left) = self.train {
            if left == 0 {
                let mark = self.near.end_train(self.now);
                self.send(Some(mark));
                self.train = None;
            } else {
                self.data(rate);
                self.train = Some(left - 1);
            }
        }
        if rate.as_bps() > 0 {
            while self.paced <= self.now {
                self.data(rate);
            }
        }
        let next = self.paced.saturating_since(self.now).max(Duration::from_micros(10)).min(TICK);
        self.push(next, Event::Turn);
    }

    fn data(&mut self, rate: Rate) {
        let late = self.now.saturating_sub(TICK);
        self.paced = self.paced.max(late) + rate.time_for(PACKET_BITS);
        self.near.reports.on_traffic();
        self.send(None);
    }

    fn send(&mut self, control: Option<Control>) {
        let len = datagram_len(control.as_ref());
        self.near.reports.on_sent(1, len);
        self.outcome.sent += 1;
        let Some(passed) = self.cross(len + HEADER) else {
            self.outcome.dropped += 1;
            return;
        };
        let bin = (passed.as_nanos() / 100_000_000) as usize;
        if let Some(bin) = self.outcome.passed.get_mut(bin) {
            *bin += (len + HEADER) as f64 * 8.0 / 1e5;
        }
        let arrives = self.arrival(passed);
        let is_lost = self.rng.chance(at(&self.path.losses, self.now)) || self.is_blocked(passed);
        if !is_lost && let Some(arrives) = self.attacked(arrives, control.is_some()) {
            self.push(arrives.saturating_since(self.now), Event::Arrival(control));
        }
    }

    /// When a datagram that would arrive at `arrives` does so with somebody on the path.
    fn attacked(&mut self, arrives: Instant, is_control: bool) -> Option<Instant> {
        let Some((attack, from, to)) = self.path.attacker else { return Some(arrives) };
        if !(from..to).contains(&self.now.as_secs_f64()) {
            return Some(arrives);
        }
        match attack {
            Attack::Copies(part, by) if self.attack_rng.chance(part) => Some(arrives.saturating_sub(by)),
            Attack::DropsControl if is_control => None,
            Attack::DelaysControl(by) if is_control => Some(arrives + by),
            _ => Some(arrives),
        }
    }

    fn is_blocked(&self, at: Instant) -> bool {
        self.path.blocked.is_some_and(|(length, every)| at.as_nanos() % every.as_nanos() < length.as_nanos())
    }

    /// When a packet has passed the bottleneck; `None` if its queue, or a policer, drops it.
    fn cross(&mut self, bytes: u64) -> Option<Instant> {
        if let Some((burst, rate)) = self.path.policer {
            let (tokens, since) = self.tokens;
            let refilled = rate * 1e6 / 8.0 * self.now.saturating_since(since).as_secs_f64();
            self.tokens = ((tokens + refilled).min(burst), self.now);
            if self.tokens.0 < bytes as f64 {
                return None;
            }
            self.tokens.0 -= bytes as f64;
        }
        if self.free_at.saturating_since(self.now) > self.path.queue {
            return None;
        }
        let rate = Rate::from_bps((at(&self.path.rates, self.now.max(self.free_at)) * 1e6) as u64);
        self.free_at = self.free_at.max(self.now) + rate.time_for(bytes * 8);
        Some(self.free_at)
    }

    fn arrival(&mut self, passed: Instant) -> Instant {
        let longer = match self.path.longer {
            Some((from, by)) if self.now.as_secs_f64() >= from => by,
            _ => Duration::ZERO,
        };
        let jitter = Duration::from_secs_f64(self.path.jitter.as_secs_f64() * self.rng.unit());
        self.last_arrival = self.last_arrival.max(passed + self.path.delay + longer + jitter);
        self.last_arrival
    }

    fn rival_turn(&mut self) {
        let Some(mut rival) = self.rival.take() else { return };
        if self.now >= rival.to {
            return;
        }
        let rate = rival.rate(self.now, self.path.delay);
        let limit = rival.limit(self.now);
        if (rival.under_way as f64) < limit {
            rival.under_way += 1;
            match self.cross(1500) {
                Some(passed)
                    if rival.kind != Other::Reno || !self.rng.chance(at(&self.path.losses, self.now)) =>
                {
                    let bin = (passed.as_nanos() / 100_000_000) as usize;
                    if let Some(bin) = self.outcome.other.get_mut(bin) {
                        *bin += PACKET_BITS as f64 / 1e5;
                    }
                    let acked = passed + self.path.delay.saturating_mul(2);
                    self.push(acked.saturating_since(self.now), Event::OtherAck(self.now, rival.delivered));
                }
                _ => self.push(self.path.delay.saturating_mul(2), Event::OtherLoss),
            }
        }
        let next = Rate::from_bps(rate as u64).time_for(PACKET_BITS).min(TICK.saturating_mul(10));
        self.push(next, Event::OtherTurn);
        self.rival = Some(rival);
    }

    fn rival_ack(&mut self, sent_at: Instant, delivered: u64) {
        let Some(rival) = &mut self.rival else { return };
        rival.under_way -= 1;
        rival.delivered += 1;
        let round_trip = self.now.saturating_since(sent_at);
        rival.shortest = rival.shortest.min(round_trip);
        let rate = (rival.delivered - delivered) as f64 * PACKET_BITS as f64 / round_trip.as_secs_f64();
        let oldest = self.now.saturating_sub(rival.shortest.saturating_mul(10));
        rival.rates.retain(|(at, held)| *at >= oldest && *held > rate);
        rival.rates.push_back((self.now, rate));
        rival.window += 1.0 / rival.window;
    }

    fn rival_loss(&mut self) {
        let Some(rival) = &mut self.rival else { return };
        rival.under_way -= 1;
        if self.now >= rival.halved_at + rival.shortest.min(Duration::from_secs(1)) {
            rival.window = (rival.window / 2.0).max(2.0);
            rival.halved_at = self.now;
        }
    }
}

fn datagram_len(control: Option<&Control>) -> u64 {
    control.map_or(LEN, |(_, body)| body.len() as u64 + 33)
}

impl Rival {
    fn best(&self) -> f64 {
        self.rates.iter().map(|rate| rate.1).fold(PACKET_BITS as f64, f64::max)
    }

    fn rate(&mut self, now: Instant, delay: Duration) -> f64 {
        match self.kind {
            Other::Constant(megabits) => megabits * 1e6,
            Other::Reno => 1e8,
            Other::Bbr => {
                if now >= self.round_at + delay.saturating_mul(2) {
                    self.round_at = now;
                    self.round += 1;
                }
                let gain = match self.round {
                    ..12 => 2.0,
                    12..16 => 0.5,
                    round => [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][round as usize % 8],
                };
                gain * self.best().max(10.0 * PACKET_BITS as f64 / (2.0 * delay.as_secs_f64()))
            }
        }
    }

    fn limit(&mut self, now: Instant) -> f64 {
        match self.kind {
            Other::Constant(_) => f64::INFINITY,
            Other::Reno => self.window,
            Other::Bbr => {
                // Every ten seconds it lets the queue drain for a while.
                if now >= self.probed_at + Duration::from_secs(10) {
                    self.probed_at = now;
                }
                if now < self.probed_at + Duration::from_millis(200) && self.round > 16 {
                    return 4.0;
                }
                let shortest = self.shortest.min(Duration::from_secs(10)).as_secs_f64();
                (2.0 * self.best() * shortest / PACKET_BITS as f64).max(10.0)
            }
        }
    }
}
