//! No congestion control, for a segment between two proxies over a link that repairs its losses and is clocked from below: the
//! link says when to send, the owner asks for packets no sooner, and the peer's buffer bounds what is out. A loss is sent
//! again and means nothing else (RFC 3135, 3.1.2, of a path that is known).

use base::Instant;

use super::{AckSample, Congestion, Controller, MAX_WINDOW};

/// A window that is never what limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocked;

impl Controller for Clocked {
    fn on_ack(&mut self, _ack: &AckSample) {}

    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_spurious_congestion(&mut self, _now: Instant, _window: u64, _ssthresh: u64) {}

    fn window(&self) -> u64 {
        MAX_WINDOW
    }

    fn set_window(&mut self, _window: u64, _ssthresh: Option<u64>) {}

    /// Nothing is to bring the window down for a while.
    fn steers_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::congestion;

    /// RFC 3135 (3.1.2): the link says when to send, in a recovery too: nothing else holds it down.
    #[test]
    fn a_loss_holds_nothing_down() {
        let mut clocked = Clocked;
        clocked.on_congestion(&congestion(1000, crate::congestion::Cause::Loss));
        assert!(
            clocked.steers_recovery() && clocked.window() == MAX_WINDOW,
            "a pair is slowed down by each loss"
        );
    }
}
