//! Whether a scenario makes sense as a whole: what its types could not refuse.

mod path;

use std::collections::{BTreeMap, BTreeSet};

use base::Duration;
use channel::{ErrorModel, duplex};
use link::MAX_LINES;

use super::topology::Topology;
use crate::node::FIRST_PATH;

use super::{Bulk, Framing, Link, LinkPath, Opener, PORTS, Scenario, Traffic, Transport};

/// Something in a scenario that cannot be, with the value to look for in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nonsense {
    pub(super) value: String,
    pub(super) message: String,
}

impl Traffic {
    /// The host that waits for its connections, or receives its datagrams.
    fn waiting_host(&self) -> &str {
        let [from, to] = self.hosts();
        let opener = match self {
            Self::Bulk(bulk) => bulk.opened_by,
            Self::Rate(source) if source.transport == Transport::Udp => Opener::Sender,
            Self::Rate(source) => source.opened_by.unwrap_or_default(),
            Self::Transactions(_) => Opener::Receiver,
        };
        match opener {
            Opener::Receiver => from,
            Opener::Sender => to,
        }
    }
}

impl Scenario {
    /// Looks for what the types could not refuse.
    pub(super) fn check(&self) -> Result<(), Nonsense> {
        if !(1..=MAX_SEEDS).contains(&self.seeds) {
            return nonsense("", format!("{} seeds; allowed are 1 to {MAX_SEEDS}", self.seeds));
        }
        if self.duration.is_zero() || self.duration > MAX_DURATION {
            let value = self.duration;
            return nonsense(
                "",
                format!("a duration of {value}; allowed are durations above 0 s and up to 87600 h"),
            );
        }
        self.check_links()?;
        self.check_dama()?;
        if self.traffic.is_empty() {
            return nonsense("", "no traffic: add a table like [traffic.download.bulk]".to_owned());
        }
        self.check_special_hosts()?;
        self.check_connections()?;
        self.check_order()?;
        self.check_hosts()?;
        self.check_tunnels()
    }

