//! Section 2.3: what EFL brings about when frames are really searched in a stream of bits.
//!
//! Everywhere else framing is ideal: 40 bits a frame, and whether a frame is damaged is known. Here one point each of
//! figures 4-1 and 4-4 runs with EFL as well, over the same realisations. With it a packet of TCP without link ARQ goes
//! in three frames, since one holds 511 bytes; COTMLL's frames fit.

use base::config::ConfigError;

use super::Topic;
use super::setting::{Channel, Scheme, measure_throughput, scenario};
use crate::reproduce::{Case, Cell, Effort, Experiment, Samples};

pub(super) const TOPIC: Topic = Topic {
    experiments: &[Experiment {
        name: NAME,
        figures: &["efl"],
        claims: &[],
        cases,
        measure: measure_throughput,
    }],
    rule: |_, _| None,
    remark: |_| None,
    cells,
    figures: |_| Vec::new(),
};

const NAME: &str = "efl";
const SCHEMES: [Scheme; 2] = [Scheme::Tcp, Scheme::TcpLl];
/// What tells frames apart; the first is what the others are compared with.
const FRAMINGS: [&str; 3] = [IDEAL, "efl", "encrypted-efl"];
const IDEAL: &str = "ideal";
/// A point of figure 4-1 and one of figure 4-4.
const CHANNELS: [(&str, Channel); 2] =
    [("c = 1e-5", Channel::BitErrors(1e-5)), ("f = 0.3, d = 1 s", Channel::Blockage { f: 0.3, d: 1.0 })];
/// Paired realisations a point, of at least 150 channel periods and 300 s.
const SEEDS: u32 = 10;

fn name(scheme: Scheme, channel: &str, framing: &str) -> String {
    format!("{} {channel} {framing}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for (place, channel) in CHANNELS {
        for scheme in SCHEMES {
            for framing in FRAMINGS {
                let more = [format!("link.satellite.framing={framing}")];
                let scenario = scenario(scheme, &channel, channel.steady(300.0, effort), &more)?;
                cases.push(Case::new(name(scheme, place, framing), scenario, effort.choose(3, SEEDS)));
            }
        }
    }
    Ok(cases)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (place, channel) in CHANNELS {
        for scheme in SCHEMES {
            for framing in FRAMINGS {
                let row = [
                    ("channel", place.to_owned()),
                    ("scheme", scheme.name().to_owned()),
                    ("framing", framing.to_owned()),
                ];
                let case = name(scheme, place, framing);
                let cell = Cell::of_mean("framing", &row, samples.values(NAME, &case, "T"));
                cells.push(Cell { bound: Some(channel.capacity()), ..cell });
                if framing != IDEAL {
                    let ideal = name(scheme, place, IDEAL);
                    let pairs = samples.pairs(NAME, [&case, &ideal], "T");
                    let ratios =
                        pairs.into_iter().filter(|(_, ideal)| *ideal > 0.0).map(|(t, ideal)| t / ideal);
                    cells.push(Cell::of_mean("framing, over ideal", &row, ratios));
                }
            }
        }
    }
    cells
}
