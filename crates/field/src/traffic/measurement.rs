//! What a receiver measures of a stream, in bounded memory: bytes over time, and the distribution of times.

use std::collections::BTreeMap;

use base::Duration;
use serde::{Deserialize, Serialize};

/// What a receiver saw of one stream, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Bytes, record headers among them.
    pub bytes: u64,
    /// Whole records, or transactions.
    pub records: u64,
    /// From the stream's beginning to its last byte, in nanoseconds.
    pub lasted_ns: u64,
    /// Bytes over time since the stream's beginning.
    pub series: Series,
    /// From each record's stamp to its last byte, or from a transaction's beginning to its end.
    pub latency: Histogram,
    /// Records that came before they were sent, by the clocks; their latency is taken for zero.
    pub before_sent: u64,
}

impl Observation {
    /// Bytes have come, so long after the beginning.
    pub(super) fn on_bytes(&mut self, at: Duration, bytes: u64) {
        self.bytes += bytes;
        self.lasted_ns = self.lasted_ns.max(at.as_nanos());
        self.series.add(at, bytes);
    }

    /// A record, or a transaction, was so many nanoseconds old when it was complete.
    pub(super) fn on_record(&mut self, nanos: i128) {
        self.records += 1;
        self.before_sent += u64::from(nanos < 0);
        self.latency.add(Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)));
    }

    /// Takes another stream's in.
    pub(super) fn merge(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.records = self.records.saturating_add(other.records);
        self.before_sent = self.before_sent.saturating_add(other.before_sent);
        self.lasted_ns = self.lasted_ns.max(other.lasted_ns);
        self.series.merge(&other.series);
        self.latency.merge(&other.latency);
    }

    /// Whether a peer's report is one that this end could have made.
    pub(super) fn is_possible(&self) -> bool {
        self.series.bins.len() <= MOST_BINS
            && self.series.doublings <= MOST_DOUBLINGS
            && self.latency.counts.keys().all(|&bucket| bucket <= bucket_of(u64::MAX))
            && self.latency.count() == self.records
    }
}

/// Bytes in intervals of equal width. The width doubles when a stream outlasts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    doublings: u32,
    bins: Vec<u64>,
}

/// The width of a series' intervals before they are doubled.
const BIN: Duration = Duration::from_millis(100);
const MOST_BINS: usize = 1024;
/// By then a series spans 10 years.
const MOST_DOUBLINGS: u32 = 22;

impl Series {
    /// How long an interval is.
    #[must_use]
    pub const fn width(&self) -> Duration {
        Duration::from_nanos(BIN.as_nanos() << self.doublings)
    }

    /// Bytes in each interval.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    fn add(&mut self, at: Duration, bytes: u64) {
        let bin = loop {
            let bin = (at.as_nanos() / self.width().as_nanos()) as usize;
            if bin < MOST_BINS || self.doublings == MOST_DOUBLINGS {
                break bin.min(MOST_BINS - 1);
            }
            self.double();
        };
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] = self.bins[bin].saturating_add(bytes);
    }

    fn double(&mut self) {
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| pair.iter().fold(0_u64, |sum, &n| sum.saturating_add(n)))
            .collect();
        self.doublings += 1;
    }

    fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.doublings < other.doublings {
            self.double();
        }
        while other.doublings < self.doublings {
            other.double();
        }
        self.bins.resize(self.bins.len().max(other.bins.len()), 0);
        for (sum, &bytes) in self.bins.iter_mut().zip(&other.bins) {
            *sum = sum.saturating_add(bytes);
        }
    }
}

/// A distribution of times. Buckets are a 128th of a power of two wide, so quantiles are within 0.8 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    counts: BTreeMap<u32, u64>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// A distribution in numbers, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Samples.
    pub n: u64,
    /// The smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

const SUB_BITS: u32 = 7;

const fn bucket_of(nanos: u64) -> u32 {
    let octave = (u64::BITS - nanos.leading_zeros()).saturating_sub(SUB_BITS + 1);
    (octave << SUB_BITS) + (nanos >> octave) as u32
}

