//! Proportional Rate Reduction: RFC 9937, which supersedes RFC 6937.
//!
//! Deviations: where a timer finds losses, the computation runs as for an acknowledgement that delivers nothing.

use super::{Outset, Progress};

/// The state of section 6, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Prr {
    ssthresh: u64,
    recover_fs: u64,
    mss: u64,
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    out: u64,
    window: u64,
}

impl Prr {
    pub(super) fn new(outset: &Outset) -> Self {
        Self {
            ssthresh: outset.target,
            recover_fs: outset.recover_fs.max(1),
            mss: outset.mss,
            delivered: 0,
            out: 0,
            window: outset.target,
        }
    }

    /// What section 6.2 does for every acknowledgement of fast recovery.
    pub(super) fn on_ack(&mut self, progress: &Progress) {
        self.delivered += progress.delivered;
        let unsent = self.delivered.saturating_sub(self.out);
        let mut sndcnt = if progress.in_flight > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            let share = share.div_ceil(u128::from(self.recover_fs));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // PRR-CRB, or PRR-SSRB where the acknowledgement says that recovery goes well.
            let bound = unsent.max(progress.delivered) + if progress.safe { self.mss } else { 0 };
            bound.min(self.ssthresh - progress.in_flight)
        };
        if self.out == 0 && sndcnt == 0 {
            sndcnt = self.mss; // The fast retransmit goes out in any case.
        }
        self.window = progress.in_flight + sndcnt;
    }

    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}
