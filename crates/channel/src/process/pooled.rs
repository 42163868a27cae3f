//! Several links that share a line's rate, each with an obstacle of its own: a group of terminals on a fast local network
//! (Faulkner 2004, 5.2).
//!
//! Of N links each has an Nth of the rate. A frame goes over one that is open when its first bit meets the obstacles,
//! the next in turn, and is damaged if that one closes before it has passed. Nobody spends time on closed links: with
//! m open the line carries m / N of its rate. With none open the links are sent over in turn all the same, as a single
//! one is, and frames are lost.
//!
//! Two idealisations: that the sender knows which links are open when a frame gets there, and that frames follow each
//! other on one line in place of N slower ones side by side, so that none overtakes another.

use core::ops::Range;

use base::Instant;

use super::{Blockage, ErrorProcess, Fate};

/// Links that share a line.
#[derive(Debug)]
pub struct Pooled {
    links: Vec<Blockage>,
    /// The link that is asked first.
    next: usize,
}

impl Pooled {
    /// These links, of which there is at least one.
    #[must_use]
    pub const fn new(links: Vec<Blockage>) -> Self {
        Self { links, next: 0 }
    }

    /// The link that a frame goes over whose first bit passes then.
    fn pick(&mut self, at: Instant) -> &mut Blockage {
        let count = self.links.len();
        let mut in_turn = (0..count).map(|k| (self.next + k) % count);
        let picked = in_turn.find(|&link| self.links[link].is_open(at)).unwrap_or(self.next);
        self.next = (picked + 1) % count;
        &mut self.links[picked]
    }
}

impl ErrorProcess for Pooled {
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate {
        self.pick(on_air.start).fate(on_air, bits)
    }

    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        self.pick(on_air.start).damage(on_air, bytes)
    }

    fn air_bits(&mut self, at: Instant, bits: u64) -> u64 {
        let all = self.links.len() as u64;
        let open = self.links.iter_mut().map(|link| u64::from(link.is_open(at))).sum::<u64>();
        if open == 0 { bits } else { (bits * all).div_ceil(open) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeline;
    use crate::process::BitErrors;
    use crate::timeline::Periodic;
    use base::units::Probability;
    use base::{Duration, Rate, Rng};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Two links, blocked from 10 to 20 ms and from 15 to 25 ms.
    fn pair() -> Pooled {
        let link = |first| {
            let errors = |ber: f64| {
                BitErrors::new(
                    Probability::try_from(ber).unwrap(),
                    Rate::from_bps(1_000_000),
                    Rng::named(3, "b"),
                )
            };
            let (open, blocked) = (Duration::from_secs(1), Duration::from_millis(10));
            Blockage::new(
                Timeline::Periodic(Periodic::new(open, blocked, at(first))),
                errors(0.5),
                errors(0.0),
            )
        };
        Pooled::new(vec![link(10), link(15)])
    }

    #[test]
    fn closed_links_take_their_share_of_the_rate_away() {
        let mut pair = pair();
        let air = [0, 9, 10, 14, 15, 19, 20, 24, 25].map(|millis| pair.air_bits(at(millis), 1001));
        // With none open frames are sent in vain, at the full rate as over a single link.
        assert_eq!(air, [1001, 1001, 2002, 2002, 1001, 1001, 2002, 2002, 1001]);
    }

    #[test]
    fn frames_go_over_what_is_open() {
        let mut pair = pair();
        let fates: Vec<bool> =
            (0..30).map(|millis| pair.fate(at(millis)..at(millis + 1), 1000).is_intact()).collect();
        let lost: Vec<usize> = (0..30).filter(|&millis| !fates[millis]).collect();
        assert_eq!(lost, [15, 16, 17, 18, 19]);
    }

    #[test]
    fn a_link_that_closes_takes_its_frame_along() {
        // From 5 ms on: over the first link, which closes at 10 ms, and then over the second one, which closes at 15 ms.
        let mut pair = pair();
        let fates = [5, 6].map(|millis| pair.fate(at(millis)..at(millis + 6), 1000).is_intact());
        assert_eq!(fates, [false, true]);
    }
}
