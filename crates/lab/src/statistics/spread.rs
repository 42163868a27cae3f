//! The spread of a sample: its quantiles beside its mean.

use serde::Serialize;

/// The spread of a sample: quartiles, extremes and mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Values.
    pub n: usize,
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest value.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let at = |p| quantile(&sorted, p);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        Some(Self { n, min, p25: at(0.25), median: at(0.5), p75: at(0.75), max, mean })
    }
}

/// The quantile `p`, in [0, 1], of sorted values by linear interpolation (type 7 of Hyndman and Fan 1996).
///
/// # Panics
/// If there are no values.
#[must_use]
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - below as f64;
    // Infinite neighbours have no difference to go part of.
    if part == 0.0 || sorted[below] == sorted[above] {
        return sorted[below];
    }
    sorted[below] + part * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(
            (spread.min, spread.p25, spread.median, spread.p75, spread.max),
            (1.0, 1.75, 2.5, 3.25, 4.0)
        );
        assert_eq!((spread.n, spread.mean), (4, 2.5));
        let one = Spread::of([7.0]).unwrap();
        assert_eq!((one.p25, one.median, one.p75), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of([]), None);
        let some_infinite = [1.0, 2.0, f64::INFINITY, f64::INFINITY];
        assert_eq!(quantile(&some_infinite, 1.0 / 3.0), 2.0);
        assert_eq!(
            (quantile(&some_infinite, 0.5), quantile(&some_infinite, 0.9)),
            (f64::INFINITY, f64::INFINITY)
        );
    }
}
