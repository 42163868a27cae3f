//! The physical bound: what part of a line's rate can carry information at all.
//!
//! A scheme's throughput never stands alone; it is printed beside this. While the state of a blockage channel is
//! known, its capacity is the mean over time of the capacities of its two binary symmetric channels, which for
//! the thesis's b = 1/2 and c = 0 is the open fraction of time, 1 - f (Faulkner 2004, 3.2 and appendix A). Nobody
//! tells the state, though; what that costs is in [`Gilbert`]: less than 0.5 % for d of 200 ms and more.

mod gilbert;

use core::ops::Range;

use base::{Duration, Instant};

use crate::Timeline;

pub use gilbert::{Capacity, Gilbert, GilbertError};

/// Shannon's capacity of the binary symmetric channel, 1 - H2(ber), as a fraction of the rate.
#[must_use]
pub fn of_bit_errors(ber: f64) -> f64 {
    1.0 - binary_entropy(ber)
}

/// The capacity of a channel that loses each frame with this `probability`, as a fraction of the rate.
#[must_use]
pub fn of_erasure(probability: f64) -> f64 {
    1.0 - probability
}

/// The capacity of a channel that is open for the fraction `open` of the time, with bit error rate `b` while
/// blocked and `c` while open, as a fraction of the rate.
#[must_use]
pub fn of_blockage(open: f64, b: f64, c: f64) -> f64 {
    open * of_bit_errors(c) + (1.0 - open) * of_bit_errors(b)
}

/// The part of `range` in which a realisation is open, exact to the nanosecond; 1 if `range` is empty.
///
/// `timeline` is consumed up to the range's end: start from a fresh one.
#[must_use]
pub fn open_fraction(timeline: Timeline, range: Range<Instant>) -> f64 {
    let whole = range.end.saturating_since(range.start);
    if whole == Duration::ZERO {
        return 1.0;
    }
    let open = whole - timeline.blocked_time(range);
    open.as_secs_f64() / whole.as_secs_f64()
}

fn binary_entropy(p: f64) -> f64 {
    let part = |p: f64| if p == 0.0 { 0.0 } else { -p * libm::log2(p) };
    part(p) + part(1.0 - p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Periodic;

    #[test]
    fn localised_errors_leave_more_capacity() {
        // The figures that the thesis's comparison in 4.1.2 comes down to.
        assert!((of_bit_errors(0.25) - 0.188_722).abs() < 1e-6);
        assert!((of_bit_errors(0.125) - 0.456_436).abs() < 1e-6);
        assert!((of_blockage(0.75, 0.5, 0.0) - 0.75).abs() < 1e-12);
        assert_eq!((of_bit_errors(0.0), of_bit_errors(1.0), of_erasure(0.01)), (1.0, 1.0, 0.99));
    }

    #[test]
    fn a_realisation_is_measured_exactly() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let timeline =
            Timeline::Periodic(Periodic::new(Duration::from_secs(10), Duration::from_secs(5), at(10)));
        let open = |range| open_fraction(timeline.clone(), range);
        assert_eq!(open(at(0)..at(20)), 0.75);
        assert_eq!(open(at(11)..at(15)), 0.0);
        assert_eq!(open(at(12)..at(27)), 10.0 / 15.0);
        assert_eq!(open(at(3)..at(3)), 1.0);
        let blocked: Vec<_> = timeline.clone().blocked_in(at(12)..at(27)).collect();
        assert_eq!(blocked, [at(12)..at(15), at(25)..at(27)]);
    }
}
