//! Explicit congestion notification: RFC 3168, section 6.1, and its relaxation by RFC 8311.
//!
//! Deviations:
//! - what is in flight is halved, not the window (the controller's rule for every congestion);
//! - a window that is at its floor of two segments falls no further, where RFC 3168 (6.1.2) goes down to one and then
//!   waits for the retransmission timer;
//! - a reset that answers a SYN with a request ends the attempt, where RFC 3168 (6.1.1.1) lets a host try again without
//!   one;
//! - a window that marks lowered goes down at once, whatever `reduction` says.

use base::wire::ip;
use base::wire::tcp::{self, Flags};
use base::{Duration, Instant};

use super::open::LOST_SYNS;
use super::{Connection, State};
use crate::config::EcnUse;
use crate::congestion::{Cause, Congestion};
use crate::recovery::Evidence;
use crate::sequence::ORIGIN;

/// What one connection knows of marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marking {
    /// SND.NXT when the window was lowered last, for whatever reason.
    reduced_until: u64,
    /// A mark was the reason.
    by_mark: bool,
    /// New data may be marked, and the peer's echoes are heeded.
    sends: bool,
    /// The peer's data may be marked, and marks are echoed.
    echoes: bool,
    /// A mark came, and the peer has not said that it lowered its window: ECE on every acknowledgement.
    echo: bool,
    /// The window was lowered, and the peer is to be told: CWR on the next new data.
    cwr_due: bool,
}

impl Marking {
    pub(super) const fn new() -> Self {
        Self {
            reduced_until: ORIGIN,
            by_mark: false,
            sends: false,
            echoes: false,
            echo: false,
            cwr_due: false,
        }
    }

    /// Whether both sides mark and echo.
    pub(super) const fn sends(&self) -> bool {
        self.sends
    }

    /// Whether the next new data have to tell that the window went down.
    pub(super) const fn has_news(&self) -> bool {
        self.cwr_due
    }

    /// What every segment with an acknowledgement says.
    pub(super) const fn echo_flag(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags(0) }
    }

    /// The codepoint and the flag of data that are sent for the first time (RFC 3168, 6.1.2 and 6.1.5).
    pub(super) const fn take_for_new_data(&mut self) -> (ip::Ecn, Flags) {
        if !self.sends {
            return (ip::Ecn::NotEct, Flags(0));
        }
        let flags = if self.cwr_due { Flags::CWR } else { Flags(0) };
        self.cwr_due = false;
        (ip::Ecn::Ect0, flags)
    }

    /// The window went down when SND.NXT was `nxt`.
    pub(super) const fn on_reduced(&mut self, nxt: u64, by_mark: bool) {
        (self.reduced_until, self.by_mark, self.cwr_due) = (nxt, by_mark, self.sends);
    }
}

