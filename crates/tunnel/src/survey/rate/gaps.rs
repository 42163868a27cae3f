//! Gaps: losses that come all at once, as while something stands in front of the antenna.
//!
//! A line that is blocked now and then loses all for a while and then nothing. Whoever sends too much loses some of everything that he sends, either behind a
//! long queue, or, at a policer and at a short queue, evenly. So a span of which much is lost is a gap where no queue stands and other spans of late lost nothing
//! that the channel does not lose anyway.

use std::collections::VecDeque;

use super::losses::Losses;
use crate::survey::report::Span;

/// Spans of late.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Which of them lost nothing, the newest last.
    clean: VecDeque<bool>,
}

/// Spans that are remembered: those of about a second, or of a hundred datagrams on slow lines. Ours.
const KEPT: usize = 8;
/// Of which so many at least lost nothing. Ours.
const CLEAN: usize = 2;
/// Datagrams that a span must have to tell. Ours.
const TELLING: u64 = 4;
/// One of so many datagrams is lost in a gap at least, beyond what the channel loses. Ours.
const LOST_OF: u64 = 4;

impl Gaps {
    /// Takes in a span, at whose end a long queue `is_standing` or not; whether it is a gap.
    pub fn observe(&mut self, span: &Span, losses: &Losses, is_standing: bool) -> bool {
        let sent = span.sent.datagrams;
        if sent < TELLING {
            return false;
        }
        let beyond = losses.count_beyond(span);
        if self.clean.len() == KEPT {
            self.clean.pop_front();
        }
        self.clean.push_back(beyond == 0 && !is_standing);
        let clean = self.clean.iter().filter(|is_clean| **is_clean).count();
        beyond * LOST_OF >= sent && clean >= CLEAN && !is_standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Totals;

    fn span(lost: u64) -> Span {
        let totals = |datagrams| Totals { datagrams, bytes: 1000 * datagrams };
        Span { sent: totals(12), received: totals(12 - lost), ..Span::default() }
    }

    /// Which of these spans are gaps, by how many of twelve each lost.
    fn gaps(lost: &[u64], is_standing: bool) -> Vec<bool> {
        let mut gaps = Gaps::default();
        lost.iter().map(|lost| gaps.observe(&span(*lost), &Losses::default(), is_standing)).collect()
    }

    #[test]
    fn much_that_is_lost_among_spans_that_lose_nothing_is_a_gap() {
        assert_eq!(gaps(&[0, 0, 8, 12, 0, 3, 2], false), [false, false, true, true, false, true, false]);
        assert_eq!(gaps(&[0, 0, 8, 12, 0, 3, 2], true), [false; 7], "a queue explains it");
    }

    #[test]
    fn what_all_spans_lose_is_none() {
        assert_eq!(gaps(&[0, 6, 6, 6], false), [false; 4]);
        let lasting = gaps(&[0, 0, 0, 6, 6, 6, 6, 6, 6, 6, 6], false);
        assert_eq!(lasting[3..], [true, true, true, true, true, true, false, false]);
    }

    #[test]
    fn what_the_channel_loses_anyway_is_none() {
        let mut losses = Losses::default();
        losses.accept(0.3);
        let mut gaps = Gaps::default();
        let told = [2, 4, 5, 12].map(|lost| gaps.observe(&span(lost), &losses, false));
        assert_eq!(told, [false, false, false, true]);
    }

    #[test]
    fn a_few_datagrams_tell_nothing() {
        let totals = |datagrams| Totals { datagrams, bytes: 1000 * datagrams };
        let span =
            |sent, received| Span { sent: totals(sent), received: totals(received), ..Span::default() };
        let mut gaps = Gaps::default();
        let mut observe = |sent, received| gaps.observe(&span(sent, received), &Losses::default(), false);
        // Nor do three that arrive count among those that lost nothing.
        assert_eq!([observe(3, 3), observe(3, 3), observe(3, 3), observe(12, 4)], [false; 4]);
        assert_eq!([observe(4, 4), observe(4, 4), observe(3, 0), observe(4, 0)], [false, false, false, true]);
    }
}
