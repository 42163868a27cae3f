//! The ends of a scenario's tunnels: their addresses, keys, and the ways between them.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use base::{Instant, Prefix, Rng};
use tunnel::hub::PeerId;
use tunnel::key::{PresharedKey, PrivateKey};
use tunnel::path::Address;
use tunnel::random::Random;
use tunnel::session::Peer;
use tunnel::{Hub, Membership};

use crate::engine::Port;
use crate::node::{Gateway, Router, UDP_PORT};
use crate::scenario::topology::{Routes, Topology};
use crate::scenario::{self, Scenario};

/// All gateways of a scenario.
pub(super) struct Gateways<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology<'a>,
    /// In the order of their names.
    tunnels: Vec<(&'a str, &'a scenario::Tunnel)>,
    /// By gateway, a node: which tunnels end there, in their order.
    ends: BTreeMap<usize, Vec<End>>,
    /// By node: the ports that lead to gateways below their tunnels.
    routes: Vec<Vec<(IpAddr, Port)>>,
}

/// An end of a tunnel.
#[derive(Clone, Copy)]
struct End {
    /// The tunnel's place among all.
    tunnel: usize,
    /// Which of its ends: the first calls.
    at: usize,
}

/// A carrier of a gateway.
struct Carried<'a> {
    address: IpAddr,
    /// The only link that it uses, and the port there; what routes say without one.
    link: Option<&'a str>,
    port: Option<Port>,
}

impl<'a> Gateways<'a> {
    pub(super) fn new(scenario: &'a Scenario, topology: &'a Topology<'a>) -> Self {
        let tunnels: Vec<_> = scenario.tunnel.iter().map(|(name, tunnel)| (name.as_str(), tunnel)).collect();
        let mut ends: BTreeMap<usize, Vec<End>> = BTreeMap::new();
        for (number, (_, tunnel)) in tunnels.iter().enumerate() {
            for (at, end) in tunnel.ends.iter().enumerate() {
                let Some(node) = topology.number(end) else { continue };
                ends.entry(node).or_default().push(End { tunnel: number, at });
            }
        }
        let routes = vec![Vec::new(); topology.names().len()];
        let mut gateways = Self { scenario, topology, tunnels, ends, routes };
        for &node in gateways.ends.keys() {
            for Carried { address, link, .. } in gateways.carriers(node) {
                for (router, port) in topology.routes_below(node, link) {
                    gateways.routes[router].push((address, Port(port as u16)));
                }
            }
        }
        gateways
    }

    /// Tells a router, a node, the ways to all gateways.
    pub(super) fn add_routes(&self, router: &mut Router, node: usize) {
        for (address, port) in &self.routes[node] {
            router.add_route(*address, *port);
        }
    }

    /// Makes a gateway of `router` if tunnels end at its node, for the run with `seed`. Its routes are `routes` to the hosts at `addresses`.
    ///
    /// # Errors
    /// If none ends there: the router.
    pub(super) fn gateway(
        &self,
        node: usize,
        router: Router,
        (routes, addresses): (&Routes, &[Option<IpAddr>]),
        seed: u64,
    ) -> Result<Gateway, Router> {
        let Some(ends) = self.ends.get(&node) else { return Err(router) };
        let carriers = self.carriers(node);
        // They come behind the links.
        let first = self.topology.degree(node) - ends.len();
        let mut behind = behind(routes, addresses);
        let members = ends.iter().enumerate().map(|(place, end)| {
            let allowed = match ends.len() {
                1 => Prefix::EVERYTHING.to_vec(),
                _ => behind.remove(&(first + place)).unwrap_or_default(),
            };
            (self.tunnels[end.tunnel].0, self.membership(*end, allowed))
        });
        let members: Vec<_> = members.collect();
        let (hub, ids) = self.hub(node, &members, seed, 0);
        let tunnels = members.iter().zip(ids).map(|((name, _), id)| ((*name).to_owned(), id)).collect();
        let carriers = carriers.into_iter().map(|carrier| (carrier.address, carrier.port)).collect();
        let mut gateway = Gateway::new(router, carriers, hub, Port(first as u16), tunnels);
        if let Some(events) = self.scenario.gateway.get(self.topology.names()[node]) {
            for (number, after) in events.restarts.iter().enumerate() {
                let (hub, _) = self.hub(node, &members, seed, number + 1);
                gateway.restart_at(Instant::ZERO + *after, hub);
            }
        }
        Ok(gateway)
    }

