//! Binomial random numbers: how many of a frame's bits are wrong while errors are dense.
//!
//! Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46
//! (1993), algorithm BTRS: exact, and as fast for a super-segment as for a frame.
//! Deviations: none. Under ten expected successes, where BTRS does not apply, it skips from success to success.

use base::Rng;

/// The number of successes in `trials`, each succeeding with `probability`.
pub(super) fn binomial(rng: &mut Rng, trials: u32, probability: f64) -> u32 {
    if probability > 0.5 {
        return trials - binomial(rng, trials, 1.0 - probability);
    }
    if f64::from(trials) * probability < BTRS_FROM {
        return by_skipping(rng, trials, probability);
    }
    by_rejection(rng, trials, probability)
}

fn by_skipping(rng: &mut Rng, trials: u32, probability: f64) -> u32 {
    let (mut successes, mut left) = (0, u64::from(trials));
    loop {
        let failures = rng.failures_before_success(probability);
        if failures >= left {
            return successes;
        }
        successes += 1;
        left -= failures + 1;
    }
}

/// The algorithm's names are the paper's.
fn by_rejection(rng: &mut Rng, trials: u32, p: f64) -> u32 {
    let n = f64::from(trials);
    let r = p / (1.0 - p);
    let spq = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * spq;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = n * p + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let alpha = (2.83 + 5.1 / b) * spq;
    let m = ((n + 1.0) * p).floor();
    loop {
        let u = rng.unit() - 0.5;
        let v = 1.0 - rng.unit();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        if !(0.0..=n).contains(&k) {
            continue;
        }
        if us >= 0.07 && v <= v_r {
            return k as u32;
        }
        let bound = (m + 0.5) * libm::log((m + 1.0) / (r * (n - m + 1.0)))
            + (n + 1.0) * libm::log((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * libm::log(r * (n - k + 1.0) / (k + 1.0))
            + stirling_rest(m)
            + stirling_rest(n - m)
            - stirling_rest(k)
            - stirling_rest(n - k);
        if libm::log(v * alpha / (a / (us * us) + b)) <= bound {
            return k as u32;
        }
    }
}

/// What Stirling's formula leaves of ln(k!).
fn stirling_rest(k: f64) -> f64 {
    if k < 10.0 {
        return STIRLING_RESTS[k as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// Expected successes from which BTRS is valid (Hörmann 1993, section 4).
const BTRS_FROM: f64 = 10.0;

/// [`stirling_rest`] of 0 to 9 (Hörmann 1993, table 1).
const STIRLING_RESTS: [f64; 10] = [
    0.081_061_466_795_327_8,
    0.041_340_695_955_409_5,
    0.027_677_925_684_998_3,
    0.020_790_672_103_765_1,
    0.016_644_691_189_821_2,
    0.013_876_128_823_070_7,
    0.011_896_709_945_891_8,
    0.010_411_265_261_972_1,
    0.009_255_462_182_712_73,
    0.008_330_563_433_362_87,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance within five standard errors, on both sides of the switch and of one half.
    #[test]
    fn mean_and_variance_are_binomial() {
        let cases: [(u32, f64); 7] =
            [(20, 0.3), (40, 0.25), (40, 0.5), (3968, 0.5), (3968, 0.01), (524_288, 0.5), (300, 0.9)];
        for (trials, p) in cases {
            let mut rng = Rng::named(11, "binomial");
            let samples = 40_000_u32;
            let drawn: Vec<f64> = (0..samples).map(|_| f64::from(binomial(&mut rng, trials, p))).collect();
            let (count, n) = (f64::from(samples), f64::from(trials));
            let mean = drawn.iter().sum::<f64>() / count;
            let variance = drawn.iter().map(|k| (k - mean).powi(2)).sum::<f64>() / count;
            let expected = n * p * (1.0 - p);
            assert!((mean - n * p).abs() < 5.0 * (expected / count).sqrt(), "{trials} {p}: mean {mean}");
            assert!(
                (variance / expected - 1.0).abs() < 5.0 * (2.0 / count).sqrt() * 1.1,
                "{trials} {p}: variance {variance}"
            );
            assert!(drawn.iter().all(|&k| k <= n));
        }
    }

    #[test]
    fn never_and_always_are_exact() {
        let mut rng = Rng::named(1, "edges");
        assert_eq!(binomial(&mut rng, 1000, 0.0), 0);
        assert_eq!(binomial(&mut rng, 1000, 1.0), 1000);
        assert_eq!(binomial(&mut rng, 0, 0.5), 0);
    }
}
