//! Latencies as an application sees them: from the stamp of a record, or the start of a transaction, to its last byte.

use base::{Duration, Instant};
use serde::Serialize;

use super::series::Series;
use crate::statistics::quantile;

/// One latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was generated, or started.
    pub sent: Instant,
    /// From then until its last byte was read.
    pub latency: Duration,
    /// Its bytes.
    pub bytes: u32,
}

/// All latencies of one source: count, mean and maximum of every one, quantiles of an even choice.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    samples: Series<Sample>,
    /// Nanoseconds.
    sum: u128,
    max: Duration,
}

/// A summary of latencies in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Samples.
    pub n: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// Nine of ten are at most this long.
    pub p90: f64,
    /// 99 of 100 are at most this long.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Latencies {
    /// Something that was sent then has arrived with its last byte.
    pub fn sample(&mut self, now: Instant, sent: Instant, bytes: u32) {
        let latency = now.saturating_since(sent);
        self.sum += u128::from(latency.as_nanos());
        self.max = self.max.max(latency);
        self.samples.push(Sample { sent, latency, bytes });
    }

    /// The samples, or an even choice of them where there are too many to keep.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        self.samples.marks()
    }

    /// Samples, kept or not.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.samples.pushed()
    }

    /// The summary; `None` without samples.
    #[must_use]
    pub fn summary(&self) -> Option<Latency> {
        let n = self.count();
        if n == 0 {
            return None;
        }
        let mut seconds: Vec<f64> =
            self.samples().iter().map(|sample| sample.latency.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|p| quantile(&seconds, p));
        let mean = self.sum as f64 / n as f64 / 1e9;
        Some(Latency { n, mean, p50, p90, p99, max: self.max.as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_in_seconds() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), None);
        for millis in (1..=101).rev() {
            let sent = Instant::ZERO + Duration::from_secs(5);
            latencies.sample(sent + Duration::from_millis(millis), sent, 100);
        }
        let summary = latencies.summary().unwrap();
        let expected = Latency { n: 101, mean: 0.051, p50: 0.051, p90: 0.091, p99: 0.1, max: 0.101 };
        assert_eq!(summary, expected);
        assert_eq!(latencies.samples()[0].latency, Duration::from_millis(101));
    }
}
