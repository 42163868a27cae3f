//! Bursts that corrupt every packet in them (Kojo et al. 2005, section 4): a frame is lost if a burst meets any part of it.

use core::ops::Range;

use base::time::overlap;
use base::{Instant, Rng};

use super::{ErrorProcess, Fate, randomise};
use crate::Timeline;

/// A channel with bursts of errors.
#[derive(Clone, Debug)]
pub struct Bursts {
    timeline: Timeline,
    /// The first burst that ends after everything asked about so far.
    current: Option<Range<Instant>>,
    noise: Rng,
}

impl Bursts {
    /// Bursts during the intervals of `timeline`, with bits of `noise`.
    #[must_use]
    pub fn new(mut timeline: Timeline, noise: Rng) -> Self {
        let current = timeline.next();
        Self { timeline, current, noise }
    }

    /// The next burst that ends after `at`.
    fn next_after(&mut self, at: Instant) -> Option<Range<Instant>> {
        while self.current.as_ref().is_some_and(|burst| burst.end <= at) {
            self.current = self.timeline.next();
        }
        self.current.clone()
    }
}

impl ErrorProcess for Bursts {
    fn fate(&mut self, on_air: Range<Instant>, _bits: u32) -> Fate {
        match self.next_after(on_air.start) {
            Some(burst) if burst.start < on_air.end => Fate::Lost,
            _ => Fate::Intact,
        }
    }

    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        let (bits, whole) = (bytes.len() * 8, u128::from((on_air.end - on_air.start).as_nanos()).max(1));
        let place = |at: Instant| {
            let passed = u128::from(at.saturating_since(on_air.start).as_nanos());
            ((bits as u128 * passed / whole) as usize).min(bits)
        };
        let (mut wrong, mut from) = (0, on_air.start);
        while let Some(burst) = self.next_after(from).filter(|burst| burst.start < on_air.end) {
            if !overlap(&burst, &on_air).is_zero() {
                wrong += randomise(&mut self.noise, bytes, place(burst.start)..place(burst.end));
            }
            from = burst.end;
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Periodic;
    use base::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Bursts from 10 to 15 ms, from 25 to 30 ms, and so on.
    fn bursts() -> Bursts {
        let (open, blocked) = (Duration::from_millis(10), Duration::from_millis(5));
        Bursts::new(Timeline::Periodic(Periodic::new(open, blocked, at(10))), Rng::named(1, "noise"))
    }

    #[test]
    fn any_overlap_kills_a_frame() {
        let mut channel = bursts();
        let nano = Duration::from_nanos(1);
        let spans = [
            at(0)..at(10),
            at(9)..at(10) + nano,
            at(12)..at(13),
            at(15).saturating_sub(nano)..at(20),
            at(15)..at(25),
            at(24)..at(41),
        ];
        let fates = spans.map(|on_air| channel.fate(on_air, 8).is_intact());
        assert_eq!(fates, [true, false, false, false, true, false]);
    }

    #[test]
    fn bits_in_a_burst_are_noise_and_no_others() {
        let mut channel = bursts();
        let mut bytes = vec![0_u8; 4000];
        // 8 bits a microsecond: bursts from byte 10,000 to 15,000 of the line's time.
        let wrong = channel.damage(at(8)..at(12), &mut bytes);
        assert!(bytes[..2000].iter().all(|byte| *byte == 0));
        assert!((7500..8500).contains(&wrong), "{wrong}");
        assert_eq!(wrong, bytes.iter().map(|byte| byte.count_ones()).sum::<u32>());
    }
}
