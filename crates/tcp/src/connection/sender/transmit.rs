//! What goes out next of the sender's (RFC 9293, 3.8; RFC 6675, 5).
//!
//! Deviations: the time-out that overrides silly window avoidance is the retransmission time-out, where RFC 9293
//! (3.8.6.2.1) has 0.1 to 1 s.

use base::Instant;
use base::wire::ip::Ecn;
use base::wire::tcp::Flags;
use base::wire::tcp::coding::Place;

use super::Sender;
use crate::fec::{Reason, Symbol};
use crate::recovery::Next;

/// What leaves.
#[derive(Debug)]
pub(crate) enum Transmission {
    /// Data or FIN.
    Segment(Segment),
    /// A repair of the connection's code.
    Repair(Symbol, Reason),
}

/// A segment that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Offset of the first byte.
    pub(crate) start: u64,
    pub(crate) flags: Flags,
    /// Bytes of data.
    pub(crate) len: u32,
    pub(crate) ecn: Ecn,
    /// Segments that a device is to make of it.
    pub(crate) segments: u32,
    /// Where it is in a block of the connection's code.
    pub(crate) place: Option<Place>,
}

impl Sender {
    /// Whether there is anything to send but acknowledgements; cheap, for it is asked after every segment.
    pub(crate) fn has_work(&self) -> bool {
        self.unsent() > 0
            || self.fin_waits()
            || self.timers.probe_due
            || self.recovery.is_busy()
            || self.has_repairs()
    }

    /// What leaves now, if anything; new data in segments of up to `most` bytes together.
    pub(crate) fn poll(&mut self, now: Instant, most: u32) -> Option<Transmission> {
        self.stop_pacing_wait();
        if self.timers.probe_due {
            self.timers.probe_due = false;
            return Some(Transmission::Segment(self.send_probe(now)));
        }
        if self.timers.persisting {
            // An acknowledgement of the probe may have stopped the timer and left the window closed.
            self.wait_for_window(now);
            return None;
        }
        if self.recovery.is_probe_due() {
            return self.send_tail_probe(now).map(Transmission::Segment);
        }
        if let Some(symbol) = self.next_repair(now, Reason::Reactive) {
            return Some(Transmission::Repair(symbol, Reason::Reactive));
        }
        self.begin_block();
        let new = self.next_new();
        let next = self.recovery.next(&mut self.board, new.is_some());
        if let Next::Retransmit(index) | Next::Rescue(index) = next {
            if self.cuts_before_resending(now, index) {
                return self.poll(now, most);
            }
            return self.resend_within_window(now, index, next, new.is_some()).map(Transmission::Segment);
        }
        if let Some(symbol) = self.next_repair(now, Reason::Proactive) {
            return Some(Transmission::Repair(symbol, Reason::Proactive));
        }
        match (next, new) {
            (Next::New, Some(_)) if self.code_holds_new_data() => None,
            (Next::New, Some(new)) => self.send_new_within_window(now, new, most).map(Transmission::Segment),
            _ => {
                self.wait_for_window(now);
                None
            }
        }
    }

    /// Sends a record again if the window lets it; `waits` says whether new data wait too.
    fn resend_within_window(&mut self, now: Instant, index: u64, next: Next, waits: bool) -> Option<Segment> {
        let len = u64::from(self.board.record(index).data_len());
        let pipe = self.pipe();
        let forced = self.recovery.forced() && matches!(next, Next::Retransmit(_));
        // With nothing in the network the first segment goes, whatever the window (RFC 6298, 5.4).
        if !forced && pipe > 0 && pipe + len > self.allowed() {
            if waits {
                self.note_window_use(true);
            }
            return None;
        }
        self.may_pace(now).then(|| self.resend(now, index, next))
    }

    fn send_new_within_window(
        &mut self,
        now: Instant,
        (len, fin): (u32, bool),
        most: u32,
    ) -> Option<Segment> {
        if self.board.is_empty() {
            self.resume(now);
        }
        let pipe = self.pipe();
        self.controller.on_send_opportunity(now, pipe);
        let forced = self.recovery.lets_new_out();
        // A short segment takes a packet's place in a queue too: a fraction of a segment in the window lets none out.
        if !forced && pipe + u64::from(self.mss) > self.allowed() {
            self.note_window_use(true);
            self.burst_left = 0;
            return None;
        }
        if !forced && self.defers(now, len) {
            self.note_window_use(self.allowed().saturating_sub(pipe) < self.usable_window());
            return None;
        }
        if !self.may_pace(now) {
            return None;
        }
        let segment = match self.search_size(now) {
            Some(size) => {
                self.note_search(size);
                self.send_new(now, (size, false), 1)
            }
            None => {
                let segments = self.train(len, most);
                self.send_new(now, (len, fin && segments == 1), segments)
            }
        };
        let full = self.pipe() + u64::from(self.mss) > self.allowed();
        self.note_window_use(full);
        let limited = self.unsent() == 0 && !full;
        if limited {
            self.meter.on_app_limited(self.board.pipe());
        }
        self.note_use(now, limited);
        Some(segment)
    }

