//! Reports: what has arrived, told to the end that sent it.
//!
//! While traffic flows, each end sends a stamp now and then. The other end answers with the time at which the stamp arrived and
//! with what it had received by then. So the sender knows, between any two of its stamps, how much left and arrived in how
//! much time, how the delay changed, and the round trip. Clocks need not agree: only differences count.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | stamp, ns of the sender's clock, with the highest bit if the answer may wait; 0 if no answer is wanted |
//! | 8 | the newest stamp of the other end that arrived |
//! | 8 | when it arrived, ns of this end's clock |
//! | 4 | time since then, us |
//! | 4 | of the datagrams received by then, those longer than every path carries, modulo 2^32 |
//! | 16 | datagrams and bytes received by then |
//! | 4 | datagrams that were lost in silences by then, modulo 2^32 |
//! | 4 | time of these silences, 100 us, modulo 2^32 |
//!
//! All but the first are left out if no stamp has arrived, and the last two if there was no silence. Numbers are little-endian, and longer reports are taken too.
//!
//! Between two reports leave further stamps alone. The last of them is answered while a report is late: so there is something to tell even where a queue
//! stretches time or drops nine of ten datagrams, which is when the sender should know soonest.
//!
//! An end that looks for no rate has less to ask. While all that it sends arrives, its reports leave so much later than traffic that they stand in for
//! keep-alives, and their answers wait for the other end's own reports.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use super::silence::{Silence, Silences};
use crate::due::Due;

mod sample;

pub use sample::{Long, Sample, Span, Totals};

/// A stamp on its way, or the last one that was answered.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    at: Instant,
    /// Whether it was in a report; else it left alone.
    is_reported: bool,
    sent: Totals,
    long_sent: u64,
    arrival: Option<Told>,
}

/// What the other end says of a stamp's arrival.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// When it arrived, by its clock.
    at: u64,
    /// What had arrived then.
    received: Totals,
    /// How much of that was long, modulo 2^32.
    long: u32,
    /// What had been silences.
    silence: (u32, u32),
}

/// A stamp of the other end's.
#[derive(Clone, Copy, Debug)]
struct Heard {
    stamp: u64,
    /// When it came, what had come then, and how much of that was long.
    at: Instant,
    received: Totals,
    long: u64,
    silence: Silence,
}

/// One end's reports.
#[derive(Debug)]
pub struct Reports {
    interval: Duration,
    /// Between two stamps, at least.
    stamp_interval: Duration,
    /// Whether nobody looks for a rate.
    takes_time: bool,
    /// Whether all that left had arrived when it was told last.
    is_calm: bool,
    /// Whether something that left at the other end has not come since the last report.
    misses: bool,
    sent: Totals,
    received: Totals,
    /// Datagrams longer than this are counted apart.
    long_above: u64,
    long: Long,
    silences: Silences,
    /// The other end's newest stamp that came in a report.
    heard: Option<Heard>,
    /// The last that came alone: a newer one that came before may be somebody's early copy.
    heard_alone: Option<Heard>,
    /// The one that was answered last.
    told: Option<Heard>,
    /// If the other end waits for an answer: from when on that may leave.
    owed_from: Option<Instant>,
    /// If traffic passed since the last report: from when on the next one, or a stamp, may leave.
    tells_from: Option<Instant>,
    /// Whether any passed since the last stamp.
    passed_since_stamp: bool,
    reported_at: Option<Instant>,
    /// When a stamp left last.
    stamped_at: Instant,
    /// Stamps so far, modulo 2^16.
    stamps: u16,
    unanswered: VecDeque<Stamp>,
    answered: Option<Stamp>,
    /// The one that was answered before.
    former: Option<Stamp>,
}

