//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004: COTMLL, a link
//! layer that never stops sending, under TCP on a channel that is blocked now and then. The study is in
//! `scenarios/faulkner`.

mod age;
mod alternation;
mod flags;
mod order;
mod sendings;

use crate::observe::events::LinkDirection;
use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] =
    &[&age::AGE, &alternation::ALTERNATION, &flags::FLAGS, &order::ORDER, &sendings::SENDINGS];

/// The link of the scenarios.
const LINK: &str = "satellite";
const DIRECTIONS: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];
/// COTMLL's sequence numbers on the air.
const SPACE: usize = 1024;
