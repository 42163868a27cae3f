//! What recovery finds goes to the controller and to the reduction of the window.

use base::Instant;

use super::Connection;
use crate::congestion::{Cause, Congestion};
use crate::recovery::reduction::{Outset, Progress, Reduction};
use crate::recovery::scoreboard::{Delivered, Record};
use crate::recovery::{Change, Phase};

/// What was known before an acknowledgement, or a timer, changed the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) phase: Phase,
    inflation: i64,
    losses: u32,
}

impl Connection {
    /// What to compare with after the scheme has judged.
    pub(super) fn before_recovery(&self) -> Before {
        let sender = &self.sender;
        Before {
            phase: sender.recovery.phase(),
            inflation: sender.recovery.inflation(&sender.board, u64::from(sender.mss)),
            losses: sender.board.losses(),
        }
    }

    /// Responds to what the scheme said of `news`, which a duplicate may have left empty.
    pub(super) fn respond(
        &mut self,
        now: Instant,
        change: Change,
        before: &Before,
        news: &Delivered,
        duplicate: bool,
    ) {
        match change {
            Change::None => {}
            Change::Entered { flight_size } => self.begin_recovery(now, flight_size, news),
            Change::Left { limit } => {
                let limit = match self.sender.reduction.take() {
                    Some(reduction) => reduction.exit_limit(),
                    None => limit,
                };
                self.sender.controller.on_recovery_exit(now, limit);
            }
        }
        self.reduce(before, news, duplicate);
    }

    /// Fast recovery begins: the controller responds, once.
    fn begin_recovery(&mut self, now: Instant, flight_size: u64, news: &Delivered) {
        let sender = &mut self.sender;
        let lost = sender.board.first();
        let event = Congestion {
            now,
            flight_size,
            cause: Cause::Loss,
            sent_at: lost.map(|record| record.sent_at),
            resent: lost.is_some_and(Record::was_resent),
        };
        let prior_window = sender.controller.window();
        sender.controller.on_congestion(&event);
        // RFC 9937 (6.1): what was acknowledged selectively before this acknowledgement is not delivered any more.
        let known = sender.board.sacked().saturating_sub(news.sacked);
        let outset = Outset {
            target: sender.controller.window(),
            prior_window,
            recover_fs: (sender.nxt - sender.una + news.acked).saturating_sub(known),
            mss: u64::from(sender.mss),
        };
        sender.reduction = Reduction::begin(self.config.reduction, &outset);
        self.statistics.recoveries += 1;
    }

    /// Moves the reduction on by what was delivered.
    fn reduce(&mut self, before: &Before, news: &Delivered, duplicate: bool) {
        let sender = &mut self.sender;
        let Some(reduction) = &mut sender.reduction else { return };
        let mss = u64::from(sender.mss);
        let inflation = sender.recovery.inflation(&sender.board, mss);
        // Without selective acknowledgements each duplicate delivered a segment, which a later
        // acknowledgement repeats (RFC 9937, 6.2).
        let delivered = match (self.negotiated.sack, duplicate) {
            (true, _) => news.bytes,
            (false, true) => mss,
            (false, false) => news.acked.saturating_sub(before.inflation.max(0) as u64),
        };
        reduction.on_ack(&Progress {
            delivered,
            in_flight: sender.board.pipe().saturating_add_signed(-inflation),
            safe: news.acked > 0 && sender.board.losses() == before.losses,
        });
    }
}
