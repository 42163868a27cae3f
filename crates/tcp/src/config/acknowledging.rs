//! When received data are acknowledged.

use serde::{Deserialize, Serialize};

/// Whether acknowledgements wait for a second segment. Gaps, their filling and duplicates never wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedAcks {
    /// Every segment is acknowledged at once.
    Off,
    /// Every second segment at once, a single one after `delayed-ack-timeout` (RFC 5681, 4.2).
    On,
    /// Every segment until half of the largest window was received, then as `on`: DAASS (RFC 2760, 3.2.3), as
    /// Linux 2.4 can be made to do it (Kojo et al. 2005, section 4).
    AfterSlowStart,
    /// As Linux does today: up to 16 segments at once at the start, after a pause and after a duplicate, and else
    /// a delay that adapts between `delayed-ack-timeout` and 200 ms.
    QuickAcks,
}
