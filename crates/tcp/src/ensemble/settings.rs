//! What a connection's settings say about shared state.

use base::Duration;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::config::range;

/// What the connections of a host to one destination share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Nothing: each connection finds out for itself.
    #[default]
    None,
    /// A new connection starts with the `ssthresh` that an earlier one learnt: temporal sharing of RFC 9040, the
    /// "CBI" of Kojo et al. 2005.
    Cache,
    /// One congestion window and one threshold for all: STCP (Peng et al. 2001). Growth is Reno's, whatever
    /// `congestion` and `window.slow-start` say.
    Stcp,
    /// A new connection cautiously jumps to half of the window that an earlier one had: RFC 9959.
    CarefulResume,
}

/// What the acknowledgement of a member's segment counts for while members at the floor of one segment have more window
/// between them than the aggregate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FloorAcks {
    /// All of it, so that N members at the floor open the aggregate as N connections do.
    #[default]
    Full,
    /// The aggregate's part of the sum of the windows, so that they open it as one connection does.
    Share,
}

/// Sharing and its parameters. In TOML `sharing = "stcp"` is short for `policy` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct SharingConfig {
    /// What connections share.
    pub policy: Sharing,
    /// Bits of an IPv4 destination that tell groups apart, 0 to 32; with 24, a subnet shares.
    #[serde(deserialize_with = "bits_of_ipv4")]
    #[schemars(range(max = 32))]
    pub prefix_v4: u8,
    /// Bits of an IPv6 destination that tell groups apart, 0 to 128.
    #[serde(deserialize_with = "bits_of_ipv6")]
    #[schemars(range(max = 128))]
    pub prefix_v6: u8,
    /// How long unused state is kept.
    pub lifetime: Duration,
    /// Destinations that a host remembers, 1 or more; beyond that the one unused longest is forgotten.
    #[serde(deserialize_with = "range::one_or_more")]
    #[schemars(range(min = 1))]
    pub entries: u32,
    /// `cache`: whether a new connection also starts with the smoothed round-trip time and its variation.
    pub share_rtt: bool,
    /// `stcp`: whether window that a member leaves unused for a retransmission time-out goes to the others. The
    /// paper leaves it with the idle member.
    pub idle_release: bool,
    /// `stcp`: what acknowledgements count for while members are at the floor of one segment.
    pub floor_acks: FloorAcks,
    /// `stcp`: whether the aggregate window decays while there are no connections. The paper keeps it.
    pub decay: bool,
    /// `stcp`: the time in which it decays to a half; by default one retransmission time-out, as in RFC 2861.
    #[serde(deserialize_with = "half_life_in_range")]
    #[schemars(transform = above_zero)]
    pub half_life: Option<Duration>,
}

impl Default for SharingConfig {
    fn default() -> Self {
        Self {
            policy: Sharing::None,
            prefix_v4: 32,
            prefix_v6: 128,
            lifetime: Duration::from_secs(600),
            entries: 1024,
            share_rtt: false,
            idle_release: true,
            floor_acks: FloorAcks::Full,
            decay: true,
            half_life: None,
        }
    }
}

/// The shortest half-life, so that time passes between two halvings.
const MIN_HALF_LIFE: Duration = Duration::from_millis(1);

fn bits_of_ipv4<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    prefix(deserializer, 32)
}

fn bits_of_ipv6<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    prefix(deserializer, 128)
}

fn prefix<'de, D: Deserializer<'de>>(deserializer: D, most: u8) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        bits if bits > most => {
            Err(de::Error::custom(format!("a prefix of {bits} bits; allowed are 0 to {most}")))
        }
        bits => Ok(bits),
    }
}

fn half_life_in_range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    match Option::<Duration>::deserialize(deserializer)? {
        Some(time) if time < MIN_HALF_LIFE => {
            Err(de::Error::custom(format!("a half-life of {time}; allowed are {MIN_HALF_LIFE} or more")))
        }
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TcpConfig;
    use base::config;

    #[test]
    fn values_read_as_written() {
        let text = "[sharing]\npolicy = \"careful-resume\"\nprefix-v4 = 24\nlifetime = \"10 min\"\nhalf-life = \"5 s\"\n\
                    idle-release = false";
        let read: TcpConfig = config::parse("t", text).unwrap();
        assert_eq!(read.sharing.policy, Sharing::CarefulResume);
        assert_eq!((read.sharing.prefix_v4, read.sharing.prefix_v6), (24, 128));
        assert_eq!(read.sharing.half_life, Some(Duration::from_secs(5)));
        assert!(!read.sharing.idle_release && read.sharing.decay);
    }

    /// The example of the description is what is there by default.
    #[test]
    fn the_description_names_the_defaults() {
        let text = include_str!("../../../../docs/sharing.md");
        let example = text.split("```").nth(1).and_then(|block| block.strip_prefix("toml\n")).unwrap();
        let scenario: toml::Table = example.parse().unwrap();
        let read: TcpConfig = scenario["tcp"].clone().try_into().unwrap();
        let expected = TcpConfig::default().with(|it| it.sharing.policy = Sharing::Stcp);
        assert_eq!(read, expected);
        for key in ["prefix-v4", "share-rtt", "idle-release", "decay", "half-life"] {
            assert!(example.contains(key), "{key}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_place() {
        for (line, complaint) in [
            ("prefix-v4 = 33", "a prefix of 33 bits; allowed are 0 to 32"),
            ("prefix-v6 = 129", "a prefix of 129 bits; allowed are 0 to 128"),
            ("entries = 0", "0 is too few; allowed are 1 or more"),
            ("half-life = \"0 s\"", "a half-life of 0 s; allowed are 1 ms or more"),
        ] {
            let error = config::parse::<TcpConfig>("t", &format!("[sharing]\n{line}")).unwrap_err();
            assert_eq!(error.to_string(), format!("t:2: {line}: {complaint}"));
        }
        let unknown = config::parse::<TcpConfig>("t", "sharing = \"some\"").unwrap_err().to_string();
        assert!(unknown.contains("`none`, `cache`, `stcp`, `careful-resume`"), "{unknown}");
    }
}
