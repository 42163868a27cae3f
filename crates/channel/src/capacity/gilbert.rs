//! The capacity of a blockage channel whose state nobody tells: Gilbert's burst-noise channel.
//!
//! Source: Gilbert, Capacity of a burst-noise channel (1960); Faulkner 2004, appendix A, which concludes that the
//! capacity is nearly 1 - f. The noise is a renewal process: an error tells that the channel is bad, so what comes next
//! depends only on how many correct bits came since. With u(K) the probability that K correct bits follow an error,
//!
//! ```text
//! C = 1 - H,  H = P(1) sum over K >= 0 of u(K) H2(u(K + 1) / u(K))
//! u(K + 2) = (Q + h q) u(K + 1) + h (p - Q) u(K),  u(0) = 1,  u(1) = p + q h
//! u(K) = A J^K + (1 - A) L^K
//! ```
//!
//! The letters are Gilbert's and the appendix's: P = 1 - Q is the probability to *enter* the bad state with the next bit,
//! p = 1 - q to *leave* it, and h that a bit is correct there. The thesis's equation 3.1 means other things by p and q;
//! and where the appendix prints P(1) = (1 - b) P / (p + P), that has to be 1 - h, which is the same for b = h = 1/2.
//!
//! Deviations: with long blockages u shrinks by P (1 - h) / (1 - L) a bit, and the series takes many millions of terms.
//! But L^K has long died out by then, and what remains is geometric. It is summed in closed form, with a bound on the
//! difference. J - 1 and A are taken from products of the roots, where nothing cancels.

use base::Duration;

/// The two-state channel that Gilbert describes, bit by bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gilbert {
    /// P: the probability that the next bit meets the bad state, after one in the good state.
    enters: f64,
    /// p: the probability that the next bit meets the good state, after one in the bad state.
    leaves: f64,
    /// h: the probability that a bit in the bad state is correct.
    h: f64,
}

/// A value that no such channel has.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GilbertError {
    /// The fraction of time in the bad state is below 0, or 1 and more.
    #[error("a blocked fraction of {0}; allowed are values from 0 to below 1")]
    Fraction(f64),
    /// Blockages of this many bits on average are too short for the fraction: the good state would last less than a bit.
    #[error("blockages of {0} bits; allowed are at least 1 and at least f / (1 - f)")]
    Bits(f64),
    /// The probability of a correct bit in the bad state is none.
    #[error("{0} of the bits correct in the bad state; allowed are 0 to 1")]
    Correct(f64),
}

/// A capacity and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Bits per bit sent.
    pub value: f64,
    /// How far the sum in closed form may be off, rounding aside.
    pub error: f64,
    /// Terms that were summed one by one.
    pub terms: u32,
}

/// u(K) = A J^K + B L^K.
#[derive(Clone, Copy, Debug)]
struct ClosedForm {
    a: f64,
    b: f64,
    j: f64,
    l: f64,
    /// 1 - J.
    decay: f64,
}

impl Gilbert {
    /// The channel that is bad for the fraction `f` of the time, for `bits` bits at a time on average, and in which a bit
    /// is then correct with probability `h`; the thesis has h = 1/2.
    ///
    /// # Errors
    /// A value that no such channel has.
    pub fn of_blockage(f: f64, bits: f64, h: f64) -> Result<Self, GilbertError> {
        if !(0.0..1.0).contains(&f) {
            return Err(GilbertError::Fraction(f));
        }
        if !(bits >= 1.0 && bits >= f / (1.0 - f) && bits.is_finite()) {
            return Err(GilbertError::Bits(bits));
        }
        if !(0.0..=1.0).contains(&h) {
            return Err(GilbertError::Correct(h));
        }
        let leaves = 1.0 / bits;
        Ok(Self { enters: (leaves * f / (1.0 - f)).min(1.0), leaves, h })
    }

    /// The channel that is blocked for the time `d` on average, on a line of `bps` bits per second.
    ///
    /// # Errors
    /// As [`Gilbert::of_blockage`].
    pub fn of_blocked_time(f: f64, d: Duration, bps: u64, h: f64) -> Result<Self, GilbertError> {
        Self::of_blockage(f, d.as_secs_f64() * bps as f64, h)
    }

    /// The fraction of bits that meet the good state: 1 - f.
    #[must_use]
    pub fn open(&self) -> f64 {
        self.leaves / (self.leaves + self.enters)
    }