    /// Segments that may go out together in at most `most` bytes, the first of which has `len`.
    fn train(&self, len: u32, most: u32) -> u32 {
        let is_special =
            len < self.mss || self.pacer.is_some() || self.marking.has_news() || self.recovery.doubts();
        let is_special = is_special || self.cuts_blocks();
        if most < 2 * len || is_special {
            return 1;
        }
        let window = self.allowed().saturating_sub(self.board.pipe()).min(self.usable_window());
        let bytes = window.min(self.unsent() as u64).min(most.into());
        ((bytes / u64::from(len)) as u32).max(1)
    }

    /// Sends so many segments of `len` bytes each that were never sent, together.
    pub(super) fn send_new(&mut self, now: Instant, (len, fin): (u32, bool), segments: u32) -> Segment {
        let place = self.place(self.nxt, len, true);
        let ends_burst = self.ends_burst(len, segments);
        let (start, whole) = (self.nxt, len * segments);
        let last = self.unsent() == whole as usize;
        // A probe is beyond the window.
        let (ecn, told) = if len > 0 && u64::from(len) <= self.usable_window() {
            self.marking.take_for_new_data()
        } else {
            (Ecn::NotEct, Flags(0))
        };
        if self.board.is_empty() {
            self.timers.note_progress(now);
        }
        let push = if (last || ends_burst) && len > 0 { Flags::PSH } else { Flags(0) };
        let flags = if fin { push | Flags::FIN } else { push };
        let space = len + u32::from(fin);
        for at in 1..=segments {
            let snapshot = self.meter.snapshot(now, self.board.is_empty());
            self.board.make_room(self.allowance());
            let flags = if at == segments { flags } else { Flags(0) };
            self.board.push(self.nxt, space, flags, now, snapshot);
            self.nxt += u64::from(space);
            self.recovery.on_sent(Next::New, now, 0);
            self.note_sent(u64::from(space));
        }
        self.last_sent_at = now;
        self.close_block(now, len);
        self.note_paced(now, whole);
        self.statistics.data_segments_sent += u64::from(segments);
        if self.timers.is_retransmit_off() {
            self.rearm_retransmit(now); // RFC 6298 (5.1).
        }
        self.schedule_recovery_timer(now, true);
        self.fin_sent |= fin;
        Segment { start, flags: flags | told, len: whole, ecn, segments, place }
    }

    /// Sends a record again.
    pub(super) fn resend(&mut self, now: Instant, index: u64, next: Next) -> Segment {
        self.burst_left = 0;
        let timestamp = self.timestamp(now);
        let record = *self.board.record(index);
        let place = self.place(record.start, record.data_len(), false);
        let snapshot = self.meter.snapshot(now, false);
        match next {
            Next::Rescue(_) => self.board.on_rescued(index, now, snapshot),
            _ => self.board.on_resent(index, now, snapshot),
        }
        self.recovery.on_sent(next, now, timestamp);
        if !matches!(next, Next::Probe(_)) {
            self.recovery.on_resent(record.end(), timestamp);
        }
        self.note_sent(u64::from(record.len));
        self.last_sent_at = now;
        let len = record.data_len();
        if let Some(code) = &mut self.code {
            code.on_resent(now, record.start);
        }
        self.note_paced(now, len);
        self.statistics.retransmissions += 1;
        self.statistics.bytes_retransmitted += u64::from(len);
        if self.timers.is_retransmit_off() {
            self.rearm_retransmit(now);
        }
        Segment { start: record.start, flags: record.flags(), len, ecn: Ecn::NotEct, segments: 1, place }
    }

    /// Data wait, and with nothing outstanding no acknowledgement will come: the persist timer asks
    /// (RFC 9293, 3.8.6.1).
    fn wait_for_window(&mut self, now: Instant) {
        if self.board.is_empty() && self.timers.is_retransmit_off() && (self.unsent() > 0 || self.fin_waits())
        {
            self.timers.note_progress(now);
            self.rearm_retransmit(now);
        }
    }

    /// At least one byte into the peer's window, closed or not: RFC 9293 (3.8.6.1); where it is open by less than a
    /// segment, all that it takes (3.8.6.2.1, the override time-out).
    fn send_probe(&mut self, now: Instant) -> Segment {
        self.statistics.window_probes = self.statistics.window_probes.saturating_add(1);
        if !self.board.is_empty() {
            let head = self.board.head();
            return self.resend(now, head, Next::Retransmit(head));
        }
        let unsent = self.unsent() as u64;
        let most = self.usable_window().max(1).min(u64::from(self.mss));
        let len = unsent.min(most) as u32;
        let fin = self.fin_waits() && u64::from(len) == unsent && (len == 0 || u64::from(len) < most);
        if self.window > 0 {
            // The peer takes it: from here on it is data like any other.
            self.timers.persisting = false;
        }
        self.send_new(now, (len, fin), 1)
    }
}
