//! Frames that are overtaken on their way are not lost, and frames that are lost are repaired as fast as the path allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::{Duration, Instant, Packet, Rate, Rng};
use longhaul_link::{Demand, Endpoint, LineLimits, Protocol, Treatment};
use proptest::prelude::*;

const RATE: Rate = Rate::from_bps(20_000_000);
const LINE: LineLimits = LineLimits::new(1400, Some(RATE));
const PACKET: usize = 1300;

/// What the path does to frames.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// One way.
    delay: Duration,
    /// Shares of frames.
    overtaken: f64,
    lost: f64,
    /// The longest by which a frame is late; the shortest is 1 ms.
    latest_ms: u64,
}

impl Path {
    fn of(round_trip_ms: u64) -> Self {
        Self { delay: Duration::from_millis(round_trip_ms / 2), overtaken: 0.0, lost: 0.0, latest_ms: 20 }
    }
}

/// A frame on its way: see [`Pair::flying`].
type Flying = (Instant, u64, usize, Vec<u8>);

/// Two ends with a path between them, both directions alike.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    path: Path,
    rng: Rng,
    now: Instant,
    /// When each line is free.
    free: [Instant; 2],
    /// Frames on their way: when they arrive, a number that keeps their order, the end that gets them.
    flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    /// Packets that were offered and that came out at the second end.
    offered: u32,
    arrived: Vec<u32>,
    offered_at: Vec<Instant>,
    delays: Vec<Duration>,
}

