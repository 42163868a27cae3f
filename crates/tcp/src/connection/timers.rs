//! The connection's deadlines and what happens at them. The sender has [its own](super::sender::timers).

use base::Instant;

use super::{Connection, Events, Failure, State};

/// Deadlines of neither half, and the rate of challenge ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// The next keep-alive; or the end of FIN-WAIT-2 where nobody reads, of TIME-WAIT, or of the time that an ended
    /// connection stays for questions; [`Instant::MAX`] for none.
    pub(super) idle: Instant,
    /// Challenge ACKs sent since `challenges_since`.
    challenges: u8,
    /// Keep-alives since the peer was last heard of; in TIME-WAIT, how often that began anew.
    pub(super) keep_alives: u8,
    /// One is to be sent.
    pub(super) keep_alive_due: bool,
    /// In milliseconds, which wrap.
    challenges_since: u32,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self { idle: Instant::MAX, challenges: 0, keep_alives: 0, keep_alive_due: false, challenges_since: 0 }
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
        let halves = self.sender.deadline().min(self.receiver.deadline());
        halves.min(self.timers.idle)
    }

    /// Lets time-outs due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.receiver.ack_at <= now {
            self.receiver.on_delayed_ack_timer(self.sender.rto());
        }
        self.receiver.check_repair_timer(now);
        self.sender.check_code_timer(now);
        self.sender.check_recovery_timer(now);
        if self.sender.take_retransmit_expiry(now) {
            self.on_retransmit_timer(now);
        }
        self.sender.check_pacing_timer(now);
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

    /// The connection is over; it stays for questions for a while.
    pub(super) fn linger(&mut self, now: Instant) {
        self.timers.idle = now.saturating_add(self.sender.config.limits.time_wait);
        // Nothing is repaired any more, and no timer runs for it.
        if let Some(code) = &mut self.sender.code {
            code.rest();
        }
        if let Some(repairs) = &mut self.receiver.repairs {
            repairs.rest();
        }
    }

    fn on_retransmit_timer(&mut self, now: Instant) {
        match self.state {
            State::Closed | State::TimeWait => {}
            State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            _ if self.is_unconfirmed() => self.on_handshake_timer(now),
            _ if self.sender.has_timed_out(now) => self.fail(now, Failure::TimedOut),
            _ => self.sender.on_retransmit_timer(now),
        }
    }

    fn on_handshake_timer(&mut self, now: Instant) {
        let sender = &mut self.sender;
        // One that nobody has taken yet was given all the time that there is. An answer that is due may be one that is asked for again.
        let never_left = self.state == State::SynSent && self.syn_due && sender.timers.retries == 0;
        if never_left
            || u32::from(sender.timers.retries) >= sender.config.limits.syn_retries
            || sender.is_progress_overdue(now)
        {
            return self.fail(now, Failure::TimedOut);
        }
        self.sender.timers.count_retry();
        self.syn_due = true;
        self.sender.statistics.syn_retransmissions += 1;
        // It may have to wait for its link too.
        self.sender.rearm_retransmit(now);
    }

    /// Ends the connection early and tells the application.
    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        let unheard_of = self.passive && self.state == State::SynReceived && !self.is_known();
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
        self.sender.timers.stop_retransmit();
        self.receiver.ack_at = Instant::MAX;
        self.sender.leave(now);
        self.sender.buffer.release();
        self.forerunners = None;
        self.syn_due = false;
        self.linger(now);
    }
}
