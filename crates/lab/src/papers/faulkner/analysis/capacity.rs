//! Section 3.2 and appendix A: how near the capacity of the blockage channel is to the open fraction of time.

use std::io;

use base::config::ConfigError;
use channel::capacity::Gilbert;

use crate::claims::Measurements;
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::{FRAME_BITS, RATE};
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const CAPACITY: Experiment = Experiment {
    name: NAME,
    figures: &["capacity"],
    claims: &["faulkner-capacity-is-one-minus-f"],
    cases,
    measure,
};

const NAME: &str = "capacity";
const FRACTIONS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Chance that a bit is right while blocked.
const H: f64 = 0.5;
/// Mean blockages in bits: from ten bits by way of a frame to 5 s at the line's rate, and how they are called.
const BLOCKAGES: [(&str, f64); 10] = [
    ("10 bits", 10.0),
    ("100 bits", 100.0),
    ("1000 bits", 1000.0),
    ("a frame", FRAME_BITS),
    ("50 ms", 0.05 * RATE),
    ("200 ms", 0.2 * RATE),
    ("500 ms", 0.5 * RATE),
    ("1 s", RATE),
    ("2 s", 2.0 * RATE),
    ("5 s", 5.0 * RATE),
];
/// The first of those at which 1 - f has to be good.
const GOOD_FROM: f64 = 0.2 * RATE;
/// Decades of mean blockage in bits over which limits are followed.
const DECADES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// The fixed K of the limits.
const K: u32 = 10;
/// Terms of recursion and closed form that are compared.
const TERMS: usize = 2000;
/// Limits are followed to within this.
const NEAR: f64 = 1e-5;

fn name(f: f64) -> String {
    format!("f={f}")
}

fn cases(_: Effort) -> Result<Vec<Case>, ConfigError> {
    Ok(FRACTIONS.iter().map(|&f| Case::calculation(name(f), 1, 1).with("f", f)).collect())
}

fn measure(case: &Case, _: u64) -> io::Result<Measurements> {
    let f = case.numbers["f"];
    let blocked = |bits: f64| Gilbert::of_blockage(f, bits, H).map_err(io::Error::other);
    let mut measured = Measurements::new();
    let mut apart = 0.0_f64;
    for (label, bits) in BLOCKAGES {
        let channel = blocked(bits)?;
        measured.note(label, channel.capacity().value);
        for (count, run) in channel.correct_runs().take(TERMS).enumerate() {
            apart = apart.max((run - channel.correct_run(count as u32)).abs());
        }
    }
    measured.note("recursion", apart);
    for bits in DECADES {
        let channel = blocked(bits)?;
        let run = channel.correct_run(K) / libm::pow(H, f64::from(K));
        let distances = [run - 1.0, channel.entropy_after(K) - 1.0, 1.0 - channel.capacity().value - f];
        for (limit, distance) in LIMITS.iter().zip(distances) {
            measured.note(&distance_name(limit, bits), distance.abs());
        }
    }
    Ok(measured)
}

/// What grows towards what as blockages do.
const LIMITS: [&str; 3] = ["u(10) / h^10 -> 1", "h(10^10) -> 1", "H -> f"];

fn distance_name(limit: &str, bits: f64) -> String {
    format!("{limit} at {bits:e}")
}

/// By which part of it 1 - f is above the capacity.
fn excess(samples: &Samples, f: f64, blockage: &str) -> Option<f64> {
    Some(1.0 - samples.mean(NAME, &name(f), blockage)? / (1.0 - f))
}