impl Pair {
    fn new(protocol: &str, path: Path, seed: u64) -> Self {
        #[derive(serde::Deserialize)]
        struct Written {
            protocol: Protocol,
        }
        let text = format!("protocol = {protocol}");
        let protocol = base::config::parse::<Written>("p.toml", &text).unwrap().protocol;
        Self {
            ends: [protocol.build(&LINE), protocol.build(&LINE)],
            path,
            rng: Rng::named(seed, "path"),
            now: Instant::ZERO,
            free: [Instant::ZERO; 2],
            flying: BinaryHeap::new(),
            sent: 0,
            offered: 0,
            arrived: Vec::new(),
            offered_at: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// Lets `span` go by while packets are offered: one whenever there is room, or `burst` of them each `pause`. As many wait behind
    /// the endpoint as it is told.
    fn run(&mut self, span: Duration, mut load: Load) {
        let until = self.now + span;
        while self.now < until {
            load.wait(self.now);
            while load.waiting > 0 && self.ends[0].has_room(Treatment::Reliable) {
                load.take();
                let packet = packet(self.offered);
                self.ends[0].offer(self.now, packet, Treatment::Reliable).unwrap();
                self.offered += 1;
                self.offered_at.push(self.now);
            }
            self.ends[0].set_backlog(Treatment::Reliable, load.waiting * PACKET as u64);
            for side in 0..2 {
                self.serve(side);
            }
            while let Some(Reverse((at, ..))) = self.flying.peek()
                && *at <= self.now
                && let Some(Reverse((_, _, side, frame))) = self.flying.pop()
            {
                let _ = self.ends[side].handle_frame(self.now, &frame);
            }
            while let Some(packet) = self.ends[1].poll_packet() {
                let number = u32::from_be_bytes(*packet.last_chunk().unwrap());
                self.arrived.push(number);
                self.delays.push(self.now.saturating_since(self.offered_at[number as usize]));
            }
            self.now += STEP;
        }
    }

    /// One end's time-outs, and the frames for which its line is free.
    fn serve(&mut self, side: usize) {
        let end = &mut self.ends[side];
        if end.poll_timeout().is_some_and(|due| due <= self.now) {
            end.handle_timeout(self.now);
        }
        while self.free[side] <= self.now && self.ends[side].demand(self.now) > Demand::Nothing {
            let mut frame = Vec::new();
            if self.ends[side].poll_frame(self.now, &mut frame).is_none() {
                break;
            }
            self.ends[side].seal_frame(self.now, &mut frame);
            self.free[side] = self.free[side].max(self.now) + RATE.time_for(frame.len() as u64 * 8);
            let mut at = self.free[side] + self.path.delay;
            if self.rng.chance(self.path.overtaken) {
                let more = 1_000 + self.rng.below(self.path.latest_ms * 1_000 - 999);
                at += Duration::from_micros(more);
            }
            self.sent += 1;
            if !self.rng.chance(self.path.lost) {
                self.flying.push(Reverse((at, self.sent, 1 - side, frame)));
            }
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.ends[0].counters().iter().find(|(counter, _)| *counter == name).map_or(0, |it| it.1)
    }

    /// Frames that went out to make good for losses, or that might have.
    fn repairs(&self) -> u64 {
        ["frames-retransmitted", "frames-repair", "frames-filler"].iter().map(|name| self.count(name)).sum()
    }

    /// Packets that came out, Mbit/s, since the start.
    fn goodput(&self) -> f64 {
        let bits = (self.arrived.len() * PACKET * 8) as f64;
        bits / self.now.saturating_since(Instant::ZERO).as_nanos() as f64 * 1e3
    }

    /// Nothing more is offered, and everything arrives once.
    fn finish(&mut self) {
        let limit = self.now + Duration::from_secs(20);
        while self.arrived.len() < self.offered as usize && self.now < limit {
            self.run(Duration::from_millis(100), Load::nothing());
        }
        let mut arrived = self.arrived.clone();
        arrived.sort_unstable();
        assert_eq!(arrived, (0..self.offered).collect::<Vec<_>>());
    }
}

/// Of virtual time: less than a bare report takes.
const STEP: Duration = Duration::from_micros(20);

/// What is offered.
#[derive(Clone, Copy)]
struct Load {
    waiting: u64,
    burst: u64,
    pause: Duration,
    next: Instant,
}

impl Load {
    fn nothing() -> Self {
        Self { waiting: 0, burst: 0, pause: Duration::ZERO, next: Instant::ZERO }
    }

    /// More than the line takes.
    fn greedy() -> Self {
        Self { waiting: 40, ..Self::nothing() }
    }

    fn bursts(burst: u64, pause_ms: u64) -> Self {
        Self { burst, pause: Duration::from_millis(pause_ms), ..Self::nothing() }
    }

    fn wait(&mut self, now: Instant) {
        if self.burst > 0 && self.next <= now {
            self.waiting += self.burst;
            self.next = now + self.pause;
        }
    }

    fn take(&mut self) {
        if self.burst > 0 {
            self.waiting -= 1;
        }
    }
}

/// A UDP packet of one of 40 flows with its number at its end.
fn packet(number: u32) -> Packet {
    let mut bytes = vec![0; PACKET];
    (bytes[0], bytes[9], bytes[15], bytes[21]) = (0x45, 17, (number % 40) as u8, 1);
    bytes[PACKET - 4..].copy_from_slice(&number.to_be_bytes());
    Packet::from_slice(&bytes)
}

const CODED: &str = "\"coded\"";
const WIDE: &str = "\"cotmll\"";
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn overtaking_alone_is_no_loss() {
    for protocol in [CODED, WIDE] {
        for round_trip in [100, 600] {
            let path = Path { overtaken: 0.1, ..Path::of(round_trip) };
            let mut pair = Pair::new(protocol, path, 1);
            pair.run(SECOND.saturating_mul(18), Load::greedy());
            let (new, repairs) = (pair.count("frames-new"), pair.repairs());
            assert!(new > 30_000, "{protocol} {round_trip}: {new}");
            assert!(repairs < 100, "{protocol} {round_trip}: {repairs} repairs");
            let needless = pair.count("repairs-needless");
            assert!(needless > 0 && needless <= repairs, "{protocol} {round_trip}: {needless} of {repairs}");
            pair.finish();
        }
    }
}

/// With losses nearly as much gets through as without overtaking, and what is sent again is what was lost.
#[test]
fn losses_are_repaired_where_frames_are_overtaken_too() {
    for (protocol, round_trip) in [(CODED, 100), (CODED, 300), (WIDE, 100), (WIDE, 300)] {
        for (lost, least) in [(0.01, 18.5), (0.02, 18.0), (0.05, 17.5)] {
            let run = |overtaken| {
                let mut pair = Pair::new(protocol, Path { overtaken, lost, ..Path::of(round_trip) }, 2);
                pair.run(SECOND.saturating_mul(9), Load::greedy());
                let told = (pair.goodput(), pair.count("repairs-needless"), pair.repairs() as f64);
                pair.finish();
                told
            };
            let ((plain, none, repairs), (overtaken, needless, more)) = (run(0.0), run(0.1));
            let what = format!("{protocol} {round_trip} {lost}: {plain} {overtaken} {needless} {more}");
            assert_eq!(none, 0, "{what}");
            assert!(needless < 100 && more < repairs * 1.1 + 50.0, "{what}");
            // The start costs longer round trips more: nothing comes in the first half of one.
            assert!(overtaken > least - round_trip as f64 / 1000.0 && overtaken > 0.97 * plain, "{what}");
        }
    }
}

/// Sums go out ahead of losses alone, and a burst is not repaired because its last frames were overtaken.
#[test]
fn overtaking_calls_for_no_sums() {
    for (burst, pause) in [(1, 5), (5, 40), (20, 30)] {
        for protocol in [CODED, WIDE] {
            let run = |overtaken| {
                let mut pair = Pair::new(protocol, Path { overtaken, ..Path::of(300) }, 3);
                pair.run(SECOND.saturating_mul(10), Load::bursts(burst, pause));
                let repairs = pair.repairs();
                pair.finish();
                repairs
            };
            let (before, after) = (run(0.0), run(0.1));
            assert!(after < before + 100, "{protocol}, {burst} each {pause} ms: {after} instead of {before}");
        }
    }
}

/// How long a packet takes that is lost once, at most, where nothing else happens for `seconds`.
fn slowest(pair: &mut Pair, lost: f64, seconds: u64) -> Duration {
    let from = pair.delays.len();
    pair.path.lost = lost;
    pair.run(SECOND.saturating_mul(seconds), Load::greedy());
    let mut delays = pair.delays[from..].to_vec();
    delays.sort_unstable();
    // One in a hundred is lost; few of them twice.
    delays[delays.len() * 999 / 1000]
}

#[test]
fn a_path_that_starts_to_overtake_is_learned_and_one_that_stops_is_trusted_again() {
    for protocol in [CODED, WIDE] {
        let mut pair = Pair::new(protocol, Path::of(200), 4);
        let before = slowest(&mut pair, 0.01, 5);
        pair.path.overtaken = 0.1;
        pair.path.latest_ms = 80;
        let needless = pair.count("repairs-needless");
        assert_eq!(needless, 0, "{protocol}");
        // The first round trips teach it.
        pair.run(SECOND, Load::greedy());
        let learned = pair.count("repairs-needless");
        assert!(learned > 0 && learned < 50, "{protocol}: {learned}");
        let during = slowest(&mut pair, 0.01, 10);
        let after_learning = pair.count("repairs-needless") - learned;
        assert!(after_learning < 10, "{protocol}: {after_learning}");
        assert!(during > before + Duration::from_millis(50), "{protocol}: {during:?} {before:?}");
        // Two ages of 16 round trips of 200 ms and more.
        pair.path.overtaken = 0.0;
        pair.run(SECOND.saturating_mul(12), Load::greedy());
        let after = slowest(&mut pair, 0.01, 5);
        assert!(after < before + Duration::from_millis(10), "{protocol}: {after:?} {before:?}");
        pair.finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is lost and overtaken, everything arrives once.
    #[test]
    fn everything_arrives(
        seed: u64,
        coded: bool,
        overtaken in 0.0..0.6_f64,
        lost in 0.0..0.3_f64,
        latest_ms in 1_u64..400,
        round_trip in 2_u64..300,
        burst in 0_u64..30,
    ) {
        let path = Path { overtaken, lost, latest_ms, ..Path::of(round_trip) };
        let mut pair = Pair::new(if coded { CODED } else { WIDE }, path, seed);
        let load = if burst == 0 { Load::greedy() } else { Load::bursts(burst, 20) };
        pair.run(Duration::from_millis(500), load);
        pair.finish();
    }
}
