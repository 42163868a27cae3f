//! What a scenario's network looks like: nodes, neighbours, and the ways between its hosts.
//!
//! Packets take a shortest path, the first by link name among equals at every node. Hosts do not forward. Routers that
//! hang on a single other one, as the arms of a star or the twigs of a tree, have one way to the rest of the
//! network; what is left when they are taken off, one after the other, is the core. Only routers of the core need to
//! know a way to every host, so that a tree of n hosts costs n times its depth instead of n times n.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::{Link, Scenario, Traffic, Tunnel};

impl Traffic {
    /// The hosts that it runs between.
    #[must_use]
    pub fn hosts(&self) -> [&str; 2] {
        match self {
            Self::Bulk(bulk) => [&bulk.from, &bulk.to],
            Self::Rate(source) => [&source.from, &source.to],
            Self::Transactions(transactions) => [&transactions.from, &transactions.to],
        }
    }
}

impl Scenario {
    /// Every node that a link names, in order.
    #[must_use]
    pub fn node_names(&self) -> BTreeSet<&str> {
        self.link.values().flat_map(|link| &link.ends).map(String::as_str).collect()
    }

    /// What is wrong with a name that is neither a node's nor a link's.
    #[must_use]
    pub fn no_such_place(&self, name: &str) -> String {
        let nodes = self.node_names().into_iter().collect::<Vec<_>>().join(", ");
        let links = self.link.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("no node or link \"{name}\"; the nodes are {nodes}, the links {links}")
    }
}

/// A link on the way between two hosts.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// Its name.
    pub name: &'a str,
    /// The link.
    pub link: &'a Link,
    /// Whether it is crossed from its first end to its second.
    pub forward: bool,
    /// The tunnel whose datagrams cross it, if packets are inside one there.
    pub tunnel: Option<&'a Tunnel>,
}

/// A part of the way between two hosts: a link, or what lies below a tunnel of several paths.
#[derive(Clone, Debug)]
pub struct Stage<'a> {
    /// The name of the link or the tunnel, and whether it is crossed from its first end to its second.
    pub name: &'a str,
    /// See `name`.
    pub forward: bool,
    /// Whether it is a tunnel.
    pub is_tunnel: bool,
    /// Ways beside each other, each with its links in order.
    pub ways: Vec<Vec<Crossing<'a>>>,
}

impl<'a> Stage<'a> {
    /// The only link, if it is but one.
    #[must_use]
    pub fn only(&self) -> Option<Crossing<'a>> {
        match &self.ways[..] {
            [way] => way.first().filter(|_| way.len() == 1).copied(),
            _ => None,
        }
    }

    /// All its links.
    pub fn links(&self) -> impl Iterator<Item = &Crossing<'a>> {
        self.ways.iter().flatten()
    }
}

impl<'a> From<Crossing<'a>> for Stage<'a> {
    fn from(crossing: Crossing<'a>) -> Self {
        Self { name: crossing.name, forward: crossing.forward, is_tunnel: false, ways: vec![vec![crossing]] }
    }
}

/// The nodes of a scenario, numbered in the order of their names, and how they hang together.
#[derive(Debug)]
pub struct Topology<'a> {
    names: Vec<&'a str>,
    links: Vec<(&'a str, &'a Link)>,
    tunnels: Vec<(&'a str, &'a Tunnel)>,
    /// By node: where its ports lead, in the order of the links' names, and behind them its tunnels.
    ports: Vec<Vec<Hop>>,
    /// By node: whether traffic starts or ends there.
    hosts: Vec<bool>,
    /// By router outside the core: the port that leads to the core.
    uplinks: Vec<Option<usize>>,
    /// By router: the connected part of the network that it is in.
    parts: Vec<usize>,
    /// By router of the core, as far as somebody asked: for each router of the core the port that leads there.
    towards: RefCell<BTreeMap<usize, Rc<BTreeMap<usize, usize>>>>,
}

/// Where a port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    node: usize,
    /// Among the links, or as many more among the tunnels.
    link: usize,
}

/// Where one router sends packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Ports, by the number of the destination host.
    pub to: Vec<(usize, usize)>,
    /// The port for all other hosts.
    pub otherwise: Option<usize>,
}

