//! Several lines under one endpoint: what comes over one says nothing of what left over another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::{Duration, Instant, Packet, Rate, Rng};
use longhaul_link::{
    Demand, Endpoint, LineId, LineLimits, LineTerms, Lines, Protocol, Treatment, Treatments, When,
};

const PACKET: usize = 1300;
/// Of virtual time.
const STEP: Duration = Duration::from_micros(50);

/// One of the lines, both ways.
#[derive(Clone, Copy)]
struct Line {
    rate: Rate,
    delay: Duration,
    lost: f64,
    /// From when to when everything vanishes, in milliseconds.
    dark: (u64, u64),
    harm: Option<Harm>,
}

/// What somebody on the line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// Drops all that the second end sends.
    NoReports,
    /// Delays by up to three seconds, each frame by another time.
    Late,
    /// Delays by up to 100 ms, each frame by another time.
    Shuffled,
    Twice,
    /// Frames come again half a second later, in either direction.
    Replayed,
}

impl Line {
    fn new(mbps: u64, delay_ms: u64, lost: f64) -> Self {
        let (rate, delay) = (Rate::from_bps(mbps * 1_000_000), Duration::from_millis(delay_ms));
        Self { rate, delay, lost, dark: (0, 0), harm: None }
    }
}

impl Line {
    fn dark(self, from_ms: u64, until_ms: u64) -> Self {
        Self { dark: (from_ms, until_ms), ..self }
    }

    fn is_dark(&self, at: Instant) -> bool {
        let ms = at.saturating_since(Instant::ZERO).as_nanos() / 1_000_000;
        (self.dark.0..self.dark.1).contains(&ms)
    }
}

/// A frame on its way: when it arrives, a number that keeps its order, the end that gets it, its line.
type Flying = (Instant, u64, usize, usize, Vec<u8>);

/// Two ends with lines between them.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    lines: Vec<Line>,
    rng: Rng,
    now: Instant,
    /// When each end's lines are free.
    free: Vec<[Instant; 2]>,
    flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    /// Frames of the first end that a line has lost.
    lost: u64,
    /// Bytes of a packet, and how it is treated.
    len: usize,
    treatment: Treatment,
    offered: u32,
    arrived: Vec<u32>,
    arrived_at: Vec<Instant>,
    /// Frames of the first end by line.
    carried: Vec<u64>,
}

fn over(end: &mut dyn Endpoint) -> &mut dyn Lines {
    end.lines().expect("a protocol for several lines")
}

impl Pair {
    fn new(protocol: &str, lines: &[Line]) -> Self {
        #[derive(serde::Deserialize)]
        struct Written {
            protocol: Protocol,
        }
        let protocol =
            base::config::parse::<Written>("p.toml", &format!("protocol = {protocol}")).unwrap().protocol;
        let all = lines.iter().map(|line| line.rate.as_bps()).sum();
        let limits = LineLimits::new(1400, Some(Rate::from_bps(all)));
        Self {
            ends: [protocol.build(&limits), protocol.build(&limits)],
            lines: lines.to_vec(),
            rng: Rng::named(1, "lines"),
            now: Instant::ZERO,
            free: vec![[Instant::ZERO; 2]; lines.len()],
            flying: BinaryHeap::new(),
            sent: 0,
            lost: 0,
            len: PACKET,
            treatment: Treatment::Reliable,
            offered: 0,
            arrived: Vec::new(),
            arrived_at: Vec::new(),
            carried: vec![0; lines.len()],
        }
    }

