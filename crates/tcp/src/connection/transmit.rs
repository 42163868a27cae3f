//! What goes out next (RFC 9293, 3.8; RFC 6675, 5).
//!
//! Deviations: the time-out that overrides silly window avoidance is the retransmission time-out, where RFC 9293
//! (3.8.6.2.1) has 0.1 to 1 s.

use base::wire::ip::Ecn;
use base::wire::tcp::Flags;
use base::{Instant, Packet};

use super::emit::Outgoing;
use super::{Connection, State};
use crate::fec::Reason;
use crate::recovery::Next;

impl Connection {
    /// Writes the next packet to `out`; false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Packet) -> bool {
        self.poll_transmit_train(now, out, 0) > 0
    }

    /// Writes the next packet to `out`, in which full segments of new data in a row may come together, for whoever
    /// has it cut up by a device. Returns the number of segments in it, 0 if there is none. A packet of several has
    /// up to `most` bytes of data, and its TCP checksum covers the pseudo-header alone.
    pub fn poll_transmit_train(&mut self, now: Instant, out: &mut Packet, most: u32) -> u32 {
        if let Some(reset) = self.reset_due.take() {
            self.emit_reset(now, out, reset);
            return 1;
        }
        match self.state {
            State::Closed => return 0,
            State::SynSent | State::SynReceived => return self.poll_handshake(now, out).into(),
            _ if self.syn_due => return self.poll_handshake(now, out).into(),
            _ if self.is_silent() => return 0,
            _ => {}
        }
        // The peer counts duplicates, and one that carries data is none.
        if self.receiver.duplicates_due == 0 && self.has_work() {
            let sent = self.poll_data(now, out, most);
            if sent > 0 {
                return sent;
            }
        }
        if self.receiver.ack_due() {
            let keep_alive = core::mem::take(&mut self.timers.keep_alive_due);
            let start = self.sender.nxt - u64::from(keep_alive);
            let bare =
                Outgoing { start, flags: Flags(0), len: 0, ecn: Ecn::NotEct, segments: 1, place: None };
            self.emit(now, out, bare);
            return 1;
        }
        0
    }

    /// Whether [`Connection::poll_transmit`] may have something; cheap.
    pub(crate) fn wants_transmit(&self) -> bool {
        self.receiver.ack_due() || self.has_work() || self.syn_due || self.reset_due.is_some()
    }

    /// Whether there is anything to send but acknowledgements; cheap, for it is asked after every segment.
    fn has_work(&self) -> bool {
        let sender = &self.sender;
        sender.unsent() > 0
            || sender.fin_waits()
            || sender.probe_due
            || sender.recovery.is_busy()
            || self.has_repairs()
    }

    /// Segments sent.
    fn poll_data(&mut self, now: Instant, out: &mut Packet, most: u32) -> u32 {
        self.stop_pacing_wait();
        if self.sender.probe_due {
            self.sender.probe_due = false;
            return self.send_probe(now, out).into();
        }
        if self.sender.persisting {
            // An acknowledgement of the probe may have stopped the timer and left the window closed.
            self.wait_for_window(now);
            return 0;
        }
        if self.sender.recovery.is_probe_due() {
            return self.send_tail_probe(now, out).into();
        }
        if self.send_repair(now, out, Reason::Reactive) {
            return 1;
        }
        self.begin_block();
        let new = self.sender.next_new();
        let next = self.sender.recovery.next(&mut self.sender.board, new.is_some());
        match (next, new) {
            (Next::Retransmit(index) | Next::Rescue(index), _) if self.cuts_before_resending(now, index) => {
                self.poll_data(now, out, most)
            }
            (Next::Retransmit(index) | Next::Rescue(index), _) => {
                let len = u64::from(self.sender.board.record(index).data_len());
                let pipe = self.pipe();
                let forced = self.sender.recovery.forced() && matches!(next, Next::Retransmit(_));
                // With nothing in the network the first segment goes, whatever the window (RFC 6298, 5.4).
                if !forced && pipe > 0 && pipe + len > self.sender.allowed() {
                    if new.is_some() {
                        self.sender.note_window_use(true);
                    }
                    return 0;
                }
                if !self.may_pace(now) {
                    return 0;
                }
                self.resend(now, out, index, next);
                1
            }
            _ if self.send_repair(now, out, Reason::Proactive) => 1,
            (Next::New, Some(_)) if self.code_holds_new_data() => 0,
            (Next::New, Some((len, fin))) => self.send_new_within_window(now, out, (len, fin), most),
            _ => {
                self.wait_for_window(now);
                0
            }
        }
    }

    fn send_new_within_window(
        &mut self,
        now: Instant,
        out: &mut Packet,
        (len, fin): (u32, bool),
        most: u32,
    ) -> u32 {
        if self.sender.board.is_empty() {
            self.resume(now);
        }
        let pipe = self.pipe();
        let sender = &mut self.sender;
        sender.controller.on_send_opportunity(now, pipe);
        let forced = sender.recovery.lets_new_out();
        // A short segment takes a packet's place in a queue too: a fraction of a segment in the window lets none out.
        if !forced && pipe + u64::from(sender.mss) > sender.allowed() {
            sender.note_window_use(true);
            self.burst_left = 0;
            return 0;
        }
        if !forced && self.defers(now, len) {
            let sender = &mut self.sender;
            sender.note_window_use(sender.allowed().saturating_sub(pipe) < sender.usable_window());
            return 0;
        }
        if !self.may_pace(now) {
            return 0;
        }
        let mut segments = 1;
        let (len, fin) = match self.search_size(now) {
            Some(size) => {
                self.note_search(size);
                (size, false)
            }
            None => {
                segments = self.train(len, most);
                (len, fin && segments == 1)
            }
        };
        self.send_train(now, out, (len, fin), segments);
        let pipe = self.pipe();
        let sender = &mut self.sender;
        let full = pipe + u64::from(sender.mss) > sender.allowed();
        sender.note_window_use(full);
        let limited = sender.unsent() == 0 && !full;
        if limited {
            sender.meter.on_app_limited(sender.board.pipe());
        }
        self.note_use(now, limited);
        segments
    }

    /// Segments that may go out together in at most `most` bytes, the first of which has `len`.
    fn train(&self, len: u32, most: u32) -> u32 {
        let sender = &self.sender;
        let is_special =
            len < sender.mss || self.pacer.is_some() || self.marking.has_news() || sender.recovery.doubts();
        let is_special = is_special || self.cuts_blocks();
        if most < 2 * len || is_special {
            return 1;
        }
        let window = sender.allowed().saturating_sub(sender.board.pipe()).min(sender.usable_window());
        let bytes = window.min(sender.unsent() as u64).min(most.into());
        ((bytes / u64::from(len)) as u32).max(1)
    }

    /// Sends `len` bytes that were never sent.
    pub(super) fn send_new(&mut self, now: Instant, out: &mut Packet, len: u32, fin: bool) {
        self.send_train(now, out, (len, fin), 1);
    }

    /// Sends so many segments of `len` bytes each that were never sent, in one packet.
    fn send_train(&mut self, now: Instant, out: &mut Packet, (len, fin): (u32, bool), segments: u32) {
        let place = self.place(self.sender.nxt, len, true);
        let ends_burst = self.ends_burst(len, segments);
        let sender = &mut self.sender;
        let (start, whole) = (sender.nxt, len * segments);
        let last = sender.unsent() == whole as usize;
        // A probe is beyond the window.
        let (ecn, told) = if len > 0 && u64::from(len) <= sender.usable_window() {
            self.marking.take_for_new_data()
        } else {
            (Ecn::NotEct, Flags(0))
        };
        if sender.board.is_empty() {
            self.timers.note_progress(now);
        }
        let push = if (last || ends_burst) && len > 0 { Flags::PSH } else { Flags(0) };
        let flags = if fin { push | Flags::FIN } else { push };
        let space = len + u32::from(fin);
        for at in 1..=segments {
            let snapshot = sender.meter.snapshot(now, sender.board.is_empty());
            sender.board.make_room(sender.allowance());
            let flags = if at == segments { flags } else { Flags(0) };
            sender.board.push(sender.nxt, space, flags, now, snapshot);
            sender.nxt += u64::from(space);
            sender.recovery.on_sent(Next::New, now, 0);
            sender.note_sent(u64::from(space));
        }
        sender.last_sent_at = now;
        self.emit(now, out, Outgoing { start, flags: flags | told, len: whole, ecn, segments, place });
        self.close_block(now, len);
        self.note_paced(now, whole);
        self.statistics.data_segments_sent += u64::from(segments);
        if self.timers.is_retransmit_off() {
            let wait = self.sender.rto();
            self.restart_retransmit(now, wait); // RFC 6298 (5.1).
        }
        self.schedule_recovery_timer(now, true);
        if fin {
            self.sender.fin_sent = true;
            self.on_fin_sent();
        }
        if self.write_blocked {
            self.check_writable_again();
        }
    }

    /// Sends a record again.
    pub(super) fn resend(&mut self, now: Instant, out: &mut Packet, index: u64, next: Next) {
        self.burst_left = 0;
        let timestamp = self.timestamp(now);
        let record = *self.sender.board.record(index);
        let place = self.place(record.start, record.data_len(), false);
        let sender = &mut self.sender;
        let snapshot = sender.meter.snapshot(now, false);
        match next {
            Next::Rescue(_) => sender.board.on_rescued(index, now, snapshot),
            _ => sender.board.on_resent(index, now, snapshot),
        }
        sender.recovery.on_sent(next, now, timestamp);
        if !matches!(next, Next::Probe(_)) {
            sender.recovery.on_resent(record.end(), timestamp);
        }
        sender.note_sent(u64::from(record.len));
        sender.last_sent_at = now;
        let len = record.data_len();
        let flags = record.flags();
        let again = Outgoing { start: record.start, flags, len, ecn: Ecn::NotEct, segments: 1, place };
        self.emit(now, out, again);
        if let Some(fec) = &mut self.fec {
            fec.outgoing.on_resent(now, record.start);
        }
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
        self.statistics.window_probes = self.statistics.window_probes.saturating_add(1);
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
