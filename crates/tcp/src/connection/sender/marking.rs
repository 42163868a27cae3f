//! Marks of congestion as the sender sees them: echoes, and what losses mean beside them (RFC 3168, 6.1.2; RFC 8311).

use base::Duration;
use base::Instant;
use base::wire::ip::Ecn;
use base::wire::tcp::Flags;

use super::Sender;
use crate::config::EcnUse;
use crate::congestion::{Cause, Congestion};
use crate::recovery::Evidence;
use crate::sequence::ORIGIN;

/// What the sending half of a connection knows of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marking {
    /// SND.NXT when the window was lowered last, for whatever reason.
    reduced_until: u64,
    /// A mark was the reason.
    by_mark: bool,
    /// New data may be marked, and the peer's echoes are heeded.
    sends: bool,
    /// The window was lowered, and the peer is to be told: CWR on the next new data.
    cwr_due: bool,
}

impl Marking {
    pub(super) const fn new() -> Self {
        Self { reduced_until: ORIGIN, by_mark: false, sends: false, cwr_due: false }
    }

    /// Both sides have agreed that new data may be marked, or not.
    pub(crate) const fn set_sends(&mut self, sends: bool) {
        self.sends = sends;
    }

    /// Whether new data may be marked.
    pub(crate) const fn sends(&self) -> bool {
        self.sends
    }

    /// Whether the next new data have to tell that the window went down.
    pub(super) const fn has_news(&self) -> bool {
        self.cwr_due
    }

    /// The codepoint and the flag of data that are sent for the first time (RFC 3168, 6.1.2 and 6.1.5).
    pub(super) const fn take_for_new_data(&mut self) -> (Ecn, Flags) {
        if !self.sends {
            return (Ecn::NotEct, Flags(0));
        }
        let flags = if self.cwr_due { Flags::CWR } else { Flags(0) };
        self.cwr_due = false;
        (Ecn::Ect0, flags)
    }

    /// The window went down when SND.NXT was `nxt`.
    pub(super) const fn on_reduced(&mut self, nxt: u64, by_mark: bool) {
        (self.reduced_until, self.by_mark, self.cwr_due) = (nxt, by_mark, self.sends);
    }
}

impl Sender {
    /// An acknowledgement came that may echo a mark, before which `flight_size` bytes were out: the window goes down
    /// once for all marks and losses of a window of data (RFC 3168, 6.1.2). Whether it echoes one: then it does not
    /// open the window.
    pub(super) fn heed_echo(&mut self, now: Instant, flags: Flags, flight_size: u64) -> bool {
        if !self.marking.sends || !flags.has(Flags::ECE) {
            return false;
        }
        let outstanding = flight_size;
        let flight_size = self.reduced_from(flight_size);
        if self.una > self.marking.reduced_until {
            let round = self.meter.round();
            if let Some(code) = &mut self.code {
                code.trust.on_mark(round);
            }
            self.marking.on_reduced(self.nxt, true);
            self.statistics.mark_reductions += 1;
            let event = Congestion { now, flight_size, cause: Cause::Ecn, sent_at: None, resent: false };
            self.controller.on_congestion(&event);
            // To undo a recovery would undo this response too.
            self.recovery.doubt(Evidence::default());
            self.respond_unvalidated(outstanding);
        }
        true
    }

    /// What a loss that was just found means for the window, where marks count too.
    pub(super) fn loss_response(&mut self) -> LossResponse {
        self.judge_path();
        if self.ignores_losses() {
            LossResponse::None
        } else if self.marking.by_mark && self.una < self.marking.reduced_until {
            LossResponse::Given
        } else {
            self.marking.on_reduced(self.nxt, false);
            LossResponse::Due
        }
    }

    /// Whether losses are repaired and mean nothing else.
    pub(super) fn ignores_losses(&self) -> bool {
        self.config.ecn == EcnUse::Only
            && self.marking.sends
            && self.code.as_ref().is_some_and(|code| !code.trust.is_distrusted())
            && (self.is_repaired() || !self.config.fec.codes())
    }

    /// A round trip was measured.
    pub(super) fn note_round(&mut self, rtt: Option<Duration>) {
        if let (Some(code), Some(rtt)) = (&mut self.code, rtt) {
            code.trust.on_rtt(rtt, self.meter.round());
        }
    }

    /// A loss was found: does the path mark congestion, or is this how it shows?
    fn judge_path(&mut self) {
        let (round, least) = (self.meter.round(), self.rtt.min());
        if let Some(code) = self.code.as_mut().filter(|_| self.marking.sends)
            && code.trust.judge(round, least)
        {
            code.statistics.distrusted += 1;
        }
    }
}

/// What a loss means for the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossResponse {
    /// The controller responds.
    Due,
    /// It has responded to a mark in the same window of data.
    Given,
    /// It does not respond to losses.
    None,
}