    /// Lets `span` go by while packets are offered whenever there is room, `most` in all.
    fn run(&mut self, span: Duration, most: u32) {
        let until = self.now + span;
        while self.now < until {
            while self.offered < most && self.ends[0].has_room(self.treatment) {
                self.ends[0].offer(self.now, packet(self.offered, self.len), self.treatment).unwrap();
                self.offered += 1;
            }
            // As much as a proxy holds of a download, at most.
            let waiting = u64::from(most - self.offered) * PACKET as u64;
            self.ends[0].set_backlog(self.treatment, waiting.min(8 << 20));
            for side in 0..2 {
                if self.ends[side].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[side].handle_timeout(self.now);
                    let next = self.ends[side].poll_timeout();
                    assert!(next.is_none_or(|next| next > self.now), "{next:?} is due at {:?}", self.now);
                }
                (0..self.lines.len()).for_each(|line| self.serve(side, line));
            }
            while let Some(Reverse((at, ..))) = self.flying.peek()
                && *at <= self.now
                && let Some(Reverse((_, _, side, line, frame))) = self.flying.pop()
            {
                let line = LineId::new(line as u8).unwrap();
                let _ = over(&mut *self.ends[side]).handle_frame_over(self.now, line, &frame);
            }
            while let Some(packet) = self.ends[1].poll_packet() {
                self.arrived.push(u32::from_be_bytes(*packet.last_chunk().unwrap()));
                self.arrived_at.push(self.now);
            }
            self.now += STEP;
        }
    }

    /// The frames for which a line of an end is free.
    fn serve(&mut self, side: usize, number: usize) {
        let (line, id) = (self.lines[number], LineId::new(number as u8).unwrap());
        while self.free[number][side] <= self.now {
            let (end, mut frame) = (&mut *self.ends[side], Vec::new());
            if end.demand_over(self.now, id) == Demand::Nothing
                || over(end).poll_frame_over(self.now, id, &mut frame).is_none()
            {
                return;
            }
            assert!(frame.len() <= 1400, "{}", frame.len());
            let free = self.free[number][side].max(self.now.saturating_sub(STEP))
                + line.rate.time_for(frame.len() as u64 * 8);
            self.free[number][side] = free;
            self.sent += 1;
            self.carried[number] += u64::from(side == 0);
            if line.is_dark(free) || self.rng.chance(line.lost) {
                self.lost += u64::from(side == 0);
            } else {
                self.launch(free, side, number, &frame);
            }
        }
    }

    /// A frame is on its way, as far as whoever harms the line lets it.
    fn launch(&mut self, left_at: Instant, side: usize, number: usize, frame: &[u8]) {
        let line = self.lines[number];
        let mut chance = |ms: u64| Duration::from_micros(self.rng.below(1000 * ms));
        let more: &[Duration] = &match line.harm {
            Some(Harm::NoReports) if side == 1 => vec![],
            Some(Harm::Late) => vec![chance(3000)],
            Some(Harm::Shuffled) => vec![chance(100)],
            Some(Harm::Twice) => vec![Duration::ZERO, Duration::from_micros(200)],
            Some(Harm::Replayed) => vec![Duration::ZERO, Duration::from_millis(500)],
            Some(Harm::NoReports) | None => vec![Duration::ZERO],
        };
        for more in more {
            let arrives_at = left_at + line.delay + *more;
            self.flying.push(Reverse((arrives_at, self.sent, 1 - side, number, frame.to_vec())));
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.ends[0].counters().iter().find(|(counter, _)| *counter == name).map_or(0, |it| it.1)
    }
}

/// A UDP packet of one of 40 flows with its number at its end.
fn packet(number: u32, len: usize) -> Packet {
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[20..22].copy_from_slice(&(1000 + (number % 40) as u16).to_be_bytes());
    *bytes.last_chunk_mut().unwrap() = number.to_be_bytes();
    Packet::from_slice(&bytes)
}

const PROTOCOLS: [&str; 2] = ["\"cotmll\"", "\"coded\""];

/// Tells both ends how fast and how long the lines are.
fn told(protocol: &str, lines: &[Line]) -> Pair {
    told_use(protocol, lines, &[])
}

/// And what the first of them are for.
fn told_use(protocol: &str, lines: &[Line], uses: &[(When, &[Treatment])]) -> Pair {
    let mut pair = Pair::new(protocol, lines);
    for end in &mut pair.ends {
        for (line, number) in lines.iter().zip(0..) {
            let mut terms = LineTerms::new(line.rate, line.delay);
            if let Some((when, carries)) = uses.get(usize::from(number)) {
                (terms.when, terms.carries) = (*when, Treatments::of(carries));
            }
            over(&mut **end).set_line_over(LineId::new(number).unwrap(), terms);
        }
    }
    pair
}

