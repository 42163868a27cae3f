//! The traffic models of a scenario (Faulkner 2004, section 3.3): bulk transfers, rate-controlled sources, transactions.

use core::num::NonZeroU32;

use base::units::{Size, above_zero};
use base::wire::record;
use base::{Duration, Rate};
use link::limit::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::traffic::datagram;

/// What hosts send each other.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Traffic {
    /// As much as TCP accepts, in one direction.
    Bulk(Bulk),
    /// Records at a fixed rate, in one direction.
    Rate(RateSource),
    /// Many short connections, each with a request and a reply.
    Transactions(Transactions),
}

/// A bulk transfer.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bulk {
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Size of each connection's data. Default: the transfer lasts until the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = above_zero)]
    pub size: Option<Size>,
    /// Size of the largest connection, where sizes differ: they are spread evenly from `size` to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Size>,
    /// Number of connections, each with the whole size.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = super::PORTS))]
    pub connections: u32,
    /// Transfer that has to end before this one starts, with all its connections; `start` then counts from its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When the first connection opens.
    #[serde(default)]
    pub start: Duration,
    /// Time between the openings of consecutive connections.
    #[serde(default)]
    pub stagger: Duration,
    /// Connections at the same time. Default: all. Each further one opens when the one that many places before it has ended, and
    /// `stagger` after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<NonZeroU32>,
    /// Random delay of each connection's opening, from 0 to this.
    #[serde(default)]
    pub jitter: Duration,
    /// Which side opens the connections.
    #[serde(default)]
    pub opened_by: Opener,
}

const fn one() -> u32 {
    1
}

impl Bulk {
    /// How long after what it waits for, or after the start of the run, the connection with this number opens, without
    /// its jitter.
    #[must_use]
    pub const fn opens_after(&self, connection: u32) -> Duration {
        match connection {
            later if self.waits_its_turn(later) => self.stagger,
            _ => self.start.saturating_add(self.stagger.saturating_mul(connection as u64)),
        }
    }

    /// Whether the connection with this number opens only when another one has ended.
    #[must_use]
    pub const fn waits_its_turn(&self, connection: u32) -> bool {
        match self.at_once {
            Some(most) => connection >= most.get(),
            None => false,
        }
    }

    /// Bytes of the connection with this number. Small and large ones alternate.
    #[must_use]
    pub fn size_of(&self, connection: u32) -> Option<u64> {
        let (size, count) = (self.size?.0, u64::from(self.connections));
        let Some(largest) = self.largest.filter(|_| count > 1) else { return Some(size) };
        let is_stride = |stride: &u64| gcd(*stride, count) == 1;
        let stride = (count * 3 / 8..).find(is_stride).unwrap_or(1);
        let place = u64::from(connection) * stride % count;
        Some(size + largest.0.saturating_sub(size) * place / (count - 1))
    }

    /// The host that opens its connections.
    #[must_use]
    pub fn opener(&self) -> &str {
        match self.opened_by {
            Opener::Receiver => &self.to,
            Opener::Sender => &self.from,
        }
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The side that opens a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Opener {
    /// The receiver, as in a download.
    #[default]
    Receiver,
    /// The sender, as in an upload.
    Sender,
}

/// A source of records at a fixed rate, such as a voice or a video stream.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateSource {
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Bits of records per second, their headers included.
    #[schemars(transform = above_zero)]
    pub rate: Rate,
    /// Bytes of a record, its header included.
    #[serde(default = "default_record")]
    #[schemars(transform = above_zero)]
    pub record: Size,
    /// What carries the records.
    #[serde(default)]
    pub transport: Transport,
    /// How long the source generates records. Default: until the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Connections, each with the whole rate.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = super::PORTS))]
    pub connections: u32,
    /// When the first connection opens.
    #[serde(default)]
    pub start: Duration,
    /// Time between the openings of consecutive connections.
    #[serde(default)]
    pub stagger: Duration,
    /// Random delay of each connection's opening, from 0 to this.
    #[serde(default)]
    pub jitter: Duration,
    /// Which side opens the connections. Default: the receiver. UDP opens none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<Opener>,
    /// The DSCP of its datagrams, 0 to 63; not for TCP. Default: 0, best effort.
    #[serde(default, skip_serializing_if = "is_best_effort")]
    pub dscp: Dscp,
}

/// A differentiated services code point (RFC 2474, 3).
pub type Dscp = Limit<0, 63, 0>;

fn is_best_effort(dscp: &Dscp) -> bool {
    dscp.get() == 0
}

/// Ours: eight records a second at 64 kbit/s, and one always fits a segment.
const fn default_record() -> Size {
    Size(1000)
}

/// What carries the records of a rate-controlled source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One stream.
    #[default]
    Tcp,
    /// A datagram a record.
    Udp,
}

