//! How the aggregate responds to congestion and to its end: Peng et al. 2001, section 3.3, equations 4 and 5.
//!
//! Deviations: see the ECB. A time-out answers for all that was out by then. The paper would let each acknowledgement of
//! such data open the aggregate again, for the member that happened to lose nothing, while the others still repair; and
//! each further loss among it would bring the threshold down once more. A single TCP does neither.

use base::Instant;

use super::{Ecb, Share, Ticket};
use crate::congestion::{Cause, Congestion};

impl Ecb {
    /// A loss found by duplicate acknowledgements, or an ECN mark (equation 4): only this member's window shrinks.
    pub(in super::super) fn on_loss(&mut self, event: &Congestion, id: Ticket) {
        let Some(share) = self.share(id) else { return };
        if self.is_answered(share, event) {
            return;
        }
        let (cwnd, mss, flight_size) = (share.cwnd, share.mss, event.flight_size);
        let new = if self.num_connections == 1 {
            (flight_size / 2).max(2 * mss)
        } else {
            (flight_size.min(cwnd) / 2).max(mss)
        };
        self.learned = true;
        self.n_cwnd = (self.n_cwnd + new).saturating_sub(cwnd).max(2 * mss);
        self.n_ssthresh = self.n_cwnd;
        (self.acked, self.after_timeout) = (0, false);
        self.set_cwnd(id, new);
        self.statistics.losses += 1;
        self.allocate(event.now, id);
    }

    /// A time-out (equation 5): every member starts from one segment.
    pub(in super::super) fn on_timeout(&mut self, event: &Congestion, id: Ticket) {
        let Some(share) = self.share(id) else { return };
        let mss = share.mss;
        if self.is_answered(share, event) {
            self.cut_to(id, mss);
            return self.count_as_lost(id);
        }
        self.note_flight(id, event.flight_size, event.flight_size);
        self.learned = true;
        self.n_ssthresh = (self.flight_total / 2).max(2 * mss);
        self.n_cwnd = self.mss_total;
        (self.acked, self.after_timeout) = (0, true);
        // Newcomers that wait have their part of the new aggregate with this.
        self.joiners.clear();
        let joined = self.joined;
        for (_, share) in self.shares.iter_mut().flatten() {
            (share.cwnd, share.paid, share.stale) = (share.mss, joined, share.flight);
        }
        self.count_as_lost(id);
        self.used_cwnd = self.mss_total;
        self.collapsed_at = event.now;
        self.statistics.timeouts += 1;
        self.allocate(event.now, id);
    }

    /// To a connection whose timer expires, all that it has out is lost: what comes back is new.
    fn count_as_lost(&mut self, id: Ticket) {
        if let Some(share) = self.share_mut(id) {
            share.stale = 0;
        }
    }

    /// Whether the segment was lost, or marked, before another member's time-out, which is the response to it.
    fn is_answered(&self, share: &Share, event: &Congestion) -> bool {
        let before = event.sent_at.is_some_and(|sent_at| sent_at <= self.collapsed_at);
        share.stale > 0 && (before || event.cause == Cause::Ecn)
    }

    /// Somebody sets this member's window: the aggregate loses what it gives up, or grows by what it gains.
    pub(in super::super) fn set_window(&mut self, id: Ticket, window: u64) {
        let Some(share) = self.share(id) else { return };
        let (cwnd, new) = (share.cwnd, window.max(share.mss));
        if new <= cwnd {
            return self.cut_to(id, new);
        }
        self.n_cwnd += new - cwnd;
        self.set_cwnd(id, new);
    }

    /// The time-out was spurious: this member's window is back. The others find the aggregate's old threshold and
    /// grow towards it.
    pub(in super::super) fn restore(&mut self, id: Ticket, window: u64, ssthresh: u64) {
        let Some(share) = self.share(id) else { return };
        let (cwnd, new) = (share.cwnd, window.max(share.mss));
        // Beside others, a member's own threshold may be less than the aggregate's is now.
        let floor = if self.num_connections == 1 { 0 } else { self.n_ssthresh };
        (self.n_ssthresh, self.after_timeout) = (ssthresh.max(floor), false);
        self.n_cwnd = (self.n_cwnd + new).saturating_sub(cwnd);
        self.set_cwnd(id, new);
        for (_, share) in self.shares.iter_mut().flatten() {
            share.stale = 0;
        }
    }

    /// A member sends again after an idle time (RFC 5681, 4.1): what it could claim beyond the restart window was not
    /// tested for so long that the aggregate loses it.
    pub(in super::super) fn on_restart(&mut self, now: Instant, id: Ticket, restart_window: u64) {
        self.allocate(now, id);
        self.cut_to(id, restart_window);
    }

    fn cut_to(&mut self, id: Ticket, most: u64) {
        let Some(share) = self.share(id) else { return };
        let cut = share.cwnd.saturating_sub(most);
        if cut > 0 {
            self.n_cwnd = self.n_cwnd.saturating_sub(cut).max(share.mss);
            self.set_cwnd(id, most);
        }
    }
}