/// What little is sent takes the faster line alone, and no longer than if there were no other.
#[test]
fn what_fits_the_faster_line_leaves_by_it() {
    for protocol in PROTOCOLS {
        let fast = Line::new(20, 25, 0.0);
        let delays = [&[fast][..], &[fast, Line::new(50, 300, 0.0)]].map(|lines| {
            let mut pair = told(protocol, lines);
            let mut delays = Vec::new();
            for number in 0..100 {
                // A page of ten packets every 200 ms.
                let start = pair.now;
                pair.run(Duration::from_millis(200), 10 * (number + 1));
                delays.push(pair.arrived_at.last().unwrap().saturating_since(start));
            }
            assert_eq!(pair.arrived.len(), 1000);
            println!("{protocol}: {:?}, carried {:?}", delays.iter().max(), pair.carried);
            delays
        });
        let [alone, beside] = delays.map(|delays| delays.into_iter().max().unwrap().as_nanos());
        assert!(beside as f64 <= 1.1 * alone as f64, "{protocol}: {beside} instead of {alone} ns");
    }
}

/// Frames are as long as a line carries, with what they say of the others.
#[test]
fn no_frame_is_longer_than_it_may_be() {
    for protocol in PROTOCOLS {
        let lines: Vec<_> = (1..=8).map(|number| Line::new(10, 10 * number, 0.0)).collect();
        let mut pair = told(protocol, &lines);
        pair.len = 4000;
        pair.run(Duration::from_secs(1), 500);
        assert_eq!(pair.arrived.len(), 500, "{protocol}");
    }
}

/// What is known of the lines costs a download nothing.
#[test]
fn a_download_takes_both_lines() {
    for protocol in PROTOCOLS {
        for lines in [[(50, 25), (20, 300)], [(2, 10), (60, 300)]] {
            let lines = lines.map(|(mbps, delay)| Line::new(mbps, delay, 0.0));
            let mut pair = told(protocol, &lines);
            pair.run(Duration::from_secs(3), u32::MAX);
            let mbps = (pair.arrived.len() * PACKET * 8) as f64 / 2.7e6;
            let sum = lines.iter().map(|line| line.rate.as_bps()).sum::<u64>() as f64 / 1e6;
            println!("{protocol}: {mbps:.1} of {sum} Mbit/s");
            assert!(mbps > 0.93 * sum, "{protocol}: {mbps} of {sum}");
        }
    }
}

#[test]
fn unequal_lines_carry_their_sum_and_nothing_counts_as_lost() {
    for protocol in PROTOCOLS {
        let mut pair = Pair::new(protocol, &[Line::new(20, 25, 0.0), Line::new(50, 300, 0.0)]);
        pair.run(Duration::from_secs(3), u32::MAX);
        // What the first 300 ms of the slower line bring comes later.
        let mbps = (pair.arrived.len() * PACKET * 8) as f64 / 2.7e6;
        println!("{protocol}: {mbps:.1} Mbit/s, {} flagged", pair.count("frames-flagged"));
        assert!(mbps > 0.9 * 70.0, "{protocol}: {mbps}");
        assert_eq!((pair.count("frames-flagged"), pair.count("frames-retransmitted")), (0, 0), "{protocol}");
    }
}

/// A line goes dark in mid-stream, without a word: the other carries on after a moment, and it is used again when it is back.
#[test]
fn a_stream_outlives_a_line() {
    for protocol in PROTOCOLS {
        for dying in [0, 1] {
            let mut lines = [Line::new(20, 25, 0.0), Line::new(50, 150, 0.0)];
            lines[dying] = lines[dying].dark(2000, 6000);
            let mut pair = told(protocol, &lines);
            for number in 1..=500 {
                pair.run(Duration::from_millis(20), number);
            }
            let before = pair.carried.clone();
            pair.run(Duration::from_secs(1), 500);
            let mut arrived = pair.arrived.clone();
            arrived.sort_unstable();
            assert_eq!(arrived, (0..500).collect::<Vec<_>>(), "{protocol}");
            let gaps = pair.arrived_at.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
            let longest = gaps.max().unwrap();
            let surviving = pair.lines[1 - dying].delay.saturating_mul(2);
            let most = surviving.saturating_mul(4) + Duration::from_millis(200);
            println!(
                "{protocol}, line {dying} dies: longest gap {longest}, at most {most}; carried {before:?}"
            );
            assert!(longest <= most, "{protocol}: {longest}");
        }
    }
}

