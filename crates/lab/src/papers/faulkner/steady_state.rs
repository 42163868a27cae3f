//! Section 3.4.2, figure 3-4: how long a mean takes to be steady, and whether realisations ever agree.
//!
//! One run of 1600 channel periods a realisation serves both claims: its first 400 are the shorter run.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};

use super::Topic;
use super::drawing::Curves;
use super::setting::{Channel, Scheme, normalised, received_by, scenario};
use crate::claims::Measurements;
use crate::metrics::STEADY_PERIODS;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::run::{self, Watch};
use crate::scenario::Scenario;
use crate::statistics::{Bootstrap, Interval, LinearFit, mean, standard_deviation};

pub(super) const TOPIC: Topic = Topic { experiments: &[EXPERIMENT], rule, remark, cells, figures };

const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["3-4"], claims: &[STEADY, SPREAD], cases, measure };

const NAME: &str = "steady state";
const STEADY: &str = "faulkner-steady-state-after-150-periods";
const SPREAD: &str = "faulkner-spread-stops-shrinking";
/// Its period is the 2 s of figure 3-4.
const CHANNEL: Channel = Channel::Blockage { f: 0.5, d: 1.0 };
const PERIOD: f64 = 2.0;
const REALISATIONS: u32 = 20;
/// Periods of the run that a mean is compared with, and of the one that the spread is followed over.
const COMPARED: u32 = 400;
const FOLLOWED: u32 = 1600;
/// Where the spread is fitted, in periods: in equal steps of the logarithm, as nearly as the marks allow.
const FITTED: [u32; 7] = [150, 225, 325, 500, 750, 1100, 1600];
/// Lengths of a run that a few periods dominate, and of one that is said to be steady.
const EARLY: u32 = 15;
const STEADY_AFTER: u32 = STEADY_PERIODS;

/// Lengths in periods at which a run's mean is noted: every 5 at first, then every 25.
fn marks(periods: u32) -> impl Iterator<Item = u32> {
    let coarse = (COMPARED..=periods).step_by(25).skip(1);
    (5..=COMPARED.min(periods)).step_by(5).chain(coarse)
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let (periods, realisations) = effort.choose((COMPARED, 3), (FOLLOWED, REALISATIONS));
    let scenario = scenario(Scheme::TcpLl, &CHANNEL, f64::from(periods) * PERIOD, &[])?;
    let case = Case::new(Scheme::TcpLl.name(), scenario, realisations);
    Ok(vec![case.with("periods", periods.into())])
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { progress: true, ..Watch::default() })?;
    let points = run.progress.first().map_or(&[][..], |received| &received.points);
    let seconds = |periods: u32| f64::from(periods) * PERIOD;
    let mean = |periods| normalised(received_by(points, seconds(periods)) as f64 * 8.0 / seconds(periods));
    let periods = case.numbers["periods"] as u32;
    let mut measured = Measurements::new();
    measured.set_numbers("mean", marks(periods).map(mean), "nothing ran");
    let open = |periods| open_share(scenario, seed, seconds(periods));
    measured.set_numbers("open", marks(periods).map(open), "nothing ran");
    Ok(measured)
}

/// The part of a realisation's first seconds in which its line is open.
fn open_share(scenario: &Scenario, seed: u64, seconds: f64) -> f64 {
    let (name, down) = ("satellite", "down");
    let channel = &scenario.link[name].channel;
    let timeline = channel.down().errors.timeline(&channel.streams(seed, name, down));
    let end = Instant::ZERO + Duration::from_secs_f64(seconds);
    1.0 - timeline.blocked_time(Instant::ZERO..end).as_secs_f64() / seconds
}

/// A quantity of every realisation over the length of the run, in the order of [`marks`].
fn curves(samples: &Samples, quantity: &str) -> Vec<Vec<f64>> {
    samples.runs(NAME, Scheme::TcpLl.name()).iter().map(|run| run.numbers(quantity)).collect()
}

/// Every realisation's value at a length in periods; none if the runs were shorter.
fn at<C: AsRef<[f64]>>(curves: &[C], periods: u32) -> Option<Vec<f64>> {
    let place = marks(FOLLOWED).position(|mark| mark == periods)?;
    curves.iter().map(|curve| curve.as_ref().get(place).copied()).collect()
}

