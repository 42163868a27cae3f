//! Section 5.2: the links of a group of terminals, shared over a fast local network.
//!
//! The thesis recommends it and runs nothing. Here N links of a rate R / N each have an obstacle of their own, and
//! a frame goes over one that is open when it gets there: `channel::process::Pooled` says with which idealisations. The
//! transfer is the baseline's, and the capacity the same for every N, so throughputs compare as they are.

use std::io;

use base::Instant;
use base::config::ConfigError;

use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, Scheme, scenario, throughput};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::Interval;

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &[NAME], claims: &[CLAIM], cases, measure };

pub(super) const CLAIM: &str = "faulkner-shared-links-help";
const NAME: &str = "shared-links";
const SCHEMES: [Scheme; 2] = [Scheme::TcpLl, Scheme::Tcp];
const F: f64 = 0.5;
/// Mean blockage in seconds.
const D: f64 = 1.0;
const LINKS: [i32; 3] = [1, 2, 4];
const SEEDS: u32 = 20;

fn name(scheme: Scheme, links: i32) -> String {
    format!("{} N={links}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for scheme in SCHEMES {
        for links in LINKS {
            let channel = Channel::Blockage { f: F, d: D };
            let pooled = format!(
                "link.satellite.channel.errors={{ pooled = {{ links = {links}, f = {F:?}, d = \"{D} s\" }} }}"
            );
            let scenario = scenario(scheme, &channel, channel.steady(300.0, effort), &[pooled])?;
            cases.push(Case::new(name(scheme, links), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let channel = &scenario.link["satellite"].channel;
    let closed = channel.down().errors.timeline(&channel.streams(seed, "satellite", "down"));
    let closed = closed.blocked_time(Instant::ZERO..Instant::ZERO + scenario.duration);
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    measured.note("closed", closed.as_secs_f64() / scenario.duration.as_secs_f64());
    Ok(measured)
}

pub(super) fn help(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for links in LINKS {
        let expected = F.powi(links);
        let closed = samples.values(NAME, &name(Scheme::TcpLl, links), "closed");
        let closed = Interval::of(closed, 0.99);
        criteria.push(Criterion::new(
            format!("share of time without an open link, N = {links}"),
            format!("{expected}, in its 99 % interval"),
            closed,
            closed.map(|closed| closed.contains(expected)),
        ));
    }
    for pair in LINKS.windows(2) {
        let [less, more] = [pair[0], pair[1]].map(|links| name(Scheme::TcpLl, links));
        let gain = samples.difference(NAME, [&more, &less], "T");
        let gain = gain.map(|gain| {
            let of_capacity = |difference: f64| difference / (1.0 - F);
            let [mean, low, high] = [gain.mean, gain.low, gain.high].map(of_capacity);
            Interval { mean, low, high, n: gain.n }
        });
        criteria.push(Criterion::new(
            format!("T / C, N = {} less N = {}", pair[1], pair[0]),
            "above 0",
            gain,
            gain.map(|gain| gain.mean > 0.0),
        ));
    }
    let ratio = |scheme| samples.ratio(NAME, [&name(scheme, 4), &name(scheme, 1)], "T");
    criteria.push(Criterion::surely_above("T(N = 4) / T(N = 1), TCP-LL", ratio(Scheme::TcpLl), 1.0));
    criteria.push(Criterion::told("T(N = 4) / T(N = 1), TCP", ratio(Scheme::Tcp)));
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in SCHEMES {
        for links in LINKS {
            let row = [("scheme", scheme.name().to_owned()), ("links", links.to_string())];
            let values = samples.values(NAME, &name(scheme, links), "T");
            cells.push(Cell { bound: Some(1.0 - F), ..Cell::of_mean(NAME, &row, values) });
        }
    }
    cells
}