/// All of a download arrives, whichever line dies and comes back.
#[test]
fn a_download_outlives_a_line() {
    for protocol in PROTOCOLS {
        for dying in [0, 1] {
            let mut lines = [Line::new(20, 25, 0.01), Line::new(50, 150, 0.01)];
            lines[dying] = lines[dying].dark(1000, 3000);
            let mut pair = told(protocol, &lines);
            pair.run(Duration::from_secs(5), u32::MAX);
            let (offered, mbps) = (pair.offered, (pair.arrived.len() * PACKET * 8) as f64 / 5e6);
            let carried = pair.carried.clone();
            pair.run(Duration::from_secs(3), offered);
            let mut arrived = pair.arrived.clone();
            arrived.sort_unstable();
            assert_eq!(arrived, (0..offered).collect::<Vec<_>>(), "{protocol}");
            let rates = [20.0, 50.0];
            let most = (rates[dying] * 3.0 + rates[1 - dying] * 5.0) / 5.0;
            println!("{protocol}, line {dying} dies: {mbps:.1} of {most:.1} Mbit/s, carried {carried:?}");
            assert!(mbps > 0.8 * most, "{protocol}: {mbps} of {most}");
        }
    }
}

#[test]
fn what_a_line_loses_is_repaired_once() {
    for protocol in PROTOCOLS {
        let mut pair = Pair::new(protocol, &[Line::new(20, 25, 0.05), Line::new(50, 300, 0.01)]);
        pair.run(Duration::from_secs(5), 20_000);
        pair.run(Duration::from_secs(5), 20_000);
        let mut arrived = pair.arrived.clone();
        arrived.sort_unstable();
        assert_eq!(arrived, (0..pair.offered).collect::<Vec<_>>(), "{protocol}");
        let (flagged, lost) = (pair.count("frames-flagged"), pair.lost);
        println!("{protocol}: {} packets, {lost} frames lost, {flagged} flagged", pair.offered);
        assert!(flagged <= lost, "{protocol}: {flagged} of {lost}");
    }
}

/// A line on which everything is late, comes twice or out of order, whose reports vanish, or on which old frames come again, never makes the pair
/// slower than nine tenths of the other line alone.
#[test]
fn a_hostile_line_costs_little() {
    for protocol in PROTOCOLS {
        let good = Line::new(20, 25, 0.01);
        let mut alone = told(protocol, &[good]);
        alone.run(Duration::from_secs(4), u32::MAX);
        for harm in [Harm::NoReports, Harm::Late, Harm::Shuffled, Harm::Twice, Harm::Replayed] {
            let bad = Line { harm: Some(harm), ..Line::new(20, 25, 0.0) };
            let mut pair = told(protocol, &[good, bad]);
            pair.run(Duration::from_secs(4), u32::MAX);
            let [with, without] = [&pair, &alone].map(|pair| pair.arrived.len() as f64);
            println!("{protocol}, {harm:?}: {with} packets, {without} without the line");
            assert!(with > 0.9 * without, "{protocol}, {harm:?}: {with} instead of {without}");
            let offered = pair.offered;
            pair.run(Duration::from_secs(12), offered);
            let mut arrived = pair.arrived.clone();
            arrived.sort_unstable();
            assert_eq!(arrived, (0..offered).collect::<Vec<_>>(), "{protocol}, {harm:?}");
        }
    }
}

/// Once all has come nobody speaks, though a line was dark and nobody knows that it is back: no probe would be answered.
#[test]
fn nobody_speaks_when_all_has_come() {
    for protocol in PROTOCOLS {
        for dying in [0, 1] {
            let mut lines = [Line::new(20, 25, 0.0), Line::new(50, 150, 0.0)];
            lines[dying] = lines[dying].dark(500, 60_000);
            let mut pair = told(protocol, &lines);
            pair.run(Duration::from_secs(1), u32::MAX);
            let offered = pair.offered;
            pair.run(Duration::from_secs(6), offered);
            assert_eq!(pair.arrived.len(), offered as usize, "{protocol}, line {dying}");
            let sent = pair.sent;
            pair.run(Duration::from_secs(5), offered);
            assert_eq!(pair.sent, sent, "{protocol}, line {dying}");
        }
    }
}

