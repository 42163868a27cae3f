//! The daemon's configuration file.
//!
//! ```toml
//! [tun]
//! name = "sat0"
//! addresses = ["10.77.0.1/30", "fd77::1/64"]
//! routes = ["10.78.0.0/16"]       # optional: networks behind the peer
//! mtu = 1400                      # optional
//!
//! [carrier.udp]
//! listen = "192.0.2.1:51900"
//! peer = "198.51.100.7:51900"     # optional: who has none waits to be called
//! mtu = 1500                      # optional: largest IP packet of the carrier
//!
//! [carrier.serial]                # instead of UDP: frames of EFL on a serial line
//! device = "/dev/ttyUSB0"
//! baud = 115200
//! efl-key = "00112233445566778899aabbccddeeff"   # optional: encrypts below the session too
//!
//! [link]
//! protocol = "cotmll"             # or a table with its parameters: { cotmll = { sessions = 4 } }
//! rate = "1 Mbit/s"               # optional: as fast as the carrier takes it
//! queue = { drop-tail = { packets = 100 } }
//! fillers = 100                   # idle frames a second on a link above 1 Mbit/s; at least 1 but for plain
//! overhead = 0                    # bytes that each packet of the carrier occupies on the line besides its own
//! clean = false                   # the carrier loses nothing: plain may carry super-segments
//!
//! [session]
//! key-file = "site.key"           # or key = "…", as `longhaul keygen` prints it
//!
//! [status]                        # optional
//! file = "/run/longhaul/status.json"
//! interval = "1 s"
//! ```

mod carrier;
mod values;

use core::ops::Range;
use std::path::{Path, PathBuf};

use base::Duration;
use base::config::ConfigError;
use link::Protocol;
use serde::{Deserialize, Serialize, de};
use toml::Spanned;

use crate::key::PresharedKey;
use crate::tun::netlink::Prefix;
pub use carrier::{Carrier, Serial, Udp};
pub use values::{InterfaceName, Mtu, Overhead, PositiveRate};

/// A gateway's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The device that applications' packets pass.
    pub tun: Tun,
    /// What carries frames to the peer.
    pub carrier: Carrier,
    /// The link between the two.
    pub link: Link,
    /// Who may be the peer.
    pub session: SessionKey,
    /// Where the daemon says how it is.
    #[serde(default)]
    pub status: Option<Status>,
}

/// The TUN device.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tun {
    /// Interface name, 1 to 15 bytes.
    pub name: InterfaceName,
    /// The device's addresses with prefix lengths; none leaves them to the administrator.
    #[serde(default)]
    pub addresses: Vec<Prefix>,
    /// Networks behind the peer. The daemon sets their routes, since they vanish with the device when it ends.
    #[serde(default)]
    pub routes: Vec<Prefix>,
    /// Largest IP packet in bytes, 576 to 65535.
    #[serde(default)]
    pub mtu: Mtu<1400>,
}

/// The link.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Link {
    /// What the two ends say to each other. Both need the same.
    pub protocol: Protocol,
    /// Bits per second of the carrier, with all its headers; without it, as fast as the carrier takes it, which on a
    /// serial line is its own rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<PositiveRate>,
    /// Where packets wait for the link.
    #[serde(default)]
    pub queue: link::queue::Config,
    /// Idle frames a second on a link that is faster than 1 Mbit/s; slower ones are kept busy always. A
    /// protocol that recovers losses needs some, lest the last frames' loss never show.
    #[serde(default = "default_fillers")]
    pub fillers: u32,
    /// What `rate` counts of each packet of the carrier besides its bytes.
    #[serde(default)]
    pub overhead: Overhead,
    /// Whether the carrier loses nothing, so that `plain` too may carry super-segments.
    #[serde(default)]
    pub clean: bool,
}

/// Ours: recovers a lost tail within two round trips of a satellite, at less than 1 Mbit/s.
const fn default_fillers() -> u32 {
    100
}

