//! What links counted.

use super::{Method, Probe};

/// `counter(direction, name)`: as `longhaul run --json` has it under `links`, such as
/// `counter('satellite/down', 'frames-lost')`.
pub(super) const COUNTERS: Probe = Probe {
    name: "counters",
    version: 1,
    quantities: &["counter"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            for (direction, counters) in &run.links {
                for (name, count) in counters {
                    let arguments = [direction.as_str().into(), name.as_str().into()];
                    measured.set("counter", &arguments, *count as f64);
                }
            }
            Ok(())
        },
    },
};