/// All lines go dark at once, and come back while nobody has anything under way: what is offered then arrives, whichever end offers it.
#[test]
fn lines_that_all_were_dark_carry_again() {
    for protocol in PROTOCOLS {
        let lines = [Line::new(20, 25, 0.0), Line::new(50, 150, 0.0)].map(|line| line.dark(400, 3000));
        let mut pair = told(protocol, &lines);
        for number in 1..=20 {
            pair.run(Duration::from_millis(20), number);
        }
        pair.run(Duration::from_secs(8), 20);
        // The other end has only reported until now.
        pair.ends.swap(0, 1);
        pair.flying.clear();
        pair.run(Duration::from_secs(4), 40);
        let mut arrived = pair.arrived.clone();
        arrived.sort_unstable();
        assert_eq!(arrived, (0..40).collect::<Vec<_>>(), "{protocol}");
    }
}

/// One line alone may carry the packets, and is dark for a while: they wait for it, whatever else is heard over the other.
#[test]
fn what_one_line_alone_carries_waits_for_it() {
    let [once, urgent, reliable] = Treatment::ALL;
    for (protocol, treatment, others) in [
        ("\"cotmll\"", reliable, [once, urgent]),
        ("\"coded\"", reliable, [once, urgent]),
        ("\"coded\"", urgent, [once, reliable]),
    ] {
        let lines = [Line::new(2, 25, 0.01).dark(1000, 3000), Line::new(50, 5, 0.0)];
        let uses = [(When::Always, &Treatment::ALL[..]), (When::Always, &others[..])];
        let mut pair = told_use(protocol, &lines, &uses);
        pair.treatment = treatment;
        for number in 1..=250 {
            pair.run(Duration::from_millis(20), number);
        }
        pair.run(Duration::from_secs(3), 250);
        let mut arrived = pair.arrived.clone();
        arrived.sort_unstable();
        assert_eq!(arrived, (0..250).collect::<Vec<_>>(), "{protocol}, {treatment:?}");
    }
}

/// What costs nothing is no help to packets that it may not carry: they go over what costs something at once.
#[test]
fn what_only_a_metered_line_carries_does_not_wait_for_others() {
    for protocol in PROTOCOLS {
        let lines = [Line::new(20, 25, 0.0), Line::new(20, 25, 0.0)];
        let uses = [(When::Always, &[Treatment::Once][..]), (When::Metered, &Treatment::ALL[..])];
        let mut pair = told_use(protocol, &lines, &uses);
        pair.run(Duration::from_millis(100), 1);
        assert_eq!(pair.arrived, [0], "{protocol}");
    }
}

/// A call and nothing else, over the nearer line or the only one that may carry it: COTMLL numbers none of its frames, and that no report tells of them
/// is no sign of anything. Each packet of it comes, and as soon as the first.
#[test]
fn a_call_alone_puts_no_line_in_doubt() {
    for (protocol, other, carries) in PROTOCOLS.into_iter().flat_map(|protocol| {
        [(protocol, 5, &[Treatment::Reliable][..]), (protocol, 150, &Treatment::ALL[..])]
    }) {
        let lines = [Line::new(2, 25, 0.0), Line::new(50, other, 0.0)];
        let uses = [(When::Always, &Treatment::ALL[..]), (When::Always, carries)];
        let mut pair = told_use(protocol, &lines, &uses);
        (pair.treatment, pair.len) = (Treatment::Once, 200);
        for number in 1..=500 {
            pair.run(Duration::from_millis(20), number);
        }
        pair.run(Duration::from_millis(200), 500);
        assert_eq!(pair.arrived, (0..500).collect::<Vec<_>>(), "{protocol}");
        let gap = pair.arrived_at.windows(2).map(|pair| pair[1].saturating_since(pair[0])).max().unwrap();
        assert!(gap < Duration::from_millis(25), "{protocol}: {gap}");
    }
}

/// A call beside something else, which finds out that a line is dark: no more of the call goes there.
#[test]
fn a_call_leaves_a_line_that_is_dark() {
    for protocol in PROTOCOLS {
        let mut pair = told(protocol, &[Line::new(2, 25, 0.0).dark(1000, 60_000), Line::new(50, 150, 0.0)]);
        pair.len = 200;
        for number in 1..=300 {
            pair.treatment = if number % 2 == 0 { Treatment::Reliable } else { Treatment::Once };
            pair.run(Duration::from_millis(20), number);
        }
        pair.run(Duration::from_secs(1), 300);
        let mut arrived: Vec<u32> = pair.arrived.iter().copied().filter(|number| *number >= 100).collect();
        arrived.sort_unstable();
        assert_eq!(arrived, (100..300).collect::<Vec<_>>(), "{protocol}");
    }
}

