//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004: COTMLL, a
//! link layer that never stops sending, under TCP on a channel that is blocked now and then.
//!
//! A topic is a file: what it runs, how its claims are decided, its figures. `scenarios/faulkner/baseline.toml` says what
//! the thesis fixes and what was chosen where it is silent; `docs/faulkner.md` has the verdicts and what they rest on.

mod blockage;
mod drawing;
mod setting;

use std::io;

use crate::report::Figure;
use crate::reproduce::{Cell, Experiment, Method, Paper, Ruling, Samples, Study};

/// The thesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faulkner;

/// A part of the thesis.
struct Topic {
    experiments: &'static [Experiment],
    /// What became of a claim; none if it is another topic's.
    rule: fn(&str, &Samples) -> Option<Ruling>,
    cells: fn(&Samples) -> Vec<Cell>,
    figures: fn(&Samples) -> io::Result<Vec<Figure>>,
}

const TOPICS: [Topic; 1] = [blockage::TOPIC];

impl Paper for Faulkner {
    fn name(&self) -> &'static str {
        "faulkner"
    }

    fn title(&self) -> &'static str {
        "Faulkner 2004, Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links"
    }

    fn claims(&self) -> (&'static str, &'static str) {
        ("scenarios/faulkner/claims.toml", include_str!("../../../../scenarios/faulkner/claims.toml"))
    }

    fn method(&self) -> Method {
        Method::Study(&Self)
    }

    fn remark(&self, _claim: &str) -> Option<&'static str> {
        None
    }
}

impl Study for Faulkner {
    fn experiments(&self) -> Vec<&'static Experiment> {
        TOPICS.iter().flat_map(|topic| topic.experiments).collect()
    }

    fn setting(&self) -> &'static str {
        "262144 bit/s, 250 ms one way, COTMLL with a window of 512 frames that delivers in order, NewReno with SACK"
    }

    fn rule(&self, claim: &str, samples: &Samples) -> Ruling {
        let ruled = TOPICS.iter().find_map(|topic| (topic.rule)(claim, samples));
        ruled.unwrap_or_else(|| Ruling::undecided("no experiment decides it"))
    }

    fn cells(&self, samples: &Samples) -> Vec<Cell> {
        TOPICS.iter().flat_map(|topic| (topic.cells)(samples)).collect()
    }

    fn figures(&self, samples: &Samples) -> io::Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for topic in TOPICS {
            figures.extend((topic.figures)(samples)?);
        }
        Ok(figures)
    }
}
