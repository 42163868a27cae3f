//! What leads packets into the TUN device, and what stands behind it when the device is gone.
//!
//! A network's route goes into the main table, beside what is there: nothing is replaced. A default route goes into a table of its
//! own, as `wg-quick` does it. Two rules lead there: what the main table knows better than by a default route of its own stays as it
//! is, and everything else is looked up in this table, except for what the carrier itself sends.
//!
//! The carrier's datagrams are told by their port: a mark on them would have to be put on answers too, by a firewall. Where a strict
//! reverse-path filter asks the rules in the name of answers, which it does without ports, this host's packets to the peers' addresses
//! take the way that there was before.
//!
//! All that is set has a protocol number of its own (76) and a number that comes from the device's name. So whoever starts later finds what a killed
//! gateway has left.

mod entry;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use base::Prefix;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteMessage, RouteProtocol};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Netlink, index_of};
use crate::tun::family;
use entry::{Entry, Matching, Owner, Target};

/// Who has set a route or a rule, in the kernel's list: a number that nobody else has so far.
const PROTOCOL: u8 = 76;
/// Tables, priorities of rules, and metrics of routes that only stand behind others: from here on.
const FIRST_NUMBER: u32 = 30_000;
/// Devices' names are told apart by this many pairs of numbers.
const PAIRS: u64 = 1000;
/// `IPPROTO_UDP`.
const UDP: u8 = 17;

/// What is led into a device.
#[derive(Clone, Debug)]
pub struct Routing {
    device: String,
    networks: Vec<Prefix>,
    /// Where the carrier's datagrams come from, if it sends any.
    carrier: Option<SocketAddr>,
    /// Whether packets to the networks go nowhere else when the device is gone.
    drops: bool,
    /// Where peers are, if a filter asks for the way there.
    peers: Vec<Ipv4Addr>,
    has_strict_filter: bool,
}

/// Why packets cannot be led into a device.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// Somebody else has set such a route.
    #[error(
        "there is a route to {0} already, which is not replaced; allowed in [tun] routes are networks without one, or one with another \
         metric, or remove it: ip route del {0}"
    )]
    Taken(Prefix),
    /// Another device's name leads to the same numbers.
    #[error("table {table} is in use by another device; allowed is another name in [tun]")]
    Collision {
        /// The routing table's number.
        table: u32,
    },
    /// What the kernel says.
    #[error("{what}: {error}")]
    Kernel {
        /// What was to be set.
        what: String,
        /// What it says of that.
        error: io::Error,
    },
    /// It cannot even be asked.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Routing {
    /// For a device of this name, around a carrier whose datagrams leave from there.
    #[must_use]
    pub fn new(device: &str, networks: &[Prefix], carrier: Option<SocketAddr>, drops: bool) -> Self {
        let mut distinct: Vec<Prefix> = Vec::new();
        for network in networks.iter().map(|network| Prefix { address: network.masked(), ..*network }) {
            if !distinct.contains(&network) {
                distinct.push(network);
            }
        }
        let has_strict_filter = has_strict_filter().unwrap_or(false);
        Self {
            device: device.to_owned(),
            networks: distinct,
            carrier,
            drops,
            peers: Vec::new(),
            has_strict_filter,
        }
    }

    /// Goes around peers at these addresses from the next [`Routing::set`] on, where that is not done by the port.
    pub fn go_around(&mut self, peers: impl Iterator<Item = IpAddr>) {
        let strict = peers.filter(|_| self.has_strict_filter);
        self.peers =
            strict.filter_map(|address| if let IpAddr::V4(it) = address { Some(it) } else { None }).collect();
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Where the carrier's datagrams come from.
    #[must_use]
    pub const fn carrier(&self) -> Option<SocketAddr> {
        self.carrier
    }

    /// Whether something is set for a device of this name, by an earlier gateway perhaps.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn is_set(name: &str) -> io::Result<bool> {
        let ours = Owner::of(name).list(&Netlink::open()?, index_of(name).ok())?;
        Ok(!ours.is_empty())
    }

    /// Whether default routes are among the networks.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.networks.iter().any(|network| network.len == 0)
    }

    /// This routing without the default routes among its networks.
    #[must_use]
    pub fn without_default(mut self) -> Self {
        self.networks.retain(|network| network.len > 0);
        self
    }

    /// Sets all of it, as far as it is not set yet.
    ///
    /// # Errors
    /// Somebody else's route is in the way, or the kernel refuses.
    pub fn set(&self) -> Result<(), RoutingError> {
        let kernel = Netlink::open()?;
        let index = index_of(&self.device)?;
        let owner = Owner::of(&self.device);
        let ours = owner.list(&kernel, Some(index))?;
        if let Some(table) = owner.others_table(&kernel, index)? {
            return Err(RoutingError::Collision { table });
        }
        let entries = self.entries(index, owner);
        for entry in &entries {
            if ours.iter().any(|message| entry.is(message)) {
                continue;
            }
            match kernel.request(entry.message(), NLM_F_CREATE | NLM_F_EXCL) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => match entry {
                    Entry::Route { network, .. } => return Err(RoutingError::Taken(*network)),
                    Entry::Rule { .. } => {}
                },
                Err(error) => return Err(RoutingError::Kernel { what: entry.to_string(), error }),
            }
        }
        // What an earlier gateway has left goes last, so that nothing leaves in between.
        let is_wanted = |message: &_| entries.iter().any(|entry| entry.is(message));
        Ok(remove(&kernel, ours.into_iter().filter(|message| !is_wanted(message)).collect())?)
    }

    /// Takes away all that a gateway of the device `name` has set, an earlier one too.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn clear(name: &str) -> io::Result<()> {
        let kernel = Netlink::open()?;
        remove(&kernel, Owner::of(name).list(&kernel, index_of(name).ok())?)
    }

    /// Whether what the carrier sends to `to` would go into the device.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn loops(&self, to: SocketAddr) -> io::Result<bool> {
        let index = index_of(&self.device)?;
        Ok(Way::to(to, self.carrier.map(|it| it.port()), false)?.is_some_and(|way| way.device == Some(index)))
    }

    /// All that is to be set, in this order: rules come when their table is complete.
    fn entries(&self, index: u32, owner: Owner) -> Vec<Entry> {
        let mut entries = Vec::new();
        for &network in &self.networks {
            let table = if network.len == 0 { owner.table() } else { entry::MAIN };
            let mut route = |target| entries.push(Entry::Route { network, table, target });
            route(Target::Device(index));
            if self.drops {
                route(Target::Nowhere(owner.metric()));
            }
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            if self.networks.iter().any(|it| it.len == 0 && crate::tun::family(it.address) == family) {
                let mut rule = |matching| entries.push(Entry::Rule { family, owner, matching });
                if family == AddressFamily::Inet {
                    self.peers.iter().for_each(|peer| rule(Matching::Peer(*peer)));
                }
                rule(Matching::Known);
                // A socket of IPv6 sends in both.
                let sends = |it: &SocketAddr| it.is_ipv6() || family == AddressFamily::Inet;
                rule(Matching::AllBut(self.carrier.filter(sends).map(|it| it.port())));
            }
        }
        entries
    }
}

