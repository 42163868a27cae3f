//! Trains: what the bottleneck carries, told from how it spreads datagrams that left together.
//!
//! A *train* is a burst between two marks: as many datagrams as the line is believed to take in 25 ms or less. They leave faster than the
//! bottleneck carries them, so the time between the arrivals of its marks is what the bottleneck took for it. The line is paced as usual otherwise: what
//! a train takes ahead is not sent after it.
//!
//! The first trains, when a session begins, are of padding. Nothing is known of the path, so the first is of four small datagrams, which take a line of 64 kbit/s
//! for a seventh of a second. Each that follows takes as long as a train may at the rate that the one before it found, and is twice as long as that at least, until
//! one tells the rate: it is as long as a train can be, takes longer than jitter usually is, or is spread as much more than the one before it as it is longer.
//! Later trains are of frames that wait anyway, so they cost only their marks.
//!
//! | bytes | a mark's field |
//! |---|---|
//! | 4 | number of the train |
//! | 1 | 0 in front of it, 1 within it (padding), 2 behind it |
//!
//! The answer has the number, then 8 bytes each: the time between the two marks in ns, datagrams and bytes that arrived in between. Numbers are little-endian.
//! A train of which a mark is lost is not answered.

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use super::report::Totals;

/// The line's time that a train takes: a quarter of a round trip within these bounds, since queues are seldom shorter.
const LENGTH: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(25));
/// Datagrams of the first train of a session, and of any of padding at least: fewer leave too few spaces to measure. Ours.
const FIRST: u64 = 4;
/// Bytes of each of its datagrams, with all headers: with its marks it takes a line of 64 kbit/s for 160 ms. Ours.
const SMALL: usize = 250;
/// Datagrams of a train, at most: a batch or two of the carrier.
const MOST: u64 = 64;
/// Frames of a train, at least, or the spaces between them are too few to measure.
const LEAST: u64 = 4;
/// On a line of so much short trains leave too while it is in doubt whether it carries more, or others share it: they take it for 150 ms. Ours.
const SLOWEST_IN_DOUBT: Rate = Rate::from_bps(320_000);
/// Between two trains, and at least a round trip.
const INTERVAL: Duration = Duration::from_millis(500);
/// Where trains are lost, at first and at most. Ours.
const SPACED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));
/// Between two padded ones of a length, until one is answered: while no round trip is known, RFC 6298's first time-out (2.1).
const OPENING_INTERVAL: Duration = Duration::from_secs(1);
/// Then an eighth more than the round trip, and at least this. Ours.
const AGAIN: Duration = Duration::from_millis(250);
/// What takes so long is not spread by jitter alone. Ours.
const JITTER: Duration = Duration::from_millis(60);
/// Padded ones of a length, at most. Ours.
const ATTEMPTS: u32 = 8;
/// Trains that wait for their answers.
const KEPT: usize = 16;
/// Bytes of a mark.
const MARK_LEN: usize = 5;

/// A datagram's place in a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In front of it.
    Front,
    /// Padding within it.
    Within,
    /// Behind it.
    Behind,
}

/// What a train is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Datagrams that are to leave between its marks.
    pub datagrams: u64,
    /// Whether they are of padding; else of frames that wait.
    pub padded: bool,
    /// Bytes of each, with all headers, if they are of padding.
    pub size: usize,
}

/// What a train has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainReport {
    /// Whether it was of padding.
    pub is_padding: bool,
    /// Whether it was long enough to tell the rate, rather than that there is at least so much.
    pub is_long: bool,
    /// When its front mark left.
    pub sent_at: Instant,
    /// What left between the marks, the one behind it included.
    pub sent: Totals,
    /// In this time.
    pub sent_in: Duration,
    /// What of it arrived.
    pub received: Totals,
    /// In this time.
    pub received_in: Duration,
}

/// One end's trains: those that it sends, and the newest that it receives.
#[derive(Debug, Default)]
pub struct Trains {
    number: u32,
    /// Those that leave now or wait for their answers, the newest last.
    own: VecDeque<Own>,
    /// Padded ones that are still to leave.
    opening: Option<Opening>,
    due: Instant,
    /// Between two trains, while they lose more than others: zero while they do not.
    spaced: Duration,
    /// The other end's: its number, when its front mark came, and what had come by then.
    heard: Option<(u32, Instant, Totals)>,
}

