//! Loss-Tolerant TCP: ten flows through a dumbbell whose bottleneck marks by RED and loses packets behind its queue.

mod dumbbell;
mod estimate;
mod samples;

use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] = &[&dumbbell::DUMBBELL, &estimate::ESTIMATE];
