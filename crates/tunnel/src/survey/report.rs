//! Reports: what has arrived, told to the end that sent it.
//!
//! While traffic flows, each end sends a stamp now and then. The other end answers with the time at which the stamp arrived and
//! with what it had received by then. So the sender knows, between any two of its stamps, how much left and arrived in how
//! much time, how the delay changed, and the round trip. Clocks need not agree: only differences count.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | stamp, ns of the sender's clock; 0 if no answer is wanted |
//! | 8 | the newest stamp of the other end that arrived |
//! | 8 | when it arrived, ns of this end's clock |
//! | 4 | time since then, us |
//! | 4 | of the datagrams received by then, those longer than every path carries, modulo 2^32 |
//! | 16 | datagrams and bytes received by then |
//!
//! All but the first are left out if no stamp has arrived. Numbers are little-endian, and longer reports are taken too.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

/// Datagrams, and their bytes without the carrier's headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Totals {
    /// Counts datagrams of `bytes` bytes altogether.
    pub const fn add(&mut self, datagrams: u64, bytes: u64) {
        self.datagrams += datagrams;
        self.bytes += bytes;
    }

    /// What was added since.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// What an answer to a stamp tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the stamp left.
    pub sent_at: Instant,
    /// From its leaving to the answer, without the time that the other end held it.
    pub round_trip: Duration,
    /// One-way delay of the stamp in ns, plus an unknown constant.
    pub delay: i64,
    /// What happened since the stamp that was answered before; `None` for the first.
    pub span: Option<Span>,
    /// Stamps since then that nobody answered.
    pub missed: usize,
    /// What has left since the stamp.
    pub after: Totals,
    /// Of what left and arrived in the span, datagrams longer than every path carries.
    pub long: Long,
}

/// Datagrams longer than every path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Long {
    /// Those that left.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
}

/// What left between two stamps, and what of it arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// What left.
    pub sent: Totals,
    /// In this time.
    pub sent_in: Duration,
    /// What arrived.
    pub received: Totals,
    /// In this time.
    pub received_in: Duration,
}

impl Span {
    /// Takes in what happened next.
    pub fn add(&mut self, next: &Self) {
        self.sent.add(next.sent.datagrams, next.sent.bytes);
        self.sent_in += next.sent_in;
        self.received.add(next.received.datagrams, next.received.bytes);
        self.received_in += next.received_in;
    }
}

/// A stamp on its way, or the last one that was answered.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    at: Instant,
    sent: Totals,
    long_sent: u64,
    /// When it arrived by the other end's clock, what had arrived then, and how much of it was long.
    arrival: Option<(u64, Totals, u32)>,
}

/// One end's reports.
#[derive(Debug)]
pub struct Reports {
    interval: Duration,
    sent: Totals,
    received: Totals,
    /// Datagrams longer than this are counted apart.
    long_above: u64,
    long: Long,
    /// The other end's newest stamp, when it came, what had come then, and how much of it was long.
    heard: Option<(u64, Instant, Totals, u64)>,
    /// Whether the other end waits for an answer.
    owed: bool,
    /// Whether traffic passed since the last report.
    passed: bool,
    reported_at: Option<Instant>,
    unanswered: VecDeque<Stamp>,
    answered: Option<Stamp>,
    /// The one that was answered before.
    former: Option<Stamp>,
}

/// Between two reports, at least: enough to see a queue grow within a satellite's round trip.
const INTERVAL: Duration = Duration::from_millis(100);
/// A report takes at most one part in this many of the line.
const SHARE: u64 = 100;
/// Bits of a report on the line, with the session's part and headers of IPv6.
const REPORT_BITS: u64 = (48 + 33 + 48) * 8;
/// Stamps under way: those of more than ten seconds.
const STAMPS_KEPT: usize = 64;

/// Between two reports on a line of this rate, at least.
#[must_use]
pub fn interval(rate: Option<Rate>) -> Duration {
    let air_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(REPORT_BITS));
    INTERVAL.max(air_time.saturating_mul(SHARE))
}

