//! What the blockage channel becomes as blockage grows improbable while the open state keeps its bit errors.
//!
//! At f = 0.003 a period of the channel takes 333 s on average, so 150 of them would take 14 hours. The runs are 1200 s
//! instead, and 20 of them hold 72 periods there.

use base::config::ConfigError;

use super::super::setting::{Channel, Scheme, measure_throughput, scenario};
use super::positive;
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-1"],
    claims: &["faulkner-bsc-is-limit-f-to-zero"],
    cases,
    measure: measure_throughput,
};

const NAME: &str = "bit-errors-limit";
const SCHEMES: [Scheme; 2] = [Scheme::Tcp, Scheme::TcpLl];
/// Bit error rates while open.
const RATES: [f64; 2] = [1e-6, 1e-5];
/// Blocked fractions, falling to the binary symmetric channel.
const FRACTIONS: [f64; 4] = [0.03, 0.01, 0.003, 0.0];
/// Mean blockage in seconds.
const BLOCKED: f64 = 1.0;
const SEEDS: u32 = 20;

fn name(scheme: Scheme, ber: f64, f: f64) -> String {
    format!("{} c={ber:e} f={f}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let (seconds, seeds) = effort.choose((150.0, 3), (1200.0, SEEDS));
    let mut cases = Vec::new();
    for scheme in SCHEMES {
        for ber in RATES {
            for f in FRACTIONS {
                let scenario = if f > 0.0 {
                    let open = format!("link.satellite.channel.errors.gilbert-elliott.c={ber:?}");
                    scenario(scheme, &Channel::Blockage { f, d: BLOCKED }, seconds, &[open])?
                } else {
                    scenario(scheme, &Channel::BitErrors(ber), seconds, &[])?
                };
                cases.push(Case::new(name(scheme, ber, f), scenario, seeds));
            }
        }
    }
    Ok(cases)
}

/// Every step towards f = 0 has to gain, and the last one little.
pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for scheme in SCHEMES {
        for ber in RATES {
            let at = |f| name(scheme, ber, f);
            let of = format!("of {} at c = {ber:e}", scheme.name());
            for step in FRACTIONS.windows(2) {
                let gain = samples.difference(NAME, [&at(step[1]), &at(step[0])], "T");
                let what = format!("T(f = {}) - T(f = {}) {of}", step[1], step[0]);
                criteria.push(positive(what, gain));
            }
            let ratio = samples.ratio(NAME, [&at(0.003), &at(0.0)], "T");
            criteria.push(Criterion::within(format!("T(f = 0.003) / T(BSC) {of}"), ratio, 0.95, 1.05));
        }
    }
    Ruling::all(criteria)
}
