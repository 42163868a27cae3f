//! A router: looks up the destination, takes a hop off, forwards.

use core::net::IpAddr;
use std::collections::BTreeMap;

use base::wire::ip;
use base::{Instant, Packet};
use rustc_hash::FxHashMap;

use super::named;
use crate::engine::{Context, Input, Node, Port};

/// Forwards packets by destination address. Queues belong to the links that it is attached to.
#[derive(Debug, Default)]
pub struct Router {
    routes: FxHashMap<IpAddr, Port>,
    /// Where packets for all other destinations go.
    otherwise: Option<Port>,
    counters: Counters,
}

/// What a router dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets forwarded.
    pub forwarded: u64,
    /// Not an IP packet.
    pub malformed: u64,
    /// No route to the destination.
    pub no_route: u64,
    /// No hops left.
    pub hops_exceeded: u64,
}

impl Router {
    /// A router that sends all packets out of the port `otherwise`, or drops them if there is none.
    #[must_use]
    pub fn new(otherwise: Option<Port>) -> Self {
        Self { otherwise, ..Self::default() }
    }

    /// Sends packets for `destination` out of `port`.
    pub fn add_route(&mut self, destination: IpAddr, port: Port) {
        self.routes.insert(destination, port);
    }

    /// The counters by name.
    #[must_use]
    pub fn report(&self) -> BTreeMap<String, u64> {
        let Counters { forwarded, malformed, no_route, hops_exceeded } = self.counters;
        let counters = [
            ("packets-forwarded", forwarded),
            ("packets-malformed", malformed),
            ("packets-without-route", no_route),
            ("packets-without-hops", hops_exceeded),
        ];
        named("", &counters).collect()
    }

    /// Takes a hop off a packet and tells where it goes on; `None` drops it.
    #[inline]
    pub(super) fn route(&mut self, packet: &mut Packet) -> Option<Port> {
        let Ok(view) = ip::View::parse(packet) else {
            self.counters.malformed += 1;
            return None;
        };
        let Some(port) = self.routes.get(&view.dst()).copied().or(self.otherwise) else {
            self.counters.no_route += 1;
            return None;
        };
        match ip::decrement_hops(packet) {
            Ok(1..) => {
                self.counters.forwarded += 1;
                Some(port)
            }
            Ok(0) | Err(_) => {
                self.counters.hops_exceeded += 1;
                None
            }
        }
    }

    /// Where packets for `destination` go.
    pub(super) fn port_for(&self, destination: IpAddr) -> Option<Port> {
        self.routes.get(&destination).copied().or(self.otherwise)
    }

    /// What was forwarded and dropped.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

impl Node for Router {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        let Input::Arrival(_, mut packet) = input else { return };
        if let Some(port) = self.route(&mut packet) {
            cx.send(port, packet);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
