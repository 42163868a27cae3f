//! Section 4.2.3, figure 4-14: a slower uplink.
//!
//! The symmetry factor s is the uplink's rate over the downlink's. A delayed ACK waits up to 200 ms here: full segments
//! are 46 ms apart at the thesis's rate, so Linux's least, 40 ms, would acknowledge every one of them after all. Without
//! errors nothing is left to chance, and one run is as good as 20.

mod delays;

use std::io;

use base::config::ConfigError;

use super::Topic;
use super::drawing::Curves;
use super::setting::{Channel, RATE, Scheme, scenario, throughput};
use crate::claims::Measurements;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::Interval;

pub(super) const TOPIC: Topic = Topic { experiments: &EXPERIMENTS, rule, remark, cells, figures };

const EXPERIMENTS: [Experiment; 1] =
    [Experiment { name: NAME, figures: &["4-14"], claims: &[CLEAR, BLOCKED], cases, measure }];

const NAME: &str = "asymmetry";
const CLEAR: &str = "faulkner-asymmetry-clear";
const BLOCKED: &str = "faulkner-asymmetry-blocked";

/// Blocked fractions of the curves; figure 4-14 does not list its own.
const FRACTIONS: [f64; 4] = [0.0, 0.1, 0.3, 0.5];
/// Mean blockage in seconds.
const BLOCKAGE: f64 = 1.0;
/// Symmetry factors, closer together where the clear channel's knee should be.
const FACTORS: [f64; 16] =
    [0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.055, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0];
const FEW_FACTORS: [f64; 6] = [0.02, 0.04, 0.05, 0.1, 0.2, 1.0];
/// Where the blocked channels have to lie below the clear one.
const COMPARED: [f64; 3] = [0.05, 0.1, 0.2];
/// Runs a point (figure 4-14).
const SEEDS: u32 = 20;
/// Where ACKs and recoveries are timed: how slow the uplink is, on the blocked channel and, beside it, on the clear one.
const TIMED: f64 = 0.3;
const SLOW: f64 = 0.05;
const SLOWEST: f64 = 0.02;
/// The share of T(1) at which a curve has its knee.
const KNEE: f64 = 0.95;

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acks {
    PerSegment,
    Delayed,
}

/// The curves: blocked channels with an ACK per segment, the clear one with delayed ACKs too.
const CURVES: [(f64, Acks); 5] = [
    (0.0, Acks::PerSegment),
    (0.0, Acks::Delayed),
    (0.1, Acks::PerSegment),
    (0.3, Acks::PerSegment),
    (0.5, Acks::PerSegment),
];

impl Acks {
    const fn name(self) -> &'static str {
        match self {
            Self::PerSegment => "ACK per segment",
            Self::Delayed => "delayed ACKs",
        }
    }

    fn settings(self) -> Vec<String> {
        match self {
            Self::PerSegment => vec!["tcp.acknowledgements.delay=off".to_owned()],
            Self::Delayed => {
                vec![
                    "tcp.acknowledgements.delay=on".to_owned(),
                    "tcp.acknowledgements.timeout=200 ms".to_owned(),
                ]
            }
        }
    }
}

fn factors(effort: Effort) -> &'static [f64] {
    effort.choose(&FEW_FACTORS, &FACTORS)
}