impl RateSource {
    /// How long after the start of the run the connection with this number opens, without its jitter.
    #[must_use]
    pub const fn opens_after(&self, connection: u32) -> Duration {
        self.start.saturating_add(self.stagger.saturating_mul(connection as u64))
    }

    /// What makes no sense about it, in words.
    pub(super) fn complaint(&self, network: super::Network) -> Option<String> {
        let (record, bits) = (self.record.0, self.record.0.saturating_mul(8));
        let (shortest, longest) = match self.transport {
            Transport::Tcp => (record::HEADER_LEN, LONGEST_RECORD),
            Transport::Udp => (datagram::HEADER_LEN, datagram::longest(network.address(0))),
        };
        if !(shortest as u64..=longest as u64).contains(&record) {
            return Some(format!("has records of {record} bytes; allowed are {shortest} to {longest}"));
        }
        if self.rate.as_bps() == 0 {
            return Some("has a rate of 0 bit/s; allowed are 1 bit/s or more".to_owned());
        }
        if self.rate.as_bps() / bits >= MAX_RECORDS_PER_SECOND {
            let records = self.rate.as_bps() / bits;
            return Some(format!("has {records} records a second; allowed are fewer than 1000000"));
        }
        if self.transport == Transport::Udp && self.opened_by.is_some() {
            return Some("goes over UDP and says who opens it; leave out opened-by".to_owned());
        }
        if self.transport == Transport::Tcp && !is_best_effort(&self.dscp) {
            let dscp = self.dscp.get();
            return Some(format!("goes over TCP, but has dscp = {dscp}; allowed is UDP, or no dscp"));
        }
        None
    }
}

/// Many short connections, each with a request and a reply, as browsing makes them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Transactions {
    /// The host that replies.
    pub from: String,
    /// The host that opens the connections and sends the requests.
    pub to: String,
    /// Bytes of a request.
    #[serde(default = "default_request")]
    #[schemars(transform = above_zero)]
    pub request: Size,
    /// Bytes of a reply.
    #[serde(default = "default_reply")]
    #[schemars(transform = above_zero)]
    pub reply: Size,
    /// Number of transactions. Default: no limit until the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<u64>,
    /// Time between the starts of consecutive transactions, whether or not the one before has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = above_zero)]
    pub interval: Option<Duration>,
    /// Time between the end of a user's transaction and the start of that user's next one. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Duration>,
    /// Whether `interval` or `think` is the mean of an exponential distribution.
    #[serde(default)]
    pub exponential: bool,
    /// Transactions at the same time: the number of users with `think` (default: 1), the maximum with `interval` (default: 1000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_AT_ONCE))]
    pub concurrency: Option<u32>,
    /// When the first one starts.
    #[serde(default)]
    pub start: Duration,
}

/// Ours: a short request line with its headers.
const fn default_request() -> Size {
    Size(200)
}

/// Ours: a small page.
const fn default_reply() -> Size {
    Size(8_000)
}

impl Transactions {
    /// Transactions under way at once.
    #[must_use]
    pub const fn most_at_once(&self) -> u32 {
        match (self.concurrency, self.interval) {
            (Some(most), _) => most,
            (None, Some(_)) => 1_000,
            (None, None) => 1,
        }
    }

    /// What makes no sense about it, in words.
    pub(super) fn complaint(&self) -> Option<String> {
        if self.request.0 == 0 || self.reply.0 == 0 {
            return Some("has an empty request or reply; allowed are 1 B or more".to_owned());
        }
        if self.count == Some(0) {
            return Some("counts to 0; allowed are 1 or more".to_owned());
        }
        if self.interval.is_some() && self.think.is_some() {
            return Some("has both interval and think; allowed is only one of them".to_owned());
        }
        if self.interval.is_some_and(|interval| interval < MIN_INTERVAL) {
            return Some("has an interval below 1 us; allowed are 1 us or more".to_owned());
        }
        let most = self.most_at_once();
        if !(1..=MAX_AT_ONCE).contains(&most) {
            return Some(format!("has {most} at once; allowed are 1 to {MAX_AT_ONCE}"));
        }
        None
    }
}

/// A record over TCP. Ours: what one buffer of the sender holds many times.
const LONGEST_RECORD: usize = 1_000_000;
/// Below the resolution of any clock that could generate them.
const MAX_RECORDS_PER_SECOND: u64 = 1_000_000;
/// As for records.
const MIN_INTERVAL: Duration = Duration::from_micros(1);
/// Fewer than the ephemeral ports of a host (RFC 6335, section 6).
const MAX_AT_ONCE: u32 = 10_000;
