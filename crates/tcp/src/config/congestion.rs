//! Which congestion controller a connection has, and what a user may set about it.

use serde::{Deserialize, Serialize};

/// A congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). It paces whatever `pacing` says.
    Bbr,
}

/// How slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// At the threshold or with a loss (RFC 5681, 3.1).
    Standard,
    /// Also when round trips lengthen, after a while of slower growth (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
    /// Also when round trips lengthen or acknowledgements come in a train as long as the path (Ha and Rhee, 2011).
    #[serde(rename = "hystart")]
    HyStart,
}
