//! Section 5.2 item 7: giving up on frames.
//!
//! Runs last 300 s at d = 1 s and 360 s at d = 5 s, where the claim's 25 realisations together see 180 channel periods
//! and more; 150 periods in each of them would take an hour of one core.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use base::config::ConfigError;
use base::wire::ip::{self, Protocol};
use base::wire::tcp;
use base::{Duration, Instant, Packet, SeqNum};

use super::Topic;
use super::drawing::Curves;
use super::setting::{Channel, Scheme, measure_throughput, scenario};
use crate::claims::Measurements;
use crate::engine::{Direction, Observer, Port};
use crate::network::Network;
use crate::node::Element;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::scenario::Scenario;
use crate::statistics::Interval;

pub(super) const TOPIC: Topic = Topic { experiments: &EXPERIMENTS, rule, remark, cells, figures };

const EXPERIMENTS: [Experiment; 2] = [
    Experiment { name: SWEEP, figures: &[SWEEP], claims: &[CLAIM], cases, measure: measure_throughput },
    Experiment {
        name: SINGLE,
        figures: &[SWEEP],
        claims: &[CLAIM],
        cases: single_cases,
        measure: measure_single,
    },
];

/// The sweep, and the figure and table that it fills; the thesis has none of it.
const SWEEP: &str = "persistence";
const SINGLE: &str = "persistence in one blockage";
const CLAIM: &str = "faulkner-limited-persistence-no-benefit";

/// When a packet is given up: as a case is called, and as COTMLL takes it.
type Persistence = (&'static str, &'static str);

const UNLIMITED: Persistence = ("unlimited", "");
const TWO_SECONDS: Persistence = ("2 s", "persistence = \"2 s\"");
const LIMITS: [Persistence; 7] = [
    ("1 s", "persistence = \"1 s\""),
    TWO_SECONDS,
    ("5 s", "persistence = \"5 s\""),
    ("10 s", "persistence = \"10 s\""),
    ("3 sendings", "attempts = 3"),
    ("10 sendings", "attempts = 10"),
    ("30 sendings", "attempts = 30"),
];
/// How many limits in seconds there are at the head of [`LIMITS`]; the others count sendings.
const IN_SECONDS: usize = 4;
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// Mean blockages and how long a run lasts at each, in seconds.
const DURATIONS: [(f64, f64); 2] = [(1.0, 300.0), (5.0, 360.0)];
const SEEDS: u32 = 25;
/// What an average gain has to reach to be one (the claim's check).
const GAIN: f64 = 1.05;

/// The single blockage: when it starts and ends.
const BLOCKED: f64 = 20.0;
const REOPENED: f64 = 30.0;
/// When its run ends; TCP's timer has long expired by then.
const END: f64 = 120.0;
/// Bytes of payload that a frame holds. A packet's last frame is its own, so that 1500 bytes take four and an ACK one.
const PAYLOAD: usize = 487;

fn limits(effort: Effort) -> &'static [Persistence] {
    effort.choose(&LIMITS[1..2], &LIMITS)
}

fn channels(effort: Effort) -> Vec<(f64, f64, f64)> {
    let fractions = effort.choose(&FRACTIONS[1..2], &FRACTIONS);
    let durations = effort.choose(&DURATIONS[..1], &DURATIONS);
    fractions.iter().flat_map(|&f| durations.iter().map(move |&(d, seconds)| (f, d, seconds))).collect()
}

fn name(limit: &str, f: f64, d: f64) -> String {
    format!("{limit} f={f} d={d}")
}

