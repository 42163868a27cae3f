//! Blockage: bit errors at one rate while the sight to the satellite is blocked and at another while it is open
//! (Faulkner 2004, 3.2).
//!
//! The [`Timeline`] and the bit errors of either state have random streams of their own, so the state at any
//! time is the same whatever is sent. If the state changes within a frame, each part of the frame meets
//! its own error rate.

use core::ops::Range;

use base::Instant;
use base::time::overlap;

use crate::Timeline;

use super::{BitErrors, ErrorProcess, Fate};

/// A channel that is blocked from time to time.
#[derive(Clone, Debug)]
pub struct Blockage {
    timeline: Timeline,
    /// The first blocked interval that ends after everything asked about so far.
    current: Option<Range<Instant>>,
    blocked: BitErrors,
    open: BitErrors,
}

impl Blockage {
    /// Bit errors as `blocked` says during the intervals of `timeline`, and as `open` says outside them.
    #[must_use]
    pub fn new(mut timeline: Timeline, blocked: BitErrors, open: BitErrors) -> Self {
        let current = timeline.next();
        Self { timeline, current, blocked, open }
    }

    /// Whether it is open at a time, not before any that was asked about so far.
    pub(super) fn is_open(&mut self, at: Instant) -> bool {
        self.skip_to(at);
        self.current.as_ref().is_none_or(|blocked| at < blocked.start)
    }

    fn skip_to(&mut self, at: Instant) {
        while self.current.as_ref().is_some_and(|blocked| blocked.end <= at) {
            self.current = self.timeline.next();
        }
    }

    /// Cuts a frame at every change of state and hands each piece to `meet`, with the errors that it meets; the sum of
    /// what that answers.
    fn meet(
        &mut self,
        on_air: &Range<Instant>,
        mut meet: impl FnMut(&mut BitErrors, Range<Instant>) -> u32,
    ) -> u32 {
        self.skip_to(on_air.start);
        let mut wrong = 0;
        let mut at = on_air.start;
        while let Some(blocked) = self.current.clone().filter(|blocked| blocked.start < on_air.end) {
            let open = at..blocked.start;
            if !open.is_empty() {
                wrong += meet(&mut self.open, open);
            }
            wrong += meet(&mut self.blocked, at.max(blocked.start)..blocked.end.min(on_air.end));
            if blocked.end > on_air.end {
                return wrong;
            }
            at = blocked.end;
            self.current = self.timeline.next();
        }
        wrong + meet(&mut self.open, at..on_air.end)
    }
}

impl ErrorProcess for Blockage {
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate {
        let wrong = self.meet(&on_air, |errors, part| errors.wrong_in(&part, share_of(bits, &on_air, &part)));
        Fate::of_wrong_bits(wrong)
    }

    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        let bits = bytes.len() as u32 * 8;
        self.meet(&on_air, |errors, part| {
            let before = share_of(bits, &on_air, &(on_air.start..part.start)) as usize;
            let until = share_of(bits, &on_air, &(on_air.start..part.end)) as usize;
            errors.damage_in(&part, bytes, before..until)
        })
    }
}

