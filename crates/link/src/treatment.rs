//! How one packet is to be treated on its way over a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dscp::DscpSet;

/// What a packet asks of the link, as its mark (DSCP) says. A protocol honours what it can: `plain` sends everything once, and but for
/// coded ARQ nobody has a class of its own for what is interactive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// Deliver it, however long that takes.
    #[default]
    Reliable,
    /// Deliver it, and soon: somebody waits for it, and there is little of it.
    Interactive,
    /// Each of its frames is sent once, whether or not it arrives: late is worse than lost.
    Once,
}

impl Treatment {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Once, Self::Interactive, Self::Reliable];

    /// Whether each frame of the packet is transmitted once at most.
    #[must_use]
    #[inline]
    pub const fn is_once(&self) -> bool {
        matches!(self, Self::Once)
    }
}

/// Which packets are treated apart from the others, by their marks (RFC 4594).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDscp {
    /// Those that are sent [once](Treatment::Once).
    pub once: DscpSet,
    /// Those that are [interactive](Treatment::Interactive).
    pub interactive: DscpSet,
}

impl ByDscp {
    /// As RFC 4594 means the marks. Once: telephony (46; 44 where it was admitted, RFC 5865), whose packets the carrier treats alike.
    /// Interactive: low-latency data (18, 20, 22), signalling (40), routing and operation (48, 56, 16).
    pub const USUAL: Self =
        Self { once: DscpSet::of(&[44, 46]), interactive: DscpSet::of(&[16, 18, 20, 22, 40, 48, 56]) };

    /// What a packet asks for.
    #[must_use]
    pub fn treatment(&self, packet: &[u8]) -> Treatment {
        if self.once.holds(packet) {
            Treatment::Once
        } else if self.interactive.holds(packet) {
            Treatment::Interactive
        } else {
            Treatment::Reliable
        }
    }
}