impl Link {
    /// Reads `text`, the content of `file`: the keys of a `[link]` table by themselves.
    ///
    /// # Errors
    /// What is wrong, where, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let link: Self = base::config::parse(file, text)?;
        let places: LinkPlaces = base::config::parse(file, text)?;
        link.check(&places).map_err(|complaint| complaint.in_file(file, text))?;
        Ok(link)
    }

    fn check(&self, places: &LinkPlaces) -> Result<(), Complaint> {
        let recovers = !matches!(self.protocol, Protocol::Plain(_));
        if recovers && self.fillers == 0 {
            let message = format!(
                "no fillers, without which {} cannot recover the last frames; allowed are 1 and more",
                self.protocol.name()
            );
            return Err(Complaint::at(places.fillers.as_ref(), message));
        }
        Ok(())
    }

    /// The largest super-segment, in bytes, that the link may carry whole; `None` if packets stay single.
    #[must_use]
    pub fn super_segment(&self, mtu: usize) -> Option<u32> {
        let recovers = !matches!(self.protocol, Protocol::Plain(_));
        if !recovers && !self.clean {
            return None;
        }
        let bytes = self.rate.map_or(u64::MAX, |rate| rate.0.bits_in(SUPER_SEGMENT_TIME) / 8);
        // Below a few packets they cost more than they give.
        (bytes >= 3 * mtu as u64).then_some(bytes.min(SUPER_SEGMENT_LIMIT) as u32)
    }
}

/// Air time that one packet may take.
const SUPER_SEGMENT_TIME: Duration = Duration::from_millis(4);
/// The kernel's own limit for a device's `gso_max_size`.
const SUPER_SEGMENT_LIMIT: u64 = 65_536;

/// The pre-shared key, in a file or in place.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionKey {
    #[serde(default)]
    key_file: Option<PathBuf>,
    #[serde(default)]
    key: Option<PresharedKey>,
}

/// Where the daemon says how it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Status {
    /// A JSON file, replaced whole each time.
    pub file: PathBuf,
    /// Between two of them.
    #[serde(default = "one_second")]
    pub interval: Duration,
}

const fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl Config {
    /// Reads `text`, the content of `file`.
    ///
    /// # Errors
    /// What is wrong, where, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = base::config::parse(file, text)?;
        let places: Places = base::config::parse(file, text)?;
        if let Carrier::Serial(serial) = &config.carrier {
            config.link.rate = config.link.rate.or(PositiveRate::new(serial.line_rate()));
        }
        config.check(&places).map_err(|complaint| complaint.in_file(file, text))?;
        match (&config.session.key_file, &config.session.key) {
            (Some(_), Some(_)) => {
                Err(ConfigError::about(file, "[session] has both key-file and key; allowed is one of them"))
            }
            (None, None) => Err(ConfigError::about(
                file,
                "[session] has no key; allowed are key-file = \"FILE\" or key = \"…\", as `longhaul keygen` prints",
            )),
            _ => Ok(config),
        }
    }

    /// What no value can know by itself.
    fn check(&self, places: &Places) -> Result<(), Complaint> {
        self.link.check(&places.link)?;
        let mtu = self.tun.mtu.0;
        let prefixes = self.tun.addresses.iter().chain(&self.tun.routes);
        let prefix_places = places.tun.addresses.iter().chain(&places.tun.routes);
        let mut prefixes = prefixes.zip(prefix_places);
        if mtu < IPV6_MTU
            && let Some((_, place)) = prefixes.find(|(prefix, _)| prefix.address.is_ipv6())
        {
            let message = format!(
                "IPv6 needs an MTU of at least {IPV6_MTU}, and that of [tun] is {mtu}; allowed is IPv4, or a larger mtu"
            );
            return Err(Complaint::at(Some(place), message));
        }
        match &self.carrier {
            Carrier::Udp(Udp { listen, peer: Some(peer), .. }) if peer.is_ipv4() != listen.is_ipv4() => {
                let message =
                    format!("the peer cannot be reached from {listen}; allowed is one family for both");
                Err(Complaint::at(places.carrier.udp.peer.as_ref(), message))
            }
            Carrier::Serial(serial) if self.link.rate.is_some_and(|rate| rate.0 > serial.line_rate()) => {
                let (baud, limit) = (serial.baud, serial.line_rate());
                let message =
                    format!("a line of {baud:?} baud carries less; allowed are rates up to {limit}, or none");
                Err(Complaint::at(places.link.rate.as_ref(), message))
            }
            _ => Ok(()),
        }
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or what [`Config::parse`] says.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::about(&file, error))?;
        let mut config = Self::parse(&file, &text)?;
        // A relative key file lies beside the configuration that names it.
        if let (Some(key), Some(parent)) = (&mut config.session.key_file, path.parent()) {
            *key = parent.join(&*key);
        }
        Ok(config)
    }
}

/// RFC 8200, section 5.
const IPV6_MTU: u32 = 1280;

/// Where in the file the values lie that are checked together.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Places {
    tun: TunPlaces,
    carrier: CarrierPlaces,
    link: LinkPlaces,
}

