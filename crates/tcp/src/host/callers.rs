//! Who called: connections that a host took up in somebody's stead, by the address of the caller, so that the host's owner can share its
//! places among callers; and those of them that are over.
//!
//! A caller is an address. Behind one may be many hosts (NAT), and one host may have many or forge them.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{ConnectionId, Host};
use crate::connection::{Connection, State};

/// The calls of a host. Strangers choose the addresses, so the tables are ordered and not hashed.
#[derive(Debug, Default)]
pub(super) struct Callers {
    counts: BTreeMap<IpAddr, Count>,
    /// Those that are half open: by caller, in the order in which they called.
    half_open: BTreeMap<(IpAddr, Call), u32>,
    /// Callers by how many half-open connections they have.
    crowds: BTreeSet<(u32, IpAddr)>,
    calls: u64,
    /// Connections that are over, the oldest first; some have gone.
    ended: VecDeque<ConnectionId>,
}

/// The number of a call, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call(core::num::NonZeroU64);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    live: u32,
    half_open: u32,
}

impl Callers {
    /// Somebody calls, and has the connection at `slot`.
    pub(super) fn add(&mut self, caller: IpAddr, slot: u32) -> Call {
        self.calls += 1;
        let call = Call(core::num::NonZeroU64::new(self.calls).unwrap_or(core::num::NonZeroU64::MIN));
        self.half_open.insert((caller, call), slot);
        self.count(caller, |count| {
            count.live += 1;
            count.half_open += 1;
        });
        call
    }

    /// The connection is not half open any more.
    pub(super) fn settle(&mut self, caller: IpAddr, call: Call) {
        if self.half_open.remove(&(caller, call)).is_some() {
            self.count(caller, |count| count.half_open -= 1);
        }
    }

    /// The connection, which has settled, is over.
    pub(super) fn end(&mut self, caller: IpAddr) {
        self.count(caller, |count| count.live -= 1);
    }

    fn count(&mut self, caller: IpAddr, change: impl FnOnce(&mut Count)) {
        let count = self.counts.entry(caller).or_default();
        let before = count.half_open;
        change(count);
        let after = *count;
        if after.live == 0 {
            self.counts.remove(&caller);
        }
        if before != after.half_open {
            self.crowds.remove(&(before, caller));
            if after.half_open > 0 {
                self.crowds.insert((after.half_open, caller));
            }
        }
    }

    fn of(&self, caller: IpAddr) -> Count {
        self.counts.get(&caller).copied().unwrap_or_default()
    }
}

impl Host {
    /// Connections that somebody called for and whose answer the caller has not acknowledged.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.callers.half_open.len()
    }

    /// Those of one caller.
    #[must_use]
    pub fn half_open_of(&self, caller: IpAddr) -> usize {
        self.callers.of(caller).half_open as usize
    }

    /// Connections that a caller called for and that have not ended, half-open ones included.
    #[must_use]
    pub fn live_of(&self, caller: IpAddr) -> usize {
        self.callers.of(caller).live as usize
    }

    /// How many half-open connections the caller has that has most, and the one of them that it called for first.
    #[must_use]
    pub fn largest_crowd(&self) -> Option<(usize, ConnectionId)> {
        let &(count, caller) = self.callers.crowds.last()?;
        let first = Call(core::num::NonZeroU64::MIN);
        let (_, &slot) = self.callers.half_open.range((caller, first)..).next()?;
        Some((count as usize, self.id(slot)))
    }

    /// A connection has ended, and stays for questions: where those take more than their share of the memory, the oldest is let go
    /// sooner, as far as nobody waits for anything of it. A host of its own keeps them, whoever they are.
    pub(super) fn note_ended(&mut self, slot: u32) {
        if !self.stands_in() || !self.budget.is_limited() {
            return;
        }
        self.callers.ended.push_back(self.id(slot));
        let most = self.budget.limit() / ENDED_SHARE / size_of::<Connection>();
        while self.callers.ended.len() > most {
            let Some(oldest) = self.callers.ended.pop_front() else { return };
            if self.connection(oldest).is_some_and(Connection::is_idle_rest) {
                self.remove(oldest.slot);
            }
        }
    }
}

impl Connection {
    /// Whether it is over, and only stays for questions: there is nothing to read, to send or to tell.
    fn is_idle_rest(&self) -> bool {
        matches!(self.state(), State::Closed | State::TimeWait)
            && self.readable() == 0
            && !self.has_event()
            && !self.wants_transmit()
    }
}

/// Connections that are over may take this part of the memory: an eighth. Of 128 MiB that is enough for 300 a second, each for a minute.
const ENDED_SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4987 (2.2): addresses may be forged, each but once: none of them leaves anything.
    #[test]
    fn a_caller_that_has_gone_leaves_nothing() {
        let mut callers = Callers::default();
        for at in 0..100 {
            let caller = IpAddr::from([10, 0, 0, at]);
            let call = callers.add(caller, 7);
            callers.settle(caller, call);
            assert_eq!((callers.of(caller).half_open, callers.crowds.len()), (0, 0));
            callers.end(caller);
        }
        assert!(callers.counts.is_empty() && callers.half_open.is_empty() && callers.crowds.is_empty());
    }
}
