//! Figure 4-12: latency over load at f = 0.1, a curve per mean blockage, and where the curves change places.
//!
//! The shortest and the longest blockages, which the verdict rests on, have 40 runs of the thesis's 300 s. For d = 0.2 s
//! these are 150 channel periods each, for d = 5 s six: 150 of those would take 7500 s, and 40 such runs a load half an
//! hour of one core. Longer runs of both are told for two loads instead.

use base::config::ConfigError;

use super::{FEW_LOADS, SECONDS, SEEDS, Source, load, measure, offered};
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::Channel;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::statistics::{Bootstrap, Interval, crossing, mean};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-12"],
    claims: &["faulkner-latency-inversion", "faulkner-blockages-met-while-queued"],
    cases,
    measure,
};

/// The same with datagrams: what the link alone does.
pub(super) const WITHOUT_TCP: Experiment = Experiment {
    name: UDP,
    figures: &["4-12"],
    claims: &["faulkner-latency-inversion"],
    cases: cases_without_tcp,
    measure,
};

pub(super) const LONG_RUNS: Experiment = Experiment {
    name: LONG,
    figures: &["4-12"],
    claims: &["faulkner-latency-inversion"],
    cases: long_cases,
    measure,
};

pub(super) const NAME: &str = "latency over load and d";
const UDP: &str = "latency over load and d, UDP";
const LONG: &str = "latency in long runs";
/// The blocked fraction of figure 4-12.
pub(super) const F: f64 = 0.1;
/// Mean blockages in seconds; the thesis does not list them.
pub(super) const DURATIONS: [f64; 5] = [SHORT, 0.5, 1.0, 2.0, LENGTHY];
pub(super) const SHORT: f64 = 0.2;
pub(super) const LENGTHY: f64 = 5.0;
/// Tenths of the capacity.
const LOADS: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Where the control with datagrams runs.
const CONTROLLED: [u32; 6] = [2, 5, 6, 7, 8, 9];
/// Runs a point of the two extreme curves (the claim's experiment).
const EXTREME_SEEDS: u32 = 40;
const LONG_LOADS: [u32; 2] = [8, 9];
const LONG_SECONDS: f64 = 3000.0;
const LONG_SEEDS: u32 = 6;
/// Where the order has to be each way round (the claim's check), in tenths.
const LOW: u32 = 5;
const HIGH: u32 = 8;

fn loads(effort: Effort) -> &'static [u32] {
    effort.choose(&FEW_LOADS, &LOADS)
}

pub(super) fn name(d: f64, tenths: u32) -> String {
    format!("d={d} load={}", load(tenths))
}

fn case(d: f64, tenths: u32, transport: &'static str, seconds: f64, seeds: u32) -> Result<Case, ConfigError> {
    let channel = Channel::Blockage { f: F, d };
    let source = Source { transport, ..Source::tcp(offered(&channel, tenths)) };
    Ok(Case::new(name(d, tenths), source.over(&channel, seconds)?, seeds))
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for &d in effort.choose(&[SHORT, LENGTHY][..], &DURATIONS) {
        let full = if d == SHORT || d == LENGTHY { EXTREME_SEEDS } else { SEEDS };
        for &tenths in loads(effort) {
            cases.push(case(
                d,
                tenths,
                "tcp",
                effort.choose(SECONDS / 8.0, SECONDS),
                effort.choose(3, full),
            )?);
        }
    }
    Ok(cases)
}

fn cases_without_tcp(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for d in [SHORT, LENGTHY] {
        for tenths in CONTROLLED {
            let seconds = effort.choose(SECONDS / 8.0, SECONDS);
            cases.push(case(d, tenths, "udp", seconds, effort.choose(2, 2 * SEEDS))?);
        }
    }
    Ok(cases)
}

fn long_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for d in [SHORT, LENGTHY] {
        for tenths in LONG_LOADS {
            let seconds = effort.choose(LONG_SECONDS / 60.0, LONG_SECONDS);
            cases.push(case(d, tenths, "tcp", seconds, effort.choose(2, LONG_SEEDS))?);
        }
    }
    Ok(cases)
}

/// L at the shortest blockages less L at the longest.
fn lead(samples: &Samples, experiment: &'static str, tenths: u32) -> Option<Interval> {
    let [short, long] = [SHORT, LENGTHY].map(|d| name(d, tenths));
    samples.difference(experiment, [&short, &long], "L")
}