#[derive(Clone, Copy, Debug)]
struct Own {
    number: u32,
    train: Train,
    sent_at: Instant,
    before: Totals,
    /// What had left with the mark behind it, and when.
    behind: Option<(Totals, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Opening {
    /// The one that was answered last: how many bytes it had, and how long it took.
    former: Option<(u64, Duration)>,
    attempts: u32,
}

impl Train {
    /// Bytes of its padding.
    const fn bytes(self) -> u64 {
        self.datagrams * self.size as u64
    }
}

impl Trains {
    /// A session begins with a peer that knows nothing.
    pub fn restart(&mut self) {
        let opening = Some(Opening { former: None, attempts: ATTEMPTS });
        *self = Self { number: self.number, opening, ..Self::default() };
    }

    /// When a padded train is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.opening.is_some().then_some(self.due)
    }

    /// The train that should leave now, if one should: of padding, or of frames if `waiting` bytes of them are enough for it.
    pub fn poll(
        &mut self,
        now: Instant,
        rate: Rate,
        round_trip: Option<Duration>,
        datagram: usize,
        waiting: u64,
        in_doubt: bool,
    ) -> Option<Train> {
        if now < self.due {
            return None;
        }
        let bytes = rate.bits_in(length(round_trip)) / 8;
        let usual = (bytes / datagram.max(1) as u64).min(MOST);
        if let Some(opening) = &mut self.opening {
            if opening.attempts == 0 {
                self.opening = None;
                return None;
            }
            opening.attempts -= 1;
            let Some((former, _)) = opening.former else {
                return Some(Train { datagrams: FIRST, padded: true, size: SMALL.min(datagram) });
            };
            let bytes = bytes.max(2 * former);
            let datagrams = (bytes / datagram.max(1) as u64).clamp(FIRST, MOST);
            let size = ((bytes / datagrams) as usize).clamp(SMALL.min(datagram), datagram);
            return Some(Train { datagrams, padded: true, size });
        }
        let least = if in_doubt && rate >= SLOWEST_IN_DOUBT { 0 } else { LEAST };
        let train = Train { datagrams: usual.max(LEAST), padded: false, size: 0 };
        (usual >= least && waiting >= (train.datagrams + 1) * datagram as u64).then_some(train)
    }

    /// The next one leaves at `until` or later.
    pub fn postpone(&mut self, until: Instant) {
        self.due = self.due.max(until);
    }

    /// The train's front mark leaves, when so much has been sent. The other end answers within a `round_trip`, if that is known.
    pub fn begin(
        &mut self,
        now: Instant,
        train: Train,
        before: Totals,
        round_trip: Option<Duration>,
    ) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        self.due = now
            + match (round_trip, self.opening) {
                (None, Some(_)) => OPENING_INTERVAL,
                (Some(time), Some(_)) => AGAIN.max(time + Duration::from_nanos(time.as_nanos() / 8)),
                (time, None) => INTERVAL.max(time.unwrap_or(Duration::ZERO)).max(self.spaced),
            };
        if self.own.len() == KEPT {
            self.own.pop_front();
        }
        self.own.push_back(Own { number: self.number, train, sent_at: now, before, behind: None });
        mark(self.number, Place::Front)
    }

    /// Padding for the train that leaves, still to be extended to so many bytes with all headers.
    #[must_use]
    pub fn padding(&self) -> (Vec<u8>, usize) {
        (mark(self.number, Place::Within), self.own.back().map_or(0, |own| own.train.size))
    }

    /// The mark behind the train leaves as the next datagram; `sent` counts it.
    pub fn end(&mut self, now: Instant, sent: Totals) -> Vec<u8> {
        if let Some(own) = self.own.back_mut() {
            own.behind = Some((sent, now));
        }
        mark(self.number, Place::Behind)
    }

    /// Takes a mark; what to answer, if anything. `received` counts it.
    pub fn handle_mark(&mut self, now: Instant, body: &[u8], received: Totals) -> Option<Vec<u8>> {
        let (number, place) = (u32::from_le_bytes(*body.first_chunk::<4>()?), *body.get(4)?);
        match (place, self.heard) {
            (0, _) => self.heard = Some((number, now, received)),
            // Where the mark behind it comes twice, one of the answers may be lost.
            (2, Some((heard, since, before))) if heard == number => {
                let arrived = received.since(before);
                let time = now.saturating_since(since).as_nanos();
                let words = [time, arrived.datagrams, arrived.bytes];
                return Some(
                    number
                        .to_le_bytes()
                        .into_iter()
                        .chain(words.into_iter().flat_map(u64::to_le_bytes))
                        .collect(),
                );
            }
            _ => {}
        }
        None
    }

