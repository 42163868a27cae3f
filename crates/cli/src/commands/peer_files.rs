//! What `longhaul peer add` writes: a peer as its hub knows it, and the peer's own configuration.

use core::fmt::Write as _;

use base::Prefix;
use gateway::config::{Carrier, Config, Destination, PeerName};
use serde_json::json;
use tunnel::config::{Link, Mtu};
use tunnel::key::{PresharedKey, PrivateKey, PublicKey};

use super::peer_add::holds;

/// A peer's file at its hub.
pub(super) fn at_hub(
    public_key: PublicKey,
    preshared_key: Option<&PresharedKey>,
    allowed: &[Prefix],
) -> String {
    let mut text = format!("public-key = \"{public_key}\"\n");
    add_preshared(&mut text, preshared_key);
    text + &format!("allowed = {}\n", list(allowed))
}

/// A gateway that calls a hub and sends everything there.
pub(super) struct Terminal<'a> {
    pub(super) name: &'a PeerName,
    pub(super) addresses: &'a [Prefix],
    /// What the hub sends to it.
    pub(super) allowed: &'a [Prefix],
    /// Networks behind the hub that the hub's configuration does not name.
    pub(super) routes: &'a [Prefix],
    pub(super) endpoint: &'a Destination,
    /// `None` if it has one in a file.
    pub(super) private_key: Option<&'a PrivateKey>,
    pub(super) preshared_key: Option<&'a PresharedKey>,
}

impl Terminal<'_> {
    /// Its configuration, for a hub that knows it already and has this public key.
    ///
    /// # Errors
    /// The hub cannot be called like that.
    pub(super) fn site(&self, hub: &Config, public_key: PublicKey) -> Result<String, String> {
        let Carrier::Udp(udp) = &hub.carrier else {
            return Err("a serial line has one other end; allowed are hubs with [carrier.udp]".to_owned());
        };
        let endpoint = self.endpoint;
        let (hub_is_ipv4, port) = (udp.listen.is_ipv4(), udp.listen.port());
        if endpoint.address().is_some_and(|address| address.is_ipv4() != hub_is_ipv4) {
            let listen = udp.listen;
            return Err(format!(
                "it listens at {listen}; allowed is an --endpoint of the same address family, not {endpoint}"
            ));
        }
        let any = if hub_is_ipv4 { "0.0.0.0" } else { "[::]" };
        let mut text = format!(
            "# {}, made by `longhaul peer add`. To start it: longhaul gateway --config FILE\n\n\
             [tun]\nname = {}\naddresses = {}\nroutes = {}\n{}\n\
             [carrier.udp]\nlisten = \"{any}:{port}\"\n{}\n",
            self.name,
            json!(hub.tun.name.as_str()),
            list(self.addresses),
            list(&self.routes(hub)),
            mtu(hub.tun.mtu),
            mtu(udp.mtu),
        );
        text += &self.agreed(hub)?;
        text += &match self.private_key {
            Some(key) => format!("[identity]\nprivate-key = \"{}\"\n\n", *key.to_base64()),
            None => "[identity]\nprivate-key-file = \"site.key\"   # beside this file\n\n".to_owned(),
        };
        _ = write!(text, "[[peer]]\nname = \"hub\"\npublic-key = \"{public_key}\"\n");
        add_preshared(&mut text, self.preshared_key);
        _ = writeln!(text, "endpoint = \"{endpoint}\"");
        Ok(text)
    }

    /// What both ends of a link have to agree on, where it is not what they have anyway; and no proxy that has none beside it.
    fn agreed(&self, hub: &Config) -> Result<String, String> {
        let peer = hub.peers.iter().find(|peer| peer.name() == self.name.as_str());
        let peer = peer.unwrap_or_else(|| unreachable!("the hub has been read with it"));
        let mut text = String::new();
        if peer.link.protocol.agreement() != Link::default().protocol.agreement() {
            let link = json!({ "link": { "protocol": peer.link.protocol } });
            text += &toml::to_string(&link).map_err(|error| error.to_string())?;
            text += "\n";
        }
        if !peer.pep.enabled {
            text += "[pep]\nenabled = false\n\n";
        }
        Ok(text)
    }

    /// Networks that it reaches through the hub: the hub's device's, those behind other peers and those that were named; not its
    /// own.
    fn routes(&self, hub: &Config) -> Vec<Prefix> {
        let named = self.routes.iter().chain(&hub.tun.addresses).chain(&hub.tun.routes);
        let mut routes: Vec<Prefix> = Vec::new();
        for network in named.map(|prefix| Prefix { address: prefix.masked(), len: prefix.len }) {
            let is_own = |own: &Prefix| holds(*own, network);
            let is_known = self.addresses.iter().chain(self.allowed).chain(&routes).any(is_own);
            if !is_known {
                routes.retain(|route| !holds(network, *route));
                routes.push(network);
            }
        }
        routes
    }
}

fn add_preshared(text: &mut String, key: Option<&PresharedKey>) {
    if let Some(key) = key {
        _ = writeln!(text, "preshared-key = \"{}\"", *key.to_base64());
    }
}

/// The line that says so, unless it is the default.
fn mtu<const DEFAULT: u32>(mtu: Mtu<DEFAULT>) -> String {
    if mtu == Mtu::default() { String::new() } else { format!("mtu = {}\n", mtu.0) }
}

/// A list as TOML and JSON have it.
pub(super) fn list(prefixes: &[Prefix]) -> String {
    let items: Vec<_> = prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect();
    format!("[{}]", items.join(", "))
}
