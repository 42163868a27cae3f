//! Loss recovery: which segments are lost, and which to send next. One scheme a file.
//!
//! A [`Scheme`] reads and marks the [`Scoreboard`] and says what goes out next; how much may go out is the
//! congestion controller's word, which [`reduction`] may soften during fast recovery. A [`Machine`] has one scheme,
//! chosen when the connection is established, and what is the same for all: the [`Episode`], which is the phase that
//! recovery is in, doubts about time-outs, limited transmit and fine-grained expiry.

mod doubt;
mod episode;
mod fack;
mod fine_grained;
mod newreno;
mod rack;
pub(crate) mod reduction;
mod reno;
mod sack;
mod scheme;
pub(crate) mod scoreboard;
pub(crate) mod spurious;
mod tail_loss_probe;

use base::{Duration, Instant};

use crate::config::TcpConfig;
use doubt::Doubt;
pub(crate) use doubt::Evidence;
use episode::Episode;
pub(crate) use episode::{Arrival, Change, Lost, Next, Phase};
use fack::Fack;
use fine_grained::{Expiry, FineGrained};
use newreno::NewReno;
pub(crate) use rack::Rack;
use reno::Reno;
use sack::Sack;
use scheme::Scheme;
use scoreboard::Scoreboard;
use spurious::{Methods, Suspicion, Verdict};
use tail_loss_probe::TailLossProbe;

/// Duplicate acknowledgements that mean a loss (RFC 5681, 3.2; `DupThresh` of RFC 6675, 2).
pub(crate) const DUP_THRESH: u32 = 3;

/// Segments that limited transmit lets out for duplicates (RFC 3042, 2).
const LIMITED_TRANSMIT: u32 = 2;

/// The recovery of one connection.
#[derive(Debug)]
pub(crate) struct Machine {
    scheme: Box<dyn Scheme>,
    episode: Episode,
    /// Whether the last time-out was needed is not decided.
    suspicion: Option<Box<Suspicion>>,
    /// Whether the last recovery was needed is not decided.
    doubt: Option<Box<Doubt>>,
    fine_grained: Option<Box<FineGrained>>,
}

impl Machine {
    /// The scheme for a connection whose first unacknowledged offset is `una`; `sack` says whether the peer
    /// acknowledges selectively.
    pub(crate) fn new(config: &TcpConfig, sack: bool, una: u64) -> Self {
        let scheme = scheme::choose(&config.recovery, sack);
        Self {
            episode: Episode::new(scheme.first_recover(una), config.recovery.limited_transmit),
            scheme,
            suspicion: None,
            doubt: None,
            fine_grained: config.expires_finely().then(Box::default),
        }
    }

