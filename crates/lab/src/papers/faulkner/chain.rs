//! Section 4.2.1: the two states bit by bit, with blockages as short as bits.

use std::io;

use crate::claims::Measurements;
use crate::study::probe::{Method, Probe, Trial};

/// `intact`: the chance that a frame of `bits` bits passes, where the channel is blocked for the fraction `f` of the bits,
/// `d` bits on average, and a bit is wrong half of the time then.
pub(super) const CHAIN: Probe = Probe {
    name: "bit-chain",
    version: 1,
    quantities: &["intact"],
    series: &[],
    method: Method::Trial(|trial: &Trial<'_>, measured: &mut Measurements| -> io::Result<()> {
        let chain = Chain::new(trial.number("f")?, trial.number("d")?);
        measured.note("intact", chain.intact(trial.number("bits")? as u32));
        Ok(())
    }),
};

/// The chances of entering and of leaving the blocked state before the next bit (equation 3.1, with bits for steps).
#[derive(Clone, Copy)]
struct Chain {
    enter: f64,
    leave: f64,
}

impl Chain {
    fn new(f: f64, d: f64) -> Self {
        Self { enter: f / ((1.0 - f) * d), leave: 1.0 / d }
    }

    /// The chance that `bits` bits pass, from a random time on.
    fn intact(self, bits: u32) -> f64 {
        let mut blocked = self.enter / (self.enter + self.leave);
        let mut open = 1.0 - blocked;
        for _ in 0..bits {
            // This bit passes, then the state may change.
            let passed = 0.5 * blocked;
            (blocked, open) = (
                passed * (1.0 - self.leave) + open * self.enter,
                passed * self.leave + open * (1.0 - self.enter),
            );
        }
        blocked + open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_without_memory_is_the_symmetric_channel() {
        let chain = Chain::new(0.25, 1.0 / 0.75);
        assert!((chain.intact(7) - 0.875_f64.powi(7)).abs() < 1e-15);
        // Blocked and never open again within the frame, or open throughout.
        let slow = Chain::new(0.25, 1e9);
        assert!((slow.intact(30) - 0.75).abs() < 1e-6);
    }
}
