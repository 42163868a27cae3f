//! Standing: how many answers a caller may have, and which of its calls are new.

use base::{Duration, Instant};

use super::reception::Call;
use crate::allowance::Allowance;

/// What is kept of a caller, besides its session.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    answers: Allowance,
    /// The rank of the last initiation that was answered.
    answered: (u64, u64),
}

/// Answers to one peer: it shakes hands every two minutes, and more often only while the link loses what it sends.
const ANSWERS: Allowance = Allowance::new(20, Duration::from_millis(100));

impl Default for Standing {
    fn default() -> Self {
        Self { answers: ANSWERS, answered: (0, 0) }
    }
}

impl Standing {
    /// Whether one more answer is allowed, which counts.
    pub fn allows_answer(&mut self, now: Instant) -> bool {
        self.answers.take(now)
    }

    /// Whether an initiation ranks above all that were answered. One that does not may be old, and is to be challenged again.
    #[must_use]
    pub fn is_newest(&self, call: &Call) -> bool {
        call.rank() > self.answered
    }

    /// An initiation is answered.
    pub fn on_answered(&mut self, call: &Call) {
        self.answered = call.rank();
    }
}
