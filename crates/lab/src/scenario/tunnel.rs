//! A tunnel in a scenario: two gateways, and whatever lies between them.

use std::collections::{BTreeMap, BTreeSet};

use base::units::above_zero;
use base::{Duration, Rate};
use link::limit::Limit;
use link::{Treatment, Treatments, When};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tunnel::config::{CarrierLimits, Config, Link, LinkPlaces, LinkRate, Mtu, Usage, Way};
use tunnel::path::MOST_CARRIERS;
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
    /// Paths, each called like the link with which it begins at the first end, up to eight. The second end has one carrier, as a hub has. Default: one,
    /// the shortest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "pattern": super::schema::NAME }))]
    pub path: BTreeMap<String, Path>,
    /// The tunnel's part of what its ends share (`[share.NODE]`), relative to the weights of the other tunnels there, 1 to 1000. Default: 1.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub weight: Limit<1, 1000, 1>,
}

/// One of several paths of a tunnel: the keys of a gateway's `[[path]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "TunnelPath")]
pub struct Path {
    /// How fast the first end sends over it. Default: `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// Whether it is used only while the others have been too little for what waits for some time, or are silent. Default: no.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub metered: bool,
    /// Whether it is used only while all others are silent. Default: no.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub backup: bool,
    /// What may go over it. Default: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Treatment>>,
}

impl Path {
    fn usage(&self) -> Usage {
        let carries = self.classes.as_ref().map_or(Treatments::ALL, |classes| Treatments::of(classes));
        Usage { when: When::of(self.metered, self.backup), carries }
    }
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
    /// What an end is told; only the one that calls knows of several paths.
    #[must_use]
    pub fn config(&self, network: Network, calls: bool) -> Config {
        let carrier = CarrierLimits::udp(network == Network::IPv4, self.carrier_mtu.0 as usize);
        let (link, pep, keep_alive) = (self.link, self.pep.clone(), KEEP_ALIVE);
        let rate = self.link.rate;
        let way = |path: &Path| Way {
            rate: path.rate.unwrap_or(rate),
            usage: path.usage(),
            carrier,
            address: None,
        };
        let ways = self.path.values().filter(|_| calls).map(way).collect();
        Config { link, pep, mtu: self.mtu.0, cuts_trains: false, carrier, ways, keep_alive }
    }

    /// The most application bytes per byte on the line below, where a packet of `len` bytes carries `payload`. With proxies a packet may
    /// be so long that its headers do not count.
    #[must_use]
    pub fn efficiency(&self, network: Network, len: usize, payload: usize) -> f64 {
        let limits = CarrierLimits::udp(network == Network::IPv4, self.carrier_mtu.0 as usize);
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
            self.check_tunnel_paths(name, tunnel, &topology)?;
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

    /// Paths lead from one end to the other, and can be used together.
    fn check_tunnel_paths(
        &self,
        name: &str,
        tunnel: &Tunnel,
        topology: &Topology<'_>,
    ) -> Result<(), Nonsense> {
        let [first, second] = &tunnel.ends;
        let ends = (topology.number(first), topology.number(second));
        let (count, paths) = (tunnel.path.len(), &tunnel.path);
        if count == 0 {
            return Ok(());
        }
        if count > MOST_CARRIERS {
            return nonsense(
                "path",
                format!("tunnel \"{name}\" has {count} paths; allowed are up to {MOST_CARRIERS}"),
            );
        }
        let leads = |link: &str| matches!(ends, (Some(from), Some(to)) if topology.joins(from, link, to));
        if let Some(path) = paths.keys().find(|path| !leads(path)) {
            let links = self.link.iter().filter(|(name, link)| link.ends.contains(first) && leads(name));
            let listed = links.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let message = format!(
                "tunnel \"{name}\" has path \"{path}\", but no such link leads from \"{first}\" to \"{second}\"; allowed are {listed}"
            );
            return nonsense(path, message);
        }
        let protocol = &tunnel.link.protocol;
        if count > 1 && !protocol.capabilities().several_lines {
            let message = format!(
                "tunnel \"{name}\" has {count} paths, but {} goes over one; allowed are coded and cotmll",
                protocol.name()
            );
            return nonsense("path", message);
        }
        if count > 1 && tunnel.link.rate.fixed().is_some() {
            let message = format!(
                "tunnel \"{name}\" has a rate for {count} paths; allowed is a rate of each path, or none"
            );
            return nonsense("rate", message);
        }
        let is_odd =
            |path: &&Path| path.metered && path.backup || path.classes.as_ref().is_some_and(Vec::is_empty);
        if paths.values().any(|path| is_odd(&path)) {
            let message = format!(
                "a path of tunnel \"{name}\" has both metered and backup, or no classes; allowed is one of the two, and a class or more"
            );
            return nonsense("path", message);
        }
        if let Some((other, _)) = self.tunnel.iter().find(|(_, other)| other.ends[1] == *first) {
            let message = format!(
                "gateway \"{first}\" calls over paths and is called by tunnel \"{other}\"; allowed is one of both"
            );
            return nonsense(first, message);
        }
        let carried = |treatment| {
            let mut usual = paths.values().filter(|path| !path.backup);
            usual.any(|path| path.usage().carries.contains(treatment))
        };
        if !Treatment::ALL.into_iter().all(carried) {
            let message = format!(
                "some packets of tunnel \"{name}\" have no path but a backup; allowed is for each class a path that is none"
            );
            return nonsense("path", message);
        }
        let differs = |other: &&Tunnel| other.ends[0] == *first && !other.path.keys().eq(paths.keys());
        if self.tunnel.values().any(|other| differs(&other)) {
            let message = format!(
                "gateway \"{first}\" calls over the paths of tunnel \"{name}\" and over others; allowed are the same for all its tunnels"
            );
            return nonsense("path", message);
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
