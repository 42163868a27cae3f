//! `[tcp.fec]`: Loss-Tolerant TCP's erasure code and segment sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range;

/// What a sender does against erasures beyond retransmitting. All of it is off by default; the presets `lt-tcp` and `lt-tcp-plus` switch
/// it on. An end that codes, or wants to be sent repairs, says so in its SYN; if the other does not, there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct FecConfig {
    /// Repairs behind each block of data, as many as the erasure rate asks for.
    pub proactive: bool,
    /// Repairs when duplicate acknowledgements or reports show that segments are missing.
    pub reactive: bool,
    /// Segments get smaller with the window, so that there are enough of them.
    pub adaptive_mss: bool,
    /// Bytes of data of the smallest segment, 64 to 65495.
    #[serde(deserialize_with = "range::min_mss")]
    #[schemars(range(min = range::MIN_MSS, max = range::MAX_MSS))]
    pub min_mss: u32,
    /// Segments that the window should have at least, 2 to 64: G of the paper.
    #[serde(deserialize_with = "range::granularity")]
    #[schemars(range(min = 2, max = 64))]
    pub granularity: u32,
    /// How the erasure rate is averaged.
    pub estimator: Estimator,
    /// What makes a sender repair a block again.
    pub repair: RepairRule,
    /// How a block's segments and repairs follow from the window and the erasure rate.
    #[serde(skip_serializing_if = "Layout::is_default")]
    pub layout: Layout,
}

/// How a block's segments and repairs follow from the window B in bytes and the erasure rate E: readings of the paper's Figure 1a, whose
/// print contradicts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The segment size B E / f(E), but full segments where less than half a segment is expected to be lost; at least f(E) repairs.
    #[default]
    Restored,
    /// The formulas as printed, at any rate: the segment size B E / f(E), so the smallest without losses, and W E repairs, at least one.
    Printed,
    /// As printed, the test of W / MSS against the granularity in segments, which no window passes: as many segments as the granularity
    /// says, and f(E) repairs; more segments only where these would exceed the MSS.
    Granular,
}

impl Layout {
    /// Whether it is what is meant where nothing is said.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the erasure rate is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Equations 1 and 2 of the paper: high, and stuck without losses.
    Adaptive,
    /// An average over the last 200 segments.
    Steady,
}

/// What makes a sender repair a block again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairRule {
    /// Each duplicate acknowledgement, by a fixed number of repairs: the paper's.
    Duplicates,
    /// The receiver's report of what the oldest block lacks, by as many repairs as make it whole with a high probability; and once
    /// more when a round trip has passed without an answer.
    Missing,
}

impl FecConfig {
    /// Nothing of it.
    pub const OFF: Self = Self {
        proactive: false,
        reactive: false,
        adaptive_mss: false,
        min_mss: 200,
        granularity: 10,
        estimator: Estimator::Adaptive,
        repair: RepairRule::Duplicates,
        layout: Layout::Restored,
    };

    /// Whether repairs are sent, and offered to be taken.
    #[must_use]
    pub const fn codes(&self) -> bool {
        self.proactive || self.reactive
    }
}

impl Default for FecConfig {
    fn default() -> Self {
        Self::OFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_stored_where_it_is_not_the_usual_one() {
        for layout in [Layout::Restored, Layout::Printed, Layout::Granular] {
            let config = FecConfig { layout, ..FecConfig::OFF };
            let stored = toml::to_string(&config).unwrap();
            assert_eq!(stored.contains("layout"), layout != Layout::Restored, "{stored}");
            assert_eq!(base::config::parse("stored", &stored), Ok(config));
        }
    }
}
