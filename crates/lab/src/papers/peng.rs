//! J. Peng, P. Andreadis, C. Bélisle, M. Barbeau, "Improving TCP Performance over Long Delay Satellite Links", 2001:
//! STCP, congestion state that the connections of a host pair share. The study is in `scenarios/peng`.

mod consecutive;
mod figure_2;
mod ftp;
mod losses;
mod traced;

use crate::study::probe::Probe;

/// The probes of this study.
pub(super) const PROBES: &[&Probe] =
    &[&consecutive::PAGES, &consecutive::FILES, &ftp::FTP, &figure_2::WINDOWS, &losses::LOSSES];

/// Payload bytes of a full segment: no options, an Ethernet's MTU.
const MSS: f64 = 1460.0;
