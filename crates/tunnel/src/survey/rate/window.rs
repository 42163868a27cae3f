//! Windows: what left and arrived over a few reports, enough to tell a rate or a share of losses from.

use base::{Duration, Instant};

use crate::survey::report::{Span, Totals};

/// The line, as far as it adds to datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Bytes that a datagram occupies on the line besides its own.
    pub overhead: i64,
}

impl Line {
    /// Bits on the line, headers included.
    #[must_use]
    pub fn bits(self, totals: Totals) -> u64 {
        let overhead = totals.datagrams.cast_signed().saturating_mul(self.overhead);
        totals.bytes.saturating_add_signed(overhead).saturating_mul(8)
    }

    /// Bits per second on the line of what left or arrived within `time`.
    #[must_use]
    pub fn rate(self, totals: Totals, time: Duration) -> f64 {
        self.bits(totals) as f64 / time.as_secs_f64().max(1e-9)
    }
}

/// What left and arrived over a few reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// What left and arrived.
    pub span: Span,
    /// When the first of it left; `None` while it is empty.
    pub since: Option<Instant>,
    /// Whether a queue stood at each of the reports.
    pub is_busy: bool,
}

impl Window {
    /// Takes in what happened next, beginning at `since`.
    fn add(&mut self, since: Instant, span: &Span, is_busy: bool) {
        self.is_busy = is_busy && (self.is_busy || self.since.is_none());
        self.since.get_or_insert(since);
        self.span.add(span);
    }

    fn is_full(&self, (time, datagrams): (Duration, u64)) -> bool {
        self.span.received_in >= time && self.span.sent.datagrams >= datagrams
    }

    /// Gives the window once it is full, and begins the next.
    fn take(&mut self, full: (Duration, u64)) -> Option<Self> {
        self.is_full(full).then(|| core::mem::take(self))
    }
}

/// The two windows that fill at present: losses take longer to tell than rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    rate: Window,
    losses: Window,
}

/// A rate is measured over at least so much time, and so many datagrams: two reports, and 8 % for one datagram more or less. Ours.
pub const RATE: (Duration, u64) = (Duration::from_millis(200), 12);
/// Losses are measured over at least so much time, and so many datagrams. Ours.
pub const LOSSES: (Duration, u64) = (Duration::from_millis(400), 40);

impl Windows {
    /// What was taken in belongs to nothing that follows.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes in what left until `sent_at`.
    pub fn add(&mut self, sent_at: Instant, span: &Span, is_busy: bool) {
        let since = Instant::from_nanos(sent_at.as_nanos().saturating_sub(span.sent_in.as_nanos()));
        for window in [&mut self.rate, &mut self.losses] {
            window.add(since, span, is_busy);
        }
    }

    /// The window that a rate is told from, once it is full.
    pub fn take_rate(&mut self) -> Option<Window> {
        self.rate.take(RATE)
    }

    /// The window that losses are told from, once it is full.
    pub fn take_losses(&mut self) -> Option<Window> {
        self.losses.take(LOSSES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(datagrams: u64, millis: u64) -> Span {
        let totals = Totals { datagrams, bytes: 1000 * datagrams };
        let time = Duration::from_millis(millis);
        Span { sent: totals, sent_in: time, received: totals, received_in: time }
    }

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_line_counts_headers_and_what_they_save() {
        let totals = Totals { datagrams: 3, bytes: 300 };
        assert_eq!((Line { overhead: 28 }.bits(totals), Line { overhead: -20 }.bits(totals)), (3072, 1920));
    }

    #[test]
    fn a_window_is_full_by_time_and_by_datagrams() {
        let mut windows = Windows::default();
        windows.add(ms(1000), &span(11, 300), true);
        assert!(windows.take_rate().is_none(), "too few datagrams");
        windows.add(ms(1050), &span(1, 50), true);
        let rate = windows.take_rate().unwrap();
        assert_eq!((rate.since, rate.span.sent.datagrams), (Some(ms(700)), 12));
        assert!(windows.take_losses().is_none() && windows.take_rate().is_none());
        windows.add(ms(1150), &span(28, 100), true);
        assert_eq!(windows.take_losses().unwrap().span.sent.datagrams, 40);
    }

    #[test]
    fn a_window_is_busy_if_each_of_its_reports_was() {
        for (reports, is_busy) in [([true, true], true), ([true, false], false), ([false, true], false)] {
            let mut windows = Windows::default();
            reports.into_iter().for_each(|report| windows.add(ms(100), &span(10, 100), report));
            assert_eq!(windows.take_rate().unwrap().is_busy, is_busy, "{reports:?}");
        }
    }

    #[test]
    fn what_is_cleared_is_in_no_window() {
        let mut windows = Windows::default();
        windows.add(ms(1000), &span(40, 400), true);
        windows.clear();
        assert!(windows.take_rate().is_none() && windows.take_losses().is_none());
    }

    #[test]
    fn a_rate_is_of_all_bits_in_all_of_the_time() {
        let totals = Totals { datagrams: 10, bytes: 10_000 };
        assert_eq!(Line { overhead: 0 }.rate(totals, Duration::from_millis(500)), 160e3);
        assert!(Line { overhead: 0 }.rate(totals, Duration::ZERO).is_finite());
    }
}
