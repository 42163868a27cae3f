//! The connection's deadlines and what happens at them.

use base::{Duration, Instant};

use super::proxied::{KNOWN, UNCONFIRMED};
use super::{Connection, Events, Failure, State};
use crate::congestion::{Cause, Congestion};
use crate::recovery::scoreboard::Delivered;
use crate::recovery::spurious::Methods;
use crate::recovery::{Lost, Phase};

/// Deadlines; [`Instant::MAX`] is "off".
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Retransmission of a SYN or of data (RFC 6298, 5), or a probe of a closed window (RFC 9293, 3.8.6.1).
    retransmit: Instant,
    /// Segments in doubt, or a tail loss probe (RFC 8985).
    recovery: Instant,
    /// Delayed acknowledgement.
    delayed_ack: Instant,
    /// The next keep-alive; or the end of FIN-WAIT-2 where nobody reads, of TIME-WAIT, or of the time that an ended
    /// connection stays for questions.
    pub(super) idle: Instant,
    /// When data that are outstanding last made progress.
    progress_at: Instant,
    /// Challenge ACKs sent since `challenges_since`.
    challenges: u8,
    /// Whether `recovery` is for a tail loss probe.
    probing: bool,
    /// Keep-alives since the peer was last heard of; in TIME-WAIT, how often that began anew.
    pub(super) keep_alives: u8,
    /// One is to be sent.
    pub(super) keep_alive_due: bool,
    /// In milliseconds, which wrap.
    challenges_since: u32,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            retransmit: Instant::MAX,
            recovery: Instant::MAX,
            delayed_ack: Instant::MAX,
            idle: Instant::MAX,
            progress_at: Instant::ZERO,
            challenges: 0,
            probing: false,
            keep_alives: 0,
            keep_alive_due: false,
            challenges_since: 0,
        }
    }

    pub(super) fn is_retransmit_off(&self) -> bool {
        self.retransmit == Instant::MAX
    }

    pub(super) const fn retransmit(&self) -> Instant {
        self.retransmit
    }

    /// Recovery's timer never outlives the retransmission timer.
    pub(super) const fn stop_retransmit(&mut self) {
        self.retransmit = Instant::MAX;
        self.start_recovery(Instant::MAX, false);
    }

    pub(super) const fn start_recovery(&mut self, deadline: Instant, probing: bool) {
        (self.recovery, self.probing) = (deadline, probing);
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.probing
    }

    pub(super) const fn note_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }

    pub(super) fn start_delayed_ack(&mut self, deadline: Instant) {
        self.delayed_ack = self.delayed_ack.min(deadline);
    }

    pub(super) const fn stop_delayed_ack(&mut self) {
        self.delayed_ack = Instant::MAX;
    }

    pub(super) const fn is_lingering(&self) -> bool {
        self.idle.as_nanos() != Instant::MAX.as_nanos()
    }

    /// Whether one more challenge ACK may go out: at most ten in five seconds (RFC 5961, 7).
    pub(super) fn allow_challenge(&mut self, now: Instant) -> bool {
        let now = (now.as_nanos() / 1_000_000) as u32;
        if now.wrapping_sub(self.challenges_since) >= CHALLENGE_INTERVAL_MS {
            (self.challenges, self.challenges_since) = (0, now);
        }
        self.challenges = self.challenges.saturating_add(1);
        self.challenges <= CHALLENGES
    }

    fn earliest(&self) -> Instant {
        self.retransmit.min(self.recovery).min(self.delayed_ack).min(self.idle)
    }
}

/// How often TIME-WAIT begins anew for an acknowledgement that is withheld: minutes.
const LONG_WAITS: u8 = 60;
/// RFC 5961 (7), its example.
const CHALLENGES: u8 = 10;
/// RFC 5961 (7), its example.
const CHALLENGE_INTERVAL_MS: u32 = 5000;

