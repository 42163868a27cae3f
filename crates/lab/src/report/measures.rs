//! The measures that make channels comparable, one row per scheme: mean goodput with its interval, T, T/C, and how much of
//! the channel's ups and downs the runs saw.

use std::collections::BTreeSet;

use serde::Serialize;

use super::SchemeRuns;
use super::rate::{RateUnit, human_rate};
use crate::claims::{self, Sample};
use crate::metrics::{self, STEADY_PERIODS};
use crate::run::Run;
use crate::scenario::Suite;
use crate::statistics::{Interval, mean};

/// One scheme's measures, over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures<'a> {
    /// The scheme's name.
    pub scheme: &'a str,
    /// Application bits per second, the mean over the runs.
    pub mean_goodput_bps: f64,
    /// The 95 % interval of that mean, as studies have it; `None` for a single run.
    pub goodput_interval: Option<Interval>,
    /// The mean over the runs of T, goodput over the bottleneck's rate; `None` without one bottleneck.
    pub normalised_throughput: Option<f64>,
    /// The mean over the runs of T/C, goodput over what the channel's errors leave of that rate.
    pub throughput_per_capacity: Option<f64>,
    /// The fewest channel periods, each a mean blockage and open time, that a run covers; `None` without blockages.
    pub channel_periods: Option<f64>,
    /// Whether those are as many as a mean takes to be steady.
    pub steady: Option<bool>,
}

/// The headings of [`Measures::cells`].
pub(super) const HEADINGS: [&str; 6] =
    ["scheme", "goodput (mean)", "95 % interval", "T", "T/C", "channel periods"];

impl<'a> Measures<'a> {
    pub(super) fn of(scheme: &SchemeRuns<'a>) -> Self {
        let goodput: Vec<f64> = scheme.runs.iter().map(|run| run.goodput_bps).collect();
        let mean_of = |value: fn(&Run) -> Option<f64>| {
            let values: Option<Vec<f64>> = scheme.runs.iter().map(|run| value(run)).collect();
            mean(&values?)
        };
        let periods = scheme.runs.iter().filter_map(|run| run.channel_periods).min_by(f64::total_cmp);
        Self {
            scheme: scheme.name,
            mean_goodput_bps: mean(&goodput).unwrap_or_default(),
            goodput_interval: interval(&goodput),
            normalised_throughput: mean_of(|run| run.normalised_throughput),
            throughput_per_capacity: mean_of(|run| run.throughput_per_capacity),
            channel_periods: periods,
            steady: periods.map(|periods| periods >= f64::from(STEADY_PERIODS)),
        }
    }

    /// A row, with rates in `unit`.
    pub(super) fn cells(&self, unit: RateUnit) -> [String; 6] {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let ratio = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.3}")));
        let interval =
            |interval: Interval| format!("{} to {}", unit.show(interval.low), unit.show(interval.high));
        [
            self.scheme.to_owned(),
            unit.show(self.mean_goodput_bps),
            or_dash(self.goodput_interval.map(interval)),
            ratio(self.normalised_throughput),
            ratio(self.throughput_per_capacity),
            or_dash(self.channel_periods.map(|periods| format!("{periods:.1}"))),
        ]
    }
}

/// What the columns mean in this suite, a sentence each; those that say nothing here are left out.
pub(super) fn notes(suite: &Suite, measures: &[Measures<'_>]) -> Vec<String> {
    let scenarios = || suite.schemes.iter().map(|(_, scenario)| scenario);
    let bottlenecks: Vec<_> = scenarios().filter_map(metrics::bottleneck).collect();
    let all: BTreeSet<String> = bottlenecks
        .iter()
        .map(|narrow| {
            let (rate, direction) = (human_rate(narrow.rate.as_bps() as f64), &narrow.direction);
            match narrow.capacity {
                Some(capacity) => {
                    format!("{rate} of {direction}; C: the {capacity:.3} of it that channel errors leave")
                }
                None => format!("{rate} of {direction}; no C, since the channel is a recording"),
            }
        })
        .collect();
    let mut notes = Vec::new();
    if !all.is_empty() {
        let all = all.into_iter().collect::<Vec<_>>().join("; or ");
        notes.push(format!("T: goodput divided by the {all}"));
    }
    let periods: BTreeSet<_> = scenarios().filter_map(metrics::longest_period).collect();
    if !periods.is_empty() {
        let each = periods.iter().map(|period| format!("{:.3} s", period.as_secs_f64()));
        let each = each.collect::<Vec<_>>().join(" or ");
        notes.push(format!("one channel period = a blockage plus the open time before it ({each} on average); the shortest run is shown"));
    }
    let short = measures.iter().filter(|measures| measures.steady == Some(false));
    let short: Vec<&str> = short.map(|measures| measures.scheme).collect();
    if !short.is_empty() {
        let who =
            if short.len() == measures.len() { String::new() } else { format!("{}: ", short.join(", ")) };
        notes.push(format!(
            "{who}shorter than the {STEADY_PERIODS} channel periods that a steady mean takes (Faulkner 2004, 3.4.2)"
        ));
    }
    notes
}

/// The interval of a mean over the seeds; none of fewer than two.
fn interval(values: &[f64]) -> Option<Interval> {
    let estimate = Sample::of(values.iter().copied().map(Some)).mean().ok().filter(|it| it.n > 1)?;
    let (low, high) = estimate.spread(claims::LEVEL)?;
    Some(Interval { mean: estimate.point, low, high, n: estimate.n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_studies_and_goes_below_zero_where_it_does() {
        // One of three seeds is far off, so that the mean of others may be as far.
        let rates = [1e3, 2e3, 78e3];
        let shown = interval(&rates).unwrap();
        let study = Sample::of(rates.map(Some)).mean().unwrap().interval(0.95).unwrap();
        assert_eq!((shown.low, shown.high, shown.n), (study.0, study.1, 3));
        assert!(shown.low < 0.0 && shown.high - shown.mean > shown.mean - shown.low, "{shown:?}");
        let measures = Measures {
            scheme: "a",
            mean_goodput_bps: 27e3,
            goodput_interval: Some(Interval { mean: 27e3, low: -13_137.9, high: 66.8e3, n: 3 }),
            normalised_throughput: None,
            throughput_per_capacity: None,
            channel_periods: None,
            steady: None,
        };
        assert_eq!(measures.cells(RateUnit::of([27e3]))[2], "-13.1 kbit/s to 66.8 kbit/s");
        assert_eq!(interval(&[1.0]), None);
        assert_eq!(interval(&[2.0, 2.0]).map(|it| (it.low, it.high)), Some((2.0, 2.0)));
    }
}
