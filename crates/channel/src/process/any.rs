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
