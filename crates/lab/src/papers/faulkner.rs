//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004: COTMLL, a link
//! layer that never stops sending, under TCP on a channel that is blocked now and then. The study is in
//! `scenarios/faulkner`.

mod acknowledgements;
mod age;
mod alternation;
mod backlog;
mod blockages;
mod chain;
mod choreography;
mod error_trace;
mod flags;
mod gilbert_capacity;
mod order;
mod recoveries;
mod reordering;
mod restart;
mod trace;
mod transmissions;
mod waste;

use crate::observe::events::LinkDirection;
use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] = &[
    &acknowledgements::ACKNOWLEDGEMENTS,
    &age::AGE,
    &alternation::ALTERNATION,
    &backlog::BACKLOG,
    &blockages::MET,
    &blockages::RESUMPTION,
    &gilbert_capacity::CAPACITY,
    &chain::CHAIN,
    &choreography::CHOREOGRAPHY,
    &error_trace::ERROR_TRACE,
    &flags::FLAGS,
    &order::ORDER,
    &recoveries::RECOVERIES,
    &reordering::REORDERING,
    &restart::RESTART,
    &transmissions::TRANSMISSIONS,
    &waste::WASTE,
];

/// The link of the scenarios.
const LINK: &str = "satellite";
const DIRECTIONS: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];
/// COTMLL's sequence numbers on the air.
const SPACE: usize = 1024;
