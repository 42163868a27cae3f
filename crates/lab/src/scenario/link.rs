//! Links as a scenario describes them: their lines, queues, protocol and proxies.

use std::collections::BTreeMap;

use ::link::{LineTerms, Treatment, Treatments, When};
use base::{Duration, Rate};
use channel::{Channel, Encapsulation, Streams, dama};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A duplex link between two nodes. A node that no traffic starts or ends at is a router.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// The two nodes that the link joins. The second is the terminal, where obstacles block the line.
    #[schemars(inner(regex(pattern = schema::NAME)))]
    pub ends: [String; 2],
    /// Rates, delay and errors.
    pub channel: channel::duplex::Config,
    /// Further ways between the two ends, by name, beside `channel`. The protocol decides which frame goes over which. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "pattern": schema::NAME }))]
    pub path: BTreeMap<String, Path>,
    /// The IP queue at each end.
    #[serde(default)]
    pub queue: link::queue::Config,
    /// Link-layer protocol. Default: none; the link carries IP packets as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<link::Protocol>,
    /// How frames are found on the line.
    #[serde(default, skip_serializing_if = "Framing::is_ideal")]
    pub framing: Framing,
    /// What each frame costs on the line, instead of the framing's cost.
    #[serde(default, skip_serializing_if = "Encapsulations::is_empty")]
    pub encapsulation: Encapsulations,
    /// Bandwidth on demand (DAMA) from the terminal. Default: the terminal has its line to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dama: Option<dama::Config>,
    /// A split-connection proxy (PEP) at both ends of the link. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pep: Option<pep::Config>,
    /// At which ends of the link there is a proxy.
    #[serde(default, skip_serializing_if = "ProxiesAt::is_default")]
    pub pep_at: ProxiesAt,
    /// The DSCPs of packets that the link-layer protocol never retransmits. Default: none.
    #[serde(default, skip_serializing_if = "link::DscpSet::is_empty")]
    pub once_dscp: link::DscpSet,
    /// The DSCPs of interactive packets, for which somebody waits: a protocol with classes sends them first. Default: none.
    #[serde(default, skip_serializing_if = "link::DscpSet::is_empty")]
    pub interactive_dscp: link::DscpSet,
    /// Age beyond which datagrams (UDP, ICMP) are neither sent nor retransmitted, unless a DSCP of the two keys above marks them. Default: `none`.
    #[serde(default, skip_serializing_if = "link::DatagramAge::is_none")]
    pub datagram_age: link::DatagramAge,
    /// Whether thin flows without a mark count as interactive. Default: no.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sparse_flows: bool,
}

/// A further way between the ends of a link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LinkPath")]
pub struct Path {
    /// Rates, delay and errors.
    pub channel: channel::duplex::Config,
    /// Whether it is used only while the others have been too little for what waits for some time, or are silent. Default: no.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub metered: bool,
    /// Whether it is used only while all others are silent. Default: no.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub backup: bool,
    /// What hides the link's own channel hides this path too, so much later: vehicles of a group pass the same trees one after the other. Its errors have
    /// to be those of the channel. Default: its obstacles are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacles_after: Option<Duration>,
    /// What may go over it. Default: everything.
    #[serde(default = "everything", skip_serializing_if = "is_everything")]
    pub classes: Vec<Treatment>,
}

fn everything() -> Vec<Treatment> {
    Treatment::ALL.to_vec()
}

fn is_everything(classes: &[Treatment]) -> bool {
    Treatments::of(classes) == Treatments::ALL
}

/// One of the ways between the ends of a link, as [`Link::ways`] has them.
#[derive(Clone, Debug)]
pub(crate) struct Way<'a> {
    /// `None` for the link's own channel.
    pub(crate) path: Option<&'a str>,
    pub(crate) channel: &'a channel::duplex::Config,
    /// The owner of its random streams.
    pub(crate) owner: String,
    /// The owner of its obstacles, if that is another, and by how much they are later.
    obstacles: Option<(String, Duration)>,
    when: When,
    carries: Treatments,
}

