//! The ensemble control block (ECB) of STCP: Peng et al. 2001, figure 1 and sections 3.1 to 3.3.
//!
//! Deviations, and choices where the paper is silent:
//! - a member's cut after a loss is half of what it had in flight, at most of its window, as in RFC 5681 (equation 4);
//!   with one member that is what Reno does. Equation 4 of the paper is the case of a window in full use;
//! - the aggregate falls by what the member really gave up, so that a member at the floor of one segment cannot pull
//!   `n_cwnd` below the sum of the windows;
//! - after a time-out every member's window is set at once, not at its next call: none can send in between; what the
//!   others had out by then opens no window, and losses of it are the same congestion (`response`);
//! - `quota` is `n_cwnd / (N (N + 1))` for N members; a member pays each newcomer once, and keeps a segment;
//! - what is granted to a newcomer that has not started counts as used: otherwise equation 2 would hand it back to
//!   whoever calls next;
//! - a newcomer that the peer opened joins when its handshake is over, and takes what it is owed when it starts (`handover`);
//! - simultaneous joins queue: each has a quota of its own, and a newcomer that waits pays those that came later;
//! - a member whose window was released, and that wants more, is paid like a newcomer (`handover`);
//! - idle release and decay are not in the paper; see the fields of [`SharingConfig`].

mod handover;
mod response;
mod state;

use core::net::IpAddr;
use std::collections::BTreeSet;

use base::Instant;

use crate::congestion::slow_start::Counting;
use crate::congestion::{AckSample, Start};
use crate::ensemble::{FloorAcks, SharingConfig, Ticket};
use crate::rtt::RttEstimator;
use handover::{Joiner, Joiners};
pub use state::{EcbState, EcbStatistics};

/// One member connection.
#[derive(Clone, Debug)]
struct Share {
    /// `cwnd`: its part of the aggregate window, in bytes.
    cwnd: u64,
    mss: u64,
    /// Bytes in the network when it last said so.
    flight: u64,
    /// Most bytes in the network in this release period.
    peak: u64,
    /// The number of the latest newcomer that it has paid.
    paid: u64,
    /// It has sent, or asked to.
    started: bool,
    /// The peer opened it, so that it joined after its handshake.
    called: bool,
    /// It joined in this release period.
    fresh: bool,
    /// It lost window that it did not use, and has not asked for more since.
    released: bool,
    /// Bytes still out from before another member's time-out.
    stale: u64,
}

/// A round of members at the floor of one segment, whose acknowledgements count in part.
#[derive(Clone, Copy, Debug, Default)]
struct Floor {
    /// The aggregate at its start.
    n_cwnd: u64,
    /// Bytes acknowledged in it.
    acked: u64,
    /// What the last division left over.
    rest: u64,
}

/// The channel to one destination, shared by the members.
#[derive(Debug)]
pub(super) struct Ecb {
    rem_addr: IpAddr,
    n_ssthresh: u64,
    n_cwnd: u64,
    used_cwnd: u64,
    num_connections: u32,
    /// Members that have sent, or asked to.
    started: u32,
    /// Those for whom `add_new_flag` is up.
    joiners: Joiners,
    /// The number of the latest newcomer.
    joined: u64,
    shares: Vec<Option<(u64, Share)>>,
    free: Vec<u32>,
    /// The slots of members that the end of the period is to look at: those that something happened to, and those that
    /// still have window to lose.
    watched: BTreeSet<u32>,
    /// One segment of each member.
    mss_total: u64,
    /// Bytes in the network, of all.
    flight_total: u64,
    /// Bytes acknowledged since the aggregate last grew in congestion avoidance.
    acked: u64,
    floor: Floor,
    /// RFC 3465 (2.3): after a time-out an acknowledgement opens by one segment.
    after_timeout: bool,
    /// Something has been found out: it is no longer a new channel.
    learned: bool,
    /// Bytes delivered, of all.
    delivered: u64,
    rtt: RttEstimator,
    /// When the last time-out brought every member to one segment.
    collapsed_at: Instant,
    /// The end of the release period.
    period_end: Instant,
    /// When the last member left.
    vacant_since: Instant,
    settings: SharingConfig,
    statistics: EcbStatistics,
}