impl Reports {
    /// Reports over a line of this rate.
    #[must_use]
    pub fn new(rate: Option<Rate>) -> Self {
        Self {
            interval: interval(rate),
            sent: Totals::default(),
            received: Totals::default(),
            long_above: u64::MAX,
            long: Long::default(),
            heard: None,
            owed: false,
            passed: false,
            reported_at: None,
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
        self.interval = interval(rate);
    }

    /// A session begins, perhaps with a peer that counts from zero: a report is wanted at once.
    pub fn restart(&mut self) {
        let (interval, long_above) = (self.interval, self.long_above);
        *self = Self { interval, long_above, passed: true, ..Self::new(None) };
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

    /// A datagram has come.
    pub fn on_received(&mut self, bytes: u64) {
        self.received.add(1, bytes);
        self.long.received += u64::from(bytes > self.long_above);
    }

    /// What has left or come holds traffic, not only news about the path.
    pub const fn on_traffic(&mut self) {
        self.passed = true;
    }

    /// When [`Reports::poll_report`] has one.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.reported_at.map_or(Instant::ZERO, |at| at + self.interval);
        (self.passed || self.owed).then_some(due)
    }

    /// The body of a report, if one is due.
    pub fn poll_report(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.poll_timeout()? > now {
            return None;
        }
        // Zero means that there is no stamp.
        let stamp = if self.passed { now.as_nanos().max(1) } else { 0 };
        let mut words = vec![stamp];
        if let Some((heard, arrived, received, long)) = self.heard {
            let held = (now.saturating_since(arrived).as_nanos() / 1000).min(u64::from(u32::MAX));
            let held = held | (long << 32);
            words.extend([heard, arrived.as_nanos(), held, received.datagrams, received.bytes]);
        }
        if self.passed {
            if self.unanswered.len() == STAMPS_KEPT {
                self.unanswered.pop_front();
            }
            let at = Instant::from_nanos(stamp);
            let long_sent = self.long.sent;
            self.unanswered.push_back(Stamp { at, sent: self.sent, long_sent, arrival: None });
        }
        (self.passed, self.owed, self.reported_at) = (false, false, Some(now));
        Some(words.into_iter().flat_map(u64::to_le_bytes).collect())
    }

    /// Takes the other end's report; what it says about what we sent. A report that is none says nothing.
    pub fn handle_report(&mut self, now: Instant, body: &[u8]) -> Option<Sample> {
        let mut words = body.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let stamp = words.next()?;
        if stamp > self.heard.map_or(0, |(stamp, ..)| stamp) {
            self.heard = Some((stamp, now, self.received, self.long.received));
            self.owed = true;
        }
        let mut word = || words.next();
        let (echo, arrived, held) = (Instant::from_nanos(word()?), word()?, word()?);
        let received = Totals { datagrams: word()?, bytes: word()? };
        let (held, long) = (u64::from(held as u32) * 1000, (held >> 32) as u32);
        let at = self.unanswered.iter().position(|stamp| stamp.at == echo)?;
        let stamp = Stamp { arrival: Some((arrived, received, long)), ..self.unanswered[at] };
        self.unanswered.drain(..=at);
        let before = self.answered.replace(stamp);
        self.former = before;
        let after = self.sent.since(stamp.sent);
        let under_way = now.saturating_since(stamp.at);
        Some(Sample {
            sent_at: stamp.at,
            round_trip: under_way.saturating_sub(Duration::from_nanos(held)),
            delay: arrived.wrapping_sub(stamp.at.as_nanos()).cast_signed(),
            span: before.and_then(|before| stamp.since(&before)),
            missed: at,
            after,
            long: before.and_then(|before| stamp.long_since(&before)).unwrap_or_default(),
        })
    }
}

impl Reports {
    /// The newest sample cannot be believed: the next one tells what happened since the one before it.
    pub const fn disbelieve(&mut self) {
        self.answered = self.former;
    }
}

impl Stamp {
    fn long_since(&self, before: &Self) -> Option<Long> {
        let received = self.arrival?.2.wrapping_sub(before.arrival?.2);
        Some(Long { sent: self.long_sent.saturating_sub(before.long_sent), received: received.into() })
    }