/// The line under a call dies without a word, and nothing else is said that would show it: the other carries on after a moment, and within three seconds
/// of its return the call is back on it.
#[test]
fn a_call_alone_outlives_a_line() {
    for (protocol, lost) in PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, 0.0), (protocol, 0.1)]) {
        let lines = [Line::new(2, 25, lost).dark(2000, 6000), Line::new(50, 150, 0.0)];
        let mut pair = told(protocol, &lines);
        (pair.treatment, pair.len) = (Treatment::Once, 200);
        for number in 1..=450 {
            pair.run(Duration::from_millis(20), number);
        }
        let gaps = pair.arrived_at.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
        let longest = gaps.max().unwrap();
        let most = lines[1].delay.saturating_mul(8) + Duration::from_millis(200);
        println!("{protocol}, {lost} lost: longest gap {longest}, at most {most}");
        assert!(longest <= most, "{protocol}: {longest}");
        let before = pair.carried.clone();
        for number in 451..=550 {
            pair.run(Duration::from_millis(20), number);
        }
        let [near, far] = [0, 1].map(|line| pair.carried[line] - before[line]);
        // Nor is anything lost on the way back, where what leaves over the nearer line comes before what left earlier over the other.
        let has_come = |number: &u32| lost > 0.0 || pair.arrived.contains(number);
        assert_eq!((150..520).find(|number| !has_come(number)), None, "{protocol}");
        println!("{protocol}, {lost} lost: {near} frames over the nearer line, {far} over the other");
        assert!(near >= 100 && far < near / 4, "{protocol}, {lost} lost: {near}, {far}");
    }
}

/// The end of a call is lost with its lines: after half a minute nothing is kept of it, and nobody asks what became of it.
#[test]
fn nothing_is_kept_of_a_call_whose_end_was_lost() {
    for protocol in PROTOCOLS {
        for lines in [1, 2] {
            let lines =
                &[Line::new(2, 25, 0.0).dark(500, 2000), Line::new(2, 50, 0.0).dark(500, 2000)][..lines];
            let mut pair = if lines.len() == 1 { Pair::new(protocol, lines) } else { told(protocol, lines) };
            (pair.treatment, pair.len) = (Treatment::Once, 200);
            for number in 1..=60 {
                pair.run(Duration::from_millis(20), number);
            }
            assert!(pair.arrived.len() < 30, "{protocol}");
            pair.run(Duration::from_secs(35), 60);
            let (sent, kept) = (pair.sent, pair.ends.each_ref().map(|end| end.memory()));
            pair.run(Duration::from_secs(3), 60);
            assert_eq!(pair.sent, sent, "{protocol}: nobody speaks");
            assert!(kept.iter().all(|bytes| *bytes < 16_000), "{protocol}, {} lines: {kept:?}", lines.len());
            // And the next call is as good as the first.
            let before = pair.arrived.len();
            for number in 61..=160 {
                pair.run(Duration::from_millis(20), number);
            }
            pair.run(Duration::from_millis(200), 160);
            assert_eq!(pair.arrived.len() - before, 100, "{protocol}");
        }
    }
}

/// A call goes on while nothing arrives, until the window is full, and its packets are of several frames: a while later it is heard again.
#[test]
fn a_call_that_has_filled_the_window_goes_on() {
    for lines in [1, 2] {
        let lines = &[Line::new(2, 25, 0.0).dark(500, 4000), Line::new(2, 50, 0.0).dark(500, 4000)][..lines];
        let protocol = "{ coded = { window = 65, frame-payload = 128 } }";
        let mut pair = if lines.len() == 1 { Pair::new(protocol, lines) } else { told(protocol, lines) };
        (pair.treatment, pair.len) = (Treatment::Once, 200);
        for number in 1..=600 {
            pair.run(Duration::from_millis(20), number);
        }
        pair.run(Duration::from_millis(200), 600);
        let late = pair.arrived.iter().filter(|number| **number >= 450).count();
        assert_eq!(late, 150, "over {} lines", lines.len());
    }
}
