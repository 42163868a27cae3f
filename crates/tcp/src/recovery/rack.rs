//! RACK: the time-based loss detection of RFC 8985, section 6, as Linux has it; its tail loss probe is beside it.
//!
//! A segment is lost once one that was sent later has arrived and a round-trip time and a reordering window have
//! passed since it was sent; so a retransmission can be found lost too. First transmissions are judged in order,
//! which is the order that they were sent in, and retransmissions from a queue, so an acknowledgement costs what it
//! decides.
//!
//! Deviations:
//! - the reordering timer is set for the earliest segment in doubt, where step 5 waits for the latest;
//! - `RACK.min_RTT` is the least of the connection, not of the last minutes;
//! - a retransmission that is lost is a second indication of congestion (RFC 5681, 4.3), if so configured, at most once for
//!   all that were sent since the last response; always after a time-out.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use base::{Duration, Instant};

use crate::config::RecoveryConfig;

use super::scoreboard::Scoreboard;
use super::tail_loss_probe::{Outcome, TailLossProbe};
use super::{Arrival, Change, DUP_THRESH, Episode, Lost, Next, Phase, Scheme};

/// Recovery by time.
#[derive(Debug)]
pub(crate) struct Rack {
    probe: TailLossProbe,
    /// `RACK.xmit_ts` and `RACK.end_seq`: of all delivered segments, the one sent last.
    latest: (Instant, u64),
    /// `RACK.rtt`.
    rtt: Duration,
    /// `RACK.dsack_round`; zero is "none".
    dsack_round: u64,
    /// When the earliest segment in doubt counts as lost; [`Instant::MAX`] without one.
    deadline: Instant,
    /// When the controller was told of congestion last.
    responded_at: Instant,
    /// Retransmissions; only while there are any.
    resends: Option<Box<Resends>>,
    /// `RACK.reo_wnd_mult`.
    reo_wnd_mult: u16,
    /// `RACK.reo_wnd_persist`.
    reo_wnd_persist: u8,
    reordering_seen: bool,
    /// Whether a lost retransmission reduces the window again.
    reduces_again: bool,
}

/// Retransmissions on their way and lost ones.
#[derive(Debug, Default)]
struct Resends {
    /// When they were sent, and their records' indices; outdated entries are skipped.
    sent: VecDeque<(Instant, u64)>,
    /// Those that are to be sent once more; the lowest goes first, and before it what lies below and is lost.
    lost: BinaryHeap<Reverse<u64>>,
}

impl Resends {
    /// The lowest of those that are to be sent once more.
    fn lowest_lost(&mut self, board: &Scoreboard) -> Option<u64> {
        while let Some(&Reverse(index)) = self.lost.peek() {
            if board.is_due_again(index) {
                return Some(index);
            }
            self.lost.pop();
        }
        None
    }
}

/// What a look at the clock found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The first segment found lost.
    first: Option<Lost>,
    /// The first retransmission found lost that left after the last response.
    again: Option<Lost>,
}

impl Rack {
    pub(super) fn new(config: &RecoveryConfig) -> Self {
        Self {
            probe: TailLossProbe::default(),
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            dsack_round: 0,
            deadline: Instant::MAX,
            responded_at: Instant::ZERO,
            resends: None,
            reo_wnd_mult: 1,
            reo_wnd_persist: REO_WND_PERSIST,
            reordering_seen: false,
            reduces_again: config.second_reduction,
        }
    }

    /// The reordering timer expired, or an acknowledgement came (step 5).
    fn judge_and_respond(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
    ) -> Change {
        let (flight_size, in_network) = (episode.flight_size(board, arrival), board.pipe());
        let found = self.judge(episode, board, arrival);
        let change = match (episode.phase, found.first, found.again) {
            (Phase::Open, Some(lost), _) | (Phase::Timeout, _, Some(lost)) => {
                episode.begin(Phase::FastRecovery, arrival.nxt);
                Change::Entered { flight_size, lost }
            }
            (Phase::FastRecovery, _, Some(lost)) if self.reduces_again => {
                Change::Again { flight_size: in_network, lost }
            }
            _ => Change::None,
        };
        if change != Change::None {
            self.responded_at = arrival.now;
        }
        change
    }

    /// Ends what `arrival` has got over; what that was.
    fn on_advance(&mut self, episode: &mut Episode, arrival: &Arrival<'_>) -> Option<Phase> {
        if arrival.news.acked == 0 {
            return None;
        }
        episode.dup_acks = 0;
        if episode.phase == Phase::Open || arrival.una < episode.recover {
            return None;
        }
        let ended = episode.phase;
        episode.end();
        self.resends = None;
        Some(ended)
    }

