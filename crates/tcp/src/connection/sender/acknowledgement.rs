//! An acknowledgement arrives: what it delivers, what it means for recovery and congestion control, and for the
//! timer (RFC 9293, 3.10.7.4, fifth; RFC 5681; RFC 6298; RFC 5961, 5).

use base::wire::tcp::{self, SackBlock};
use base::{Duration, Instant};

use super::Sender;
use crate::config::{InUse, RtoEstimator};
use crate::congestion::AckSample;
use crate::recovery::Phase;
use crate::recovery::scoreboard::{News, Record};
use crate::sequence::SeqSpace;

impl Sender {
    /// The offset that a segment acknowledges, unless it was never sent or acknowledged too long ago (RFC 5961, 5.2).
    pub(crate) fn acceptable(&self, segment: &tcp::Repr) -> Option<u64> {
        let ack = self.space.offset(segment.ack, self.una);
        (ack <= self.nxt && ack + u64::from(self.max_window) >= self.una).then_some(ack)
    }

    /// An acceptable acknowledgement, not below SND.UNA.
    pub(crate) fn on_ack(&mut self, now: Instant, segment: &tcp::Repr, input: &Input) -> Output {
        let outstanding = !self.board.is_empty();
        let (ack, blocks) = (input.ack, segment.options.sack.as_slice());
        let mut news = self.expect_news(now, segment);
        if self.negotiated.sack {
            news.dsack = reported_duplicate(blocks, self.space, ack);
        }
        self.statistics.dsacks_received += u32::from(news.dsack.is_some());
        if ack > self.una {
            self.advance(now, ack, &mut news);
        }
        let window = u32::from(segment.window) << self.window_shift;
        let window_changed = self.update_window(input.start, ack, window);
        if window_changed && input.opened {
            self.on_window_changed();
        }
        if outstanding && self.negotiated.sack && !blocks.is_empty() {
            let bounds = (self.una, self.nxt);
            self.board.take_blocks(blocks, self.space, bounds, &mut news);
        }
        let same = input.bare && news.acked == 0 && !window_changed;
        news.duplicate = outstanding && same && news.dsack.is_none();
        news.bare = same && blocks.is_empty();
        // What was acknowledged selectively before brings no bytes, and may end a recovery all the same.
        let is_news = news.bytes > 0 || news.acked > 0;
        if news.duplicate || is_news || news.dsack.is_some() || self.recovery.is_probe_pending() {
            self.statistics.duplicate_acks += u32::from(news.duplicate);
            self.learn(now, segment, &news);
        }
        if self.timers.persisting {
            self.on_probe_answered(now, input.awaited);
        }
        let finished = news.acked > 0 && self.after_advance(now);
        if news.acked == 0 && self.recovery.is_timed() && self.head_is_still_young(&news) {
            self.rearm_retransmit(now);
        }
        let report = segment.options.coding.report.as_ref();
        self.learn_for_code(now, report, &news);
        self.schedule_recovery_timer(now, news.acked > 0);
        Output { advanced: news.acked > 0, finished }
    }

    /// SND.UNA moves.
    fn advance(&mut self, now: Instant, ack: u64, news: &mut News) {
        self.board.acknowledge(ack, news);
        // A FIN is acknowledged like a byte and is not in the buffer.
        let data = (news.acked as usize).min(self.buffer.len());
        if let Some(code) = &mut self.code {
            code.on_acknowledged(self.una, self.una + data as u64, &self.buffer);
        }
        self.buffer.acknowledge(data);
        self.una = ack;
        self.timers.retries = 0;
        self.statistics.bytes_acked += data as u64;
        self.timers.note_progress(now);
    }

    /// Before an acknowledgement is taken in: what to compare with, where a scheme asks.
    fn expect_news(&self, now: Instant, segment: &tcp::Repr) -> News {
        let mut news = self.no_news();
        news.echo = segment.options.timestamps.filter(|_| self.negotiated.timestamps).map(|it| it.echo);
        if !self.recovery.asks_for_order() {
            return news;
        }
        news.in_detail = true;
        news.prior_fack = self.board.highest_sacked().unwrap_or(self.una);
        if self.recovery.is_timed() {
            // RFC 8985 (6.2, step 2): not sooner than any round trip, and not before what the echo says.
            news.trusted_until = now.saturating_sub(self.rtt.min());
            news.echoed_until = self.timestamp_rtt(now, segment).map_or(Instant::MAX, |age| {
                let tick = now.as_nanos() / 1_000_000 * 1_000_000;
                Instant::from_nanos((tick + 999_999).saturating_sub(age.as_nanos()))
            });
        }
        news
    }