pub(super) fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    if claim != "faulkner-capacity-is-one-minus-f" {
        return None;
    }
    let mut criteria = Vec::new();
    for limit in LIMITS {
        let at = |f: f64, bits: f64| samples.mean(NAME, &name(f), &distance_name(limit, bits));
        let falls =
            |f: f64| DECADES.windows(2).try_fold(true, |all, d| Some(all && at(f, d[1])? < at(f, d[0])?));
        let falling = FRACTIONS.iter().try_fold(true, |all, &f| Some(all && falls(f)?));
        let rest = FRACTIONS.iter().try_fold(0.0_f64, |most, &f| Some(most.max(at(f, DECADES[6])?)));
        let required = format!("falling with every decade, at most {NEAR:e} at 1e9 bits");
        let holds = falling.zip(rest).map(|(falling, rest)| falling && rest <= NEAR);
        criteria.push(Criterion::new(format!("distance of {limit}"), required, rest, holds));
    }
    let apart = FRACTIONS
        .iter()
        .try_fold(0.0_f64, |most, &f| Some(most.max(samples.mean(NAME, &name(f), "recursion")?)));
    criteria.push(Criterion::at_most("recursion less closed form, greatest", apart, 1e-12));
    let excesses = |least_bits: f64| {
        let blockages = BLOCKAGES.iter().filter(move |(_, bits)| *bits >= least_bits);
        blockages.flat_map(|(label, _)| FRACTIONS.iter().map(|&f| excess(samples, f, label)))
    };
    let worst = excesses(GOOD_FROM).try_fold(0.0_f64, |most, excess| Some(most.max(excess?.abs())));
    criteria.push(Criterion::at_most("|C - (1 - f)| / (1 - f), greatest from 200 ms on", worst, 0.005));
    for (f, blockage, printed, unit) in [
        (0.5, "200 ms", 5.8e-4, 1e-5),
        (0.5, "1 s", 1.3e-4, 1e-5),
        (0.5, "a frame", 5.7e-3, 1e-4),
        (0.5, "100 bits", 0.115, 1e-3),
        (0.9, "200 ms", 4.6e-3, 1e-4),
        (0.9, "a frame", 0.044, 1e-3),
    ] {
        let what = format!("the same at f = {f}, d = {blockage}");
        criteria.push(super::arithmetic::rounds(&what, excess(samples, f, blockage), printed, unit));
    }
    let least = excesses(0.0).try_fold(f64::INFINITY, |least, excess| Some(least.min(excess?)));
    criteria.push(Criterion::told("by how much 1 - f is above C, of it, at least", least));
    Some(Ruling::all(criteria))
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let cell = |f: f64, label: &'static str| {
        let row = [("f", f.to_string()), ("d", label.to_owned())];
        let values = samples.values(NAME, &name(f), label);
        Cell { bound: Some(1.0 - f), ..Cell::of_mean("capacity", &row, values) }
    };
    BLOCKAGES.iter().flat_map(|(label, _)| FRACTIONS.map(|f| cell(f, label))).collect()
}

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut over_fraction = Curves::new("blocked fraction f", "capacity / line rate");
    for (colour, label) in ["10 bits", "100 bits", "a frame", "200 ms"].into_iter().enumerate() {
        let at = |&f: &f64| Some((f, samples.mean(NAME, &name(f), label)?));
        over_fraction =
            over_fraction.line(&format!("d = {label}"), colour, FRACTIONS.iter().filter_map(at).collect());
    }
    let open = (0..=10).map(|tenths| f64::from(tenths) / 10.0).map(|f| (f, 1.0 - f)).collect();
    let mut over_blockage = Curves::new("mean blockage (bits)", "(1 - f - C) / (1 - f)").log_x().log_y();
    for (colour, f) in [0.1, 0.3, 0.5, 0.7, 0.9].into_iter().enumerate() {
        let at = |(label, bits): &(&str, f64)| Some((*bits, excess(samples, f, label)?));
        over_blockage =
            over_blockage.line(&format!("f = {f}"), colour, BLOCKAGES.iter().filter_map(at).collect());
    }
    let half_a_per_cent = vec![(GOOD_FROM, 0.005), (5.0 * RATE, 0.005)];
    vec![
        Figure {
            name: "capacity".to_owned(),
            title: "The capacity of the blockage channel, whose state nobody tells".to_owned(),
            caption: "By Gilbert's series with h = 1/2 (appendix A), for mean blockages d, beside the open fraction of \
                      time; 200 ms cannot be told from it."
                .to_owned(),
            svg: over_fraction.calculated("1 - f", open).svg(),
        },
        Figure {
            name: "capacity-error".to_owned(),
            title: "How much the open fraction of time overstates the capacity".to_owned(),
            caption: "The part of 1 - f that nobody can use, over the mean blockage in bits (262144 are a second); dashed: \
                      half a per cent, from 200 ms on."
                .to_owned(),
            svg: over_blockage.calculated("0.5 %", half_a_per_cent).svg(),
        },
    ]
}
