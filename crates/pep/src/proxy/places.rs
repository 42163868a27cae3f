//! Places: how many connections there may be, and how callers share them.
//!
//! A caller is an address, so the hosts behind one NAT are one caller. None is held to a number of its own: who is alone has all half-open
//! places and four fifths of all. Where others come, they find room:
//!
//! - *Half-open* connections are cheap, and few are an honest host's. A caller that has fewer takes the place of the oldest of the one
//!   that has most (as longest-queue drop does for packets), down to a few that everybody keeps.
//! - *Established* ones are never given up. A caller may have so many times as many as are free (dynamic thresholds, Choudhury and Hahne
//!   1998), so one alone leaves some.

use core::net::IpAddr;

use base::Instant;
use tcp::{ConnectionId, State};

use super::{Proxy, Side};

/// A caller may have so many times as many connections as are free: one alone gets 4/5 of all. Many hosts may be behind its address, so
/// it is not held to less.
const SHARE_OF_FREE: usize = 4;
/// Half-open connections that a caller keeps, whoever comes: of fewer places a 256th. More than a browser has under way to servers that
/// answer; and whoever wants to fill all 4096 places for good needs as many addresses as a network has.
const KEPT: usize = 16;

impl Proxy {
    /// Whether there is a place for one more connection of this caller.
    pub(super) fn has_place(&mut self, from: Side, caller: IpAddr) -> bool {
        // The twin needs a place too.
        let live = self.hosts.iter().map(tcp::Host::live).max().unwrap_or(0);
        let free = (self.config.connections as usize).saturating_sub(live);
        if free == 0 || self.hosts.iter().any(|host| !host.has_room()) {
            self.counters.passed_for_want_of_room += 1;
            return false;
        }
        if self.hosts[from as usize].live_of(caller) >= SHARE_OF_FREE * free {
            self.counters.passed_for_share += 1;
            return false;
        }
        true
    }

    /// Makes a place for a half-open connection of this caller where there is none; whether somebody had more than his share.
    pub(super) fn make_place(&mut self, now: Instant, from: Side, caller: IpAddr) -> bool {
        let host = &self.hosts[from as usize];
        let kept = KEPT.min(self.config.half_open as usize / 256).max(1);
        let own = host.half_open_of(caller);
        let crowd = host.largest_crowd().filter(|&(count, _)| count > kept && count > own + 1);
        let Some((_, oldest)) = crowd else { return false };
        self.counters.crowded_out += 1;
        self.give_up(now, from, oldest);
        true
    }

    /// Gives a half-open connection up, with what was opened for it. A caller that was not answered hears nothing, and calls again.
    fn give_up(&mut self, now: Instant, side: Side, id: ConnectionId) {
        for (side, id) in [(side.other(), self.twin(side, id)), (side, Some(id))] {
            let Some(id) = id else { continue };
            let is_silent = self.waits_for_answer(side, id)
                || self.hosts[side as usize].connection(id).is_some_and(|it| it.state() == State::SynSent);
            let host = &mut self.hosts[side as usize];
            if is_silent {
                host.forget(id);
            } else {
                // Err is a connection that has gone.
                let _ = host.abort(now, id);
            }
        }
    }
}
