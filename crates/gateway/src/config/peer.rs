//! A gateway that this one talks to: a `[[peer]]`, or a file in `peers.d`.

use std::path::{Path, PathBuf};

use base::config::ConfigError;
use base::{Duration, Prefix};
use link::limit::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use tunnel::config::Link;
use tunnel::key::{PresharedKey, PublicKey};
use tunnel::path::Address;
use tunnel::session::KEEP_ALIVE;

use super::identity::{is_exposed, lie_beside, read_key};
use super::{Carrier, Destination, HostName};

/// A gateway that this one talks to, with everything that follows for it from the rest of the configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(from = "Written")]
pub struct Peer {
    pub(super) name: PeerName,
    /// Who it is.
    pub public_key: PublicKey,
    /// Which destinations go to it, and which sources may come from it.
    pub allowed: Vec<Prefix>,
    /// Where it is called. One without waits to be heard.
    pub endpoint: Option<Destination>,
    /// Whether it is nowhere else.
    pub pin_endpoint: bool,
    /// Its part of a shared rate, relative to the weights of others; 1 to 1000.
    pub weight: u32,
    /// After how much time without anything else to say this end says that it is there; 1 s to 10 min.
    pub keep_alive: Duration,
    /// How to send to it: the file's `[link]`, with its own keys laid over that.
    pub link: Link,
    /// The proxy of its connections: the file's `[pep]`, with its own keys laid over that.
    pub pep: pep::Config,
    /// The file that it was read from.
    pub origin: PathBuf,
    /// The line of `origin` that has its public key, from 1, if that is known.
    pub(super) line: Option<usize>,
    preshared_key_file: Option<PathBuf>,
    preshared_key: Option<PresharedKey>,
}

/// A peer as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Peer")]
pub(super) struct Written {
    /// The peer's name in notices and status: 1 to 63 letters, digits, dots, hyphens and underscores. Default: a file's own name without
    /// its ending; a single peer in the configuration itself needs none.
    #[serde(default)]
    pub(super) name: Option<PeerName>,
    /// The peer's public key, as `longhaul pubkey` prints it there.
    pub(super) public_key: PublicKey,
    /// File that holds a secret shared with this peer, which keeps the traffic secret even if private keys can be computed one day.
    /// A relative path starts at the directory of the file that names it.
    #[serde(default)]
    #[schemars(extend("examples" = ["hub.psk"]))]
    pub(super) preshared_key_file: Option<PathBuf>,
    /// The shared secret itself, as `longhaul keygen --preshared` prints it.
    #[serde(default)]
    pub(super) preshared_key: Option<PresharedKey>,
    /// Which destinations go to this peer, and which sources may come from it. Default: everything, if it is the only peer; with
    /// several, each says its own, and they may not overlap.
    #[serde(default)]
    pub(super) allowed: Option<Vec<Prefix>>,
    /// Address and port of the peer. The end with an endpoint initiates the session; an end without one waits and learns
    /// the peer's address from the handshake.
    #[serde(default)]
    pub(super) endpoint: Option<Destination>,
    /// Accept the peer at its endpoint only: it cannot move to another address.
    #[serde(default)]
    pub(super) pin_endpoint: bool,
    /// The peer's part of the rate in `[share]`, relative to the weights of others, 1 to 1000.
    #[serde(default)]
    pub(super) weight: Limit<1, 1000, 1>,
    /// Time between signs of life while nothing else passes, 1 s to 10 min. Default: 10 s; some address translators forget whom they know
    /// after 30 s.
    #[serde(default = "usual_keep_alive", deserialize_with = "keep_alive")]
    #[schemars(extend("examples" = ["25 s"]))]
    pub(super) keep_alive: Duration,
    /// Keys of `[link]` that differ for this peer.
    #[serde(default)]
    pub(super) link: Option<Link>,
    /// Keys of `[pep]` that differ for this peer.
    #[serde(default)]
    pub(super) pep: Option<pep::Config>,
}

