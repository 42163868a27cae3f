//! A worker: a hub with a part of the peers, a queue of the device and a socket of the carrier, for one thread.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use base::Instant;
use serde_json::{Value, json};
use tunnel::Hub;

use super::account::Part;
use super::complaints::Complaints;
use super::forwarding::Traffic;
use super::status::{add, named};
use super::workers::Post;
use tunnel::path::{CarrierId, MOST_CARRIERS};

use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::readiness::Interest;
use crate::tun::Tun;

/// What serves packets and datagrams. `forwarding` is what it does.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) clock: Clock,
    pub(super) tun: Tun,
    /// By the numbers of their paths.
    pub(super) carriers: Vec<Carrier>,
    path_names: Arc<[String]>,
    pub(super) hub: Hub,
    /// When a device whose queue was full is tried again.
    pub(super) retry_at: Option<Instant>,
    /// Carriers whose interfaces have come or gone, which is still to be told.
    pub(super) came_or_went: Vec<(usize, bool)>,
    pub(super) traffic: Traffic,
    pub(super) complaints: Complaints,
    /// To the others; the only one has none.
    pub(super) post: Option<Post>,
}

/// What a worker sends over: a carrier for each path.
#[derive(Debug)]
pub(super) struct Paths {
    pub(super) carriers: Vec<Carrier>,
    /// Of those that are configured one by one.
    pub(super) names: Arc<[String]>,
}

impl Worker {
    pub(super) fn new(clock: Clock, tun: Tun, paths: Paths, hub: Hub, post: Option<Post>) -> Self {
        let Paths { carriers, names } = paths;
        Self {
            clock,
            tun,
            hub: hub.with_carriers(carriers.len()),
            carriers,
            path_names: names,
            retry_at: None,
            came_or_went: Vec::new(),
            traffic: Traffic::default(),
            complaints: Complaints::default(),
            post,
        }
    }

    /// What to wait for at each carrier: that something has come, or that it takes more. A device with a full queue says nothing when it has
    /// room.
    pub(super) fn interests(&self) -> [Interest<'_>; MOST_CARRIERS] {
        core::array::from_fn(|at| {
            let Some(carrier) = self.carriers.get(at) else { return Interest::read_if_any(None) };
            let is_full = self.hub.full().contains(CarrierId(at as u8));
            Interest::either(
                carrier.as_fd(),
                true,
                is_full && self.retry_at.is_none() || carrier.has_unsent(),
            )
        })
    }

    /// When a carrier has something to do though nothing has come.
    pub(super) fn carriers_due(&self) -> Option<Instant> {
        self.carriers.iter().filter_map(Carrier::poll_timeout).min()
    }

    /// What it says about itself and its peers: the part that begins with the peer of this number.
    pub(super) fn account(&self, from: u32) -> Part {
        Part::of(&self.hub, &self.path_names, self.clock.now(), from, || self.whole())
    }

    /// What concerns no single peer.
    fn whole(&self) -> Value {
        let mut whole = self.hub.status();
        add(&mut whole["traffic"], json!(self.traffic));
        let counters = self.carriers.iter().flat_map(Carrier::counters).collect();
        let counted = json!({ "tun_unusable": self.tun.unusable, "carrier": named(counters) });
        add(&mut whole, counted);
        if let Some(post) = &self.post {
            add(&mut whole, json!({ "passed": post.counts() }));
        }
        whole
    }
}
