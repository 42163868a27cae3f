//! Section 3.3: short transactions beside bulk transfers that share the link.
//!
//! A user asks for 8 kB with 200 bytes on a new connection, and a second after the reply for the next. A transaction that
//! failed, or was under way as the run ended, counts as one that took the whole run: leaving it out would leave out the
//! slowest.

use std::io;

use base::config::ConfigError;

use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, Scheme, scenario};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::Spread;

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &[NAME], claims: &[CLAIM], cases, measure };

pub(super) const CLAIM: &str = "faulkner-bulk-degrades-transactions";
const NAME: &str = "transactions";
const FRACTIONS: [f64; 2] = [0.0, 0.3];
/// Mean blockage in seconds.
const D: f64 = 1.0;
/// Bulk transfers beside.
const BESIDE: [u32; 3] = [0, 1, 4];
const SEEDS: u32 = 20;
const WEB: &str = "traffic.web={ transactions = { from = \"server\", to = \"terminal\", request = \"200 B\", reply = \"8 kB\", \
                   think = \"1 s\", exponential = true } }";
/// How much slower is considerably slower (the claim's check).
const SLOWER: f64 = 1.5;

fn name(f: f64, beside: u32) -> String {
    format!("f={f} bulk={beside}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for f in FRACTIONS {
        for &beside in effort.choose(&BESIDE[..2], &BESIDE) {
            let channel = Channel::Blockage { f, d: D };
            let bulk = if beside > 0 {
                format!("traffic.download.bulk.connections={beside}")
            } else {
                // The baseline's transfer cannot be taken out: it becomes one byte as the run starts.
                "traffic.download.bulk.size=1 B".to_owned()
            };
            let scenario =
                scenario(Scheme::TcpLl, &channel, channel.steady(300.0, effort), &[WEB.to_owned(), bulk])?;
            cases.push(Case::new(name(f, beside), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { latencies: true, ..Watch::default() })?;
    let all = &run.transactions[0];
    let unfinished = (all.failed + all.under_way) as usize;
    let longest = std::iter::repeat_n(scenario.duration.as_secs_f64(), unfinished);
    let times = run.latencies[&all.name].iter().map(|sample| sample.latency.as_secs_f64());
    let mut measured = Measurements::new();
    measured.note("time", Spread::of(times.chain(longest)).map(|times| times.median));
    measured.note("failed", all.failed as f64);
    measured.note("under way", all.under_way as f64);
    Ok(measured)
}

pub(super) fn slowed_down(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let mut told = Vec::new();
    for f in FRACTIONS {
        let alone = name(f, 0);
        let ratio = |beside: u32| samples.ratio(NAME, [&name(f, beside), &alone], "time");
        let what = |beside: u32| format!("median time beside {beside} bulk over that alone, f = {f}");
        criteria.push(Criterion::at_least(what(1), ratio(1), SLOWER));
        criteria.push(Criterion::surely_above(format!("its interval, f = {f}"), ratio(1), 1.0));
        told.push(Criterion::told(what(4), ratio(4)));
        let seconds = samples.interval(NAME, &alone, "time");
        told.push(Criterion::told(format!("median time alone in s, f = {f}"), seconds));
        for (what, quantity) in [("failed", "failed"), ("under way as the run ended", "under way")] {
            for beside in [0, 1] {
                let value = samples.interval(NAME, &name(f, beside), quantity);
                let what = format!("transactions {what}, a run, beside {beside} bulk, f = {f}");
                told.push(Criterion::told(what, value));
            }
        }
    }
    criteria.extend(told);
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for f in FRACTIONS {
        for beside in BESIDE {
            let row = [("f", f.to_string()), ("bulk transfers", beside.to_string())];
            let values = samples.values(NAME, &name(f, beside), "time");
            cells.push(Cell::of_mean("median time of a transaction, s", &row, values));
        }
    }
    cells
}
