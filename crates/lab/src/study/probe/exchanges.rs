//! Transactions: how long they take.

use super::{Method, Probe};
use crate::statistics::Spread;

/// `transaction_median(name)`: the median time of transactions in seconds, where one that failed or was under way as the run
/// ended counts as one that took the whole run, since leaving it out would leave out the slowest; `completed(name)`,
/// `failed(name)` and `unfinished(name)`: transactions.
pub(super) const TRANSACTIONS: Probe = Probe {
    name: "transactions",
    version: 1,
    quantities: &["transaction_median", "completed", "failed", "unfinished"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.latencies = true,
        read: |trial, run, measured| {
            let whole = trial.scenario().duration.as_secs_f64();
            for all in &run.transactions {
                let name = [all.name.as_str().into()];
                let late = std::iter::repeat_n(whole, (all.failed + all.under_way) as usize);
                let times = run.latencies.get(&all.name).into_iter().flatten();
                let times = Spread::of(times.map(|sample| sample.latency.as_secs_f64()).chain(late));
                let median = times.map(|times| times.median);
                measured.set_or("transaction_median", &name, median, "no transaction started");
                measured.set("completed", &name, all.completed as f64);
                measured.set("failed", &name, all.failed as f64);
                measured.set("unfinished", &name, all.under_way as f64);
            }
            Ok(())
        },
    },
};
