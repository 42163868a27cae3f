//! The hand-over of window to newcomers: Peng et al. 2001, section 3.3, from "When opening a new connection".
//!
//! Deviations: see the ECB. Beyond the paper, a member that lost its unused window to the others is paid like a newcomer
//! when it wants more again, for in congestion avoidance one segment would hardly ever grow.

use std::collections::VecDeque;

use super::{Ecb, Ticket};

/// A newcomer that has not started, or a member that came back for its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joiner {
    pub(super) slot: u32,
    /// Members that have paid a later number owe it nothing.
    pub(super) number: u64,
    /// Bytes that each other member is to give.
    pub(super) quota: u64,
}

/// Those that are to be paid, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Joiners(VecDeque<Joiner>);

/// Newcomers that are paid at a time, so that a call of the allocation stays cheap beside connections that never send.
const MAX_JOINERS: usize = 64;

impl Joiners {
    /// The first of them.
    pub(super) fn first(&self) -> Option<&Joiner> {
        self.0.front()
    }

    /// One more; if there are too many, the first keeps what it was given so far.
    pub(super) fn push(&mut self, joiner: Joiner) {
        if self.0.len() == MAX_JOINERS {
            self.0.pop_front();
        }
        self.0.push_back(joiner);
    }

    /// The member in this slot is paid no more.
    pub(super) fn remove(&mut self, slot: u32) {
        self.0.retain(|joiner| joiner.slot != slot);
    }

    /// Nobody is paid any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Ecb {
    /// A member whose window was released, and that has used up what it kept: the others are to give it what it lacks of
    /// an equal share.
    pub(super) fn claim_back(&mut self, id: Ticket, in_flight: u64) {
        let others = u64::from(self.num_connections) - 1;
        let equal = self.n_cwnd / (others + 1);
        let number = self.joined + 1;
        let Some(share) = self.share_mut(id).filter(|share| share.released) else { return };
        if in_flight + share.mss <= share.cwnd {
            return;
        }
        let lacking = equal.saturating_sub(share.cwnd);
        (share.released, share.fresh, share.paid) = (false, true, number);
        if others > 0 && lacking > 0 {
            self.joined = number;
            self.joiners.remove(id.slot);
            self.joiners.push(Joiner { slot: id.slot, number, quota: lacking / others });
        }
    }

    /// A member gives each newcomer that came after it the quota, once, and keeps a segment. One that waits itself
    /// pays when it has been given enough.
    pub(super) fn pay(&mut self, slot: u32) {
        for at in 0..self.joiners.0.len() {
            let joiner = self.joiners.0[at];
            let Some((_, payer)) = self.shares[slot as usize].as_mut() else { return };
            if joiner.number <= payer.paid {
                continue;
            }
            let amount = joiner.quota.min(payer.cwnd.saturating_sub(payer.mss));
            if !payer.started && amount < joiner.quota {
                return;
            }
            payer.cwnd -= amount;
            payer.paid = joiner.number;
            if let Some((_, newcomer)) = self.shares[joiner.slot as usize].as_mut() {
                newcomer.cwnd += amount;
                self.watched.insert(joiner.slot);
            }
            self.statistics.payments += 1;
            self.statistics.bytes_paid += amount;
        }
        if let Some((_, payer)) = self.shares[slot as usize].as_mut() {
            payer.paid = self.joined;
        }
    }

    /// A newcomer that the peer opened takes what it is owed when it starts: it joined only when its handshake was over, for a
    /// stranger's SYN must not move windows, and may send before any other member has been asked.
    pub(super) fn collect(&mut self, id: Ticket) {
        if self.share(id).is_none_or(|share| !share.called) {
            return;
        }
        for slot in 0..self.shares.len() as u32 {
            let pays = self.shares[slot as usize].as_ref().is_some_and(|(_, share)| share.started);
            if pays && slot != id.slot {
                self.pay(slot);
            }
        }
    }

    /// Newcomers that wait pay those behind them as soon as they can.
    pub(super) fn settle(&mut self) {
        for at in 0..self.joiners.0.len() {
            let slot = self.joiners.0[at].slot;
            if self.shares[slot as usize].as_ref().is_some_and(|(_, share)| !share.started) {
                self.pay(slot);
            }
        }
    }
}
