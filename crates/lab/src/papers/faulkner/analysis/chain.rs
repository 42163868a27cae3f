//! Section 3.2's two states, and what is left of them where blockages are as short as bits (section 4.2.1).

use std::io;

use base::config::ConfigError;
use base::{Duration, Rng};
use channel::timeline::GilbertElliott;

use crate::claims::Measurements;
use crate::papers::faulkner::setting::FRAME_BITS;
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const SOJOURNS: Experiment = Experiment {
    name: "sojourns",
    figures: &["3-3"],
    claims: &["faulkner-gilbert-elliott-parameters"],
    cases: sojourn_cases,
    measure: measure_sojourns,
};

pub(super) const SHORT_BLOCKAGES: Experiment = Experiment {
    name: "short blockages of bits",
    figures: &[],
    claims: &["faulkner-short-blockage-limit-is-bsc"],
    cases: short_cases,
    measure: measure_short,
};

const FRACTIONS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
/// Mean blockages in seconds.
const DURATIONS: [f64; 5] = [0.001, 0.01, 0.1, 1.0, 5.0];
const SIMULATED_PERIODS: u32 = 100_000;

/// The blocked fraction of section 4.2.1's limit.
const FRACTION: f64 = 0.001;
/// Mean blockages in bits; the first one is where the chain has no memory.
const BITS: [f64; 6] = [1.0 / (1.0 - FRACTION), 2.0, 5.0, 10.0, 100.0, 1000.0];
const FRAMES: u32 = 100_000;

fn sojourn_name(f: f64, d: f64) -> String {
    format!("f={f} d={d}")
}

fn sojourn_cases(_: Effort) -> Result<Vec<Case>, ConfigError> {
    let case = |f, d| Case::calculation(sojourn_name(f, d), 1, 20).with("fraction", f).with("duration", d);
    Ok(FRACTIONS.iter().flat_map(|&f| DURATIONS.map(|d| case(f, d))).collect())
}

fn measure_sojourns(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (f, d) = (case.numbers["fraction"], case.numbers["duration"]);
    // Each case has a realisation of its own: they are not to err together.
    let rng = Rng::named(seed, &case.name);
    let timeline = GilbertElliott::new(f, Duration::from_secs_f64(d), rng);
    let (mut blocked, mut whole) = (0.0, 0.0);
    for interval in timeline.take(SIMULATED_PERIODS as usize) {
        blocked += (interval.end - interval.start).as_secs_f64();
        whole = interval.end.as_secs_f64();
    }
    let n = f64::from(SIMULATED_PERIODS);
    let (leave, enter) = (1.0 / d, f / ((1.0 - f) * d));
    let mut measured = Measurements::new();
    measured.note("stationary", enter / (enter + leave) - f);
    measured.note("fraction", blocked / whole / f - 1.0);
    measured.note("blockage", blocked / n / d - 1.0);
    measured.note("period", whole / n * f / d - 1.0);
    Ok(measured)
}

/// The value furthest from zero.
fn worst(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().try_fold(0.0_f64, |worst, value| Some(worst.max(value?.abs())))
}

fn sojourns(samples: &Samples) -> Ruling {
    let over = |quantity: &str| {
        let at = |f, d| samples.mean(SOJOURNS.name, &sojourn_name(f, d), quantity);
        worst(FRACTIONS.iter().flat_map(|&f| DURATIONS.map(|d| at(f, d))))
    };
    Ruling::all(vec![
        Criterion::at_most("greatest |p / (p + q) - f|", over("stationary"), 1e-12),
        Criterion::at_most("greatest error of the blocked fraction, of f", over("fraction"), 0.01),
        Criterion::at_most("greatest error of the mean blockage, of d", over("blockage"), 0.01),
        // Two sojourns' errors; the check asks nothing of it beyond the others.
        Criterion::told("greatest error of the mean period, of d / f", over("period")),
    ])
}

/// A chain over bits: its chances of entering and of leaving the blocked state before the next bit.
#[derive(Clone, Copy)]
struct Chain {
    enter: f64,
    leave: f64,
}

