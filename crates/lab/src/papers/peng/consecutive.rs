//! Sections 4.2 and 4.3: pages and files, one after the other.

use crate::bound;
use crate::claims::Measurements;
use crate::run::Run;
use crate::scenario::{Scenario, Traffic};
use crate::study::probe::{Method, Probe, Trial};

/// `page(n)`: seconds of the n-th page; `page_bound()`: the least that one can take.
pub(super) const PAGES: Probe = Probe {
    name: "pages",
    version: 1,
    quantities: &["page", "page_bound"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |trial, run, measured| {
            read(trial, run, ["pages", "page", "page_bound"], measured);
            Ok(())
        },
    },
};

/// `file(n)`: seconds of the n-th file; `file_bound()`: the least that one can take.
pub(super) const FILES: Probe = Probe {
    name: "files",
    version: 1,
    quantities: &["file", "file_bound"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |trial, run, measured| {
            read(trial, run, ["files", "file", "file_bound"], measured);
            Ok(())
        },
    },
};

fn read(trial: &Trial<'_>, run: &Run, names: [&str; 3], measured: &mut Measurements) {
    let [transfer, quantity, bound] = names;
    let transfers = run.transfers.iter().filter(|result| result.name == transfer);
    for (number, result) in (1_u32..).zip(transfers) {
        measured.set_or(
            quantity,
            &[f64::from(number).into()],
            result.seconds,
            "it did not arrive within the run",
        );
    }
    measured.note(bound, bound_of_one(trial.scenario().clone(), transfer, trial.seed));
}

/// The least time in which one connection of the transfer called `name` can be carried, in seconds.
fn bound_of_one(mut scenario: Scenario, name: &str, seed: u64) -> Option<f64> {
    for traffic in scenario.traffic.values_mut() {
        if let Traffic::Bulk(bulk) = traffic {
            bulk.connections = 1;
        }
    }
    bound::transfer_seconds(&scenario, seed, name)
}
