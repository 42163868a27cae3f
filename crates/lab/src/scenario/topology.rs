//! What a scenario's network looks like: names, neighbours, paths, and whether it all makes sense.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::Duration;
use channel::ErrorModel;

use super::{Bulk, Framing, Link, Scenario, Traffic};

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
        if !(1..=MAX_SEEDS).contains(&self.seeds) {
            return nonsense("", format!("{} seeds; allowed are 1 to {MAX_SEEDS}", self.seeds));
        }
        if self.duration.is_zero() || self.duration > MAX_DURATION {
            let value = self.duration;
            return nonsense("", format!("a duration of {value}; allowed are more than 0 s, up to 87600 h"));
        }
        self.check_links()?;
        if self.traffic.is_empty() {
            return nonsense("", "no traffic: add a table like [traffic.download.bulk]".to_owned());
        }
        self.check_connections()?;
        self.check_order()?;
        self.traffic.iter().try_for_each(|(name, traffic)| self.check_hosts(name, traffic))
    }

    fn check_links(&self) -> Result<(), Nonsense> {
        let names = self.link.keys().chain(self.traffic.keys()).map(String::as_str);
        for name in names.chain(self.node_names()) {
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
                return nonsense(name, format!("the name \"{name}\"; allowed are letters, digits, - and _"));
            }
        }
        for (name, link) in &self.link {
            if link.ends[0] == link.ends[1] {
                return nonsense(
                    &link.ends[0],
                    format!("link \"{name}\" joins a node to itself; its ends must differ"),
                );
            }
            check_framing(name, link)?;
            if link.protocol.is_none() && !link.once_dscp.is_empty() {
                let message = format!(
                    "link \"{name}\" has once-dscp and no protocol; allowed is a protocol, or no such key"
                );
                return nonsense("", message);
            }
            if link.channel.delay > MAX_DELAY {
                let delay = link.channel.delay;
                return nonsense(
                    "",
                    format!("link \"{name}\" has a delay of {delay}; allowed are up to 1 h"),
                );
            }
        }
        Ok(())
    }

    fn check_connections(&self) -> Result<(), Nonsense> {
        let mut all = 0_u64;
        for (name, traffic) in &self.traffic {
            let complain =
                |value: &str, message: &str| nonsense(value, format!("traffic \"{name}\" {message}"));
            // Transactions share one port; their requests and replies are two streams.
            let (count, last_opens) = match traffic {
                Traffic::Bulk(bulk) => {
                    let last = bulk.opens_after(bulk.connections.saturating_sub(1));
                    (bulk.connections, last.saturating_add(bulk.jitter))
                }
                Traffic::Rate(source) => {
                    let last = source.opens_after(source.connections.saturating_sub(1));
                    (source.connections, last.saturating_add(source.jitter))
                }
                Traffic::Transactions(transactions) => (2, transactions.start),
            };
            all += u64::from(count);
            if count == 0 || all > MAX_CONNECTIONS {
                return complain(
                    "",
                    &format!("has {count} connections; allowed are 1 to {MAX_CONNECTIONS} in all"),
                );
            }
            let complaint = match traffic {
                Traffic::Bulk(bulk) if bulk.size.is_some_and(|size| size.0 == 0) => {
                    return complain("0 B", "has no bytes; allowed are 1 B and more");
                }
                Traffic::Bulk(_) => None,
                Traffic::Rate(source) => source.complaint(self.network),
                Traffic::Transactions(transactions) => transactions.complaint(),
            };
            if let Some(complaint) = complaint {
                return complain("", &complaint);
            }
            if last_opens >= self.duration {
                return complain("", &format!("opens after the run's end at {}", self.duration));
            }
        }
        Ok(())
    }

    /// What waits must know what it waits for, and that must end.
    fn check_order(&self) -> Result<(), Nonsense> {
        for (name, traffic) in &self.traffic {
            let Traffic::Bulk(bulk) = traffic else { continue };
            let complain =
                |value: &str, message: &str| nonsense(value, format!("traffic \"{name}\" {message}"));
            if bulk.in_turn && bulk.size.is_none() {
                return complain("", "has connections in turn that never end; give it a size");
            }
            let Some(after) = &bulk.after else { continue };
            let Some(Traffic::Bulk(before)) = self.traffic.get(after) else {
                let others = self.traffic.iter().filter(|(other, _)| *other != name);
                let bulk = others.filter(|(_, other)| matches!(other, Traffic::Bulk(_)));
                let known = bulk.map(|(other, _)| other.as_str()).collect::<Vec<_>>().join(", ");
                return complain(after, &format!("waits for no bulk transfer; allowed are {known}"));
            };
            if before.size.is_none() {
                return complain(after, "waits for one that never ends; give that a size");
            }
            if ![&before.from, &before.to].contains(&&bulk.opener().to_owned()) {
                let opener = bulk.opener();
                return complain(
                    after,
                    &format!("waits for one that \"{opener}\", which opens it, has no part in"),
                );
            }
            // As many steps as there are transfers lead out of any chain, but not out of a circle.
            let step = |at: &Bulk| match self.traffic.get(at.after.as_ref()?)? {
                Traffic::Bulk(before) => Some(before),
                Traffic::Rate(_) | Traffic::Transactions(_) => None,
            };
            let mut at = Some(before);
            for _ in 0..self.traffic.len() {
                at = at.and_then(step);
            }
            if at.is_some() {
                return complain(after, "waits, in the end, for itself");
            }
        }
        Ok(())
    }

    fn check_hosts(&self, name: &str, traffic: &Traffic) -> Result<(), Nonsense> {
        let nodes = self.node_names();
        let listed = nodes.iter().copied().collect::<Vec<_>>().join(", ");
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
        Ok(())
    }
}

/// Frames on a stream of bits need a protocol that makes them, and errors that are wrong bits.
fn check_framing(name: &str, link: &Link) -> Result<(), Nonsense> {
    let framing = match link.framing {
        Framing::Ideal => return Ok(()),
        Framing::Efl => "efl",
        Framing::EncryptedEfl => "encrypted-efl",
    };
    if link.protocol.is_none() {
        let message =
            format!("link \"{name}\" has a framing and no protocol; allowed is \"ideal\", or a protocol");
        return nonsense(framing, message);
    }
    let channel = &link.channel;
    let mut errors = core::iter::once(&channel.errors).chain(&channel.up_errors);
    if errors.any(|errors| matches!(errors, ErrorModel::Erasure { .. })) {
        let message = format!(
            "link \"{name}\" loses whole frames, which a stream of bits does not have; allowed are other errors, or \
             framing = \"ideal\""
        );
        return nonsense(framing, message);
    }
    Ok(())
}

fn nonsense(value: &str, message: String) -> Result<(), Nonsense> {
    Err(Nonsense { value: value.to_owned(), message })
}

/// Replications. Ours: more are better run as several scenarios.
const MAX_SEEDS: u32 = 100_000;
/// Ten years: times well inside the clock's range.
const MAX_DURATION: Duration = Duration::from_secs(87_600 * 3600);
/// The light takes an hour to Jupiter.
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// One port each, from 5001 upwards.
const MAX_CONNECTIONS: u64 = 60_000;
