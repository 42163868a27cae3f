//! Rate-controlled sources: how long their records take.

use super::{Method, Probe};
use crate::statistics::standard_deviation;

/// `L(name)`: the mean latency of a source's records in seconds; `L_sd(name)`: their standard deviation; `L_median(name)` and
/// `L_99(name)`: percentiles; `delivered(name)`: records that came; `source_goodput(name)`: their bits a
/// second; `source_timeouts(name)`: times that the sender's timer expired.
pub(super) const LATENCY: Probe = Probe {
    name: "latency",
    version: 3,
    quantities: &["L", "L_sd", "L_median", "L_99", "delivered", "source_goodput", "source_timeouts"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.latencies = true,
        read: |_, run, measured| {
            for source in &run.sources {
                let name = [source.name.as_str().into()];
                let latency = |value: Option<f64>, quantity: &str, m: &mut crate::claims::Measurements| {
                    m.set_or(quantity, &name, value, "no record came");
                };
                latency(source.latency.map(|latency| latency.mean), "L", measured);
                let records = run.latencies.get(&source.name).into_iter().flatten();
                let seconds: Vec<f64> = records.map(|record| record.latency.as_secs_f64()).collect();
                latency(standard_deviation(&seconds), "L_sd", measured);
                latency(source.latency.map(|latency| latency.p50), "L_median", measured);
                latency(source.latency.map(|latency| latency.p99), "L_99", measured);
                measured.set("delivered", &name, source.delivered as f64);
                measured.set("source_goodput", &name, source.bytes as f64 * 8.0 / run.seconds);
                measured.set("source_timeouts", &name, source.timeouts as f64);
            }
            Ok(())
        },
    },
};
