//! An acknowledgement arrives: what it delivers, what it means for recovery and congestion control, and for the
//! timer (RFC 9293, 3.10.7.4, fifth; RFC 5681; RFC 6298; RFC 5961, 5).

use base::wire::tcp::{self, SackBlock};
use base::{Duration, Instant};

use super::proxied::KEEPS_UNREAD;
use super::recovering::Before;
use super::{Connection, Discard, Events};
use crate::config::InUse;
use crate::congestion::AckSample;
use crate::recovery::scoreboard::{Delivered, Record};
use crate::recovery::{Arrival, Phase};
use crate::sequence::SeqSpace;

impl Connection {
    /// The acknowledgement of an acceptable segment that starts at `start`; `bare` if it carries nothing else.
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &tcp::Repr,
        start: u64,
        bare: bool,
    ) -> Result<(), Discard> {
        let sender = &self.sender;
        let ack = sender.space.offset(segment.ack, sender.una);
        // RFC 5961 (5.2).
        if ack > sender.nxt || ack + u64::from(sender.max_window) < sender.una {
            self.challenge(now);
            return Err(Discard::BadAck(segment.ack));
        }
        if ack < sender.una {
            return Ok(());
        }
        // Only now: a forged segment seldom gets this far, and a forged TS.Recent makes genuine ones fail PAWS.
        if let Some(timestamps) = segment.options.timestamps.filter(|_| self.negotiated.timestamps) {
            self.receiver.note_timestamp(now, timestamps.value, start);
        }
        let before = self.before_recovery();
        let prior_in_flight = self.pipe();
        let sender = &mut self.sender;
        let outstanding = !sender.board.is_empty();
        let blocks = segment.options.sack.as_slice();
        let dsack = if self.negotiated.sack { reported_duplicate(blocks, sender.space, ack) } else { None };
        self.statistics.dsacks_received += u32::from(dsack.is_some());
        let mut news = self.expect_news(now, segment);
        if ack > self.sender.una {
            self.advance(now, ack, &mut news);
        }
        let sender = &mut self.sender;
        let window = u32::from(segment.window) << sender.window_shift;
        let window_changed = sender.update_window(start, ack, window);
        if window_changed {
            self.on_window_changed();
        }
        let sender = &mut self.sender;
        if outstanding && self.negotiated.sack && !blocks.is_empty() {
            let bounds = (sender.una, sender.nxt);
            sender.board.take_blocks(blocks, sender.space, bounds, &mut news);
        }
        let same = bare && news.acked == 0 && !window_changed;
        let seen = Seen {
            duplicate: outstanding && same && dsack.is_none(),
            bare: same && blocks.is_empty(),
            dsack,
            prior_in_flight,
        };
        // What was acknowledged selectively before brings no bytes, and may end a recovery all the same.
        let is_news = news.bytes > 0 || news.acked > 0;
        if seen.duplicate || is_news || dsack.is_some() || sender.recovery.is_probe_pending() {
            self.statistics.duplicate_acks += u32::from(seen.duplicate);
            self.learn(now, segment, &news, &seen, &before);
        }
        if self.sender.persisting {
            self.on_probe_answered(now);
        }
        if news.acked > 0 {
            self.after_advance(now);
        } else if self.sender.recovery.is_timed() && self.head_is_still_young(&news) {
            let wait = self.sender.rto();
            self.restart_retransmit(now, wait);
        }
        self.learn_for_code(now, &segment.options.coding, &news, seen.duplicate || news.sacked > 0);
        self.schedule_recovery_timer(now, news.acked > 0);
        Ok(())
    }

    /// SND.UNA moves.
    fn advance(&mut self, now: Instant, ack: u64, news: &mut Delivered) {
        let sender = &mut self.sender;
        sender.board.acknowledge(ack, news);
        // A FIN is acknowledged like a byte and is not in the buffer.
        let data = (news.acked as usize).min(sender.buffer.len());
        if let Some(fec) = &mut self.fec {
            fec.outgoing.on_acknowledged(sender.una, sender.una + data as u64, &sender.buffer);
        }
        sender.buffer.acknowledge(data);
        if self.proxied.is(KEEPS_UNREAD) && sender.buffer.len() == 0 {
            sender.buffer.release();
        }
        sender.una = ack;
        sender.retries = 0;
        self.statistics.bytes_acked += data as u64;
        self.timers.note_progress(now);
        self.note_acknowledged();
    }

    /// Before an acknowledgement is taken in: what to compare with, where a scheme asks.
    fn expect_news(&self, now: Instant, segment: &tcp::Repr) -> Delivered {
        let sender = &self.sender;
        let mut news = Delivered::default();
        if !sender.recovery.asks_for_order() {
            return news;
        }
        news.in_detail = true;
        news.prior_fack = sender.board.highest_sacked().unwrap_or(sender.una);
        if sender.recovery.is_timed() {
            // RFC 8985 (6.2, step 2): not sooner than any round trip, and not before what the echo says.
            news.trusted_until = now.saturating_sub(sender.rtt.min());
            news.echoed_until = self.timestamp_rtt(now, segment).map_or(Instant::MAX, |age| {
                let tick = now.as_nanos() / 1_000_000 * 1_000_000;
                Instant::from_nanos((tick + 999_999).saturating_sub(age.as_nanos()))
            });
        }
        news
    }

    /// Tells the estimator, recovery and the controller.
    fn learn(&mut self, now: Instant, segment: &tcp::Repr, news: &Delivered, seen: &Seen, before: &Before) {
        let duplicate = seen.duplicate;
        let rtt = self.sample_rtt(now, segment, news);
        self.note_round(rtt);
        let sender = &mut self.sender;
        let arrival = Arrival {
            duplicate,
            dsack: seen.dsack,
            bare_duplicate: seen.bare,
            echo: segment.options.timestamps.filter(|_| self.negotiated.timestamps).map(|it| it.echo),
            new_data: sender.recovery.doubts() && sender.next_new().is_some(),
            ..sender.arrival(now, news)
        };
        let spurious = sender.recovery.find_spurious(&mut sender.board, &arrival);
        if spurious {
            self.on_spurious(now, before.phase, news.acked, segment.flags);
        }
        let sender = &mut self.sender;
        let change = sender.recovery.on_ack(&mut sender.board, &arrival);
        self.respond(now, change, before, news, duplicate);
        if !duplicate && news.bytes == 0 {
            return;
        }
        let flight_size = self.flight_size() + news.acked;
        let marked = self.heed_echo(now, segment, flight_size);
        // Without selective acknowledgements Linux holds recovery until something above its end is acknowledged
        // (`tcp_try_undo_recovery`).
        let counts_exit = self.config.recovery.exit_growth && self.negotiated.sack;
        let restored = spurious && self.restores_window() && !counts_exit;
        let repaired = before.phase == Phase::FastRecovery && !counts_exit;
        let repairing =
            !self.ignores_losses() && (repaired || self.sender.recovery.phase() == Phase::FastRecovery);
        let in_flight = self.pipe();
        let (limited_by_window, most_outstanding) = self.window_use(seen.prior_in_flight);
        let sender = &mut self.sender;
        let delivery = if news.bytes > 0 { sender.meter.on_delivered(now, news) } else { None };
        sender.controller.on_ack(&AckSample {
            now,
            bytes: news.acked,
            delivered_bytes: news.bytes,
            rtt,
            srtt: sender.rtt.srtt(),
            rtt_min: sender.rtt.min(),
            in_flight,
            prior_in_flight: seen.prior_in_flight,
            limited_by_window,
            most_outstanding,
            delivery,
            round: sender.meter.round(),
            recovering: marked || repairing || restored,
            duplicate,
        });
        self.note_pipe_ack(now, news.bytes);
    }

    /// Whether the window kept data back, and the most that was outstanding where that counts; `in_flight` is what is in the
    /// network, before an acknowledgement that has come.
    pub(super) fn window_use(&self, in_flight: u64) -> (bool, u64) {
        let sender = &self.sender;
        match self.config.window.in_use {
            InUse::Round => (sender.window_use.limited, sender.window_use.most()),
            InUse::Now => (in_flight + u64::from(sender.mss) > sender.controller.window(), 0),
        }
    }

    /// Feeds the estimator; the round-trip time of the latest segment delivered, for controllers.
    fn sample_rtt(&mut self, now: Instant, segment: &tcp::Repr, news: &Delivered) -> Option<Duration> {
        let samples_log2 = self.sender.samples_log2();
        // Karn: a segment that was sent twice says nothing, nor do those that waited behind it.
        let oldest = news.oldest_sent_at.filter(|_| !news.any_resent).map(|sent| now.saturating_since(sent));
        let echoed = || self.timestamp_rtt(now, segment).filter(|_| news.acked > 0);
        if let Some(sample) = oldest.or_else(echoed) {
            self.take_rtt_sample(sample, samples_log2);
            self.sender.recovery.on_rtt_sample();
            // RFC 6298 (5, last): a new sample ends the back-off.
            self.sender.backoff = 0;
        }
        let latest =
            news.latest_sent_at.filter(|_| !news.any_resent).map(|sent| now.saturating_since(sent))?;
        self.sender.rtt.on_minimum_candidate(latest);
        Some(latest)
    }

    /// The round-trip time that an echoed timestamp shows (RFC 7323, 4.1).
    pub(super) fn timestamp_rtt(&self, now: Instant, segment: &tcp::Repr) -> Option<Duration> {
        let timestamps = segment.options.timestamps.filter(|_| self.negotiated.timestamps)?;
        let ticks = self.timestamp(now).wrapping_sub(timestamps.echo);
        // An echo from the future or of the distant past is the peer's mistake.
        (ticks < MAX_ECHO_AGE_MS).then(|| Duration::from_millis(u64::from(ticks)))
    }

    /// The timer, the FIN and the application, after SND.UNA moved.
    fn after_advance(&mut self, now: Instant) {
        self.check_search(now);
        let sender = &mut self.sender;
        if sender.board.is_empty() {
            self.timers.stop_retransmit(); // RFC 6298 (5.2).
            if sender.fin_sent {
                self.on_fin_acknowledged(now);
            }
        } else if sender.recovery.restarts_timer() {
            let wait = sender.rto();
            self.restart_retransmit(now, wait); // RFC 6298 (5.3).
        }
        if self.write_blocked {
            self.check_writable_again();
        }
    }

    /// Whether `news` selectively acknowledged what left before the first segment did, so that no answer to that can
    /// have come: then Linux starts the timer anew, which a growing queue would else outlast.
    fn head_is_still_young(&self, news: &Delivered) -> bool {
        let left_before =
            |head: &Record| news.oldest_sent_at.is_some_and(|sent| !news.any_resent && sent < head.sent_at);
        news.sacked > 0 && self.sender.board.first().is_some_and(left_before)
    }

    /// Bytes that the buffer and the limit of what waits to be sent have room for.
    pub(super) fn room(&self) -> usize {
        let unsent = self.sender.unsent();
        self.sender.buffer.room().min(self.unsent_limit().saturating_sub(unsent))
    }

    fn unsent_limit(&self) -> usize {
        self.config.window.unsent_limit.map_or(usize::MAX, |limit| limit.0 as usize)
    }

    /// The application hears of room once there is enough: an eighth of the buffer, half of what may wait, or any if nothing
    /// is left to send.
    pub(super) fn check_writable_again(&mut self) {
        let enough = (self.sender.buffer.limit() / 8).min(self.unsent_limit() / 2).max(1);
        let starved = self.sender.unsent() < self.sender.mss as usize;
        let room = self.room();
        if self.accepts_data() && (room >= enough || (starved && room > 0)) {
            self.write_blocked = false;
            self.events.raise(Events::WRITABLE);
        }
    }

    /// The peer's window is another one. Where it lets out what waited for it before it had to be probed, the timer that was to
    /// ask is not needed: for data it would be too early.
    fn on_window_changed(&mut self) {
        let sender = &self.sender;
        let waited = sender.board.is_empty() && !sender.persisting && !self.is_half_open();
        if waited && sender.next_new().is_some() {
            self.timers.stop_retransmit();
        }
    }

    /// The peer answered while its window was being probed.
    fn on_probe_answered(&mut self, now: Instant) {
        let sender = &mut self.sender;
        // RFC 9293 (3.8.6.1): as long as it answers, the connection stays, if there is an application to wait.
        if !self.orphaned {
            sender.retries = 0;
            self.timers.note_progress(now);
        }
        if sender.window == 0 {
            return;
        }
        sender.persisting = false;
        sender.probe_due = false;
        sender.backoff = 0;
        self.timers.stop_retransmit();
        if !sender.board.is_empty() {
            // What the closed window dropped is sent again; that is not congestion.
            sender.reduction = None;
            let arrival = sender.arrival(now, &Delivered::default());
            sender.recovery.on_window_reopened(&mut sender.board, &arrival);
        }
    }
}

/// What an acknowledgement is, apart from what it delivers.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// A duplicate: RFC 5681 (2).
    duplicate: bool,
    /// It says nothing new at all and has no blocks.
    bare: bool,
    /// If it reports data that came twice, the offset after them.
    dsack: Option<u64>,
    prior_in_flight: u64,
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