    fn check_links(&self) -> Result<(), Nonsense> {
        let names = self.link.keys().chain(self.traffic.keys()).chain(self.tunnel.keys()).map(String::as_str);
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
            check_paths(name, link)?;
            for way in link.ways(name) {
                let channel = way.channel;
                check_rate_changes(&way.owner, link, channel)?;
                path::check(&way.owner, link, channel)?;
                check_erasure_changes(&way.owner, channel)?;
                if channel.delay > MAX_DELAY {
                    let (name, delay) = (way.owner, channel.delay);
                    return nonsense(
                        "",
                        format!("link \"{name}\" has a delay of {delay}; allowed are delays up to 1 h"),
                    );
                }
            }
            for (key, is_there) in [
                ("once-dscp", !link.once_dscp.is_empty()),
                ("interactive-dscp", !link.interactive_dscp.is_empty()),
                ("datagram-age", !link.datagram_age.is_none()),
                ("sparse-flows", link.sparse_flows),
            ] {
                if link.protocol.is_none() && is_there {
                    let message = format!(
                        "link \"{name}\" has {key} but no protocol; allowed is a protocol, or no {key}"
                    );
                    return nonsense("", message);
                }
            }
        }
        Ok(())
    }

    fn check_special_hosts(&self) -> Result<(), Nonsense> {
        let hosts: BTreeSet<&str> = self.traffic.values().flat_map(Traffic::hosts).collect();
        let unknown = self.host.keys().find(|name| !hosts.contains(name.as_str()));
        unknown.map_or(Ok(()), |name| {
            let allowed = hosts.into_iter().collect::<Vec<_>>().join(", ");
            nonsense(name, format!("no traffic starts or ends at host \"{name}\"; allowed are {allowed}"))
        })
    }

    fn check_connections(&self) -> Result<(), Nonsense> {
        let mut all = 0_u64;
        // By host: the number of the first connection that it waits for.
        let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
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
            let waiting = traffic.waiting_host();
            let first = *waits.entry(waiting).or_insert(all);
            all += u64::from(count);
            if count == 0 || all > MAX_CONNECTIONS {
                return complain(
                    "",
                    &format!("has {count} connections; allowed are 1 to {MAX_CONNECTIONS} in all"),
                );
            }
            if all - first > u64::from(PORTS) {
                return complain(
                    waiting,
                    &format!(
                        "is connection {} from the first that \"{waiting}\" waits for; allowed are {PORTS}",
                        all - first
                    ),
                );
            }
            let complaint = match traffic {
                Traffic::Bulk(bulk) if bulk.size.is_some_and(|size| size.0 == 0) => {
                    return complain("0 B", "has no bytes; allowed are 1 B or more");
                }
                Traffic::Bulk(_) => None,
                Traffic::Rate(source) => source.complaint(self.network),
                Traffic::Transactions(transactions) => transactions.complaint(),
            };
            if let Some(complaint) = complaint {
                return complain("", &complaint);
            }
            if last_opens >= self.duration {
                return complain("", &format!("starts after the end of the run at {}", self.duration));
            }
        }
        Ok(())
    }

    /// What waits must know what it waits for, and that must end.
    fn check_order(&self) -> Result<(), Nonsense> {
        let mut known = BTreeSet::new();
        for (name, traffic) in &self.traffic {
            let Traffic::Bulk(bulk) = traffic else { continue };
            let complain =
                |value: &str, message: &str| nonsense(value, format!("traffic \"{name}\" {message}"));
            if bulk.at_once.is_some() && bulk.size.is_none() {
                return complain(
                    "",
                    "has several connections in turn, but the first never ends; give it a size",
                );
            }
            if bulk.largest.is_some_and(|largest| bulk.size.is_none_or(|size| largest < size)) {
                return complain(
                    "",
                    "has a largest connection that is smaller than its size; allowed are a size, and a largest connection of at least that",
                );
            }
            let Some(after) = &bulk.after else { continue };
            let Some(Traffic::Bulk(before)) = self.traffic.get(after) else {
                let others = self.traffic.iter().filter(|(other, _)| *other != name);
                let bulk = others.filter(|(_, other)| matches!(other, Traffic::Bulk(_)));
                let known = bulk.map(|(other, _)| other.as_str()).collect::<Vec<_>>().join(", ");
                return complain(
                    after,
                    &format!("waits for something that is not a bulk transfer; allowed are {known}"),
                );
            };
            if before.size.is_none() {
                return complain(after, "waits for a transfer that never ends; give that one a size");
            }
            if ![&before.from, &before.to].contains(&&bulk.opener().to_owned()) {
                let opener = bulk.opener();
                return complain(
                    after,
                    &format!(
                        "waits for a transfer in which \"{opener}\", which opens this one, takes no part"
                    ),
                );
            }
            if !self.waits_end(bulk, &mut known) {
                return complain(after, "waits for itself, directly or through others");
            }
        }
        Ok(())
    }

    /// Whether the chain of transfers that `bulk` waits for ends; those `known` to be on one that does are added to.
    fn waits_end<'a>(&'a self, bulk: &'a Bulk, known: &mut BTreeSet<&'a str>) -> bool {
        let mut chain = BTreeSet::new();
        let mut at = bulk;
        while let Some(after) = at.after.as_deref().filter(|after| !known.contains(after)) {
            let Some(Traffic::Bulk(before)) = self.traffic.get(after) else { break };
            if !chain.insert(after) {
                return false;
            }
            at = before;
        }
        known.append(&mut chain);
        true
    }

    fn check_hosts(&self) -> Result<(), Nonsense> {
        let topology = Topology::new(self);
        for (name, traffic) in &self.traffic {
            let mut numbers = [0; 2];
            for (host, number) in traffic.hosts().into_iter().zip(&mut numbers) {
                let Some(found) = topology.number(host) else {
                    let listed = topology.names().join(", ");
                    return nonsense(
                        host,
                        format!("traffic \"{name}\" names a node that no link has; allowed are {listed}"),
                    );
                };
                *number = found;
                if topology.degree(found) != 1 {
                    return nonsense(host, format!("host \"{host}\" must have exactly one link"));
                }
            }
            let [from, to] = traffic.hosts();
            if from == to {
                return nonsense(from, format!("traffic \"{name}\" needs two different hosts"));
            }
            if !topology.reaches(numbers[0], numbers[1]) {
                return nonsense(from, format!("no path from \"{from}\" to \"{to}\""));
            }
        }
        let crowded = (0..topology.names().len()).find(|&node| topology.degree(node) > MAX_LINKS);
        crowded.map_or(Ok(()), |node| {
            let (name, links) = (topology.names()[node], topology.degree(node));
            nonsense(name, format!("node \"{name}\" has {links} links; allowed are up to {MAX_LINKS}"))
        })
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
        let message = format!(
            "link \"{name}\" has a framing but no protocol; allowed is framing = \"ideal\", or a protocol"
        );
        return nonsense(framing, message);
    }
    let channel = &link.channel;
    let mut errors = core::iter::once(&channel.errors).chain(&channel.up_errors).flat_map(ErrorModel::each);
    if errors.any(|errors| matches!(errors, ErrorModel::Erasure { .. })) {
        let message = format!(
            "link \"{name}\" loses whole frames, which a stream of bits does not have; allowed are other errors, or \
             framing = \"ideal\""
        );
        return nonsense(framing, message);
    }
    Ok(())
}

