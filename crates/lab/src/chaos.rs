//! Scenarios that nobody would write: drawn from a seed, run, and held to what has to be true of any of them.
//!
//! Of every case, whatever is in it: nothing panics and time goes on; what an application receives is what was sent, once and in order; all that ends
//! arrives; a second run is the same; and the work for a packet is bounded. A case that fails is made smaller as long as it fails in the same way.

mod draw;
mod shrink;
mod trial;

use std::collections::BTreeMap;

use serde::Serialize;

pub use trial::Fault;

/// What became of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its seed.
    pub seed: u64,
    /// Packets and frames that its lines have carried.
    pub packets: u64,
    /// Inputs that its nodes handled.
    pub events: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All that has to be true is.
    Held,
    /// What was drawn is no scenario: why.
    Refused(String),
    /// Something is wrong.
    Failed(Failure),
}

/// A case that failed, as small as it could be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What is wrong.
    pub fault: Fault,
    /// What exactly.
    pub message: String,
    /// A scenario that shows it, which `longhaul run` takes.
    pub scenario: String,
}

/// What many cases came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// How many there were.
    pub cases: u64,
    /// Those of them that were no scenarios.
    pub refused: u64,
    /// Packets and frames that lines have carried.
    pub packets: u64,
    /// Inputs that nodes handled.
    pub events: u64,
    /// Cases that failed, by their seeds.
    pub failures: BTreeMap<u64, Failure>,
}

impl Tally {
    /// Adds a case.
    pub fn add(&mut self, case: Case) {
        self.cases += 1;
        self.packets += case.packets;
        self.events += case.events;
        match case.outcome {
            Outcome::Held => {}
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Failed(failure) => drop(self.failures.insert(case.seed, failure)),
        }
    }

    /// As one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a tally has only names and numbers")
    }
}

/// Whether the scenario of a seed, as it is written, has these words in it.
#[must_use]
pub fn is_with(seed: u64, words: &str) -> bool {
    draw::scenario(seed).contains(words)
}

/// Draws the case of a seed, runs it, and makes it smaller if it fails.
#[must_use]
pub fn case(seed: u64) -> Case {
    let text = draw::scenario(seed);
    let trial = trial::run(&text);
    let outcome = match trial.verdict {
        trial::Verdict::Held => Outcome::Held,
        trial::Verdict::Refused(why) => Outcome::Refused(why),
        trial::Verdict::Failed(fault, message) => {
            let (scenario, message) = shrink::smallest(text, fault, message);
            Outcome::Failed(Failure { fault, message, scenario })
        }
    };
    Case { seed, packets: trial.packets, events: trial.events, outcome }
}
