//! Random additions to a delay.

use base::units::Probability;
use base::{Duration, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the delays of packets vary at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Each packet takes longer by a random time and still arrives after those sent before it.
    #[serde(rename_all = "kebab-case")]
    InOrder {
        /// The longest such time; all up to it are equally likely.
        up_to: Duration,
    },
    /// Some packets take longer, and those sent after them overtake them.
    Overtaking {
        /// Of each packet's being late.
        probability: Probability,
        /// The shortest time by which one is late.
        from: Duration,
        /// The longest; all between the two are equally likely.
        to: Duration,
    },
}

impl Jitter {
    /// Whether there is none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The longest time by which a packet takes longer.
    #[must_use]
    pub const fn longest(&self) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::InOrder { up_to } => up_to,
            Self::Overtaking { to, .. } => to,
        }
    }
}

/// A random time from `least` to `most`.
pub(super) fn between(rng: &mut Rng, least: Duration, most: Duration) -> Duration {
    let span = most.saturating_sub(least).as_nanos().saturating_add(1);
    least.saturating_add(Duration::from_nanos(rng.below(span)))
}
