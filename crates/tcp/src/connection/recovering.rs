//! What recovery finds goes to the controller and to the reduction of the window.

use base::{Instant, Packet};

use super::Connection;
use super::ecn::LossResponse;
use crate::config::ReduceFrom;
use crate::congestion::{Cause, Congestion};
use crate::recovery::reduction::{Outset, Progress, Reduction};
use crate::recovery::scoreboard::Delivered;
use crate::recovery::{Change, Evidence, Lost, Next, Phase};

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
            inflation: match &sender.reduction {
                // Nobody asks.
                None => 0,
                Some(_) => sender.recovery.inflation(&sender.board, u64::from(sender.mss)),
            },
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
            Change::Entered { .. } if self.lost_only_search() => self.statistics.recoveries += 1,
            Change::Entered { flight_size, lost } => {
                self.doubt_recovery(flight_size);
                self.lose(now, flight_size, lost, news);
                self.statistics.recoveries += 1;
            }
            Change::Again { flight_size, lost } => self.lose(now, flight_size, lost, news),
            Change::Repaired { flight_size, lost } => {
                self.lose(now, flight_size, lost, news);
                // To undo an older recovery would undo this response too.
                self.sender.recovery.doubt(Evidence::default());
                self.leave(now, u64::MAX);
                self.statistics.recoveries += 1;
            }
            Change::Left { limit } => self.leave(now, limit),
        }
        self.reduce(before, news, duplicate);
    }

    /// A loss was found: the controller responds, and the window begins to go down.
    fn lose(&mut self, now: Instant, flight_size: u64, lost: Lost, news: &Delivered) {
        let response = self.loss_response();
        let outstanding = flight_size;
        let flight_size = self.reduced_from(flight_size);
        let sender = &mut self.sender;
        let event =
            Congestion { now, flight_size, cause: Cause::Loss, sent_at: lost.sent_at, resent: lost.resent };
        let prior_window = sender.controller.window();
        match response {
            LossResponse::Due => sender.controller.on_congestion(&event),
            LossResponse::Given => {}
            LossResponse::None => return,
        }
        self.respond_unvalidated(outstanding);
        let sender = &mut self.sender;
        // RFC 9937 (6.1): what was acknowledged selectively before this acknowledgement is not delivered any more.
        let known = sender.board.sacked().saturating_sub(news.sacked);
        let outset = Outset {
            target: sender.controller.window(),
            prior_window,
            recover_fs: (sender.nxt - sender.una + news.acked).saturating_sub(known),
            mss: u64::from(sender.mss),
        };
        if !sender.controller.steers_recovery() {
            sender.reduction = Reduction::begin(self.config.recovery.reduction, &outset);
        }
    }

    /// What the controller is told to have been in flight.
    pub(super) fn reduced_from(&self, flight_size: u64) -> u64 {
        match self.config.recovery.reduce_from {
            ReduceFrom::FlightSize => flight_size,
            ReduceFrom::Cwnd => self.sender.controller.window(),
        }
    }

    /// Fast recovery ended with at most `limit` bytes of window, where the reduction says nothing else.
    fn leave(&mut self, now: Instant, limit: u64) {
        let limit = if self.ignores_losses() { u64::MAX } else { limit };
        let sender = &mut self.sender;
        let limit = sender.reduction.take().map_or(limit, |reduction| reduction.exit_limit());
        sender.controller.on_recovery_exit(now);
        let window = limit.max(u64::from(sender.mss));
        if !sender.controller.steers_recovery() && window <= sender.controller.window() {
            sender.controller.set_window(window, None);
        }
        self.leave_unvalidated();
    }

    /// Moves the reduction on by what was delivered.
    fn reduce(&mut self, before: &Before, news: &Delivered, duplicate: bool) {
        let sender = &mut self.sender;
        let Some(reduction) = &mut sender.reduction else { return };
        let found = sender.board.losses() != before.losses;
        if !found && !duplicate && news.bytes == 0 {
            return;
        }
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
            safe: news.acked > 0 && !found,
        });
    }

    /// The deadline of time-based recovery has passed: segments in doubt are lost, or a probe is due
    /// (RFC 8985, 6.2, step 5, and 7.3).
    pub(super) fn on_recovery_timer(&mut self, now: Instant) {
        let before = self.before_recovery();
        let news = Delivered::default();
        let sender = &mut self.sender;
        if sender.recovery.deadline() <= now {
            let arrival = sender.arrival(now, &news);
            let change = sender.recovery.on_timer(&mut sender.board, &arrival);
            self.respond(now, change, &before, &news, false);
            self.schedule_recovery_timer(now, false);
        } else if sender.recovery.probe_timeout(&sender.board, None).is_some() {
            sender.recovery.expire_probe(sender.rtt.srtt().is_some());
            // One that is skipped leaves the timer as it is, as in Linux: new data set the next probe's time, and would put it off for ever.
            if sender.recovery.is_probe_due() {
                let wait = sender.rto();
                self.restart_retransmit(now, wait);
            }
        }
    }

    /// Sets the timer of time-based recovery: for the segments in doubt, or else for a tail loss probe, which new data
    /// and new acknowledgements put off.
    pub(super) fn schedule_recovery_timer(&mut self, now: Instant, restart_probe: bool) {
        let sender = &self.sender;
        if !sender.recovery.is_timed() {
            return;
        }
        if sender.persisting {
            // What asks for the window is no tail, and has a timer of its own.
            return self.timers.start_recovery(Instant::MAX, false);
        }
        let deadline = sender.recovery.deadline();
        if deadline < Instant::MAX {
            return self.timers.start_recovery(deadline, false);
        }
        match sender.recovery.probe_timeout(&sender.board, sender.rtt.srtt()) {
            None => self.timers.start_recovery(Instant::MAX, false),
            Some(wait) if restart_probe || !self.timers.is_probing() => {
                let deadline = now.saturating_add(wait).min(self.timers.retransmit());
                self.timers.start_recovery(deadline, true);
            }
            Some(_) => {}
        }
    }

    /// New data, or the last segment again, to get an acknowledgement (RFC 8985, 7.3); the window does not matter.
    pub(super) fn send_tail_probe(&mut self, now: Instant, out: &mut Packet) -> bool {
        let sender = &self.sender;
        let flight_size = sender.nxt - sender.una;
        let Some(last) = sender.board.last_unsacked() else { return false };
        let again = match sender.next_new_probe() {
            Some((len, fin)) => {
                self.send_new(now, out, len, fin);
                None
            }
            None => {
                let sent_at = sender.board.record(last).sent_at;
                self.resend(now, out, last, Next::Probe(last));
                Some(sent_at)
            }
        };
        let nxt = self.sender.nxt;
        self.sender.recovery.on_probe_sent(nxt, flight_size, again);
        self.statistics.tail_probes += 1;
        let wait = self.sender.rto();
        self.restart_retransmit(now, wait);
        self.schedule_recovery_timer(now, false);
        true
    }
}
