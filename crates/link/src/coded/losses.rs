//! What a class does with frames that were lost, and which of them are missing.

use std::collections::BTreeSet;

use base::Packet;

use crate::arq::policy::{OnLoss, Policy};
use crate::arq::{self, Copies, NOTE};
use crate::marks::Marks;

use super::Kind;

/// What is lost goes again until it has come, or never.
#[derive(Debug)]
pub(super) struct Losses {
    kind: Kind,
    /// Frames that were lost and have not come since, whether or not they are on their way again.
    missing: BTreeSet<u64>,
    /// For while frames go out as they are alone.
    copies: Copies,
}

/// The window of a class.
pub(super) type Sender = arq::Sender<Losses>;

impl Losses {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, missing: BTreeSet::new(), copies: Copies::default() }
    }

    /// Frames that were lost and have not come since, whether or not they are on their way again.
    pub(super) const fn missing(&self) -> &BTreeSet<u64> {
        &self.missing
    }
}

impl Policy for Losses {
    fn fresh(&self) -> Self {
        Self::new(self.kind)
    }

    fn on_lost(&mut self, sequence: u64, _transmissions: u8) -> OnLoss {
        if self.kind.treatment.is_once() {
            return OnLoss::GiveUp;
        }
        self.missing.insert(sequence);
        OnLoss::Retransmit
    }

    fn on_sent(&mut self, sequence: u64, transmissions: u8, loss: u8) {
        if !self.kind.treatment.is_once() {
            self.copies.on_sent(sequence, transmissions, loss);
        }
    }

    fn on_settled(&mut self, sequence: u64) {
        self.missing.remove(&sequence);
    }

    fn forget_before(&mut self, base: u64) {
        self.copies.forget_before(base);
    }

    fn has_copies(&self) -> bool {
        self.copies.has_copies()
    }

    fn poll_copy(&mut self) -> Option<u64> {
        self.copies.poll_copy()
    }

    /// What is given up because it was lost is given up at once, and each frame tells so.
    fn tells_floor(&self) -> bool {
        self.kind.expires
    }

    /// The order of packets that are sent once does not matter, so they keep their DSCP.
    fn marks(&self, packet: &Packet) -> Marks {
        let marks = Marks::of(packet);
        if self.kind.treatment.is_once() { marks } else { marks.without_dscp() }
    }

    fn memory(&self) -> usize {
        self.copies.memory() + self.missing.len() * NOTE
    }
}