/// Whether a device takes only what it would itself be the way back for: `rp_filter` is 1.
fn has_strict_filter() -> io::Result<bool> {
    // The larger of both counts, and 2 is not strict.
    let of_all = reverse_path_filter("all")?;
    for device in fs::read_dir(DEVICES)? {
        if of_all.max(reverse_path_filter(device?.file_name())?) == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the kernel has about each device, beside `all` and `default`.
const DEVICES: &str = "/proc/sys/net/ipv4/conf";

/// A device's `rp_filter`.
///
/// # Errors
/// There is no such device.
pub(crate) fn reverse_path_filter(device: impl AsRef<Path>) -> io::Result<u8> {
    let text = fs::read_to_string(Path::new(DEVICES).join(device).join("rp_filter"))?;
    Ok(text.trim().parse().unwrap_or_default())
}

/// Removes routes and rules.
fn remove(kernel: &Netlink, mut messages: Vec<RouteNetlinkMessage>) -> io::Result<()> {
    // Rules first: without its rules nobody asks the table.
    messages.sort_by_key(|message| matches!(message, RouteNetlinkMessage::NewRoute(_)));
    for message in messages {
        let removal = match message {
            RouteNetlinkMessage::NewRule(rule) => RouteNetlinkMessage::DelRule(rule),
            RouteNetlinkMessage::NewRoute(route) => RouteNetlinkMessage::DelRoute(route),
            _ => continue,
        };
        match kernel.request(removal, 0) {
            // It has gone by itself, with its device.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {}
            result => drop(result?),
        }
    }
    Ok(())
}

/// How packets get somewhere now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The number of the device that they leave through.
    pub device: Option<u32>,
    /// The length of the prefix by which they find it, where the kernel tells.
    pub matched: u8,
}

impl Way {
    /// How datagrams from `port` get to `to`, `None` if not at all. With `by_route` it is the route that is looked at, and not what comes
    /// of it.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn to(to: SocketAddr, port: Option<u16>, by_route: bool) -> io::Result<Option<Self>> {
        let mut question = RouteMessage::default();
        question.header.address_family = family(to.ip());
        question.header.destination_prefix_length = if to.is_ipv4() { 32 } else { 128 };
        if by_route {
            question.header.flags = RouteFlags::FibMatch;
        }
        question.attributes = vec![
            RouteAttribute::Destination(entry::address(to.ip())),
            RouteAttribute::IpProto(UDP),
            RouteAttribute::Dport(to.port()),
        ];
        question.attributes.extend(port.map(RouteAttribute::Sport));
        let answers = match Netlink::open()?.request(RouteNetlinkMessage::GetRoute(question), 0) {
            Ok(answers) => answers,
            Err(error) if is_no_way(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(Self {
                device: route.attributes.iter().find_map(|attribute| match attribute {
                    RouteAttribute::Oif(index) => Some(*index),
                    _ => None,
                }),
                matched: route.header.destination_prefix_length,
            }),
            _ => None,
        }))
    }
}

fn is_no_way(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL | libc::EAFNOSUPPORT)
    )
}

/// Whether a gateway has set this rule.
pub(crate) fn is_ours(rule: &RuleMessage) -> bool {
    rule.attributes.contains(&RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)))
}
