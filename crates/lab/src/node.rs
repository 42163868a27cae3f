//! The things that a network is made of.
//!
//! A [`Host`] runs TCP and applications, a [`Router`] forwards, a [`Gateway`] is a router at which a tunnel ends, a [`Wire`] is a clean duplex line that carries
//! packets as they are, and a [`Link`] is a duplex line between two endpoints of a link-layer protocol.

mod gateway;
mod host;
mod link;
mod proxy_side;
mod router;
mod wire;

use std::collections::VecDeque;

use base::Instant;

use crate::engine::{Context, Input, Node, Port};

pub use gateway::{Gateway, UDP_PORT};
pub use host::Host;
pub use link::{Buffered, Counters as LinkCounters, FIRST_PATH, FrameCost, Link, LinkEnd, Stream};
pub use router::{Counters as RouterCounters, Router};
pub use wire::{Counters as WireCounters, Meddler, Wire, WireEnd};

/// Any node of a scenario's network. Wires stand in it themselves: in a large network most events are theirs, and each has to
/// look for one place in memory less.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are about as many wires as hosts")]
pub enum Element {
    /// Runs TCP and applications.
    Host(Box<Host>),
    /// Forwards.
    Router(Box<Router>),
    /// Forwards, and is an end of a tunnel.
    Gateway(Box<Gateway>),
    /// Carries packets as they are.
    Wire(Wire),
    /// Carries packets in the frames of a link-layer protocol.
    Link(Box<Link>),
}

impl Element {
    /// Bytes of memory that connections and packets take in it, but for those that a line carries.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::Host(host) => host.tcp().memory(),
            Self::Gateway(gateway) => gateway.tunnels().map(|(_, tunnel)| tunnel.memory()).sum(),
            Self::Link(link) => [Port(0), Port(1)].map(|port| link.end(port).memory()).iter().sum(),
            Self::Router(_) | Self::Wire(_) => 0,
        }
    }
}

impl Node for Element {
    #[inline]
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match self {
            Self::Host(node) => node.handle(cx, input),
            Self::Router(node) => node.handle(cx, input),
            Self::Gateway(node) => node.handle(cx, input),
            Self::Wire(node) => node.handle(cx, input),
            Self::Link(node) => node.handle(cx, input),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(node) => node.poll_timeout(),
            Self::Router(node) => node.poll_timeout(),
            Self::Gateway(node) => node.poll_timeout(),
            Self::Wire(node) => node.poll_timeout(),
            Self::Link(node) => node.poll_timeout(),
        }
    }
}

/// The earlier of two deadlines, where none is later than any.
#[inline]
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// What the path of a line did to packets, and which of several error models hit how many, by name; nothing for most lines.
fn reported(prefix: &str, line: &channel::Line) -> impl Iterator<Item = (String, u64)> {
    let path = line.path_counters().map(|counters| counters.named());
    let path = path.into_iter().flatten().map(move |(name, count)| (format!("{prefix}{name}"), count));
    let hits = line.hits().iter().enumerate();
    path.chain(hits.map(move |(model, count)| (format!("{prefix}hit-by-errors-{}", model + 1), *count)))
}

/// Puts what has left where it belongs in the order of arrival, behind what arrives at the same time.
#[inline]
fn insert_by_arrival<T>(in_flight: &mut VecDeque<T>, sent: T, arrival: impl Fn(&T) -> Instant) {
    match in_flight.back() {
        // The ring starts over: a line that is mostly empty uses the same memory for each.
        None => in_flight.clear(),
        Some(last) if arrival(last) <= arrival(&sent) => {}
        Some(_) => {
            let place = in_flight.partition_point(|other| arrival(other) <= arrival(&sent));
            return in_flight.insert(place, sent);
        }
    }
    in_flight.push_back(sent);
}

/// Counters with their full names.
fn named(prefix: &str, counters: &[(&'static str, u64)]) -> impl Iterator<Item = (String, u64)> + use<> {
    let named = |(name, count): &(&str, u64)| (format!("{prefix}{name}"), *count);
    counters.iter().map(named).collect::<Vec<_>>().into_iter()
}