/// Several paths need a protocol for several lines, and lines that are alike but for their channels.
fn check_paths(name: &str, link: &Link) -> Result<(), Nonsense> {
    let complain = |value: &str, message: String| nonsense(value, format!("link \"{name}\" {message}"));
    let Some(path) = link.path.keys().next() else { return Ok(()) };
    let wrong = link.path.keys().find(|path| {
        path.as_str() == FIRST_PATH
            || !path.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            || path.is_empty()
    });
    if let Some(path) = wrong {
        let message =
            format!("has a path \"{path}\"; allowed are letters, digits, - and _, but not \"{FIRST_PATH}\"");
        return complain(path, message);
    }
    if link.path.len() >= MAX_LINES {
        let message =
            format!("has {} paths beside its channel; allowed are {}", link.path.len(), MAX_LINES - 1);
        return complain(path, message);
    }
    if !link.protocol.is_some_and(|protocol| protocol.capabilities().several_lines) {
        let protocol = link.protocol.map_or("no protocol", |protocol| protocol.name());
        let message = format!(
            "has a path \"{path}\" beside its channel and {protocol}, which knows but one line; allowed are the protocols \
             \"coded\" and \"cotmll\", or no path"
        );
        return complain(path, message);
    }
    if link.framing != Framing::Ideal || link.dama.is_some() {
        let key = if link.dama.is_some() { "dama" } else { "a framing" };
        return complain(
            path,
            format!("has a path \"{path}\" beside its channel and {key}; allowed is only one of them"),
        );
    }
    let unlike = |path: &LinkPath| {
        let (own, theirs) = (&path.channel, &link.channel);
        let kinds =
            [&own.errors, &theirs.errors].map(|errors| errors.each().iter().any(ErrorModel::is_pooled));
        path.obstacles_after.is_some()
            && (own.errors != theirs.errors || own.up_errors != theirs.up_errors || kinds.contains(&true))
    };
    if let Some((path, _)) = link.path.iter().find(|(_, path)| unlike(path)) {
        let message = format!(
            "has a path \"{path}\" with obstacles-after and other errors than the channel's; allowed are the same, none of them pooled"
        );
        return complain("obstacles-after", message);
    }
    let idle = link.path.iter().find(|(_, path)| path.classes.is_empty());
    idle.map_or(Ok(()), |(path, _)| {
        let message =
            format!("has a path \"{path}\" with no classes; allowed are some of once, interactive, reliable");
        complain(path, message)
    })
}

/// Erasures change one time after the other.
fn check_erasure_changes(name: &str, channel: &duplex::Config) -> Result<(), Nonsense> {
    let both = core::iter::once(&channel.errors).chain(&channel.up_errors);
    for errors in both.flat_map(ErrorModel::each) {
        let ErrorModel::Erasure { changes, .. } = errors else { continue };
        if let Some([_, late]) =
            changes.windows(2).find(|pair| pair[1].at <= pair[0].at).and_then(|it| it.first_chunk())
        {
            let at = late.at;
            let message = format!(
                "link \"{name}\" changes its erasures at {at}; allowed are times in increasing order"
            );
            return nonsense("changes", message);
        }
    }
    Ok(())
}

/// Changes come one after the other, and errors must not depend on the rate that changes.
fn check_rate_changes(name: &str, link: &Link, channel: &duplex::Config) -> Result<(), Nonsense> {
    let mut before = Duration::ZERO;
    for change in &channel.rate_changes {
        if change.at <= before {
            let message = format!(
                "link \"{name}\" changes its rate at {}; allowed are times after 0 s, in increasing order",
                change.at
            );
            return nonsense("rate-changes", message);
        }
        before = change.at;
    }
    if channel.rate_changes.is_empty() {
        return Ok(());
    }
    if link.framing != Framing::Ideal {
        let message =
            format!("link \"{name}\" has rate-changes and a framing; allowed is framing = \"ideal\"");
        return nonsense("rate-changes", message);
    }
    let mut errors = core::iter::once(&channel.errors).chain(&channel.up_errors);
    if errors.any(ErrorModel::depends_on_rate) {
        let message = format!(
            "link \"{name}\" has rate-changes and bit errors; allowed are erasure, and blockages with c = 0 and b = 0.5"
        );
        return nonsense("rate-changes", message);
    }
    Ok(())
}

pub(super) fn nonsense(value: &str, message: String) -> Result<(), Nonsense> {
    Err(Nonsense { value: value.to_owned(), message })
}

/// Replications. Ours: more are better run as several scenarios.
pub(super) const MAX_SEEDS: u32 = 100_000;
/// Ten years: times well inside the clock's range.
const MAX_DURATION: Duration = Duration::from_secs(87_600 * 3600);
/// The light takes an hour to Jupiter.
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// Ours: more than any machine has the memory for.
const MAX_CONNECTIONS: u64 = 10_000_000;
/// As many ports as a node can number.
const MAX_LINKS: usize = u16::MAX as usize;