impl<'a> Topology<'a> {
    /// The topology of `scenario`, in O(n log n) of its nodes and links.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let names: Vec<&str> = scenario.node_names().into_iter().collect();
        let number = |name: &str| names.binary_search(&name);
        let mut hosts = vec![false; names.len()];
        for host in scenario.traffic.values().flat_map(Traffic::hosts) {
            if let Ok(host) = number(host) {
                hosts[host] = true;
            }
        }
        let mut ports: Vec<Vec<Hop>> = vec![Vec::new(); names.len()];
        for (link, ends) in scenario.link.values().map(|link| &link.ends).enumerate() {
            if let [Ok(a), Ok(b)] = [number(&ends[0]), number(&ends[1])] {
                ports[a].push(Hop { node: b, link });
                ports[b].push(Hop { node: a, link });
            }
        }
        let first = scenario.link.len();
        for (tunnel, ends) in scenario.tunnel.values().map(|tunnel| &tunnel.ends).enumerate() {
            if let [Ok(a), Ok(b)] = [number(&ends[0]), number(&ends[1])] {
                ports[a].push(Hop { node: b, link: first + tunnel });
                ports[b].push(Hop { node: a, link: first + tunnel });
            }
        }
        let tunnels = scenario.tunnel.iter().map(|(name, tunnel)| (name.as_str(), tunnel)).collect();
        let links = scenario.link.iter().map(|(name, link)| (name.as_str(), link)).collect();
        let uplinks = vec![None; names.len()];
        let parts = vec![usize::MAX; names.len()];
        let mut topology =
            Self { names, links, tunnels, ports, hosts, uplinks, parts, towards: RefCell::default() };
        topology.find_parts();
        topology.find_uplinks();
        topology
    }

    /// The nodes' names, by number.
    #[must_use]
    pub fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// The number of the node called `name`.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    /// The numbers of the hosts, in order.
    pub fn hosts(&self) -> impl Iterator<Item = usize> {
        self.hosts.iter().enumerate().filter_map(|(node, &is_host)| is_host.then_some(node))
    }

    /// Whether traffic starts or ends at a node.
    #[must_use]
    pub fn is_host(&self, node: usize) -> bool {
        self.hosts[node]
    }

    /// Links of a node, and tunnels.
    #[must_use]
    pub fn degree(&self, node: usize) -> usize {
        self.ports[node].len()
    }

    /// Whether packets of one host, which has one link, reach another one.
    #[must_use]
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        match (self.access(from), self.access(to)) {
            (Some(first), Some(last)) => self.parts[first] == self.parts[last],
            _ => self.ports[from].first().is_some_and(|hop| hop.node == to),
        }
    }

    /// What lies between two hosts, each of which has one link, in the order of the way.
    #[must_use]
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<Stage<'a>>> {
        let (from, to) = (self.number(from)?, self.number(to)?);
        if !self.reaches(from, to) {
            return None;
        }
        let first = self.ports[from].first()?;
        let mut path = self.crossings(from, *first);
        let (Some(access), Some(last)) = (self.access(from), self.access(to)) else { return Some(path) };
        let (mut up, mut down) = (self.climb(access), self.climb(last));
        let (top, root) = (*up.last()?, *down.last()?);
        // Where both climb through the same routers, the way turns at the lowest of these.
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2] == down[down.len() - 2] {
            up.pop();
            down.pop();
        }
        path.extend(up.windows(2).flat_map(|pair| self.crossings(pair[0], self.uplink(pair[0]))));
        let mut at = top;
        while at != root {
            let hop = self.ports[at][*self.towards(root).get(&at)?];
            path.extend(self.crossings(at, hop));
            at = hop.node;
        }
        let descent = down.windows(2).rev();
        let below = |pair: &[usize]| Hop { node: pair[0], link: self.uplink(pair[0]).link };
        path.extend(descent.flat_map(|pair| self.crossings(pair[1], below(pair))));
        path.extend(self.crossings(last, Hop { node: to, link: self.ports[to].first()?.link }));
        Some(path)
    }

    /// Where each router sends packets for each host, by the number of the node; hosts have no routes.
    #[must_use]
    pub fn routes(&self) -> Vec<Routes> {
        let otherwise = |&otherwise: &Option<usize>| Routes { to: Vec::new(), otherwise };
        let mut routes: Vec<Routes> = self.uplinks.iter().map(otherwise).collect();
        for host in self.hosts() {
            let Some(access) = self.access(host) else { continue };
            let way = self.climb(access);
            let below = core::iter::once(host).chain(way.iter().copied());
            for (below, &router) in below.zip(&way) {
                let hop = if below == host { self.ports[host][0] } else { self.uplink(below) };
                routes[router].to.push((host, self.port_of(router, hop.link)));
            }
            let Some(&root) = way.last() else { continue };
            for (&router, &port) in &*self.towards(root) {
                routes[router].to.push((host, port));
            }
        }
        routes
    }

    /// The router that a host's first link leads to.
    fn access(&self, host: usize) -> Option<usize> {
        self.ports[host].first().map(|hop| hop.node).filter(|&node| !self.hosts[node])
    }

    fn uplink(&self, router: usize) -> Hop {
        let port = self.uplinks[router].unwrap_or_else(|| unreachable!("a router of the core has no uplink"));
        self.ports[router][port]
    }

    /// The routers from this one up to the core.
    fn climb(&self, router: usize) -> Vec<usize> {
        let up = |&router: &usize| self.uplinks[router].map(|port| self.ports[router][port].node);
        core::iter::successors(Some(router), up).collect()
    }

    /// What a hop takes: a link, or those below a tunnel.
    fn crossings(&self, from: usize, hop: Hop) -> Vec<Stage<'a>> {
        let Some(tunnel) = hop.link.checked_sub(self.links.len()) else {
            return vec![self.crossing(from, hop.link, None).into()];
        };
        let (name, tunnel) = self.tunnels[tunnel];
        let along = |way: Vec<(usize, usize)>| {
            way.into_iter().map(|(at, link)| self.crossing(at, link, Some(tunnel))).collect::<Vec<_>>()
        };
        if tunnel.path.is_empty() {
            let below = self.way_below(from, hop.node).unwrap_or_default();
            return along(below).into_iter().map(Stage::from).collect();
        }
        let forward = tunnel.ends[0] == self.names[from];
        let [caller, called] = if forward { [from, hop.node] } else { [hop.node, from] };
        let way = |link: &String| {
            let link = self.link(link)?;
            let way = if forward {
                self.way_out(caller, link, called)
            } else {
                self.way_back(caller, link, called)
            };
            way.map(along)
        };
        let ways = tunnel.path.keys().filter_map(way).collect();
        vec![Stage { name, forward, is_tunnel: true, ways }]
    }

    /// The number of the link called `name`.
    fn link(&self, name: &str) -> Option<usize> {
        self.links.binary_search_by_key(&name, |(name, _)| name).ok()
    }

    /// Nodes and links from a gateway to another, of which the first is this one, without tunnels; `None` if there are none, or they lead back
    /// to where they began.
    fn way_out(&self, from: usize, link: usize, to: usize) -> Option<Vec<(usize, usize)>> {
        let next = self.ports[from].iter().find(|hop| hop.link == link)?.node;
        let rest = if next == to { Vec::new() } else { self.way_below(next, to)? };
        let returns = rest.iter().any(|(at, _)| *at == from);
        (!returns).then(|| core::iter::once((from, link)).chain(rest).collect())
    }

    /// Nodes and links to a gateway from another, of which the last is this one, without tunnels.
    fn way_back(&self, to: usize, link: usize, from: usize) -> Option<Vec<(usize, usize)>> {
        follow(&self.towards_below(to, Some(link)), from, to)
    }

    /// The port of a gateway at which a path begins: that of the link called `name`.
    #[must_use]
    pub fn port_of_link(&self, node: usize, name: &str) -> Option<usize> {
        let link = self.link(name)?;
        self.ports[node].iter().position(|hop| hop.link == link)
    }

    /// Whether datagrams that leave a gateway over the link called `name` come to another one, and its answers back over it.
    #[must_use]
    pub fn joins(&self, from: usize, name: &str, to: usize) -> bool {
        self.link(name).is_some_and(|link| {
            self.way_out(from, link, to).is_some() && self.way_back(from, link, to).is_some()
        })
    }

    fn crossing(&self, from: usize, link: usize, tunnel: Option<&'a Tunnel>) -> Crossing<'a> {
        let (name, link) = self.links[link];
        Crossing { name, link, forward: link.ends[0] == self.names[from], tunnel }
    }

    /// The links between two routers, without tunnels: a shortest path.
    #[must_use]
    pub fn underlay(&self, from: &str, to: &str) -> Option<Vec<Crossing<'a>>> {
        let way = self.way_below(self.number(from)?, self.number(to)?)?;
        Some(way.into_iter().map(|(at, link)| self.crossing(at, link, None)).collect())
    }

    /// Nodes and the links that they take towards `to`, without tunnels.
    fn way_below(&self, from: usize, to: usize) -> Option<Vec<(usize, usize)>> {
        follow(&self.towards_below(to, None), from, to)
    }

    /// By router that `to`, a router, can be reached from without tunnels: the first hop of a shortest path there, or of one that ends with the link `over`.
    fn towards_below(&self, to: usize, over: Option<usize>) -> BTreeMap<usize, Hop> {
        let mut hops = BTreeMap::new();
        let mut frontier = VecDeque::from([to]);
        while let Some(router) = frontier.pop_front() {
            let may_end = |hop: &Hop| router != to || over.is_none_or(|link| hop.link == link);
            for hop in self.ports[router].iter().filter(|hop| hop.link < self.links.len() && may_end(hop)) {
                let is_new = hop.node != to && !self.hosts[hop.node] && !hops.contains_key(&hop.node);
                if is_new {
                    hops.insert(hop.node, Hop { node: router, link: hop.link });
                    frontier.push_back(hop.node);
                }
            }
        }
        hops
    }

    /// By router that datagrams for the gateway `to` pass: the port that leads there, without tunnels, and over the link called `over` at last.
    pub fn routes_below(&self, to: usize, over: Option<&str>) -> impl Iterator<Item = (usize, usize)> {
        let over = over.and_then(|name| self.link(name));
        self.towards_below(to, over).into_iter().map(|(router, hop)| (router, self.port_of(router, hop.link)))
    }

    /// The port of a node that `link` is attached to.
    fn port_of(&self, node: usize, link: usize) -> usize {
        // A node's links are in order.
        self.ports[node].partition_point(|hop| hop.link < link)
    }

    fn is_tunnel(&self, router: usize, port: usize) -> bool {
        self.ports[router][port].link >= self.links.len()
    }

    /// The routers that a router's ports lead to, with the ports.
    fn routers(&self, router: usize) -> impl Iterator<Item = (usize, usize)> {
        let hops = self.ports[router].iter().enumerate();
        hops.filter(|(_, hop)| !self.hosts[hop.node]).map(|(port, hop)| (port, hop.node))
    }

    fn find_parts(&mut self) {
        for first in 0..self.names.len() {
            if self.hosts[first] || self.parts[first] != usize::MAX {
                continue;
            }
            let mut found = vec![first];
            self.parts[first] = first;
            while let Some(router) = found.pop() {
                let near: Vec<usize> = self.routers(router).map(|(_, node)| node).collect();
                for node in near {
                    if self.parts[node] == usize::MAX {
                        self.parts[node] = first;
                        found.push(node);
                    }
                }
            }
        }
    }

    /// Takes routers with one other router off, and then those that have one left.
    fn find_uplinks(&mut self) {
        let near = |router| self.routers(router).map(|(_, node)| node).collect::<BTreeSet<_>>().len();
        let mut left: Vec<usize> = (0..self.names.len()).map(near).collect();
        // From the outside in, so that the core is in the middle.
        let mut twigs: VecDeque<usize> =
            (0..self.names.len()).filter(|&node| !self.hosts[node] && left[node] == 1).collect();
        while let Some(router) = twigs.pop_front() {
            // Of two that have only each other, the second stays.
            if left[router] != 1 {
                continue;
            }
            // Several links may join the two: the first is taken. What was taken off below hangs on this router.
            let is_above =
                |node: usize| self.uplinks[node].is_none_or(|port| self.ports[node][port].node != router);
            // A tunnel is taken before a link beside it.
            let above = self.routers(router).filter(|&(_, node)| is_above(node));
            let Some((port, above)) = above.min_by_key(|&(port, _)| !self.is_tunnel(router, port)) else {
                continue;
            };
            self.uplinks[router] = Some(port);
            left[router] = 0;
            left[above] -= 1;
            if left[above] == 1 {
                twigs.push_back(above);
            }
        }
    }

    /// For each router of the core that `root`, one of them, can be reached from, the port that leads there.
    fn towards(&self, root: usize) -> Rc<BTreeMap<usize, usize>> {
        if let Some(known) = self.towards.borrow().get(&root) {
            return Rc::clone(known);
        }
        let is_core = |&(_, node): &(usize, usize)| self.uplinks[node].is_none();
        let mut distances = BTreeMap::from([(root, 0_u32)]);
        let mut frontier = VecDeque::from([(root, 0)]);
        while let Some((router, distance)) = frontier.pop_front() {
            for (_, node) in self.routers(router).filter(is_core) {
                distances.entry(node).or_insert_with(|| {
                    frontier.push_back((node, distance + 1));
                    distance + 1
                });
            }
        }
        let nearer = |(&router, &distance): (&usize, &u32)| {
            let is_nearer =
                |&(_, node): &(usize, usize)| distances.get(&node).is_some_and(|&d| d + 1 == distance);
            let ways = self.routers(router).filter(is_core).filter(is_nearer);
            let (port, _) = ways.min_by_key(|&(port, _)| !self.is_tunnel(router, port))?;
            Some((router, port))
        };
        let ports = Rc::new(distances.iter().filter_map(nearer).collect::<BTreeMap<_, _>>());
        self.towards.borrow_mut().insert(root, Rc::clone(&ports));
        ports
    }
}

/// Nodes and the links that they take from one to another, where each knows its next hop.
fn follow(hops: &BTreeMap<usize, Hop>, from: usize, to: usize) -> Option<Vec<(usize, usize)>> {
    let mut way = Vec::new();
    let mut at = from;
    while at != to {
        let hop = *hops.get(&at)?;
        way.push((at, hop.link));
        at = hop.node;
    }
    Some(way)
}

#[cfg(test)]
mod tests;
