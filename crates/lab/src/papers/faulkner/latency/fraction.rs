//! Figure 4-11: latency over load, a curve per blocked fraction.

use base::config::ConfigError;

use super::laws::Laws;
use super::{FEW_LOADS, SECONDS, SEEDS, Source, load, measure, offered};
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::Channel;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::statistics::{Bootstrap, Interval};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-11"],
    claims: &["faulkner-latency-exponential-in-load", "faulkner-latency-higher-with-f"],
    cases,
    measure,
};

const NAME: &str = "latency over load and f";
/// The curves: the thesis does not list them.
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// Mean blockage in seconds.
const D: f64 = 1.0;
/// Tenths of the capacity.
const LOADS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/// Where the exponential is fitted (the claim's check).
const FITTED: core::ops::RangeInclusive<u32> = 2..=9;
/// For intervals: each resample is a search over two coefficients.
const RESAMPLES: usize = 400;
/// Where the fractions are compared (the claim's check).
const COMPARED: [u32; 4] = [2, 4, 6, 8];

fn loads(effort: Effort) -> &'static [u32] {
    effort.choose(&FEW_LOADS, &LOADS)
}

fn name(f: f64, tenths: u32) -> String {
    format!("f={f} load={}", load(tenths))
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for f in FRACTIONS {
        for &tenths in loads(effort) {
            let channel = Channel::Blockage { f, d: D };
            let source = Source::tcp(offered(&channel, tenths));
            let scenario = source.over(&channel, effort.choose(SECONDS / 8.0, SECONDS))?;
            cases.push(Case::new(name(f, tenths), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

/// The loads of the fit, and L at each of them, a row a run; none if a load did not run.
fn rows(samples: &Samples, f: f64) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let fitted = loads(samples.effort()).iter().filter(|tenths| FITTED.contains(tenths));
    let (loads, columns): (Vec<f64>, Vec<Vec<f64>>) =
        fitted.map(|&tenths| (load(tenths), samples.values(NAME, &name(f, tenths), "L"))).unzip();
    let runs = columns.iter().map(Vec::len).min().filter(|&runs| runs > 0)?;
    let row = |run| columns.iter().map(|column: &Vec<f64>| column[run]).collect();
    Some((loads, (0..runs).map(row).collect()))
}

/// The fits to the mean curve of some runs.
fn laws(loads: &[f64], runs: &[&Vec<f64>]) -> Option<Laws> {
    let mean = |place: usize| runs.iter().map(|run| run[place]).sum::<f64>() / runs.len() as f64;
    let points: Vec<_> = loads.iter().enumerate().map(|(place, &load)| (load, mean(place))).collect();
    Laws::of(&points)
}

pub(super) fn exponential(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let mut told = Vec::new();
    for f in FRACTIONS {
        let rows = rows(samples, f);
        let of = |what: &str, quantity: fn(&Laws) -> f64| {
            let (loads, runs) = rows.as_ref()?;
            laws(loads, &runs.iter().collect::<Vec<_>>())?;
            let statistic = |runs: &[&Vec<f64>]| laws(loads, runs).map_or(f64::NAN, |laws| quantity(&laws));
            Bootstrap::named(FIRST_SEED, what).with_resamples(RESAMPLES).interval(runs, 0.95, statistic)
        };
        let what = format!("R^2 of the line of log L, f = {f}");
        let explained = of(&what, |laws| laws.exponential.r_squared);
        criteria.push(Criterion::at_least(what, explained, 0.9));
        let what = format!("growth of log L per unit of load, f = {f}");
        let growth = of(&what, |laws| laws.exponential.slope);
        told.push(Criterion::told(what, growth));
        let what = format!("Akaike's criterion of log (a + b / (1 - load)) less the line's, f = {f}");
        let queue = of(&what, |laws| laws.queue_less_exponential);
        told.push(Criterion::told(what, queue));
    }
    criteria.extend(told);
    Ruling::all(criteria)
}

pub(super) fn higher(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let mut sure = Some(0);
    for tenths in COMPARED {
        let gain = |pair: &[f64]| {
            let [less, more] = [pair[0], pair[1]].map(|f| name(f, tenths));
            samples.difference(NAME, [&more, &less], "L")
        };
        let gains: Option<Vec<Interval>> = FRACTIONS.windows(2).map(gain).collect();
        let least =
            gains.as_ref().and_then(|gains| gains.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).copied());
        criteria.push(Criterion::new(
            format!("least step of L in s from one f to the next at load {}", load(tenths)),
            "above 0",
            least,
            least.map(|least| least.mean > 0.0),
        ));
        sure = sure
            .zip(gains)
            .map(|(sure, gains)| sure + u32::from(gains.iter().all(|gain| gain.is_above(0.0))));
    }
    criteria.push(Criterion::at_least(
        "loads at which the interval of every step excludes 0",
        sure.map(f64::from),
        2.0,
    ));
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for f in FRACTIONS {
        for tenths in LOADS {
            let row = [("f", f.to_string()), ("load", load(tenths).to_string())];
            cells.push(Cell::of_mean("figure 4-11, s", &row, samples.values(NAME, &name(f, tenths), "L")));
        }
    }
    cells
}

pub(super) fn figure(samples: &Samples) -> Option<Figure> {
    if !samples.has(NAME) {
        return None;
    }
    let mut curves = Curves::new("offered load / capacity", "mean latency in s").log_y();
    for (colour, f) in FRACTIONS.into_iter().enumerate() {
        let point = |&tenths: &u32| Some((load(tenths), samples.interval(NAME, &name(f, tenths), "L")?));
        let points: Vec<_> = loads(samples.effort()).iter().filter_map(point).collect();
        curves = curves.measured(&format!("f = {f}"), colour, &points);
    }
    Some(Figure {
        name: "figure-4-11".to_owned(),
        title: "Figure 4-11: latency over load, a curve per blocked fraction".to_owned(),
        caption: format!(
            "TCP over COTMLL, d = {D} s, {SEEDS} runs of {SECONDS} s a point in full; means with 95 % intervals. The \
             runs' length bounds what latency can grow to at high loads."
        ),
        svg: curves.svg(),
    })
}