impl Connection {
    /// When [`Connection::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_deadline()).filter(|&deadline| deadline < Instant::MAX)
    }

    /// When [`Connection::handle_timeout`] wants to be called; [`Instant::MAX`] for never.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.timers.earliest().min(self.pacing_deadline()).min(self.code_deadline())
    }

    /// Lets time-outs due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timers.delayed_ack <= now {
            self.on_delayed_ack_timer();
        }
        if self.code_deadline() <= now {
            self.on_code_timer(now);
        }
        if self.timers.recovery <= now {
            self.timers.start_recovery(Instant::MAX, false);
            self.on_recovery_timer(now);
        }
        if self.timers.retransmit <= now {
            self.timers.stop_retransmit();
            self.on_retransmit_timer(now);
        }
        if self.pacing_deadline() <= now {
            self.stop_pacing_wait();
        }
        if self.timers.idle <= now {
            self.timers.idle = Instant::MAX;
            match self.state {
                State::FinWait2 if self.orphaned => self.fail(now, Failure::TimedOut),
                // The peer has yet to be told that its last bytes came, if there is still somebody to say so.
                State::TimeWait if self.receiver.withholds() && self.timers.keep_alives < LONG_WAITS => {
                    self.timers.keep_alives += 1;
                    self.linger(now);
                }
                // What has not left by now is not waited for.
                State::Closed | State::TimeWait => (self.state, self.reset_due) = (State::Closed, None),
                _ => self.on_keep_alive_timer(now),
            }
        }
    }

    /// Starts the retransmission timer anew; the user time-out may be earlier.
    pub(super) fn restart_retransmit(&mut self, now: Instant, after: Duration) {
        let deadline = now.saturating_add(after);
        self.timers.retransmit = match self.config.limits.user_timeout {
            Some(limit) => deadline.min(self.timers.progress_at.saturating_add(limit)).max(now),
            None => deadline,
        };
    }

    /// The connection is over; it stays for questions for a while.
    pub(super) fn linger(&mut self, now: Instant) {
        self.timers.idle = now.saturating_add(self.config.limits.time_wait);
        if let Some(fec) = &mut self.fec {
            fec.rest();
        }
    }

    fn on_retransmit_timer(&mut self, now: Instant) {
        match self.state {
            State::Closed | State::TimeWait => {}
            State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            _ if self.proxied.is(UNCONFIRMED) => self.on_handshake_timer(now),
            _ if self.user_timed_out(now) => self.fail(now, Failure::TimedOut),
            _ if self.sender.board.is_empty() || self.sender.window == 0 => self.on_persist_timer(now),
            _ => self.on_data_timer(now),
        }
    }

    fn user_timed_out(&self, now: Instant) -> bool {
        u32::from(self.sender.retries) >= self.config.limits.data_retries || self.is_progress_overdue(now)
    }

    fn is_progress_overdue(&self, now: Instant) -> bool {
        let waited = now.saturating_since(self.timers.progress_at);
        self.config.limits.user_timeout.is_some_and(|limit| waited >= limit)
    }

    fn on_handshake_timer(&mut self, now: Instant) {
        let sender = &mut self.sender;
        // One that nobody has taken yet was given all the time that there is. An answer that is due may be one that is asked for again.
        let never_left = self.state == State::SynSent && self.syn_due && sender.retries == 0;
        if never_left
            || u32::from(sender.retries) >= self.config.limits.syn_retries
            || self.is_progress_overdue(now)
        {
            return self.fail(now, Failure::TimedOut);
        }
        self.sender.count_retry();
        self.syn_due = true;
        self.statistics.syn_retransmissions += 1;
        // It may have to wait for its link too.
        let wait = self.sender.rto();
        self.restart_retransmit(now, wait);
    }

    /// The peer's window is closed, or too small for a segment: see whether it still is (RFC 9293, 3.8.6.1).
    fn on_persist_timer(&mut self, now: Instant) {
        let sender = &mut self.sender;
        if sender.board.is_empty() && sender.unsent() == 0 && !sender.fin_waits() {
            return;
        }
        sender.persisting = true;
        sender.probe_due = true;
        sender.count_retry();
        let wait = sender.rto();
        self.restart_retransmit(now, wait);
    }

    /// RFC 6298 (5.4) to (5.6).
    fn on_data_timer(&mut self, now: Instant) {
        self.suspect_black_hole(now);
        let sender = &mut self.sender;
        let again = sender.timeout_at == sender.una;
        let answered = sender.recovery.phase() == Phase::FastRecovery && !sender.is_shared();
        // After one time-out, what is in flight is what was sent since; FlightSize would count it all.
        let flight_size = match sender.recovery.phase() {
            Phase::Timeout => sender.board.pipe(),
            Phase::Open | Phase::FastRecovery => sender.recovery.flight_size(sender.una, sender.nxt),
        };
        sender.timeout_at = sender.una;
        (sender.reduction, sender.validation) = (None, None);
        let methods = self.detection();
        if methods != Methods::default() {
            self.remember_prior(flight_size, true);
        }
        let flight_size = self.reduced_from(flight_size);
        let sender = &mut self.sender;
        let lost = Lost::head(&sender.board);
        let arrival = sender.arrival(now, &Delivered::default());
        sender.recovery.on_timeout(&mut sender.board, &arrival, methods);
        if let Some(fec) = &mut self.fec {
            fec.outgoing.on_timeout(sender.una, &sender.buffer);
            fec.statistics.timeouts_again += u64::from(lost.resent);
        }
        if !again {
            self.marking.on_reduced(sender.nxt, false);
            // Linux (`tcp_enter_loss`): the losses of this flight have been answered for.
            let kept = (answered && !self.config.recovery.second_reduction)
                .then(|| sender.controller.ssthresh())
                .flatten();
            sender.controller.on_congestion(&Congestion {
                now,
                flight_size,
                cause: Cause::Timeout,
                sent_at: lost.sent_at,
                resent: lost.resent,
            });
            if kept.is_some() {
                sender.controller.set_window(sender.controller.window(), kept);
            }
        }
        sender.count_retry();
        let wait = sender.rto();
        self.statistics.timeouts += 1;
        self.restart_retransmit(now, wait);
    }

    /// Ends the connection early and tells the application.
    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        let unheard_of = self.passive && self.state == State::SynReceived && !self.proxied.is(KNOWN);
        self.close_down(now);
        if unheard_of {
            // RFC 9293 (3.10.7.4, second): as if the SYN had never come.
            self.timers.idle = Instant::MAX;
            return;
        }
        self.failure = Some(failure);
        self.events.raise(Events::FAILED);
    }

    /// Nothing more is sent or acknowledged.
    pub(super) fn close_down(&mut self, now: Instant) {
        self.state = State::Closed;
        self.timers.stop_retransmit();
        self.timers.stop_delayed_ack();
        self.sender.leave(now);
        self.sender.buffer.release();
        self.forerunners = None;
        self.syn_due = false;
        self.linger(now);
    }
}
