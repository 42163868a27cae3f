//! Finishing, closing and aborting (RFC 9293, 3.6, 3.10.4 and 3.10.5).

use base::Instant;

use super::emit::Reset;
use super::{Connection, Events, Failure, State};

impl Connection {
    /// No more data from this side; what was written is still sent. The peer may go on.
    pub fn finish(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.sender.fin_queued = true;
        }
    }

    /// The application is done with it: what was written is still sent, and nothing more is read. Data that were not read,
    /// or that come later, are lost, and the peer is told by a reset (RFC 1122, 4.2.2.13). A peer that neither finishes nor
    /// takes what was written does not hold the connection up for ever.
    pub fn close(&mut self, now: Instant) {
        if self.readable() > 0 || self.state == State::SynSent {
            return self.abort(now);
        }
        self.finish();
        self.orphaned = true;
        if self.state == State::FinWait2 {
            self.await_fin(now);
        }
    }

    /// FIN-WAIT-2 ends after a while where nobody reads.
    fn await_fin(&mut self, now: Instant) {
        if self.orphaned {
            self.timers.idle = now.saturating_add(self.sender.config.limits.fin_wait_2);
        }
    }

    /// Whether the peer may be silent for as long as it likes, but for keep-alives.
    pub(super) const fn may_stay_silent(&self) -> bool {
        let open =
            matches!(self.state, State::Established | State::CloseWait | State::FinWait1 | State::FinWait2);
        open && !self.orphaned
    }

    /// Ends the connection at once, with a reset to the peer; unsent and unread data are lost.
    pub fn abort(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::SynSent | State::TimeWait => {}
            _ => self.reset_due = Some(Reset::Own(self.sender.space.number(self.sender.nxt))),
        }
        self.drop_unread();
        self.fail(now, Failure::Aborted);
    }

    /// Our FIN went out for the first time.
    pub(super) fn on_fin_sent(&mut self) {
        self.state = match self.state {
            State::CloseWait => State::LastAck,
            State::SynReceived | State::Established => State::FinWait1,
            other => other,
        };
    }

    /// Our FIN was acknowledged.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        self.sender.leave(now);
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.await_fin(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => {
                self.events.raise(Events::CLOSED);
                self.close_down(now);
            }
            _ => {}
        }
    }

    /// The peer's FIN came in order.
    pub(super) fn on_peer_finished(&mut self, now: Instant) {
        self.events.raise(Events::PEER_FINISHED);
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.events.raise(Events::CLOSED);
        self.sender.timers.stop_retransmit();
        self.sender.buffer.release();
        self.linger(now);
    }
}
