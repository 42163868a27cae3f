//! What may be said about a proxy.
//!
//! ```toml
//! enabled = true                  # or false: every connection passes as it is
//! ack = "local"                   # or "end-to-end": acknowledges only what the far host has acknowledged
//! answer = "known"                # a SYN before the far end has: to "known" servers, "always" or "never"
//! connections = 10000             # further ones pass as they are
//! half-open = 4096                # the same of those that are being opened, each way
//! memory = "256 MiB"              # for both sides together
//! backlog = "256 KiB"             # that may wait for the link, of each connection
//! keep-alive = "2 h"              # silence after which an end is asked whether it is still there
//! user-timeout = "5 min"          # after which a host on the LAN that acknowledges nothing of what waits for it is given up
//!
//! [[rule]]                        # the first that fits decides; what fits none is split
//! action = "pass"
//! ports = [22, "5000-5010"]       # of the end that is called
//! networks = ["10.3.0.0/16"]      # of either end
//!
//! [link]                          # as in `[tcp]`; the preset is "proxy-link"
//! congestion = "link"
//!
//! [lan]                           # the preset is "proxy-lan"
//! ```

use core::num::NonZeroU32;

use base::Duration;
use base::config::read_or;
use base::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use tcp::{Congestion, TcpConfig};

use crate::rules::Rule;

/// The split-connection proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "Pep")]
pub struct Config {
    /// Whether to split TCP connections at all.
    pub enabled: bool,
    /// When the proxy acknowledges a host's data.
    pub ack: Acknowledgement,
    /// When the proxy answers a SYN from the LAN.
    pub answer: Answer,
    /// Most connections to split at the same time, at least 1; further ones pass unsplit.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// Most connections per side that are being opened, at least 1; further ones pass unsplit.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub half_open: u32,
    /// Memory limit of all connections together.
    pub memory: Size,
    /// Most data per connection that waits to be sent over the link; the TCP window holds back the rest at the sender.
    pub backlog: Size,
    /// Idle time after which the proxy checks whether a host is still there.
    pub keep_alive: Duration,
    /// Time without an answer after which the proxy gives up a host on the LAN for which data waits; 5 min unless given. With
    /// `ack = "end-to-end"` hosts decide that themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_timeout: Option<Duration>,
    /// Rules for which connections to split. The first match decides; a connection that matches none is split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Rule>,
    /// Whether the link makes losses good. Then what has not come is late, and would come twice if it were asked for soon. Not in TOML.
    #[serde(skip)]
    pub link_repairs: bool,
    /// Settings of TCP towards the link.
    #[serde(deserialize_with = "link")]
    pub link: TcpConfig,
    /// Settings of TCP towards the LAN.
    #[serde(deserialize_with = "lan")]
    pub lan: TcpConfig,
}

/// When the proxy acknowledges a host's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgement {
    /// As soon as the proxy has received it (Casoni and Luppi 2005, II). If the proxy dies, the data and the connection are lost.
    #[default]
    Local,
    /// Once the far host has acknowledged it. If the proxy dies, the two hosts continue without it.
    EndToEnd,
}

/// When the proxy answers a SYN from the LAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Once the far end has answered, so that the caller sees a refusal as such.
    Never,
    /// At once if the server has accepted a connection in the last ten minutes; if it then refuses after all, the caller sees
    /// a reset instead of a refusal.
    #[default]
    Known,
    /// At once.
    Always,
}

impl Default for Config {
    fn default() -> Self {
        let preset = |name| {
            TcpConfig::preset(name).unwrap_or_else(|| unreachable!("{name} is a preset of this project"))
        };
        Self {
            enabled: true,
            ack: Acknowledgement::default(),
            answer: Answer::default(),
            connections: 10_000,
            half_open: 4096,
            memory: Size(256 << 20),
            backlog: Size(256 << 10),
            keep_alive: Duration::from_secs(7200),
            user_timeout: None,
            rule: Vec::new(),
            link_repairs: false,
            link: preset(LINK),
            lan: preset(LAN),
        }
    }
}

/// Longer than a host is silent that will answer again, as a rule, and a third of what Linux waits.
const USER_TIMEOUT: Duration = Duration::from_secs(300);

const LINK: &str = "proxy-link";
const LAN: &str = "proxy-lan";

/// Back-off of a pair, in time-outs. Ours: of a link that is blocked half of the time, for a second on average, the worst of 30 runs uses 0.92,
/// and nothing without this (docs/pep.md).
const PAIR_BACKOFF: u32 = 4;
/// Of a pair. Ours: the six minutes that six retries take which double each time.
const PAIR_SYN_RETRIES: u32 = 32;
/// Of a pair. Ours: what fifteen time-outs take that double up to a minute.
const PAIR_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What a proxy takes of each stream ahead of a link with several lines, at least. Ours: whether a slower line is worth it depends on how much waits, so
/// a page has to be told from a download. What is less than half of this is counted, which is a third of a second of 25 Mbit/s.
const SEVERAL_LINES_BACKLOG: Size = Size(2 << 20);

