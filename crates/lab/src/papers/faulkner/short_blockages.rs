//! Section 4.2.1, figure 4-10: blockages as short as a frame, for TCP over the link and for a source that never runs dry.
//!
//! The thesis does not say at which blocked fraction figure 4-10 was measured: 0.1 and 0.3 both are. Throughput is that of the
//! steady state: slow start, and the filling of the link's window, are left out. What is counted of a run of TCP lasts at
//! least 150 channel periods and 100 s, of the saturated link 30 periods and 60 s.
//!
//! Whether the saturated link follows the formula is decided where so many frames are to be expected that their number's
//! standard error, one over its root, is below 1 %: of the shortest blockages hardly any frame comes at all.

use std::io;

use base::config::ConfigError;

use super::Topic;
use super::drawing::Curves;
use super::setting::{Channel, FRAME_BITS, RATE, Scheme, normalised, received_by, scenario};
use crate::claims::Measurements;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::{Bootstrap, Interval, crossing, mean};

pub(super) const TOPIC: Topic = Topic { experiments: &[EXPERIMENT], rule, remark, cells, figures };

const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-10"], claims: &[CLAIM], cases, measure };

const NAME: &str = "short blockages";
const CLAIM: &str = "faulkner-short-blockage-knee";
const FRACTIONS: [f64; 2] = [0.1, 0.3];
/// A frame's time in seconds, 3968 bits at 262144 bit/s, to the microsecond.
const FRAME: f64 = 0.015_137;
/// Mean blockages in seconds.
const DURATIONS: [f64; 11] = [0.0005, 0.001, 0.002, 0.005, FRAME, 0.03, 0.06, 0.1, SHORTER, 0.5, LONGEST];
const QUICK_DURATIONS: [f64; 4] = [0.002, FRAME, SHORTER, LONGEST];
/// What is short of the plateau, and what is on it.
const SHORTER: f64 = 0.2;
const LONGEST: f64 = 1.0;
const REALISATIONS: u32 = 20;

/// What fills the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// A bulk transfer.
    Tcp,
    /// Datagrams faster than the line, each of which fills a frame.
    Saturated,
}

const LOADS: [Load; 2] = [Load::Tcp, Load::Saturated];
/// Bytes of a record that fills a frame with IP's 20 and UDP's 8 bytes.
const RECORD: f64 = 459.0;

impl Load {
    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP-LL",
            Self::Saturated => "saturated link",
        }
    }

    /// Seconds at the start of a run that are not counted, and those that are.
    fn seconds(self, channel: &Channel, effort: Effort) -> [f64; 2] {
        let period = channel.period().unwrap_or_default();
        let full = match self {
            Self::Tcp => [50.0, (150.0 * period).max(100.0).ceil()],
            Self::Saturated => [20.0, (30.0 * period).max(60.0).ceil()],
        };
        effort.choose([10.0, 20.0], full)
    }

    fn settings(self) -> Vec<String> {
        match self {
            Self::Tcp => Vec::new(),
            Self::Saturated => vec![format!(
                "traffic.download={{ rate = {{ from = \"server\", to = \"terminal\", transport = \"udp\", \
                 rate = \"300 kbit/s\", record = \"{RECORD} B\" }} }}"
            )],
        }
    }

    /// Bits that the line carries for each that the application gets, where whole frames count.
    fn line_bits(self) -> f64 {
        match self {
            Self::Tcp => 1.0,
            Self::Saturated => FRAME_BITS / (8.0 * RECORD),
        }
    }
}

fn durations(effort: Effort) -> &'static [f64] {
    effort.choose(&QUICK_DURATIONS, &DURATIONS)
}

fn name(load: Load, f: f64, d: f64) -> String {
    format!("{} f={f} d={d}", load.name())
}

/// The saturated link with a receiver that tells of another block (ours), where it is run for comparison.
fn latest_name(f: f64, d: f64) -> String {
    format!("latest block f={f} d={d}")
}

const LATEST: &str = "link.satellite.protocol={ cotmll = { block = \"latest\" } }";
const LATEST_DURATIONS: [f64; 2] = [FRAME, SHORTER];