impl Chain {
    /// Blocked for the fraction `f` of the bits, `d` bits on average.
    fn new(f: f64, d: f64) -> Self {
        Self { enter: f / ((1.0 - f) * d), leave: 1.0 / d }
    }

    fn blocked_fraction(self) -> f64 {
        self.enter / (self.enter + self.leave)
    }

    /// The chance that `bits` bits pass, each of which is wrong half of the time while blocked.
    fn intact(self, bits: u32) -> f64 {
        let mut blocked = self.blocked_fraction();
        let mut open = 1.0 - blocked;
        for _ in 0..bits {
            // This bit passes, then the state may change.
            let passed = 0.5 * blocked;
            (blocked, open) = (
                passed * (1.0 - self.leave) + open * self.enter,
                passed * self.leave + open * (1.0 - self.enter),
            );
        }
        blocked + open
    }

    /// Whether a frame that starts at a random time passes.
    fn passes(self, bits: u32, rng: &mut Rng) -> bool {
        let bits = u64::from(bits);
        let mut is_blocked = rng.chance(self.blocked_fraction());
        let mut at = 0;
        while at < bits {
            let change = if is_blocked { self.leave } else { self.enter };
            let until = rng.failures_before_success(change).saturating_add(at + 1).min(bits);
            if is_blocked && (at..until).any(|_| rng.chance(0.5)) {
                return false;
            }
            at = until;
            is_blocked = !is_blocked;
        }
        true
    }
}

fn short_name(d: f64) -> String {
    format!("d={d} bits")
}

fn short_cases(_: Effort) -> Result<Vec<Case>, ConfigError> {
    Ok(BITS.iter().map(|&d| Case::calculation(short_name(d), 1, 30).with("bits", d)).collect())
}

fn measure_short(case: &Case, seed: u64) -> io::Result<Measurements> {
    let chain = Chain::new(FRACTION, case.numbers["bits"]);
    let bits = FRAME_BITS as u32;
    let mut rng = Rng::named(seed, &case.name);
    let passed = (0..FRAMES).filter(|_| chain.passes(bits, &mut rng)).count();
    let mut measured = Measurements::new();
    measured.note("intact", chain.intact(bits));
    measured.note("sampled", passed as f64 / f64::from(FRAMES));
    Ok(measured)
}

fn short_blockages(samples: &Samples) -> Ruling {
    let at = |d: f64, quantity: &str| samples.mean(SHORT_BLOCKAGES.name, &short_name(d), quantity);
    let memoryless = at(BITS[0], "intact");
    let limit = super::intact(0.5 * FRACTION, FRAME_BITS);
    let error = memoryless.map(|memoryless| (memoryless / limit - 1.0).abs());
    let calculated: Option<Vec<f64>> = BITS.iter().map(|&d| at(d, "intact")).collect();
    let step = calculated
        .map(|values| values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min));
    let mut criteria = vec![
        Criterion::at_most("P(intact) without memory over (1 - f/2)^n, less 1", error, 1e-9),
        Criterion::new("least gain with longer blockages", "above 0", step, step.map(|step| step > 0.0)),
    ];
    for d in BITS {
        let intact = at(d, "intact");
        let deviation = intact
            .zip(at(d, "sampled"))
            .map(|(p, sampled)| (sampled - p).abs() / (p * (1.0 - p) / f64::from(FRAMES)).sqrt());
        criteria.push(Criterion::told(format!("P(intact), {d:.3} bits"), intact));
        criteria.push(Criterion::at_most(
            format!("samples, {d:.3} bits, standard errors off"),
            deviation,
            3.0,
        ));
    }
    Ruling::all(criteria)
}

pub(super) fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-gilbert-elliott-parameters" => Some(sojourns(samples)),
        "faulkner-short-blockage-limit-is-bsc" => Some(short_blockages(samples)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_without_memory_is_the_symmetric_channel() {
        let chain = Chain::new(0.25, 1.0 / 0.75);
        assert!((chain.intact(7) - 0.875_f64.powi(7)).abs() < 1e-15);
        // Blocked and never open again within the frame, or open throughout.
        let slow = Chain::new(0.25, 1e9);
        assert!((slow.intact(30) - 0.75).abs() < 1e-6);
    }
}
