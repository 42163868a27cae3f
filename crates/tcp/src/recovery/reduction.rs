//! How the window goes down to the controller's during fast recovery, where it does not at once.
//!
//! The controller has responded when a reduction begins: its window is the target, `ssthresh` in the algorithms' terms.

mod prr;
mod rate_halving;

use crate::config;
use prr::Prr;
use rate_halving::RateHalving;

/// The reduction of one fast recovery.
#[derive(Debug)]
pub(crate) enum Reduction {
    /// RFC 9937.
    Prr(Prr),
    /// Linux 2.4.
    RateHalving(RateHalving),
}

/// What a reduction starts from, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outset {
    /// The controller's window after its response.
    pub(crate) target: u64,
    /// Its window before.
    pub(crate) prior_window: u64,
    /// What this recovery can deliver: `RecoverFS` of RFC 9937 (6).
    pub(crate) recover_fs: u64,
    /// Payload of a full segment.
    pub(crate) mss: u64,
}

/// What an acknowledgement during fast recovery, the one that began it included, did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Bytes that it delivered, cumulatively or selectively.
    pub(crate) delivered: u64,
    /// Bytes in the network after it.
    pub(crate) in_flight: u64,
    /// Whether SND.UNA advanced and no further loss was found: `SafeACK` of RFC 9937 (6).
    pub(crate) safe: bool,
}

impl Reduction {
    /// The reduction that the configuration names, if it is one that takes time.
    pub(crate) fn begin(kind: config::Reduction, outset: &Outset) -> Option<Box<Self>> {
        match kind {
            config::Reduction::Immediate => None,
            config::Reduction::Prr => Some(Box::new(Self::Prr(Prr::new(outset)))),
            config::Reduction::RateHalving => Some(Box::new(Self::RateHalving(RateHalving::new(outset)))),
        }
    }

    /// An acknowledgement arrived, or a timer found losses.
    pub(crate) fn on_ack(&mut self, progress: &Progress) {
        match self {
            Self::Prr(prr) => prr.on_ack(progress),
            Self::RateHalving(halving) => halving.on_ack(progress.in_flight),
        }
    }

    /// Bytes were sent, new or again.
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        if let Self::Prr(prr) = self {
            prr.on_sent(bytes);
        }
    }

    /// The window in bytes.
    pub(crate) const fn window(&self) -> u64 {
        match self {
            Self::Prr(prr) => prr.window(),
            Self::RateHalving(halving) => halving.window(),
        }
    }

    /// The most that the window may be when fast recovery ends.
    pub(crate) const fn exit_limit(&self) -> u64 {
        match self {
            Self::Prr(_) => u64::MAX,
            Self::RateHalving(halving) => halving.window(),
        }
    }
}
