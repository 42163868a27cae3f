//! Where the erasure code of Loss-Tolerant TCP meets the connection: [`crate::fec`] has its blocks.

use base::wire::ip::Ecn;
use base::wire::tcp::coding::{Coding, Place, REPAIR_LEN, Repair};
use base::wire::tcp::{self, Flags, Options};
use base::{Instant, Packet};

use super::emit::write_packet;
use super::{Connection, Discard, State};
use crate::buffer::reassembly::Placed;
use crate::config::EcnUse;
use crate::fec::{Fec, FecStatistics, Reason, Symbol};
use crate::recovery::scoreboard::Delivered;

impl Connection {
    /// What the connection's erasure code counted, if it has one.
    #[must_use]
    pub fn fec_statistics(&self) -> Option<&FecStatistics> {
        self.fec.as_ref().map(|fec| &fec.statistics)
    }

    /// The erasure rate as the sender estimates it, from 0 to 1; none without a code.
    #[must_use]
    pub fn erasure_rate(&self) -> Option<f64> {
        self.fec.as_ref().map(|fec| fec.outgoing.estimate.rate())
    }

    /// Both SYNs are known: what of the code is used from here on.
    pub(super) fn agree_on_code(&mut self) {
        let config = &self.config.fec;
        let codes = config.codes() && self.negotiated.coded;
        let adapts = config.adaptive_mss && (codes || !config.codes());
        if !codes && !adapts && self.config.ecn != EcnUse::Only {
            return;
        }
        if codes {
            // A repair says more than other segments, and is as large as the largest of them.
            self.sender.mss -= REPAIR_LEN as u32;
        }
        let numbers = (
            self.sender.space.number(crate::sequence::ORIGIN).0,
            self.receiver.space.number(crate::sequence::ORIGIN).0,
        );
        let config = if codes || adapts { *config } else { crate::config::FecConfig::OFF };
        self.fec = Some(Box::new(Fec::new(&config, self.sender.mss, numbers)));
    }

    /// The initial sequence number, and perhaps what is offered, is another one's: before the SYN or SYN-ACK is sent.
    pub(super) fn agree_again_on_code(&mut self) {
        let coded = self.negotiated.coded;
        self.negotiated.coded &= self.negotiated.sack;
        if self.fec.take().is_some() {
            self.sender.mss += if coded { REPAIR_LEN as u32 } else { 0 };
            self.agree_on_code();
        }
    }

    /// Whether data and acknowledgements carry the code's options.
    pub(super) const fn codes(&self) -> bool {
        self.negotiated.coded
    }

    /// New data may go out: the size of the segments of the block that they begin.
    pub(super) fn begin_block(&mut self) {
        let cuts = self.cuts_blocks();
        let Some(fec) = self.fec.as_mut().filter(|_| cuts) else { return };
        let sender = &mut self.sender;
        if sender.unsent() > 0
            && let Some(mss) = fec.outgoing.begin(sender.una, sender.nxt, sender.controller.window())
        {
            sender.mss = mss;
        }
    }

