//! A route or a rule of ours: what it says to the kernel, and how it is known again.

use core::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use base::Prefix;
use base::random::fnv1a;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use super::{FIRST_NUMBER, PAIRS, PROTOCOL};
use crate::netlink::Netlink;
use crate::tun::family;

/// The main table, in which everybody's routes are.
pub(super) const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// Whose routes and rules they are: a device's, by a number that comes from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u32);

/// A route or a rule that is to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Route { network: Prefix, table: u32, target: Target },
    Rule { family: AddressFamily, owner: Owner, matching: Matching },
}

/// Which packets a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matching {
    /// All that the main table knows better than by a default route: there they stay.
    Known,
    /// What this host sends to a peer, by the main table too.
    Peer(Ipv4Addr),
    /// All others but what this host sends from this port, by our table.
    AllBut(Option<u16>),
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Into the device with this number.
    Device(u32),
    /// Nowhere: senders are told so. With this metric, by which it stands behind the other.
    Nowhere(u32),
}

/// Zero stands for 1024 in IPv6.
const FIRST_METRIC_V6: u32 = 1;

impl Owner {
    pub(super) fn of(device: &str) -> Self {
        Self(FIRST_NUMBER + 2 * (fnv1a(device.as_bytes()) % PAIRS) as u32)
    }

    /// The table for default routes.
    pub(super) const fn table(self) -> u32 {
        self.0
    }

    /// The metric of routes that lead nowhere.
    pub(super) const fn metric(self) -> u32 {
        self.0
    }

    /// All of its routes and rules; routes into the device with the number `index` too.
    pub(super) fn list(self, kernel: &Netlink, index: Option<u32>) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut ours = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            ours.extend(self.rules(kernel, family)?);
            let routes = routes(kernel, family)?;
            ours.extend(
                routes.into_iter().filter(|route| self.has(route, index)).map(RouteNetlinkMessage::NewRoute),
            );
        }
        Ok(ours)
    }

    fn rules(self, kernel: &Netlink, family: AddressFamily) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut question = RuleMessage::default();
        question.header.family = family;
        let mut rules = listed(kernel, RouteNetlinkMessage::GetRule(question))?;
        rules.retain(|message| match message {
            RouteNetlinkMessage::NewRule(rule) => {
                let has = |wanted| rule.attributes.contains(&wanted);
                has(RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)))
                    && [self.0, self.0 + 1].into_iter().any(|number| has(RuleAttribute::Priority(number)))
            }
            _ => false,
        });
        Ok(rules)
    }

    fn has(self, route: &RouteMessage, index: Option<u32>) -> bool {
        let facts = Facts::of(route);
        facts.table == self.table()
            || facts.metric == self.metric()
            || (route.header.kind == RouteType::Unicast && index.is_some() && facts.device == index)
    }

    /// Its table, if another device's routes are in it.
    pub(super) fn others_table(self, kernel: &Netlink, index: u32) -> io::Result<Option<u32>> {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            for route in routes(kernel, family)? {
                let facts = Facts::of(&route);
                let is_elsewhere = facts.device.is_some_and(|device| device != index);
                if facts.table == self.table() && route.header.kind == RouteType::Unicast && is_elsewhere {
                    return Ok(Some(self.table()));
                }
            }
        }
        Ok(None)
    }
}

/// The routes that have [`PROTOCOL`].
fn routes(kernel: &Netlink, family: AddressFamily) -> io::Result<Vec<RouteMessage>> {
    let mut question = RouteMessage::default();
    question.header.address_family = family;
    question.header.protocol = RouteProtocol::Other(PROTOCOL);
    let listed = listed(kernel, RouteNetlinkMessage::GetRoute(question))?;
    Ok(listed
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        })
        .filter(|route| route.header.protocol == RouteProtocol::Other(PROTOCOL))
        .collect())
}

/// What the kernel lists; a kernel without the family has nothing.
fn listed(kernel: &Netlink, question: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    match kernel.request(question, NLM_F_DUMP) {
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::ENOENT)) =>
        {
            Ok(Vec::new())
        }
        result => result,
    }
}

/// What tells routes of ours apart.
struct Facts {
    table: u32,
    metric: u32,
    device: Option<u32>,
}

impl Facts {
    fn of(route: &RouteMessage) -> Self {
        let mut facts = Self { table: route.header.table.into(), metric: 0, device: None };
        for attribute in &route.attributes {
            match *attribute {
                RouteAttribute::Table(table) => facts.table = table,
                RouteAttribute::Priority(metric) => facts.metric = metric,
                RouteAttribute::Oif(index) => facts.device = Some(index),
                _ => {}
            }
        }
        facts
    }
}