    /// What is at a node where tunnels end, with its peers, in the gateway's first life (0) or a later one.
    fn hub(&self, node: usize, members: &[(&str, Membership)], seed: u64, life: usize) -> (Hub, Vec<PeerId>) {
        let name = self.topology.names()[node];
        let owner = match members {
            [(tunnel, _)] => format!("tunnel {tunnel}/{name}"),
            _ => format!("hub {name}"),
        };
        let owner = if life == 0 { owner } else { format!("{owner}, life {life}") };
        let mut rng = Rng::named(seed, &owner);
        let rate = self.scenario.share.get(name).map(|share| share.rate);
        let hub = Hub::new(self.key(node), rate, move || Random::seeded(rng.bits()));
        let mut hub = hub.with_carriers(self.carriers(node).len());
        let ids = members.iter().map(|(_, membership)| {
            hub.add(membership.clone())
                .expect("tunnels of a checked scenario have ends and networks of their own")
        });
        let ids = ids.collect();
        (hub, ids)
    }

    /// Who is at the other end of a tunnel, as this end sees it.
    fn membership(&self, end: End, allowed: Vec<Prefix>) -> Membership {
        let tunnel = self.tunnels[end.tunnel].1;
        let far = self.far(end);
        let place = self.address(far).map(|address| Address::Udp(SocketAddr::new(address, UDP_PORT)));
        Membership {
            key: self.key(far).public(),
            preshared: PresharedKey::NONE,
            place: Peer { address: place.filter(|_| end.at == 0), pinned: false },
            allowed,
            weight: tunnel.weight.get(),
            config: tunnel.config(self.scenario.network, end.at == 0),
        }
    }

    /// The node at the other end of a tunnel.
    fn far(&self, end: End) -> usize {
        let far = &self.tunnels[end.tunnel].1.ends[1 - end.at];
        self.topology.number(far).expect("the ends of a checked scenario's tunnels are nodes")
    }

    /// A gateway's address. Each tunnel has two behind those of the hosts; where several end, that of the first is taken.
    fn address(&self, node: usize) -> Option<IpAddr> {
        let first = self.ends.get(&node)?.first()?;
        let hosts = self.topology.hosts().count();
        Some(self.scenario.network.address(hosts + 2 * first.tunnel + first.at))
    }

    /// What a gateway sends over: one for each path of the tunnels that it calls over. All but the first have addresses behind those of all
    /// gateways.
    fn carriers(&self, node: usize) -> Vec<Carried<'a>> {
        let Some(own) = self.address(node) else { return Vec::new() };
        let paths = |node: &usize| {
            let calls = self.ends[node].iter().filter(|end| end.at == 0);
            calls.map(|end| &self.tunnels[end.tunnel].1.path).find(|paths| !paths.is_empty())
        };
        let Some(of_node) = paths(&node) else {
            return vec![Carried { address: own, link: None, port: None }];
        };
        let before: usize =
            self.ends.range(..node).filter_map(|(node, _)| paths(node)).map(|paths| paths.len() - 1).sum();
        let behind = self.topology.hosts().count() + 2 * self.tunnels.len() + before;
        let addresses = core::iter::once(own).chain((behind..).map(|at| self.scenario.network.address(at)));
        let carrier = |(link, address): (&'a String, IpAddr)| {
            let port = self.topology.port_of_link(node, link).map(|port| Port(port as u16));
            Carried { address, link: Some(link), port }
        };
        of_node.keys().zip(addresses).map(carrier).collect()
    }

    /// A gateway's key, the same in each run.
    fn key(&self, node: usize) -> PrivateKey {
        let mut rng = Rng::named(0, &format!("key of {}", self.topology.names()[node]));
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.bits().to_le_bytes());
        }
        PrivateKey::from_bytes(bytes)
    }
}

/// By port of a router: the hosts that it leads to.
fn behind(routes: &Routes, addresses: &[Option<IpAddr>]) -> BTreeMap<usize, Vec<Prefix>> {
    let ports: BTreeMap<usize, usize> = routes.to.iter().copied().collect();
    let mut behind: BTreeMap<usize, Vec<Prefix>> = BTreeMap::new();
    for (host, address) in addresses.iter().enumerate() {
        let port = ports.get(&host).copied().or(routes.otherwise);
        if let (Some(address), Some(port)) = (*address, port) {
            let len = if address.is_ipv4() { 32 } else { 128 };
            behind.entry(port).or_default().push(Prefix { address, len });
        }
    }
    behind
}
