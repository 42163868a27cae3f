//! What the applications of a suite's runs saw: latencies of records, times of transactions, and what never arrived.

use super::SchemeRuns;
use crate::traffic::latency::Latency;

/// All runs of one scheme, for one source or for transactions of one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen<'a> {
    pub(super) scheme: &'a str,
    /// The name in the scenario, and what it is.
    pub(super) what: String,
    /// How many arrived, and how many never did: dropped, undelivered, failed, under way or skipped.
    pub(super) came: u64,
    pub(super) missing: u64,
    /// The means over the runs that have any, of each run's summary; the maximum is that of all. `None` if nothing arrived.
    pub(super) latency: Option<Latency>,
}

/// The headings of [`Seen::cells`].
pub(super) const HEADINGS: [&str; 9] =
    ["scheme", "traffic", "arrived", "missing", "latency: mean", "median", "90 %", "99 %", "longest"];

impl Seen<'_> {
    pub(super) fn cells(&self) -> [String; 9] {
        let time = |value: fn(&Latency) -> f64| {
            self.latency.as_ref().map_or_else(|| "-".to_owned(), |latency| format!("{:.3} s", value(latency)))
        };
        [
            self.scheme.to_owned(),
            self.what.clone(),
            self.came.to_string(),
            self.missing.to_string(),
            time(|l| l.mean),
            time(|l| l.p50),
            time(|l| l.p90),
            time(|l| l.p99),
            time(|l| l.max),
        ]
    }
}

/// A row for every source and all transactions of every scheme, in the order of schemes and names.
pub(super) fn seen<'a>(schemes: &'a [SchemeRuns<'_>]) -> Vec<Seen<'a>> {
    let mut all: Vec<Seen<'a>> = Vec::new();
    for scheme in schemes {
        let mut summaries: Vec<Vec<Latency>> = Vec::new();
        let first = all.len();
        for run in &scheme.runs {
            let sources = run.sources.iter().map(|source| {
                let what = format!("{} ({})", source.name, source.transport);
                (what, source.delivered, source.dropped + source.undelivered, source.latency)
            });
            let transactions = run.transactions.iter().map(|one| {
                (one.name.clone(), one.completed, one.failed + one.under_way + one.skipped, one.times)
            });
            for (what, came, missing, latency) in sources.chain(transactions) {
                let place = all[first..].iter().position(|seen| seen.what == what).unwrap_or_else(|| {
                    all.push(Seen { scheme: scheme.name, what, came: 0, missing: 0, latency: None });
                    summaries.push(Vec::new());
                    summaries.len() - 1
                });
                all[first + place].came += came;
                all[first + place].missing += missing;
                summaries[place].extend(latency);
            }
        }
        for (seen, summaries) in all[first..].iter_mut().zip(&summaries) {
            seen.latency = mean(summaries);
        }
    }
    all
}

fn mean(summaries: &[Latency]) -> Option<Latency> {
    let of = |value: fn(&Latency) -> f64| summaries.iter().map(value).sum::<f64>() / summaries.len() as f64;
    (!summaries.is_empty()).then(|| Latency {
        n: summaries.iter().map(|summary| summary.n).sum(),
        mean: of(|l| l.mean),
        p50: of(|l| l.p50),
        p90: of(|l| l.p90),
        p99: of(|l| l.p99),
        max: summaries.iter().map(|summary| summary.max).fold(0.0, f64::max),
    })
}
