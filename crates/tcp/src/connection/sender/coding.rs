//! Where the sender meets the erasure code of Loss-Tolerant TCP: [`crate::fec`] has its blocks.

use base::wire::tcp::coding::{Place, Report};
use base::{Duration, Instant};

use super::Sender;
use crate::fec::{Reason, Symbol};
use crate::recovery::scoreboard::News;

impl Sender {
    /// New data may go out: the size of the segments of the block that they begin.
    pub(super) fn begin_block(&mut self) {
        let (unsent, window) = (self.unsent(), self.controller.window());
        let Some(code) = self.code.as_mut().filter(|code| code.cuts() && unsent > 0) else { return };
        if let Some(mss) = code.begin(self.una, self.nxt, window) {
            self.mss = mss;
        }
    }

    /// Whether the stream is cut into blocks.
    pub(super) fn cuts_blocks(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.cuts())
    }

    /// Bytes of data of the largest segment that is known to pass.
    pub(super) fn largest_segment(&self) -> u32 {
        self.code.as_ref().filter(|code| code.cuts()).map_or(self.mss, |code| code.most())
    }

    /// Whether losses are repaired by somebody who takes repairs.
    pub(super) fn is_repaired(&self) -> bool {
        self.negotiated.coded && self.code.as_ref().is_some_and(|code| code.codes())
    }

    /// Whether new data have to wait for the code.
    pub(super) fn code_holds_new_data(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.holds_new_data())
    }

    /// Bytes that may be in the network: `pipe` of RFC 6675, and repairs.
    pub(crate) fn pipe(&self) -> u64 {
        self.board.pipe() + self.code.as_ref().map_or(0, |code| code.bytes_in_flight())
    }

    /// Whether a repair may be due; cheap.
    pub(super) fn has_repairs(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.has_work())
    }

    /// The place of a segment that goes out, new or again.
    pub(super) fn place(&mut self, start: u64, len: u32, new: bool) -> Option<Place> {
        let codes = self.is_repaired();
        let code = self.code.as_mut().filter(|_| len > 0)?;
        let place = if new { code.on_source(start, len) } else { code.place_of(start, len) };
        code.statistics.blocks_sent += u64::from(new && place.is_some_and(|place| place.number == 0));
        place.filter(|_| codes)
    }

    /// New data of `len` bytes are out: perhaps their block has ended.
    pub(super) fn close_block(&mut self, now: Instant, len: u32) {
        let all_sent = self.unsent() == 0;
        let Some(code) = &mut self.code else { return };
        code.close_if_due(len, all_sent, self.una, &self.buffer);
        code.restart_probe(now, self.rtt.srtt().unwrap_or_default(), false);
    }

    /// A repair that leaves now, if one is due and the window lets it; reactive ones ask no window.
    pub(super) fn next_repair(&mut self, now: Instant, reason: Reason) -> Option<Symbol> {
        let due = self.code.as_ref()?.next().filter(|due| due.reason == reason)?;
        let pipe = self.pipe();
        let fits = pipe == 0 || pipe + u64::from(due.len) <= self.allowed();
        if (reason == Reason::Proactive && !fits) || !self.may_pace(now) {
            return None;
        }
        let symbol = self.code.as_mut()?.take(now, due, self.una, &self.buffer);
        self.note_paced(now, due.len);
        self.last_sent_at = now;
        Some(symbol)
    }

    /// What an acknowledgement with a `report` means for the code, after it was taken in.
    pub(super) fn learn_for_code(&mut self, now: Instant, report: Option<&Report>, news: &News) {
        let Some(code) = &mut self.code else { return };
        if let Some(sent_at) = news.latest_sent_at {
            code.on_delivered(sent_at);
        }
        if (news.duplicate || news.sacked > 0) && news.acked == 0 {
            code.on_duplicate(self.una);
        }
        if let Some(report) = report.filter(|_| self.negotiated.coded) {
            code.on_report(report);
        }
        code.stop_if_unheard();
        code.restart_probe(now, self.rtt.srtt().unwrap_or_default(), true);
    }

    /// When the code has been silent for too long; [`Instant::MAX`] if nothing is awaited.
    pub(crate) fn code_deadline(&self) -> Instant {
        self.code.as_ref().map_or(Instant::MAX, |code| code.deadline())
    }

    /// No acknowledgement came in time for the code.
    pub(crate) fn check_code_timer(&mut self, now: Instant) {
        let srtt: Duration = self.rtt.srtt().unwrap_or_default();
        if let Some(code) = self.code.as_mut().filter(|code| code.deadline() <= now) {
            code.on_silence(now, srtt, self.una, &self.buffer);
        }
    }
}
