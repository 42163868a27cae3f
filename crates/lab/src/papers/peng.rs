//! J. Peng, P. Andreadis, C. Bélisle, M. Barbeau, "Improving TCP Performance over Long Delay Satellite Links", 2001:
//! STCP, congestion state that the connections of a host pair share.
//!
//! The paper leaves open the link's rate, the queue, the windows, the acknowledgement policy and the recovery scheme:
//! [`grid`] is a grid over these. `docs/peng.md` has the verdicts and what they rest on.

mod delays;
mod figure_2;
mod figures;
mod ftp;
mod grid;
mod losses;
mod pages;
mod remarks;
mod trial;

use std::io;
use std::path::Path;

use base::config::ConfigError;

use crate::bound;
use crate::claims::Measurements;
use crate::report::Figure;
use crate::reproduce::{
    Cell, FIRST_SEED, Grid, GridExperiment as Experiment, Method, Outcome, Paper, Point, Surveyed,
};
use crate::scenario::{Override, Scenario, Suite, Traffic};

/// The paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peng;

/// Payload bytes of a full segment: no options, an Ethernet's MTU.
const MSS: f64 = 1460.0;

const EXPERIMENTS: [Experiment; 5] = [
    Experiment {
        name: "ftp",
        figures: &["3"],
        claims: &[
            "peng-first-group-five-percent",
            "peng-tcp-learns-nothing",
            "peng-second-group-three-times",
            "peng-second-group-starts-quicker",
            "peng-ensemble-grows-like-one",
            "peng-fewer-congestion-losses",
            "peng-fair-and-conserving",
        ],
        work: 14,
        scenarios: ftp::scenarios,
        measure: ftp::measure,
    },
    Experiment {
        name: "pages",
        figures: &["4"],
        claims: &[
            "peng-tcp-learns-nothing",
            "peng-first-transfer-unchanged",
            "peng-pages-get-faster",
            "peng-third-page-three-times",
        ],
        work: 1,
        scenarios: pages::scenarios,
        measure: pages::measure,
    },
    Experiment {
        name: "delays",
        figures: &["5"],
        claims: &[
            "peng-tcp-learns-nothing",
            "peng-first-transfer-unchanged",
            "peng-second-file-faster-at-every-delay",
            "peng-gain-grows-with-delay",
        ],
        work: 32,
        scenarios: delays::scenarios,
        measure: delays::measure,
    },
    Experiment {
        name: "figure-2",
        figures: &["2"],
        claims: &["peng-fig2-start-from-aggregate", "peng-fig2-handover", "peng-fig2-release"],
        work: 17,
        scenarios: figure_2::scenarios,
        measure: figure_2::measure,
    },
    Experiment {
        name: "losses",
        figures: &["equations"],
        claims: &["peng-losses-dupack-local-timeout-global"],
        work: 20,
        scenarios: losses::scenarios,
        measure: losses::measure,
    },
];

impl Paper for Peng {
    fn name(&self) -> &'static str {
        "peng"
    }

    fn title(&self) -> &'static str {
        "Peng et al. 2001, Improving TCP Performance over Long Delay Satellite Links"
    }

    fn claims(&self) -> (&'static str, &'static str) {
        ("scenarios/peng/claims.toml", include_str!("../../../../scenarios/peng/claims.toml"))
    }

    fn method(&self) -> Method {
        Method::Grid(&Self)
    }

    fn remark(&self, claim: &str) -> Option<&'static str> {
        remarks::of(claim)
    }
}

impl Grid for Peng {
    fn experiments(&self) -> &'static [Experiment] {
        &EXPERIMENTS
    }

    fn points(&self, quick: bool) -> Vec<Point> {
        grid::points(quick)
    }

    fn cells(&self, point: &Point, runs: &[Measurements]) -> Result<Vec<Cell>, ConfigError> {
        let mut cells = ftp::cells(point, runs)?;
        cells.extend(pages::cells(point, runs)?);
        cells.extend(delays::cells(point, runs)?);
        Ok(cells)
    }

    fn figures(&self, outcome: &Outcome<'_>, surveyed: &Surveyed) -> io::Result<Vec<Figure>> {
        figures::figures(outcome, &surveyed.points[0])
    }
}

/// One of the paper's scenario files at a point, with more keys set.
fn scenario(file: &str, text: &str, point: &Point, more: &[Override]) -> Result<Suite, ConfigError> {
    let overrides: Vec<Override> = point.overrides.iter().chain(more).cloned().collect();
    Suite::parse(&format!("scenarios/peng/{file}.toml"), text, Path::new(""), &overrides)
}

/// The least time in which one connection of the transfer called `name` can be carried, in seconds.
fn bound_of_one(mut scenario: Scenario, name: &str) -> Option<f64> {
    for traffic in scenario.traffic.values_mut() {
        if let Traffic::Bulk(bulk) = traffic {
            bulk.connections = 1;
        }
    }
    bound::transfer_seconds(&scenario, FIRST_SEED, name)
}