impl Way<'_> {
    /// What a protocol is told of its line towards the terminal, or from it.
    pub(crate) fn terms(&self, rate: Rate) -> LineTerms {
        let Self { when, carries, .. } = *self;
        LineTerms { when, carries, ..LineTerms::new(rate, self.channel.delay) }
    }

    /// Where the random numbers of its line in a direction come from.
    pub(crate) fn streams(&self, seed: u64, direction: &str) -> Streams {
        let own = self.channel.streams(seed, &self.owner, direction);
        match &self.obstacles {
            None => own,
            Some((owner, later)) => {
                let Streams { timeline, .. } = self.channel.streams(seed, owner, direction);
                Streams { timeline, later: *later, ..own }
            }
        }
    }

    /// Both lines, idle.
    pub(crate) fn build(&self, seed: u64) -> Channel {
        Channel {
            down: self.channel.down().build(&self.streams(seed, "down")),
            up: self.channel.up().build(&self.streams(seed, "up")),
        }
    }
}

impl Link {
    /// All ways between the ends of the link called `name`: its channel, and its paths in the order of their names.
    pub(crate) fn ways<'a>(&'a self, name: &str) -> impl Iterator<Item = Way<'a>> {
        let channel = Way {
            path: None,
            channel: &self.channel,
            owner: name.to_owned(),
            obstacles: None,
            when: When::Always,
            carries: Treatments::ALL,
        };
        let of = move |link: &str, name: &'a str, path: &'a Path| Way {
            path: Some(name),
            channel: &path.channel,
            owner: format!("{link}/{name}"),
            obstacles: path.obstacles_after.map(|later| (link.to_owned(), later)),
            when: When::of(path.metered, path.backup),
            carries: Treatments::of(&path.classes),
        };
        let link = name.to_owned();
        core::iter::once(channel).chain(self.path.iter().map(move |(name, path)| of(&link, name, path)))
    }

    /// All channels between its ends.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &channel::duplex::Config> {
        core::iter::once(&self.channel).chain(self.path.values().map(|path| &path.channel))
    }

    /// The shortest time from one end to the other.
    pub(crate) fn least_delay(&self) -> Duration {
        self.channels().map(channel::duplex::Config::least_delay).min().unwrap_or(Duration::ZERO)
    }

    /// The age beyond which datagrams are dropped in a direction with this rate, if there is one. The round trip is that of a usual packet and its
    /// answer.
    #[must_use]
    pub fn datagram_age(&self, rate: Rate) -> Option<Duration> {
        let round_trip = |channel: &channel::duplex::Config| {
            let rates = [channel.rate, channel.up_rate.unwrap_or(channel.rate)];
            let times = rates.map(|rate| rate.time_for(USUAL_PACKET * 8));
            times.into_iter().fold(channel.delay.saturating_mul(2), Duration::saturating_add)
        };
        let longest = self.channels().map(round_trip).max().unwrap_or(Duration::ZERO);
        self.datagram_age.limit(longest, self.queue.drain_time(rate))
    }

    /// How packets are treated by their marks.
    #[must_use]
    pub const fn by_dscp(&self) -> link::ByDscp {
        link::ByDscp { once: self.once_dscp, interactive: self.interactive_dscp }
    }

    /// What the proxy at the first end, or the second, is to be like, if there is one.
    #[must_use]
    pub fn pep(&self, first: bool) -> Option<&pep::Config> {
        let other = if first { ProxiesAt::Second } else { ProxiesAt::First };
        self.pep.as_ref().filter(|pep| pep.enabled && self.pep_at != other)
    }

    /// What frames cost on the line towards the terminal, or from it.
    #[must_use]
    pub fn encapsulation(&self, towards: bool) -> Option<Encapsulation> {
        let Encapsulations { down, up } = self.encapsulation;
        if towards { down } else { up.or(self.dama.as_ref().map(|_| Encapsulation::Aal5)) }
    }
}

/// Bytes of an Ethernet's packet.
const USUAL_PACKET: u64 = 1500;

/// At which ends of a link there is a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxiesAt {
    /// At each.
    #[default]
    Both,
    /// At the first.
    First,
    /// At the second, the terminal.
    Second,
}

impl ProxiesAt {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What frames cost on each line of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Encapsulations {
    /// Towards the terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Encapsulation>,
    /// From the terminal. Default: AAL5 with bandwidth on demand, otherwise none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Encapsulation>,
}

impl Encapsulations {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How the frames of a link-layer protocol are found on the line. Each costs 40 bits, unless `encapsulation` says what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Boundaries are never lost, and a frame with a wrong bit never passes.
    #[default]
    Ideal,
    /// The bits are sent as EFL, damaged one by one, and searched for frames. Frames have up to 511 bytes.
    Efl,
    /// The bits are sent as encrypted EFL, damaged one by one, and searched for frames. Frames have up to 511 bytes.
    EncryptedEfl,
}

impl Framing {
    const fn is_ideal(&self) -> bool {
        matches!(self, Self::Ideal)
    }
}
