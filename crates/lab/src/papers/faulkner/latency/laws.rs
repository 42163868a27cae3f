//! The two laws that latency over load may follow: an exponential, or a queue's.
//!
//! Latencies over a range of loads spread by orders of magnitude, and so do their scatters: both laws are fitted to the
//! logarithm of latency, by least squares, with two coefficients each, so that Akaike's criterion can compare them.

use crate::statistics::{LinearFit, akaike, mean};

/// Both fits to points of load and latency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Laws {
    /// The line of log latency over load.
    pub(super) exponential: LinearFit,
    /// Akaike's criterion of log (a + b / (1 - load)) less that of the line: above 0 the exponential fits better.
    pub(super) queue_less_exponential: f64,
}

impl Laws {
    /// The fits; none of fewer than four points. Loads have to be below 1 and latencies positive.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<(f64, f64)> =
            points.iter().map(|&(load, latency)| (load, libm::log(latency))).collect();
        if logs.len() < 4 {
            return None;
        }
        let exponential = LinearFit::of(&logs)?;
        let queue = akaike(queue_residuals(&logs)?, logs.len(), 2);
        Some(Self { exponential, queue_less_exponential: queue - exponential.akaike() })
    }
}

/// The least sum of squared residuals of log (a + b / (1 - x)) = log b + log (r + 1 / (1 - x)).
///
/// Where r is known, log b is a mean. So r is searched: from just above where the smallest load's latency would be
/// zero up to where the law is flat, evenly in the logarithm and then between the best one's neighbours.
fn queue_residuals(logs: &[(f64, f64)]) -> Option<f64> {
    let least = logs.iter().map(|&(x, _)| 1.0 / (1.0 - x)).fold(f64::INFINITY, f64::min);
    let residuals = |exponent: f64| {
        let r = libm::exp(exponent) - least;
        let apart: Vec<f64> = logs.iter().map(|&(x, y)| y - libm::log(r + 1.0 / (1.0 - x))).collect();
        let centre = mean(&apart)?;
        Some(apart.iter().map(|y| (y - centre) * (y - centre)).sum::<f64>())
    };
    let (mut low, mut high) = (-12.0, 12.0);
    let mut best: Option<f64> = None;
    for _ in 0..6 {
        let step = (high - low) / 48.0;
        let places = (0..=48).map(|k| low + step * f64::from(k));
        let tried: Option<Vec<(f64, f64)>> = places.map(|at| Some((residuals(at)?, at))).collect();
        let &(sum, place) = tried.as_ref()?.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        best = Some(best.map_or(sum, |best| best.min(sum)));
        (low, high) = (place - step, place + step);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADS: [f64; 8] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    const WOBBLE: [f64; 8] = [1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.98, 1.01];

    fn laws(law: impl Fn(f64) -> f64) -> Laws {
        Laws::of(&core::array::from_fn::<_, 8, _>(|k| (LOADS[k], law(LOADS[k]) * WOBBLE[k]))).unwrap()
    }

    #[test]
    fn each_law_is_told_from_the_other() {
        let exponential = laws(|x| 0.3 * libm::exp(4.0 * x));
        assert!(exponential.queue_less_exponential > 5.0, "{exponential:?}");
        assert!((exponential.exponential.slope - 4.0).abs() < 0.1, "{exponential:?}");
        for a in [-0.2, 0.0, 0.5, 5.0] {
            let queue = laws(|x| a + 0.3 / (1.0 - x));
            assert!(queue.queue_less_exponential < -5.0, "a = {a}: {queue:?}");
        }
    }

    #[test]
    fn the_search_finds_the_coefficients() {
        let points = LOADS.map(|x| (x, libm::log(0.7 + 0.2 / (1.0 - x))));
        assert!(queue_residuals(&points).unwrap() < 1e-9);
    }
}