/// The standard deviation over realisations at a length in periods.
fn spread<C: AsRef<[f64]>>(curves: &[C], periods: u32) -> Option<f64> {
    standard_deviation(&at(curves, periods)?)
}

/// The exponent of the length with which the spread changes, over those of `lengths` that the runs reached.
fn exponent<C: AsRef<[f64]>>(curves: &[C], lengths: &[u32]) -> Option<f64> {
    let log = |&periods: &u32| Some((libm::log(periods.into()), libm::log(spread(curves, periods)?)));
    Some(LinearFit::of(&lengths.iter().filter_map(log).collect::<Vec<_>>())?.slope)
}

/// That exponent with its bootstrap interval over realisations.
fn exponent_interval(curves: &[Vec<f64>]) -> Option<Interval> {
    let mut bootstrap = Bootstrap::named(FIRST_SEED, NAME).with_resamples(2000);
    let interval = bootstrap.interval(curves, 0.95, |drawn| exponent(drawn, &FITTED).unwrap_or(f64::NAN))?;
    [interval.mean, interval.low, interval.high].iter().all(|end| end.is_finite()).then_some(interval)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        STEADY => Some(steady(samples)),
        SPREAD => Some(stops_shrinking(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    (claim == SPREAD).then_some(
        "Realisations differ as their open time does, and both spreads fall at least as fast as the square root of the \
         length, as independent periods make them. Up to 150 periods the spread falls more slowly, which probably is what \
         looks like a level.",
    )
}

/// How far the mean over realisations at a length is from that of the compared run, as a part of it.
fn off(curves: &[Vec<f64>], periods: u32) -> Option<Interval> {
    let (short, long) = (at(curves, periods)?, at(curves, COMPARED)?);
    let compared = mean(&long)?;
    Interval::of(short.iter().zip(&long).map(|(short, long)| (short - long) / compared), 0.95)
}

fn steady(samples: &Samples) -> Ruling {
    let curves = curves(samples, "mean");
    let early = off(&curves, EARLY);
    let ratio = spread(&curves, EARLY).zip(spread(&curves, STEADY_AFTER)).map(|(early, late)| early / late);
    let is_early_off = early.zip(ratio).map(|(off, ratio)| off.mean.abs() > 0.05 || ratio >= 2.0);
    let what = |periods: u32| format!("mean({periods} periods) / mean({COMPARED}) - 1");
    Ruling::all(vec![
        Criterion::within(what(STEADY_AFTER), off(&curves, STEADY_AFTER), -0.05, 0.05),
        Criterion::new(
            format!("spread at {EARLY} periods over that at {STEADY_AFTER}"),
            "at least 2, or the mean off by more than 5 %",
            ratio,
            is_early_off,
        ),
        Criterion::told(what(EARLY), early),
        Criterion::told(what(50), off(&curves, 50)),
    ])
}

fn stops_shrinking(samples: &Samples) -> Ruling {
    let (curves, open) = (curves(samples, "mean"), curves(samples, "open"));
    let fitted = exponent_interval(&curves);
    // Shorter runs tell nothing about what becomes of the spread in the end.
    let reaches = spread(&curves, FOLLOWED).is_some();
    let holds = fitted.filter(|_| reaches).map(|exponent| exponent.mean > -0.15);
    let mut criteria = vec![
        Criterion::new(
            format!("a of spread ~ length^a, {STEADY_AFTER} to {FOLLOWED} periods"),
            "above -0.15",
            fitted,
            holds,
        ),
        Criterion::told("the same of the open share of the time", exponent_interval(&open)),
        Criterion::told(
            "the same of the spread, 15 to 150 periods",
            exponent(&curves, &[15, 25, 50, 100, 150]),
        ),
    ];
    for periods in [EARLY, STEADY_AFTER, COMPARED, FOLLOWED] {
        criteria.push(Criterion::told(format!("spread at {periods} periods"), spread(&curves, periods)));
    }
    Ruling::all(criteria)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let curves = curves(samples, "mean");
    let lengths = [5, EARLY, 50, STEADY_AFTER, COMPARED, 800, FOLLOWED];
    let cell = |periods: u32| {
        let row = [("scheme", Scheme::TcpLl.name().to_owned()), ("periods", periods.to_string())];
        let values = at(&curves, periods).unwrap_or_default();
        Cell { bound: Some(CHANNEL.capacity()), ..Cell::of_mean("figure 3-4", &row, values) }
    };
    lengths.map(cell).into()
}

fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let curves = curves(samples, "mean");
    let n = curves.len();
    let figure = |name: &str, title: &str, caption: String, drawing: Curves| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption,
        svg: drawing.svg(),
    };
    vec![
        figure(
            "figure-3-4",
            "Figure 3-4, top: running mean of each realisation",
            format!(
                "{n} realisations (seeds from {FIRST_SEED}) of f = 0.5, d = 1 s, TCP-LL; dashed: capacity."
            ),
            traces(&curves),
        ),
        figure(
            "figure-3-4-mean",
            "Figure 3-4, bottom: mean of the running means",
            format!("Over the same {n} realisations, with 95 % intervals; dashed: capacity."),
            means(&curves),
        ),
        figure(
            "figure-3-4-spread",
            "Figure 3-4: spread of the running means over realisations",
            format!(
                "Standard deviation over the same {n} realisations, of the throughput and of the part of the time in which \
                 the line is open; dashed: falling with the square root of the length."
            ),
            spreads(&curves, &self::curves(samples, "open")),
        ),
    ]
}