/// By itself: the only peer, without a file around it.
impl From<Written> for Peer {
    fn from(written: Written) -> Self {
        Self {
            name: written.name.unwrap_or_default(),
            public_key: written.public_key,
            allowed: written.allowed.unwrap_or_else(|| Prefix::EVERYTHING.to_vec()),
            endpoint: written.endpoint,
            pin_endpoint: written.pin_endpoint,
            weight: written.weight.get(),
            keep_alive: written.keep_alive,
            link: written.link.unwrap_or_default(),
            pep: written.pep.unwrap_or_default(),
            origin: PathBuf::new(),
            line: None,
            preshared_key_file: written.preshared_key_file,
            preshared_key: written.preshared_key,
        }
    }
}

impl Peer {
    /// Its name in notices and status; no other peer has it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The secret shared with it, or [`PresharedKey::NONE`].
    ///
    /// # Errors
    /// Its file cannot be read or holds no key.
    pub fn load_preshared(&self) -> Result<PresharedKey, ConfigError> {
        match (&self.preshared_key, &self.preshared_key_file) {
            (Some(key), _) => Ok(key.clone()),
            (None, Some(file)) => read_key(file),
            (None, None) => Ok(PresharedKey::NONE),
        }
    }

    /// The file that holds the secret shared with it, if others than its owner and group have any rights to it.
    #[must_use]
    pub fn exposed(&self) -> Option<&Path> {
        let file = self.preshared_key_file.as_deref();
        file.or(self.preshared_key.as_ref().map(|_| &*self.origin)).filter(|file| is_exposed(file))
    }

    /// Where it is, for who begins handshakes. On a serial line both sides do. The address of a name is not known yet.
    #[must_use]
    pub fn place(&self, carrier: &Carrier) -> tunnel::session::Peer {
        match carrier {
            Carrier::Udp(_) => {
                let address = self.endpoint.as_ref().and_then(Destination::address);
                tunnel::session::Peer { address: address.map(Address::Udp), pinned: self.pin_endpoint }
            }
            Carrier::Serial(_) => tunnel::session::Peer { address: Some(Address::Serial), pinned: true },
        }
    }

    /// Whom this end calls, as configured; `None` waits to be called.
    #[must_use]
    pub fn called(&self, carrier: &Carrier) -> Option<String> {
        match carrier {
            Carrier::Udp(_) => self.endpoint.as_ref().map(ToString::to_string),
            Carrier::Serial(_) => Some(Address::Serial.to_string()),
        }
    }

    /// The name of the host where it is called, if it is called by one.
    #[must_use]
    pub const fn host_name(&self) -> Option<&HostName> {
        match &self.endpoint {
            Some(Destination::Name(name)) => Some(name),
            Some(Destination::Address(_)) | None => None,
        }
    }

    /// A relative key file lies beside the file that names it.
    pub(super) fn beside(&mut self, file: &Path) {
        lie_beside(&mut self.preshared_key_file, file);
    }

    /// A complaint about its public key.
    pub(super) fn about_key(&self, message: String) -> ConfigError {
        ConfigError {
            file: self.origin.display().to_string(),
            line: self.line,
            excerpt: format!("public-key = \"{}\"", self.public_key),
            message,
        }
    }
}

const fn usual_keep_alive() -> Duration {
    KEEP_ALIVE
}

fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let time = Duration::deserialize(deserializer)?;
    if (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&time) {
        return Ok(time);
    }
    Err(de::Error::custom(format!("{time} is out of range; allowed are 1 s to 10 min")))
}

/// A name that a peer can have, and a file of its own with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,62}$", "examples" = ["hub"]))]
pub struct PeerName(String);

impl PeerName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the only peer is called if nobody says.
impl Default for PeerName {
    fn default() -> Self {
        Self("peer".to_owned())
    }
}

impl core::fmt::Display for PeerName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PeerName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        // A file whose name begins with a dot is hidden.
        let fits = (1..=63).contains(&name.len()) && !name.starts_with('.');
        if fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
            return Ok(Self(name));
        }
        Err(format!(
            "\"{name}\" is not a name of a peer; allowed are 1 to 63 letters, digits, dots, hyphens and underscores, \
             the first of them no dot"
        ))
    }
}

impl core::str::FromStr for PeerName {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        name.to_owned().try_into()
    }
}