fn protocol((_, setting): Persistence) -> String {
    format!("link.satellite.protocol={{ cotmll = {{ {setting} }} }}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for &limit in [UNLIMITED].iter().chain(limits(effort)) {
        for (f, d, seconds) in channels(effort) {
            let set = [protocol(limit)];
            let scenario = scenario(Scheme::TcpLl, &Channel::Blockage { f, d }, seconds, &set)?;
            cases.push(Case::new(name(limit.0, f, d), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

fn single_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    let channel = Channel::Periodic { blocked: REOPENED - BLOCKED, open: 10.0 * END, first: BLOCKED };
    for limit in [UNLIMITED, TWO_SECONDS] {
        let set = [protocol(limit), "traffic.download.bulk.jitter=1 s".to_owned()];
        let scenario = scenario(Scheme::TcpLl, &channel, END, &set)?;
        cases.push(Case::new(limit.0, scenario, effort.choose(3, SEEDS)));
    }
    Ok(cases)
}

/// Counts what passes a host, and notes when TCP data arrived that had not been there yet.
#[derive(Debug, Default)]
struct Passing {
    /// Bytes of each packet.
    sent: Vec<usize>,
    received: u64,
    highest: Option<SeqNum>,
    news: Vec<Instant>,
}

impl Passing {
    fn note_data(&mut self, now: Instant, packet: &[u8]) -> Option<()> {
        let packet = ip::View::parse(packet).ok().filter(|view| view.protocol() == Protocol::TCP)?;
        let view = tcp::View::parse(packet.payload()).ok()?;
        let header = tcp::Repr::parse(&view, packet.src(), packet.dst()).ok()?;
        let len = view.payload().len() as u32;
        let end = header.seq + len;
        if len > 0 && self.highest.is_none_or(|highest| end.distance(highest) > 0) {
            self.highest = Some(end);
            self.news.push(now);
        }
        Some(())
    }
}

impl Observer for Passing {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        match direction {
            Direction::Sent => self.sent.push(packet.len()),
            Direction::Received => {
                self.received += 1;
                // Other packets than TCP's are only counted.
                let _ = self.note_data(now, packet);
            }
        }
    }
}

fn measure_single(case: &Case, seed: u64) -> io::Result<Measurements> {
    let scenario: &Scenario = case.scenario();
    let mut network = Network::build(scenario, seed);
    let mut watch = |name: &str| {
        let passing = Rc::new(RefCell::new(Passing::default()));
        network.engine.observe(network.nodes[name], Rc::clone(&passing));
        passing
    };
    let (server, terminal) = (watch("server"), watch("terminal"));
    let reopened = Instant::ZERO + Duration::from_secs_f64(REOPENED);
    network.engine.run(reopened, 0);
    let mut measured = Measurements::new();
    let outstanding = outstanding(&network, &server.borrow().sent, terminal.borrow().received);
    measured.note("outstanding", outstanding.map(|frames| frames as f64));
    network.engine.run(Instant::ZERO + scenario.duration, 0);
    let first = terminal.borrow().news.iter().copied().find(|&at| at > reopened);
    measured.note("first", first.map(|at| at.saturating_since(reopened).as_secs_f64()));
    Ok(measured)
}

/// Frames of the packets that the downlink has taken from its queue, and neither delivered nor given up: the last that were
/// sent before those in the queue. What the queue dropped is as long as they are.
fn outstanding(network: &Network, sent: &[usize], received: u64) -> Option<usize> {
    let Element::Link(link) = network.engine.node(network.links["satellite"]) else { return None };
    let (end, report) = (link.end(Port(0)), link.end(Port(0)).report());
    let counted = |name: &str| report.get(name).copied();
    let dropped = counted("queue-dropped-for-packets")? + counted("queue-dropped-for-bytes")?;
    let gone = (received + dropped + counted("endpoint-packets-given-up")?) as usize;
    let queued = end.entry().len();
    let packets = sent.len().saturating_sub(gone + queued);
    Some(sent.iter().rev().skip(queued).take(packets).map(|bytes| bytes.div_ceil(PAYLOAD)).sum())
}

fn remark(claim: &str) -> Option<&'static str> {
    (claim == "faulkner-limited-persistence-no-benefit").then_some(
        "No limit gains 5 % for certain (the best, 10 s at f = 0.5, gains 4 to 11 %), and after a blockage the link has nothing left to send, as the thesis \
         argues. What that costs falls a little short of the factor of 2 asked, which is not the thesis's.",
    )
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    (claim == CLAIM).then(|| no_benefit(samples))
}

/// T(limited) / T(unlimited) on the channel where its interval lies highest; none if a channel has none.
fn best_gain(samples: &Samples, limit: Persistence) -> Option<(String, Interval)> {
    let mut best: Option<(String, Interval)> = None;
    for (f, d, _) in channels(samples.effort()) {
        let names = [name(limit.0, f, d), name(UNLIMITED.0, f, d)];
        let ratio = samples.ratio(SWEEP, [&names[0], &names[1]], "T")?;
        if best.as_ref().is_none_or(|(_, best)| ratio.low > best.low) {
            best = Some((format!("f = {f}, d = {d} s"), ratio));
        }
    }
    best
}

fn no_benefit(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for &limit in limits(samples.effort()) {
        let best = best_gain(samples, limit);
        let place = best.as_ref().map_or("any channel", |(place, _)| place);
        criteria.push(Criterion::new(
            format!("T(limit {}) / T(unlimited) where best: {place}", limit.0),
            format!("interval reaches below {GAIN}"),
            best.as_ref().map(|(_, ratio)| *ratio),
            best.as_ref().map(|(_, ratio)| ratio.low < GAIN),
        ));
    }
    let outstanding = |limit: Persistence| samples.interval(SINGLE, limit.0, "outstanding");
    let many = outstanding(UNLIMITED);
    criteria.push(Criterion::at_most(
        "frames outstanding as the blockage ends, limit 2 s",
        outstanding(TWO_SECONDS),
        4.0,
    ));
    criteria.push(Criterion::new(
        "frames outstanding as the blockage ends, unlimited",
        "above 40",
        many,
        many.map(|many| many.mean > 40.0),
    ));
    criteria.push(Criterion::at_least(
        "reopening to the first new byte, limit 2 s over unlimited",
        samples.ratio(SINGLE, [TWO_SECONDS.0, UNLIMITED.0], "first"),
        2.0,
    ));
    Ruling::all(criteria)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &limit in [UNLIMITED].iter().chain(limits(samples.effort())) {
        for (f, d, _) in channels(samples.effort()) {
            let row = [("limit", limit.0.to_owned()), ("f", f.to_string()), ("d", format!("{d} s"))];
            let values = samples.values(SWEEP, &name(limit.0, f, d), "T");
            cells.push(Cell { bound: Some(1.0 - f), ..Cell::of_mean(SWEEP, &row, values) });
        }
    }
    cells
}

/// Two panels: limits in seconds, and in sendings.
fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(SWEEP) {
        return Vec::new();
    }
    let (seconds, sendings) = LIMITS.split_at(IN_SECONDS);
    let panels = [("seconds", "s", seconds), ("sendings", "sendings", sendings)];
    panels.into_iter().filter_map(|(what, unit, limits)| over_limits(samples, what, unit, limits)).collect()
}

/// Throughput over one kind of limit, a curve a channel, beside that without a limit; none if no such limit ran.
fn over_limits(samples: &Samples, what: &str, unit: &str, limits: &[Persistence]) -> Option<Figure> {
    let at = |limit: &str| limit.split(' ').next()?.parse::<f64>().ok();
    let mut curves = Curves::new(&format!("limit ({unit})"), "normalised throughput").log_x();
    let mut has_any = false;
    for (colour, (f, d, _)) in channels(samples.effort()).into_iter().enumerate() {
        let throughput = |limit: &str| samples.interval(SWEEP, &name(limit, f, d), "T");
        let point = |limit: &Persistence| Some((at(limit.0)?, throughput(limit.0)?));
        let points: Vec<(f64, Interval)> = limits.iter().filter_map(point).collect();
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        has_any = true;
        if let Some(unlimited) = throughput(UNLIMITED.0) {
            curves = curves.level(colour, first.0..last.0, unlimited.mean);
        }
        curves = curves.measured(&format!("f = {f}, d = {d} s"), colour, &points);
    }
    has_any.then(|| Figure {
        name: format!("{SWEEP}-{what}"),
        title: format!("Section 5.2: throughput when a packet is given up after so many {what}"),
        caption: format!(
            "Means over realisations of the channel, {SEEDS} in full, with 95 % intervals; dashed in the same colour: \
             without a limit, in the same realisations."
        ),
        svg: curves.svg(),
    })
}