impl Entry {
    /// What the kernel is told.
    pub(super) fn message(self) -> RouteNetlinkMessage {
        match self {
            Self::Route { network, table, target } => {
                RouteNetlinkMessage::NewRoute(route(network, table, target))
            }
            Self::Rule { family, owner, matching } => {
                RouteNetlinkMessage::NewRule(rule(family, owner, matching))
            }
        }
    }

    /// Whether the kernel's `message` says the same.
    pub(super) fn is(self, message: &RouteNetlinkMessage) -> bool {
        match (self, message) {
            (Self::Route { network, table, target }, RouteNetlinkMessage::NewRoute(route)) => {
                let facts = Facts::of(route);
                let leads_there = match target {
                    Target::Device(index) => {
                        route.header.kind == RouteType::Unicast && facts.device == Some(index)
                    }
                    Target::Nowhere(metric) => {
                        route.header.kind == RouteType::Unreachable && facts.metric == metric
                    }
                };
                leads_there
                    && facts.table == table
                    && route.header.address_family == family(network.address)
                    && route.header.destination_prefix_length == network.len
                    && destination(route).is_none_or(|it| it == address(network.address))
            }
            (Self::Rule { family, owner, matching }, RouteNetlinkMessage::NewRule(theirs)) => {
                let ours = rule(family, owner, matching);
                let is_inverted = |rule: &RuleMessage| rule.header.flags.contains(RuleFlags::Invert);
                theirs.header.family == family
                    && is_inverted(theirs) == is_inverted(&ours)
                    && ours.attributes.iter().all(|attribute| theirs.attributes.contains(attribute))
            }
            _ => false,
        }
    }
}

fn destination(route: &RouteMessage) -> Option<RouteAddress> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(address) => Some(address.clone()),
        _ => None,
    })
}

pub(super) fn address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn route(network: Prefix, table: u32, target: Target) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(network.address);
    route.header.destination_prefix_length = network.len;
    route.header.protocol = RouteProtocol::Other(PROTOCOL);
    route.attributes = vec![RouteAttribute::Table(table)];
    if network.len > 0 {
        route.attributes.push(RouteAttribute::Destination(address(network.address)));
    }
    match target {
        Target::Device(index) => {
            (route.header.kind, route.header.scope) = (RouteType::Unicast, RouteScope::Link);
            route.attributes.push(RouteAttribute::Oif(index));
            if !network.address.is_ipv4() {
                // Before those with usual metrics, as in IPv4, where none is the first.
                route.attributes.push(RouteAttribute::Priority(FIRST_METRIC_V6));
            }
        }
        Target::Nowhere(metric) => {
            route.header.kind = RouteType::Unreachable;
            route.attributes.push(RouteAttribute::Priority(metric));
        }
    }
    route
}

fn rule(family: AddressFamily, owner: Owner, matching: Matching) -> RuleMessage {
    let mut rule = RuleMessage::default();
    (rule.header.family, rule.header.action) = (family, RuleAction::ToTable);
    let (priority, table) = match matching {
        Matching::Known | Matching::Peer(_) => (owner.0, MAIN),
        Matching::AllBut(_) => (owner.0 + 1, owner.table()),
    };
    rule.attributes = vec![
        RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
        RuleAttribute::Priority(priority),
        RuleAttribute::Table(table),
    ];
    let from_here = RuleAttribute::Iifname("lo".to_owned());
    match matching {
        // Longer prefixes than this only.
        Matching::Known => rule.attributes.push(RuleAttribute::SuppressPrefixLen(0)),
        Matching::Peer(peer) => {
            rule.header.dst_len = 32;
            rule.attributes.extend([from_here, RuleAttribute::Destination(peer.into())]);
        }
        Matching::AllBut(None) => {}
        Matching::AllBut(Some(port)) => {
            rule.header.flags = RuleFlags::Invert;
            let ports = RulePortRange { start: port, end: port };
            rule.attributes.extend([
                from_here,
                RuleAttribute::IpProtocol(IpProtocol::Udp),
                RuleAttribute::SourcePortRange(ports),
            ]);
        }
    }
    rule
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route { network, table, target: Target::Device(_) } => {
                write!(f, "route to {network} in table {table}")
            }
            Self::Route { network, table, target: Target::Nowhere(_) } => {
                write!(f, "route of {network} to nowhere in table {table}")
            }
            Self::Rule { owner, .. } => write!(f, "rule to ask table {}", owner.table()),
        }
    }
}
