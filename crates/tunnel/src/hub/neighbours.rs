//! Peers of a gateway's other workers: what this one must know of them.
//!
//! Packets for them come to this worker too, and packets from its own peers may not claim to be theirs: so it knows their prefixes. The
//! first worker also decides about their calls, as about those of its own peers, and hands over those that are to be answered.

use std::collections::{HashMap, VecDeque};

use base::Instant;

use super::PeerId;
use crate::key::PublicKey;
use crate::path::Path;
use crate::session::{Admitted, Call, Standing};

#[derive(Debug, Default)]
pub(super) struct Neighbours {
    known: HashMap<PeerId, Neighbour>,
    /// Calls for them that are to be answered.
    handovers: VecDeque<Handover>,
}

#[derive(Debug)]
struct Neighbour {
    key: PublicKey,
    /// What the first worker allows it.
    standing: Standing,
}

/// A call that was admitted here and is another worker's to answer: whoever has the peer.
#[derive(Debug)]
pub struct Handover {
    id: PeerId,
    pub(super) admitted: Admitted,
}

impl Handover {
    pub(super) const fn new(id: PeerId, admitted: Admitted) -> Self {
        Self { id, admitted }
    }

    /// Where from.
    #[must_use]
    pub const fn from(&self) -> Path {
        self.admitted.call().from()
    }

    /// Who calls.
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        self.id
    }
}

/// Calls that wait to be handed over, at most.
const MOST_HANDOVERS: usize = 256;

impl Neighbours {
    pub(super) fn add(&mut self, id: PeerId, key: PublicKey) {
        self.known.insert(id, Neighbour { key, standing: Standing::default() });
    }

    /// Forgets a neighbour; its key, if it was one.
    pub(super) fn remove(&mut self, id: PeerId) -> Option<PublicKey> {
        self.handovers.retain(|handover| handover.id != id);
        self.known.remove(&id).map(|neighbour| neighbour.key)
    }

    /// Whether a neighbour may have one more answer, which counts; `None` if it is none.
    pub(super) fn allows_answer(&mut self, now: Instant, id: PeerId) -> Option<bool> {
        self.known.get_mut(&id).map(|neighbour| neighbour.standing.allows_answer(now))
    }

    /// Whether a neighbour's call ranks above all that were handed over before; `None` if it is no neighbour's.
    pub(super) fn is_newest(&self, id: PeerId, call: &Call) -> Option<bool> {
        self.known.get(&id).map(|neighbour| neighbour.standing.is_newest(call))
    }

    /// Has a call wait to be handed over; false if too many do.
    pub(super) fn hand_over(&mut self, handover: Handover) -> bool {
        let Some(neighbour) = self.known.get_mut(&handover.id) else { return false };
        let has_room = self.handovers.len() < MOST_HANDOVERS;
        if has_room {
            neighbour.standing.on_answered(handover.admitted.call());
            self.handovers.push_back(handover);
        }
        has_room
    }

    pub(super) fn poll(&mut self) -> Option<Handover> {
        self.handovers.pop_front()
    }
}