    /// Takes an answer; what the train found, if anything. How long a train should take depends on the `round_trip`.
    pub fn handle_answer(
        &mut self,
        now: Instant,
        body: &[u8],
        round_trip: Option<Duration>,
    ) -> Option<TrainReport> {
        let (number, rest) = body.split_first_chunk::<4>()?;
        let [time, datagrams, bytes] = rest.as_chunks::<8>().0.first_chunk::<3>()?.map(u64::from_le_bytes);
        let at = self.own.iter().position(|own| own.number == u32::from_le_bytes(*number))?;
        let own = self.own[at];
        let (sent, left_at) = own.behind?;
        self.own.drain(..=at);
        let time = Duration::from_nanos(time);
        let is_long = !own.train.padded || self.is_long(own.train, time, round_trip);
        if self.opening.is_some() && own.train.padded {
            let former = Some((own.train.bytes(), time));
            self.opening = (!is_long).then_some(Opening { former, attempts: ATTEMPTS });
            self.due = now;
        }
        let sent = sent.since(own.before);
        // Frames that were expected did not come together.
        if sent.datagrams < FIRST {
            return None;
        }
        Some(TrainReport {
            is_padding: own.train.padded,
            is_long,
            sent_at: own.sent_at,
            sent,
            sent_in: left_at.saturating_since(own.sent_at),
            received: Totals { datagrams, bytes },
            received_in: time,
        })
    }

    /// Whether a train of padding that took this `time` tells the rate.
    fn is_long(&self, train: Train, time: Duration, round_trip: Option<Duration>) -> bool {
        let former = self.opening.and_then(|opening| opening.former);
        let agrees = former.is_some_and(|(bytes, took)| {
            let expected = u128::from(took.as_nanos()) * u128::from(train.bytes()) / u128::from(bytes.max(1));
            train.bytes() >= 2 * bytes && u128::from(time.as_nanos()) * 5 >= expected * 4
        });
        let is_spread = time.saturating_mul(2) >= length(round_trip);
        train.datagrams == MOST || time >= JITTER || (agrees && is_spread)
    }

    /// Of the train that left at `sent_at` much was lost that would not have been without it: from now on they are further apart, twice each time.
    /// A policer drops what comes in bursts.
    pub fn space(&mut self, sent_at: Instant, is_policed: bool) {
        if is_policed {
            self.spaced = self.spaced.saturating_mul(2).clamp(SPACED.0, SPACED.1);
            self.due = self.due.max(sent_at + self.spaced);
        } else {
            self.spaced = Duration::ZERO;
        }
    }

    /// The next train should leave at `due`: what one found is worth a second look, with padding if it was of padding.
    pub fn hurry(&mut self, due: Instant, passage: &TrainReport) {
        self.due = due;
        if passage.is_padding {
            let former = Some((passage.sent.bytes, passage.received_in));
            self.opening = Some(Opening { former, attempts: ATTEMPTS });
        }
    }
}

/// The line's time that a train takes.
fn length(round_trip: Option<Duration>) -> Duration {
    let quarter = round_trip.map_or(LENGTH.1, |time| Duration::from_nanos(time.as_nanos() / 4));
    quarter.clamp(LENGTH.0, LENGTH.1)
}