    /// Tells the estimator, recovery and the controller.
    fn learn(&mut self, now: Instant, segment: &tcp::Repr, news: &News) {
        let rtt = self.sample_rtt(now, segment, news);
        self.note_round(rtt);
        let arrival = self.arrival(now, news);
        let spurious = self.recovery.find_spurious(&mut self.board, &arrival);
        if spurious {
            self.on_spurious(now, news.prior_phase, news.acked, segment.flags);
        }
        let change = self.recovery.on_ack(&mut self.board, &arrival);
        self.respond(change, &arrival);
        if !news.duplicate && news.bytes == 0 {
            return;
        }
        let flight_size = self.nxt - self.una + news.acked;
        let marked = self.heed_echo(now, segment.flags, flight_size);
        // Without selective acknowledgements Linux holds recovery until something above its end is acknowledged
        // (`tcp_try_undo_recovery`).
        let counts_exit = self.config.recovery.exit_growth && self.negotiated.sack;
        let restored = spurious && self.restores_window() && !counts_exit;
        let repaired = news.prior_phase == Phase::FastRecovery && !counts_exit;
        let repairing = !self.ignores_losses() && (repaired || self.recovery.phase() == Phase::FastRecovery);
        let in_flight = self.pipe();
        let (limited_by_window, most_outstanding) = self.window_use(news.prior_in_flight);
        let delivery = if news.bytes > 0 { self.meter.on_delivered(now, news) } else { None };
        self.controller.on_ack(&AckSample {
            now,
            bytes: news.acked,
            delivered_bytes: news.bytes,
            rtt,
            srtt: self.rtt.srtt(),
            rtt_min: self.rtt.min(),
            in_flight,
            prior_in_flight: news.prior_in_flight,
            limited_by_window,
            most_outstanding,
            delivery,
            round: self.meter.round(),
            recovering: marked || repairing || restored,
            duplicate: news.duplicate,
        });
        self.note_pipe_ack(now, news.bytes);
    }

    /// Whether the window kept data back, and the most that was outstanding where that counts; `in_flight` is what is in the
    /// network, before an acknowledgement that has come.
    pub(super) fn window_use(&self, in_flight: u64) -> (bool, u64) {
        match self.config.window.in_use {
            InUse::Round => (self.window_use.limited, self.window_use.most()),
            InUse::Now => (in_flight + u64::from(self.mss) > self.controller.window(), 0),
        }
    }

    /// Feeds the estimator; the round-trip time of the latest segment delivered, for controllers.
    fn sample_rtt(&mut self, now: Instant, segment: &tcp::Repr, news: &News) -> Option<Duration> {
        let samples_log2 = self.samples_log2();
        // Karn: a segment that was sent twice says nothing, nor do those that waited behind it.
        let oldest = news.oldest_sent_at.filter(|_| !news.any_resent).map(|sent| now.saturating_since(sent));
        let echoed = || self.timestamp_rtt(now, segment).filter(|_| self.has_fresh_echo(news));
        if let Some(sample) = oldest.or_else(echoed) {
            self.take_rtt_sample(sample, samples_log2);
            self.recovery.on_rtt_sample();
            // RFC 6298 (5, last): a new sample ends the back-off.
            self.timers.backoff = 0;
        }
        let latest =
            news.latest_sent_at.filter(|_| !news.any_resent).map(|sent| now.saturating_since(sent))?;
        self.rtt.on_minimum_candidate(latest);
        Some(latest)
    }

