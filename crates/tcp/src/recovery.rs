//! Loss recovery: which segments are lost, and which to send next. One scheme a file.
//!
//! A scheme reads and marks the [`Scoreboard`] and says what goes out next; how much may go out is the
//! congestion controller's word, which [`reduction`] may soften during fast recovery. The schemes share an
//! [`Episode`]: the phase that recovery is in.

mod newreno;
pub(crate) mod reduction;
mod reno;
mod sack;
pub(crate) mod scoreboard;

use crate::config::{self, TcpConfig};
use newreno::NewReno;
use reno::Reno;
use sack::Sack;
use scoreboard::Scoreboard;

/// Duplicate acknowledgements that mean a loss (RFC 5681, 3.2; `DupThresh` of RFC 6675, 2).
pub(crate) const DUP_THRESH: u32 = 3;

/// Segments that limited transmit lets out for duplicates (RFC 3042, 2).
const LIMITED_TRANSMIT: u32 = 2;

/// What the acknowledgement that just arrived did, after the scoreboard took it in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// SND.UNA now.
    pub(crate) una: u64,
    /// SND.NXT.
    pub(crate) nxt: u64,
    /// Bytes by which SND.UNA advanced.
    pub(crate) acked: u64,
    /// Bytes newly acknowledged selectively.
    pub(crate) sacked: u64,
    /// Whether it is a duplicate as RFC 5681 (2) defines it.
    pub(crate) duplicate: bool,
    /// Payload bytes of a full segment.
    pub(crate) mss: u64,
    /// The controller's window.
    pub(crate) cwnd: u64,
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
    /// Data that was never sent.
    New,
    /// Nothing.
    Nothing,
}

impl Next {
    /// What is deemed lost, in order, and then new data.
    fn lost_or_new(board: &mut Scoreboard, new_data: bool) -> Self {
        match board.next_lost() {
            Some(index) => Self::Retransmit(index),
            None if new_data => Self::New,
            None => Self::Nothing,
        }
    }
}

/// Where recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is known.
    Open,
    /// Between a fast retransmit and the acknowledgement of all that was then outstanding.
    FastRecovery,
    /// Between a time-out and the acknowledgement of all that was then outstanding.
    Timeout,
}

/// The state that schemes after RFC 5681 share.
#[derive(Clone, Debug)]
struct Episode {
    phase: Phase,
    /// SND.NXT when the phase began: `recover` of RFC 6582, `RecoveryPoint` of RFC 6675.
    recover: u64,
    dup_acks: u32,
    /// SND.NXT at the first duplicate: what limited transmit sends later is not in `FlightSize` (RFC 5681, 3.2, 2).
    limited_from: u64,
    /// The next retransmission goes out whatever the window says (RFC 5681, 3.2, 3; RFC 6582, 3.2, 3).
    forced: bool,
}

impl Episode {
    const fn new(una: u64) -> Self {
        Self { phase: Phase::Open, recover: una, dup_acks: 0, limited_from: una, forced: false }
    }

    const fn count_duplicate(&mut self, nxt: u64) {
        if self.dup_acks == 0 {
            self.limited_from = nxt;
        }
        self.dup_acks += 1;
    }

    const fn begin(&mut self, phase: Phase, nxt: u64) {
        self.phase = phase;
        self.recover = nxt;
        self.forced = matches!(phase, Phase::FastRecovery);
    }

    const fn end(&mut self) {
        self.phase = Phase::Open;
        self.forced = false;
    }

    /// `FlightSize` for the response to a loss that is found now.
    const fn flight_size(&self, board: &Scoreboard, arrival: &Arrival) -> u64 {
        match self.phase {
            Phase::Timeout => board.pipe(),
            Phase::Open | Phase::FastRecovery => self.outstanding(arrival.una, arrival.nxt),
        }
    }

    /// What is outstanding, without what limited transmit sent.
    const fn outstanding(&self, una: u64, nxt: u64) -> u64 {
        if self.dup_acks > 0 && self.limited_from > una { self.limited_from - una } else { nxt - una }
    }
}

/// The scheme of one connection.
#[derive(Debug)]
pub(crate) struct Machine {
    scheme: Scheme,
    limited_transmit: bool,
}

#[derive(Debug)]
enum Scheme {
    Reno(Reno),
    NewReno(NewReno),
    Sack(Sack),
}

