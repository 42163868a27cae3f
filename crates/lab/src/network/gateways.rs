//! The ends of a scenario's tunnels: their addresses, keys, and the ways between them.

use core::net::{IpAddr, SocketAddr};

use base::{Prefix, Rng};
use tunnel::key::{PresharedKey, PrivateKey};
use tunnel::path::Address;
use tunnel::random::Random;
use tunnel::session::Peer;
use tunnel::{Hub, Membership};

use crate::engine::Port;
use crate::node::{Router, UDP_PORT};
use crate::scenario::topology::Topology;
use crate::scenario::{self, Scenario};

/// All gateways of a scenario.
pub(super) struct Gateways<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology<'a>,
    /// Of each tunnel, in the order of their names: its ends' addresses, which follow those of the hosts.
    addresses: Vec<[IpAddr; 2]>,
    /// By node: the ports that lead to gateways below their tunnels.
    routes: Vec<Vec<(IpAddr, Port)>>,
}

/// What is to be put in the place of a router.
pub(super) struct TunnelEnd {
    pub(super) address: IpAddr,
    pub(super) hub: Hub,
    /// The port that routes name for the tunnel.
    pub(super) port: Port,
}

impl<'a> Gateways<'a> {
    pub(super) fn new(scenario: &'a Scenario, topology: &'a Topology<'a>) -> Self {
        let hosts = topology.hosts().count();
        let address = |end: usize| scenario.network.address(hosts + end);
        let addresses = (0..scenario.tunnel.len()).map(|at| [address(2 * at), address(2 * at + 1)]).collect();
        let mut gateways =
            Self { scenario, topology, addresses, routes: vec![Vec::new(); topology.names().len()] };
        for (ends, addresses) in scenario.tunnel.values().map(|tunnel| &tunnel.ends).zip(&gateways.addresses)
        {
            for (end, address) in ends.iter().zip(addresses) {
                let Some(node) = topology.number(end) else { continue };
                for (router, port) in topology.routes_below(node) {
                    gateways.routes[router].push((*address, Port(port as u16)));
                }
            }
        }
        gateways
    }

    /// Tells the router called `name` the ways to all gateways.
    pub(super) fn add_routes(&self, router: &mut Router, name: &str) {
        let node = self.topology.number(name);
        for (address, port) in node.iter().flat_map(|node| &self.routes[*node]) {
            router.add_route(*address, *port);
        }
    }

    /// The end of a tunnel at the node called `name`, for the run with `seed`.
    pub(super) fn end_at(&self, name: &str, seed: u64) -> Option<TunnelEnd> {
        let tunnels = self.scenario.tunnel.iter().zip(&self.addresses);
        let of = |((tunnel_name, tunnel), addresses): ((&String, &'a scenario::Tunnel), &[IpAddr; 2])| {
            let at = tunnel.ends.iter().position(|end| end == name)?;
            let mut rng = Rng::named(seed, &format!("tunnel {tunnel_name}/{name}"));
            let called = Address::Udp(SocketAddr::new(addresses[1], UDP_PORT));
            let [own, peer] = [at, 1 - at].map(|at| PrivateKey::from_bytes([at as u8 + 1; 32]));
            let mut hub = Hub::new(own, None, move || Random::seeded(rng.bits()));
            let membership = Membership {
                key: peer.public(),
                preshared: PresharedKey::NONE,
                place: Peer { address: (at == 0).then_some(called), pinned: false },
                allowed: Prefix::EVERYTHING.to_vec(),
                weight: 1,
                config: tunnel.config(self.scenario.network),
            };
            hub.add(membership).expect("the first peer overlaps nobody's networks");
            // It comes behind the links.
            let degree = self.topology.degree(self.topology.number(name)?);
            Some(TunnelEnd { address: addresses[at], hub, port: Port(degree as u16 - 1) })
        };
        tunnels.into_iter().find_map(of)
    }
}