const LENGTH: &str = "length of the run in channel periods";

fn capacity() -> Vec<(f64, f64)> {
    vec![(0.0, CHANNEL.capacity()), (COMPARED.into(), CHANNEL.capacity())]
}

fn traces(curves: &[Vec<f64>]) -> Curves {
    let mut drawing = Curves::new(LENGTH, "normalised throughput so far");
    for (colour, curve) in curves.iter().enumerate() {
        let points = marks(COMPARED).map(f64::from).zip(curve.iter().copied()).collect();
        drawing = drawing.trace(colour, points);
    }
    drawing.calculated("capacity", capacity())
}

fn means(curves: &[Vec<f64>]) -> Curves {
    let point = |periods: u32| Some((periods.into(), Interval::of(at(curves, periods)?, 0.95)?));
    let points: Vec<(f64, Interval)> = marks(COMPARED).step_by(3).filter_map(point).collect();
    Curves::new(LENGTH, "normalised throughput so far")
        .measured("TCP-LL", 1, &points)
        .calculated("capacity", capacity())
}

fn spreads(curves: &[Vec<f64>], open: &[Vec<f64>]) -> Curves {
    let over = |curves: &[Vec<f64>]| -> Vec<(f64, f64)> {
        marks(FOLLOWED).filter_map(|periods| Some((periods.into(), spread(curves, periods)?))).collect()
    };
    let mut drawing = Curves::new(LENGTH, "standard deviation")
        .log_x()
        .log_y()
        .line("throughput", 1, over(curves))
        .line("open share", 2, over(open));
    if let Some(from) = spread(curves, STEADY_AFTER) {
        let root = |periods: u32| from * (f64::from(STEADY_AFTER) / f64::from(periods)).sqrt();
        let points = [EARLY, FOLLOWED].map(|periods| (periods.into(), root(periods)));
        drawing = drawing.calculated("1 / square root", points.into());
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_that_is_asked_for_is_marked() {
        let asked = FITTED.into_iter().chain([5, EARLY, 25, 50, 100, STEADY_AFTER, COMPARED, 800, FOLLOWED]);
        for periods in asked {
            assert!(marks(FOLLOWED).any(|mark| mark == periods), "{periods}");
        }
        // A shorter run's marks are the first of a longer one's.
        let short: Vec<u32> = marks(COMPARED).collect();
        assert!(marks(FOLLOWED).take(short.len()).eq(short));
    }

    #[test]
    fn a_spread_that_falls_with_the_root_has_its_exponent() {
        let curve = |side: f64| -> Vec<f64> {
            marks(FOLLOWED).map(|periods| 0.3 + side / f64::from(periods).sqrt()).collect()
        };
        let curves = [curve(-1.0), curve(0.5), curve(1.0)];
        assert!((exponent(&curves, &FITTED).unwrap() + 0.5).abs() < 1e-9);
        assert_eq!(spread(&[vec![0.3]], FOLLOWED), None);
    }
}
