//! What schemes are told and what they say, and the state that they share.

use base::{Duration, Instant};

use super::scoreboard::{News, Record, Scoreboard};

/// What the acknowledgement that just arrived said, and where the sender stands after the scoreboard took it in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// When it arrived.
    pub(crate) now: Instant,
    /// What it said; nothing where a timer asks.
    pub(crate) news: &'a News,
    /// SND.UNA now.
    pub(crate) una: u64,
    /// SND.NXT.
    pub(crate) nxt: u64,
    /// Payload bytes of a full segment.
    pub(crate) mss: u64,
    /// The controller's window.
    pub(crate) cwnd: u64,
    /// Whether new data could be sent, if a time-out is in doubt.
    pub(crate) new_data: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub(crate) srtt: Duration,
    /// Its variation.
    pub(crate) rttvar: Duration,
    /// Least round-trip time; [`Duration::MAX`] before the first sample.
    pub(crate) rtt_min: Duration,
}

/// The segment whose loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// When it had been sent last.
    pub(crate) sent_at: Option<Instant>,
    /// Whether it had been sent more than once.
    pub(crate) resent: bool,
}

impl Lost {
    pub(super) fn of(record: &Record) -> Self {
        Self { sent_at: Some(record.sent_at), resent: record.was_resent() }
    }

    /// The first outstanding segment.
    pub(crate) fn head(board: &Scoreboard) -> Self {
        board.first().map_or(Self { sent_at: None, resent: false }, Self::of)
    }
}

/// What the arrival meant for recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing began or ended.
    None,
    /// A loss was found: the controller is to respond.
    Entered {
        /// `FlightSize` of RFC 5681 (2) in bytes, without what limited transmit sent; after a time-out, what was sent since.
        flight_size: u64,
        /// What was lost.
        lost: Lost,
    },
    /// During fast recovery a retransmission was lost: a second indication of congestion (RFC 5681, 4.3).
    Again {
        /// Bytes in the network.
        flight_size: u64,
        /// What was lost.
        lost: Lost,
    },
    /// A tail loss probe has repaired a loss: the controller is to respond as if recovery had begun and ended
    /// (RFC 8985, 7.4.2).
    Repaired {
        /// Bytes that were outstanding when the probe left.
        flight_size: u64,
        /// What was lost.
        lost: Lost,
    },
    /// Fast recovery ended; the scheme asks for at most this much window at first.
    Left {
        /// Bytes.
        limit: u64,
    },
}

/// What to send next, the window permitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The record with this index, again.
    Retransmit(u64),
    /// The record with this index, again, without moving on past it (RFC 6675, 4, rule 4).
    Rescue(u64),
    /// The record with this index, again, as a tail loss probe (RFC 8985, 7.3).
    Probe(u64),
    /// Data that was never sent.
    New,
    /// Nothing.
    Nothing,
}

impl Next {
    /// What is deemed lost, in order, and then new data.
    pub(super) fn lost_or_new(board: &mut Scoreboard, new_data: bool) -> Self {
        match board.next_lost() {
            Some(index) => Self::Retransmit(index),
            None if new_data => Self::New,
            None => Self::Nothing,
        }
    }
}

/// Where recovery stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is known.
    #[default]
    Open,
    /// Between a fast retransmit and the acknowledgement of all that was then outstanding.
    FastRecovery,
    /// Between a time-out and the acknowledgement of all that was then outstanding.
    Timeout,
}

/// The state that all schemes share; a [`super::Machine`] keeps it.
#[derive(Debug)]
pub(crate) struct Episode {
    pub(super) phase: Phase,
    /// SND.NXT when the phase began: `recover` of RFC 6582, `RecoveryPoint` of RFC 6675.
    pub(super) recover: u64,
    pub(super) dup_acks: u32,
    /// SND.NXT at the first duplicate: what limited transmit sends later is not in `FlightSize` (RFC 5681, 3.2, 2).
    pub(super) limited_from: u64,
    /// Whether duplicates let new data out (RFC 3042).
    pub(super) limited_transmit: bool,
    /// The next retransmission goes out whatever the window says (RFC 5681, 3.2, 3; RFC 6582, 3.2, 3).
    pub(super) forced: bool,
}

impl Episode {
    pub(super) const fn new(una: u64, limited_transmit: bool) -> Self {
        Self {
            phase: Phase::Open,
            recover: una,
            dup_acks: 0,
            limited_from: una,
            limited_transmit,
            forced: false,
        }
    }

    pub(super) const fn count_duplicate(&mut self, nxt: u64) {
        if self.dup_acks == 0 {
            self.limited_from = nxt;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
    }

    pub(super) const fn begin(&mut self, phase: Phase, nxt: u64) {
        self.phase = phase;
        self.recover = nxt;
        self.forced = matches!(phase, Phase::FastRecovery);
    }

    pub(super) const fn end(&mut self) {
        self.phase = Phase::Open;
        self.forced = false;
    }

    /// `FlightSize` for the response to a loss that is found now.
    pub(super) const fn flight_size(&self, board: &Scoreboard, arrival: &Arrival<'_>) -> u64 {
        match self.phase {
            Phase::Timeout => board.pipe(),
            Phase::Open | Phase::FastRecovery => self.outstanding(arrival.una, arrival.nxt),
        }
    }

    /// What is outstanding, without what limited transmit sent.
    pub(super) const fn outstanding(&self, una: u64, nxt: u64) -> u64 {
        if self.dup_acks > 0 && self.limited_from > una { self.limited_from - una } else { nxt - una }
    }
}
