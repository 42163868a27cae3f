//! The circuit breaker (RFC 8084): while nearly nothing arrives, or nobody answers, only a trickle is sent.

use base::{Duration, Instant};

use super::losses;
use crate::survey::report::Span;

/// Since when things are so bad that sending more can only do harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    /// Since when nobody has answered what asks for an answer.
    unanswered_since: Option<Instant>,
    /// Whether nearly nothing arrives.
    is_starved: bool,
    /// What left and arrived since.
    span: Span,
    span_since: Option<Instant>,
    /// Datagrams that were acknowledged, since when, and what had been sent until then.
    progress: u64,
    progress_since: Instant,
    sent: u64,
}

/// It acts after so long. RFC 8084 (3.2.1) asks for several round trips; ours.
const PATIENCE: Duration = Duration::from_secs(10);
/// And if more than this part is lost. Ours: links that lose half of everything are to be used.
pub const STARVED: f64 = 0.95;
/// So many datagrams that are acknowledged within so long are an answer. Ours: twice a second, as from a line of 64 kbit/s.
const PROGRESS: (u64, Duration) = (10, Duration::from_secs(5));
/// Datagrams of a span that end a starvation, at least.
const TELLING: u64 = 3;
/// What it leaves of the rate: this part, or so many bits per second where that is more, but a quarter at most. RFC 8084 (3.2.3) leaves the reaction to the
/// protocol; ours keeps finding out whether the path is back.
const TRICKLE: (f64, f64) = (0.02, 32_000.0);

impl Breaker {
    /// A session begins with a peer that knows nothing.
    pub const fn restart(&mut self) {
        (self.unanswered_since, self.is_starved, self.span_since) = (None, false, None);
    }

    /// Something has been sent that the other end is to answer.
    pub fn on_asked(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Frames have acknowledged `count` more of the `sent` datagrams that have left so far. Many of them are an answer: somebody may drop all answers and let
    /// frames pass. A few, or a small part of what was sent, arrive on any path.
    pub fn on_progress(&mut self, now: Instant, count: u64, sent: u64) {
        self.progress += count;
        if now < self.progress_since + PROGRESS.1 {
            return;
        }
        let part = (1.0 - STARVED) * sent.saturating_sub(self.sent) as f64;
        if self.progress >= PROGRESS.0 && self.progress as f64 >= part {
            self.on_answer();
        }
        (self.progress_since, self.progress, self.sent) = (now, 0, sent);
    }

    /// The other end has answered.
    pub const fn on_answer(&mut self) {
        self.unanswered_since = None;
    }

    /// What left between two stamps, and what of it arrived. Nearly nothing of what leaves for ten seconds starves; half of a single span ends that, since what
    /// is blocked again and again is not starved.
    pub fn on_span(&mut self, now: Instant, span: &Span) {
        if self.is_starved {
            let some = span.sent.datagrams >= TELLING;
            self.is_starved = !(some && span.received.datagrams * 2 >= span.sent.datagrams);
            self.span_since = None;
            return;
        }
        let since = *self.span_since.get_or_insert_with(|| {
            self.span = Span::default();
            now.saturating_sub(span.sent_in)
        });
        // One that is as long as that tells by itself.
        if span.sent_in >= PATIENCE {
            self.span = Span::default();
        }
        self.span.add(span);
        if now < since + PATIENCE {
            return;
        }
        if let Some(share) = losses::share(&self.span) {
            self.is_starved = share > STARVED;
            self.span_since = None;
        }
    }

    /// Whether only a trickle is to be sent.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        self.is_starved || self.unanswered_since.is_some_and(|since| now >= since + PATIENCE)
    }
}

/// The trickle of a line that carries so many bits per second.
#[must_use]
pub fn trickle(capacity: f64) -> f64 {
    (capacity * TRICKLE.0).max(TRICKLE.1.min(capacity / 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Totals;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn span(sent: u64, arrived: u64) -> Span {
        let totals = |datagrams| Totals { datagrams, bytes: 1000 * datagrams };
        let time = Duration::from_secs(1);
        Span { sent: totals(sent), sent_in: time, received: totals(arrived), received_in: time }
    }

    #[test]
    fn ten_seconds_without_an_answer_open_it() {
        let mut breaker = Breaker::default();
        breaker.on_asked(at(5));
        breaker.on_asked(at(14));
        assert!(!breaker.is_open(at(14)) && breaker.is_open(at(15)));
        breaker.on_answer();
        assert!(!breaker.is_open(at(100)));
    }

    #[test]
    fn much_that_is_acknowledged_is_an_answer_and_little_is_none() {
        for (every, of, is_open) in [(400, 1, false), (600, 1, true), (400, 19, false), (400, 40, true)] {
            let mut breaker = Breaker::default();
            breaker.on_asked(at(5));
            for (count, millis) in (5000..25_000).step_by(every).enumerate() {
                let now = Instant::ZERO + Duration::from_millis(millis);
                breaker.on_progress(now, 1, count as u64 * of);
                breaker.on_asked(now);
            }
            assert_eq!(breaker.is_open(at(25)), is_open, "one of {of} every {every} ms");
        }
    }

    #[test]
    fn ten_seconds_of_nearly_nothing_open_it_until_half_arrives() {
        let mut breaker = Breaker::default();
        let mut is_open = |now, sent, arrived| {
            breaker.on_span(at(now), &span(sent, arrived));
            breaker.is_open(at(now))
        };
        assert_eq!([is_open(5, 100, 4), is_open(13, 100, 5), is_open(14, 100, 4)], [false, false, true]);
        assert_eq!([is_open(20, 2, 2), is_open(21, 3, 1)], [true; 2]);
        assert!(!is_open(22, 4, 2), "half of it");
        assert_eq!([is_open(23, 9, 0), is_open(33, 10, 0)], [false; 2], "too few to tell");
        assert!(is_open(34, 1, 0));
    }

    #[test]
    fn a_line_that_is_blocked_again_and_again_is_not_starved() {
        let mut breaker = Breaker::default();
        for second in 5..60 {
            breaker.on_span(at(second), &span(50, if second % 7 == 0 { 40 } else { 0 }));
            assert!(!breaker.is_open(at(second)), "{second}");
        }
    }

    #[test]
    fn a_trickle_is_a_fiftieth_or_what_a_slow_line_carries_easily() {
        assert_eq!([1e9, 1e6, 256e3, 64e3].map(trickle), [20e6, 32e3, 32e3, 16e3]);
    }
}
