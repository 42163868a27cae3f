//! A propagation delay that changes: in steps, slowly, or slot by slot.

use core::ops::Range;

use base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::PositiveTime;

/// From a time on the propagation delay is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DelayChange {
    /// When the change starts, from the start of the run.
    pub at: Duration,
    /// Propagation delay, one way, after the change.
    pub delay: Duration,
    /// How long the change takes; meanwhile the delay moves at an even pace. Default: no time, a step.
    #[serde(default)]
    pub over: Duration,
}

/// Slots of equal length, each of which adds its own time to the delay, as satellites that take turns do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DelaySlots {
    /// Length of a slot.
    pub every: PositiveTime,
    /// What each slot adds to the delay; after the last comes the first again.
    #[schemars(length(min = 1))]
    pub more: Vec<Duration>,
    /// Silence at the start of each slot but the first: what is on the air then is lost. Default: none.
    #[serde(default)]
    pub gap: Duration,
}

/// The delay over time.
#[derive(Debug)]
pub(super) struct Course {
    /// The delay until the next change starts.
    delay: Duration,
    /// Those that are not over, the first one last.
    changes: Vec<DelayChange>,
    slots: Option<DelaySlots>,
}

impl Course {
    /// A delay that changes like this. The changes are in the order of their times, and none starts before the last is over.
    pub(super) fn new(delay: Duration, changes: &[DelayChange], slots: Option<&DelaySlots>) -> Self {
        let slots = slots.filter(|slots| !slots.more.is_empty()).cloned();
        Self { delay, changes: changes.iter().rev().copied().collect(), slots }
    }

    /// The delay of what has left at `at`. Asked in the order of time.
    pub(super) fn delay(&mut self, at: Instant) -> Duration {
        let since_start = at.saturating_since(Instant::ZERO);
        while let Some(done) = self.changes.pop_if(|next| next.at.saturating_add(next.over) <= since_start) {
            self.delay = done.delay;
        }
        let delay = match self.changes.last() {
            Some(next) if next.at < since_start => {
                between(self.delay, next.delay, since_start - next.at, next.over)
            }
            _ => self.delay,
        };
        let more = self.slots.as_ref().map_or(Duration::ZERO, |slots| slots.more_at(at));
        delay.saturating_add(more)
    }

    /// Whether the silence at the start of a slot meets what is on the air then.
    pub(super) fn is_silent(&self, on_air: &Range<Instant>) -> bool {
        self.slots.as_ref().is_some_and(|slots| slots.is_silent(on_air))
    }
}

impl DelaySlots {
    fn more_at(&self, at: Instant) -> Duration {
        let slot = at.as_nanos() / self.every.get().as_nanos();
        self.more[(slot % self.more.len() as u64) as usize]
    }

    fn is_silent(&self, on_air: &Range<Instant>) -> bool {
        if self.gap.is_zero() {
            return false;
        }
        let every = self.every.get().as_nanos();
        let (start, end) = (on_air.start.as_nanos(), on_air.end.as_nanos());
        // The last slot that has started before the packet has left.
        let slot = end.saturating_sub(1).max(start) / every;
        slot > 0 && start < (slot * every).saturating_add(self.gap.as_nanos())
    }
}

/// What is `part` of the way in `whole` from one delay to another, rounded down.
fn between(from: Duration, to: Duration, part: Duration, whole: Duration) -> Duration {
    let way = u128::from(from.abs_diff(to).as_nanos()) * u128::from(part.as_nanos());
    let moved = Duration::from_nanos((way / u128::from(whole.as_nanos().max(1))) as u64);
    if to > from { from.saturating_add(moved) } else { from.saturating_sub(moved) }
}
