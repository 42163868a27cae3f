//! A segment arrives (RFC 9293, 3.10.7).

use base::wire::ip::Ecn;
use base::wire::tcp::{self, Flags};
use base::{Instant, SeqNum};

use super::emit::Reset;
use super::receiver::delaying::MOST_QUICK_ACKS;
use super::sender::acknowledgement::Input;
use super::{Connection, Discard, Events, Failure, State};
use crate::buffer::reassembly::Placed;
use crate::sequence::ORIGIN;

impl Connection {
    /// Takes a segment whose checksum was verified, from an IP packet with the codepoint `ecn`.
    ///
    /// # Errors
    /// [`Discard`] says why the segment was of no use; an answer to it may be due all the same.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        ecn: Ecn,
        segment: &tcp::Repr,
        payload: &[u8],
    ) -> Result<(), Discard> {
        self.statistics.segments_received += 1;
        let result = match self.state {
            State::Closed => Err(Discard::Closed),
            State::SynSent => self.handle_in_syn_sent(now, ecn, segment, payload),
            _ => self.handle_synchronized(now, ecn, segment, payload),
        };
        self.statistics.discarded += u32::from(result.is_err());
        if result.is_ok() {
            self.postpone_keep_alive(now);
        }
        result
    }

    pub(super) fn handle_synchronized(
        &mut self,
        now: Instant,
        ecn: Ecn,
        segment: &tcp::Repr,
        payload: &[u8],
    ) -> Result<(), Discard> {
        let mut flags = segment.flags;
        let mut start = self.receiver.space.offset(segment.seq, self.receiver.nxt());
        let is_answered = self.state == State::SynReceived || self.is_unconfirmed();
        if is_answered && flags.has(Flags::SYN) && start == ORIGIN {
            if !flags.has(Flags::ACK) {
                // The peer sends its SYN again: our answer was lost, or is not given yet.
                self.take_repeated_syn_ecn_flags(flags);
                self.syn_due = !self.is_held();
                return Ok(());
            }
            // Both opened at once, and this is the other's answer: only its acknowledgement is new.
            flags = Flags(flags.0 & !Flags::SYN.0);
            start += 1;
        }
        let len = payload.len() as u64 + u64::from(flags.has(Flags::SYN)) + u64::from(flags.has(Flags::FIN));
        if flags.has(Flags::SYN) && !flags.has(Flags::RST) {
            // RFC 5961 (4.2), wherever it lies.
            self.challenge(now);
            return Err(Discard::SynChallenged);
        }
        self.check_timestamp(now, segment, len)?;
        if let Some(end) = self.repair_end(segment, payload.len()) {
            return self.handle_repair(now, ecn, (segment, end), payload);
        }
        // An end that has forgotten the connection has its number from our acknowledgement, which may lie before.
        let resets = flags.has(Flags::RST) && start == self.receiver.acknowledged();
        let is_false_repair = self.says_repair(segment) && !payload.is_empty();
        if !resets && (is_false_repair || !self.receiver.accepts(start, len)) {
            return self.refuse(now, segment, flags, len);
        }
        if flags.has(Flags::RST) {
            return self.handle_reset(now, segment, start);
        }
        if !flags.has(Flags::ACK) {
            return Err(Discard::NoAck);
        }
        if self.state == State::SynReceived {
            if self.is_held() {
                return Err(Discard::BadAck(segment.ack));
            }
            if segment.ack != self.sender.space.number(ORIGIN + 1) {
                self.reset_due = Some(Reset::Answer(segment.ack));
                return Err(Discard::BadAck(segment.ack));
            }
            self.establish(now, segment);
        }
        self.handle_ack(now, segment, start, len == 0)?;
        self.confirm();
        if !payload.is_empty() {
            self.note_mark(flags, ecn);
            let age = self.sender.timestamp_rtt(now, segment);
            let echoed = segment.options.timestamps.map(|it| it.echo).zip(age);
            let sack = self.sender.negotiated.sack;
            self.receiver.autotune(now, (start, payload.len() as u32), echoed, sack);
            self.receiver.note_push(payload.len(), flags.has(Flags::PSH));
        }
        if len > 0 {
            let placed = self.handle_data(now, start, payload, flags.has(Flags::FIN));
            let place = segment.options.coding.place;
            if self.receiver.note_source(now, place, start, (payload, placed)) {
                self.decode(now);
            }
        }
        Ok(())
    }

    /// The acknowledgement of an acceptable segment that starts at `start`; `bare` if it carries nothing else.
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &tcp::Repr,
        start: u64,
        bare: bool,
    ) -> Result<(), Discard> {
        let Some(ack) = self.sender.acceptable(segment) else {
            self.challenge(now);
            return Err(Discard::BadAck(segment.ack));
        };
        if ack < self.sender.una {
            return Ok(());
        }
        // Only now: a forged segment seldom gets this far, and a forged TS.Recent makes genuine ones fail PAWS.
        if let Some(timestamps) = segment.options.timestamps.filter(|_| self.sender.negotiated.timestamps) {
            self.receiver.note_timestamp(now, timestamps.value, start);
        }
        let (opened, awaited) = (!self.is_half_open(), !self.orphaned);
        let output = self.sender.on_ack(now, segment, &Input { start, ack, bare, opened, awaited });
        if output.advanced {
            self.note_acknowledged();
            self.release_if_acknowledged();
            if self.sender.unblocks() {
                self.events.raise(Events::WRITABLE);
            }
        }
        if output.finished {
            self.on_fin_acknowledged(now);
        }
        Ok(())
    }

    /// A router says that the segment of ours that begins with `seq` was too big: packets of `mtu` bytes pass, zero if it does
    /// not say.
    ///
    /// # Errors
    /// It is not to be believed.
    pub(crate) fn handle_too_big(&mut self, now: Instant, seq: SeqNum, mtu: u32) -> Result<(), Discard> {
        if self.sender.believes_too_big(now, seq, mtu) { Ok(()) } else { Err(Discard::NotBelieved(seq)) }
    }

    /// RFC 7323 (3.2) and PAWS (5.3): resets are exempt.
    fn check_timestamp(&mut self, now: Instant, segment: &tcp::Repr, len: u64) -> Result<(), Discard> {
        if !self.sender.negotiated.timestamps || segment.flags.has(Flags::RST) {
            return Ok(());
        }
        match segment.options.timestamps {
            None => Err(Discard::NoTimestamp),
            Some(timestamps) if self.receiver.is_old_timestamp(now, timestamps.value) => {
                self.tell_where_we_are(now, segment, len);
                Err(Discard::OldTimestamp(timestamps.value))
            }
            Some(_) => Ok(()),
        }
    }

    /// Nothing of the segment is in the window: the peer is told where it is.
    fn refuse(&mut self, now: Instant, segment: &tcp::Repr, flags: Flags, len: u64) -> Result<(), Discard> {
        let refusal = Err(Discard::OutsideWindow(segment.seq));
        if flags.has(Flags::RST) {
            return refusal;
        }
        if self.state == State::TimeWait && flags.has(Flags::FIN) {
            self.linger(now);
        }
        self.tell_where_we_are(now, segment, len);
        refusal
    }

    /// Acknowledges a segment of `len` that was refused (RFC 9293, 3.10.7.4, first).
    fn tell_where_we_are(&mut self, now: Instant, segment: &tcp::Repr, len: u64) {
        if len == 0 {
            // Two ends that disagree must not answer each other's answers for ever.
            self.challenge(now);
        } else {
            let start = self.receiver.space.offset(segment.seq, self.receiver.nxt());
            if start > ORIGIN {
                self.receiver.note_duplicate(start, start + len);
            }
            self.receiver.duplicates_due = self.receiver.duplicates_due.saturating_add(1);
            self.statistics.duplicates_received += 1;
            self.receiver.hurry_acks(MOST_QUICK_ACKS);
            self.receiver.note_late_source(&segment.options.coding);
        }
    }

    /// RFC 5961 (3.2).
    fn handle_reset(&mut self, now: Instant, segment: &tcp::Repr, start: u64) -> Result<(), Discard> {
        if start != self.receiver.nxt() && start != self.receiver.acknowledged() {
            self.challenge(now);
            return Err(Discard::ResetChallenged(segment.seq));
        }
        match self.state {
            State::TimeWait => return Err(Discard::Closed), // RFC 1337.
            State::SynReceived => self.fail(now, Failure::Refused),
            State::LastAck | State::Closing => {
                self.events.raise(Events::CLOSED);
                self.close_down(now);
            }
            _ => self.fail(now, Failure::Reset),
        }
        Ok(())
    }

    /// An acknowledgement to whoever may be guessing, at a limited rate (RFC 5961, 7).
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.timers.allow_challenge(now) {
            self.receiver.ack_now = true;
            self.statistics.challenge_acks = self.statistics.challenge_acks.saturating_add(1);
        }
    }

    /// The segment's text and FIN (RFC 9293, 3.10.7.4, seventh and eighth).
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        start: u64,
        payload: &[u8],
        fin: bool,
    ) -> Option<Placed> {
        if self.orphaned && !payload.is_empty() && start + payload.len() as u64 > self.receiver.nxt() {
            // RFC 1122 (4.2.2.13), with the number that the segment acknowledged.
            self.abort(now);
            let answer = Reset::Answer(self.sender.space.number(self.sender.una));
            self.reset_due = self.reset_due.map(|_| answer);
            return None;
        }
        let before = self.receiver.reassembly.next();
        let intake = self.receiver.take(start, payload, fin);
        match intake.placed {
            Some(Placed::InOrder { .. }) => {
                self.statistics.bytes_received += self.receiver.reassembly.next() - before;
                self.events.raise(Events::READABLE);
                self.receiver.schedule_ack(now, before, self.sender.rto(), self.sender.rtt.srtt());
            }
            Some(Placed::OutOfOrder(_)) => self.statistics.out_of_order_received += 1,
            Some(Placed::Duplicate) => {
                self.statistics.duplicates_received += 1;
                self.receiver.hurry_acks(MOST_QUICK_ACKS);
            }
            Some(Placed::Dropped) => self.statistics.memory_drops += 1,
            None => {}
        }
        if intake.peer_finished {
            self.on_peer_finished(now);
        }
        intake.placed
    }
}
