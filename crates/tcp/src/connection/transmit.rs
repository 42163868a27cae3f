//! What goes out next (RFC 9293, 3.8; RFC 6675, 5).
//!
//! Deviations: the time-out that overrides silly window avoidance is the retransmission time-out, where RFC 9293
//! (3.8.6.2.1) has 0.1 to 1 s.

use base::wire::ip::Ecn;
use base::wire::tcp::Flags;
use base::{Instant, Packet};

use super::emit::Outgoing;
use super::{Connection, State};
use crate::recovery::Next;

impl Connection {
    /// Writes the next packet to `out`; false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Packet) -> bool {
        if let Some(seq) = self.reset_due.take() {
            self.emit_reset(out, seq);
            return true;
        }
        match self.state {
            State::Closed => return false,
            State::SynSent | State::SynReceived => return self.poll_handshake(now, out),
            _ => {}
        }
        // The peer counts duplicates, and one that carries data is none.
        if self.receiver.duplicates_due == 0 && self.has_work() && self.poll_data(now, out) {
            return true;
        }
        if self.receiver.ack_due() {
            let keep_alive = core::mem::take(&mut self.timers.keep_alive_due);
            let start = self.sender.nxt - u64::from(keep_alive);
            self.emit(now, out, Outgoing { start, flags: Flags(0), len: 0, ecn: Ecn::NotEct });
            return true;
        }
        false
    }

    /// Whether [`Connection::poll_transmit`] may have something; cheap.
    pub(crate) fn wants_transmit(&self) -> bool {
        self.receiver.ack_due() || self.has_work() || self.syn_due || self.reset_due.is_some()
    }

    /// Whether there is anything to send but acknowledgements; cheap, for it is asked after every segment.
    fn has_work(&self) -> bool {
        let sender = &self.sender;
        sender.unsent() > 0 || sender.fin_waits() || sender.probe_due || sender.recovery.is_busy()
    }

    fn poll_data(&mut self, now: Instant, out: &mut Packet) -> bool {
        self.stop_pacing_wait();
        if self.sender.probe_due {
            self.sender.probe_due = false;
            return self.send_probe(now, out);
        }
        if self.sender.persisting {
            // An acknowledgement of the probe may have stopped the timer and left the window closed.
            self.wait_for_window(now);
            return false;
        }
        if self.sender.recovery.is_probe_due() {
            return self.send_tail_probe(now, out);
        }
        let new = self.sender.next_new();
        let next = self.sender.recovery.next(&mut self.sender.board, new.is_some());
        match (next, new) {
            (Next::Retransmit(index) | Next::Rescue(index), _) if self.cuts_before_resending(now, index) => {
                self.poll_data(now, out)
            }
            (Next::Retransmit(index) | Next::Rescue(index), _) => {
                let len = u64::from(self.sender.board.record(index).data_len());
                let pipe = self.sender.board.pipe();
                let forced = self.sender.recovery.forced() && matches!(next, Next::Retransmit(_));
                // With nothing in the network the first segment goes, whatever the window (RFC 6298, 5.4).
                if !forced && pipe > 0 && pipe + len > self.sender.allowed() {
                    return false;
                }
                if !self.may_pace(now) {
                    return false;
                }
                self.resend(now, out, index, next);
                true
            }
            (Next::New, Some((len, fin))) => self.send_new_within_window(now, out, len, fin),
            _ => {
                self.wait_for_window(now);
                false
            }
        }
    }

    fn send_new_within_window(&mut self, now: Instant, out: &mut Packet, len: u32, fin: bool) -> bool {
        if self.sender.board.is_empty() {
            self.resume(now);
        }
        let sender = &mut self.sender;
        sender.controller.on_send_opportunity(now, sender.board.pipe());
        let forced = sender.recovery.lets_new_out();
        // A short segment takes a packet's place in a queue too: a fraction of a segment in the window lets none out.
        if !forced && sender.board.pipe() + u64::from(sender.mss.max(len)) > sender.allowed() {
            return false;
        }
        if !self.may_pace(now) {
            return false;
        }
        let (len, fin) = match self.search_size(now) {
            Some(size) => {
                self.note_search(size);
                (size, false)
            }
            None => (len, fin),
        };
        self.send_new(now, out, len, fin);
        let sender = &mut self.sender;
        let limited = sender.unsent() == 0 && sender.board.pipe() + u64::from(sender.mss) <= sender.allowed();
        if limited {
            sender.meter.on_app_limited(sender.board.pipe());
        }
        self.note_use(now, limited);
        true
    }

    /// Sends `len` bytes that were never sent.
    pub(super) fn send_new(&mut self, now: Instant, out: &mut Packet, len: u32, fin: bool) {
        let sender = &mut self.sender;
        let start = sender.nxt;
        let last = sender.unsent() == len as usize;
        let snapshot = sender.meter.snapshot(now, sender.board.is_empty());
        let space = len + u32::from(fin);
        if sender.board.is_empty() {
            self.timers.note_progress(now);
        }
        sender.board.make_room(sender.allowance());
        sender.board.push(start, space, fin, now, snapshot);
        sender.last_sent_at = now;
        let push = if last && len > 0 { Flags::PSH } else { Flags(0) };
        let flags = if fin { push | Flags::FIN } else { push };
        // A probe is beyond the window.
        let (ecn, told) = if len > 0 && u64::from(len) <= sender.usable_window() {
            self.marking.take_for_new_data()
        } else {
            (Ecn::NotEct, Flags(0))
        };
        self.emit(now, out, Outgoing { start, flags: flags | told, len, ecn });
        let sender = &mut self.sender;
        sender.nxt += u64::from(space);
        sender.recovery.on_sent(Next::New, now, 0);
        sender.note_sent(u64::from(space));
        self.note_paced(now, len);
        self.statistics.data_segments_sent += 1;
        if self.timers.is_retransmit_off() {
            let wait = self.sender.rto();
            self.restart_retransmit(now, wait); // RFC 6298 (5.1).
        }
        self.schedule_recovery_timer(now, true);
        if fin {
            self.sender.fin_sent = true;
            self.on_fin_sent();
        }
    }

    /// Sends a record again.
    pub(super) fn resend(&mut self, now: Instant, out: &mut Packet, index: u64, next: Next) {
        let timestamp = self.timestamp(now);
        let sender = &mut self.sender;
        let record = *sender.board.record(index);
        let snapshot = sender.meter.snapshot(now, false);
        match next {
            Next::Rescue(_) => sender.board.on_rescued(index, now, snapshot),
            _ => sender.board.on_resent(index, now, snapshot, matches!(next, Next::Retransmit(_))),
        }
        sender.recovery.on_sent(next, now, timestamp);
        if !matches!(next, Next::Probe(_)) {
            sender.recovery.on_resent(record.end(), timestamp);
        }
        sender.note_sent(u64::from(record.len));
        sender.last_sent_at = now;
        let len = record.data_len();
        let flags = if record.has_fin() { Flags::FIN } else { Flags(0) };
        self.emit(now, out, Outgoing { start: record.start, flags, len, ecn: Ecn::NotEct });
        self.note_paced(now, len);
        self.statistics.retransmissions += 1;
        self.statistics.bytes_retransmitted += u64::from(len);
        if self.timers.is_retransmit_off() {
            let wait = self.sender.rto();
            self.restart_retransmit(now, wait);
        }
    }

    /// Data wait, and with nothing outstanding no acknowledgement will come: the persist timer asks
    /// (RFC 9293, 3.8.6.1).
    fn wait_for_window(&mut self, now: Instant) {
        let sender = &self.sender;
        if sender.board.is_empty()
            && self.timers.is_retransmit_off()
            && (sender.unsent() > 0 || sender.fin_waits())
        {
            let wait = sender.rto();
            self.timers.note_progress(now);
            self.restart_retransmit(now, wait);
        }
    }

    /// At least one byte into the peer's window, closed or not: RFC 9293 (3.8.6.1); where it is open by less than a
    /// segment, all that it takes (3.8.6.2.1, the override time-out).
    fn send_probe(&mut self, now: Instant, out: &mut Packet) -> bool {
        self.statistics.window_probes += 1;
        if !self.sender.board.is_empty() {
            let head = self.sender.board.head();
            self.resend(now, out, head, Next::Retransmit(head));
            return true;
        }
        let sender = &mut self.sender;
        let unsent = sender.unsent() as u64;
        let most = sender.usable_window().max(1).min(u64::from(sender.mss));
        let len = unsent.min(most) as u32;
        let fin = sender.fin_waits() && u64::from(len) == unsent && (len == 0 || u64::from(len) < most);
        if sender.window > 0 {
            // The peer takes it: from here on it is data like any other.
            sender.persisting = false;
        }
        self.send_new(now, out, len, fin);
        true
    }
}