    /// `RACK_update_reo_wnd`, the part that counts: it grows with each round that sees a D-SACK and shrinks after 16
    /// recoveries without one.
    fn adapt(&mut self, arrival: &Arrival<'_>, recovered: bool) {
        if self.dsack_round != 0 && arrival.una >= self.dsack_round {
            self.dsack_round = 0;
        }
        if self.dsack_round == 0 && arrival.news.dsack.is_some() {
            self.dsack_round = arrival.nxt;
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if recovered {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    /// `RACK_update_reo_wnd`, the part that tells.
    fn reo_wnd(&self, episode: &Episode, board: &Scoreboard, arrival: &Arrival<'_>) -> Duration {
        let urgent = episode.phase != Phase::Open || board.sacked_segments() >= DUP_THRESH;
        if !self.reordering_seen && urgent {
            return Duration::ZERO;
        }
        let quarter = Duration::from_nanos(arrival.rtt_min.as_nanos() / 4);
        quarter.saturating_mul(u64::from(self.reo_wnd_mult)).min(arrival.srtt)
    }

    /// How old a segment may get.
    fn patience(&self, episode: &Episode, board: &Scoreboard, arrival: &Arrival<'_>) -> Duration {
        // Before anything was delivered, the handshake's round trip.
        let rtt = if self.latest.1 == 0 { arrival.srtt } else { self.rtt };
        rtt + self.reo_wnd(episode, board, arrival)
    }

    /// `RACK_detect_loss`.
    fn judge(&mut self, episode: &Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Found {
        let patience = self.patience(episode, board, arrival);
        let (latest, now) = (self.latest, arrival.now);
        let (mut deadline, mut found) = (Instant::MAX, Found::default());
        board.mark_lost_while(|record| {
            if (record.sent_at, record.end()) >= latest {
                return false;
            }
            let due = record.sent_at.saturating_add(patience);
            if due > now {
                deadline = due;
                return false;
            }
            found.first.get_or_insert(Lost::of(record));
            true
        });
        if let Some(resends) = &mut self.resends {
            while let Some(&(at, index)) = resends.sent.front() {
                if let Some(record) = board.resent(index).filter(|record| record.sent_at == at) {
                    let due = at.saturating_add(patience);
                    if (at, record.end()) >= latest {
                        break;
                    }
                    if due > now {
                        deadline = deadline.min(due);
                        break;
                    }
                    let lost = Lost::of(record);
                    found.first.get_or_insert(lost);
                    if at >= self.responded_at {
                        found.again.get_or_insert(lost);
                    }
                    board.mark_lost_again(index);
                    resends.lost.push(Reverse(index));
                }
                resends.sent.pop_front();
            }
            if resends.sent.is_empty() && resends.lost.is_empty() {
                self.resends = None;
            }
        }
        self.deadline = deadline;
        found
    }
}

impl Scheme for Rack {
    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        holds: bool,
    ) -> Change {
        if let Some(newest) = arrival.news.newest {
            // Step 2.
            self.rtt = arrival.now.saturating_since(newest.0);
            self.latest = self.latest.max(newest);
        }
        self.reordering_seen |= arrival.news.reordered_by > 0; // Step 3.
        let ended = self.on_advance(episode, arrival);
        self.adapt(arrival, ended.is_some()); // Step 4.
        if arrival.news.sacked > 0 && episode.phase == Phase::Open {
            episode.count_duplicate(arrival.nxt);
        }
        let probed = self.probe.on_ack(arrival);
        let change = if holds { Change::None } else { self.judge_and_respond(episode, board, arrival) };
        match (change, probed, ended) {
            (Change::None, Outcome::Repaired { flight_size, lost }, None) => {
                self.responded_at = arrival.now;
                Change::Repaired { flight_size, lost }
            }
            (Change::None, _, Some(Phase::FastRecovery)) => Change::Left { limit: u64::MAX },
            // A recovery that begins where another ends takes its place.
            (change, ..) => change,
        }
    }

    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let flight_size = episode.flight_size(board, arrival);
        let lost = Lost::head(board);
        episode.begin(Phase::FastRecovery, arrival.nxt);
        self.responded_at = arrival.now;
        board.mark_head_lost();
        Change::Entered { flight_size, lost }
    }

    /// `RACK_mark_losses_on_RTO` (6.3): the first segment, and those whose time is up.
    fn mark_losses_on_timeout(&mut self, episode: &Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) {
        let patience = self.patience(episode, board, arrival);
        board.mark_expired(|record| record.sent_at.saturating_add(patience) <= arrival.now);
    }

    fn on_timeout(&mut self, now: Instant) {
        self.deadline = Instant::MAX;
        self.responded_at = now;
        self.probe.cancel();
        if let Some(resends) = &mut self.resends {
            resends.lost.clear();
        }
    }

    fn on_sent(&mut self, _episode: &Episode, sent: Next, now: Instant) {
        if let Next::Retransmit(index) | Next::Probe(index) = sent {
            self.resends.get_or_insert_default().sent.push_back((now, index));
        }
    }

    fn next(&mut self, _episode: &Episode, board: &mut Scoreboard, new_data: bool) -> Next {
        let again = self.resends.as_mut().and_then(|resends| resends.lowest_lost(board));
        match board.next_lost().into_iter().chain(again).min() {
            Some(index) => Next::Retransmit(index),
            None if new_data => Next::New,
            None => Next::Nothing,
        }
    }

    fn asks_for_order(&self) -> bool {
        true
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn on_timer(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        self.judge_and_respond(episode, board, arrival)
    }

    fn probe(&self) -> Option<&TailLossProbe> {
        Some(&self.probe)
    }

    fn probe_mut(&mut self) -> Option<&mut TailLossProbe> {
        Some(&mut self.probe)
    }
}

/// Recoveries; RFC 8985 (6.2, step 4).
const REO_WND_PERSIST: u8 = 16;