fn mark(number: u32, place: Place) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.push(place as u8);
    debug_assert_eq!(body.len(), MARK_LEN);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Option<Duration> = Some(Duration::from_millis(600));

    /// The padded trains, in bytes, that a line of this many bits per second is asked to carry before one tells its rate.
    fn opening(bps: u64) -> Vec<u64> {
        let (mut near, mut far) = (Trains::default(), Trains::default());
        near.restart();
        let (mut now, mut sent, mut received) = (Instant::ZERO, Totals::default(), Totals::default());
        let mut found = Rate::from_bps(256_000);
        let mut trains = Vec::new();
        while let Some(train) = near.poll(now, found, ROUND_TRIP, 1500, 1 << 20, false) {
            if !train.padded {
                break;
            }
            let bytes = train.datagrams * train.size as u64;
            trains.push(bytes);
            let front = near.begin(now, train, sent, ROUND_TRIP);
            sent.add(train.datagrams + 1, bytes + 66);
            let behind = near.end(now, sent);
            received.add(1, 66);
            assert!(far.handle_mark(now, &front, received).is_none());
            received.add(train.datagrams, bytes);
            let time = Rate::from_bps(bps).time_for(bytes * 8);
            let answer = far.handle_mark(now + time, &behind, received).unwrap();
            now += time + Duration::from_millis(600);
            let passage = near.handle_answer(now, &answer, ROUND_TRIP).unwrap();
            assert_eq!(passage.is_long, near.opening.is_none());
            found = Rate::from_bps(bytes * 8 * 1_000_000_000 / time.as_nanos().max(2_000_000));
        }
        trains
    }

    #[test]
    fn a_slow_line_is_asked_for_little() {
        for bps in [9_600, 64_000, 128_000] {
            assert_eq!(opening(bps), [1000], "{bps}");
        }
        assert_eq!(opening(256_000), [1000, 2000]);
        assert_eq!(opening(1_000_000), [1000, 3124]);
    }

    #[test]
    fn each_train_takes_as_long_as_the_one_before_it_says() {
        assert_eq!(opening(20_000_000), [1000, 12_000, 61_500]);
        assert_eq!(opening(1_000_000_000), [1000, 12_000, 96_000]);
    }

    /// A policer drops what comes in bursts.
    #[test]
    fn trains_of_which_more_is_lost_are_further_apart_twice_each_time() {
        let mut trains = Trains::default();
        let mut now = Instant::ZERO;
        let mut left = |is_policed| {
            let rate = Rate::from_bps(10_000_000);
            let train = trains.poll(now, rate, None, 1500, 1 << 20, false).expect("it is due");
            trains.begin(now, train, Totals::default(), None);
            trains.space(now, is_policed);
            let due = (0..100_000).step_by(500).map(|millis| now + Duration::from_millis(millis));
            let next = { due }.find(|due| trains.poll(*due, rate, None, 1500, 1 << 20, false).is_some());
            let wait = next.unwrap().saturating_since(now);
            now = next.unwrap();
            wait.as_millis()
        };
        assert_eq!([true, true, true, false, false].map(&mut left), [1000, 2000, 4000, 4000, 500]);
        let most = (0..8).map(|_| left(true)).max();
        assert_eq!(most, Some(32_000));
    }

    /// Enough must wait for the train and one more; on a slow line a train would take too long unless something is in doubt.
    #[test]
    fn trains_of_frames_leave_where_enough_waits_and_the_line_is_fast() {
        let poll = |kbit: u64, datagrams: u64, in_doubt| {
            let rate = Rate::from_bps(kbit * 1000);
            let train =
                Trains::default().poll(Instant::ZERO, rate, ROUND_TRIP, 1500, datagrams * 1500, in_doubt);
            train.map(|train| (train.datagrams, train.padded))
        };
        // Of 25 ms each.
        assert_eq!(
            [20, 21, 22].map(|waiting| poll(9600, waiting, false)),
            [None, Some((20, false)), Some((20, false))]
        );
        assert_eq!(poll(1_000_000, 100, false), Some((MOST, false)));
        assert_eq!([1919, 1920].map(|kbit| poll(kbit, 100, false)), [None, Some((LEAST, false))]);
        assert_eq!([319, 320].map(|kbit| poll(kbit, 100, true)), [None, Some((LEAST, false))]);
        assert_eq!([4, 5].map(|waiting| poll(1000, waiting, true)), [None, Some((LEAST, false))]);
    }

    #[test]
    fn a_train_takes_a_quarter_of_a_round_trip_within_bounds() {
        let lengths = [4, 40, 90, 600].map(|millis| length(Some(Duration::from_millis(millis))).as_micros());
        assert_eq!(lengths, [5000, 10_000, 22_500, 25_000]);
        assert_eq!(length(None), LENGTH.1);
    }

    /// The next of padding may be due when the answer to this one should have come, and of frames half a second later.
    #[test]
    fn trains_wait_for_the_answer_to_the_one_before() {
        let wait = |round_trip: Option<u64>, is_opening| {
            let mut trains = Trains::default();
            if is_opening {
                trains.restart();
            }
            let train = Train { datagrams: FIRST, padded: is_opening, size: SMALL };
            let round_trip = round_trip.map(Duration::from_millis);
            trains.begin(Instant::ZERO, train, Totals::default(), round_trip);
            assert_eq!(trains.poll_timeout().is_some(), is_opening, "those of frames have no timer");
            trains.due.saturating_since(Instant::ZERO).as_millis()
        };
        assert_eq!([None, Some(100), Some(800)].map(|time| wait(time, true)), [1000, 250, 900]);
        assert_eq!([None, Some(100), Some(800)].map(|time| wait(time, false)), [500, 500, 800]);
    }

    #[test]
    fn padding_names_its_train_and_has_its_size() {
        let mut trains = Trains::default();
        trains.restart();
        assert_eq!(trains.padding().1, 0, "none has left");
        let train = Train { datagrams: FIRST, padded: true, size: 700 };
        trains.begin(Instant::ZERO, train, Totals::default(), None);
        assert_eq!(trains.padding(), (mark(1, Place::Within), 700));
        // Numbers go on, so that an answer from a former life is nobody's.
        trains.restart();
        assert_eq!(trains.begin(Instant::ZERO, train, Totals::default(), None), mark(2, Place::Front));
        // The mark behind another train is not answered, nor is padding.
        let mut far = Trains::default();
        far.handle_mark(Instant::ZERO, &mark(2, Place::Front), Totals::default());
        for body in [mark(1, Place::Behind), mark(2, Place::Within)] {
            assert_eq!(far.handle_mark(Instant::ZERO, &body, Totals::default()), None);
        }
        assert!(far.handle_mark(Instant::ZERO, &mark(2, Place::Behind), Totals::default()).is_some());
    }

    /// Frames that were expected and did not come in time make no train.
    #[test]
    fn fewer_datagrams_than_four_tell_nothing_and_padding_is_followed_by_padding() {
        for (count, tells) in [(3, false), (4, true)] {
            let mut trains = Trains::default();
            let train = Train { datagrams: LEAST, padded: false, size: 0 };
            trains.begin(Instant::ZERO, train, Totals::default(), ROUND_TRIP);
            trains.end(Instant::ZERO, Totals { datagrams: count, bytes: count * 1000 });
            let mut answer = 1_u32.to_le_bytes().to_vec();
            answer.extend([1000_u64, count, count * 1000].into_iter().flat_map(u64::to_le_bytes));
            let passage = trains.handle_answer(Instant::ZERO, &answer, ROUND_TRIP);
            assert_eq!(passage.is_some(), tells, "{count}");
            let Some(passage) = passage else { continue };
            let due = Instant::ZERO + Duration::from_millis(7);
            trains.hurry(due, &passage);
            assert_eq!((trains.due, trains.poll_timeout()), (due, None), "of frames");
            trains.hurry(due, &TrainReport { is_padding: true, ..passage });
            assert_eq!(trains.poll_timeout(), Some(due));
        }
    }

    /// Jitter may have spread the first one: then the second, of twice as many bytes, takes less than twice as long.
    #[test]
    fn a_train_that_contradicts_the_one_before_it_is_not_the_last() {
        for (took, is_last) in [(31, false), (32, true)] {
            let (mut near, mut far) = (Trains::default(), Trains::default());
            near.restart();
            let (mut now, mut totals) = (Instant::ZERO, Totals::default());
            let mut is_long = [20, took].map(|millis| {
                let rate = Rate::from_bps(256_000);
                let train = near.poll(now, rate, ROUND_TRIP, 1500, 0, false).unwrap();
                let front = near.begin(now, train, totals, ROUND_TRIP);
                far.handle_mark(now, &front, totals);
                totals.add(train.datagrams, train.bytes());
                let behind = near.end(now, totals);
                let answer = far.handle_mark(now + Duration::from_millis(millis), &behind, totals).unwrap();
                now += Duration::from_secs(1);
                near.handle_answer(now, &answer, ROUND_TRIP).unwrap().is_long
            });
            is_long.sort_unstable();
            assert_eq!(is_long, [false, is_last], "{took} ms after 20 ms");
        }
    }

    #[test]
    fn a_padded_train_that_is_not_answered_is_sent_eight_times() {
        let mut trains = Trains::default();
        trains.restart();
        let mut left = Vec::new();
        for seconds in 0..20 {
            let now = Instant::ZERO + Duration::from_secs(seconds);
            if let Some(train) = trains.poll(now, Rate::from_bps(256_000), None, 1500, 0, false) {
                trains.begin(now, train, Totals::default(), None);
                trains.end(now, Totals::default());
                left.push((seconds, train.size));
            }
        }
        assert_eq!(left, (0..8).map(|second| (second, SMALL)).collect::<Vec<_>>());
    }
}