/// The middle of a bucket, in nanoseconds.
fn middle_of(bucket: u32) -> u64 {
    let octave = (bucket >> SUB_BITS).saturating_sub(1);
    let mantissa = u64::from(bucket - (octave << SUB_BITS));
    (mantissa << octave) + (1_u64 << octave) / 2
}

impl Histogram {
    pub(super) fn add(&mut self, time: Duration) {
        let nanos = time.as_nanos();
        self.min_ns = if self.counts.is_empty() { nanos } else { self.min_ns.min(nanos) };
        self.max_ns = self.max_ns.max(nanos);
        self.sum_ns = self.sum_ns.saturating_add(nanos);
        *self.counts.entry(bucket_of(nanos)).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.min_ns = if self.counts.is_empty() { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for (&bucket, &count) in &other.counts {
            let sum = self.counts.entry(bucket).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The distribution; `None` without samples.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        let n = self.count();
        if n == 0 {
            return None;
        }
        let quantile = |percent: u64| {
            // The smallest time that so many percent of the samples do not exceed.
            let rank = (u128::from(n) * u128::from(percent)).div_ceil(100);
            let mut below = 0_u128;
            let reached = self.counts.iter().find(|&(_, &count)| {
                below += u128::from(count);
                below >= rank
            });
            let nanos = reached.map_or(self.max_ns, |(&bucket, _)| middle_of(bucket));
            milliseconds(nanos.max(self.min_ns).min(self.max_ns))
        };
        Some(Distribution {
            n,
            min: milliseconds(self.min_ns),
            mean: milliseconds(self.sum_ns) / n as f64,
            p50: quantile(50),
            p90: quantile(90),
            p99: quantile(99),
            max: milliseconds(self.max_ns),
        })
    }
}

fn milliseconds(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_distribution_says_what_the_samples_are() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.distribution(), None);
        for n in 1..=1000 {
            histogram.add(Duration::from_millis(n));
        }
        let got = histogram.distribution().unwrap();
        assert_eq!((got.n, got.min, got.mean, got.max), (1000, 1.0, 500.5, 1000.0));
        for (quantile, exact) in [(got.p50, 500.0), (got.p90, 900.0), (got.p99, 990.0)] {
            assert!((quantile / exact - 1.0_f64).abs() < 0.008, "{quantile} for {exact}");
        }
    }

    #[test]
    fn a_series_of_any_length_stays_short_and_loses_nothing() {
        let mut series = Series::default();
        for second in 0..100_000 {
            series.add(Duration::from_secs(second), 3);
        }
        series.add(Duration::MAX, 5);
        assert!(series.bins().len() <= MOST_BINS);
        assert_eq!(series.bins().iter().sum::<u64>(), 300_005);
    }

    #[test]
    fn a_report_that_nobody_could_make_is_noticed() {
        let mut observation = Observation::default();
        observation.on_record(5);
        assert!(observation.is_possible());
        let with = |change: fn(&mut Observation)| {
            let mut changed = observation.clone();
            change(&mut changed);
            changed.is_possible()
        };
        assert!(!with(|changed| changed.records = 2));
        assert!(!with(|changed| changed.series.doublings = 64));
        assert!(!with(|changed| changed.series.bins = vec![0; 2000]));
        assert!(!with(|changed| changed.latency.counts = [(u32::MAX, 1)].into()));
    }

    proptest! {
        #[test]
        fn a_bucket_is_within_its_width(nanos in any::<u64>()) {
            let middle = middle_of(bucket_of(nanos));
            prop_assert!(middle.abs_diff(nanos) <= nanos / 128);
        }

        #[test]
        fn streams_measured_apart_are_as_measured_together(
            samples in prop::collection::vec((any::<bool>(), 0_u64..1 << 40, 0_u64..1 << 20, -5_i128..1 << 36), 1..100),
        ) {
            let mut together = Observation::default();
            let mut apart = [Observation::default(), Observation::default()];
            for (which, at, bytes, age) in samples {
                for observation in [&mut together, &mut apart[usize::from(which)]] {
                    observation.on_bytes(Duration::from_nanos(at), bytes);
                    observation.on_record(age);
                }
            }
            let [mut one, other] = apart;
            one.merge(&other);
            prop_assert!(one.is_possible());
            prop_assert_eq!(one, together);
        }
    }
}
