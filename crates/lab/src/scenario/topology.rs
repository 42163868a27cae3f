//! What a scenario's network looks like: names, neighbours, paths, and whether it all makes sense.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Link, Scenario, Traffic};

/// Something in a scenario that cannot be, with the value to look for in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nonsense {
    pub(super) value: String,
    pub(super) message: String,
}

impl Traffic {
    /// The hosts that it runs between.
    #[must_use]
    pub fn hosts(&self) -> [&str; 2] {
        match self {
            Self::Bulk(bulk) => [&bulk.from, &bulk.to],
        }
    }
}

impl Scenario {
    /// Every node that a link names, in order.
    #[must_use]
    pub fn node_names(&self) -> BTreeSet<&str> {
        self.link.values().flat_map(|link| &link.ends).map(String::as_str).collect()
    }

    /// The nodes that links join to `node`, and those links' names, in the order of the links' names.
    pub fn neighbours<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.link.iter().filter_map(move |(name, link)| match &link.ends {
            [a, b] if a == node => Some((b.as_str(), name.as_str())),
            [a, b] if b == node => Some((a.as_str(), name.as_str())),
            _ => None,
        })
    }

    /// The links of a shortest path, each with whether it is crossed from its first end to its second.
    #[must_use]
    pub fn path<'a>(&'a self, from: &'a str, to: &'a str) -> Option<Vec<(&'a str, &'a Link, bool)>> {
        let mut came_by: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        let mut frontier = VecDeque::from([from]);
        while let Some(node) = frontier.pop_front() {
            if node != from && self.is_host(node) {
                continue;
            }
            for (neighbour, link) in self.neighbours(node) {
                if neighbour != from && !came_by.contains_key(neighbour) {
                    came_by.insert(neighbour, (node, link));
                    frontier.push_back(neighbour);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let &(before, name) = came_by.get(at)?;
            let link = &self.link[name];
            path.push((name, link, link.ends[0] == before));
            at = before;
        }
        path.reverse();
        Some(path)
    }

    fn is_host(&self, node: &str) -> bool {
        self.traffic.values().any(|traffic| traffic.hosts().contains(&node))
    }

    /// Looks for what the types could not refuse.
    pub(super) fn check(&self) -> Result<(), Nonsense> {
        let nonsense = |value: &str, message: String| Err(Nonsense { value: value.to_owned(), message });
        let nodes = self.node_names();
        let listed = nodes.iter().copied().collect::<Vec<_>>().join(", ");
        for (name, link) in &self.link {
            if link.ends[0] == link.ends[1] {
                return nonsense(
                    &link.ends[0],
                    format!("link \"{name}\" joins a node to itself; its ends must differ"),
                );
            }
        }
        if self.traffic.is_empty() {
            return nonsense("", "no traffic: add a table like [traffic.download.bulk]".to_owned());
        }
        for (name, traffic) in &self.traffic {
            let [from, to] = traffic.hosts();
            for host in [from, to] {
                if !nodes.contains(host) {
                    return nonsense(
                        host,
                        format!("traffic \"{name}\" names no node of a link; allowed are {listed}"),
                    );
                }
                if self.neighbours(host).count() != 1 {
                    return nonsense(host, format!("host \"{host}\" must have exactly one link"));
                }
            }
            if from == to {
                return nonsense(from, format!("traffic \"{name}\" needs two different hosts"));
            }
            if self.path(from, to).is_none() {
                return nonsense(from, format!("no path from \"{from}\" to \"{to}\""));
            }
        }
        Ok(())
    }
}
