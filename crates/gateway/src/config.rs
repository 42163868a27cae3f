//! The daemon's configuration file.
//!
//! ```toml
//! user = "longhaul"               # optional: whom the daemon becomes once its devices are open
//!
//! [tun]
//! name = "sat0"
//! addresses = ["10.77.0.1/30", "fd77::1/64"]
//! routes = ["10.78.0.0/16"]       # optional: networks behind the peer
//! mtu = 1400                      # optional
//!
//! [carrier.udp]
//! listen = "192.0.2.1:51900"
//! peer = "hub.example.org:51900"  # optional, an address or a name: the end without it waits
//! pin-peer = true                 # optional: the peer is nowhere else
//! mtu = 1500                      # optional: largest IP packet of the carrier
//!
//! [carrier.serial]                # instead of UDP: frames of EFL on a serial line
//! device = "/dev/ttyUSB0"
//! baud = 115200
//! efl-key = "00112233445566778899aabbccddeeff"   # optional: encrypts below the session too
//!
//! [link]                          # optional
//! protocol = "coded"              # optional; or a table with its parameters: { cotmll = { ordered = true } }
//! rate = "auto"                   # optional: found out; or "10 Mbit/s", or "max", as fast as the carrier takes it
//! round-trip = "600 ms"           # optional: measured
//! queue = { drop-tail = { time = "600 ms" } }    # optional: one round trip at the rate
//! once-dscp = [46]                # optional: packets with these marks are not repeated, such as voice
//! interactive-dscp = [18]         # optional: `coded` carries packets with these marks before others, with repairs of their own
//! datagram-age = "auto"           # optional: when unmarked UDP and ICMP are too old; or "none", or a time
//! sparse-flows = true             # optional: `coded` carries thin flows without a mark as interactive
//! fillers = 100                   # idle frames a second on a link above 1 Mbit/s; at least 1 but for plain
//! overhead = 0                    # bytes that each packet of the carrier occupies on the line besides its own
//! clean = false                   # the carrier loses nothing: plain may carry super-segments
//!
//! [session]
//! key-file = "site.key"           # or key = "…", as `longhaul keygen` prints it
//!
//! [pep]                           # optional; `docs/pep.md` has all keys
//! enabled = true                  # splits TCP connections
//!
//! [status]                        # optional
//! file = "/run/longhaul/status.json"
//! interval = "1 s"
//! ```

mod carrier;
mod destination;
mod interface;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base::config::ConfigError;
use base::{Duration, Prefix};
use schemars::JsonSchema;
use serde::Deserialize;
use tunnel::config::{Complaint, Link, LinkPlaces, LinkRate, Mtu, Place};
use tunnel::key::PresharedKey;
use zeroize::Zeroizing;

pub use carrier::{Carrier, Serial, Udp};
pub use destination::{Destination, HostName};
pub use interface::InterfaceName;

/// A gateway's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// User to run as once the devices are open; the daemon keeps the right to set routes. Default: the user that started it.
    #[serde(default)]
    pub user: Option<String>,
    /// The TUN device: the network interface through which applications' packets enter and leave the link.
    pub tun: Tun,
    /// How frames reach the peer: in UDP datagrams, or over a serial line.
    pub carrier: Carrier,
    /// The link to the peer: protocol, rate and queue.
    #[serde(default)]
    pub link: Link,
    /// The key that this gateway and its peer share.
    pub session: SessionKey,
    /// The split-connection proxy (PEP), which terminates TCP connections at both ends of the link.
    #[serde(default)]
    pub pep: pep::Config,
    /// A file to which the daemon writes its status regularly. Default: none.
    #[serde(default)]
    pub status: Option<Status>,
    /// The file that it was read from.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// The TUN device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tun {
    /// Name of the interface, 1 to 15 bytes.
    pub name: InterfaceName,
    /// The device's IP addresses with prefix lengths, as in "10.77.0.1/30". Default: none; set them yourself.
    #[serde(default)]
    pub addresses: Vec<Prefix>,
    /// Networks behind the peer. The daemon sets routes to them through the device; they disappear with it on exit.
    #[serde(default)]
    pub routes: Vec<Prefix>,
    /// Largest IP packet of the device, in bytes, 576 to 65535. Default: 1400.
    #[serde(default)]
    pub mtu: Mtu<1400>,
}

