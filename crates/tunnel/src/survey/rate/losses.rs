//! How much of what is sent the channel loses, whatever is sent.
//!
//! Loss by itself says nothing about the rate: links that this gateway is for lose packets at any load. So a share of losses counts as the
//! channel's until it rises; then it is seen whether sending less brings it down ([`super::experiments`]).

use std::collections::VecDeque;

use crate::survey::report::Span;

/// The channel's share of lost bytes, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Of the last spans, the newest last.
    recent: VecDeque<f64>,
    /// What sending less did not bring down.
    accepted: f64,
}

/// Spans that a median is taken of: a few seconds.
const RECENT: usize = 15;
/// Loss above what is known of the channel that is noticed, besides what chance does.
const BOUND: f64 = 0.05;
/// And what is noticed if it lasts.
pub const LITTLE: f64 = 0.01;
/// Standard deviations of chance.
const DEVIATIONS: f64 = 3.0;
/// A share is told from at least so many datagrams.
pub const SAMPLE: u64 = 20;

/// The share of bytes that was lost, if enough left to tell.
#[must_use]
pub fn share(span: &Span) -> Option<f64> {
    let arrived = span.received.bytes as f64 / span.sent.bytes.max(1) as f64;
    (span.sent.datagrams >= SAMPLE).then(|| (1.0 - arrived).clamp(0.0, 1.0))
}

impl Losses {
    /// What the channel loses.
    #[must_use]
    pub const fn channel(&self) -> f64 {
        self.accepted
    }

    /// Whether clearly more is lost than the channel and chance account for.
    #[must_use]
    pub fn are_more(&self, span: &Span) -> bool {
        self.exceed(span, BOUND)
    }

    /// Whether a little more is lost, perhaps by a queue that is too short to be seen.
    #[must_use]
    pub fn are_some(&self, span: &Span) -> bool {
        self.exceed(span, LITTLE)
    }

    /// What part is lost beyond what the channel loses; below zero if it is less.
    #[must_use]
    pub fn beyond(&self, span: &Span) -> f64 {
        share(span).map_or(0.0, |share| share - self.accepted)
    }

    /// Datagrams that are lost beyond what the channel and chance account for.
    #[must_use]
    pub fn count_beyond(&self, span: &Span) -> u64 {
        let sent = span.sent.datagrams as f64;
        let p = self.accepted;
        let expected = sent * p + DEVIATIONS * (sent * p * (1.0 - p)).sqrt();
        let lost = span.sent.datagrams.saturating_sub(span.received.datagrams) as f64;
        (lost - expected).max(0.0).ceil() as u64
    }

    fn exceed(&self, span: &Span, bound: f64) -> bool {
        let p = self.accepted.max(0.01);
        let chance = DEVIATIONS * (p * (1.0 - p) / span.sent.datagrams.max(1) as f64).sqrt();
        share(span).is_some_and(|share| share > self.accepted + bound + chance)
    }

    /// Whether a little more has been lost for a while.
    #[must_use]
    pub fn last(&self) -> bool {
        self.recent.len() == RECENT && self.median() > self.accepted + LITTLE
    }

    fn median(&self) -> f64 {
        median(self.recent.iter().copied().collect())
    }

    /// Takes in what was lost while nothing was out of order: the channel's share goes down with the median.
    pub fn observe(&mut self, span: &Span) {
        let Some(share) = share(span) else { return };
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(share);
        // What is a little more may be ours, and would go up with each little that we send more.
        if self.recent.len() == RECENT {
            self.accepted = self.accepted.min(self.median());
        }
    }

    /// So much is lost whatever is sent.
    pub fn accept(&mut self, share: f64) {
        self.recent.clear();
        self.accepted = share.min(MOST);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A channel that loses more is taken for one that loses this, lest a silent path be taken for a lossy one.
const MOST: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Totals;

    fn span(sent: u64, lost: u64) -> Span {
        let totals = |datagrams| Totals { datagrams, bytes: 1000 * datagrams };
        Span { sent: totals(sent), received: totals(sent - lost), ..Span::default() }
    }

    #[test]
    fn chance_is_no_reason() {
        let mut losses = Losses::default();
        assert!(!losses.are_more(&span(SAMPLE - 1, SAMPLE - 1)), "too few to tell");
        assert!(!losses.are_more(&span(100, 7)) && losses.are_more(&span(100, 9)));
        assert!(losses.are_more(&span(10_000, 700)));
        losses.accept(0.2);
        assert!(!losses.are_more(&span(1000, 280)) && losses.are_more(&span(1000, 290)));
    }

    #[test]
    fn what_was_accepted_goes_down_with_the_median() {
        let mut losses = Losses::default();
        losses.accept(0.3);
        for _ in 0..RECENT - 1 {
            losses.observe(&span(100, 10));
        }
        assert_eq!(losses.channel(), 0.3);
        losses.observe(&span(100, 90));
        assert!((losses.channel() - 0.1).abs() < 1e-9);
        (0..100).for_each(|_| losses.observe(&span(100, 14)));
        assert!((losses.channel() - 0.1).abs() < 1e-9, "it does not creep up");
    }

    #[test]
    fn the_middle_of_what_was_lost_of_late_counts() {
        let mut losses = Losses::default();
        losses.accept(0.5);
        for lost in [1, 15, 2, 14, 3, 13, 4, 12, 5, 11, 6, 10, 7, 9, 8] {
            losses.observe(&span(100, lost));
        }
        assert!((losses.channel() - 0.08).abs() < 1e-9, "{}", losses.channel());
    }

    #[test]
    fn what_is_beyond_the_channel_s_losses_may_be_less() {
        let mut losses = Losses::default();
        losses.accept(0.25);
        for (lost, beyond) in [(50, 0.25), (25, 0.0), (0, -0.25)] {
            assert!((losses.beyond(&span(100, lost)) - beyond).abs() < 1e-9, "{lost}");
        }
        assert_eq!(losses.beyond(&span(SAMPLE - 1, 5)), 0.0, "too few to tell");
    }

    #[test]
    fn a_little_more_counts_once_it_lasts() {
        let mut losses = Losses::default();
        losses.accept(0.1);
        assert!(!losses.are_some(&span(10_000, 1100)) && losses.are_some(&span(10_000, 1300)));
        (0..RECENT - 1).for_each(|_| losses.observe(&span(100, 12)));
        assert!(!losses.last());
        losses.observe(&span(100, 12));
        assert!(losses.last());
        (0..RECENT).for_each(|_| losses.observe(&span(200, 21)));
        assert!(!losses.last(), "half a percent is no more");
    }
}
