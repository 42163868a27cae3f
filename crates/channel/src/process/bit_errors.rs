//! Independent bit errors: the binary symmetric channel.
//!
//! Sparse errors are points in time that do not depend on what is sent: each lies a geometric number of
//! bit times after the one before. Schemes that cut their frames differently meet the same errors. Dense
//! ones, where a frame would meet dozens, are a binomial count drawn frame by frame instead: exact in
//! distribution, at the same cost for any frame.

use core::ops::Range;

use base::units::Probability;
use base::{Instant, Rate, Rng};

use super::binomial::binomial;
use super::{ErrorProcess, Fate, invert, randomise};

/// Damages each bit with the same probability.
#[derive(Clone, Debug)]
pub struct BitErrors {
    ber: f64,
    rng: Rng,
    errors: Errors,
}

#[derive(Clone, Debug)]
enum Errors {
    None,
    Dense,
    Sparse {
        rate: Rate,
        /// Number of the bit time, from the start of the run, that the next error hits.
        bit: u64,
        /// When that is.
        at: Instant,
    },
}

impl BitErrors {
    /// Bit errors with probability `ber` on a line of this `rate`, drawn from `rng`.
    #[must_use]
    pub fn new(ber: Probability, rate: Rate, mut rng: Rng) -> Self {
        let ber = ber.get();
        let errors = if ber == 0.0 || rate.as_bps() == 0 {
            Errors::None
        } else if ber >= DENSE_FROM || ber * rate.as_bps() as f64 >= DENSE_FROM_PER_SECOND {
            Errors::Dense
        } else {
            let bit = rng.failures_before_success(ber);
            Errors::Sparse { rate, bit, at: start_of(bit, rate) }
        };
        Self { ber, rng, errors }
    }

    /// How many of the `bits` that pass in `span` are wrong. Spans are asked about in order and do not overlap.
    #[inline]
    pub fn wrong_in(&mut self, span: &Range<Instant>, bits: u32) -> u32 {
        match self.errors {
            Errors::None => 0,
            Errors::Dense => binomial(&mut self.rng, bits, self.ber),
            Errors::Sparse { at, .. } if at >= span.end => 0,
            Errors::Sparse { .. } => {
                let mut wrong = 0;
                self.walk(span, |_| wrong += 1);
                wrong
            }
        }
    }

    /// Inverts those of the `bits` of `bytes` that are wrong and passed in `span`; how many. As
    /// [`BitErrors::wrong_in`], of which it takes the place.
    pub(super) fn damage_in(&mut self, span: &Range<Instant>, bytes: &mut [u8], bits: Range<usize>) -> u32 {
        let mut wrong = 0;
        match self.errors {
            Errors::None => {}
            // Pure noise, as while blocked: eight bytes a draw.
            Errors::Dense if self.ber == 0.5 => return randomise(&mut self.rng, bytes, bits),
            Errors::Dense => {
                let mut at = bits.start as u64;
                loop {
                    at = at.saturating_add(self.rng.failures_before_success(self.ber));
                    if at >= bits.end as u64 {
                        break;
                    }
                    invert(bytes, at as usize);
                    wrong += 1;
                    at += 1;
                }
            }
            Errors::Sparse { .. } => {
                let whole = u128::from((span.end - span.start).as_nanos()).max(1);
                self.walk(span, |at| {
                    let passed = u128::from((at - span.start).as_nanos());
                    let bit = bits.start + (passed * bits.len() as u128 / whole) as usize;
                    // A part of a frame may be shorter than a bit.
                    if bits.contains(&bit) {
                        invert(bytes, bit);
                        wrong += 1;
                    }
                });
            }
        }
        wrong
    }

    /// Hands over the error points in `span` and leaves the first one after it as the next.
    fn walk(&mut self, span: &Range<Instant>, mut error: impl FnMut(Instant)) {
        let Errors::Sparse { rate, bit, at } = &mut self.errors else { return };
        while *at < span.end {
            if *at >= span.start {
                error(*at);
            }
            let skipped = self.rng.failures_before_success(self.ber);
            *bit = bit.saturating_add(1).saturating_add(skipped);
            *at = start_of(*bit, *rate);
        }
    }
}

impl ErrorProcess for BitErrors {
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate {
        Fate::of_wrong_bits(self.wrong_in(&on_air, bits))
    }

    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        let bits = 0..bytes.len() * 8;
        self.damage_in(&on_air, bytes, bits)
    }
}