    /// P(1): the fraction of bits in error.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        (1.0 - self.h) * self.enters / (self.leaves + self.enters)
    }

    /// u(K): the probability that `count` correct bits follow an error, in closed form.
    #[must_use]
    pub fn correct_run(&self, count: u32) -> f64 {
        self.closed_form().at(count)
    }

    /// u(0), u(1), ... by Gilbert's recursion.
    pub fn correct_runs(&self) -> impl Iterator<Item = f64> + use<> {
        let (trace, determinant) = (self.trace(), self.determinant());
        let mut next = (1.0, self.first());
        core::iter::from_fn(move || {
            let now = next.0;
            next = (next.1, trace * next.1 - determinant * now);
            Some(now)
        })
    }

    /// h(10^K): the entropy in bits of the bit after an error and `count` correct bits.
    #[must_use]
    pub fn entropy_after(&self, count: u32) -> f64 {
        self.closed_form().step(count).1
    }

    /// The capacity in bits per bit sent.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let errors = self.error_rate();
        if errors == 0.0 {
            return Capacity { value: 1.0, error: 0.0, terms: 0 };
        }
        let form = self.closed_form();
        let (mut sum, mut terms) = (0.0, 0);
        while errors * form.difference(terms) > NEGLIGIBLE && terms < MAX_TERMS {
            let (run, entropy) = form.step(terms);
            sum += run * entropy;
            terms += 1;
        }
        // From here on every bit is correct with probability J.
        sum += form.a * libm::pow(form.j, f64::from(terms)) / form.decay * entropy(form.decay);
        Capacity { value: 1.0 - errors * sum, error: errors * form.difference(terms), terms }
    }

    /// u(1).
    fn first(&self) -> f64 {
        self.leaves + (1.0 - self.leaves) * self.h
    }

    /// J + L = Q + h q.
    fn trace(&self) -> f64 {
        1.0 - self.enters + self.h * (1.0 - self.leaves)
    }

    /// J L = h (Q - p).
    fn determinant(&self) -> f64 {
        self.h * (1.0 - self.enters - self.leaves)
    }

    fn closed_form(&self) -> ClosedForm {
        let (trace, determinant, first) = (self.trace(), self.determinant(), self.first());
        let apart = (trace * trace - 4.0 * determinant).max(0.0).sqrt();
        let j = 0.5 * (trace + apart);
        let l = if j > 0.0 { determinant / j } else { 0.0 };
        // (1 - J) (1 - L) = P (1 - h), and (J - u(1)) (u(1) - L) = p (1 - h) (Q - p).
        let decay = self.enters * (1.0 - self.h) / (1.0 - l);
        let product = self.leaves * (1.0 - self.h) * (1.0 - self.enters - self.leaves);
        let above = if (j - first).abs() > (first - l).abs() { product / (j - first) } else { first - l };
        let a = if apart > 0.0 { above / (j - l) } else { 1.0 };
        ClosedForm { a, b: 1.0 - a, j, l, decay }
    }
}

impl ClosedForm {
    fn at(&self, count: u32) -> f64 {
        let power = |base| libm::pow(base, f64::from(count));
        self.a * power(self.j) + self.b * power(self.l)
    }

    /// u(K), and the entropy of the next bit.
    fn step(&self, count: u32) -> (f64, f64) {
        let run = self.at(count);
        (run, if run > 0.0 { entropy(self.error_after(count)) } else { 0.0 })
    }

    /// The probability of an error after K correct bits: (u(K) - u(K + 1)) / u(K), without the difference.
    fn error_after(&self, count: u32) -> f64 {
        let power = |base| libm::pow(base, f64::from(count));
        let ends = self.a * power(self.j) * self.decay + self.b * power(self.l) * (1.0 - self.l);
        (ends / self.at(count)).clamp(0.0, 1.0)
    }

    /// How far the sum over all K from `count` on may be from that of A J^K H2(J).
    ///
    /// A term is u H2(u'/u) = -u' log(u'/u) - (u - u') log((u - u')/u), whose derivatives by u' and by u - u' are the two
    /// logarithms. The probabilities in them come ever nearer to J and 1 - J, from one side or in turns.
    fn difference(&self, count: u32) -> f64 {
        let error = [self.decay, self.error_after(count), self.error_after(count + 1)];
        let least_error = error.into_iter().fold(1.0, f64::min);
        let most_error = error.into_iter().fold(0.0, f64::max);
        if least_error <= 0.0 || most_error >= 1.0 {
            return f64::INFINITY;
        }
        let size = self.l.abs();
        let of_correct = size * -libm::log1p(-most_error);
        let of_errors = (1.0 - self.l) * -libm::log(least_error);
        let rest = self.b.abs() * libm::pow(size, f64::from(count)) / (1.0 - size);
        rest * (of_correct + of_errors) / core::f64::consts::LN_2
    }
}

