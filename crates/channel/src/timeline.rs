//! When a channel is blocked: the state of the sight between terminal and satellite over time.
//!
//! A timeline depends on its parameters and its random stream alone, never on what is sent, so reports can
//! draw it and any number of schemes can be run against it.

use core::ops::Range;

use base::time::overlap;
use base::{Duration, Instant};

mod gilbert_elliott;
mod later;
mod overlap;
mod periodic;
mod trace;
mod uniform;
mod union;

pub use gilbert_elliott::GilbertElliott;
pub use later::Later;
pub use overlap::Overlap;
pub use periodic::Periodic;
pub use trace::{Trace, TraceError, TraceErrorKind};
pub use uniform::{Uniform, UniformSpan};
pub use union::Union;

/// The blocked intervals of one realisation, from the start of the run: an iterator over intervals that are not
/// empty, do not overlap and come in order.
///
/// All but [`Timeline::Trace`] go on for ever; take what lies in the time of interest.
#[derive(Clone, Debug)]
pub enum Timeline {
    /// Never blocked.
    Open,
    /// Blocked at random.
    GilbertElliott(Box<GilbertElliott>),
    /// Blocked again and again after the same time.
    Periodic(Periodic),
    /// Blocked in bursts of uniform length, uniform times apart.
    Uniform(Box<Uniform>),
    /// Blocked when a recording was.
    Trace(Trace),
    /// Blocked when several others all are.
    Overlap(Box<Overlap>),
    /// Blocked when any of several others is.
    Union(Box<Union>),
    /// Blocked some time after another is.
    Later(Box<Later>),
}

impl Timeline {
    /// The blocked intervals in `range`, cut to it. Consumes the timeline up to there: start from a fresh one.
    pub fn blocked_in(self, range: Range<Instant>) -> impl Iterator<Item = Range<Instant>> {
        let (start, end) = (range.start, range.end);
        self.skip_while(move |blocked| blocked.end <= start)
            .take_while(move |blocked| blocked.start < end)
            .map(move |blocked| blocked.start.max(start)..blocked.end.min(end))
    }

    /// The time in `range` that is blocked. Consumes the timeline up to there: start from a fresh one.
    #[must_use]
    pub fn blocked_time(self, range: Range<Instant>) -> Duration {
        let parts = self.blocked_in(range.clone()).map(|blocked| overlap(&blocked, &range));
        parts.fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl Iterator for Timeline {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        match self {
            Self::Open => None,
            Self::GilbertElliott(timeline) => timeline.next(),
            Self::Periodic(timeline) => timeline.next(),
            Self::Uniform(timeline) => timeline.next(),
            Self::Trace(timeline) => timeline.next(),
            Self::Overlap(timeline) => timeline.next(),
            Self::Union(timeline) => timeline.next(),
            Self::Later(timeline) => timeline.next(),
        }
    }
}
