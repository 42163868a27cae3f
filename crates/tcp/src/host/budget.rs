//! Memory of a host. `docs/tcp.md` tells what happens at the limit; in short, everything that was acknowledged is kept.
//!
//! What is left is shared by dynamic thresholds (Choudhury and Hahne 1998): no connection may hold more than it leaves
//! free, so a few greedy ones never starve the rest, and nothing is set aside for those that need little.

use core::cmp::max;

use crate::buffer::ring::SMALLEST;
use crate::connection::{Connection, State};

/// What connections take together.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: usize,
}

/// Bytes that every connection is taken to need: itself and the smallest buffer each way, which it always gets.
const LEAST: usize = size_of::<Connection>() + 2 * SMALLEST;

impl Budget {
    pub(super) const fn unlimited() -> Self {
        Self { limit: usize::MAX, used: 0 }
    }

    pub(super) const fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Whether anything has to be counted packet by packet.
    pub(super) const fn is_limited(&self) -> bool {
        self.limit != usize::MAX
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    const fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Whether one more connection may be opened.
    pub(super) const fn has_room(&self) -> bool {
        self.left() >= LEAST
    }

    /// Bytes that a connection that was counted as `counted` may grow by.
    pub(super) fn allowance(&self, counted: usize) -> usize {
        self.left().saturating_sub(max(counted, LEAST)) / 2
    }

    /// `connection` was counted as `counted`, 0 if it is new; what it is counted as now.
    pub(super) fn count(&mut self, counted: usize, connection: &Connection) -> usize {
        // A flood of SYNs takes nothing from those who have data.
        let has_data = !matches!(connection.state(), State::SynReceived | State::TimeWait | State::Closed);
        let bytes = connection.memory().max(if has_data { LEAST } else { 0 });
        self.used = self.used - counted + bytes;
        bytes
    }

    /// A connection that was counted as `counted` is gone.
    pub(super) const fn give_back(&mut self, counted: usize) {
        self.used -= counted;
    }
}