/// Where more than the thesis has is run.
fn latest_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    let load = Load::Saturated;
    for f in FRACTIONS {
        for d in LATEST_DURATIONS {
            let channel = Channel::Blockage { f, d };
            let [start, counted] = load.seconds(&channel, effort);
            let mut set = load.settings();
            set.push(LATEST.to_owned());
            let scenario = scenario(Scheme::TcpLl, &channel, start + counted, &set)?;
            let case = Case::new(latest_name(f, d), scenario, effort.choose(1, REALISATIONS));
            cases.push(case.with("start", start).with("line bits", load.line_bits()));
        }
    }
    Ok(cases)
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = latest_cases(effort)?;
    for load in LOADS {
        for f in FRACTIONS {
            for &d in durations(effort) {
                let channel = Channel::Blockage { f, d };
                let [start, counted] = load.seconds(&channel, effort);
                let scenario = scenario(Scheme::TcpLl, &channel, start + counted, &load.settings())?;
                let case = Case::new(name(load, f, d), scenario, effort.choose(2, REALISATIONS));
                cases.push(case.with("start", start).with("line bits", load.line_bits()));
            }
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { progress: true, ..Watch::default() })?;
    let (start, end) = (case.numbers["start"], scenario.duration.as_secs_f64());
    let points = run.progress.first().map_or(&[][..], |received| &received.points);
    let bytes = received_by(points, end) - received_by(points, start);
    let mut measured = Measurements::new();
    let bps = bytes as f64 * 8.0 / (end - start);
    measured.note("T", normalised(bps) * case.numbers["line bits"]);
    let down = &run.links["satellite/down"];
    measured.note("intact", 1.0 - down["frames-lost"] as f64 / down["frames-sent"] as f64);
    measured.note("filler", down["bits-filler"] as f64 / RATE / end);
    Ok(measured)
}

/// The share of frames that start while the line is open and end before the next blockage.
fn formula(f: f64, d: f64) -> f64 {
    (1.0 - f) * libm::exp(-f / (1.0 - f) * FRAME_BITS / RATE / d)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    (claim == CLAIM).then(|| knee(samples))
}

fn remark(claim: &str) -> Option<&'static str> {
    (claim == CLAIM).then_some(
        "Frames get through as the formula says, but the link does not keep up with them: each frame tells of the first block \
         only, so among many short gaps few losses are flagged in time, the window fills, and much of the line goes over it \
         again. The more often the channel is blocked, the longer blockages have to be before that stops. A receiver that \
         told of the block that came last would let the link follow the formula.",
    )
}

/// Frames whose number has a standard error of 1 %.
const ENOUGH: f64 = 1e4;

/// Frames that should get through the saturated link in all runs at a mean blockage.
fn expected(samples: &Samples, f: f64, d: f64) -> f64 {
    let load = Load::Saturated;
    let [_, counted] = load.seconds(&Channel::Blockage { f, d }, samples.effort());
    let runs = samples.runs(NAME, &name(load, f, d)).len();
    formula(f, d) * counted * RATE / FRAME_BITS * runs as f64
}

/// A quantity over the formula where that is furthest off, with the mean blockage there; of those where enough frames are
/// to be expected.
fn furthest(samples: &Samples, quantity: &str, f: f64) -> Option<(f64, Interval)> {
    let mut worst: Option<(f64, Interval)> = None;
    for &d in durations(samples.effort()).iter().filter(|&&d| expected(samples, f, d) > ENOUGH) {
        let values = samples.values(NAME, &name(Load::Saturated, f, d), quantity);
        let ratio = Interval::of(values.into_iter().map(|value| value / formula(f, d)), 0.95)?;
        let error = |ratio: &Interval| (ratio.mean - 1.0).abs();
        if worst.as_ref().is_none_or(|(_, worst)| error(&ratio) > error(worst)) {
            worst = Some((d, ratio));
        }
    }
    worst
}

