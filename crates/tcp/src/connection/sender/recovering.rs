//! What recovery finds goes to the controller and to the reduction of the window.

use base::Instant;

use super::Sender;
use super::marking::LossResponse;
use super::transmit::Segment;
use crate::config::ReduceFrom;
use crate::congestion::{Cause, Congestion};
use crate::recovery::reduction::{Outset, Progress, Reduction};
use crate::recovery::scoreboard::News;
use crate::recovery::{Arrival, Change, Evidence, Lost, Next};

impl Sender {
    /// Before an acknowledgement is taken in, or a timer is heeded: what to compare with.
    pub(super) fn no_news(&self) -> News {
        News {
            prior_phase: self.recovery.phase(),
            prior_inflation: match &self.reduction {
                // Nobody asks.
                None => 0,
                Some(_) => self.recovery.inflation(&self.board, u64::from(self.mss)),
            },
            prior_losses: self.board.losses(),
            prior_in_flight: self.pipe(),
            ..News::default()
        }
    }

    /// Responds to what the scheme said of an arrival.
    pub(super) fn respond(&mut self, change: Change, arrival: &Arrival<'_>) {
        let Arrival { now, news, .. } = *arrival;
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
                self.recovery.doubt(Evidence::default());
                self.end_recovery(now, u64::MAX);
                self.statistics.recoveries += 1;
            }
            Change::Left { limit } => self.end_recovery(now, limit),
        }
        self.reduce(news);
    }

    /// A loss was found: the controller responds, and the window begins to go down.
    fn lose(&mut self, now: Instant, flight_size: u64, lost: Lost, news: &News) {
        let response = self.loss_response();
        let outstanding = flight_size;
        let flight_size = self.reduced_from(flight_size);
        let event =
            Congestion { now, flight_size, cause: Cause::Loss, sent_at: lost.sent_at, resent: lost.resent };
        let prior_window = self.controller.window();
        match response {
            LossResponse::Due => self.controller.on_congestion(&event),
            LossResponse::Given => {}
            LossResponse::None => return,
        }
        self.respond_unvalidated(outstanding);
        // RFC 9937 (6.1): what was acknowledged selectively before this acknowledgement is not delivered any more.
        let known = self.board.sacked().saturating_sub(news.sacked);
        let outset = Outset {
            target: self.controller.window(),
            prior_window,
            recover_fs: (self.nxt - self.una + news.acked).saturating_sub(known),
            mss: u64::from(self.mss),
        };
        if !self.controller.steers_recovery() {
            self.reduction = Reduction::begin(self.config.recovery.reduction, &outset);
        }
    }

    /// What the controller is told to have been in flight.
    pub(super) fn reduced_from(&self, flight_size: u64) -> u64 {
        match self.config.recovery.reduce_from {
            ReduceFrom::FlightSize => flight_size,
            ReduceFrom::Cwnd => self.controller.window(),
        }
    }

    /// Fast recovery ended with at most `limit` bytes of window, where the reduction says nothing else.
    fn end_recovery(&mut self, now: Instant, limit: u64) {
        let limit = if self.ignores_losses() { u64::MAX } else { limit };
        let limit = self.reduction.take().map_or(limit, |reduction| reduction.exit_limit());
        self.controller.on_recovery_exit(now);
        let window = limit.max(u64::from(self.mss));
        if !self.controller.steers_recovery() && window <= self.controller.window() {
            self.controller.set_window(window, None);
        }
        self.leave_unvalidated();
    }

    /// Moves the reduction on by what was delivered.
    fn reduce(&mut self, news: &News) {
        let Some(reduction) = &mut self.reduction else { return };
        let found = self.board.losses() != news.prior_losses;
        if !found && !news.duplicate && news.bytes == 0 {
            return;
        }
        let mss = u64::from(self.mss);
        let inflation = self.recovery.inflation(&self.board, mss);
        // Without selective acknowledgements each duplicate delivered a segment, which a later
        // acknowledgement repeats (RFC 9937, 6.2).
        let delivered = match (self.negotiated.sack, news.duplicate) {
            (true, _) => news.bytes,
            (false, true) => mss,
            (false, false) => news.acked.saturating_sub(news.prior_inflation.max(0) as u64),
        };
        reduction.on_ack(&Progress {
            delivered,
            in_flight: self.board.pipe().saturating_add_signed(-inflation),
            safe: news.acked > 0 && !found,
        });
    }

    /// All that is outstanding is sent again, which is no response to congestion.
    pub(super) fn send_all_again(&mut self, now: Instant) {
        let news = self.no_news();
        let arrival = self.arrival(now, &news);
        self.recovery.on_window_reopened(&mut self.board, &arrival);
    }

    /// The deadline of time-based recovery has passed: segments in doubt are lost, or a probe is due
    /// (RFC 8985, 6.2, step 5, and 7.3).
    pub(super) fn on_recovery_timer(&mut self, now: Instant) {
        let news = self.no_news();
        if self.recovery.deadline() <= now {
            let arrival = self.arrival(now, &news);
            let change = self.recovery.on_timer(&mut self.board, &arrival);
            self.respond(change, &arrival);
            self.schedule_recovery_timer(now, false);
        } else if self.recovery.probe_timeout(&self.board, None).is_some() {
            self.recovery.expire_probe(self.rtt.srtt().is_some());
            // One that is skipped leaves the timer as it is, as in Linux: new data set the next probe's time, and would put it off for ever.
            if self.recovery.is_probe_due() {
                self.rearm_retransmit(now);
            }
        }
    }

    /// Sets the timer of time-based recovery: for the segments in doubt, or else for a tail loss probe, which new data
    /// and new acknowledgements put off.
    pub(super) fn schedule_recovery_timer(&mut self, now: Instant, restart_probe: bool) {
        if !self.recovery.is_timed() {
            return;
        }
        if self.timers.persisting {
            // What asks for the window is no tail, and has a timer of its own.
            return self.timers.start_recovery(Instant::MAX, false);
        }
        let deadline = self.recovery.deadline();
        if deadline < Instant::MAX {
            return self.timers.start_recovery(deadline, false);
        }
        match self.recovery.probe_timeout(&self.board, self.rtt.srtt()) {
            None => self.timers.start_recovery(Instant::MAX, false),
            Some(wait) if restart_probe || !self.timers.is_probing() => {
                let deadline = now.saturating_add(wait).min(self.timers.retransmit());
                self.timers.start_recovery(deadline, true);
            }
            Some(_) => {}
        }
    }

    /// New data, or the last segment again, to get an acknowledgement (RFC 8985, 7.3); the window does not matter.
    pub(super) fn send_tail_probe(&mut self, now: Instant) -> Option<Segment> {
        let flight_size = self.nxt - self.una;
        let last = self.board.last_unsacked()?;
        let (segment, again) = match self.next_new_probe() {
            Some(new) => (self.send_new(now, new, 1), None),
            None => {
                let sent_at = self.board.record(last).sent_at;
                (self.resend(now, last, Next::Probe(last)), Some(sent_at))
            }
        };
        self.recovery.on_probe_sent(self.nxt, flight_size, again);
        self.statistics.tail_probes += 1;
        self.rearm_retransmit(now);
        self.schedule_recovery_timer(now, false);
        Some(segment)
    }
}
