//! What has become of the datagrams that were sent, as the other end tells.

use base::{Duration, Instant};

use super::report::Span;

/// Datagrams that left between two stamps of which the other end has told, and those of them that had not arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    sent: u64,
    lost: u64,
}

/// Counts, and what part was lost lately.
#[derive(Debug, Default)]
pub struct Passage {
    total: Count,
    /// Of the newest span, since what is late comes in the next.
    missing: u64,
    /// In the stretch before this one, and in this one.
    stretches: [Count; 2],
    /// When this one began.
    since: Instant,
}

/// Half of what "lately" means.
const STRETCH: Duration = Duration::from_secs(15);

impl Passage {
    /// The other end has told of a span.
    pub(super) fn on_span(&mut self, now: Instant, span: &Span) {
        self.turn(now);
        let (sent, received) = (span.sent.datagrams, span.received.datagrams);
        let late = received.saturating_sub(sent);
        let lost = self.missing.saturating_sub(late);
        self.missing = sent.saturating_sub(received);
        for count in [&mut self.total, &mut self.stretches[1]] {
            count.sent += sent;
            count.lost += lost;
        }
    }

    fn turn(&mut self, now: Instant) {
        let past = now.saturating_since(self.since);
        if past >= STRETCH {
            let before = if past < STRETCH * 2 { self.stretches[1] } else { Count::default() };
            self.stretches = [before, Count::default()];
            self.since = now;
        }
    }

    /// Datagrams of which is known whether they arrived.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.total.sent
    }

    /// Those of them that did not.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.total.lost
    }

    /// The part that was lost in the last half-minute, blockages and full queues included; `None` if nothing is known of it.
    #[must_use]
    pub fn loss(&self, now: Instant) -> Option<f64> {
        Self::loss_of([self], now)
    }

    /// [`Passage::loss`] of all of these together.
    pub fn loss_of<'a>(all: impl IntoIterator<Item = &'a Self>, now: Instant) -> Option<f64> {
        let lately = all.into_iter().filter(|it| now.saturating_since(it.since) < STRETCH * 2);
        let (sent, lost) = lately
            .flat_map(|it| &it.stretches)
            .fold((0, 0), |(sent, lost), count| (sent + count.sent, lost + count.lost));
        (sent > 0).then(|| lost as f64 / sent as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Totals;
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn span(sent: u64, received: u64) -> Span {
        let totals = |datagrams| Totals { datagrams, bytes: 0 };
        Span { sent: totals(sent), received: totals(received), ..Span::default() }
    }

    #[test]
    fn what_is_late_is_not_lost_and_what_was_lost_is_forgotten() {
        let mut passage = Passage::default();
        assert_eq!(passage.loss(at(1)), None);
        passage.on_span(at(1), &span(100, 80));
        passage.on_span(at(2), &span(100, 110));
        assert_eq!(
            (passage.sent(), passage.lost(), passage.loss(at(2))),
            (200, 10, Some(0.05)),
            "ten were late"
        );
        passage.on_span(at(16), &span(200, 100));
        passage.on_span(at(17), &span(0, 0));
        assert_eq!(passage.loss(at(17)), Some(0.275), "both stretches");
        passage.on_span(at(32), &span(100, 100));
        assert_eq!(passage.loss(at(32)), Some(100.0 / 300.0), "the first is forgotten");
        assert_eq!(passage.loss(at(63)), None, "nothing was told for long");
        passage.on_span(at(100), &span(10, 9));
        passage.on_span(at(101), &span(10, 10));
        assert_eq!(passage.loss(at(101)), Some(0.05));
        assert_eq!((passage.sent(), passage.lost()), (520, 111));
    }
}
