//! Casoni and Luppi 2005: split TCP for vehicles, with four controllers on the satellite segment.

mod flows;
mod segments;

use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] = &[&flows::FLOWS, &segments::SEGMENTS];