    fn since(&self, before: &Self) -> Option<Span> {
        let ((arrived, received, _), (arrived_before, received_before, _)) = (self.arrival?, before.arrival?);
        Some(Span {
            sent: self.sent.since(before.sent),
            sent_in: self.at.saturating_since(before.at),
            received: received.since(received_before),
            received_in: Duration::from_nanos(arrived.checked_sub(arrived_before)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn two_ends_learn_round_trip_and_what_arrived() {
        let (mut near, mut far) = (Reports::new(None), Reports::new(None));
        assert_eq!((near.poll_timeout(), near.poll_report(ms(1000))), (None, None));
        let mut samples = Vec::new();
        for round in 1..4 {
            // Of ten datagrams nine arrive, 300 ms later; the answer takes 200 ms.
            let now = 1000 * round;
            near.on_sent(10, 10_000);
            near.on_traffic();
            (0..9).for_each(|_| far.on_received(1000));
            far.on_traffic();
            let report = near.poll_report(ms(now)).unwrap();
            far.handle_report(ms(now + 300), &report);
            let answer = far.poll_report(ms(now + 350)).unwrap();
            samples.extend(near.handle_report(ms(now + 550), &answer));
            assert_eq!(near.handle_report(ms(now + 560), &answer), None, "the same again is no news");
        }
        let [first, second, _] = samples[..] else { panic!("{} samples", samples.len()) };
        assert_eq!((first.span, first.delay, first.sent_at), (None, 300_000_000, ms(1000)));
        assert_eq!(second.round_trip, Duration::from_millis(500));
        let totals = |datagrams| Totals { datagrams, bytes: datagrams * 1000 };
        let second_span = second.span.unwrap();
        assert_eq!((second_span.sent, second_span.received), (totals(10), totals(9)));
        assert_eq!(second_span.received_in, Duration::from_secs(1));
    }

    #[test]
    fn what_is_not_believed_is_told_with_what_follows() {
        let (mut near, mut far) = (Reports::new(None), Reports::new(None));
        let mut samples = Vec::new();
        for (round, takes) in [(1, 300), (2, 10), (3, 300)] {
            let now = 1000 * round;
            near.on_sent(10, 10_000);
            near.on_traffic();
            (0..10).for_each(|_| far.on_received(1000));
            let report = near.poll_report(ms(now)).unwrap();
            far.handle_report(ms(now + takes), &report);
            let answer = far.poll_report(ms(now + 400)).unwrap();
            let sample = near.handle_report(ms(now + 700), &answer).unwrap();
            if takes == 10 {
                near.disbelieve();
            }
            samples.push(sample.span.map(|span| (span.sent.datagrams, span.received_in.as_millis())));
        }
        assert_eq!(samples, [None, Some((10, 710)), Some((20, 2000))]);
    }

    #[test]
    fn an_answer_is_not_answered() {
        let (mut near, mut far) = (Reports::new(None), Reports::new(None));
        near.restart();
        let report = near.poll_report(ms(1000)).unwrap();
        assert_eq!(report.len(), 8);
        assert_eq!(far.handle_report(ms(1100), &report), None);
        let answer = far.poll_report(ms(1200)).unwrap();
        assert_eq!(near.handle_report(ms(1300), &answer).unwrap().round_trip, Duration::from_millis(200));
        assert_eq!((near.poll_timeout(), far.poll_timeout()), (None, None));
    }

    #[test]
    fn reports_take_a_hundredth_of_a_slow_line() {
        let mut slow = Reports::new(Some(Rate::from_bps(9600)));
        slow.on_traffic();
        assert!(slow.poll_report(ms(1)).is_some(), "the first is not waited for");
        slow.on_traffic();
        assert!(slow.poll_timeout().unwrap() > ms(10_000));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            let mut reports = Reports::new(None);
            reports.on_traffic();
            reports.poll_report(ms(1000));
            reports.handle_report(ms(2000), &body);
            reports.poll_report(ms(3000));
        }
    }
}
