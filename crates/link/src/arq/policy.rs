//! What each protocol over this window does in its own way: what becomes of a frame that was lost, and what goes where nothing has to.
//!
//! The window ([`Sender`](super::Sender)) finds out what is lost, and the protocol asks it for the [`Next`](super::Next) frame. All else that
//! has to be decided about a frame is the policy's, and so is the state for it.

use core::fmt::Debug;

use base::Packet;

use crate::marks::Marks;

/// What becomes of a frame that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLoss {
    /// It goes before anything new.
    Retransmit,
    /// It is not waited for any more, and its packet does not arrive.
    GiveUp,
}

/// What one protocol decides about its frames.
pub(crate) trait Policy: Debug {
    /// Transmissions by which a frame may be overtaken before it is taken for lost. RFC 5681 and RFC 6675 give TCP the same three.
    const REORDERING: u64 = 3;

    /// Whether packets are given up whose time is up ([`Packet::expires`]).
    const EXPIRES: bool = true;

    /// This policy before anything was sent.
    fn fresh(&self) -> Self;

    /// Decides about a frame that was sent so often and lost each time.
    fn on_lost(&mut self, sequence: u64, transmissions: u8) -> OnLoss;

    /// A frame goes out for the `transmissions`th time; `loss` is the part of all frames that is lost, in 256ths.
    fn on_sent(&mut self, _sequence: u64, _transmissions: u8, _loss: u8) {}

    /// A frame has come, was given up, or was not lost after all.
    fn on_settled(&mut self, _sequence: u64) {}

    /// All frames before `base` have left the window.
    fn forget_before(&mut self, _base: u64) {}

    /// Whether there may be a frame to copy.
    fn has_copies(&self) -> bool {
        false
    }

    /// The next frame that an idle line should carry once more before anything is heard of it. It may have come meanwhile.
    fn poll_copy(&mut self) -> Option<u64> {
        None
    }

    /// Whether the receiver is told again and again before which frame nothing will be sent, until it has heard so.
    fn tells_floor(&self) -> bool {
        false
    }

    /// The marks of frames of a packet. One order for all: routers keep none between frames of different DSCPs (RFC 2983, 4.1).
    fn marks(&self, packet: &Packet) -> Marks {
        Marks::of(packet).without_dscp()
    }

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        0
    }
}
