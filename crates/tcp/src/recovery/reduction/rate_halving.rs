//! Rate halving as Linux 2.4 had it: a segment goes out for every two acknowledgements, after Hoe's observation
//! that half a window of silence is not needed (Mathis, Semke, Mahdavi: "The Rate-Halving Algorithm for TCP
//! Congestion Control", 1999).
//!
//! Deviations: none from Linux 2.4, which unlike the draft lets the window fall below the target, to half of it,
//! and bounds it by what is in the network and a segment.

use super::Outset;

/// One fast recovery's window on its way down, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct RateHalving {
    window: u64,
    floor: u64,
    mss: u64,
    /// Whether an acknowledgement waits for its second.
    odd: bool,
}

impl RateHalving {
    pub(super) const fn new(outset: &Outset) -> Self {
        Self { window: outset.prior_window, floor: outset.target / 2, mss: outset.mss, odd: false }
    }

    pub(super) fn on_ack(&mut self, in_flight: u64) {
        if self.odd && self.window > self.floor {
            self.window = self.window.saturating_sub(self.mss);
        }
        self.odd = !self.odd;
        self.window = self.window.min(in_flight + self.mss).max(self.mss);
    }

    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}
