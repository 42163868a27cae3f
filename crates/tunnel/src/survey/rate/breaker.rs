//! The circuit breaker (RFC 8084): while nearly nothing arrives, or nobody answers, only a trickle is sent.

use base::{Duration, Instant};

use super::losses;
use crate::survey::report::Span;

/// Since when things are so bad that sending more can only do harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    /// Since when nobody has answered what asks for an answer.
    unanswered_since: Option<Instant>,
    /// Since when nearly nothing has arrived.
    starved_since: Option<Instant>,
    /// Frames that acknowledged something, since when.
    progress: u32,
    progress_since: Instant,
}

/// It acts after so long. RFC 8084 (3.2.1) asks for several round trips; ours.
const PATIENCE: Duration = Duration::from_secs(10);
/// And if more than this part is lost. Ours: links that lose half of everything are to be used.
pub const STARVED: f64 = 0.95;
/// So many frames that acknowledge something within so long are an answer. Ours: twice a second, as from a line of 64 kbit/s.
const PROGRESS: (u32, Duration) = (10, Duration::from_secs(5));
/// What it leaves of the rate. RFC 8084 (3.2.3) leaves the reaction to the protocol; ours keeps finding out whether the path is back.
pub const TRICKLE: f64 = 0.02;

impl Breaker {
    /// A session begins with a peer that knows nothing.
    pub const fn restart(&mut self) {
        (self.unanswered_since, self.starved_since) = (None, None);
    }

    /// Something has been sent that the other end is to answer.
    pub fn on_asked(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// A frame has acknowledged more of what was sent. Many of them are an answer: somebody may drop all answers and let frames pass. A few arrive on any path.
    pub fn on_progress(&mut self, now: Instant) {
        if now >= self.progress_since + PROGRESS.1 {
            (self.progress_since, self.progress) = (now, 0);
        }
        self.progress += 1;
        if self.progress >= PROGRESS.0 {
            self.on_answer();
        }
    }

    /// The other end has answered.
    pub const fn on_answer(&mut self) {
        self.unanswered_since = None;
    }

    /// What left between two stamps, and what of it arrived.
    pub fn on_span(&mut self, now: Instant, span: &Span) {
        if losses::share(span).is_some_and(|share| share > STARVED) {
            self.starved_since.get_or_insert(now.saturating_sub(span.sent_in));
        }
    }

    /// What part of a window was lost: what ends a starvation is traffic that does arrive.
    pub fn on_window(&mut self, share: f64) {
        if share < STARVED / 2.0 {
            self.starved_since = None;
        }
    }

    /// Whether only a trickle is to be sent.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        [self.unanswered_since, self.starved_since].into_iter().flatten().any(|since| now >= since + PATIENCE)
    }
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
    fn many_frames_that_acknowledge_something_are_an_answer_and_few_are_none() {
        for (every, is_open) in [(400, false), (600, true)] {
            let mut breaker = Breaker::default();
            breaker.on_asked(at(5));
            for millis in (5000..25_000).step_by(every) {
                breaker.on_progress(Instant::ZERO + Duration::from_millis(millis));
                breaker.on_asked(Instant::ZERO + Duration::from_millis(millis));
            }
            assert_eq!(breaker.is_open(at(25)), is_open, "{every} ms");
        }
    }

    #[test]
    fn ten_seconds_of_nearly_nothing_open_it_until_half_arrives() {
        let mut breaker = Breaker::default();
        breaker.on_span(at(5), &span(100, 5));
        assert!(!breaker.is_open(at(20)), "a twentieth arrives");
        breaker.on_span(at(6), &span(10, 0));
        assert!(!breaker.is_open(at(20)), "too few to tell");
        breaker.on_span(at(6), &span(100, 4));
        assert!(!breaker.is_open(at(14)) && breaker.is_open(at(15)));
        breaker.on_window(0.5);
        assert!(breaker.is_open(at(20)));
        breaker.on_window(0.4);
        assert!(!breaker.is_open(at(20)));
    }
}