    /// Whether an echo is of a segment that brought `news`. The answer to a duplicate has an echo as old as what came before it, since
    /// a segment outside the window is refused before its timestamp is noted (RFC 7323, 5.3, R2 before R3): where acknowledgements
    /// are lost, the time-out would grow with each of them. Linux takes that sample too.
    fn has_fresh_echo(&self, news: &News) -> bool {
        let takes_old = self.config.rto.estimator == RtoEstimator::Linux;
        news.acked > 0 && (takes_old || news.dsack.is_none())
    }

    /// The round-trip time that an echoed timestamp shows (RFC 7323, 4.1).
    pub(crate) fn timestamp_rtt(&self, now: Instant, segment: &tcp::Repr) -> Option<Duration> {
        let timestamps = segment.options.timestamps.filter(|_| self.negotiated.timestamps)?;
        let ticks = self.timestamp(now).wrapping_sub(timestamps.echo);
        // An echo from the future or of the distant past is the peer's mistake.
        (ticks < MAX_ECHO_AGE_MS).then(|| Duration::from_millis(u64::from(ticks)))
    }

    /// The timer after SND.UNA moved; whether all is acknowledged, FIN included.
    fn after_advance(&mut self, now: Instant) -> bool {
        self.check_search(now);
        let empty = self.board.is_empty();
        if empty {
            self.timers.stop_retransmit(); // RFC 6298 (5.2).
        } else if self.recovery.restarts_timer() {
            self.rearm_retransmit(now); // RFC 6298 (5.3).
        }
        empty && self.fin_sent
    }

    /// Whether `news` selectively acknowledged what left before the first segment did, so that no answer to that can
    /// have come: then Linux starts the timer anew, which a growing queue would else outlast.
    fn head_is_still_young(&self, news: &News) -> bool {
        let left_before =
            |head: &Record| news.oldest_sent_at.is_some_and(|sent| !news.any_resent && sent < head.sent_at);
        news.sacked > 0 && self.board.first().is_some_and(left_before)
    }

    /// The peer's window is another one. Where it lets out what waited for it before it had to be probed, the timer that was to
    /// ask is not needed: for data it would be too early.
    fn on_window_changed(&mut self) {
        if self.board.is_empty() && !self.timers.persisting && self.next_new().is_some() {
            self.timers.stop_retransmit();
        }
    }

    /// The peer answered while its window was being probed.
    fn on_probe_answered(&mut self, now: Instant, awaited: bool) {
        // RFC 9293 (3.8.6.1): as long as it answers, the connection stays, if there is an application to wait.
        if awaited {
            self.timers.retries = 0;
            self.timers.note_progress(now);
        }
        if self.window == 0 {
            return;
        }
        self.timers.persisting = false;
        self.timers.probe_due = false;
        self.timers.backoff = 0;
        self.timers.stop_retransmit();
        if !self.board.is_empty() {
            // What the closed window dropped is sent again; that is not congestion.
            self.reduction = None;
            self.send_all_again(now);
        }
    }
}

/// What the connection knows of a segment with an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    /// Offset of the peer's at which it starts.
    pub(crate) start: u64,
    /// The offset that it acknowledges.
    pub(crate) ack: u64,
    /// It carries nothing else.
    pub(crate) bare: bool,
    /// The peer is known to have received the answer to its SYN.
    pub(crate) opened: bool,
    /// There is an application that waits for the peer.
    pub(crate) awaited: bool,
}

/// What an acknowledgement means to the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// SND.UNA moved.
    pub(crate) advanced: bool,
    /// All is acknowledged, FIN included.
    pub(crate) finished: bool,
}

/// The offset after data that came twice, if the first block reports such (RFC 2883, 4): it lies below the cumulative
/// acknowledgement or within the second block.
fn reported_duplicate(blocks: &[SackBlock], space: SeqSpace, ack: u64) -> Option<u64> {
    let span = |block: &SackBlock| (space.offset(block.start, ack), space.offset(block.end, ack));
    let (start, end) = blocks.first().map(span).filter(|(start, end)| start < end)?;
    let within = blocks.get(1).map(span).is_some_and(|outer| outer.0 <= start && end <= outer.1);
    (end <= ack || within).then_some(end)
}

/// An echo older than this is no round trip: ten minutes.
const MAX_ECHO_AGE_MS: u32 = 600_000;