/// Between two reports, at least: enough to see a queue grow within a satellite's round trip.
const INTERVAL: Duration = Duration::from_millis(100);
/// From the first traffic to a report, where nobody waits for it.
const LINGER: Duration = Duration::from_millis(20);
/// From the first traffic to a report while nothing is lost, where nobody waits for it. Ours: less than an active
/// session has between two keep-alives, so that a report saves one.
const CALM_LINGER: Duration = Duration::from_millis(900);
/// For so long the answer to a stamp waits for a report to be in, where it may. Ours: while traffic passes there is one within half of that.
const ANSWER_LINGER: Duration = Duration::from_secs(2);
/// Of a stamp: its answer may wait. No clock has run for 292 years.
const MAY_WAIT: u64 = 1 << 63;
/// Stamps without an answer, from which on somebody may be losing them. Ours: an answer that waits is one stamp late.
const UNANSWERED: usize = 3;
/// A report takes at most one part in this many of the line.
const SHARE: u64 = 100;
/// Bits of a report on the line, with the session's part and headers of IPv6.
const REPORT_BITS: u64 = (48 + 33 + 48) * 8;
/// Between two stamps, at least. Ours: of ten, one in ten or more arrives two times in three, and of 20 seven times in eight.
const STAMP_INTERVAL: Duration = Duration::from_millis(10);
/// The space to the next stamp grows by this much of half an interval, modulo 2^16 of them: stamps in step with what else leaves would find a full queue each
/// time. Ours: the golden ratio spreads them best.
const SPREAD: u16 = 40_503;
/// A report that has not come so long after the one before is lost, or waits in a queue. Ours: where there are stamps that leave alone, reports leave at the
/// shortest interval, and a timer may be late.
const OVERDUE: Duration = Duration::from_millis(120);
/// Stamps that leave alone take at most one part in this many of the line.
const STAMPS_SHARE: u64 = 200;
/// Bits of a stamp that leaves alone on the line, likewise.
const STAMP_BITS: u64 = (STAMP_LEN as u64 + 33 + 48) * 8;
/// Bytes of a stamp.
const STAMP_LEN: usize = 8;
/// Stamps under way: those of more than ten seconds.
const STAMPS_KEPT: usize = 1024;

/// Between two reports on a line of this rate, at least.
#[must_use]
pub fn interval(rate: Option<Rate>) -> Duration {
    let air_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(REPORT_BITS));
    INTERVAL.max(air_time.saturating_mul(SHARE))
}

/// Between two stamps on a line of this rate, at least.
fn stamp_interval(rate: Option<Rate>) -> Duration {
    let air_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(STAMP_BITS));
    STAMP_INTERVAL.max(air_time.saturating_mul(STAMPS_SHARE))
}

impl Reports {
    /// Reports over a line of this rate.
    #[must_use]
    pub fn new(rate: Option<Rate>) -> Self {
        Self {
            interval: interval(rate),
            stamp_interval: stamp_interval(rate),
            takes_time: false,
            is_calm: false,
            misses: false,
            sent: Totals::default(),
            received: Totals::default(),
            long_above: u64::MAX,
            long: Long::default(),
            silences: Silences::default(),
            heard: None,
            heard_alone: None,
            told: None,
            owed_from: None,
            tells_from: None,
            passed_since_stamp: false,
            reported_at: None,
            stamped_at: Instant::ZERO,
            stamps: 0,
            unanswered: VecDeque::new(),
            answered: None,
            former: None,
        }
    }

    /// Counts datagrams of more than `len` bytes, without the carrier's headers, apart.
    #[must_use]
    pub const fn with_long_above(mut self, len: u64) -> Self {
        self.long_above = len;
        self
    }

