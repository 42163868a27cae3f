//! Finishing and aborting (RFC 9293, 3.6, 3.10.4 and 3.10.5).

use base::Instant;

use super::{Connection, Events, Failure, State};

impl Connection {
    /// No more data from this side; what was written is still sent. The peer may go on.
    pub fn finish(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.sender.fin_queued = true;
        }
    }

    /// Ends the connection at once, with a reset to the peer; unsent and unread data are lost.
    pub fn abort(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::SynSent | State::TimeWait => {}
            _ => self.reset_due = Some(self.sender.space.number(self.sender.nxt)),
        }
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
            State::FinWait1 => self.state = State::FinWait2,
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
        self.timers.stop_retransmit();
        self.sender.buffer.release();
        self.linger(now);
    }
}
