//! The times at which any of several obstacles stands in the way.

use core::iter::Peekable;
use core::ops::Range;

use base::Instant;

use super::Timeline;

/// Blocked while at least one of several timelines is. Intervals that overlap are cut, not merged: together they may go on for
/// ever.
#[derive(Clone, Debug)]
pub struct Union {
    timelines: Vec<Peekable<Timeline>>,
    /// Everything before this has been said.
    covered: Instant,
}

impl Union {
    /// The union of these.
    #[must_use]
    pub fn new(timelines: Vec<Timeline>) -> Self {
        let timelines = timelines.into_iter().map(Iterator::peekable).collect();
        Self { timelines, covered: Instant::ZERO }
    }

    /// The interval that starts first.
    fn first(&mut self) -> Option<Range<Instant>> {
        let starts = self.timelines.iter_mut().filter_map(|timeline| {
            let start = timeline.peek()?.start;
            Some((start, timeline))
        });
        starts.min_by_key(|(start, _)| *start)?.1.next()
    }
}

impl Iterator for Union {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        loop {
            let blocked = self.first()?;
            let start = blocked.start.max(self.covered);
            if start < blocked.end {
                self.covered = blocked.end;
                return Some(start..blocked.end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Trace;

    fn spans(csv: &str) -> Timeline {
        Timeline::Trace(Trace::parse(csv).unwrap())
    }

    #[test]
    fn what_any_has_is_there_once() {
        let seconds = |timelines| {
            let spans = Union::new(timelines).map(|span| (span.start.as_secs_f64(), span.end.as_secs_f64()));
            spans.collect::<Vec<_>>()
        };
        let (a, b) = ("1,4\n5,6\n8,12\n20,21", "2,3\n3.5,5\n12,13\n30,31");
        let union =
            [(1.0, 4.0), (4.0, 5.0), (5.0, 6.0), (8.0, 12.0), (12.0, 13.0), (20.0, 21.0), (30.0, 31.0)];
        assert_eq!(seconds(vec![spans(a), spans(b)]), union);
        assert_eq!(seconds(vec![spans(b), Timeline::Open, spans(a)]), union);
        assert_eq!(seconds(vec![Timeline::Open]), []);
    }
}
