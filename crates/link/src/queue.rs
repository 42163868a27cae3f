//! The IP queue in front of a link, where packets wait and, if there are too many, are dropped by reason.

use core::fmt::Debug;
use std::borrow::Cow;
use std::collections::VecDeque;

use base::config::choice;
use base::{Duration, Instant, Packet, Rate, Rng};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

mod codel;
pub mod drop_tail;
pub mod fq_codel;
pub mod red;
mod stopwatch;

pub use drop_tail::DropTail;
pub use fq_codel::FqCodel;
pub use red::Red;

/// Why a queue drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The limit in packets.
    Packets,
    /// The limit in bytes, of packets or of the buffers that hold them.
    Bytes,
    /// Before there is no room, to tell its sender that there will be none.
    Early,
    /// It and those before it have waited for too long.
    Delay,
    /// Its time is up ([`Packet::expires`]).
    Expired,
}

/// Hears of each packet that a queue drops, and why. The queue counts it too.
pub type Dropped<'a> = dyn FnMut(Packet, Refusal) + 'a;

/// Packets that wait for a link.
pub trait Queue: Debug + Send {
    /// Appends a packet. If that makes the queue drop packets, this one or some that waited, `dropped` hears of them.
    fn push(&mut self, now: Instant, packet: Packet, dropped: &mut Dropped<'_>);

    /// Takes the packet whose turn it is; `dropped` hears of those that the queue drops in front of it.
    fn pop(&mut self, now: Instant, dropped: &mut Dropped<'_>) -> Option<Packet>;

    /// A packet of `len` bytes finds the queue empty and the line free, and leaves without waiting.
    fn pass_by(&mut self, _now: Instant, _len: usize) {}

    /// Packets that wait.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// Bytes of memory that what waits takes, as allocated: a packet has a buffer that may be many times as long as it is.
    fn memory(&self) -> usize;

    /// Since when the link has taken nothing through no fault of what waits here; `None` while it takes what there is. That may be some
    /// time ago, when nothing has been popped since.
    fn set_blocked(&mut self, _now: Instant, _since: Option<Instant>) {}

    /// The average length in packets that it goes by, as of the last packet that came; `None` if it goes by none.
    fn average(&self) -> Option<f64> {
        None
    }

    /// Takes over other limits; what waits stays, even where it is more than they allow. False, and nothing changes, where
    /// the configuration is another kind of queue's.
    #[must_use]
    fn set_limits(&mut self, config: &Config, site: &Site<'_>) -> bool;

    /// Takes out all packets whose time is up, and hands them over; who calls this counts them.
    fn take_expired(&mut self, now: Instant, expired: &mut dyn FnMut(Packet));

    /// Takes out all that waits, in an order in which each flow's packets keep theirs, and drops nothing.
    fn drain(&mut self) -> Vec<Packet>;

    /// What the queue counted, by name, for reports and metrics.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// Whether a packet's time is up.
pub(crate) fn is_expired(packet: &Packet, now: Instant) -> bool {
    packet.expires().is_some_and(|at| at <= now)
}

/// Takes the packets out of `waiting` whose time is up; the bytes that they and their buffers had.
fn take_expired(
    waiting: &mut VecDeque<Packet>,
    now: Instant,
    expired: &mut dyn FnMut(Packet),
) -> (u64, usize) {
    let (mut bytes, mut buffers) = (0, 0);
    for _ in 0..waiting.len() {
        match waiting.pop_front() {
            Some(packet) if is_expired(&packet, now) => {
                bytes += packet.len() as u64;
                buffers += packet.capacity();
                expired(packet);
            }
            other => waiting.extend(other),
        }
    }
    (bytes, buffers)
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

/// A queue as a scenario describes it: `queue = "fq-codel"`, or with parameters, `queue = { drop-tail = { packets = 100 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// First in, first out; what does not fit is dropped.
    DropTail(drop_tail::Config),
    /// Random early detection: marks or drops at random before the queue is full.
    Red(red::Config),
    /// A queue for each flow, which take turns, and CoDel in each.
    FqCodel(fq_codel::Config),
}

impl Config {
    /// The queue called `name` on a site, empty.
    #[must_use]
    pub fn build(&self, site: &Site<'_>, name: &str) -> Box<dyn Queue> {
        match self {
            Self::DropTail(config) => Box::new(DropTail::new(*config, site, name)),
            Self::Red(config) => Box::new(Red::new(*config, site, name)),
            Self::FqCodel(config) => Box::new(FqCodel::new(*config, site, name)),
        }
    }

    /// How long what it holds at most takes to leave at this rate; `None` where it does not let packets wait for so long.
    #[must_use]
    pub fn drain_time(&self, rate: Rate) -> Option<Duration> {
        match self {
            Self::DropTail(config) => Some(config.drain_time(rate)),
            Self::Red(_) | Self::FqCodel(_) => None,
        }
    }

    /// Whether it makes no sense in front of a link without a rate.
    #[must_use]
    pub const fn needs_rate(&self) -> bool {
        match self {
            Self::DropTail(config) => config.time.is_some(),
            Self::Red(_) | Self::FqCodel(_) => true,
        }
    }
}

/// A queue's name and parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Table {
    /// First in, first out; what does not fit is dropped.
    DropTail(drop_tail::Config),
    /// Random early detection: marks or drops at random before the queue is full.
    Red(red::Config),
    /// A queue for each flow, which take turns, and CoDel in each.
    FqCodel(fq_codel::Config),
}

impl From<Table> for Config {
    fn from(table: Table) -> Self {
        match table {
            Table::DropTail(config) => Self::DropTail(config),
            Table::Red(config) => Self::Red(config),
            Table::FqCodel(config) => Self::FqCodel(config),
        }
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        choice::read::<Table, D>(deserializer, "a queue").map(Into::into)
    }
}

impl JsonSchema for Config {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        choice::schema(
            Table::json_schema(generator),
            "A queue: its name, or a table of its name and parameters.",
        )
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DropTail(drop_tail::Config::default())
    }
}