/// When the bit time with this number starts: as `base::Serializer` counts it, fractions of a nanosecond dropped.
fn start_of(bit: u64, rate: Rate) -> Instant {
    let nanos = u128::from(bit) * 1_000_000_000 / u128::from(rate.as_bps());
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Bit error rate from which errors are drawn per frame: ours; a frame of 3968 bits meets forty, so none gets through.
const DENSE_FROM: f64 = 0.01;
/// Errors a second from which they are too: ours; an idle second of single points would cost 10 ms of work.
const DENSE_FROM_PER_SECOND: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use base::Serializer;

    fn process(ber: f64, rate: Rate) -> BitErrors {
        BitErrors::new(Probability::try_from(ber).unwrap(), rate, Rng::named(5, "bits"))
    }

    fn lost_share(ber: f64, frame: u32, frames: u32) -> f64 {
        let rate = Rate::from_bps(262_144);
        let mut errors = process(ber, rate);
        let mut line = Serializer::new(rate);
        let lost = (0..frames)
            .filter(|_| errors.fate(line.send(Instant::ZERO, frame.into()), frame) != Fate::Intact)
            .count();
        lost as f64 / f64::from(frames)
    }

    /// Faulkner 2004, 2.3: 3.9 % of fragments and 11 % of whole packets at 1e-5.
    #[test]
    fn frame_loss_follows_the_frame_length() {
        for (frame, expected) in [(3968, 0.038_903), (12_000, 0.113_08)] {
            let n = 400_000;
            let share = lost_share(1e-5, frame, n);
            let standard_error = (expected * (1.0 - expected) / f64::from(n)).sqrt();
            assert!((share - expected).abs() < 5.0 * standard_error, "{frame}: {share}");
        }
    }

    #[test]
    fn dense_errors_follow_the_frame_length_too() {
        let (n, expected) = (50_000, 1.0 - 0.99_f64.powi(100));
        let share = lost_share(0.01, 100, n);
        let standard_error = (expected * (1.0 - expected) / f64::from(n)).sqrt();
        assert!((share - expected).abs() < 5.0 * standard_error, "{share}");
        assert_eq!(lost_share(1.0, 8, 100), 1.0);
        assert_eq!(lost_share(0.0, 65_535, 100), 0.0);
    }

    /// The errors are where they are, whatever frames pass: one long frame counts what many short ones count.
    #[test]
    fn errors_do_not_move_with_frame_boundaries() {
        let rate = Rate::from_bps(1_000_000);
        let total = |frame: u32| {
            let mut errors = process(1e-4, rate);
            let mut line = Serializer::new(rate);
            let mut positions = Vec::new();
            for _ in 0..12_000_000 / frame {
                let on_air = line.send(Instant::ZERO, frame.into());
                let wrong = errors.wrong_in(&on_air, frame);
                positions.extend((0..wrong).map(|_| on_air.start.as_nanos() / 12_000_000));
            }
            positions
        };
        let short = total(100);
        assert!(short.len() > 1000);
        assert_eq!(short, total(3000));
        assert_eq!(short, total(12_000));
    }

    /// Asked about bit by bit, sparse errors are where they are counted, and dense ones as many.
    #[test]
    fn wrong_bits_are_in_their_places() {
        let rate = Rate::from_bps(1_000_000);
        let places = |bytes: usize| {
            let mut errors = process(1e-4, rate);
            let mut line = Serializer::new(rate);
            let mut places = Vec::new();
            for frame in 0..1_200_000 / bytes {
                let mut content = vec![0; bytes];
                let on_air = line.send(Instant::ZERO, bytes as u64 * 8);
                let wrong = errors.damage(on_air, &mut content);
                let before = places.len();
                places.extend(
                    (0..bytes * 8)
                        .filter(|bit| content[bit / 8] << (bit % 8) & 0x80 != 0)
                        .map(|bit| frame * bytes * 8 + bit),
                );
                assert_eq!((places.len() - before) as u32, wrong);
            }
            places
        };
        let fine = places(50);
        assert!(fine.len() > 800);
        assert_eq!(fine, places(1500));
        let span = Instant::ZERO..Instant::from_nanos(800_000_000);
        for (ber, bits) in [(0.5, 0..800_000), (0.5, 3..799_997), (0.5, 9..14), (0.4, 11..799_990)] {
            let mut content = vec![0; 100_000];
            let wrong = process(ber, rate).damage_in(&span, &mut content, bits.clone());
            let is_wrong = |bit: usize| content[bit / 8] << (bit % 8) & 0x80 != 0;
            assert_eq!(bits.clone().filter(|bit| is_wrong(*bit)).count() as u32, wrong);
            assert_eq!(
                content.iter().map(|byte| byte.count_ones()).sum::<u32>(),
                wrong,
                "outside of {bits:?}"
            );
            // Five standard errors.
            let expected = bits.len() as f64 * ber;
            assert!((f64::from(wrong) - expected).abs() < 5.0 * (expected * (1.0 - ber)).sqrt(), "{wrong}");
        }
    }

    #[test]
    fn idle_time_hides_errors_without_shifting_them() {
        let rate = Rate::from_bps(1_000_000);
        let (mut busy, mut sleepy) = (process(1e-4, rate), process(1e-4, rate));
        let second =
            |n: u64| Instant::from_nanos(n * 1_000_000_000)..Instant::from_nanos((n + 1) * 1_000_000_000);
        let all: Vec<u32> = (0..100).map(|n| busy.wrong_in(&second(n), 1_000_000)).collect();
        let some: Vec<u32> = (50..100).map(|n| sleepy.wrong_in(&second(n), 1_000_000)).collect();
        assert_eq!(all[50..], some);
    }
}