fn name(f: f64, acks: Acks, s: f64) -> String {
    format!("f={f}, {}, s={s}", acks.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for (f, acks) in CURVES {
        for &s in factors(effort) {
            let channel = Channel::Blockage { f, d: BLOCKAGE };
            let mut set = acks.settings();
            set.push(format!("link.satellite.channel.up-rate={} bit/s", (s * RATE).round()));
            let seconds = if f == 0.0 { 300.0 } else { channel.steady(300.0, effort) };
            let scenario = scenario(Scheme::TcpLl, &channel, seconds, &set)?;
            let seeds = if f == 0.0 { 1 } else { effort.choose(3, SEEDS) };
            let case = Case::new(name(f, acks, s), scenario, seeds);
            let is_timed = acks == Acks::PerSegment
                && ((f == TIMED && (s == SLOW || s == 1.0)) || (f == 0.0 && s == SLOWEST));
            cases.push(if is_timed { case.with("timed", 1.0) } else { case });
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    for direction in ["up", "down"] {
        let link = &run.links[&format!("satellite/{direction}")];
        let dropped = link["queue-dropped-for-packets"] + link["queue-dropped-for-bytes"];
        measured.note(&format!("dropped {direction}"), dropped as f64);
    }
    measured.note("sent again", run.transfers[0].retransmissions as f64);
    measured.note("timeouts", run.transfers[0].timeouts as f64);
    if case.numbers.contains_key("timed") {
        measured.extend(delays::measure(scenario, seed));
    }
    Ok(measured)
}

/// T(s) / T(1), pairs of runs with the same blockages; without errors there is but one run.
fn share(samples: &Samples, f: f64, acks: Acks, s: f64) -> Option<Interval> {
    let names = [name(f, acks, s), name(f, acks, 1.0)];
    if f > 0.0 {
        return samples.ratio(NAME, [&names[0], &names[1]], "T");
    }
    let mean = samples.mean(NAME, &names[0], "T")? / samples.mean(NAME, &names[1], "T")?;
    Some(Interval { mean, low: mean, high: mean, n: 1 })
}

/// A curve of figure 4-14.
fn curve(samples: &Samples, f: f64, acks: Acks) -> Vec<(f64, Interval)> {
    let at = |&s: &f64| Some((s, share(samples, f, acks, s)?));
    factors(samples.effort()).iter().filter_map(at).collect()
}

/// The least s from which on the curve stays at 0.95 or above, interpolated; none if it is nowhere below.
fn knee(curve: &[(f64, Interval)]) -> Option<f64> {
    let below = curve.iter().rposition(|(_, share)| share.mean < KNEE)?;
    let ((x0, y0), (x1, y1)) = (curve[below], *curve.get(below + 1)?);
    Some(x0 + (KNEE - y0.mean) / (y1.mean - y0.mean) * (x1 - x0))
}

/// The steepest rise of a curve, per unit of ln s as the figure's axis has it.
fn steepest(curve: &[(f64, Interval)]) -> Option<f64> {
    let slope = |pair: &[(f64, Interval)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (y1.mean - y0.mean) / libm::log(x1 / x0)
    };
    curve.windows(2).map(slope).reduce(f64::max)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        CLEAR => Some(clear(samples)),
        BLOCKED => Some(blocked(samples)),
        _ => None,
    }
}

fn clear(samples: &Samples) -> Ruling {
    let each = curve(samples, 0.0, Acks::PerSegment);
    let delayed = curve(samples, 0.0, Acks::Delayed);
    let full = each.iter().filter(|(s, _)| *s >= SLOW).map(|(_, share)| share.mean).reduce(f64::min);
    let knees = [knee(&each), knee(&delayed)];
    let below: Vec<f64> = each.iter().filter(|(s, _)| *s <= SLOW).map(|(_, share)| share.mean).collect();
    let rise = below.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min);
    let halved = knees[0].and_then(|each| Some(knees[1]? / each));
    let mut criteria = vec![
        Criterion::at_least("least T(s) / T(1) for s from 0.05 on", full, KNEE),
        Criterion::new("least rise over a step of s up to 0.05", "above 0", rise, rise.map(|r| r > 0.0)),
        Criterion::within("knee, ACK per segment", knees[0], 0.03, 0.055),
        Criterion::told("knee, delayed ACKs", knees[1]),
        // "About half" of the check, to a fifth of it.
        Criterion::within("knee with delayed ACKs over that with an ACK per segment", halved, 0.4, 0.6),
    ];
    let told = |what: &str, s: f64, quantity: &str| {
        let value = samples.mean(NAME, &name(0.0, Acks::PerSegment, s), quantity);
        Criterion::told(format!("{what}, ACK per segment, s = {s}"), value)
    };
    for &s in factors(samples.effort()).iter().filter(|&&s| s <= SLOW) {
        criteria.push(told("packets that the uplink's queue dropped", s, "dropped up"));
        criteria.push(told("packets that the downlink's dropped", s, "dropped down"));
        criteria.push(told("segments that TCP sent again", s, "sent again"));
        criteria.push(told("TCP's time-outs", s, "timeouts"));
    }
    criteria.push(told("mean latency of TCP's ACKs in s", SLOWEST, "ACK latency"));
    Ruling::all(criteria)
}

fn blocked(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let clear_slope = steepest(&curve(samples, 0.0, Acks::PerSegment));
    for f in FRACTIONS.into_iter().filter(|&f| f > 0.0) {
        let less = COMPARED.map(|s| less_than_clear(samples, f, s));
        for (s, less) in COMPARED.into_iter().zip(less) {
            let what = format!("T(s) / T(1) less the clear channel's at f = {f}, s = {s}");
            let lower = less.map(|less| less.mean < 0.0);
            criteria.push(Criterion::new(what, "below 0", less, lower));
        }
        let all: Option<Vec<Interval>> = less.into_iter().collect();
        let sure = all.map(|all| all.iter().filter(|less| less.is_below(0.0)).count() as f64);
        criteria.push(Criterion::at_least(
            format!("s of three with that interval below 0 at f = {f}"),
            sure,
            2.0,
        ));
        let slope = steepest(&curve(samples, f, Acks::PerSegment));
        let gentler = slope.zip(clear_slope).map(|(slope, clear)| slope < clear);
        let required = clear_slope.map_or_else(
            || "below the clear channel's".to_owned(),
            |clear| format!("below {clear:.3}, the clear channel's"),
        );
        criteria.push(Criterion::new(
            format!("steepest slope per ln s at f = {f}"),
            required,
            slope,
            gentler,
        ));
    }
    let [slow, symmetric] = [SLOW, 1.0].map(|s| name(TIMED, Acks::PerSegment, s));
    for (what, quantity) in
        [("mean latency of TCP's ACKs", "ACK latency"), ("median recovery from a blockage", "recovery")]
    {
        let ratio = samples.ratio(NAME, [&slow, &symmetric], quantity);
        let is_above = ratio.map(|ratio| ratio.mean > 1.0);
        let over = format!("{what} at f = {TIMED}, s = {SLOW} over s = 1");
        criteria.push(Criterion::new(over, "above 1", ratio, is_above));
        for (s, case) in [(SLOW, &slow), (1.0, &symmetric)] {
            let what = format!("{what} at f = {TIMED}, s = {s}, in s");
            criteria.push(Criterion::told(what, samples.interval(NAME, case, quantity)));
        }
    }
    Ruling::all(criteria)
}

/// How much further than the clear channel's throughput a blocked channel's has fallen.
fn less_than_clear(samples: &Samples, f: f64, s: f64) -> Option<Interval> {
    let clear = share(samples, 0.0, Acks::PerSegment, s)?.mean;
    let Interval { mean, low, high, n } = share(samples, f, Acks::PerSegment, s)?;
    Some(Interval { mean: mean - clear, low: low - clear, high: high - clear, n })
}

fn remark(claim: &str) -> Option<&'static str> {
    match claim {
        CLEAR => Some(
            "The uplink's queue of 100 packets drops ACKs, and cumulative ACKs make up for those: the rate of ACKs is no \
             limit. At s = 0.025 and below nothing is sent again at all; at 0.02 an ACK takes nine seconds, so that probably \
             a receive window a round trip is what remains. From 0.03 on the queue before the downlink overflows, and from \
             0.035 to 0.045 TCP times out as well. So delaying ACKs moves the knee but little.",
        ),
        BLOCKED => Some(
            "At s = 0.05 ACKs do take five times as long as on a symmetric link and recoveries a tenth longer. But throughput \
             loses next to nothing by it: it shows at f = 0.5 alone.",
        ),
        _ => None,
    }
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (f, acks) in CURVES {
        for &s in factors(samples.effort()) {
            let row = [("f", f.to_string()), ("ACKs", acks.name().to_owned()), ("s", s.to_string())];
            let values = samples.values(NAME, &name(f, acks, s), "T");
            cells.push(Cell { bound: Some(1.0 - f), ..Cell::of_mean("figure 4-14", &row, values) });
        }
    }
    cells
}

fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut curves = Curves::new("symmetry factor s", "T(s) / T(1)").log_x();
    for (colour, (f, acks)) in CURVES.into_iter().enumerate() {
        curves = curves.measured(&format!("f = {f}, {}", acks.name()), colour, &curve(samples, f, acks));
    }
    let acks_alone = |&s: &f64| (s, (s * 1438.0 / 62.0).min(1.0));
    let bound = factors(samples.effort()).iter().map(acks_alone).collect();
    let pairs = samples.runs(NAME, &name(TIMED, Acks::PerSegment, 1.0)).len();
    vec![Figure {
        name: "figure-4-14".to_owned(),
        title: "Figure 4-14: throughput over the uplink's rate".to_owned(),
        caption: format!(
            "Throughput over that of a symmetric link, d = 1 s; means over {pairs} pairs of runs with 95 % intervals, one \
             run a point without blockages. Dashed: the thesis's limit, an ACK of 62 bytes for every 1438."
        ),
        svg: curves.calculated("62 / 1438", bound).svg(),
    }]
}
