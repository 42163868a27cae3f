//! Whether ARQ improves TCP under every channel that was tried: blockages of figure 4-4's sweep, and bit errors.

use base::config::ConfigError;

use super::{SEEDS, SWEEP};
use crate::papers::faulkner::setting::{Channel, Scheme, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::statistics::Interval;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-4"],
    claims: &["faulkner-arq-improves-tcp"],
    cases,
    measure: super::measure,
};

const NAME: &str = "bit errors, in pairs";
/// Bit error rates that are frequent in the field, but for the lowest (section 4.1.1).
const BIT_ERROR_RATES: [f64; 3] = [1e-6, 1e-5, 1e-4];

fn name(scheme: Scheme, ber: f64) -> String {
    format!("{} c={ber:e}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for scheme in super::SCHEMES {
        for ber in BIT_ERROR_RATES {
            let channel = Channel::BitErrors(ber);
            let scenario = scenario(scheme, &channel, channel.steady(300.0, effort), &[])?;
            cases.push(Case::new(name(scheme, ber), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

/// Every cell's difference has to be above zero with its interval, and from f = 0.2 on the ratio at least 1.5.
pub(super) fn improves(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for f in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7] {
        for d in [0.2, 1.0, 5.0].into_iter().filter(|d| super::durations(samples.effort()).contains(d)) {
            let [tcp, ll] = [Scheme::Tcp, Scheme::TcpLl].map(|scheme| super::name(scheme, f, d));
            let at = format!("at f = {f}, d = {d} s");
            let gain = samples.difference(SWEEP, [&ll, &tcp], "T");
            criteria.push(gains(&at, gain));
            if f >= 0.2 {
                let mean = |case: &str| samples.mean(SWEEP, case, "T");
                // Nothing over something is more than any factor.
                let ratio = mean(&ll).zip(mean(&tcp)).map(|(ll, tcp)| ll / tcp.max(1e-9));
                criteria.push(Criterion::at_least(format!("T(TCP-LL) / T(TCP) {at}"), ratio, 1.5));
            }
        }
    }
    for ber in BIT_ERROR_RATES {
        let [tcp, ll] = [Scheme::Tcp, Scheme::TcpLl].map(|scheme| name(scheme, ber));
        criteria.push(gains(&format!("at c = {ber:e}"), samples.difference(NAME, [&ll, &tcp], "T")));
    }
    Ruling::all(criteria)
}

fn gains(at: &str, gain: Option<Interval>) -> Criterion {
    Criterion::surely_above(format!("T(TCP-LL) - T(TCP) {at}"), gain, 0.0)
}
