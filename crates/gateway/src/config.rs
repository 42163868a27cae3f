//! The daemon's configuration file.
//!
//! ```toml
//! user = "longhaul"               # optional: whom the daemon becomes once its devices are open
//! workers = 4                     # optional: threads that serve peers
//!
//! [tun]
//! name = "sat0"
//! addresses = ["10.77.0.1/30", "fd77::1/64"]
//! routes = ["10.78.0.0/16"]       # optional: networks behind the peers
//! mtu = 1400                      # optional
//! when-down = "drop"              # optional: or "pass", what routes do once the gateway was killed
//!
//! [carrier.udp]
//! listen = "192.0.2.1:51900"
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
//! [identity]
//! private-key-file = "site.key"   # or private-key = "…", as `longhaul keygen` prints it
//!
//! [share]                         # optional
//! rate = "200 Mbit/s"             # all peers together are sent no more than this
//!
//! [[peer]]                        # none, one or many; others are in files of their own, peers.d/NAME.toml
//! name = "hub"                    # optional for a single peer
//! public-key = "…"                # as `longhaul pubkey` prints it at the other end
//! preshared-key-file = "hub.psk"  # optional; or preshared-key = "…"
//! allowed = ["10.78.0.0/16"]      # what goes to the peer, and may come from it; a single peer: everything
//! endpoint = "hub.example.org:51900"  # optional, an address or a name: the end without it waits
//! pin-endpoint = true             # optional: the peer is nowhere else
//! weight = 1                      # its part of what is shared
//! keep-alive = "25 s"             # while nothing else is said
//! link.rate = "2 Mbit/s"          # optional: keys of [link] that differ for this peer
//! pep.enabled = false             # optional: keys of [pep]
//!
//! [pep]                           # optional; `docs/pep.md` has all keys
//! enabled = true                  # splits TCP connections
//!
//! [status]                        # optional
//! file = "/run/longhaul/status.json"
//! interval = "1 s"
//!
//! [metrics]                       # optional
//! listen = "127.0.0.1:9469"       # Prometheus asks there for /metrics
//!
//! [page]                          # optional
//! listen = "127.0.0.1:9470"       # shows a browser how the gateway is doing
//! ```

mod carrier;
mod destination;
mod former;
mod identity;
mod interface;
mod overlay;
mod pages;
mod path;
mod peer;
mod peers;
mod workers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base::config::ConfigError;
use base::units::{Size, above_zero};
use base::{Duration, Prefix, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use tunnel::config::{Complaint, Link, LinkPlaces, Mtu, Place};
use tunnel::key::PublicKey;
use tunnel::path::Address;

pub use carrier::{Carrier, Serial, Udp};
pub use destination::{Destination, HostName};
pub use identity::Identity;
pub use interface::InterfaceName;
pub use pages::{Metrics, Page, Token};
pub use peer::{Peer, PeerName};
pub use peers::DIRECTORY as PEER_DIRECTORY;
pub use workers::Workers;

use crate::carrier::udp::is_here;
use overlay::Tables;
use peers::{Draft, Source};

/// A gateway's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// User to run as once the devices are open; the daemon keeps the right to set routes. Default: the user that started it.
    #[serde(default)]
    pub user: Option<String>,
    /// Threads that serve peers, each with a part of them. Default: one for each core from three cores up, where there is not just one peer and
    /// `[share]` has no rate; else 1.
    #[serde(default)]
    pub workers: Option<Workers>,
    /// The TUN device: the network interface through which applications' packets enter and leave the link.
    pub tun: Tun,
    /// How frames reach peers: in UDP datagrams, or over a serial line.
    pub carrier: Carrier,
    /// Several ways to the peers at once, over interfaces, addresses or carriers of their own. Default: one, over `[carrier]`.
    #[serde(default, rename = "path")]
    pub paths: Vec<path::Path>,
    /// The link to each peer: protocol, rate and queue.
    #[serde(default)]
    pub link: Link,
    /// Who this gateway is.
    pub identity: Identity,
    /// What all peers share.
    #[serde(default)]
    pub share: Share,
    /// The gateways that this one talks to. Files `peers.d/NAME.toml` beside this one are read too, a peer each.
    #[serde(default, rename = "peer")]
    pub peers: Vec<Peer>,
    /// The split-connection proxy (PEP), which terminates TCP connections at both ends of the link.
    #[serde(default)]
    pub pep: pep::Config,
    /// A file to which the daemon writes its status regularly. Default: none.
    #[serde(default)]
    pub status: Option<Status>,
    /// Numbers for Prometheus. Default: none.
    #[serde(default)]
    pub metrics: Option<Metrics>,
    /// A page that shows how the gateway is doing. Default: none.
    #[serde(default)]
    pub page: Option<Page>,
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
    /// Networks behind the peers. The daemon sets routes to them through the device; they disappear with it on exit. `0.0.0.0/0` and `::/0`
    /// are a full tunnel: everything but what has a route of its own, and the carrier's own packets.
    #[serde(default)]
    pub routes: Vec<Prefix>,
    /// Largest IP packet of the device, in bytes, 576 to 65535. Default: 1400.
    #[serde(default)]
    pub mtu: Mtu<1400>,
    /// What becomes of packets to `routes` when the gateway was killed and the device is gone: "drop" lets them go nowhere, and senders
    /// hear that at once; "pass" lets them take other routes, perhaps in clear. Default: "drop". When the gateway ends
    /// as it was asked to, all routes are as they were before.
    #[serde(default)]
    pub when_down: WhenDown,
}