/// The binary entropy in bits of a probability that may be very small.
fn entropy(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return 0.0;
    }
    -(p * libm::log(p) + (1.0 - p) * libm::log1p(-p)) / core::f64::consts::LN_2
}

/// Bits per bit: less than what rounding does.
const NEGLIGIBLE: f64 = 1e-16;
/// Enough unless a bad state is hardly worse than the good one; the error tells.
const MAX_TERMS: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The thesis's line.
    const BPS: u64 = 262_144;
    /// Bits of its frames on the line.
    const FRAME: f64 = 3968.0;

    fn blocked(f: f64, bits: f64) -> Gilbert {
        Gilbert::of_blockage(f, bits, 0.5).unwrap()
    }

    fn for_millis(f: f64, millis: u64) -> Gilbert {
        Gilbert::of_blocked_time(f, Duration::from_millis(millis), BPS, 0.5).unwrap()
    }

    #[test]
    fn recursion_and_closed_form_agree() {
        for f in [0.1, 0.5, 0.9] {
            for bits in [10.0, 100.0, FRAME, 5.0 * BPS as f64] {
                for h in [0.0, 0.2, 0.5, 0.9] {
                    let channel = Gilbert::of_blockage(f, bits, h).unwrap();
                    for (count, run) in channel.correct_runs().take(2000).enumerate() {
                        let closed = channel.correct_run(count as u32);
                        assert!((run - closed).abs() < 1e-12, "f {f}, {bits} bits, h {h}, K {count}");
                    }
                }
            }
        }
    }

    /// Without any formula: the entropy of n bits of noise, summed over all their values, grows with the n-th bit by more
    /// than the entropy rate, and by less if the state before them is known (Cover and Thomas, Elements of Information
    /// Theory, theorem 4.5.1).
    #[test]
    fn the_entropy_lies_between_those_of_words() {
        for (f, bits, h) in
            [(0.3, 2.0, 0.5), (0.5, 4.0, 0.5), (0.4, 3.0, 0.2), (0.5, 1.0, 0.3), (0.7, 8.0, 0.0)]
        {
            let channel = Gilbert::of_blockage(f, bits, h).unwrap();
            let open = [channel.open(), 1.0 - channel.open()];
            let unknown = |n| words(&channel, open, n);
            let known =
                |n| open[0] * words(&channel, [1.0, 0.0], n) + open[1] * words(&channel, [0.0, 1.0], n);
            let most = unknown(14) - unknown(13);
            let least = known(14) - known(13);
            let entropy = 1.0 - channel.capacity().value;
            assert!(least - 1e-12 <= entropy && entropy <= most + 1e-12, "{least} {entropy} {most}");
            assert!(most - least < 0.02, "{least} {most}");
        }
    }

    /// The entropy of the next `n` bits of noise, if these are the probabilities of the state before them.
    fn words(channel: &Gilbert, states: [f64; 2], n: u32) -> f64 {
        let moved = [
            states[0] * (1.0 - channel.enters) + states[1] * channel.leaves,
            states[0] * channel.enters + states[1] * (1.0 - channel.leaves),
        ];
        if n == 0 {
            let p = states[0] + states[1];
            return if p > 0.0 { -p * libm::log2(p) } else { 0.0 };
        }
        let correct = [moved[0], moved[1] * channel.h];
        let wrong = [0.0, moved[1] * (1.0 - channel.h)];
        words(channel, correct, n - 1) + words(channel, wrong, n - 1)
    }

    /// The whole series by the recursion, until nothing is left to add.
    #[test]
    fn the_closed_sum_is_that_of_the_series() {
        for (f, bits) in [(0.1, 10.0), (0.5, 100.0), (0.9, 100.0), (0.3, FRAME), (0.5, 20_000.0)] {
            let channel = blocked(f, bits);
            let mut runs = channel.correct_runs();
            let (mut run, mut sum) = (runs.next().unwrap(), 0.0);
            while run > 1e-17 {
                let next = runs.next().unwrap();
                let error = (run - next) / run;
                sum -= run * ((1.0 - error) * libm::log2(1.0 - error) + error * libm::log2(error));
                run = next;
            }
            let capacity = channel.capacity();
            assert!(
                (1.0 - channel.error_rate() * sum - capacity.value).abs() < 1e-9,
                "{f} {bits} {capacity:?}"
            );
            assert!(capacity.error < 1e-15 && capacity.terms < 200, "{capacity:?}");
        }
    }

    /// As blockages grow, a fixed number of bits after an error is as in the bad state, and the entropy is f.
    #[test]
    fn long_blockages_leave_the_open_time() {
        for f in [0.1, 0.5, 0.9] {
            let loss = [1e3, 1e5, 1e7, 1e9].map(|bits| {
                let channel = blocked(f, bits);
                let run = channel.correct_run(10) / libm::pow(0.5, 10.0);
                assert!(
                    (run - 1.0).abs() < 4e3 / bits && 1.0 - channel.entropy_after(10) < 1e7 / (bits * bits)
                );
                channel.open() - channel.capacity().value
            });
            assert!(loss.windows(2).all(|pair| 0.0 < pair[1] && pair[1] < 0.1 * pair[0]), "{loss:?}");
            assert!(loss[3] < 1e-6, "{loss:?}");
        }
    }

    /// How far 1 - f is above the capacity: figures that were computed apart from this code, by the plain series.
    #[test]
    fn the_open_fraction_is_nearly_the_capacity() {
        let excess_of = |channel: &Gilbert| 1.0 - channel.capacity().value / channel.open();
        let near = |channel: Gilbert, expected: f64, digit: f64| {
            let excess = excess_of(&channel);
            assert!((excess - expected).abs() <= 0.5 * digit, "{channel:?}: {excess}, not {expected}");
        };
        near(for_millis(0.5, 200), 5.8e-4, 1e-5);
        near(for_millis(0.5, 1000), 1.3e-4, 1e-5);
        near(blocked(0.5, FRAME), 5.7e-3, 1e-4);
        near(blocked(0.5, 100.0), 0.115, 1e-3);
        near(for_millis(0.9, 200), 4.6e-3, 1e-4);
        near(blocked(0.9, FRAME), 0.044, 1e-3);
        // One per cent takes this many bits.
        near(blocked(0.3, 850.0), 0.01, 1e-3);
        near(blocked(0.5, 2100.0), 0.01, 1e-3);
        near(blocked(0.9, 22_000.0), 0.01, 1e-3);
        for f in (1..=9).map(|tenths| f64::from(tenths) / 10.0) {
            for millis in [200, 500, 1000, 2000, 5000] {
                let channel = for_millis(f, millis);
                let excess = excess_of(&channel);
                assert!(0.0 < excess && excess <= 0.005, "{f} {millis}: {excess}");
                assert!(channel.capacity().error < 1e-15);
            }
        }
    }

    /// Blockages of 5 s, 1.3 million bits: figures of 60-digit arithmetic; for f = 0.5 and 0.9 all 28 and 3 million terms
    /// of the series, from the two states' probabilities in extended precision, give the same to 1e-14.
    #[test]
    fn five_seconds_are_exact() {
        for (f, expected) in
            [(0.1, 0.899_996_742_319_506_8), (0.5, 0.499_984_921_007_605), (0.9, 0.099_975_036_878_852_36)]
        {
            let capacity = for_millis(f, 5000).capacity();
            assert!((capacity.value - expected).abs() < 1e-12, "{f}: {capacity:?}");
            assert!(capacity.terms < 100, "{capacity:?}");
        }
    }

    #[test]
    fn simple_channels_have_their_capacity() {
        let capacity = |f, bits, h| Gilbert::of_blockage(f, bits, h).unwrap().capacity().value;
        assert_eq!((capacity(0.0, 5.0, 0.5), capacity(0.5, 5.0, 1.0)), (1.0, 1.0));
        // No memory: P = 1 - p, a binary symmetric channel of error rate f / 2.
        let symmetric = super::super::of_bit_errors(0.15);
        assert!((capacity(0.3, 1.0 / 0.7, 0.5) - symmetric).abs() < 1e-12);
        // The bad state inverts every bit: only its comings and goings are unknown.
        let (enters, leaves) = (0.01 * 0.25 / 0.75, 0.01);
        let markov = 0.75 * entropy(enters) + 0.25 * entropy(leaves);
        assert!((capacity(0.25, 100.0, 0.0) - (1.0 - markov)).abs() < 1e-12);
    }

    #[test]
    fn what_no_channel_has_is_refused() {
        let refused = |f, bits, h| Gilbert::of_blockage(f, bits, h).unwrap_err();
        assert_eq!(refused(1.0, 10.0, 0.5), GilbertError::Fraction(1.0));
        assert_eq!(refused(-0.1, 10.0, 0.5), GilbertError::Fraction(-0.1));
        assert_eq!(refused(0.9, 8.0, 0.5), GilbertError::Bits(8.0));
        assert_eq!(refused(0.1, 0.5, 0.5), GilbertError::Bits(0.5));
        assert_eq!(refused(0.1, 10.0, 1.5), GilbertError::Correct(1.5));
    }
}
