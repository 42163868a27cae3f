//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004: COTMLL, a
//! link layer that never stops sending, under TCP on a channel that is blocked now and then.
//!
//! A topic is a file: what it runs, how its claims are decided, its figures. `scenarios/faulkner/baseline.toml` says what
//! the thesis fixes and what was chosen where it is silent; `docs/faulkner.md` has the verdicts and what they rest on.

mod analysis;
mod asymmetry;
mod bit_errors;
mod blockage;
mod drawing;
mod framing;
mod latency;
mod mechanism;
mod optimum;
mod ordering;
mod persistence;
mod recovery;
mod setting;
mod sharing;
mod short_blockages;
mod steady_state;
mod window;

use crate::report::Figure;
use crate::reproduce::{Cell, Effort, Experiment, Method, Paper, Ruling, Samples, Study};

/// The thesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faulkner;

/// A part of the thesis.
struct Topic {
    experiments: &'static [Experiment],
    /// What became of a claim; none if it is another topic's.
    rule: fn(&str, &Samples) -> Option<Ruling>,
    /// Why a claim comes out as it does, where we know.
    remark: fn(&str) -> Option<&'static str>,
    cells: fn(&Samples) -> Vec<Cell>,
    figures: fn(&Samples) -> Vec<Figure>,
}

/// In the order of the thesis.
const TOPICS: [Topic; 15] = [
    analysis::TOPIC,
    bit_errors::TOPIC,
    steady_state::TOPIC,
    blockage::TOPIC,
    recovery::TOPIC,
    short_blockages::TOPIC,
    latency::TOPIC,
    asymmetry::TOPIC,
    window::TOPIC,
    optimum::TOPIC,
    ordering::TOPIC,
    persistence::TOPIC,
    mechanism::TOPIC,
    framing::TOPIC,
    sharing::TOPIC,
];

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

    fn remark(&self, claim: &str) -> Option<&'static str> {
        TOPICS.iter().find_map(|topic| (topic.remark)(claim))
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
        let mut ruling = ruled.unwrap_or_else(|| Ruling::undecided("no experiment decides it"));
        if samples.effort() == Effort::Quick {
            // Some of what claims ask for takes more cases or longer runs than that has.
            ruling.reason = ruling.reason.map(|reason| format!("{reason} from a quick run"));
        }
        ruling
    }

    fn cells(&self, samples: &Samples) -> Vec<Cell> {
        TOPICS.iter().flat_map(|topic| (topic.cells)(samples)).collect()
    }

    fn undrawn(&self) -> &'static [&'static str] {
        &["3-3", "connections", "efl", "mechanism", "shared-links", "transactions"]
    }

    fn figures(&self, samples: &Samples) -> Vec<Figure> {
        TOPICS.iter().flat_map(|topic| (topic.figures)(samples)).collect()
    }
}
