//! A worker: a hub with a part of the peers, a queue of the device and a socket of the carrier, for one thread.

use base::Instant;
use serde_json::{Value, json};
use tunnel::Hub;

use super::account::Part;
use super::complaints::Complaints;
use super::forwarding::Traffic;
use super::status::{add, named};
use super::workers::Post;
use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::tun::Tun;

/// What serves packets and datagrams. `forwarding` is what it does.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) clock: Clock,
    pub(super) tun: Tun,
    pub(super) carrier: Carrier,
    pub(super) hub: Hub,
    /// When a device whose queue was full is tried again.
    pub(super) retry_at: Option<Instant>,
    pub(super) traffic: Traffic,
    pub(super) complaints: Complaints,
    /// To the others; the only one has none.
    pub(super) post: Option<Post>,
}

impl Worker {
    pub(super) fn new(clock: Clock, tun: Tun, carrier: Carrier, hub: Hub, post: Option<Post>) -> Self {
        Self {
            clock,
            tun,
            carrier,
            hub,
            retry_at: None,
            traffic: Traffic::default(),
            complaints: Complaints::default(),
            post,
        }
    }

    /// Whether to wait for the carrier to take more. A device with a full queue says nothing when it has room.
    pub(super) fn wants_to_write(&self) -> bool {
        (self.hub.is_blocked() && self.retry_at.is_none()) || self.carrier.has_unsent()
    }

    /// What it says about itself and its peers: the part that begins with the peer of this number.
    pub(super) fn account(&self, from: u32) -> Part {
        Part::of(&self.hub, self.clock.now(), from, || self.whole())
    }

    /// What concerns no single peer.
    fn whole(&self) -> Value {
        let mut whole = self.hub.status();
        add(&mut whole["traffic"], json!(self.traffic));
        let counted = json!({ "tun_unusable": self.tun.unusable, "carrier": named(self.carrier.counters()) });
        add(&mut whole, counted);
        if let Some(post) = &self.post {
            add(&mut whole, json!({ "passed": post.counts() }));
        }
        whole
    }
}
