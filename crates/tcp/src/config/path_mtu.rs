//! Paths that take smaller packets than the two ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a sender finds out that packets are too big for the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathMtu {
    /// Not at all.
    Off,
    /// Routers tell (RFC 1191, RFC 8201).
    Icmp,
    /// So they do; and where they do not, time-outs of full segments make them smaller, and single larger segments find
    /// out how large they may be (RFC 4821).
    Probe,
}
