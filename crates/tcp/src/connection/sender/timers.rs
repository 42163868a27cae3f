//! The sender's deadlines and what happens at them: the retransmission time-out (RFC 6298, 5), which also asks for a closed
//! window (RFC 9293, 3.8.6.1), and recovery's (RFC 8985).

use base::{Duration, Instant};

use super::Sender;
use crate::congestion::{Cause, Congestion};
use crate::recovery::spurious::Methods;
use crate::recovery::{Lost, Phase};

/// Deadlines; [`Instant::MAX`] is "off".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    /// Retransmission of a SYN or of data (RFC 6298, 5), or a probe of a closed window (RFC 9293, 3.8.6.1).
    retransmit: Instant,
    /// Segments in doubt, or a tail loss probe (RFC 8985).
    recovery: Instant,
    /// When data that are outstanding last made progress.
    progress_at: Instant,
    /// Doublings of the retransmission time-out.
    pub(crate) backoff: u16,
    /// Its consecutive expirations without an answer.
    pub(crate) retries: u16,
    /// Whether `recovery` is for a tail loss probe.
    probing: bool,
    /// The peer's window is being probed.
    pub(crate) persisting: bool,
    /// A probe of it is to be sent.
    pub(super) probe_due: bool,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            retransmit: Instant::MAX,
            recovery: Instant::MAX,
            progress_at: Instant::ZERO,
            backoff: 0,
            retries: 0,
            probing: false,
            persisting: false,
            probe_due: false,
        }
    }

    pub(super) fn is_retransmit_off(&self) -> bool {
        self.retransmit == Instant::MAX
    }

    pub(super) const fn retransmit(&self) -> Instant {
        self.retransmit
    }

    /// Recovery's timer never outlives the retransmission timer.
    pub(crate) const fn stop_retransmit(&mut self) {
        self.retransmit = Instant::MAX;
        self.start_recovery(Instant::MAX, false);
    }

    pub(super) const fn start_recovery(&mut self, deadline: Instant, probing: bool) {
        (self.recovery, self.probing) = (deadline, probing);
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.probing
    }

    pub(crate) const fn note_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }

    /// A time-out has expired without an answer.
    pub(crate) const fn count_retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The peer is there after all.
    pub(crate) const fn forget_retries(&mut self) {
        (self.backoff, self.retries) = (0, 0);
    }
}

impl Sender {
    /// The earliest deadline.
    pub(crate) fn deadline(&self) -> Instant {
        let timers = &self.timers;
        timers.retransmit.min(timers.recovery).min(self.pacing_deadline()).min(self.code_deadline())
    }

    /// Whether the retransmission timer has expired, which is then off.
    pub(crate) fn take_retransmit_expiry(&mut self, now: Instant) -> bool {
        let expired = self.timers.retransmit <= now;
        if expired {
            self.timers.stop_retransmit();
        }
        expired
    }

    /// Recovery's deadline has passed.
    pub(crate) fn check_recovery_timer(&mut self, now: Instant) {
        if self.timers.recovery <= now {
            self.timers.start_recovery(Instant::MAX, false);
            self.on_recovery_timer(now);
        }
    }

    /// Starts the retransmission timer anew; the user time-out may be earlier.
    pub(crate) fn restart_retransmit(&mut self, now: Instant, after: Duration) {
        let deadline = now.saturating_add(after);
        self.timers.retransmit = match self.config.limits.user_timeout {
            Some(limit) => deadline.min(self.timers.progress_at.saturating_add(limit)).max(now),
            None => deadline,
        };
    }

    /// Starts the retransmission timer anew for a whole time-out.
    pub(crate) fn rearm_retransmit(&mut self, now: Instant) {
        self.restart_retransmit(now, self.rto());
    }

    /// Whether the peer has not answered for longer than it may.
    pub(crate) fn has_timed_out(&self, now: Instant) -> bool {
        u32::from(self.timers.retries) >= self.config.limits.data_retries || self.is_progress_overdue(now)
    }

    /// Whether nothing has made progress for longer than the user waits.
    pub(crate) fn is_progress_overdue(&self, now: Instant) -> bool {
        let waited = now.saturating_since(self.timers.progress_at);
        self.config.limits.user_timeout.is_some_and(|limit| waited >= limit)
    }

    /// The retransmission timer has expired for data, or for the peer's window.
    pub(crate) fn on_retransmit_timer(&mut self, now: Instant) {
        if self.board.is_empty() || self.window == 0 {
            self.on_persist_timer(now);
        } else {
            self.on_data_timer(now);
        }
    }

    /// The peer's window is closed, or too small for a segment: see whether it still is (RFC 9293, 3.8.6.1).
    fn on_persist_timer(&mut self, now: Instant) {
        if self.board.is_empty() && self.unsent() == 0 && !self.fin_waits() {
            return;
        }
        self.timers.persisting = true;
        self.timers.probe_due = true;
        self.timers.count_retry();
        self.rearm_retransmit(now);
    }

    /// RFC 6298 (5.4) to (5.6).
    fn on_data_timer(&mut self, now: Instant) {
        self.suspect_black_hole(now);
        let again = self.timeout_at == self.una;
        let answered = self.recovery.phase() == Phase::FastRecovery && !self.is_shared();
        // After one time-out, what is in flight is what was sent since; FlightSize would count it all.
        let flight_size = match self.recovery.phase() {
            Phase::Timeout => self.board.pipe(),
            Phase::Open | Phase::FastRecovery => self.recovery.flight_size(self.una, self.nxt),
        };
        self.timeout_at = self.una;
        (self.reduction, self.validation) = (None, None);
        let methods = self.detection();
        if methods != Methods::default() {
            self.remember_prior(flight_size, true);
        }
        let flight_size = self.reduced_from(flight_size);
        let lost = Lost::head(&self.board);
        let news = self.no_news();
        let arrival = self.arrival(now, &news);
        self.recovery.on_timeout(&mut self.board, &arrival, methods);
        if let Some(code) = &mut self.code {
            code.on_timeout(self.una, &self.buffer);
            code.statistics.timeouts_again += u64::from(lost.resent);
        }
        if !again {
            self.marking.on_reduced(self.nxt, false);
            // Linux (`tcp_enter_loss`): the losses of this flight have been answered for.
            let kept = (answered && !self.config.recovery.second_reduction)
                .then(|| self.controller.ssthresh())
                .flatten();
            self.controller.on_congestion(&Congestion {
                now,
                flight_size,
                cause: Cause::Timeout,
                sent_at: lost.sent_at,
                resent: lost.resent,
            });
            if kept.is_some() {
                self.controller.set_window(self.controller.window(), kept);
            }
        }
        self.timers.count_retry();
        self.statistics.timeouts += 1;
        self.rearm_retransmit(now);
    }
}
