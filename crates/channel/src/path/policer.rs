//! A policer: a token bucket that drops what exceeds it and delays nothing.

use base::units::Size;
use base::{Instant, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a policer lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policer {
    /// Bits per second in the long run.
    pub rate: Rate,
    /// What may pass at once after a pause.
    pub burst: Size,
}

/// The tokens of a policer, full at the start.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: u128,
    /// In bits times [`SECOND`], so that no fraction of a token is dropped.
    tokens: u128,
    /// How many there may be.
    most: u128,
    filled_at: Instant,
}

/// Nanoseconds.
const SECOND: u128 = 1_000_000_000;

impl Bucket {
    pub(super) fn new(policer: &Policer) -> Self {
        let most = u128::from(policer.burst.0) * 8 * SECOND;
        Self { rate: policer.rate.as_bps().into(), tokens: most, most, filled_at: Instant::ZERO }
    }

    /// Takes the tokens for `len` bytes at `now`, if there are enough.
    pub(super) fn take(&mut self, now: Instant, len: u64) -> bool {
        let span = now.saturating_since(self.filled_at);
        self.filled_at = self.filled_at.max(now);
        // Below 2^64 times 2^64.
        self.tokens = self.tokens.saturating_add(self.rate * u128::from(span.as_nanos())).min(self.most);
        let wanted = u128::from(len) * 8 * SECOND;
        let left = self.tokens.checked_sub(wanted);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}
