//! Trains: what the bottleneck carries, told from how it spreads datagrams that left together.
//!
//! A *train* is a burst between two marks: as many datagrams as the line is believed to take in 25 ms or less. They leave faster than the
//! bottleneck carries them, so the time between the arrivals of its marks is what the bottleneck took for it. The line is paced as usual otherwise: what
//! a train takes ahead is not sent after it.
//!
//! The first trains, when a session begins, are of padding: one of four datagrams, which every path takes, then a long one. Later ones are of frames
//! that wait anyway, so they cost only their marks.
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
/// Datagrams of the first train of a session: less than a TCP connection may send at once (RFC 6928).
const FIRST: u64 = 4;
/// Datagrams of a train, at most: a batch or two of the carrier.
const MOST: u64 = 64;
/// Frames of a train, at least, or the spaces between them are too few to measure.
const LEAST: u64 = 4;
/// Between two trains, and at least a round trip.
const INTERVAL: Duration = Duration::from_millis(500);
/// Between two padded ones of a length, until one is answered.
const OPENING_INTERVAL: Duration = Duration::from_millis(250);
/// Padded ones of a length, at most.
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
}

/// What a train has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Whether it was of padding.
    pub is_padding: bool,
    /// Whether it was of more than those few.
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
    datagrams: u64,
    attempts: u32,
}

impl Trains {
    /// A session begins with a peer that knows nothing.
    pub fn restart(&mut self) {
        let opening = Some(Opening { datagrams: FIRST, attempts: ATTEMPTS });
        *self = Self { number: self.number, opening, ..Self::default() };
    }

    /// No padded trains, nor what waits for an answer.
    pub fn stop(&mut self) {
        self.own.clear();
        self.opening = None;
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
    ) -> Option<Train> {
        if now < self.due {
            return None;
        }
        let quarter = round_trip.map_or(LENGTH.1, |time| Duration::from_nanos(time.as_nanos() / 4));
        let length = quarter.clamp(LENGTH.0, LENGTH.1);
        let usual = (rate.bits_in(length) / 8 / datagram.max(1) as u64).min(MOST);
        if let Some(opening) = &mut self.opening {
            if opening.attempts == 0 {
                self.opening = None;
                return None;
            }
            opening.attempts -= 1;
            let datagrams = if opening.datagrams == FIRST { FIRST } else { usual.max(FIRST) };
            return Some(Train { datagrams, padded: true });
        }
        let train = Train { datagrams: usual, padded: false };
        (usual >= LEAST && waiting >= (usual + 1) * datagram as u64).then_some(train)
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
        let interval = if self.opening.is_some() { OPENING_INTERVAL } else { INTERVAL };
        self.due = now + interval.max(round_trip.unwrap_or(Duration::ZERO));
        if self.own.len() == KEPT {
            self.own.pop_front();
        }
        self.own.push_back(Own { number: self.number, train, sent_at: now, before, behind: None });
        mark(self.number, Place::Front)
    }

    /// Padding for the train that leaves.
    #[must_use]
    pub fn padding(&self) -> Vec<u8> {
        mark(self.number, Place::Within)
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
            (2, Some((heard, since, before))) if heard == number => {
                self.heard = None;
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

    /// Takes an answer. A train that left more slowly than it arrived says nothing.
    pub fn handle_answer(&mut self, now: Instant, body: &[u8]) -> Option<Passage> {
        let (number, rest) = body.split_first_chunk::<4>()?;
        let [time, datagrams, bytes] = *rest.as_chunks::<8>().0.first_chunk::<3>()?;
        let at = self.own.iter().position(|own| own.number == u32::from_le_bytes(*number))?;
        let own = self.own[at];
        let (sent, left_at) = own.behind?;
        self.own.drain(..=at);
        let is_long = own.train.datagrams > FIRST;
        if let Some(opening) = &mut self.opening
            && own.train.padded
        {
            if is_long {
                self.opening = None;
            } else if opening.datagrams == FIRST {
                *opening = Opening { datagrams: MOST, attempts: ATTEMPTS };
                self.due = now;
            }
        }
        let number = u64::from_le_bytes;
        let sent = sent.since(own.before);
        // Frames that were expected did not come together.
        if sent.datagrams < FIRST {
            return None;
        }
        Some(Passage {
            is_padding: own.train.padded,
            is_long,
            sent_at: own.sent_at,
            sent,
            sent_in: left_at.saturating_since(own.sent_at),
            received: Totals { datagrams: number(datagrams), bytes: number(bytes) },
            received_in: Duration::from_nanos(number(time)),
        })
    }

    /// The next train should not wait: what one found is worth a second look.
    pub const fn hurry(&mut self, now: Instant) {
        self.due = now;
    }
}

fn mark(number: u32, place: Place) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.push(place as u8);
    debug_assert_eq!(body.len(), MARK_LEN);
    body
}
