//! Where the erasure code of Loss-Tolerant TCP meets the connection: what is agreed on, and repairs as packets. What the two halves
//! do with it is in `sender::coding` and `receiver::coding`; [`crate::fec`] has its blocks.

use base::wire::ip::Ecn;
use base::wire::tcp::coding::{Coding, Place, REPAIR_LEN, Repair};
use base::wire::tcp::{self, Flags, Options};
use base::{Instant, Packet};

use super::emit::write_packet;
use super::{Connection, Discard, State};
use crate::buffer::reassembly::Placed;
use crate::config::{EcnUse, FecConfig};
use crate::fec::{self, FecStatistics, Reason, RepairStatistics, Symbol};
use crate::sequence::ORIGIN;

impl Connection {
    /// What its erasure code counted of the blocks that it sent, if it has one.
    #[must_use]
    pub fn fec_statistics(&self) -> Option<&FecStatistics> {
        self.sender.code.as_ref().map(|code| &code.statistics)
    }

    /// What it counted of the blocks that the peer sent, if there is a code.
    #[must_use]
    pub fn repair_statistics(&self) -> Option<&RepairStatistics> {
        self.receiver.repairs.as_ref().map(|repairs| &repairs.statistics)
    }

    /// The erasure rate as the sender estimates it, from 0 to 1; none without a code.
    #[must_use]
    pub fn erasure_rate(&self) -> Option<f64> {
        self.sender.code.as_ref().map(|code| code.estimate.rate())
    }

    /// Both SYNs are known: what of the code is used from here on.
    pub(super) fn agree_on_code(&mut self) {
        let sender = &mut self.sender;
        let config = &sender.config.fec;
        let codes = config.codes() && sender.negotiated.coded;
        let adapts = config.adaptive_mss && (codes || !config.codes());
        if !codes && !adapts && sender.config.ecn != EcnUse::Only {
            return;
        }
        let config = if codes || adapts { *config } else { FecConfig::OFF };
        if codes {
            // A repair says more than other segments, and is as large as the largest of them.
            sender.mss -= REPAIR_LEN as u32;
        }
        let (ours, peers) = (sender.space.number(ORIGIN).0, self.receiver.space.number(ORIGIN).0);
        let (outgoing, incoming) = fec::halves(&config, sender.mss, ours, peers);
        sender.code = Some(Box::new(outgoing));
        self.receiver.repairs = sender.negotiated.coded.then(|| Box::new(incoming));
    }

    /// The initial sequence number, and perhaps what is offered, is another one's: before the SYN or SYN-ACK is sent.
    pub(super) fn agree_again_on_code(&mut self) {
        let sender = &mut self.sender;
        let coded = sender.negotiated.coded;
        sender.negotiated.coded &= sender.negotiated.sack;
        if sender.code.take().is_some() {
            self.receiver.repairs = None;
            sender.mss += if coded { REPAIR_LEN as u32 } else { 0 };
            self.agree_on_code();
        }
    }

    /// Writes a repair to `out`. Its sequence number lies so far back that nobody takes its data for the stream's.
    pub(super) fn emit_repair(&mut self, now: Instant, out: &mut Packet, symbol: &Symbol, reason: Reason) {
        let data = &symbol.data;
        let start = self.sender.space.number(symbol.start);
        let repair = Repair { start, tail: symbol.tail, check: symbol.check };
        let coding = Coding { place: Some(symbol.place), repair: Some(repair), ..Coding::default() };
        self.receiver.note_ack_sent(now, data.len() as u32);
        let window = self.receiver.window_field(self.receiver.window_shift);
        let una = self.sender.space.number(self.sender.una);
        let repr = tcp::Repr {
            src_port: self.local.port,
            dst_port: self.remote.port,
            seq: una - data.len() as u32,
            ack: self.receiver.space.number(self.receiver.acknowledged()),
            flags: Flags::ACK | self.echo.flag(),
            window,
            urgent: 0,
            options: Options { timestamps: self.timestamps(now), coding, ..Options::default() },
        };
        // It takes its place in the window like new data, and queues may mark it like these.
        let ecn = if self.sender.marking.sends() { Ecn::Ect0 } else { Ecn::NotEct };
        let marks = (self.proxied.dscp, ecn);
        write_packet(out, &repr, (self.local.ip, self.remote.ip), marks, data.len(), |out| {
            out.extend_from_slice(data);
        });
        self.statistics.segments_sent += 1;
        if let Some(code) = &mut self.sender.code {
            code.statistics.count_sent(reason, out.len());
        }
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
        segment.options.coding.repair.is_some() && self.sender.negotiated.coded
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
        if let Coding { place: Some(place), repair: Some(repair), .. } = segment.options.coding {
            let start = self.receiver.space.offset(repair.start, nxt);
            self.receiver.take_repair(now, place, (start, repair.tail, repair.check), payload);
            if !self.receiver.finished {
                self.decode(now);
            }
        }
        Ok(())
    }

    /// Hands over what can be computed; lets go of acknowledgements for which that will not happen.
    pub(super) fn decode(&mut self, now: Instant) {
        let recovered = self.receiver.repairs.as_mut().map_or_else(Vec::new, |repairs| repairs.decode());
        for (start, data) in recovered {
            let end = start + data.len() as u64;
            if end <= self.receiver.nxt() || !self.receiver.accepts(start, data.len() as u64) {
                continue;
            }
            let dsack = core::mem::take(&mut self.receiver.policy.dsack);
            let placed = self.handle_data(now, start, &data, false);
            self.receiver.policy.dsack = dsack;
            if let Some(repairs) = &mut self.receiver.repairs {
                repairs.statistics.recovered += 1;
                if matches!(placed, Some(Placed::InOrder { .. })) {
                    // Their gap is no more.
                    repairs.forget_withheld();
                }
            }
        }
        self.receiver.release_if_hopeless();
    }

    /// What a segment at `place` says of the code beside its acknowledgement.
    pub(super) fn coding_beside(&mut self, place: Option<Place>) -> Coding {
        Coding { place, report: self.receiver.repair_report(), ..Coding::default() }
    }
}