/// The load from which on the shortest blockages have the higher latency, having had the lower one; none if that happens
/// nowhere. Its bootstrap interval over the runs takes the last load where curves drawn again have not crossed.
fn turning_point(
    samples: &Samples,
    experiment: &'static str,
    longer: f64,
    loads: &[u32],
) -> Option<Interval> {
    let leads = |&tenths: &u32| {
        let [short, long] = [SHORT, longer].map(|d| name(d, tenths));
        samples
            .pairs(experiment, [&short, &long], "L")
            .into_iter()
            .map(|(short, long)| short - long)
            .collect()
    };
    let by_load: Vec<Vec<f64>> = loads.iter().map(leads).collect();
    let runs = by_load.iter().map(Vec::len).min().unwrap_or(0);
    let crossed = |places: &[&usize]| {
        let at = |leads: &Vec<f64>| mean(&places.iter().map(|&&place| leads[place]).collect::<Vec<_>>());
        let curve =
            loads.iter().zip(&by_load).filter_map(|(&tenths, leads)| Some((load(tenths), at(leads)?)));
        let curve: Vec<(f64, f64)> = curve.collect();
        // From minus to plus alone.
        let low = curve.iter().position(|(_, lead)| *lead < 0.0)?;
        crossing(&curve[low..], 0.0)
    };
    let places: Vec<usize> = (0..runs).collect();
    crossed(&places.iter().collect::<Vec<_>>())?;
    let last = load(*loads.last()?);
    let of = |places: &[&usize]| crossed(places).unwrap_or(last);
    Bootstrap::named(FIRST_SEED, experiment).with_resamples(1000).interval(&places, 0.95, of)
}

pub(super) fn inversion(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let what = |tenths: u32| format!("L(d = {SHORT} s) - L(d = {LENGTHY} s) in s at load {}", load(tenths));
    let loads = loads(samples.effort());
    for &tenths in loads.iter().filter(|&&tenths| tenths <= LOW) {
        criteria.push(Criterion::surely_below(what(tenths), lead(samples, NAME, tenths), 0.0));
    }
    for &tenths in loads.iter().filter(|&&tenths| tenths >= HIGH) {
        criteria.push(Criterion::surely_above(what(tenths), lead(samples, NAME, tenths), 0.0));
    }
    let turns = turning_point(samples, NAME, LENGTHY, loads);
    let has_run = loads.iter().all(|&tenths| lead(samples, NAME, tenths).is_some());
    let is_there = has_run.then(|| turns.is_some_and(|turns| (0.55..=0.75).contains(&turns.mean)));
    criteria.push(Criterion::new("load at which these curves cross", "0.55 to 0.75", turns, is_there));
    for d in [0.5, 1.0, 2.0] {
        let what = format!("load at which the curves of d = {SHORT} s and {d} s cross");
        criteria.push(Criterion::told(what, turning_point(samples, NAME, d, loads)));
    }
    for tenths in CONTROLLED {
        let over_udp = format!("{}, over UDP", what(tenths));
        criteria.push(Criterion::told(over_udp, lead(samples, UDP, tenths)));
    }
    criteria.push(Criterion::told(
        "load at which they cross over UDP",
        turning_point(samples, UDP, LENGTHY, &CONTROLLED),
    ));
    for tenths in LONG_LOADS {
        let long = format!("{}, in runs of {LONG_SECONDS} s", what(tenths));
        criteria.push(Criterion::told(long, lead(samples, LONG, tenths)));
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (experiment, transport) in [(NAME, "TCP"), (UDP, "UDP")] {
        for d in DURATIONS {
            for tenths in LOADS {
                let row = [
                    ("transport", transport.to_owned()),
                    ("d", format!("{d} s")),
                    ("load", load(tenths).to_string()),
                ];
                let values = samples.values(experiment, &name(d, tenths), "L");
                cells.push(Cell::of_mean("figure 4-12, s", &row, values));
            }
        }
    }
    cells
}

pub(super) fn figure(samples: &Samples) -> Option<Figure> {
    if !samples.has(NAME) {
        return None;
    }
    let mut curves = Curves::new("offered load / capacity", "mean latency in s").log_y();
    let curve = |experiment, d| -> Vec<(f64, Interval)> {
        let point = |tenths| Some((load(tenths), samples.interval(experiment, &name(d, tenths), "L")?));
        LOADS.into_iter().filter_map(point).collect()
    };
    for (colour, d) in DURATIONS.into_iter().enumerate() {
        let points = curve(NAME, d);
        if !points.is_empty() {
            curves = curves.measured(&format!("d = {d} s"), colour, &points);
        }
    }
    for d in [SHORT, LENGTHY] {
        let points = curve(UDP, d).into_iter().map(|(load, latency)| (load, latency.mean)).collect();
        curves = curves.calculated(&format!("d = {d} s, UDP"), points);
    }
    Some(Figure {
        name: "figure-4-12".to_owned(),
        title: "Figure 4-12: latency over load at f = 0.1, a curve per mean blockage".to_owned(),
        caption: format!(
            "TCP over COTMLL, runs of {SECONDS} s, in full {EXTREME_SEEDS} a point of the extreme curves and {SEEDS} of \
             the others; means with 95 % intervals. Dashed: datagrams over the same link, {} runs.",
            2 * SEEDS
        ),
        svg: curves.svg(),
    })
}
