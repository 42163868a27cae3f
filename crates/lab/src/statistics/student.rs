//! Student's t distribution (Student 1908), by the incomplete beta function's continued fraction.
//!
//! P(|T| > t) = I(x; v/2, 1/2) with x = v / (v + t^2) (Abramowitz and Stegun 1964, 26.7.1); the continued fraction
//! is their 26.5.8, evaluated by the modified method of Lentz (Thompson and Barnett 1986).

/// The t that a variable with `degrees` of freedom stays below with probability `p`.
///
/// # Panics
/// If `p` is not between 0 and 1, both excluded, or `degrees` is not positive.
#[must_use]
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "a probability between 0 and 1, not {p}");
    assert!(degrees > 0.0, "at least some freedom, not {degrees}");
    if p < 0.5 {
        return -t_quantile(1.0 - p, degrees);
    }
    let beyond = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while two_tails(high, degrees) > beyond {
        (low, high) = (high, 2.0 * high);
    }
    // Halving until no number lies between the two.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if two_tails(middle, degrees) > beyond {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// What a normal variable of mean 0 and variance 1 stays below with probability `p`.
///
/// # Panics
/// If `p` is not between 0 and 1, both excluded.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "a probability between 0 and 1, not {p}");
    // Beyond 40 no double is left of the tail.
    let (mut low, mut high) = (-40.0, 40.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if 0.5 * libm::erfc(-middle * core::f64::consts::FRAC_1_SQRT_2) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// P(|T| > t).
fn two_tails(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), t * t / (degrees + t * t), 0.5 * degrees, 0.5)
}

/// I(x; a, b), with `y` = 1 - x given apart so that nothing is cancelled.
fn incomplete_beta(x: f64, y: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log(y) - log_beta);
    // The fraction converges fast below the mean; above it the mirrored one does.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(y, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in (1..=MAX_TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() <= f64::EPSILON * fraction.abs() {
            break;
        }
    }
    fraction
}

/// What stands for a zero denominator in Lentz's method.
const TINY: f64 = 1e-300;
/// Terms of the fraction at most; it takes in the order of the root of the larger of a and b.
const MAX_TERMS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of critical values in the NIST/SEMATECH Handbook of Statistical Methods, 1.3.6.7.2, three places.
    #[test]
    fn critical_values_are_those_of_the_table() {
        let table = [
            (0.90, 1.0, 3.078),
            (0.95, 3.0, 2.353),
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 9.0, 2.262),
            (0.975, 30.0, 2.042),
            (0.975, 100.0, 1.984),
            (0.99, 7.0, 2.998),
            (0.995, 5.0, 4.032),
            (0.999, 10.0, 4.144),
        ];
        for (p, degrees, expected) in table {
            let t = t_quantile(p, degrees);
            assert!((t - expected).abs() <= 0.000_51, "t({p}; {degrees}) = {t}");
        }
    }

    /// Closed forms: the Cauchy distribution for one degree, t = (2p - 1) sqrt(2 / (4 p (1 - p))) for two; the
    /// normal distribution's 1.959 964 for many.
    #[test]
    fn closed_forms_agree() {
        for p in [0.51, 0.6, 0.9, 0.975, 0.9995] {
            let cauchy = libm::tan(core::f64::consts::PI * (p - 0.5));
            assert!((t_quantile(p, 1.0) / cauchy - 1.0).abs() < 1e-9, "{p}");
            let two = (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
            assert!((t_quantile(p, 2.0) / two - 1.0).abs() < 1e-9, "{p}");
            assert_eq!(t_quantile(1.0 - p, 4.0), -t_quantile(1.0 - (1.0 - p), 4.0));
        }
        assert!((t_quantile(0.975, 1e7) - 1.959_964).abs() < 1e-5);
        assert!(t_quantile(0.5, 3.0).abs() < 1e-7);
    }

    /// The table of the normal distribution in the same handbook, 1.3.6.7.1, and its symmetry.
    #[test]
    fn the_normal_distribution_s_quantiles_are_those_of_the_table() {
        for (p, expected) in
            [(0.5, 0.0), (0.841_345, 1.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.999, 3.090_232)]
        {
            let z = normal_quantile(p);
            assert!((z - expected).abs() < 5e-6 && (normal_quantile(1.0 - p) + z).abs() < 1e-9, "{p}: {z}");
        }
    }
}
