//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004: COTMLL, a link
//! layer that never stops sending, under TCP on a channel that is blocked now and then. The study is in
//! `scenarios/faulkner`.

mod acknowledgements;
mod backlog;
mod blockages;
mod capacity;
mod chain;
mod choreography;
mod error_trace;
mod recoveries;
mod reordering;
mod restart;
mod trace;
mod waste;

use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] = &[
    &acknowledgements::ACKNOWLEDGEMENTS,
    &backlog::BACKLOG,
    &blockages::MET,
    &blockages::RESUMPTION,
    &capacity::CAPACITY,
    &chain::CHAIN,
    &choreography::CHOREOGRAPHY,
    &error_trace::ERROR_TRACE,
    &recoveries::RECOVERIES,
    &reordering::REORDERING,
    &restart::RESTART,
    &waste::WASTE,
];