/// What becomes of packets for which there is no gateway any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenDown {
    /// They go nowhere, and senders hear that at once.
    #[default]
    Drop,
    /// They take other routes.
    Pass,
}

/// What all peers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Share {
    /// Rate of the carrier that all peers share, above zero: together they are sent no more. Default: no such limit.
    #[serde(default, deserialize_with = "some_rate")]
    #[schemars(transform = above_zero)]
    pub rate: Option<Rate>,
    /// Memory that all peers share for packets and connections: no peer may hold more of it than it leaves, but 256 KiB each may have.
    /// Default: 1 GiB. Of several workers each has an equal part for its peers.
    #[serde(default = "usual_memory")]
    pub memory: Size,
}

impl Default for Share {
    fn default() -> Self {
        Self { rate: None, memory: usual_memory() }
    }
}

const fn usual_memory() -> Size {
    Size(tunnel::hub::MEMORY as u64)
}

fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    let rate = Rate::deserialize(deserializer)?;
    if rate.as_bps() == 0 {
        return Err(de::Error::custom("a rate of zero; allowed are rates above 0, or no rate"));
    }
    Ok(Some(rate))
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
    /// What the tunnel to a peer is told.
    #[must_use]
    pub fn tunnel(&self, peer: &Peer) -> tunnel::Config {
        let carrier = self.carriers().first().unwrap_or(&self.carrier).limits();
        let mtu = self.tun.mtu.0;
        let (link, pep, keep_alive) = (peer.link, peer.pep.clone(), peer.keep_alive);
        let endpoint = peer.endpoint.as_ref().and_then(Destination::address);
        let ways = self.ways(link.rate, endpoint);
        tunnel::Config { link, pep, mtu, cuts_trains: true, carrier, ways, keep_alive }
    }

    /// Where a peer is, for who begins handshakes; over the first of several paths.
    #[must_use]
    pub fn place(&self, peer: &Peer) -> tunnel::session::Peer {
        let place = peer.place(self.carriers().first().unwrap_or(&self.carrier));
        let first = self.paths.first().and_then(|path| path.endpoint).map(Address::Udp);
        tunnel::session::Peer { address: first.or(place.address), ..place }
    }

    /// Reads `text`, the content of `file`, without files of peers beside it.
    ///
    /// # Errors
    /// What is wrong, where, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        Self::assemble(&Source::new(Path::new(file), text), &[])
    }

    /// Reads the file at `path` and those of peers beside it.
    ///
    /// # Errors
    /// One of them cannot be read, or what [`Config::parse`] says.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_with(path, None)
    }

    /// Reads the file at `path` and those of peers beside it, and takes `peer` for one more of these: its path and
    /// its content.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read_with(path: &Path, peer: Option<(&Path, &str)>) -> Result<Self, ConfigError> {
        let site = Source::read(path)?;
        let files = site.peer_files()?;
        let mut peers = files.iter().map(|file| Source::read(file)).collect::<Result<Vec<_>, _>>()?;
        peers.extend(peer.map(|(path, text)| Source::new(path, text)));
        let mut config = Self::assemble(&site, &peers)?;
        config.file = Some(path.to_owned());
        Ok(config)
    }

    fn assemble(site: &Source, files: &[Source]) -> Result<Self, ConfigError> {
        let Source { path, file, text, .. } = site;
        former::check(file, text)?;
        let mut config: Self = base::config::parse(file, text)?;
        let places: Places = base::config::parse(file, text)?;
        let tables: Tables = base::config::parse(file, text)?;
        if let Some(complaint) = config.identity.complaint() {
            return Err(ConfigError::about(file, complaint));
        }
        config.identity.beside(path);
        config.carrier.complete(&mut config.link);
        config.check(&places).map_err(|complaint| complaint.in_file(file, text))?;
        let mut drafts = Draft::of_site(site)?;
        drafts.extend(files.iter().map(Draft::of_file).collect::<Result<Vec<_>, _>>()?);
        if drafts.is_empty() && matches!(config.carrier, Carrier::Serial(_)) {
            let message = "no peer, but a serial line has one other end; allowed is one [[peer]]";
            return Err(ConfigError::about(file, message));
        }
        config.peers = peers::resolve(&config, &tables, &drafts)?;
        config.check_endpoints(&places.path).map_err(|complaint| complaint.in_file(file, text))?;
        Ok(config)
    }

    /// What no value can know by itself, without the peers.
    fn check(&self, places: &Places) -> Result<(), Complaint> {
        self.check_link(&self.link, &places.link)?;
        self.check_workers(places.workers.as_ref())?;
        self.check_paths(&places.path)?;
        let mtu = self.tun.mtu.0;
        let prefixes = self.tun.addresses.iter().chain(&self.tun.routes);
        let prefix_places = places.tun.addresses.iter().chain(&places.tun.routes);
        let mut prefixes = prefixes.zip(prefix_places);
        if mtu < IPV6_MTU
            && let Some((_, place)) = prefixes.find(|(prefix, _)| prefix.address.is_ipv6())
        {
            return Err(Complaint::at(Some(place), too_narrow_for_ipv6(mtu)));
        }
        match self.page.as_ref().and_then(Page::complaint) {
            Some(complaint) => Err(Complaint::at(places.page.listen.as_ref(), complaint.to_owned())),
            None => Ok(()),
        }
    }

    /// What no value of a `[link]` can know by itself.
    fn check_link(&self, link: &Link, places: &LinkPlaces) -> Result<(), Complaint> {
        link.check(places)?;
        link.check_rate(places)?;
        self.check_several(link)?;
        match &self.carrier {
            Carrier::Serial(serial) if link.rate.fixed().is_some_and(|rate| rate > serial.line_rate()) => {
                let message = path::too_fast(serial.baud.get(), serial.line_rate());
                Err(Complaint::at(places.rate.as_ref(), message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a peer with the public key of this gateway, whose private key the configuration itself may not have.
    ///
    /// # Errors
    /// Where that peer is.
    pub fn check_identity(&self, own: PublicKey) -> Result<(), ConfigError> {
        match self.peers.iter().find(|peer| peer.public_key == own) {
            None => Ok(()),
            Some(peer) => Err(peer.about_key(format!(
                "peer \"{}\" has the public key of this gateway itself; allowed is what `longhaul pubkey` prints at the \
                 other end",
                peer.name()
            ))),
        }
    }

    /// The files with secrets to which others than their owner and group have any rights, each once.
    #[must_use]
    pub fn exposed(&self) -> Vec<&Path> {
        let identity = self.file.as_deref().and_then(|file| self.identity.exposed(file));
        let mut files: Vec<_> =
            identity.into_iter().chain(self.peers.iter().filter_map(Peer::exposed)).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Why a gateway may not start: a peer would be called where it listens itself, as with the other end's file.
    #[must_use]
    pub fn calls_itself(&self) -> Option<String> {
        let Carrier::Udp(udp) = &self.carrier else { return None };
        let listens = |address: SocketAddr| {
            address.port() == udp.listen.port()
                && match udp.listen.ip() {
                    any if any.is_unspecified() => is_here(address.ip()),
                    own => own == address.ip(),
                }
        };
        let called = self.peers.iter().filter_map(|peer| Some((peer, peer.endpoint.as_ref()?.address()?)));
        let (peer, address) = called.into_iter().find(|(_, address)| listens(*address))?;
        Some(format!(
            "peer {} is called at {address}, where this gateway listens itself; is this the other end's file?",
            peer.name()
        ))
    }
}

fn too_narrow_for_ipv6(mtu: u32) -> String {
    format!(
        "IPv6 needs an MTU of at least {IPV6_MTU}, but [tun] has mtu = {mtu}; allowed are IPv4 addresses only, or a larger mtu"
    )
}

/// RFC 8200, section 5.
const IPV6_MTU: u32 = 1280;

/// Where in the file the values lie that are checked together.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Places {
    workers: Option<Place>,
    tun: TunPlaces,
    path: Vec<path::Places>,
    link: LinkPlaces,
    page: PagePlaces,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PagePlaces {
    listen: Option<Place>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TunPlaces {
    addresses: Vec<Place>,
    routes: Vec<Place>,
}

#[cfg(test)]
mod tests;