impl Connection {
    /// The flags of a SYN or SYN-ACK that is sent now. A SYN that was not answered is sent again without a request, at once or after
    /// some: somebody on the path may drop those (RFC 3168, 6.1.1.1).
    pub(super) fn syn_ecn_flags(&self) -> Flags {
        match self.state {
            State::SynSent if self.config.ecn.asks() && self.asks_still() => Flags::ECE | Flags::CWR,
            State::SynSent => Flags(0),
            // Between proxies, the connection may be established when its SYN-ACK goes out again.
            _ if self.marking.echoes => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// Whether all SYNs so far have asked. Where losses are no congestion, a lost SYN does not mean that somebody drops those that ask.
    fn asks_still(&self) -> bool {
        let most = if matches!(self.config.ecn, EcnUse::Only) { LOST_SYNS } else { 0 };
        self.sender.retries <= most
    }

    /// The peer's SYN or SYN-ACK came (RFC 3168, 6.1.1). Who has sent a SYN without a request may not mark data, but
    /// echoes.
    pub(super) fn take_syn_ecn_flags(&mut self, flags: Flags) {
        let willing = if self.passive { self.config.ecn != EcnUse::Off } else { self.config.ecn.asks() };
        let agrees = match flags.has(Flags::ACK) {
            true => flags.has(Flags::ECE) && !flags.has(Flags::CWR),
            false => flags.has(Flags::ECE | Flags::CWR),
        };
        self.marking.echoes = willing && agrees;
        self.marking.sends = self.marking.echoes && (self.passive || self.asks_still());
    }

    /// The peer's SYN came again: without a request, there will be no marks (RFC 3168, 6.1.1).
    pub(super) fn take_repeated_syn_ecn_flags(&mut self, flags: Flags) {
        if !flags.has(Flags::ECE | Flags::CWR) {
            (self.marking.sends, self.marking.echoes) = (false, false);
        }
    }

    /// Acceptable data came (RFC 3168, 6.1.3).
    pub(super) fn note_mark(&mut self, flags: Flags, codepoint: ip::Ecn) {
        if !self.marking.echoes {
            return;
        }
        if flags.has(Flags::CWR) {
            self.marking.echo = false;
            // The peer's window may now be a single segment.
            self.hurry_acks(1);
        }
        if codepoint == ip::Ecn::Ce {
            self.statistics.marks_received += 1;
            if !self.marking.echo {
                self.hurry_acks(2);
            }
            self.marking.echo = true;
        }
    }

    /// An acknowledgement came that may echo a mark, before which `flight_size` bytes were out: the window goes down
    /// once for all marks and losses of a window of data (RFC 3168, 6.1.2). Whether it echoes one: then it does not
    /// open the window.
    pub(super) fn heed_echo(&mut self, now: Instant, segment: &tcp::Repr, flight_size: u64) -> bool {
        if !self.marking.sends || !segment.flags.has(Flags::ECE) {
            return false;
        }
        let outstanding = flight_size;
        let flight_size = self.reduced_from(flight_size);
        let sender = &mut self.sender;
        if sender.una > self.marking.reduced_until {
            let round = sender.meter.round();
            if let Some(fec) = &mut self.fec {
                fec.trust.on_mark(round);
            }
            self.marking.on_reduced(sender.nxt, true);
            self.statistics.mark_reductions += 1;
            let event = Congestion { now, flight_size, cause: Cause::Ecn, sent_at: None, resent: false };
            sender.controller.on_congestion(&event);
            // To undo a recovery would undo this response too.
            sender.recovery.doubt(Evidence::default());
            self.respond_unvalidated(outstanding);
        }
        true
    }

    /// What a loss that was just found means for the window, where marks count too.
    pub(super) fn loss_response(&mut self) -> LossResponse {
        let (una, nxt) = (self.sender.una, self.sender.nxt);
        self.judge_path();
        if self.ignores_losses() {
            LossResponse::None
        } else if self.marking.by_mark && una < self.marking.reduced_until {
            LossResponse::Given
        } else {
            self.marking.on_reduced(nxt, false);
            LossResponse::Due
        }
    }

    /// Whether losses are repaired and mean nothing else.
    pub(super) fn ignores_losses(&self) -> bool {
        self.config.ecn == EcnUse::Only
            && self.marking.sends
            && self.fec.as_ref().is_some_and(|fec| !fec.trust.is_distrusted())
            && (self.is_repaired() || !self.config.fec.codes())
    }

    /// A round trip was measured.
    pub(super) fn note_round(&mut self, rtt: Option<Duration>) {
        if let (Some(fec), Some(rtt)) = (&mut self.fec, rtt) {
            fec.trust.on_rtt(rtt, self.sender.meter.round());
        }
    }

    /// A loss was found: does the path mark congestion, or is this how it shows?
    fn judge_path(&mut self) {
        let (round, least) = (self.sender.meter.round(), self.sender.rtt.min());
        if let Some(fec) = self.fec.as_mut().filter(|_| self.marking.sends)
            && fec.trust.judge(round, least)
        {
            fec.statistics.distrusted += 1;
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
