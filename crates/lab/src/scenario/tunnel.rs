//! A tunnel in a scenario: two gateways, and whatever lies between them.

use std::collections::{BTreeMap, BTreeSet};

use base::units::above_zero;
use base::{Duration, Rate};
use link::limit::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tunnel::config::{CarrierLimits, Config, Link, LinkPlaces, Mtu};
use tunnel::session::KEEP_ALIVE;

use super::check::{Nonsense, nonsense};
use super::topology::Topology;
use super::{Network, Scenario};

/// A tunnel between two gateways: nodes at which no traffic starts or ends. Packets between hosts for which it is on the shortest path go
/// through it, in datagrams of UDP over the links that lie between its ends. A node where several end is a hub, with a peer for each.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tunnel {
    /// The two gateways. The first calls the second.
    #[schemars(inner(regex(pattern = super::schema::NAME)))]
    pub ends: [String; 2],
    /// How both ends send: the keys of a gateway's `[link]`.
    #[serde(default)]
    pub link: Link,
    /// The split-connection proxy at both ends: the keys of a gateway's `[pep]`. Default: enabled, as in a gateway.
    #[serde(default)]
    pub pep: pep::Config,
    /// Largest IP packet that enters the tunnel, in bytes, 576 to 65535. Default: 1400.
    #[serde(default)]
    pub mtu: Mtu<1400>,
    /// Largest IP packet of the tunnel's datagrams, in bytes, 576 to 65535. Default: 1500.
    #[serde(default)]
    pub carrier_mtu: Mtu<1500>,
    /// The tunnel's part of what its ends share (`[share.NODE]`), relative to the weights of the other tunnels there, 1 to 1000. Default: 1.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub weight: Limit<1, 1000, 1>,
}

type Weight = Limit<1, 1000, 1>;

fn is_usual(weight: &Weight) -> bool {
    *weight == Weight::default()
}

/// What all tunnels that end at a node share: the key of a gateway's `[share]`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Rate of the carrier at the node: its tunnels together send no more, by their weights.
    #[schemars(transform = above_zero)]
    pub rate: Rate,
}

/// What happens to a gateway: the keys of its `[gateway]`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// When it starts anew, in ascending order: its sessions, what waits in it and the connections that its proxy splits are gone.
    pub restarts: Vec<Duration>,
}

impl Tunnel {
    /// What each end is told.
    #[must_use]
    pub fn config(&self, network: Network) -> Config {
        let carrier = CarrierLimits::udp(network == Network::IPv4, self.carrier_mtu.0 as usize);
        let (link, pep, keep_alive) = (self.link, self.pep.clone(), KEEP_ALIVE);
        Config { link, pep, mtu: self.mtu.0, cuts_trains: false, carrier, ways: Vec::new(), keep_alive }
    }

    /// The most application bytes per byte on the line below, where a packet of `len` bytes carries `payload`. With proxies a packet may
    /// be so long that its headers do not count.
    #[must_use]
    pub fn efficiency(&self, network: Network, len: usize, payload: usize) -> f64 {
        let limits = self.config(network).carrier;
        let frame = limits.frame_limit() as f64 / limits.packet_limit as f64;
        let packet = if self.pep.enabled { 1.0 } else { payload as f64 / len as f64 };
        frame * packet
    }
}

impl Scenario {
    /// Looks for tunnels that cannot be.
    pub(super) fn check_tunnels(&self) -> Result<(), Nonsense> {
        let topology = Topology::new(self);
        let mut pairs: BTreeMap<BTreeSet<&str>, &str> = BTreeMap::new();
        for (name, tunnel) in &self.tunnel {
            if let Err(complaint) = tunnel.link.check(&LinkPlaces::default()) {
                return nonsense("link", format!("tunnel \"{name}\": {}", complaint.message()));
            }
            if let Err(complaint) = tunnel.link.check_rate(&LinkPlaces::default()) {
                return nonsense("queue", format!("tunnel \"{name}\": {}", complaint.message()));
            }
            let [first, second] = &tunnel.ends;
            if first == second {
                let message = format!("tunnel \"{name}\" joins a node to itself; its ends must differ");
                return nonsense(first, message);
            }
            self.check_ends(name, tunnel, &topology)?;
            if let Some(other) = pairs.insert([first.as_str(), second].into(), name) {
                let message = format!(
                    "tunnels \"{other}\" and \"{name}\" both join \"{first}\" and \"{second}\"; allowed is one between two nodes"
                );
                return nonsense(second, message);
            }
            if topology.underlay(first, second).is_none() {
                return nonsense(first, format!("no links lead from \"{first}\" to \"{second}\""));
            }
        }
        self.check_gateways()
    }

    /// Tunnels end at nodes that only forward.
    fn check_ends(&self, name: &str, tunnel: &Tunnel, topology: &Topology<'_>) -> Result<(), Nonsense> {
        for end in &tunnel.ends {
            let Some(node) = topology.number(end) else {
                let listed = topology.names().join(", ");
                let message =
                    format!("tunnel \"{name}\" names a node that no link has; allowed are {listed}");
                return nonsense(end, message);
            };
            if topology.is_host(node) {
                let message = format!(
                    "tunnel \"{name}\" ends at \"{end}\", where traffic starts or ends; allowed are nodes behind which hosts are"
                );
                return nonsense(end, message);
            }
        }
        Ok(())
    }

    /// Only gateways share something, and start anew.
    fn check_gateways(&self) -> Result<(), Nonsense> {
        let ends: BTreeSet<&str> =
            self.tunnel.values().flat_map(|tunnel| &tunnel.ends).map(String::as_str).collect();
        let shares = self.share.keys().map(|name| ("share", name));
        let gateways = self.gateway.keys().map(|name| ("gateway", name));
        if let Some((kind, name)) = shares.chain(gateways).find(|(_, name)| !ends.contains(name.as_str())) {
            let listed = ends.into_iter().collect::<Vec<_>>().join(", ");
            let allowed = if listed.is_empty() { format!("no {kind} without tunnels") } else { listed };
            let message =
                format!("{kind} \"{name}\" is of a node at which no tunnel ends; allowed are {allowed}");
            return nonsense(name, message);
        }
        if let Some((name, share)) = self.share.iter().find(|(_, share)| share.rate.as_bps() == 0) {
            let rate = share.rate.to_string();
            let message =
                format!("share \"{name}\" has rate = \"{rate}\"; allowed are rates above 0, or no share");
            return nonsense(&rate, message);
        }
        let disordered = |gateway: &Gateway| gateway.restarts.windows(2).any(|pair| pair[0] >= pair[1]);
        if let Some((name, _)) = self.gateway.iter().find(|(_, gateway)| disordered(gateway)) {
            let message = format!("gateway \"{name}\" has restarts that are not in ascending order");
            return nonsense(name, message);
        }
        Ok(())
    }
}
