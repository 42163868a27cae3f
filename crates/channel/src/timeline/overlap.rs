//! The times at which several obstacles all stand in the way.

use core::ops::Range;

use base::Instant;

use super::Timeline;

/// Blocked while every one of several timelines is.
#[derive(Clone, Debug)]
pub struct Overlap {
    timelines: Vec<Timeline>,
    /// The interval of each that is looked at; empty when one of them has ended.
    current: Vec<Range<Instant>>,
}

impl Overlap {
    /// The overlap of these, of which there is at least one.
    #[must_use]
    pub fn new(mut timelines: Vec<Timeline>) -> Self {
        let current = timelines.iter_mut().map(Iterator::next).collect::<Option<_>>().unwrap_or_default();
        Self { timelines, current }
    }
}

impl Iterator for Overlap {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        loop {
            let start = self.current.iter().map(|blocked| blocked.start).max()?;
            let end = self.current.iter().map(|blocked| blocked.end).min()?;
            // Those that end first have nothing more in common with what the others are at.
            for (timeline, blocked) in self.timelines.iter_mut().zip(&mut self.current) {
                if blocked.end == end {
                    match timeline.next() {
                        Some(next) => *blocked = next,
                        None => {
                            self.current.clear();
                            break;
                        }
                    }
                }
            }
            if start < end {
                return Some(start..end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{GilbertElliott, Trace};
    use base::{Duration, Rng};

    fn spans(csv: &str) -> Timeline {
        Timeline::Trace(Trace::parse(csv).unwrap())
    }

    fn seconds(timelines: Vec<Timeline>) -> Vec<(f64, f64)> {
        Overlap::new(timelines)
            .map(|blocked| (blocked.start.as_secs_f64(), blocked.end.as_secs_f64()))
            .collect()
    }

    #[test]
    fn only_what_all_share_is_left() {
        let (a, b) = ("1,4\n5,6\n8,12\n20,21", "2,3\n3.5,9\n11,30");
        assert_eq!(
            seconds(vec![spans(a), spans(b)]),
            [(2.0, 3.0), (3.5, 4.0), (5.0, 6.0), (8.0, 9.0), (11.0, 12.0), (20.0, 21.0)]
        );
        assert_eq!(seconds(vec![spans(a)]), [(1.0, 4.0), (5.0, 6.0), (8.0, 12.0), (20.0, 21.0)]);
        assert_eq!(seconds(vec![spans(a), Timeline::Open]), []);
        assert_eq!(seconds(vec![]), []);
    }

    /// Independent obstacles are in the way together for f^N of the time.
    #[test]
    fn independent_obstacles_rarely_coincide() {
        let end = Instant::ZERO + Duration::from_secs(40_000);
        for (links, expected) in [(1, 0.5), (2, 0.25), (4, 0.0625)] {
            let one = |k| GilbertElliott::new(0.5, Duration::from_secs(1), Rng::named(k, "link"));
            let timelines = (0..links).map(|k| Timeline::GilbertElliott(Box::new(one(k)))).collect();
            let all = Timeline::Overlap(Box::new(Overlap::new(timelines)));
            let share = all.blocked_time(Instant::ZERO..end).as_secs_f64() / 40_000.0;
            assert!((share / expected - 1.0).abs() < 0.05, "{links}: {share}");
        }
    }
}
