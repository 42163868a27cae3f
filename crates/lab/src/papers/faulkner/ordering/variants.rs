//! What the thesis asks of order that TCP's three duplicate acknowledgements alone may decide: a TCP that waits for
//! reordered segments (RACK, RFC 8985), and several connections, of which order makes one wait for another.

use base::config::ConfigError;

use super::{LEAST, SCHEMES};
use crate::papers::faulkner::setting::{Channel, Scheme, measure_throughput, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Samples};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-17"],
    claims: &["faulkner-in-order-wins"],
    cases,
    measure: measure_throughput,
};

const NAME: &str = "ordering, variants";
const SEEDS: u32 = 10;
const VARIANTS: [(&str, &[&str]); 3] = [
    ("RACK", &["tcp.recovery=rack"]),
    ("4 connections", &["traffic.download.bulk.connections=4"]),
    ("4 connections and RACK", &["traffic.download.bulk.connections=4", "tcp.recovery=rack"]),
];

fn channels() -> [(&'static str, Channel); 4] {
    let blocked = |f| Channel::Blockage { f, d: 1.0 };
    [
        ("BER 1e-5", Channel::BitErrors(super::BIT_ERROR_RATE)),
        ("f=0.1 d=1", blocked(0.1)),
        ("f=0.3 d=1", blocked(0.3)),
        ("f=0.5 d=1", blocked(0.5)),
    ]
}

fn name(variant: &str, channel: &str, scheme: Scheme) -> String {
    format!("{variant}, {channel}, {}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for (variant, set) in VARIANTS {
        let set: Vec<String> = set.iter().map(|&key| key.to_owned()).collect();
        for (channel, errors) in channels() {
            for scheme in SCHEMES {
                let scenario = scenario(scheme, &errors, effort.choose(LEAST / 8.0, LEAST), &set)?;
                cases.push(Case::new(name(variant, channel, scheme), scenario, effort.choose(2, SEEDS)));
            }
        }
    }
    Ok(cases)
}

/// What order gains with each variant.
pub(super) fn told(samples: &Samples) -> Vec<Criterion> {
    let mut told = Vec::new();
    for (variant, _) in VARIANTS {
        for (channel, _) in channels() {
            let [on, off] = SCHEMES.map(|scheme| name(variant, channel, scheme));
            let gain = samples.difference(NAME, [&on, &off], "T");
            told.push(Criterion::told(
                format!("T in order less T unordered, {channel}, window 512, {variant}"),
                gain,
            ));
        }
    }
    told
}
