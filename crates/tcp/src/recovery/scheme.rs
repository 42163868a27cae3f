//! What a recovery scheme is: how losses are found, and what goes out next.

use core::fmt::Debug;

use base::Instant;

use super::scoreboard::Scoreboard;
use super::tail_loss_probe::TailLossProbe;
use super::{Arrival, Change, Episode, Fack, NewReno, Next, Rack, Reno, Sack};
use crate::config::{Recovery, RecoveryConfig};

/// A way to find lost segments and to repair them. It marks the scoreboard and moves the [`Episode`], which the
/// machine keeps for it: the phase that recovery is in.
pub(crate) trait Scheme: Debug + Send {
    /// `recover` before anything was lost, where the first unacknowledged offset is `una`.
    fn first_recover(&self, una: u64) -> u64 {
        una
    }

    /// An acknowledgement arrived. While a time-out is in doubt, `holds`, no further loss is looked for by time.
    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        holds: bool,
    ) -> Change;

    /// Fast recovery begins: the first segment is lost, whoever found that.
    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change;

    /// Marks what a time-out means to be lost: everything outstanding (RFC 6298, 5.4; RFC 6675, 5.1).
    fn mark_losses_on_timeout(&mut self, _episode: &Episode, board: &mut Scoreboard, _arrival: &Arrival<'_>) {
        board.mark_all_lost();
    }

    /// A time-out is taken as one, or a closed window has opened again.
    fn on_timeout(&mut self, _now: Instant) {}

    /// What to send next in recovery; `new_data` says whether there is new data that the peer's window allows.
    fn next(&mut self, _episode: &Episode, board: &mut Scoreboard, new_data: bool) -> Next {
        Next::lost_or_new(board, new_data)
    }

    /// What `next` said was sent.
    fn on_sent(&mut self, _episode: &Episode, _sent: Next, _now: Instant) {}

    /// Bytes to add to the window in recovery.
    fn inflation(&self) -> i64 {
        0
    }

    /// Whether it knows of segments beyond the cumulative acknowledgement only that duplicates mean them.
    fn is_cumulative(&self) -> bool {
        false
    }

    /// Whether an acknowledgement that advances SND.UNA restarts the retransmission timer.
    fn restarts_timer(&self, _episode: &Episode) -> bool {
        true
    }

    /// Whether the order in which segments arrive matters.
    fn asks_for_order(&self) -> bool {
        false
    }

    /// When [`Scheme::on_timer`] wants to be called; [`Instant::MAX`] for never.
    fn deadline(&self) -> Instant {
        Instant::MAX
    }

    /// The deadline has passed; `arrival` is an acknowledgement of nothing.
    fn on_timer(
        &mut self,
        _episode: &mut Episode,
        _board: &mut Scoreboard,
        _arrival: &Arrival<'_>,
    ) -> Change {
        Change::None
    }

    /// Its tail loss probe, if segments' times decide what is lost.
    fn probe(&self) -> Option<&TailLossProbe> {
        None
    }

    /// Its tail loss probe, to tell it what happens; `None` unless segments' times decide what is lost.
    fn probe_mut(&mut self) -> Option<&mut TailLossProbe> {
        None
    }
}

/// The scheme that the settings name, or NewReno where it needs selective acknowledgements and the peer does not
/// send them, not `sack`.
pub(super) fn choose(config: &RecoveryConfig, sack: bool) -> Box<dyn Scheme> {
    match config.scheme {
        Recovery::Reno => Box::new(Reno::default()),
        Recovery::Sack if sack => Box::new(Sack::default()),
        Recovery::Fack if sack => Box::new(Fack::default()),
        Recovery::Rack if sack => Box::new(Rack::new(config)),
        Recovery::NewReno | Recovery::Sack | Recovery::Fack | Recovery::Rack => {
            Box::new(NewReno::new(config))
        }
    }
}