    /// Whether the stream is cut into blocks.
    pub(super) fn cuts_blocks(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.outgoing.cuts())
    }

    /// Bytes of data of the largest segment that is known to pass.
    pub(super) fn largest_segment(&self) -> u32 {
        let of_code = self.fec.as_ref().filter(|fec| fec.outgoing.cuts());
        of_code.map_or(self.sender.mss, |fec| fec.outgoing.most())
    }

    /// Whether losses are repaired by somebody who takes repairs.
    pub(super) fn is_repaired(&self) -> bool {
        self.negotiated.coded && self.fec.as_ref().is_some_and(|fec| fec.outgoing.codes())
    }

    /// Whether new data have to wait for the code.
    pub(super) fn code_holds_new_data(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.outgoing.holds_new_data())
    }

    /// Bytes that may be in the network: `pipe`, and repairs.
    pub(super) fn pipe(&self) -> u64 {
        let repairs = self.fec.as_ref().map_or(0, |fec| fec.outgoing.bytes_in_flight());
        self.sender.board.pipe() + repairs
    }

    /// Whether a repair may be due; cheap.
    pub(super) fn has_repairs(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.outgoing.has_work())
    }

    /// The place of a segment that goes out, new or again.
    pub(super) fn place(&mut self, start: u64, len: u32, new: bool) -> Option<Place> {
        let codes = self.is_repaired();
        let fec = self.fec.as_mut().filter(|_| len > 0)?;
        let place = if new { fec.outgoing.on_source(start, len) } else { fec.outgoing.place_of(start, len) };
        fec.statistics.blocks_sent += u64::from(new && place.is_some_and(|place| place.number == 0));
        place.filter(|_| codes)
    }

    /// New data of `len` bytes are out: perhaps their block has ended.
    pub(super) fn close_block(&mut self, now: Instant, len: u32) {
        let Some(fec) = &mut self.fec else { return };
        let sender = &self.sender;
        fec.outgoing.close_if_due(len, sender.unsent() == 0, sender.una, &sender.buffer);
        fec.outgoing.restart_probe(now, sender.rtt.srtt().unwrap_or_default(), false);
    }

    /// Writes a repair to `out`, if one is due and the window lets it; reactive ones ask no window.
    pub(super) fn send_repair(&mut self, now: Instant, out: &mut Packet, reason: Reason) -> bool {
        let pipe = self.pipe();
        let Some(fec) = &mut self.fec else { return false };
        let Some(due) = fec.outgoing.next().filter(|due| due.reason == reason) else { return false };
        let fits = pipe == 0 || pipe + u64::from(due.len) <= self.sender.allowed();
        if reason == Reason::Proactive && !fits {
            return false;
        }
        if !self.may_pace(now) {
            return false;
        }
        let Some(fec) = &mut self.fec else { return false };
        let symbol = fec.outgoing.take(now, due, self.sender.una, &self.sender.buffer);
        self.emit_repair(now, out, &symbol, reason);
        self.note_paced(now, due.len);
        self.sender.last_sent_at = now;
        true
    }

    /// Writes a repair to `out`. Its sequence number lies so far back that nobody takes its data for the stream's.
    fn emit_repair(&mut self, now: Instant, out: &mut Packet, symbol: &Symbol, reason: Reason) {
        let data = &symbol.data;
        let start = self.sender.space.number(symbol.start);
        let repair = Repair { start, tail: symbol.tail, check: symbol.check };
        let coding = Coding { place: Some(symbol.place), repair: Some(repair), ..Coding::default() };
        self.note_ack_sent(now, data.len() as u32);
        let window = self.receiver.window_field(self.receiver.window_shift);
        self.timers.stop_delayed_ack();
        let una = self.sender.space.number(self.sender.una);
        let repr = tcp::Repr {
            src_port: self.local.port,
            dst_port: self.remote.port,
            seq: una - data.len() as u32,
            ack: self.receiver.space.number(self.receiver.acknowledged()),
            flags: Flags::ACK | self.marking.echo_flag(),
            window,
            urgent: 0,
            options: Options { timestamps: self.timestamps(now), coding, ..Options::default() },
        };
        // It takes its place in the window like new data, and queues may mark it like these.
        let ecn = if self.marking.sends() { Ecn::Ect0 } else { Ecn::NotEct };
        let marks = (self.proxied.dscp, ecn);
        write_packet(out, &repr, (self.local.ip, self.remote.ip), marks, data.len(), |out| {
            out.extend_from_slice(data);
        });
        self.statistics.segments_sent += 1;
        if let Some(fec) = &mut self.fec {
            fec.statistics.count_sent(reason, out.len());
        }
    }

    /// What an acknowledgement means for the code, after it was taken in.
    pub(super) fn learn_for_code(
        &mut self,
        now: Instant,
        coding: &Coding,
        news: &Delivered,
        duplicate: bool,
    ) {
        let Some(fec) = &mut self.fec else { return };
        if let Some(sent_at) = news.latest_sent_at {
            fec.outgoing.on_delivered(sent_at);
        }
        if duplicate && news.acked == 0 {
            fec.outgoing.on_duplicate(self.sender.una);
        }
        let srtt = self.sender.rtt.srtt().unwrap_or_default();
        if let Some(report) = coding.report.filter(|_| self.negotiated.coded) {
            fec.outgoing.on_report(&report);
        }
        fec.outgoing.stop_if_unheard();
        fec.outgoing.restart_probe(now, srtt, true);
    }

    /// Where a repair of `len` bytes of this connection ends, if the segment is one: not beyond what was acknowledged, within a
    /// window.
    pub(super) fn repair_end(&self, segment: &tcp::Repr, len: usize) -> Option<u64> {
        let control =
            segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST) || !segment.flags.has(Flags::ACK);
        if !self.says_repair(segment) || control || self.state == State::SynReceived || len == 0 {
            return None;
        }
        let nxt = self.receiver.nxt();
        let end = self.receiver.space.offset(segment.seq + len as u32, nxt);
        (end <= nxt && nxt - end <= self.receiver.widest()).then_some(end)
    }

    /// Whether a segment calls itself a repair: then its data are none of the stream's, wherever they lie.
    pub(super) const fn says_repair(&self, segment: &tcp::Repr) -> bool {
        segment.options.coding.repair.is_some() && self.codes()
    }

    /// Takes a repair.
    ///
    /// # Errors
    /// Its acknowledgement is not acceptable.
    pub(super) fn handle_repair(
        &mut self,
        now: Instant,
        ecn: Ecn,
        (segment, end): (&tcp::Repr, u64),
        payload: &[u8],
    ) -> Result<(), Discard> {
        let nxt = self.receiver.nxt();
        // Its window is no later than that of data that began where it ends.
        self.handle_ack(now, segment, end, false)?;
        self.confirm();
        self.note_mark(segment.flags, ecn);
        let Coding { place: Some(place), repair: Some(repair), .. } = segment.options.coding else {
            return Ok(());
        };
        let start = self.receiver.space.offset(repair.start, nxt);
        let finished = self.receiver.finished;
        let Some(fec) = &mut self.fec else { return Ok(()) };
        fec.statistics.repairs_received += 1;
        if finished {
            return Ok(());
        }
        let freed = fec.incoming.on_repair(now, place, (start, repair.tail, repair.check), payload);
        self.receiver.duplicates_due = self.receiver.duplicates_due.saturating_add(freed);
        self.decode(now);
        Ok(())
    }

    /// A segment came of which nothing was new: perhaps it was computed before.
    pub(super) fn note_late_source(&mut self, segment: &tcp::Repr) {
        if let Some(fec) = self.fec.as_mut().filter(|_| self.negotiated.coded)
            && let Coding { place: Some(place), repair: None, .. } = segment.options.coding
        {
            fec.incoming.on_late_source(place);
        }
    }

    /// A segment with data came and was placed: its acknowledgement may wait for repairs, and others may be computed.
    pub(super) fn note_source(
        &mut self,
        now: Instant,
        place: Option<Place>,
        start: u64,
        (payload, placed): (&[u8], Option<Placed>),
    ) {
        let next = self.receiver.reassembly.next();
        let codes = self.codes();
        let Some(fec) = self.fec.as_mut().filter(|_| codes) else { return };
        match placed {
            Some(Placed::InOrder { gap_filled }) => {
                if gap_filled {
                    fec.statistics.acks_spared += u64::from(fec.incoming.forget_withheld());
                }
            }
            Some(Placed::OutOfOrder(_)) => {}
            _ => return,
        }
        let Some(place) = place else { return };
        let freed = fec.incoming.on_source(now, place, start, payload);
        let due = &mut self.receiver.duplicates_due;
        *due = due.saturating_add(freed);
        if matches!(placed, Some(Placed::OutOfOrder(_))) && fec.incoming.may_withhold(place, next) {
            *due = due.saturating_sub(1);
            fec.incoming.withhold(now);
        }
        self.decode(now);
    }

    /// Hands over what can be computed; lets go of acknowledgements for which that will not happen.
    fn decode(&mut self, now: Instant) {
        let Some(fec) = &mut self.fec else { return };
        let (recovered, failed) = fec.incoming.decode();
        fec.statistics.failed_checks += u64::from(failed);
        for (start, data) in recovered {
            let end = start + data.len() as u64;
            if end <= self.receiver.nxt() || !self.receiver.accepts(start, data.len() as u64) {
                continue;
            }
            if let Some(fec) = &mut self.fec {
                fec.statistics.recovered += 1;
            }
            let dsack = core::mem::take(&mut self.receiver.dsack);
            let placed = self.handle_data(now, start, &data, false);
            self.receiver.dsack = dsack;
            if let Some(fec) = &mut self.fec
                && matches!(placed, Some(Placed::InOrder { .. }))
            {
                // Their gap is no more.
                fec.statistics.acks_spared += u64::from(fec.incoming.forget_withheld());
            }
        }
        let Some(fec) = &mut self.fec else { return };
        let freed = fec.incoming.release_if_hopeless();
        self.receiver.duplicates_due = self.receiver.duplicates_due.saturating_add(freed);
    }

    /// The rest of a block did not come in time, or no acknowledgement.
    pub(super) fn on_code_timer(&mut self, now: Instant) {
        let Some(fec) = &mut self.fec else { return };
        if fec.incoming.deadline() <= now {
            let freed = fec.incoming.handle_timeout();
            self.receiver.duplicates_due = self.receiver.duplicates_due.saturating_add(freed.max(1));
        }
        if fec.outgoing.deadline() <= now {
            let (sender, srtt) = (&self.sender, self.sender.rtt.srtt().unwrap_or_default());
            fec.outgoing.on_silence(now, srtt, sender.una, &sender.buffer);
        }
    }

    /// When that is.
    pub(super) fn code_deadline(&self) -> Instant {
        self.fec.as_ref().map_or(Instant::MAX, |fec| fec.incoming.deadline().min(fec.outgoing.deadline()))
    }

    /// What a segment at `place` says of the code beside its acknowledgement.
    pub(super) fn coding_beside(&mut self, place: Option<Place>) -> Coding {
        let next = self.receiver.reassembly.next();
        let codes = self.codes();
        let report = match &mut self.fec {
            Some(fec) if codes => fec.incoming.report(next),
            _ => None,
        };
        Coding { place, report, ..Coding::default() }
    }

    /// Whether gaps are not to be told yet: the block in which the first one lies may still be repaired.
    pub(super) fn hides_gaps(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.incoming.withholds())
    }
}
