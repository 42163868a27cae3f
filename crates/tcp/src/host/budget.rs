//! Memory of a host. `docs/tcp.md` tells what happens at the limit; in short, everything that was acknowledged is kept.
//!
//! What is left is shared by dynamic thresholds (Choudhury and Hahne 1998): no connection may hold more than it leaves
//! free, so a few greedy ones never starve the rest, and nothing is set aside for those that need little.

use core::cmp::max;

use base::Instant;

use super::Slot;
use super::ports::Key;
use crate::buffer::ring::SMALLEST;
use crate::connection::{Connection, State};

/// What connections take together.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    /// Whether there ever was a limit. Until then nobody needs to know what is used, and looking after each packet would cost.
    counts: bool,
    used: Counted,
}

/// Bytes that a connection is counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// What it holds.
    held: usize,
    /// What is set aside for it: no less, and at least what it always gets.
    reserved: usize,
}

/// Bytes that every connection is taken to need: itself and the smallest buffer each way, which it always gets.
const LEAST: usize = size_of::<Connection>() + 2 * SMALLEST;
/// Bytes that the host's tables have for each connection: its slot, its place among ports, its deadline in three places and its turn;
/// and half as much again, since tables grow by doubling.
const PLACE: usize =
    (size_of::<Slot>() + size_of::<(Key, u32)>() + 2 * size_of::<Instant>() + 4 * size_of::<u32>()) * 3 / 2;

impl Budget {
    pub(super) const fn unlimited() -> Self {
        Self { limit: usize::MAX, counts: false, used: Counted { held: 0, reserved: 0 } }
    }

    pub(super) const fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
        self.counts |= self.is_limited();
    }

    /// Whether connections are counted.
    pub(super) const fn counts(&self) -> bool {
        self.counts
    }

    /// Whether anything has to be counted packet by packet.
    pub(super) const fn is_limited(&self) -> bool {
        self.limit != usize::MAX
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that the connections that are counted hold.
    pub(super) const fn held(&self) -> usize {
        self.used.held
    }

    const fn left(&self) -> usize {
        self.limit.saturating_sub(self.used.reserved)
    }

    /// Whether one more connection may be opened.
    pub(super) const fn has_room(&self) -> bool {
        self.left() >= LEAST
    }

    /// Bytes that a connection that was counted as `counted` may grow by.
    pub(super) fn allowance(&self, counted: Counted) -> usize {
        self.left().saturating_sub(max(counted.reserved, LEAST)) / 2
    }

    /// Bytes that a new connection may grow by.
    pub(super) fn first_allowance(&self) -> usize {
        self.allowance(Counted::default())
    }

    /// `connection` was counted as `counted`, nothing if it is new; what it is counted as now.
    pub(super) fn count(&mut self, counted: Counted, connection: &Connection) -> Counted {
        // A flood of SYNs takes nothing from those who have data.
        let has_data = !matches!(connection.state(), State::SynReceived | State::TimeWait | State::Closed);
        let held = held_by(connection);
        let now = Counted { held, reserved: held.max(if has_data { LEAST } else { 0 }) };
        self.give_back(counted);
        self.used.held += now.held;
        self.used.reserved += now.reserved;
        now
    }

    /// A connection that was counted as `counted`, nothing if it was not, is gone.
    pub(super) const fn give_back(&mut self, counted: Counted) {
        self.used.held -= counted.held;
        self.used.reserved -= counted.reserved;
    }
}

/// Bytes that a connection holds, its place in the host's tables included.
pub(super) fn held_by(connection: &Connection) -> usize {
    connection.memory() + PLACE
}