impl Config {
    /// This proxy in front of a link with several lines.
    #[must_use]
    pub fn for_several_lines(self) -> Self {
        Self { backlog: self.backlog.max(SEVERAL_LINES_BACKLOG), ..self }
    }

    /// The TCP towards the link, as far as the proxy does not leave it to the user.
    pub(crate) fn link_tcp(&self) -> TcpConfig {
        let backlog = Some(self.backlog);
        self.completed(&self.link).with(|it| {
            it.window.unsent_limit = it.window.unsent_limit.or(backlog);
        })
    }

    /// The TCP towards the link where a proxy of ours is at the other end. Where the link says when to send nobody is
    /// spared by waiting longer, so one of a pair asks soon over a link that repairs nothing, and for as long as any
    /// other, unless the user has said how. Where the link repairs, a time-out says that something is late, and
    /// back-off finds how late.
    pub(crate) fn paired_link_tcp(&self) -> TcpConfig {
        let asks_soon = matches!(self.link.congestion, Congestion::Link)
            && !self.link_repairs
            && self.link.rto.max_backoff.is_none();
        self.link_tcp().with(|it| {
            it.proxy_is_known = true;
            if asks_soon {
                it.unpaired = Some((it.rto, it.limits));
                it.rto.max_backoff = NonZeroU32::new(PAIR_BACKOFF);
                it.limits.syn_retries = it.limits.syn_retries.max(PAIR_SYN_RETRIES);
                it.limits.data_retries = u32::MAX;
                it.limits.user_timeout = it.limits.user_timeout.or(Some(PAIR_PATIENCE));
            }
        })
    }

    /// The TCP towards the LAN, as far as the proxy does not leave it to the user.
    pub(crate) fn lan_tcp(&self) -> TcpConfig {
        self.completed(&self.lan).with(|it| {
            // Whoever has acknowledged data for a host that is gone would hold them for a quarter of an hour.
            if self.ack == Acknowledgement::Local {
                let usual = self.user_timeout.unwrap_or(USER_TIMEOUT);
                it.limits.user_timeout = it.limits.user_timeout.or(Some(usual));
            }
        })
    }

    fn completed(&self, tcp: &TcpConfig) -> TcpConfig {
        tcp.clone().with(|it| {
            it.limits.backlog = self.half_open;
            it.limits.keep_alive = it.limits.keep_alive.or(Some(self.keep_alive));
            // Clocks cannot be handed on.
            it.timestamps &= self.ack == Acknowledgement::Local;
            if self.ack == Acknowledgement::EndToEnd {
                // What is not acknowledged yet counts too: the window is for the whole round trip.
                it.window.autotuning = false;
                it.window.receive_buffer = it.window.receive_buffer.max(self.link.window.receive_buffer);
            }
        })
    }
}

/// Bytes of a segment that fits an Ethernet frame with the longer header of IP.
pub const ETHERNET_MSS: u16 = 1440;

fn link<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TcpConfig, D::Error> {
    read_or(deserializer, Some(LINK))
}

fn lan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TcpConfig, D::Error> {
    read_or(deserializer, Some(LAN))
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(de::Error::custom("0 is too few; allowed are 1 or more")),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::config::parse;
    use tcp::{Congestion, CubicConfig, CubicVariant};

    #[test]
    fn what_is_not_said_comes_from_the_presets() {
        let config: Config = parse("t", "").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(
            (config.link.congestion, config.lan.congestion),
            (Congestion::Link, Congestion::Cubic(CubicConfig { variant: CubicVariant::Linux }))
        );
        let config: Config =
            parse("t", "ack = \"end-to-end\"\n[link]\ncongestion = \"bbr\"\nwindow.initial = 4").unwrap();
        assert_eq!(config.link.congestion, Congestion::Bbr);
        assert_eq!(config.link.window.receive_buffer, Config::default().link.window.receive_buffer);
        assert!(!config.lan_tcp().timestamps && Config::default().lan_tcp().timestamps);
        let gives_up = |config: &Config| config.lan_tcp().limits.user_timeout;
        assert_eq!((gives_up(&config), gives_up(&Config::default())), (None, Some(Duration::from_secs(300))));
        assert!(!config.lan_tcp().window.autotuning && Config::default().lan_tcp().window.autotuning);
        assert_eq!(config.lan_tcp().window.receive_buffer, config.link.window.receive_buffer);
        let stored = toml::to_string(&config).unwrap();
        assert_eq!(parse::<Config>("t", &stored), Ok(config));
    }

    #[test]
    fn complaints_have_their_place() {
        for (text, complaint) in [
            ("connections = 0", "t:1: connections = 0: 0 is too few; allowed are 1 or more"),
            ("\n[link]\nmss = 10", "t:3: mss = 10: an MSS of 10 bytes; allowed are 64 to 65495"),
            (
                "[[rule]]\naction = \"pass\"\nports = [\"9-3\"]",
                "t:3: ports = [\"9-3\"]: \"9-3\" is not a port or range of ports; allowed are 1 to 65535, as in 22 or \
                 \"5000-5010\"",
            ),
        ] {
            assert_eq!(parse::<Config>("t", text).unwrap_err().to_string(), complaint);
        }
    }
}