/// The pre-shared key: either `key-file` or `key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct SessionKey {
    /// File that holds the key; a relative path starts at the configuration's directory.
    #[serde(default)]
    #[schemars(extend("examples" = ["site.key"]))]
    key_file: Option<PathBuf>,
    /// The key itself, as `longhaul keygen` prints it.
    #[serde(default)]
    key: Option<PresharedKey>,
}

/// The status file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Status {
    /// Path of the JSON file. Each update replaces the whole file.
    pub file: PathBuf,
    /// Time between two updates. Default: 1 s.
    #[serde(default = "one_second")]
    pub interval: Duration,
}

impl Status {
    /// The directory that the file lies in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

const fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl Config {
    /// What the tunnel is told.
    #[must_use]
    pub fn tunnel(&self) -> tunnel::Config {
        let Self { link, pep, tun, carrier, .. } = self;
        let carrier = carrier.limits();
        tunnel::Config { link: *link, pep: pep.clone(), mtu: tun.mtu.0, cuts_trains: true, carrier }
    }

    /// Reads `text`, the content of `file`.
    ///
    /// # Errors
    /// What is wrong, where, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = base::config::parse(file, text)?;
        let places: Places = base::config::parse(file, text)?;
        if let Carrier::Serial(serial) = &config.carrier
            && config.link.rate.fixed().is_none()
        {
            config.link.rate = LinkRate::Fixed(serial.line_rate());
        }
        config.check(&places).map_err(|complaint| complaint.in_file(file, text))?;
        match (&config.session.key_file, &config.session.key) {
            (Some(_), Some(_)) => Err(ConfigError::about(
                file,
                "[session] has both key-file and key; allowed is only one of them",
            )),
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
        self.link.check_rate(&places.link)?;
        let mtu = self.tun.mtu.0;
        let prefixes = self.tun.addresses.iter().chain(&self.tun.routes);
        let prefix_places = places.tun.addresses.iter().chain(&places.tun.routes);
        let mut prefixes = prefixes.zip(prefix_places);
        if mtu < IPV6_MTU
            && let Some((_, place)) = prefixes.find(|(prefix, _)| prefix.address.is_ipv6())
        {
            let message = format!(
                "IPv6 needs an MTU of at least {IPV6_MTU}, but [tun] has mtu = {mtu}; allowed are IPv4 addresses only, or a larger mtu"
            );
            return Err(Complaint::at(Some(place), message));
        }
        match &self.carrier {
            Carrier::Udp(Udp { listen, peer: Some(Destination::Address(peer)), .. })
                if peer.is_ipv4() != listen.is_ipv4() =>
            {
                let message = format!(
                    "the peer cannot be reached from {listen}; allowed is the same address family for both"
                );
                Err(Complaint::at(places.carrier.udp.peer.as_ref(), message))
            }
            Carrier::Udp(Udp { peer: None, pin_peer: true, .. }) => {
                let message = "pin-peer needs a peer; allowed is pin-peer = false, or a peer".to_owned();
                Err(Complaint::at(places.carrier.udp.pin_peer.as_ref(), message))
            }
            Carrier::Serial(serial)
                if self.link.rate.fixed().is_some_and(|rate| rate > serial.line_rate()) =>
            {
                let (baud, limit) = (serial.baud, serial.line_rate());
                let message = format!(
                    "a line with {baud:?} baud carries less; allowed are rates up to {limit}, or no rate"
                );
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
        config.file = Some(path.to_owned());
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
#[serde(default, rename_all = "kebab-case")]
struct UdpPlaces {
    peer: Option<Place>,
    pin_peer: Option<Place>,
}

impl SessionKey {
    /// A key in place.
    #[must_use]
    pub const fn inline(key: PresharedKey) -> Self {
        Self { key_file: None, key: Some(key) }
    }

    /// The file that holds the key, `config` being that of the configuration, if others than its owner and group have
    /// any rights to it.
    #[must_use]
    pub fn exposed<'a>(&'a self, config: &'a Path) -> Option<&'a Path> {
        let file = self.key_file.as_deref().unwrap_or(config);
        let metadata = std::fs::metadata(file).ok()?;
        (metadata.mode() & 0o007 != 0).then_some(file)
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
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(|error| about(&error))?);
        text.trim().parse().map_err(|error| about(&error))
    }
}

#[cfg(test)]
mod tests;
