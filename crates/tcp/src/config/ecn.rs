//! Explicit congestion notification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether marks of the network count as congestion (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnUse {
    /// ECN is off, also if a peer asks for it.
    Off,
    /// Used if the peer asks for it, as Linux does by default.
    Passive,
    /// Asked for, and used if the peer agrees.
    On,
    /// As `on`; and where the peer agrees, marks alone lower the window: a loss is repaired, and nothing more
    /// (RFC 8311, 4.1, experiment of loss-tolerant TCP). A time-out still does, for it leaves nobody to echo marks.
    Only,
}

impl EcnUse {
    /// Whether a SYN asks for it.
    #[must_use]
    pub const fn asks(self) -> bool {
        matches!(self, Self::On | Self::Only)
    }
}
