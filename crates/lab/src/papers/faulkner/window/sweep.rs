//! Throughput over windows on one channel, and where it is highest.

use super::{CHANGES, FACTORS, FRACTIONS, SWEEP, WINDOWS, seconds};
use crate::papers::faulkner::setting::Channel;
use crate::reproduce::{FIRST_SEED, Samples};
use crate::statistics::{Bootstrap, Interval, quantile, smoothed_argmax};

/// What a sweep over windows holds constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Blocked fraction.
    pub(super) f: f64,
    /// Mean blockage in seconds.
    pub(super) d: f64,
    /// The place among [`CHANGES`] of what differs from the baseline.
    pub(super) change: Option<usize>,
}

impl Setting {
    pub(super) const fn baseline(f: f64, d: f64) -> Self {
        Self { f, d, change: None }
    }

    pub(super) const fn channel(&self) -> Channel {
        Channel::Blockage { f: self.f, d: self.d }
    }

    /// The experiment that runs it.
    pub(super) fn experiment(&self) -> &'static str {
        if self.change.is_none() && FRACTIONS.contains(&self.f) { SWEEP } else { FACTORS }
    }

    /// The name of its case with a window of so many frames.
    pub(super) fn case(&self, window: u32) -> String {
        let change = self.change.map_or(String::new(), |change| format!("{}, ", CHANGES[change].0));
        format!("{change}f={} d={} window={window}", self.f, self.d)
    }

    /// Throughput by seed, with a window of so many frames.
    pub(super) fn interval(&self, samples: &Samples, window: u32) -> Option<Interval> {
        samples.interval(self.experiment(), &self.case(window), "T")
    }
}

/// A curve of a figure: nominal seconds of window and throughput.
pub(super) fn curve(samples: &Samples, setting: &Setting) -> Vec<(f64, Interval)> {
    let at = |window: u32| Some((seconds(window), setting.interval(samples, window)?));
    WINDOWS.into_iter().filter_map(at).collect()
}

/// Throughput over [`WINDOWS`], one row a seed. All windows of a seed met the same realisation: a row stays whole.
pub(in crate::papers::faulkner) type Rows = Vec<Vec<f64>>;

pub(super) fn rows(samples: &Samples, setting: &Setting) -> Rows {
    rows_of(samples, setting.experiment(), |window| setting.case(window))
}

/// The rows of an experiment whose cases have these names.
pub(in crate::papers::faulkner) fn rows_of(
    samples: &Samples,
    experiment: &'static str,
    name: impl Fn(u32) -> String,
) -> Rows {
    let columns = WINDOWS.map(|window| samples.by_seed(experiment, &name(window), "T"));
    let seeds = columns.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).filter_map(|seed| columns.iter().map(|column| column[seed]).collect()).collect()
}

/// The mean of rows: nominal seconds of window and throughput.
pub(super) fn mean_curve(rows: &[&Vec<f64>]) -> Vec<(f64, f64)> {
    let mean = |place: usize| rows.iter().map(|row| row[place]).sum::<f64>() / rows.len() as f64;
    WINDOWS.into_iter().enumerate().map(|(place, window)| (seconds(window), mean(place))).collect()
}

/// The best window in seconds: where the smoothed mean is highest.
///
/// # Panics
/// Never: there are windows.
pub(in crate::papers::faulkner) fn optimum(rows: &[&Vec<f64>]) -> f64 {
    smoothed_argmax(&mean_curve(rows)).expect("a curve over some windows")
}

/// The curve's drop a factor of two of window away from its best, on both sides, as a part of its height there.
pub(super) fn curvature(rows: &[&Vec<f64>]) -> f64 {
    let curve = mean_curve(rows);
    let best = optimum(rows);
    let height = at(&curve, best);
    (height - 0.5 * (at(&curve, 0.5 * best) + at(&curve, 2.0 * best))) / height
}

/// A curve's height by linear interpolation in ln x; beyond its ends that of the end.
fn at(curve: &[(f64, f64)], x: f64) -> f64 {
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    if x <= first.0 || x >= last.0 {
        return if x <= first.0 { first.1 } else { last.1 };
    }
    let right = curve.iter().position(|point| point.0 >= x).expect("the last lies beyond");
    let ((x0, y0), (x1, y1)) = (curve[right - 1], curve[right]);
    y0 + libm::log(x / x0) / libm::log(x1 / x0) * (y1 - y0)
}

/// A statistic of a sweep with its bootstrap interval; none of fewer than two seeds.
pub(in crate::papers::faulkner) fn of(
    rows: &Rows,
    name: &str,
    statistic: impl Fn(&[&Vec<f64>]) -> f64,
) -> Option<Interval> {
    if rows.len() < 2 {
        return None;
    }
    Bootstrap::named(FIRST_SEED, name).interval(rows, 0.95, statistic)
}

/// By how much a statistic of one sweep is above another's, with its interval. The two are drawn apart.
pub(super) fn difference(
    rows: [&Rows; 2],
    name: &str,
    statistic: impl Fn(&[&Vec<f64>]) -> f64,
) -> Option<Interval> {
    let [a, b] = rows;
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let whole = |rows: &Rows| statistic(&rows.iter().collect::<Vec<_>>());
    let mut drawn =
        Bootstrap::named(FIRST_SEED, name).repeat(|draw| statistic(&draw.of(a)) - statistic(&draw.of(b)));
    drawn.sort_by(f64::total_cmp);
    let n = a.len().min(b.len());
    Some(Interval {
        mean: whole(a) - whole(b),
        low: quantile(&drawn, 0.025),
        high: quantile(&drawn, 0.975),
        n,
    })
}

/// The share of resamples in which the first sweep's best window is below the second's.
pub(super) fn peaks_before(rows: [&Rows; 2], name: &str) -> Option<f64> {
    let [a, b] = rows;
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let before =
        Bootstrap::named(FIRST_SEED, name).probability(|draw| optimum(&draw.of(a)) < optimum(&draw.of(b)));
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parabola in the logarithm of the window with its vertex at so many seconds.
    fn peaked(vertex: f64, sharpness: f64) -> Vec<f64> {
        let height = |window| 0.5 - sharpness * libm::pow(libm::log(seconds(window) / vertex), 2.0);
        WINDOWS.map(height).to_vec()
    }

    #[test]
    fn a_sharper_peak_has_more_curvature_and_the_same_place() {
        let (flat, sharp) = (peaked(1.0, 0.02), peaked(1.0, 0.08));
        assert!((optimum(&[&flat]) - 1.0).abs() < 0.1, "{}", optimum(&[&flat]));
        let (low, high) = (curvature(&[&flat]), curvature(&[&sharp]));
        // ln 2 squared, times the sharpness, over the height of 0.5.
        assert!((low - 0.0192).abs() < 0.003 && (high - 0.0769).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn the_earlier_peak_is_told() {
        let rows = |vertex: f64| (0..5).map(|k| peaked(vertex + 0.02 * f64::from(k), 0.05)).collect::<Rows>();
        let (early, late) = (rows(0.6), rows(1.4));
        assert_eq!(peaks_before([&early, &late], "test"), Some(1.0));
        assert_eq!(peaks_before([&late, &early], "test"), Some(0.0));
        let apart = difference([&late, &early], "test", optimum).unwrap();
        assert!(apart.low > 0.6 && apart.high < 1.0, "{apart:?}");
    }
}
