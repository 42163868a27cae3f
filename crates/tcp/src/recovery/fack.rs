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

use base::Instant;

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Episode, Next, Sack, Scheme};

/// Recovery that trusts the network to keep the order.
#[derive(Debug, Default)]
pub(crate) struct Fack {
    sack: Sack,
    /// The network does not keep the order.
    reordered: bool,
}

impl Scheme for Fack {
    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        holds: bool,
    ) -> Change {
        let distance = u64::from(DUP_THRESH) * arrival.mss;
        self.reordered |= arrival.news.reordered_by > distance;
        if self.reordered {
            return self.sack.on_ack(episode, board, arrival, holds);
        }
        if arrival.news.sacked > 0
            && let Some(fack) = board.highest_sacked()
        {
            board.mark_lost_below(fack.saturating_sub(distance));
        }
        self.sack.judge(episode, board, arrival)
    }

    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        self.sack.enter(episode, board, arrival)
    }

    fn next(&mut self, episode: &Episode, board: &mut Scoreboard, new_data: bool) -> Next {
        self.sack.next(episode, board, new_data)
    }

    fn on_sent(&mut self, episode: &Episode, sent: Next, now: Instant) {
        self.sack.on_sent(episode, sent, now);
    }

    fn asks_for_order(&self) -> bool {
        true
    }
}
