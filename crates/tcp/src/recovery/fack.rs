//! Forward acknowledgement: Mathis and Mahdavi, "Forward Acknowledgement: Refining TCP Congestion Control",
//! SIGCOMM 1996, as Linux 2.4 had it.
//!
//! What the peer has furthest on, `snd.fack`, tells what has left the network: a segment is lost once `snd.fack` is
//! more than three segments beyond its start. The trigger for the first one is the paper's (section 3.1); the rest
//! is RFC 6675.
//!
//! Deviations:
//! - as in Linux, the three segments below `snd.fack` count as being in the network, where the paper's `awnd` counts
//!   nothing below it;
//! - as in Linux, reordering by more than the three segments ends all this for the connection, and the tests of
//!   RFC 6675 are left; Linux raises its threshold besides.

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Sack};

/// Recovery that trusts the network to keep the order.
#[derive(Clone, Debug)]
pub(crate) struct Fack {
    pub(super) sack: Sack,
    /// The network does not keep the order.
    reordered: bool,
}

impl Fack {
    pub(super) fn new(una: u64) -> Self {
        Self { sack: Sack::new(una), reordered: false }
    }

    pub(super) fn on_ack(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        let distance = u64::from(DUP_THRESH) * arrival.mss;
        self.reordered |= arrival.reordered_by > distance;
        if self.reordered {
            return self.sack.on_ack(board, arrival);
        }
        if arrival.sacked > 0
            && let Some(fack) = board.highest_sacked()
        {
            board.mark_lost_below(fack.saturating_sub(distance));
        }
        self.sack.judge(board, arrival)
    }
}