/// Calls the same method of whichever scheme it is.
macro_rules! dispatch {
    ($machine:expr, $scheme:ident => $call:expr) => {
        match $machine {
            Scheme::Reno($scheme) => $call,
            Scheme::NewReno($scheme) => $call,
            Scheme::Sack($scheme) => $call,
        }
    };
}

impl Machine {
    /// The scheme for a connection whose first unacknowledged offset is `una`; `sack` says whether the peer
    /// acknowledges selectively.
    pub(crate) fn new(config: &TcpConfig, sack: bool, una: u64) -> Self {
        let scheme = match config.recovery {
            config::Recovery::Reno => Scheme::Reno(Reno::new(una)),
            config::Recovery::Sack if sack => Scheme::Sack(Sack::new(una)),
            config::Recovery::NewReno | config::Recovery::Sack => Scheme::NewReno(NewReno::new(config, una)),
        };
        Self { scheme, limited_transmit: config.limited_transmit }
    }

    fn episode(&self) -> &Episode {
        dispatch!(&self.scheme, scheme => &scheme.episode)
    }

    fn episode_mut(&mut self) -> &mut Episode {
        dispatch!(&mut self.scheme, scheme => &mut scheme.episode)
    }

    /// An acknowledgement arrived and the scoreboard has taken it in.
    pub(crate) fn on_ack(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        dispatch!(&mut self.scheme, scheme => scheme.on_ack(board, arrival))
    }

    /// The retransmission timer expired: everything outstanding counts as lost (RFC 6298, 5.4; RFC 6675, 5.1).
    pub(crate) fn on_timeout(&mut self, board: &mut Scoreboard, nxt: u64) {
        dispatch!(&mut self.scheme, scheme => scheme.on_timeout());
        board.mark_all_lost();
        let episode = self.episode_mut();
        episode.begin(Phase::Timeout, nxt);
        episode.dup_acks = 0;
    }

    /// What to send next; `new_data` says whether there is new data that the peer's window allows.
    pub(crate) fn next(&mut self, board: &mut Scoreboard, new_data: bool) -> Next {
        if self.phase() == Phase::Open {
            return if new_data { Next::New } else { Next::Nothing };
        }
        dispatch!(&mut self.scheme, scheme => scheme.next(board, new_data))
    }

    /// What `next` said was sent.
    pub(crate) fn on_sent(&mut self, sent: Next) {
        match sent {
            Next::Retransmit(_) => self.episode_mut().forced = false,
            Next::Rescue(_) => {
                if let Scheme::Sack(scheme) = &mut self.scheme {
                    scheme.on_rescue();
                }
            }
            Next::New | Next::Nothing => {}
        }
    }

    /// Bytes to add to the window because duplicates tell more, or shall allow less, than `pipe` does (RFC 5681, 3.2;
    /// RFC 6582, 3.2; RFC 3042).
    pub(crate) fn inflation(&self, board: &Scoreboard, mss: u64) -> i64 {
        let episode = self.episode();
        match (&self.scheme, episode.phase) {
            (_, Phase::Open) if episode.dup_acks == 0 => 0,
            (Scheme::Sack(_), Phase::Open) if self.limited_transmit => 0,
            (Scheme::Sack(_), Phase::Open) => -(board.arrived_early() as i64),
            (_, Phase::Open) if !self.limited_transmit => 0,
            (_, Phase::Open) => i64::from(episode.dup_acks.min(LIMITED_TRANSMIT)) * mss as i64,
            (Scheme::Reno(scheme), _) => scheme.inflation(),
            (Scheme::NewReno(scheme), _) => scheme.inflation(),
            (Scheme::Sack(_), _) => 0,
        }
    }

    /// Whether the next retransmission goes out whatever the window says.
    pub(crate) fn forced(&self) -> bool {
        self.episode().forced
    }

    /// Where recovery stands.
    pub(crate) fn phase(&self) -> Phase {
        self.episode().phase
    }

    /// `FlightSize` of RFC 5681 (2), without what limited transmit sent.
    pub(crate) fn flight_size(&self, una: u64, nxt: u64) -> u64 {
        self.episode().outstanding(una, nxt)
    }

    /// Whether an acknowledgement that advances SND.UNA restarts the retransmission timer.
    pub(crate) fn restarts_timer(&self) -> bool {
        match &self.scheme {
            Scheme::NewReno(scheme) => scheme.restarts_timer(),
            Scheme::Reno(_) | Scheme::Sack(_) => true,
        }
    }
}
