//! Explicit congestion notification between the two ends: what SYNs ask for, and marks that come (RFC 3168, 6.1.1 and 6.1.3, and
//! its relaxation by RFC 8311). What echoes do to the window is the sender's (`sender::marking`).
//!
//! Deviations:
//! - what is in flight is halved, not the window (the controller's rule for every congestion);
//! - a window that is at its floor of two segments falls no further, where RFC 3168 (6.1.2) goes down to one and then
//!   waits for the retransmission timer;
//! - a reset that answers a SYN with a request ends the attempt, where RFC 3168 (6.1.1.1) lets a host try again without
//!   one;
//! - a window that marks lowered goes down at once, whatever `reduction` says.

use base::wire::ip;
use base::wire::tcp::Flags;

use super::open::LOST_SYNS;
use super::{Connection, State};
use crate::config::EcnUse;

/// Marks of congestion that come, and their echo.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    /// The peer's data may be marked, and marks are echoed.
    agreed: bool,
    /// A mark came, and the peer has not said that it lowered its window: ECE on every acknowledgement.
    due: bool,
}

impl Echo {
    /// What every segment with an acknowledgement says.
    pub(super) const fn flag(self) -> Flags {
        if self.due { Flags::ECE } else { Flags(0) }
    }
}

impl Connection {
    /// The flags of a SYN or SYN-ACK that is sent now. A SYN that was not answered is sent again without a request, at once or after
    /// some: somebody on the path may drop those (RFC 3168, 6.1.1.1).
    pub(super) fn syn_ecn_flags(&self) -> Flags {
        match self.state {
            State::SynSent if self.sender.config.ecn.asks() && self.asks_still() => Flags::ECE | Flags::CWR,
            State::SynSent => Flags(0),
            // Between proxies, the connection may be established when its SYN-ACK goes out again.
            _ if self.echo.agreed => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// Whether all SYNs so far have asked. Where losses are no congestion, a lost SYN does not mean that somebody drops those that ask.
    fn asks_still(&self) -> bool {
        let most = if matches!(self.sender.config.ecn, EcnUse::Only) { LOST_SYNS } else { 0 };
        self.sender.timers.retries <= most
    }

    /// The peer's SYN or SYN-ACK came (RFC 3168, 6.1.1). Who has sent a SYN without a request may not mark data, but
    /// echoes.
    pub(super) fn take_syn_ecn_flags(&mut self, flags: Flags) {
        let ecn = self.sender.config.ecn;
        let willing = if self.passive { ecn != EcnUse::Off } else { ecn.asks() };
        let agrees = match flags.has(Flags::ACK) {
            true => flags.has(Flags::ECE) && !flags.has(Flags::CWR),
            false => flags.has(Flags::ECE | Flags::CWR),
        };
        self.echo.agreed = willing && agrees;
        self.sender.marking.set_sends(self.echo.agreed && (self.passive || self.asks_still()));
    }

    /// The peer's SYN came again: without a request, there will be no marks (RFC 3168, 6.1.1).
    pub(super) fn take_repeated_syn_ecn_flags(&mut self, flags: Flags) {
        if !flags.has(Flags::ECE | Flags::CWR) {
            self.echo.agreed = false;
            self.sender.marking.set_sends(false);
        }
    }

    /// Acceptable data came (RFC 3168, 6.1.3).
    pub(super) fn note_mark(&mut self, flags: Flags, codepoint: ip::Ecn) {
        if !self.echo.agreed {
            return;
        }
        if flags.has(Flags::CWR) {
            self.echo.due = false;
            // The peer's window may now be a single segment.
            self.receiver.hurry_acks(1);
        }
        if codepoint == ip::Ecn::Ce {
            self.statistics.marks_received += 1;
            if !self.echo.due {
                self.receiver.hurry_acks(2);
            }
            self.echo.due = true;
        }
    }
}