type Place = Spanned<de::IgnoredAny>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct TunPlaces {
    addresses: Vec<Place>,
    routes: Vec<Place>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CarrierPlaces {
    udp: UdpPlaces,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UdpPlaces {
    peer: Option<Place>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LinkPlaces {
    fillers: Option<Place>,
    rate: Option<Place>,
}

/// What is wrong with a value, in view of the others.
struct Complaint {
    span: Option<Range<usize>>,
    message: String,
}

impl Complaint {
    fn at(place: Option<&Place>, message: String) -> Self {
        Self { span: place.map(Spanned::span), message }
    }

    fn in_file(self, file: &str, text: &str) -> ConfigError {
        match self.span {
            Some(span) => ConfigError::at(file, text, span, self.message),
            None => ConfigError::about(file, self.message),
        }
    }
}

impl SessionKey {
    /// A key in place.
    #[must_use]
    pub const fn inline(key: PresharedKey) -> Self {
        Self { key_file: None, key: Some(key) }
    }

    /// The key itself.
    ///
    /// # Errors
    /// Its file cannot be read or holds no key.
    pub fn load(&self) -> Result<PresharedKey, ConfigError> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let path = self.key_file.as_deref().unwrap_or(Path::new(""));
        let about = |error: &dyn std::fmt::Display| ConfigError::about(&path.display().to_string(), error);
        let text = std::fs::read_to_string(path).map_err(|error| about(&error))?;
        text.trim().parse().map_err(|error| about(&error))
    }
}

#[cfg(test)]
mod tests {
    use base::Rate;

    use super::*;
    use crate::carrier::Address;

    const SITE: &str = r#"
[tun]
name = "sat0"
addresses = ["10.77.0.1/30", "fd77::1/64"]
[carrier.udp]
listen = "192.0.2.1:51900"
[link]
protocol = "plain"
rate = "1 Mbit/s"
[session]
key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
"#;

    fn complaint(change: impl Fn(&str) -> String) -> String {
        Config::parse("site.toml", &change(SITE)).unwrap_err().to_string()
    }

    #[test]
    fn a_site_is_read() {
        let config = Config::parse("site.toml", SITE).unwrap();
        assert_eq!((config.tun.mtu.0, config.carrier.packet_limit()), (1400, 1500));
        assert_eq!(config.carrier.frame_limit(), 1500 - 28 - 32);
        assert_eq!(config.tun.addresses[1].len, 64);
        assert!(config.session.load().is_ok());
    }

    #[test]
    fn a_complaint_names_file_line_key_value_and_what_is_allowed() {
        for (from, to, want) in [
            (
                "\"1 Mbit/s\"",
                "\"1 Mbps\"",
                "site.toml:9: rate = \"1 Mbps\": \"1 Mbps\" is not a rate; write a number",
            ),
            ("\"1 Mbit/s\"", "\"0 bit/s\"", "site.toml:9: rate = \"0 bit/s\": a rate of zero; allowed"),
            ("\"sat0\"", "\"a/b\"", "site.toml:3: name = \"a/b\": \"a/b\" is not an interface name; allowed"),
            ("\"10.77.0.1/30\"", "\"10.77.0.1\"", "site.toml:4: addresses"),
            ("\"192.0.2.1:51900\"", "\"here\"", "site.toml:6: listen = \"here\""),
            ("\"plain\"", "\"plan\"", "site.toml:8: protocol = \"plan\": unknown variant `plan`, expected"),
            (
                "[session]",
                "mut = 3\n[session]",
                "site.toml:10: mut = 3: unknown field `mut`, expected one of",
            ),
            ("AAAA=", "AA==", "site.toml:11: key"),
        ] {
            let got = complaint(|site| site.replacen(from, to, 1));
            assert!(got.starts_with(want), "{got}");
        }
        let both = complaint(|site| format!("{site}key-file = \"k\"\n"));
        assert!(both.contains("allowed is one of them"), "{both}");
        let none = complaint(|site| {
            site.lines().filter(|line| !line.starts_with("key")).collect::<Vec<_>>().join("\n")
        });
        assert!(none.contains("longhaul keygen"), "{none}");
    }

    #[test]
    fn values_that_contradict_each_other_are_complained_about_in_their_place() {
        let cotmll = |site: &str| site.replace("\"plain\"", "\"cotmll\"");
        let fillers = complaint(|site| cotmll(site).replace("[session]", "fillers = 0\n[session]"));
        assert!(
            fillers.starts_with("site.toml:10: fillers = 0: no fillers, without which cotmll"),
            "{fillers}"
        );
        assert!(fillers.ends_with("allowed are 1 and more"), "{fillers}");
        let plain = SITE.replace("[session]", "fillers = 0\n[session]");
        assert!(Config::parse("site.toml", &plain).is_ok());
        let mtu = complaint(|site| site.replace("[carrier.udp]", "mtu = 1279\n[carrier.udp]"));
        assert!(mtu.starts_with("site.toml:4: addresses = ["), "{mtu}");
        assert!(mtu.contains("at least 1280, and that of [tun] is 1279; allowed"), "{mtu}");
        let route = complaint(|site| {
            let site = site.replace(", \"fd77::1/64\"", "");
            site.replace(
                "[carrier.udp]",
                "mtu = 576\nroutes = [\"10.0.0.0/8\", \"fd78::/64\"]\n[carrier.udp]",
            )
        });
        assert!(route.starts_with("site.toml:6: routes = ["), "{route}");
        let family = complaint(|site| site.replace("[link]", "peer = \"[fd00::1]:1\"\n[link]"));
        assert!(family.starts_with("site.toml:7: peer = \"[fd00::1]:1\": the peer cannot"), "{family}");
    }

    #[test]
    fn a_serial_line_is_read() {
        let site = |serial: &str| {
            let table = format!("[carrier.serial]\n{serial}");
            SITE.replace("[carrier.udp]\nlisten = \"192.0.2.1:51900\"\n", &table)
        };
        let device = "device = \"/dev/ttyUSB0\"\n";
        let slower = site(&format!("{device}baud = 2400\n")).replace("rate = \"1 Mbit/s\"\n", "");
        let config = Config::parse("site.toml", &slower).unwrap();
        assert_eq!(config.link.rate, PositiveRate::new(Rate::from_bps(1920)));
        assert_eq!((config.carrier.frame_limit(), config.carrier.header_len()), (511 - 32, 5));
        assert_eq!(config.carrier.peer(), Some(Address::Serial));
        for (serial, want) in [
            ("baud = 9600\n".to_owned(), "missing field `device`"),
            (device.to_owned(), "missing field `baud`"),
            (
                format!("{device}baud = 49\n"),
                "site.toml:7: baud = 49: 49 is out of range; allowed are 50 to 4000000",
            ),
            (
                format!("{device}baud = 9600\n"),
                "site.toml:10: rate = \"1 Mbit/s\": a line of 9600 baud carries less; allowed are rates up to 7680 bit/s",
            ),
            (
                format!("{device}baud = 9600\nefl-key = \"00\"\n"),
                "site.toml:8: efl-key = \"00\": not a key; allowed are 32 hexadecimal digits",
            ),
            (
                format!("{device}speed = 1\n"),
                "site.toml:7: speed = 1: unknown field `speed`, expected one of `device`, `baud`, `efl-key`",
            ),
        ] {
            let error = Config::parse("site.toml", &site(&serial)).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        let other = complaint(|site| site.replace("carrier.udp", "carrier.pigeon"));
        assert!(other.contains("unknown field `pigeon`, expected `udp` or `serial`"), "{other}");
        let both =
            complaint(|site| site.replace("[link]", "[carrier.serial]\ndevice = \"x\"\nbaud = 50\n[link]"));
        assert!(both.contains("allowed are [carrier.udp] or [carrier.serial]"), "{both}");
    }

    #[test]
    fn a_link_table_survives_as_text() {
        #[derive(Serialize)]
        struct Site {
            link: Link,
        }
        let text = "fillers = 7\nrate = \"2 Mbit/s\"\nclean = true\n[protocol.cotmll]\nwindow = 256\n\
                    [queue.drop-tail]\npackets = 9\n";
        let link = Link::parse("link.toml", text).unwrap();
        let site = toml::to_string(&Site { link }).unwrap();
        let site = SITE.replace("[link]\nprotocol = \"plain\"\nrate = \"1 Mbit/s\"\n", &site);
        let again = Config::parse("site.toml", &site).unwrap().link;
        assert_eq!(format!("{again:?}"), format!("{link:?}"));
        let error = Link::parse("link.toml", "fillers = 0\nprotocol = \"cotmll\"").unwrap_err().to_string();
        assert!(error.starts_with("link.toml:1: fillers = 0: "), "{error}");
    }

    #[test]
    fn super_segments_follow_rate_and_protection() {
        let mut link = Config::parse("site.toml", SITE).unwrap().link;
        assert_eq!(link.super_segment(1400), None);
        link.clean = true;
        assert_eq!(link.super_segment(1400), None, "at 1 Mbit/s a packet is long enough");
        link.rate = Some(PositiveRate(Rate::from_bps(20_000_000)));
        assert_eq!(link.super_segment(1400), Some(10_000));
        link.rate = None;
        assert_eq!(link.super_segment(1400), Some(65_536));
    }
}
