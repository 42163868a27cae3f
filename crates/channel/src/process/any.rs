//! Several error processes on one line.

use core::ops::Range;

use base::Instant;

use super::{ErrorProcess, Fate};

/// A frame is lost or damaged if any of several processes does that to it. Each is asked about every frame, so the
/// others do not change what it does.
#[derive(Debug)]
pub struct AnyOf {
    processes: Vec<Box<dyn ErrorProcess>>,
    /// Frames that each has hit; one that several hit counts for each of them.
    hits: Vec<u64>,
}

impl AnyOf {
    /// All of these at once.
    #[must_use]
    pub fn new(processes: Vec<Box<dyn ErrorProcess>>) -> Self {
        let hits = vec![0; processes.len()];
        Self { processes, hits }
    }
}

impl ErrorProcess for AnyOf {
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate {
        let mut all = Fate::Intact;
        for (process, hits) in self.processes.iter_mut().zip(&mut self.hits) {
            let fate = process.fate(on_air.clone(), bits);
            *hits += u64::from(!fate.is_intact());
            all = match (all, fate) {
                (Fate::Lost, _) | (_, Fate::Lost) => Fate::Lost,
                (Fate::Damaged(some), Fate::Damaged(more)) => {
                    Fate::Damaged(some.saturating_add(more).min(bits))
                }
                (Fate::Intact, fate) | (fate, Fate::Intact) => fate,
            };
        }
        all
    }

    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        // A bit that two of them invert arrives right.
        let sent = bytes.to_vec();
        for (process, hits) in self.processes.iter_mut().zip(&mut self.hits) {
            *hits += u64::from(process.damage(on_air.clone(), bytes) > 0);
        }
        sent.iter().zip(bytes).map(|(sent, arrived)| (sent ^ *arrived).count_ones()).sum()
    }

    fn air_bits(&mut self, at: Instant, bits: u64) -> u64 {
        self.processes.iter_mut().fold(bits, |bits, process| process.air_bits(at, bits))
    }

    fn hits(&self) -> &[u64] {
        &self.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the same to every frame: a fate, a pattern of wrong bits in each byte, and a delay of so many bits.
    #[derive(Debug)]
    struct Always(Fate, u8, u64);

    impl ErrorProcess for Always {
        fn fate(&mut self, _: Range<Instant>, _: u32) -> Fate {
            self.0
        }

        fn damage(&mut self, _: Range<Instant>, bytes: &mut [u8]) -> u32 {
            bytes.iter_mut().for_each(|byte| *byte ^= self.1);
            bytes.len() as u32 * self.1.count_ones()
        }

        fn air_bits(&mut self, _: Instant, bits: u64) -> u64 {
            bits + self.2
        }
    }

    const NOW: Range<Instant> = Instant::ZERO..Instant::ZERO;

    fn all(processes: impl IntoIterator<Item = Always>) -> AnyOf {
        AnyOf::new(processes.into_iter().map(|process| Box::new(process) as Box<dyn ErrorProcess>).collect())
    }

    #[test]
    fn the_worst_fate_counts_and_wrong_bits_add_up() {
        use Fate::{Damaged, Intact, Lost};
        for (fates, expected, hits) in [
            ([Intact, Intact], Intact, [0, 0]),
            ([Intact, Damaged(3)], Damaged(3), [0, 1]),
            ([Damaged(2), Damaged(3)], Damaged(5), [1, 1]),
            ([Damaged(6), Damaged(7)], Damaged(8), [1, 1]),
            ([Damaged(2), Lost], Lost, [1, 1]),
            ([Lost, Intact], Lost, [1, 0]),
        ] {
            let mut any = all(fates.map(|fate| Always(fate, 0, 0)));
            assert_eq!((any.fate(NOW, 8), any.hits()), (expected, &hits[..]), "{fates:?}");
        }
    }

    #[test]
    fn a_bit_that_two_invert_arrives_right() {
        let mut any = all([0x0f, 0, 0x3c].map(|pattern| Always(Fate::Intact, pattern, 0)));
        let mut bytes = [0xff, 0];
        assert_eq!(any.damage(NOW, &mut bytes), 8);
        assert_eq!((bytes, any.hits()), ([0xcc, 0x33], &[1, 0, 1][..]));
    }

    #[test]
    fn all_take_their_part_of_the_rate() {
        let mut any = all([5, 70].map(|bits| Always(Fate::Intact, 0, bits)));
        assert_eq!(any.air_bits(Instant::ZERO, 800), 875);
    }
}
