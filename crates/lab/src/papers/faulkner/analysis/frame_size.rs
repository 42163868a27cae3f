//! Section 2.3: what shorter frames save where bits are lost, and what they cost where none are.

mod saturated;

use std::io;

use base::config::ConfigError;
use base::units::Probability;
use base::{Instant, Rate, Rng, Serializer};
use channel::process::{BitErrors, ErrorProcess, Fate};

use super::intact;
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{FRAME_BITS, RATE};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) use saturated::{BULK, SATURATED, cells, figures};

pub(super) const FRAGMENTS: Experiment = Experiment {
    name: "fragments",
    figures: &[],
    claims: &["faulkner-fragmentation-lowers-frame-loss"],
    cases: fragment_cases,
    measure: measure_fragments,
};

pub(super) const SIZES: Experiment = Experiment {
    name: "frame sizes",
    figures: &["frame-sizes"],
    claims: &["faulkner-frame-size-optimum"],
    cases: |_| Ok(vec![Case::calculation("all", 1, 1)]),
    measure: measure_sizes,
};

/// Bits of a fragment and of a whole packet, and how much of them section 2.3 says is lost.
const LOST: [(f64, f64, f64); 2] = [(FRAME_BITS, 0.039, 1e-3), (12_000.0, 0.11, 1e-2)];
const BER: f64 = 1e-5;
const FRAMES: u32 = 1_000_000;

fn fragment_name(bits: f64) -> String {
    format!("{bits} bits")
}

fn fragment_cases(_: Effort) -> Result<Vec<Case>, ConfigError> {
    Ok(LOST
        .iter()
        .map(|&(bits, ..)| Case::calculation(fragment_name(bits), 1, 100).with("bits", bits))
        .collect())
}

fn measure_fragments(case: &Case, seed: u64) -> io::Result<Measurements> {
    let bits = case.numbers["bits"] as u32;
    let rate = Rate::from_bps(RATE as u64);
    let ber = Probability::try_from(BER).map_err(io::Error::other)?;
    let mut errors = BitErrors::new(ber, rate, Rng::named(seed, &case.name));
    let mut line = Serializer::new(rate);
    let is_lost = |_: &u32| errors.fate(line.send(Instant::ZERO, bits.into()), bits) != Fate::Intact;
    let lost = (0..FRAMES).filter(is_lost).count();
    let mut measured = Measurements::new();
    measured.note("lost", lost as f64 / f64::from(FRAMES));
    Ok(measured)
}

fn fragments(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for (bits, printed, unit) in LOST {
        let lost = 1.0 - intact(BER, bits);
        let error = (lost * (1.0 - lost) / f64::from(FRAMES)).sqrt();
        let sampled = samples.mean(FRAGMENTS.name, &fragment_name(bits), "lost");
        let off = sampled.map(|sampled| (sampled - lost).abs() / error);
        let what = format!("lost of {bits} bits at 1e-5");
        criteria.push(super::arithmetic::rounds(&what, Some(lost), printed, unit));
        criteria.push(Criterion::told(format!("{what}, sampled"), sampled));
        criteria.push(Criterion::at_most(format!("{what}, sampled, standard errors off"), off, 3.0));
    }
    Ruling::all(criteria)
}

/// Bits of a frame that carry no payload.
const OVERHEAD: f64 = 72.0;
const BERS: [f64; 5] = [0.0, 1e-7, 1e-6, 1e-5, 1e-4];
/// Bits of the longest frame.
const LONGEST: f64 = 12_072.0;

/// Payload that passes, of a line's bits, with frames of `bits`.
fn efficiency(ber: f64, bits: f64) -> f64 {
    (1.0 - OVERHEAD / bits) * intact(ber, bits)
}

/// The best frame's bits: where the derivative of the efficiency is zero; none without errors, where longer is better.
fn best(ber: f64) -> Option<f64> {
    let half = 0.5 * OVERHEAD;
    (ber > 0.0).then(|| half + (half * half - OVERHEAD / libm::log1p(-ber)).sqrt())
}

fn measure_sizes(_: &Case, _: u64) -> io::Result<Measurements> {
    let mut measured = Measurements::new();
    for ber in BERS {
        let top = best(ber).map_or(1.0, |bits| efficiency(ber, bits));
        measured.note(&gain_name(ber), top / efficiency(ber, FRAME_BITS) - 1.0);
    }
    measured.note("best", best(1e-5));
    Ok(measured)
}

fn gain_name(ber: f64) -> String {
    format!("max e / e(3968) - 1 at {ber:e}")
}

fn sizes(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for ber in BERS {
        let (what, gain) = (gain_name(ber), samples.mean(SIZES.name, "all", &gain_name(ber)));
        criteria.push(if ber <= 1e-5 {
            Criterion::at_most(what, gain, 0.02)
        } else {
            Criterion::told(what, gain)
        });
    }
    // The claim's own figures.
    for (ber, printed) in [(0.0, 0.0185), (1e-6, 0.0053), (1e-5, 0.0040)] {
        let what = gain_name(ber);
        let gain = samples.mean(SIZES.name, "all", &what);
        criteria.push(super::arithmetic::rounds(&what, gain, printed, 1e-4));
    }
    let n = samples.mean(SIZES.name, "all", "best");
    criteria.push(super::arithmetic::rounds("best size at 1e-5, bits", n, 2716.0, 1.0));
    let is_interior = n.map(|n| n > OVERHEAD && n < LONGEST);
    criteria.push(Criterion::new("best size at 1e-5, bits", "between 72 and 12072", n, is_interior));
    for (bits, printed) in [(n, 0.947), (Some(FRAME_BITS), 0.944), (Some(LONGEST), 0.881)] {
        let what = bits.map_or_else(|| "e at 1e-5".to_owned(), |bits| format!("e({bits:.0}) at 1e-5"));
        let value = bits.map(|bits| efficiency(1e-5, bits));
        criteria.push(super::arithmetic::rounds(&what, value, printed, 1e-3));
    }
    // A bulk transfer probably does not keep the link busy where many bits are lost, and what COTMLL repeats while it has
    // nothing new counts as filler: a source that never runs dry tells, and the bulk transfer is told beside it.
    criteria.extend(saturated::criteria(samples));
    Ruling::all(criteria)
}

pub(super) fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-fragmentation-lowers-frame-loss" => Some(fragments(samples)),
        "faulkner-frame-size-optimum" => Some(sizes(samples)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_size_beats_its_neighbours() {
        for ber in [1e-6, 1e-5, 1e-4] {
            let n = best(ber).unwrap();
            assert!(efficiency(ber, n) > efficiency(ber, n - 8.0).max(efficiency(ber, n + 8.0)), "{ber}");
        }
    }
}
