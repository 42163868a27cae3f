//! Slots and superframes on the time axis.

use base::{Duration, Instant, Rate};

/// A carrier cut into slots of one cell each, back to back from the start of the run, and the superframes that plans are made for.
///
/// A superframe owns the slots that start in it. Where its length is no whole number of slots, some have one more than others, so that no
/// capacity is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    rate: Rate,
    slot_bits: u32,
    superframe: Duration,
}

impl Slots {
    /// Slots of `slot_bits` at `rate`, in superframes of this length.
    ///
    /// # Panics
    /// If slots have no bits, or superframes no length.
    #[must_use]
    pub const fn new(rate: Rate, slot_bits: u32, superframe: Duration) -> Self {
        assert!(
            slot_bits > 0 && !superframe.is_zero(),
            "slots of some length, in superframes of some length"
        );
        Self { rate, slot_bits, superframe }
    }

    /// These slots on a carrier of another rate: the bits of a slot and the length of a superframe stay.
    #[must_use]
    pub const fn at_rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Bits of a slot.
    #[must_use]
    pub const fn slot_bits(&self) -> u32 {
        self.slot_bits
    }

    /// The length of a superframe.
    #[must_use]
    pub const fn superframe(&self) -> Duration {
        self.superframe
    }

    /// The superframe at a time.
    #[must_use]
    pub const fn superframe_at(&self, now: Instant) -> u64 {
        now.as_nanos() / self.superframe.as_nanos()
    }

    /// When a superframe starts.
    #[must_use]
    pub const fn start_of(&self, superframe: u64) -> Instant {
        Instant::from_nanos(self.superframe.as_nanos().saturating_mul(superframe))
    }

    /// When a slot starts, counted from the start of the run.
    #[must_use]
    pub fn start(&self, slot: u64) -> Instant {
        Instant::ZERO.saturating_add(self.rate.time_for(slot.saturating_mul(self.slot_bits.into())))
    }

    /// The first slot of a superframe.
    #[must_use]
    pub fn first_of(&self, superframe: u64) -> u64 {
        let nanos = u128::from(self.superframe.as_nanos()) * u128::from(superframe);
        let slots =
            (nanos * u128::from(self.rate.as_bps())).div_ceil(u128::from(self.slot_bits) * 1_000_000_000);
        u64::try_from(slots).unwrap_or(u64::MAX)
    }

    /// How many slots a superframe has.
    #[must_use]
    pub fn count(&self, superframe: u64) -> u32 {
        (self.first_of(superframe + 1) - self.first_of(superframe)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(bps: u64, superframe: u64) -> Slots {
        Slots::new(Rate::from_bps(bps), 424, Duration::from_millis(superframe))
    }

    #[test]
    fn no_capacity_is_lost_between_superframes() {
        let slots = slots(128_000, 250);
        // 75.47 slots of 3.3125 ms in 250 ms.
        assert_eq!((slots.count(0), slots.first_of(1), slots.count(1)), (76, 76, 75));
        let all: u64 = (0..4 * 53).map(|superframe| u64::from(slots.count(superframe))).sum();
        assert_eq!(all, 53 * 128_000 / 424);
    }

    proptest! {
        #[test]
        fn slots_start_in_the_superframe_that_owns_them(bps in 1_u64..10_000_000, length in 1_u64..2000, superframe in 0_u64..100_000) {
            let slots = slots(bps, length);
            let (first, next) = (slots.first_of(superframe), slots.first_of(superframe + 1));
            for slot in [first, next.saturating_sub(1)].into_iter().filter(|slot| (first..next).contains(slot)) {
                prop_assert_eq!(slots.superframe_at(slots.start(slot)), superframe);
            }
            prop_assert!(slots.start_of(superframe) <= slots.start(first));
        }
    }
}
