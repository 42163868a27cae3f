//! Loses just the frames that a script names, for experiments that want one loss at one place.

use core::ops::Range;
use std::collections::BTreeSet;

use base::Instant;

use super::{ErrorProcess, Fate};

/// Loses frames by their number.
#[derive(Clone, Debug)]
pub struct Scripted {
    lost: BTreeSet<u64>,
    sent: u64,
}

impl Scripted {
    /// Loses the frames with these numbers, counted from 1.
    #[must_use]
    pub fn new(lost: &[u64]) -> Self {
        Self { lost: lost.iter().copied().collect(), sent: 0 }
    }
}

impl ErrorProcess for Scripted {
    fn fate(&mut self, _on_air: Range<Instant>, _bits: u32) -> Fate {
        self.sent += 1;
        if self.lost.contains(&self.sent) { Fate::Lost } else { Fate::Intact }
    }

    /// A script draws nothing at random: every bit of a lost frame is wrong.
    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        if self.fate(on_air, 0).is_intact() {
            return 0;
        }
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        bytes.len() as u32 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn just_the_named_frames_are_lost() {
        let mut process = Scripted::new(&[4, 2]);
        let fates: Vec<Fate> = (0..5).map(|_| process.fate(Instant::ZERO..Instant::ZERO, 8)).collect();
        assert_eq!(fates, [Fate::Intact, Fate::Lost, Fate::Intact, Fate::Lost, Fate::Intact]);
        let mut bits = Scripted::new(&[2]);
        let mut frame = [0x0f, 0xff];
        let wrong: Vec<u32> = (0..2).map(|_| bits.damage(Instant::ZERO..Instant::ZERO, &mut frame)).collect();
        assert_eq!((&wrong[..], frame), (&[0, 16][..], [0xf0, 0x00]));
    }
}
