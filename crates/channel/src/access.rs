//! When a sender may use a line that it does not have for itself.
//!
//! A terminal of a DAMA system asks for capacity and transmits in the slots that it is granted; stations of a shared
//! medium take turns. To the sender all of that is an [`Access`]: asked with something to send, it says "now" or "not before".

use core::fmt::Debug;

use base::Instant;

/// The answer to a sender that wants the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// A frame may start now. The sender starts one.
    Now,
    /// Ask again then, later than now, or when more is waiting; [`Instant::MAX`] if only that helps.
    Later(Instant),
}

/// Grants the use of a line.
///
/// A sender asks whenever the line is free and it has something to send, and asks again after each frame and when its
/// backlog has grown. A frame that was granted is finished: who grants a slot of limited length leaves room for the longest frame.
pub trait Access: Debug + Send {
    /// Whether a frame may start at `now`, where `backlog` bytes wait for the line. Time does not go back.
    fn grant(&mut self, now: Instant, backlog: u64) -> Grant;
}
