//! The IP queue in front of a link, where packets wait and, if there are too many, are dropped by reason.

use core::fmt::Debug;

use base::{Instant, Packet, Rate, Rng};
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
    /// Hands back the packet that is dropped for it, this one or one that waited, with the reason; it is counted.
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

    /// Takes over other limits; what waits stays, even where it is more than they allow.
    fn set_limits(&mut self, config: &Config, site: &Site<'_>);

    /// What the queue counted, by name, for reports and metrics.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// Where a queue stands: what it may need to know of the link behind it, and where its random numbers come from.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Bits per second of the link; `None` if it has no rate of its own.
    pub rate: Option<Rate>,
    /// The run's root seed.
    pub seed: u64,
    /// The name of the link's direction, of which the queue's random stream has its own name.
    pub name: &'a str,
}

impl Site<'_> {
    /// The random stream of the queue called `queue` here.
    #[must_use]
    pub fn rng(&self, queue: &str) -> Rng {
        Rng::named(self.seed, &format!("{}/{queue}", self.name))
    }
}

/// A queue as a scenario describes it: `queue = { drop-tail = { packets = 100 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Config {
    /// First in, first out; what does not fit is dropped.
    DropTail(drop_tail::Config),
}

impl Config {
    /// The queue called `name` on a site, empty.
    #[must_use]
    pub fn build(&self, site: &Site<'_>, name: &str) -> Box<dyn Queue> {
        match self {
            Self::DropTail(config) => Box::new(DropTail::new(*config, site, name)),
        }
    }

    /// Whether it makes no sense in front of a link without a rate.
    #[must_use]
    pub const fn needs_rate(&self) -> bool {
        match self {
            Self::DropTail(config) => config.time.is_some(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DropTail(drop_tail::Config::default())
    }
}
