//! Kojo et al. 2005: SLACP and TCP's enhancements over bandwidth on demand.

mod footprint;
mod overshoot;
mod recovery;
mod terminal;
mod transfer;

use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] = &[&transfer::TRANSFER, &transfer::TRACE, &footprint::FOOTPRINT];

/// The link of the scenario, and its hosts: figure 2.
const LINK: &str = "satellite";
const SENDER: &str = "h1";
const RECEIVER: &str = "h2";
/// The transfer that is measured.
const FILE: &str = "file";
