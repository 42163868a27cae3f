use super::*;
use proptest::prelude::*;

/// A scenario with these links, the ends of which are routers `r0`, `r1`, ..., and hosts at these routers, each of which
/// exchanges something with the one after it.
fn scenario(links: &[(usize, usize)], hosts: &[usize]) -> Scenario {
    let mut text = "name = \"t\"\nduration = \"1 s\"\n".to_owned();
    let mut link = |name: String, a: String, b: String| {
        text += &format!(
            "[link.{name}]\nends = [\"{a}\", \"{b}\"]\nchannel = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n"
        );
    };
    for (number, (a, b)) in links.iter().enumerate() {
        // Names in another order than numbers.
        link(format!("l{}", number * 7 % 41), format!("r{a}"), format!("r{b}"));
    }
    for (number, router) in hosts.iter().enumerate() {
        link(format!("k{number}"), format!("h{number}"), format!("r{router}"));
    }
    for host in 1..hosts.len() {
        text += &format!("[traffic.t{host}.bulk]\nfrom = \"h{}\"\nto = \"h{host}\"\n", host - 1);
    }
    base::config::parse("t.toml", &text).unwrap()
}

/// The path by a breadth-first search from `from` over the whole network, which takes the neighbours of a node by the
/// names of the links.
fn searched<'a>(topology: &Topology<'a>, from: usize, to: usize) -> Option<Vec<Crossing<'a>>> {
    let mut came_by: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut frontier = VecDeque::from([from]);
    while let Some(node) = frontier.pop_front() {
        if node != from && topology.hosts[node] {
            continue;
        }
        for hop in &topology.ports[node] {
            if hop.node != from && !came_by.contains_key(&hop.node) {
                came_by.insert(hop.node, (node, hop.link));
                frontier.push_back(hop.node);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        let &(before, link) = came_by.get(&at)?;
        path.push(topology.crossing(before, link, None));
        at = before;
    }
    path.reverse();
    Some(path)
}

/// The names of the links that packets really take, router by router.
fn routed<'a>(topology: &Topology<'a>, routes: &[Routes], from: usize, to: usize) -> Option<Vec<&'a str>> {
    let mut path = Vec::new();
    let mut hop = topology.ports[from][0];
    loop {
        path.push(topology.links[hop.link].0);
        if hop.node == to {
            return Some(path);
        }
        if topology.hosts[hop.node] || path.len() > topology.names.len() {
            return None;
        }
        let routes = &routes[hop.node];
        let known = routes.to.iter().find(|(host, _)| *host == to).map(|&(_, port)| port);
        hop = topology.ports[hop.node][known.or(routes.otherwise)?];
    }
}

proptest! {
    /// Against a search over everything: in any network, with twigs, rings, several links between two routers and parts
    /// that nothing joins, the path is the first of the shortest ones, and packets take it.
    #[test]
    fn paths_and_routes_are_those_of_a_full_search(
        links in proptest::collection::vec((0_usize..9, 0_usize..9), 1..16),
        hosts in proptest::collection::vec(0_usize..9, 2..7),
    ) {
        let links: Vec<_> = links.into_iter().filter(|(a, b)| a != b).collect();
        let scenario = scenario(&links, &hosts);
        let topology = Topology::new(&scenario);
        let routes = topology.routes();
        let name = |crossing: &Crossing<'_>| (crossing.name.to_owned(), crossing.forward);
        let names = |path: &[Crossing<'_>]| path.iter().map(name).collect::<Vec<_>>();
        let names_of_all = |path: &[Stage<'_>]| path.iter().flat_map(Stage::links).map(name).collect::<Vec<_>>();
        for from in topology.hosts() {
            for to in topology.hosts().filter(|&to| to != from) {
                let expected = searched(&topology, from, to);
                let path = topology.path(topology.names[from], topology.names[to]);
                prop_assert_eq!(path.as_deref().map(names_of_all), expected.as_deref().map(names));
                prop_assert_eq!(topology.reaches(from, to), expected.is_some());
                if let Some(expected) = expected {
                    let links: Vec<&str> = expected.iter().map(|crossing| crossing.name).collect();
                    prop_assert_eq!(routed(&topology, &routes, from, to), Some(links));
                }
            }
        }
    }
}

/// Goal: the arms of a star know one way, and only the hub knows them all.
#[test]
fn a_star_of_routers_has_few_routes() {
    let links: Vec<_> = (1..40).map(|arm| (0, arm)).collect();
    let hosts: Vec<_> = (1..40).collect();
    let scenario = scenario(&links, &hosts);
    let topology = Topology::new(&scenario);
    let known: usize = topology.routes().iter().map(|routes| routes.to.len()).sum();
    assert_eq!(known, 2 * hosts.len());
}