    /// The line has another rate.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        (self.interval, self.stamp_interval, self.takes_time) = (interval(rate), stamp_interval(rate), false);
    }

    /// Nobody looks for a rate: no stamp leaves alone, and a report waits until it says something of a whole burst, or of several while all of them arrive.
    pub const fn take_time(&mut self) {
        (self.stamp_interval, self.takes_time) = (Duration::from_secs(3600), true);
    }

    /// A session begins, perhaps with a peer that counts from zero: a report is wanted at once.
    pub fn restart(&mut self) {
        let Self { interval, stamp_interval, takes_time, long_above, .. } = *self;
        *self = Self { interval, stamp_interval, takes_time, long_above, ..Self::new(None) };
        self.on_traffic(Instant::ZERO);
    }

    /// These have left, of equal length.
    pub fn on_sent(&mut self, datagrams: u64, bytes: u64) {
        self.sent.add(datagrams, bytes);
        if bytes > datagrams.saturating_mul(self.long_above) {
            self.long.sent += datagrams;
        }
    }

    /// What has left so far.
    #[must_use]
    pub const fn sent(&self) -> Totals {
        self.sent
    }

    /// What has come so far.
    #[must_use]
    pub const fn received(&self) -> Totals {
        self.received
    }

    /// Whether a stamp has not been answered.
    #[must_use]
    pub fn waits(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// A datagram has come; `skipped` that left just before it have not.
    pub fn on_received(&mut self, now: Instant, bytes: u64, skipped: u64) {
        self.silences.on_arrival(now, skipped);
        if skipped > 0 {
            // That is news.
            self.misses = true;
            self.owed_from = self.owed_from.map(|_| Instant::ZERO);
        }
        self.received.add(1, bytes);
        self.long.received += u64::from(bytes > self.long_above);
    }

    /// What has left or come holds traffic, not only news about the path.
    pub fn on_traffic(&mut self, now: Instant) {
        let linger = self.linger();
        self.tells_from.get_or_insert(now + linger);
        self.passed_since_stamp = true;
    }

    /// From the first traffic to a report or a stamp, at least.
    fn linger(&self) -> Duration {
        match self.takes_time {
            true if self.has_time() => CALM_LINGER,
            true => LINGER,
            false => Duration::ZERO,
        }
    }

    /// Whether nothing new is expected of a report: nobody looks for a rate, and all arrives.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.takes_time && self.is_calm && self.unanswered.len() < UNANSWERED
    }

    /// When [`Reports::poll_report`] has one, or a stamp.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let report = self.report_due()?;
        let spread = self.stamp_interval.as_nanos() / 2 * u64::from(self.stamps.wrapping_mul(SPREAD));
        let stamp = self.stamped_at.saturating_add(self.stamp_interval);
        let stamp = stamp.saturating_add(Duration::from_nanos(spread >> 16));
        // One behind the last of a burst is enough.
        let stamp = self.tells_from.filter(|_| self.passed_since_stamp).map(|from| stamp.max(from));
        Some(stamp.map_or(report, |stamp| report.min(stamp)))
    }

    /// When [`Reports::poll_report`] has a report or a stamp, and how late it may be.
    pub(crate) fn due(&self) -> Option<Due> {
        // Whoever looks for a rate is answered in time.
        let has_time = self.has_time() && self.owed_from != Some(Instant::ZERO);
        self.poll_timeout().map(if has_time { Due::about } else { Due::at })
    }

    fn report_due(&self) -> Option<Instant> {
        let from = [self.owed_from, self.tells_from].into_iter().flatten().min()?;
        Some(self.reported_at.map_or(Instant::ZERO, |at| from.max(at + self.interval)))
    }

    /// The body of a report if one is due, or of a stamp that leaves alone.
    pub fn poll_report(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.poll_timeout()? > now {
            return None;
        }
        let is_reported = self.report_due()? <= now;
        // Zero means that there is no stamp.
        let stamp = if self.tells_from.is_some() { now.as_nanos().max(1) } else { 0 };
        if self.tells_from.is_some() {
            self.note_stamp(Instant::from_nanos(stamp), is_reported);
        }
        if !is_reported {
            return Some(stamp.to_le_bytes().to_vec());
        }
        let mut words = vec![if stamp > 0 && self.has_time() { stamp | MAY_WAIT } else { stamp }];
        self.choose_answer(now);
        if let Some(Heard { stamp, at, received, long, silence }) = self.told {
            let held = (now.saturating_since(at).as_nanos() / 1000).min(u64::from(u32::MAX));
            let held = held | (long << 32);
            let (datagrams, time) = silence.words();
            let silence = u64::from(datagrams) | (u64::from(time) << 32);
            words.extend([stamp, at.as_nanos(), held, received.datagrams, received.bytes]);
            words.extend((silence > 0).then_some(silence));
        }
        (self.tells_from, self.owed_from, self.reported_at) = (None, None, Some(now));
        self.misses = false;
        Some(words.into_iter().flat_map(u64::to_le_bytes).collect())
    }

    /// Chooses the stamp to answer: a report's, or one that left alone when a report should have left or come since.
    fn choose_answer(&mut self, now: Instant) {
        let is_news = |heard: &Heard| self.told.is_none_or(|told| heard.stamp > told.stamp);
        let is_late = self.heard.is_none_or(|heard| now >= heard.at + OVERDUE);
        let alone = self.heard_alone.filter(|_| is_late);
        self.told = self.heard.filter(is_news).or(alone.filter(is_news)).or(self.told);
    }

    /// A stamp leaves.
    fn note_stamp(&mut self, at: Instant, is_reported: bool) {
        if self.unanswered.len() == STAMPS_KEPT {
            self.unanswered.pop_front();
        }
        let Self { sent, long, .. } = *self;
        self.unanswered.push_back(Stamp { at, is_reported, sent, long_sent: long.sent, arrival: None });
        self.stamps = self.stamps.wrapping_add(1);
        self.stamped_at = at;
        self.passed_since_stamp = false;
    }

    /// Takes the other end's report; what it says about what we sent. A report that is none says nothing.
    pub fn handle_report(&mut self, now: Instant, body: &[u8]) -> Option<Sample> {
        let mut words = body.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let stamp = words.next()?;
        let (stamp, may_wait) = (stamp & !MAY_WAIT, stamp & MAY_WAIT != 0);
        let (received, long) = (self.received, self.long.received);
        let silence = self.silences.total();
        let heard = Heard { stamp, at: now, received, long, silence };
        if body.len() == STAMP_LEN {
            self.heard_alone = Some(heard);
        } else if stamp > self.heard.map_or(0, |heard| heard.stamp) {
            self.heard = Some(heard);
        }
        if stamp > self.told.map_or(0, |told| told.stamp) {
            let from = if may_wait && !self.misses { now + ANSWER_LINGER } else { Instant::ZERO };
            self.owed_from = Some(self.owed_from.map_or(from, |owed| owed.min(from)));
        }
        let mut word = || words.next();
        let (echo, arrived, held) = (Instant::from_nanos(word()? & !MAY_WAIT), word()?, word()?);
        let received = Totals { datagrams: word()?, bytes: word()? };
        let silence = word().unwrap_or(0);
        let silence = (silence as u32, (silence >> 32) as u32);
        let (held, long) = (u64::from(held as u32) * 1000, (held >> 32) as u32);
        let at = self.unanswered.iter().position(|stamp| stamp.at == echo)?;
        let told = Told { at: arrived, received, long, silence };
        let stamp = Stamp { arrival: Some(told), ..self.unanswered[at] };
        let reports = self.unanswered.drain(..=at).filter(|stamp| stamp.is_reported).count();
        let before = self.answered.replace(stamp);
        self.former = before;
        let after = self.sent.since(stamp.sent);
        let under_way = now.saturating_since(stamp.at);
        let span = before.and_then(|before| stamp.since(&before));
        self.is_calm = span.is_some_and(|span| span.received.datagrams >= span.sent.datagrams);
        if self.takes_time && !self.is_calm {
            self.tells_from = self.tells_from.map(|from| from.min(now + LINGER));
        }
        Some(Sample {
            sent_at: stamp.at,
            round_trip: under_way.saturating_sub(Duration::from_nanos(held)),
            delay: arrived.wrapping_sub(stamp.at.as_nanos()).cast_signed(),
            span,
            missed: reports - usize::from(stamp.is_reported),
            after,
            long: before.and_then(|before| stamp.long_since(&before)).unwrap_or_default(),
            silence: before.and_then(|before| stamp.silence_since(&before)).unwrap_or_default(),
        })
    }

    /// The newest sample cannot be believed: the next one tells what happened since the one before it.
    pub const fn disbelieve(&mut self) {
        self.answered = self.former;
    }
}

impl Stamp {
    fn long_since(&self, before: &Self) -> Option<Long> {
        let received = self.arrival?.long.wrapping_sub(before.arrival?.long);
        Some(Long { sent: self.long_sent.saturating_sub(before.long_sent), received: received.into() })
    }

    fn silence_since(&self, before: &Self) -> Option<Silence> {
        Some(Silence::between(before.arrival?.silence, self.arrival?.silence))
    }

    fn since(&self, before: &Self) -> Option<Span> {
        let (arrival, arrival_before) = (self.arrival?, before.arrival?);
        Some(Span {
            sent: self.sent.since(before.sent),
            sent_in: self.at.saturating_since(before.at),
            received: arrival.received.since(arrival_before.received),
            received_in: Duration::from_nanos(arrival.at.checked_sub(arrival_before.at)?),
        })
    }
}

#[cfg(test)]
mod tests;