impl Ecb {
    pub(super) fn new(rem_addr: IpAddr, settings: SharingConfig, rtt: RttEstimator, start: &Start) -> Self {
        Self {
            rem_addr,
            n_ssthresh: start.ssthresh,
            n_cwnd: start.initial_window,
            used_cwnd: 0,
            num_connections: 0,
            started: 0,
            joiners: Joiners::default(),
            joined: 0,
            shares: Vec::new(),
            free: Vec::new(),
            watched: BTreeSet::new(),
            mss_total: 0,
            flight_total: 0,
            acked: 0,
            floor: Floor::default(),
            after_timeout: false,
            learned: false,
            delivered: 0,
            rtt,
            collapsed_at: Instant::ZERO,
            period_end: Instant::ZERO,
            vacant_since: Instant::ZERO,
            settings,
            statistics: EcbStatistics::default(),
        }
    }

    pub(super) fn state(&self) -> EcbState {
        let first = self.joiners.first();
        EcbState {
            rem_addr: self.rem_addr,
            n_ssthresh: self.n_ssthresh,
            n_cwnd: self.n_cwnd,
            used_cwnd: self.used_cwnd,
            num_connections: self.num_connections,
            add_new_flag: first.is_some(),
            quota: first.map_or(0, |joiner| joiner.quota),
            contribution: first
                .and_then(|joiner| self.shares[joiner.slot as usize].as_ref())
                .map_or(0, |(_, share)| share.cwnd),
            statistics: self.statistics,
        }
    }

    pub(super) const fn n_ssthresh(&self) -> u64 {
        self.n_ssthresh
    }

    pub(super) const fn num_connections(&self) -> u32 {
        self.num_connections
    }

    /// The member's window; one segment for a newcomer that was granted less, and for one that has left.
    pub(super) fn cwnd(&self, id: Ticket, mss: u64) -> u64 {
        self.share(id).map_or(mss, |share| share.cwnd.max(share.mss))
    }

    fn share(&self, id: Ticket) -> Option<&Share> {
        let (number, share) = self.shares.get(id.slot as usize)?.as_ref()?;
        (*number == id.number).then_some(share)
    }

    fn share_mut(&mut self, id: Ticket) -> Option<&mut Share> {
        let (number, share) = self.shares.get_mut(id.slot as usize)?.as_mut()?;
        (*number == id.number).then_some(share)
    }

