//! The IP queue in front of a link, where packets wait and, if there are too many, are dropped by reason.

use core::fmt::Debug;

use base::{Instant, Packet};
use serde::{Deserialize, Serialize};

pub mod drop_tail;

pub use drop_tail::DropTail;

/// Why a queue refused a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The limit in packets.
    Packets,
    /// The limit in bytes.
    Bytes,
}

/// Packets that wait for a link.
pub trait Queue: Debug + Send {
    /// Appends a packet.
    ///
    /// # Errors
    /// Hands the packet back, with the reason, if the queue will not have it; it is counted as dropped.
    fn push(&mut self, now: Instant, packet: Packet) -> Result<(), (Packet, Refusal)>;

    /// Takes the packet whose turn it is.
    fn pop(&mut self, now: Instant) -> Option<Packet>;

    /// Packets that wait.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// What the queue counted, by name, for reports and metrics.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// A queue as a scenario describes it: `queue = { drop-tail = { packets = 100 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Config {
    /// First in, first out; what does not fit is dropped.
    DropTail(drop_tail::Config),
}

impl Config {
    /// The queue, empty.
    #[must_use]
    pub fn build(&self) -> Box<dyn Queue> {
        match self {
            Self::DropTail(config) => Box::new(DropTail::new(*config)),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DropTail(drop_tail::Config::default())
    }
}