    /// Bytes of its scheme.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.scheme)
    }

    /// An acknowledgement arrived and the scoreboard has taken it in: whether it shows that the last time-out, or the
    /// last fast recovery, was not needed. Then that is over, and nothing is deemed lost; [`Machine::on_ack`] is next in
    /// any case.
    pub(crate) fn find_spurious(&mut self, board: &mut Scoreboard, arrival: &Arrival<'_>) -> bool {
        let timeout = self.suspicion.as_mut().map(|it| it.on_ack(board, arrival));
        let recovery = self.doubt.as_mut().map(|it| it.on_ack(board, arrival));
        if timeout == Some(Verdict::Needed) {
            self.stop_doubting(board);
        }
        if recovery == Some(Verdict::Needed) {
            self.doubt = None;
        }
        let spurious = [timeout, recovery].contains(&Some(Verdict::Spurious));
        if spurious {
            (self.suspicion, self.doubt) = (None, None);
            board.unmark_lost();
            self.episode.end();
            // A loss of what is outstanding may be found anew (RFC 6582, 3.2, step 2).
            self.episode.recover = arrival.una - 1;
        }
        spurious
    }

    /// A recovery began whose need is to be doubted.
    pub(crate) fn doubt(&mut self, evidence: Evidence) {
        self.doubt = Doubt::new(evidence);
    }

    /// The segment before the offset `end` was sent again with this timestamp.
    pub(crate) fn on_resent(&mut self, end: u64, timestamp: u32) {
        if self.doubt.as_mut().is_some_and(|doubt| !doubt.on_resent(end, timestamp)) {
            self.doubt = None;
        }
    }

    /// Whether it is in doubt that the last recovery was needed.
    pub(crate) const fn is_doubted(&self) -> bool {
        self.doubt.is_some()
    }

    /// The time-out was needed: all that was outstanding then is lost after all.
    fn stop_doubting(&mut self, board: &mut Scoreboard) {
        if self.suspicion.take().is_some_and(|suspicion| suspicion.holds()) {
            board.mark_rest_lost(self.episode.recover);
            // RFC 5682 (2.1, step 3a): the first segment that was not sent again goes out at once.
            self.episode.forced = board.is_due_again(board.head());
        }
    }

    /// An acknowledgement arrived and [`Machine::find_spurious`] has looked at it.
    pub(crate) fn on_ack(&mut self, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let holds = self.holds();
        if arrival.news.acked > 0 && self.phase() == Phase::Open {
            // An overdue segment was acknowledged before it could go out again.
            self.episode.forced = false;
        }
        let duplicates = self.episode.dup_acks;
        let change = self.scheme.on_ack(&mut self.episode, board, arrival, holds);
        if self.fine_grained.is_some() && !holds {
            // This arrival raised the count to one; one that advances SND.UNA has set it back first.
            let first_duplicate = self.episode.dup_acks == 1 && (duplicates == 0 || arrival.news.acked > 0);
            self.look_for_expiry(board, arrival, change, first_duplicate)
        } else {
            change
        }
    }

    /// Sends the first segment again if it is overdue by the fine-grained clock.
    fn look_for_expiry(
        &mut self,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        change: Change,
        first_duplicate: bool,
    ) -> Change {
        let Some(fine_grained) = &mut self.fine_grained else { return change };
        let expiry = fine_grained.look(board, arrival, change, first_duplicate);
        match expiry {
            Expiry::Nothing => return change,
            Expiry::News => fine_grained.on_response(arrival.now),
            Expiry::Known => {}
        }
        let (lost, flight_size) = (Lost::head(board), board.pipe());
        if expiry == Expiry::News && self.phase() == Phase::Open {
            return self.scheme.enter(&mut self.episode, board, arrival);
        }
        board.mark_head_lost();
        self.episode.forced = true;
        if expiry == Expiry::News { Change::Again { flight_size, lost } } else { change }
    }

    /// When [`Machine::on_timer`] wants to be called; [`Instant::MAX`] for never.
    pub(crate) fn deadline(&self) -> Instant {
        self.scheme.deadline()
    }

    /// The deadline has passed; `arrival` is an acknowledgement of nothing.
    pub(crate) fn on_timer(&mut self, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        self.scheme.on_timer(&mut self.episode, board, arrival)
    }

    /// The retransmission timer expired: everything outstanding counts as lost (RFC 6298, 5.4; RFC 6675, 5.1), or
    /// what is overdue (RFC 8985, 6.3); but the first segment alone while F-RTO, if it is among the `methods`, doubts it.
    pub(crate) fn on_timeout(&mut self, board: &mut Scoreboard, arrival: &Arrival<'_>, methods: Methods) {
        self.doubt(Evidence { timestamps: false, reports: methods.reports });
        match &mut self.suspicion {
            Some(suspicion) => suspicion.on_another_timeout(),
            None if board.is_head_sacked() => {}
            None => self.suspicion = Suspicion::new(methods, arrival.nxt),
        }
        if self.holds() {
            board.mark_head_lost();
        } else {
            self.scheme.mark_losses_on_timeout(&self.episode, board, arrival);
        }
        self.begin_timeout(arrival);
    }

    /// What the closed window dropped is all sent again.
    pub(crate) fn on_window_reopened(&mut self, board: &mut Scoreboard, arrival: &Arrival<'_>) {
        (self.suspicion, self.doubt) = (None, None);
        board.mark_all_lost();
        self.begin_timeout(arrival);
    }

    fn begin_timeout(&mut self, arrival: &Arrival<'_>) {
        self.scheme.on_timeout(arrival.now);
        if let Some(fine_grained) = &mut self.fine_grained {
            fine_grained.on_response(arrival.now);
        }
        self.episode.begin(Phase::Timeout, arrival.nxt);
        // RFC 6298 (5.4): the first segment goes out, whatever is still in the network.
        self.episode.forced = true;
        self.episode.dup_acks = 0;
    }

    /// What to send next; `new_data` says whether there is new data that the peer's window allows.
    pub(crate) fn next(&mut self, board: &mut Scoreboard, new_data: bool) -> Next {
        if self.phase() == Phase::Open && self.forced() && board.is_due_again(board.head()) {
            return Next::Retransmit(board.head());
        }
        if self.phase() == Phase::Open {
            return if new_data { Next::New } else { Next::Nothing };
        }
        if self.holds() {
            return match board.is_due_again(board.head()) {
                true => Next::Retransmit(board.head()),
                false if new_data && self.lets_new_out() => Next::New,
                false => Next::Nothing,
            };
        }
        self.scheme.next(&self.episode, board, new_data)
    }

    /// What `next` said was sent `now`, with this timestamp.
    pub(crate) fn on_sent(&mut self, sent: Next, now: Instant, timestamp: u32) {
        if matches!(sent, Next::Retransmit(_)) {
            self.episode.forced = false;
            if let Some(fine_grained) = &mut self.fine_grained {
                fine_grained.on_resent();
            }
        }
        match (&mut self.suspicion, sent) {
            (Some(suspicion), Next::Retransmit(_)) => suspicion.on_resent(timestamp),
            (Some(suspicion), Next::New) => suspicion.on_new_sent(),
            _ => {}
        }
        self.scheme.on_sent(&self.episode, sent, now);
    }

    /// Bytes to add to the window because duplicates tell more, or shall allow less, than `pipe` does (RFC 5681, 3.2;
    /// RFC 6582, 3.2; RFC 3042).
    pub(crate) fn inflation(&self, board: &Scoreboard, mss: u64) -> i64 {
        let (phase, dup_acks) = (self.episode.phase, self.episode.dup_acks);
        if phase != Phase::Open {
            return self.scheme.inflation();
        }
        if dup_acks == 0 {
            return 0;
        }
        match (self.episode.limited_transmit, self.scheme.is_cumulative()) {
            (true, false) | (false, true) => 0,
            (false, false) => -(board.arrived_early() as i64),
            (true, true) => i64::from(dup_acks.min(LIMITED_TRANSMIT)) * mss as i64,
        }
    }

    /// Whether the next retransmission goes out whatever the window says.
    pub(crate) const fn forced(&self) -> bool {
        self.episode.forced
    }

    /// Whether a time-out is in doubt, so that only the first segment counts as lost.
    fn holds(&self) -> bool {
        self.suspicion.as_ref().is_some_and(|suspicion| suspicion.holds())
    }

    /// Whether new data go out whatever the window says (RFC 5682, 2.1, step 2b).
    pub(crate) fn lets_new_out(&self) -> bool {
        self.suspicion.as_ref().is_some_and(|suspicion| suspicion.lets_new_out())
    }

    /// Whether a time-out is in doubt.
    pub(crate) const fn doubts(&self) -> bool {
        self.suspicion.is_some()
    }

    /// Where recovery stands.
    pub(crate) const fn phase(&self) -> Phase {
        self.episode.phase
    }

    /// Whether duplicate acknowledgements have come since the last new one.
    pub(crate) const fn has_duplicates(&self) -> bool {
        self.episode.dup_acks > 0
    }

    /// Whether it may have something to send.
    pub(crate) fn is_busy(&self) -> bool {
        self.phase() != Phase::Open || self.forced() || self.is_probe_due()
    }

    /// `FlightSize` of RFC 5681 (2), without what limited transmit sent.
    pub(crate) const fn flight_size(&self, una: u64, nxt: u64) -> u64 {
        self.episode.outstanding(una, nxt)
    }

    /// Whether an acknowledgement that advances SND.UNA restarts the retransmission timer.
    pub(crate) fn restarts_timer(&self) -> bool {
        self.scheme.restarts_timer(&self.episode)
    }

    /// Whether the order in which segments arrive matters.
    pub(crate) fn asks_for_order(&self) -> bool {
        self.scheme.asks_for_order()
    }

    /// Whether segments' times decide what is lost.
    pub(crate) fn is_timed(&self) -> bool {
        self.scheme.probe().is_some()
    }

    /// How long to wait for an acknowledgement before a tail loss probe, if one may be sent (RFC 8985, 7.2).
    pub(crate) fn probe_timeout(&self, board: &Scoreboard, srtt: Option<Duration>) -> Option<Duration> {
        let probe = self.scheme.probe()?;
        let may =
            self.phase() == Phase::Open && !board.is_empty() && board.sacked() == 0 && !probe.is_pending();
        may.then(|| TailLossProbe::timeout(srtt, board.len()))
    }

    /// The probe's time has come; `measured` says whether the connection has a round-trip time.
    pub(crate) fn expire_probe(&mut self, measured: bool) {
        if let Some(probe) = self.scheme.probe_mut() {
            probe.expire(measured);
        }
    }

    /// The round-trip time was measured.
    pub(crate) fn on_rtt_sample(&mut self) {
        if let Some(probe) = self.scheme.probe_mut() {
            probe.on_rtt_sample();
        }
    }

    /// Whether a probe is to be sent now.
    pub(crate) fn is_probe_due(&self) -> bool {
        self.scheme.probe().is_some_and(TailLossProbe::is_due)
    }

    /// Whether a probe's answer is awaited.
    pub(crate) fn is_probe_pending(&self) -> bool {
        self.scheme.probe().is_some_and(TailLossProbe::is_pending)
    }

    /// A probe went out when `flight_size` bytes were outstanding; SND.NXT is `nxt` now; `again` says when the segment
    /// that it repeats had been sent, if it is not new.
    pub(crate) fn on_probe_sent(&mut self, nxt: u64, flight_size: u64, again: Option<Instant>) {
        if let Some(probe) = self.scheme.probe_mut() {
            probe.on_sent(nxt, flight_size, again);
        }
    }
}
