//! The `[link]` table: how a tunnel sends.

use base::config::ConfigError;
use base::{Duration, Rate};
use link::{ByDscp, DatagramAge, DscpSet, Edge, LineLimits, Protocol, coded, queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complaint::{Complaint, Place};
use super::{CarrierLimits, LinkRate, Overhead};

/// The link to the peer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "TunnelLink")]
pub struct Link {
    /// Link-layer protocol, the same at both ends. Default: `coded`.
    #[serde(default = "default_protocol")]
    pub protocol: Protocol,
    /// Sending rate of the carrier, with all its headers. Default: `auto`, which measures it; on a serial line, the line's rate.
    #[serde(default)]
    pub rate: LinkRate,
    /// Queue in front of the link. Default: drop-tail, which holds one round trip at the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<link::queue::Config>,
    /// Round-trip time between the two ends. Default: measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Duration>,
    /// The DSCPs of packets that are never retransmitted and have a queue of their own. Default: those of calls and conferences.
    /// Each end decides for the packets that it sends.
    #[serde(default = "usual_once")]
    pub once_dscp: DscpSet,
    /// The DSCPs of interactive packets, for which somebody waits. A protocol with classes sends them before others, with repairs
    /// of their own; other protocols treat them like any packet.
    #[serde(default = "usual_interactive")]
    pub interactive_dscp: DscpSet,
    /// Age beyond which datagrams (UDP, ICMP) are neither sent nor retransmitted, unless a DSCP of the two keys above marks them. Default: `auto`,
    /// which is what the queue takes to drain and two and a half round trips.
    #[serde(default = "auto_age")]
    pub datagram_age: DatagramAge,
    /// Whether thin flows without a mark, such as calls, DNS and keystrokes, count as interactive.
    #[serde(default = "yes")]
    pub sparse_flows: bool,
    /// Idle frames per second on a link that is faster than 1 Mbit/s; slower links are always kept busy. A protocol that
    /// recovers losses needs some, or it would not notice that the last frames of a burst were lost.
    #[serde(default = "default_fillers")]
    pub fillers: u32,
    /// Extra bytes per packet of the carrier that count towards `rate`, -64 to 256.
    #[serde(default)]
    pub overhead: Overhead,
    /// Whether the carrier is free of losses, so that `plain` may carry super-segments (several TCP segments in one packet) too.
    #[serde(default)]
    pub clean: bool,
}

fn default_protocol() -> Protocol {
    Protocol::Coded(coded::Config::default())
}

const fn usual_once() -> DscpSet {
    ByDscp::USUAL.once
}

const fn usual_interactive() -> DscpSet {
    ByDscp::USUAL.interactive
}

const fn auto_age() -> DatagramAge {
    DatagramAge::Auto
}

const fn yes() -> bool {
    true
}

impl Default for Link {
    fn default() -> Self {
        Self {
            protocol: default_protocol(),
            rate: LinkRate::default(),
            queue: None,
            round_trip: None,
            once_dscp: usual_once(),
            interactive_dscp: usual_interactive(),
            datagram_age: auto_age(),
            sparse_flows: yes(),
            fillers: default_fillers(),
            overhead: Overhead::default(),
            clean: false,
        }
    }
}

/// Ours: recovers a lost tail within two round trips of a satellite, at less than 1 Mbit/s.
const fn default_fillers() -> u32 {
    100
}

impl Link {
    /// This one with what a running tunnel takes over from `new`: rate, round trip, queue, fillers, marks and the age of datagrams.
    #[must_use]
    pub const fn reconfigured(self, new: &Self) -> Self {
        let Self { rate, round_trip, queue, fillers, once_dscp, interactive_dscp, datagram_age, .. } = *new;
        Self { rate, round_trip, queue, fillers, once_dscp, interactive_dscp, datagram_age, ..self }
    }

    /// Reads `text`, the content of `file`: the keys of a `[link]` table by themselves.
    ///
    /// # Errors
    /// What is wrong, where, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(file, text, |link, places| link.check(places).and_then(|()| link.check_rate(places)))
    }

    /// Reads `text`, the content of `file`: the keys of a `[link]` table by themselves, for a link whose rate is said
    /// elsewhere, and set before the link is used.
    ///
    /// # Errors
    /// As [`Link::parse`], but for queues that need a rate.
    pub fn parse_without_rate(file: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(file, text, Self::check)
    }

    fn parse_with(
        file: &str,
        text: &str,
        check: impl FnOnce(&Self, &LinkPlaces) -> Result<(), Complaint>,
    ) -> Result<Self, ConfigError> {
        let link: Self = base::config::parse(file, text)?;
        let places: LinkPlaces = base::config::parse(file, text)?;
        check(&link, &places).map_err(|complaint| complaint.in_file(file, text))?;
        Ok(link)
    }

    /// Refuses what no value could know by itself.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn check(&self, places: &LinkPlaces) -> Result<(), Complaint> {
        if self.protocol.capabilities().wants_fillers && self.fillers == 0 {
            let message = format!(
                "0 fillers, but {} needs them to recover the last frames; allowed are 1 or more",
                self.protocol.name()
            );
            return Err(Complaint::at(places.fillers.as_ref(), message));
        }
        let both = self.once_dscp.and(self.interactive_dscp);
        if let (Some(_), Some(place), false) = (&places.once_dscp, &places.interactive_dscp, both.is_empty())
        {
            let message = format!("once-dscp has {both} too; allowed is each mark in one of both lists");
            return Err(Complaint::at(Some(place), message));
        }
        Ok(())
    }

    /// Refuses queues that need a rate where there is none.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn check_rate(&self, places: &LinkPlaces) -> Result<(), Complaint> {
        if self.queue.is_some_and(|queue| queue.needs_rate()) && self.rate == LinkRate::Max {
            let message = "a queue with a time, or red, cannot be used with rate = \"max\"; allowed are packets and bytes, or another rate";
            return Err(Complaint::at(places.queue.as_ref(), message.to_owned()));
        }
        Ok(())
    }

    /// How packets are treated by their marks.
    #[must_use]
    pub const fn by_dscp(&self) -> ByDscp {
        ByDscp { once: self.once_dscp, interactive: self.interactive_dscp }
    }

    /// The queue in front of a link that is paced at `rate`, with packets of up to `mtu` bytes, once the round trip was
    /// `measured`. What it holds unless told leaves within a round trip: with that, TCP uses a link fully. FQ-CoDel's times follow the
    /// round trip too.
    #[must_use]
    pub fn queue(&self, rate: Option<Rate>, measured: Option<Duration>, mtu: u32) -> queue::Config {
        let (shortest, longest) = ROUND_TRIPS;
        let time = self.round_trip.or(measured).unwrap_or(ROUND_TRIP_UNKNOWN).clamp(shortest, longest);
        match self.queue {
            Some(queue::Config::FqCodel(config)) => queue::Config::FqCodel(config.for_round_trip(time)),
            Some(queue) => queue,
            None => {
                let of_rate = |rate: Rate| (rate.bits_in(time) / 8).max(QUEUE_PACKETS * u64::from(mtu));
                let bytes = rate.map_or(QUEUE_WITHOUT_RATE, of_rate);
                queue::Config::DropTail(queue::drop_tail::Config::bytes(bytes))
            }
        }
    }

    /// The age beyond which datagrams are dropped, if there is one, on a link that is paced at `rate` behind `queue`, once the round trip was
    /// `measured`.
    #[must_use]
    pub fn datagram_age(
        &self,
        queue: &queue::Config,
        rate: Option<Rate>,
        measured: Option<Duration>,
    ) -> Option<Duration> {
        let round_trip = self.round_trip.or(measured).unwrap_or(ROUND_TRIP_UNKNOWN);
        self.datagram_age.limit(round_trip, rate.and_then(|rate| queue.drain_time(rate)))
    }

    /// What keeps the protocol from filling a link with this rate and round trip, if something does.
    #[must_use]
    pub fn edge(&self, carrier: &CarrierLimits, rate: Option<Rate>, round_trip: Duration) -> Option<Edge> {
        let line = LineLimits::new(carrier.frame_limit(), rate);
        self.protocol.edge(&line, round_trip)
    }
}

/// What a queue is made for before a round trip was measured: that of a geostationary satellite.
const ROUND_TRIP_UNKNOWN: Duration = Duration::from_millis(600);
/// Round trips that a queue is made for: hosts may be farther away than the gateways, but no queue holds for ever.
const ROUND_TRIPS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// Packets that a queue holds at least.
const QUEUE_PACKETS: u64 = 10;
/// Bytes that wait in front of a link without a rate, where the kernel's own queues hold most.
const QUEUE_WITHOUT_RATE: u64 = 4 << 20;

/// Where in a file the values of a `[link]` table lie that are checked together.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct LinkPlaces {
    fillers: Option<Place>,
    queue: Option<Place>,
    once_dscp: Option<Place>,
    interactive_dscp: Option<Place>,
    /// Where the rate is.
    pub rate: Option<Place>,
}
