//! What a sending window holds of memory, and what it may.
//!
//! A packet stays until its last frame is acknowledged, so whoever acknowledges nothing has the window hold all that it is wide for. With no
//! more than it may hold, it takes no further packet; one may always be under way, so that it gets on.

use base::Packet;

use super::{Expiring, Frame, Sender};
use crate::arq::policy::Policy;
use crate::slack;

impl<P: Policy> Sender<P> {
    /// Bytes of memory that it holds, as allocated, beyond tables that are as long whatever is sent.
    pub(crate) fn memory(&self) -> usize {
        let Self { packets, frames, by_age, flagged, told, policy, expiring, .. } = self;
        self.buffers
            + slack::room::<Packet>(packets)
            + slack::room::<Frame>(frames)
            + by_age.memory()
            + policy.memory()
            + (flagged.len() + 2 * told.len()) * NOTE
            + expiring.capacity() * size_of::<Expiring>()
    }

    /// What [`Sender::memory`] is at most, at a glance: it is asked for with every packet, and seldom near what may be.
    pub(crate) fn memory_at_most(&self) -> usize {
        self.buffers + (self.frames.len() + EMPTY) * NOTES
    }

    /// It may hold so many bytes from now on. What it holds it keeps.
    pub(crate) fn limit_memory(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Whether it holds so little that it may take a packet.
    pub(crate) fn has_memory(&self) -> bool {
        self.frames.is_empty() || self.memory_at_most() <= self.limit || self.memory() <= self.limit
    }

    /// Gives back what notes about a longer window took.
    pub(super) fn give_room_back(&mut self) {
        if self.frames.is_empty() {
            // All are of frames that have left.
            self.by_age.clear();
        }
        slack::give_back(&mut self.frames);
        slack::give_back(&mut self.packets);
        self.by_age.give_back();
    }
}

/// Bytes of all that is noted about a frame, at most: some 300 with room that queues keep.
pub(crate) const NOTES: usize = 1024;
/// The notes that are kept with no frame are as those about so many.
const EMPTY: usize = 64;
/// Bytes that a number in a set takes, or one of the two of a run: nodes of a tree are half full at least.
pub(crate) const NOTE: usize = 24;