/// Mean throughput at one mean blockage over that at another, with its bootstrap interval.
fn ratio(samples: &Samples, load: Load, f: f64, [above, below]: [f64; 2]) -> Option<Interval> {
    let [above, below] = [above, below].map(|d| name(load, f, d));
    let pairs = samples.pairs(NAME, [&above, &below], "T");
    Bootstrap::named(FIRST_SEED, &above).with_resamples(1000).interval(&pairs, 0.95, |pairs| {
        let (above, below) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        above / below
    })
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

/// The mean blockage in bits at which a curve over it falls to 0.9 of its last value.
fn knee_bits(curve: &[(f64, f64)]) -> Option<f64> {
    let logarithmic: Vec<(f64, f64)> = curve.iter().map(|&(d, value)| (libm::log(d), value)).collect();
    let plateau = curve.last()?.1;
    Some(libm::exp(crossing(&logarithmic, 0.9 * plateau)?) * RATE)
}

/// Mean throughput over the mean blockage.
fn curve(samples: &Samples, load: Load, f: f64) -> Vec<(f64, f64)> {
    let point = |&d: &f64| Some((d, mean(&samples.values(NAME, &name(load, f, d), "T"))?));
    DURATIONS.iter().filter_map(point).collect()
}

fn knee(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for f in FRACTIONS {
        let off = furthest(samples, "T", f);
        let place = |off: &Option<(f64, Interval)>| {
            off.as_ref().map_or(String::new(), |(d, _)| format!(", furthest off at d = {} ms", millis(*d)))
        };
        let what = format!("saturated link over C exp(-f / (1 - f) frame / d), f = {f}{}", place(&off));
        criteria.push(Criterion::within(what, off.map(|(_, ratio)| ratio), 0.97, 1.03));
        let intact = furthest(samples, "intact", f);
        let what = format!("share of intact frames over the same, f = {f}{}", place(&intact));
        criteria.push(Criterion::told(what, intact.map(|(_, ratio)| ratio)));
        let decided =
            durations(samples.effort()).iter().copied().filter(|&d| expected(samples, f, d) > ENOUGH);
        let least = decided.reduce(f64::min).map(millis);
        criteria.push(Criterion::told(
            format!("least mean blockage with enough frames for that, ms, f = {f}"),
            least,
        ));
        for d in LATEST_DURATIONS {
            let values = samples.values(NAME, &latest_name(f, d), "T");
            let ratio = Interval::of(values.into_iter().map(|value| value / formula(f, d)), 0.95);
            let what = format!(
                "saturated link over the formula, f = {f}, d = {} ms, if the receiver told of the block that came last",
                millis(d)
            );
            criteria.push(Criterion::told(what, ratio));
        }
        for d in [FRAME, SHORTER, LONGEST] {
            let values = samples.values(NAME, &name(Load::Saturated, f, d), "T");
            let ratio = Interval::of(values.into_iter().map(|value| value / formula(f, d)), 0.95);
            let what = format!("saturated link over the formula, f = {f}, d = {} ms", millis(d));
            criteria.push(Criterion::told(what, ratio));
            let filler = samples.interval(NAME, &name(Load::Saturated, f, d), "filler");
            let what =
                format!("share of its line that goes over the window again, f = {f}, d = {} ms", millis(d));
            criteria.push(Criterion::told(what, filler));
        }
        criteria.push(Criterion::within(
            format!("T(TCP-LL, 200 ms) / T(TCP-LL, 1 s), f = {f}"),
            ratio(samples, Load::Tcp, f, [SHORTER, LONGEST]),
            0.9,
            1.1,
        ));
        let at_frame = ratio(samples, Load::Tcp, f, [FRAME, LONGEST]);
        criteria.push(Criterion::new(
            format!("T(TCP-LL, one frame) / T(TCP-LL, 1 s), f = {f}"),
            "below 0.95",
            at_frame,
            at_frame.map(|ratio| ratio.mean < 0.95),
        ));
        for load in LOADS {
            let bits = knee_bits(&curve(samples, load, f));
            criteria.push(Criterion::told(format!("knee of {} in bits, f = {f}", load.name()), bits));
        }
        let formula: Vec<_> = DURATIONS.iter().map(|&d| (d, formula(f, d))).collect();
        criteria.push(Criterion::told(format!("knee of the formula in bits, f = {f}"), knee_bits(&formula)));
    }
    Ruling::all(criteria)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for load in LOADS {
        for f in FRACTIONS {
            for &d in durations(samples.effort()) {
                let row = [
                    ("scheme", load.name().to_owned()),
                    ("f", f.to_string()),
                    ("d", format!("{} bits", (d * RATE).round())),
                ];
                let values = samples.values(NAME, &name(load, f, d), "T");
                cells.push(Cell { bound: Some(formula(f, d)), ..Cell::of_mean("figure 4-10", &row, values) });
            }
        }
    }
    cells
}

fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut drawing = Curves::new("mean blockage in bits", "normalised throughput").log_x();
    let mut colour = 0;
    for load in LOADS {
        for f in FRACTIONS {
            let at = |&d: &f64| Some((d * RATE, samples.interval(NAME, &name(load, f, d), "T")?));
            let points: Vec<(f64, Interval)> = DURATIONS.iter().filter_map(at).collect();
            drawing = drawing.measured(&format!("{}, f = {f}", load.name()), colour, &points);
            colour += 1;
        }
    }
    for f in FRACTIONS {
        let points = DURATIONS.iter().map(|&d| (d * RATE, formula(f, d))).collect();
        drawing = drawing.calculated(&format!("intact frames, f = {f}"), points);
    }
    let frame = vec![(FRAME_BITS, 0.0), (FRAME_BITS, 1.0)];
    let n = samples.runs(NAME, &name(Load::Tcp, FRACTIONS[0], LONGEST)).len();
    vec![Figure {
        name: "figure-4-10".to_owned(),
        title: "Figure 4-10: throughput over short mean blockages".to_owned(),
        caption: format!(
            "Means of {n} realisations (seeds from {FIRST_SEED}) with 95 % intervals; of the saturated link whole frames \
             count. Dashed: the share of frames that no blockage touches, and the length of one frame."
        ),
        svg: drawing.calculated("one frame", frame).svg(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.9 of the plateau as the claim's note has it: 4185 bits at f = 0.1, 16100 at f = 0.3.
    #[test]
    fn the_formula_has_its_knee_where_it_should() {
        for (f, bits) in [(0.1, 4185.0), (0.3, 16_100.0)] {
            let steps = (0..=4000).map(|k| 5e-4 * libm::exp(f64::from(k) * 5e-3));
            let curve: Vec<_> = steps.map(|d| (d, formula(f, d))).collect();
            let knee = knee_bits(&curve).unwrap();
            assert!((knee / bits - 1.0).abs() < 0.01, "{f}: {knee}");
        }
    }
}