    /// A connection opens (3.1 and 3.3): it gets the whole aggregate if it is alone, else each member is to pay.
    pub(super) fn join(&mut self, now: Instant, start: &Start, called: bool) -> Ticket {
        if self.num_connections == 0 {
            self.wake(now, start);
        }
        self.joined += 1;
        let number = self.joined;
        let members = u64::from(self.num_connections);
        let cwnd = if members == 0 { self.n_cwnd } else { 0 };
        let share = Share {
            cwnd,
            mss: start.mss,
            flight: 0,
            peak: 0,
            paid: number,
            started: false,
            called,
            fresh: true,
            released: false,
            stale: 0,
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.shares.push(None);
                self.shares.len() as u32 - 1
            }
        };
        self.shares[slot as usize] = Some((number, share));
        self.watched.insert(slot);
        self.num_connections += 1;
        self.mss_total += start.mss;
        self.used_cwnd += cwnd;
        self.statistics.joins += 1;
        let quota = if members == 0 { 0 } else { self.n_cwnd / (members * (members + 1)) };
        self.joiners.push(Joiner { slot, number, quota });
        self.settle();
        Ticket { slot, number }
    }

    /// The first of a new group: what is left of what the last one knew.
    fn wake(&mut self, now: Instant, start: &Start) {
        let vacant = now.saturating_since(self.vacant_since);
        if !self.learned || vacant > self.settings.lifetime {
            (self.n_cwnd, self.n_ssthresh) = (start.initial_window, start.ssthresh);
            (self.learned, self.after_timeout) = (false, false);
        } else if self.settings.decay {
            self.decay(vacant, start.initial_window);
        }
        self.acked = 0;
        self.period_end = now.saturating_add(self.rtt.rto());
    }

    /// RFC 2861 (3), as for a connection that was idle: the window halves for each interval, down to the initial
    /// window; the threshold keeps three quarters of what it was.
    fn decay(&mut self, vacant: base::Duration, initial_window: u64) {
        let interval = self.settings.half_life.unwrap_or_else(|| self.rtt.rto());
        let halvings = vacant.as_nanos() / interval.as_nanos().max(1);
        if halvings == 0 || self.n_cwnd <= initial_window {
            return;
        }
        self.n_ssthresh = self.n_ssthresh.max(self.n_cwnd / 4 * 3);
        let before = self.n_cwnd;
        self.n_cwnd = (before >> halvings.min(63)).max(initial_window);
        self.statistics.decays += halvings.min(u64::from((before / self.n_cwnd).ilog2()) + 1);
    }

    /// A newcomer's handshake is over: its real segment size is known, and whether its SYN was lost, which limits it to
    /// one segment (RFC 5681, 3.1).
    pub(super) fn establish(&mut self, id: Ticket, start: &Start, syn_lost: bool) {
        let Some(share) = self.share_mut(id) else { return };
        let before = core::mem::replace(&mut share.mss, start.mss);
        let granted = share.cwnd;
        self.mss_total = self.mss_total - before + start.mss;
        if self.num_connections == 1 {
            if !self.learned {
                (self.n_cwnd, self.n_ssthresh) = (start.initial_window, start.ssthresh);
            } else if syn_lost {
                self.n_cwnd = self.n_cwnd.min(start.initial_window);
            }
            self.set_cwnd(id, self.n_cwnd);
        } else if syn_lost {
            self.set_cwnd(id, granted.min(start.mss));
        } else if !self.learned && self.started == 0 {
            (self.n_cwnd, self.n_ssthresh) = (start.initial_window, start.ssthresh);
            self.split();
        }
    }

    /// Where nobody has started yet: the window in equal parts, what remains to the first.
    fn split(&mut self) {
        let part = self.n_cwnd / u64::from(self.num_connections);
        let mut rest = self.n_cwnd % u64::from(self.num_connections);
        let joined = self.joined;
        for (slot, entry) in self.shares.iter_mut().enumerate() {
            let Some((_, share)) = entry else { continue };
            (share.cwnd, share.paid) = (part + core::mem::take(&mut rest), joined);
            self.watched.insert(slot as u32);
        }
        self.joiners.clear();
        self.used_cwnd = self.n_cwnd;
    }

    /// A member is done: what it had is there for the next that asks (3.3).
    pub(super) fn leave(&mut self, now: Instant, id: Ticket) {
        if self.share(id).is_none() {
            return;
        }
        let Some((_, share)) = self.shares[id.slot as usize].take() else { return };
        self.free.push(id.slot);
        self.joiners.remove(id.slot);
        self.used_cwnd -= share.cwnd;
        self.flight_total -= share.flight;
        self.mss_total -= share.mss;
        self.num_connections -= 1;
        self.started -= u32::from(share.started);
        self.statistics.leaves += 1;
        self.vacant_since = now;
        if self.started == 0 && self.num_connections > 0 {
            // Nobody is left to pay those that wait: they are the first of a new group.
            self.split();
        }
    }

    /// A member needs to send: its share anew.
    pub(super) fn on_send_opportunity(&mut self, now: Instant, id: Ticket, in_flight: u64) {
        self.note_flight(id, in_flight, in_flight);
        let Some(share) = self.share_mut(id) else { return };
        let starts = !core::mem::replace(&mut share.started, true);
        self.started += u32::from(starts);
        if starts {
            self.collect(id);
        }
        self.allocate(now, id);
        if starts {
            self.joiners.remove(id.slot);
        }
        self.claim_back(id, in_flight);
    }

    /// An acknowledgement grows the aggregate as RFC 5681 grows one window, if the member's own share is what limits
    /// it; `limit` is the most bytes that slow start opens by.
    pub(super) fn on_ack(&mut self, id: Ticket, ack: &AckSample, limit: u64) {
        self.note_flight(id, ack.in_flight, ack.prior_in_flight);
        if let Some(rtt) = ack.rtt {
            let expected = self.flight_total / (2 * self.mss_total.max(1));
            let bounds = (self.delivered, self.delivered + self.flight_total);
            self.rtt.on_sample(rtt, if expected == 0 { 0 } else { expected.ilog2() }, bounds);
        }
        self.delivered += ack.delivered_bytes;
        if ack.recovering || ack.bytes == 0 {
            return;
        }
        let Some(share) = self.share_mut(id) else { return };
        // What left before the collapse says nothing of the window after it.
        let bytes = ack.opening_bytes();
        let stale = share.stale.min(bytes);
        share.stale -= stale;
        let (cwnd, mss, bytes) = (share.cwnd, share.mss, bytes - stale);
        let bytes = self.part_of(bytes);
        self.learned = true;
        let rest = if self.n_cwnd < self.n_ssthresh {
            let counting = Counting { limit, mss, after_timeout: self.after_timeout };
            let counted = counting.counted(bytes, ack.fills(cwnd, true));
            let (step, rest) = counting.split(counted, self.n_ssthresh - self.n_cwnd);
            self.n_cwnd += step;
            rest
        } else if ack.limited_by_window {
            bytes
        } else {
            0
        };
        if rest > 0 {
            self.acked += rest;
            if self.acked >= self.n_cwnd {
                self.acked -= self.n_cwnd;
                self.n_cwnd += mss;
            }
        }
        self.allocate(ack.now, id);
    }

    /// What the acknowledgement of so many bytes counts for (`floor-acks`). The part is that of the aggregate at the start of
    /// a round, in which each member sends one segment: what a round acknowledges opens the aggregate by itself once.
    fn part_of(&mut self, bytes: u64) -> u64 {
        if self.settings.floor_acks == FloorAcks::Full {
            return bytes;
        }
        if self.floor.acked == 0 {
            // Each member may have a segment out, whatever its share is.
            if self.n_cwnd >= self.mss_total {
                return bytes;
            }
            self.floor.n_cwnd = self.n_cwnd;
        }
        let whole = bytes * self.floor.n_cwnd + self.floor.rest;
        self.floor.rest = whole % self.mss_total;
        self.floor.acked += bytes;
        if self.floor.acked >= self.mss_total {
            self.floor.acked = 0;
        }
        whole / self.mss_total
    }

    fn note_flight(&mut self, id: Ticket, flight: u64, peak: u64) {
        let Some(share) = self.share_mut(id) else { return };
        share.peak = share.peak.max(peak);
        let before = core::mem::replace(&mut share.flight, flight);
        self.watched.insert(id.slot);
        self.flight_total = self.flight_total - before + flight;
    }

    fn set_cwnd(&mut self, id: Ticket, cwnd: u64) {
        let Some(share) = self.share_mut(id) else { return };
        let before = core::mem::replace(&mut share.cwnd, cwnd);
        self.watched.insert(id.slot);
        // Equation 3.
        self.used_cwnd = self.used_cwnd - before + cwnd;
    }

    /// The window allocation, called by a member: equations 1 to 3, and what it owes to newcomers.
    fn allocate(&mut self, now: Instant, id: Ticket) {
        if now >= self.period_end {
            self.end_period(now, id);
        }
        let Some(share) = self.share(id) else { return };
        let (cwnd, mss, paid) = (share.cwnd, share.mss, share.paid);
        // Equation 2.
        let new = (cwnd + self.n_cwnd).saturating_sub(self.used_cwnd);
        self.statistics.floors += u64::from(new < mss);
        let new = new.max(mss);
        if new != cwnd {
            self.set_cwnd(id, new);
        }
        if paid < self.joined {
            self.pay(id.slot);
            self.settle();
        }
        self.statistics.allocations += 1;
        if self.used_cwnd == self.n_cwnd {
            self.statistics.allocations_balanced += 1;
        } else {
            let excess = self.used_cwnd.saturating_sub(self.n_cwnd);
            self.statistics.max_window_excess = self.statistics.max_window_excess.max(excess);
        }
    }

    /// A retransmission time-out has passed since the last look: members that had less in the network than their share
    /// keep that and one segment. `caller` wants to send and is left alone, and so is who joined meanwhile.
    fn end_period(&mut self, now: Instant, caller: Ticket) {
        self.period_end = now.saturating_add(self.rtt.rto());
        if !self.settings.idle_release {
            return;
        }
        for slot in core::mem::take(&mut self.watched) {
            let Some((_, share)) = &mut self.shares[slot as usize] else { continue };
            self.statistics.members_examined += 1;
            let keep = share.peak + share.mss;
            share.peak = share.flight;
            if core::mem::replace(&mut share.fresh, false) {
                self.watched.insert(slot);
                continue;
            }
            if share.started {
                // One that came back had its time to be paid.
                self.joiners.remove(slot);
            }
            let unused = share.cwnd.saturating_sub(keep);
            if unused > 0 && slot != caller.slot {
                share.cwnd -= unused;
                share.released = true;
                self.used_cwnd -= unused;
                self.statistics.bytes_released += unused;
            }
            if share.cwnd > share.peak + share.mss {
                self.watched.insert(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests;
