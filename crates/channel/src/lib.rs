//! What happens to a frame between two link endpoints: air time, propagation, errors.
//!
//! An [`ErrorProcess`] owns its random streams, derived from the run's seed and a *name*: two lines that
//! share a name see the same blockages, and every scheme of a comparison sees the same channel.

#![forbid(unsafe_code)]

use core::fmt::Debug;
use core::ops::Range;

use base::Instant;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every bit arrived as it was sent.
    Intact,
    /// This many bits are wrong, at least one.
    Damaged(u32),
    /// Nothing arrived at all.
    Lost,
}

/// What happens to a frame on the air. Air time, not frame count, drives bursts and blockages.
///
/// Frames are asked about in the order of their air time.
pub trait ErrorProcess: Debug + Send {
    /// The fate of a frame of `bits` whose first bit passes at `on_air.start` and whose last has passed at `on_air.end`.
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate;
}
