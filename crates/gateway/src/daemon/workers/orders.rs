//! What the first worker tells the others, and what they tell it.

use base::{Duration, Instant, Prefix};
use tunnel::config::Link;
use tunnel::key::PublicKey;
use tunnel::path::Address;
use tunnel::session::Rejection;
use tunnel::{Event, Hub, Membership, PeerId};

use crate::daemon::GatewayError;
use crate::daemon::account::Part;

/// From the first worker to another.
#[derive(Debug)]
pub(super) enum Order {
    /// Peers change, in this order.
    Change(Vec<Change>),
    /// A peer is called there from now on.
    Call(PeerId, Address),
    /// Its queue of the device is attached again.
    Restored,
    /// Its account is wanted, for the status of this number, instead of any that it is giving.
    Tell(u64),
    /// It ends.
    End,
}

/// What all hubs, or the one that has a peer, are told of it.
#[derive(Debug)]
pub(in crate::daemon) enum Change {
    /// Somebody is a peer of the worker that the number says, and has these networks.
    Enrol(PeerId, PublicKey, Vec<Prefix>),
    /// Its tunnel is to be built, and where it is is to be told if so.
    Settle(PeerId, Box<Membership>, bool),
    Remove(PeerId),
    SetAllowed(PeerId, Vec<Prefix>),
    SetWeight(PeerId, u32),
    Reconfigure(PeerId, Box<Link>, Duration),
    /// All its peers together may take so many bytes.
    SetMemory(usize),
}

/// From another worker to the first.
#[derive(Debug)]
pub(super) enum Report {
    Event(PeerId, Event),
    Refused(Address, Rejection),
    /// The largest super-segment that its tunnels take; `None` if it has none.
    SuperSegment(Option<Option<u32>>),
    /// Whether a peer that is known by name is heard, and where it is.
    Whereabouts(PeerId, Whereabouts),
    /// A part of its account, for the status of this number.
    Account(u64, Part),
    /// It has ended.
    Ended(Result<(), GatewayError>),
}

/// Whether a peer is heard, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon) struct Whereabouts {
    pub(in crate::daemon) is_heard: bool,
    pub(in crate::daemon) address: Option<Address>,
}

impl Change {
    /// Tells a hub, which was told all that the first one was.
    pub(super) fn apply(self, now: Instant, hub: &mut Hub) {
        const SAME: &str = "the first hub has done the same";
        match self {
            Self::Enrol(id, key, allowed) => hub.enrol_as(id, key, &allowed).expect(SAME),
            Self::Settle(id, membership, _) => hub.settle(id, *membership),
            Self::Remove(id) => hub.remove(id),
            Self::SetAllowed(id, allowed) => hub.set_allowed(id, &allowed).expect(SAME),
            Self::SetWeight(id, weight) => hub.set_weight(id, weight),
            Self::Reconfigure(id, link, keep_alive) => {
                if let Some(tunnel) = hub.tunnel_mut(id) {
                    tunnel.reconfigure(now, &link, keep_alive);
                }
            }
            Self::SetMemory(bytes) => hub.set_memory(bytes),
        }
    }
}
