//! `[tcp.acknowledgements]`: when received data are acknowledged, and how.

use base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The receiver's side. In TOML `acknowledgements = "off"` is short for `delay` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct AcknowledgementConfig {
    /// Whether acknowledgements wait for a second segment (RFC 5681, 4.2).
    pub delay: DelayedAcks,
    /// How long acknowledgements wait; with `quick-acks`, the minimum. At most 500 ms (RFC 1122, 4.2.3.2); 40 ms in Linux, 200 ms in BSD.
    pub timeout: Duration,
    /// With `quick-acks`: what says PSH, or is shorter than the segments before it, is acknowledged as soon as the application has read all
    /// that there is (Linux; since 6.6 for full segments too).
    pub pushed: bool,
    /// Report data that came twice (RFC 2883), where selective acknowledgements are in use.
    pub dsack: bool,
}

impl Default for AcknowledgementConfig {
    fn default() -> Self {
        Self { delay: DelayedAcks::On, timeout: Duration::from_millis(40), pushed: false, dsack: true }
    }
}

/// Whether acknowledgements wait for a second segment. Gaps, their filling and duplicates never wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedAcks {
    /// Every segment is acknowledged at once.
    Off,
    /// Every second segment at once, a single one after `timeout` (RFC 5681, 4.2).
    On,
    /// Every segment until half of the largest window was received, then as `on`: DAASS (RFC 2760, 3.2.3), as
    /// Linux 2.4 can be made to do it (Kojo et al. 2005, section 4).
    AfterSlowStart,
    /// As Linux does today: up to 16 segments at once at the start, after a pause and after a duplicate, and else
    /// a delay that adapts between `timeout` and 200 ms.
    QuickAcks,
}
