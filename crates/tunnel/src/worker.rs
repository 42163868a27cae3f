//! Workers: parts of a gateway that run at the same time, and share nothing.
//!
//! Each has a [`Hub`](crate::Hub) of its own, with those peers whose numbers leave its own number over. Which worker a datagram is for can
//! be told without any key, so that a kernel can: the indices of a worker's sessions have a first byte (the lowest) that leaves its number
//! over. Datagrams that name no session of ours are the first worker's, who has the [`Reception`](crate::session::Reception).

use crate::session;

/// Which of a gateway's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId {
    number: u32,
    count: u32,
}

/// As many as a session's 4096 indices are divided among without a thought.
pub const MOST_WORKERS: u32 = 16;

impl WorkerId {
    /// The only one.
    pub const ONLY: Self = Self { number: 0, count: 1 };

    /// All of `count` workers, the first of them first.
    ///
    /// # Panics
    /// If there are none, or more than [`MOST_WORKERS`].
    pub fn all(count: u32) -> impl Iterator<Item = Self> {
        assert!((1..=MOST_WORKERS).contains(&count), "{count} workers");
        (0..count).map(move |number| Self { number, count })
    }

    /// Its number, from zero.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether there are no others.
    #[must_use]
    pub const fn is_only(self) -> bool {
        self.count == 1
    }

    /// The number of the worker that has the session with this index.
    #[must_use]
    pub const fn of_index(self, index: u32) -> u32 {
        (index & 0xff) % self.count
    }

    /// The number of the worker that has the peer with this number.
    #[must_use]
    pub const fn of_peer(self, peer: u32) -> u32 {
        peer % self.count
    }

    /// The number of the worker that a datagram is for.
    #[must_use]
    pub fn of_datagram(self, datagram: &[u8]) -> u32 {
        session::receiver(datagram).map_or(0, |index| self.of_index(index))
    }

    /// Whether the session with this index is its own.
    pub(crate) const fn has_index(self, index: u32) -> bool {
        self.of_index(index) == self.number
    }

    /// Whether the peer with this number is its own.
    pub(crate) const fn has_peer(self, peer: u32) -> bool {
        self.of_peer(peer) == self.number
    }
}