/// The bits of a frame that pass in `part` of its air time, to the nearest.
fn share_of(bits: u32, on_air: &Range<Instant>, part: &Range<Instant>) -> u32 {
    if part == on_air {
        return bits;
    }
    let whole = u128::from((on_air.end - on_air.start).as_nanos()).max(1);
    let part = u128::from(overlap(on_air, part).as_nanos());
    ((u128::from(bits) * part + whole / 2) / whole) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Periodic;
    use base::units::Probability;
    use base::{Duration, Rate, Rng, Serializer};
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Blocked from 10 to 15 ms, from 25 to 30 ms, and so on.
    fn blockage(b: f64, c: f64) -> Blockage {
        let rate = Rate::from_bps(1_000_000);
        let errors =
            |ber, name| BitErrors::new(Probability::try_from(ber).unwrap(), rate, Rng::named(2, name));
        let (open, blocked) = (Duration::from_millis(10), Duration::from_millis(5));
        let timeline = Timeline::Periodic(Periodic::new(open, blocked, at(10)));
        Blockage::new(timeline, errors(b, "b"), errors(c, "c"))
    }

    #[test]
    fn only_frames_that_meet_a_blockage_are_damaged() {
        let mut channel = blockage(0.5, 0.0);
        let fates = [(0, 10), (10, 15), (15, 25), (29, 31), (31, 40), (40, 41)]
            .map(|(from, to)| channel.fate(at(from)..at(to), (to - from) as u32 * 1000).is_intact());
        assert_eq!(fates, [true, false, true, false, true, false]);
    }

    #[test]
    fn only_the_part_in_the_shadow_counts() {
        // With b = 1 every bit in the shadow is wrong, and no other.
        let mut channel = blockage(1.0, 0.0);
        assert_eq!(channel.fate(at(8)..at(12), 4000), Fate::Damaged(2000));
        assert_eq!(channel.fate(at(12)..at(28), 16_000), Fate::Damaged(3000 + 3000));
        assert_eq!(channel.fate(at(28)..at(80), 52_000), Fate::Damaged(2000 + 3 * 5000));
        assert_eq!(channel.fate(at(80)..at(85), 5000), Fate::Intact);
    }

    #[test]
    fn errors_outside_blockages_follow_c() {
        let mut channel = blockage(0.0, 1.0);
        assert_eq!(channel.fate(at(8)..at(12), 4000), Fate::Damaged(2000));
        assert_eq!(channel.fate(at(12)..at(15), 3000), Fate::Intact);
        assert_eq!(channel.fate(at(20)..at(40), 20_000), Fate::Damaged(15_000));
    }

    /// Two schemes with different frames see the same blockages and, while open, the same bit errors.
    #[test]
    fn a_realisation_does_not_depend_on_the_frames() {
        let rate = Rate::from_bps(1_000_000);
        let damage = |frame: u32| {
            let mut channel = blockage(0.0, 1e-4);
            let mut line = Serializer::new(rate);
            let mut wrong = [0_u32; 100];
            for _ in 0..1_200_000 / frame {
                let on_air = line.send(Instant::ZERO, frame.into());
                let slot = on_air.start.as_nanos() / 12_000_000;
                if let Fate::Damaged(bits) = channel.fate(on_air, frame) {
                    wrong[slot as usize] += bits;
                }
            }
            wrong
        };
        let fine = damage(500);
        assert!(fine.iter().sum::<u32>() > 50);
        assert_eq!(fine, damage(4000));
        assert_eq!(fine, damage(12_000));
    }

    /// With b = 1 every bit in the shadow is inverted, and no other.
    #[test]
    fn bits_in_the_shadow_are_wrong() {
        let mut channel = blockage(1.0, 0.0);
        // 2000 bits before the shadow from 10 ms to 15 ms, and 1000 after it.
        let mut bytes = vec![0; 1000];
        assert_eq!(channel.damage(at(8)..at(16), &mut bytes), 5000);
        let wrong = bytes.iter().position(|byte| *byte != 0).zip(bytes.iter().rposition(|byte| *byte != 0));
        assert_eq!((wrong, bytes[250], bytes[874]), (Some((250, 874)), 0xff, 0xff));
        assert_eq!(channel.damage(at(16)..at(24), &mut bytes), 0);
    }

    proptest! {
        /// With b = 1 and c = 0 the wrong bits are the blocked time, whatever the frames and gaps.
        #[test]
        fn wrong_bits_are_the_overlap(spans in prop::collection::vec((0_u64..30, 0_u64..60), 1..60)) {
            let mut channel = blockage(1.0, 0.0);
            let mut now = 0;
            for (idle, len) in spans {
                let (from, to) = (now + idle, now + idle + len);
                now = to;
                let shadow = (from..to).filter(|ms| *ms >= 10 && (ms - 10) % 15 < 5).count() as u32;
                prop_assert_eq!(
                    channel.fate(at(from)..at(to), len as u32 * 1000),
                    Fate::of_wrong_bits(shadow * 1000)
                );
            }
        }
    }
}
