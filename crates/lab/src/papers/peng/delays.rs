//! Section 4.3 and figure 5: two sequential 1 MB files at one-way delays from 50 to 670 ms.

use std::io;

use base::config::ConfigError;

use super::bound_of_one;
use super::trial::Trial;
use crate::claims::Measurements;
use crate::reproduce::{Cell, Point};
use crate::scenario::{Override, Suite};

const SCENARIO: &str = include_str!("../../../../../scenarios/peng/delays.toml");

/// One way, in seconds: the ends of the range are the paper's, the steps ours.
pub(super) const DELAYS: [f64; 8] = [0.05, 0.10, 0.20, 0.30, 0.40, 0.50, 0.60, 0.67];

/// One suite a delay. The queue stays as it is: one network, at another distance.
pub(super) fn scenarios(point: &Point) -> Result<Vec<Suite>, ConfigError> {
    let at = |delay: f64| {
        let text = format!("link.satellite.channel.delay={} ms", (delay * 1e3).round());
        let delay: Override = text.parse().expect("a key and a value");
        super::scenario("delays", SCENARIO, point, &[delay])
    };
    DELAYS.into_iter().map(at).collect()
}

/// `file(scheme, n, delay)`.
pub(super) fn measure(suites: &[Suite], seed: u64) -> io::Result<Measurements> {
    let mut measured = Measurements::new();
    measured.set_numbers("DELAYS", DELAYS, "no delay");
    for (suite, delay) in suites.iter().zip(DELAYS) {
        for scheme in ["TCP", "STCP"] {
            let trial = Trial::of(suite, scheme, seed)?;
            for (number, file) in (1..).zip(trial.group("files")) {
                let arguments = [scheme.into(), f64::from(number).into(), delay.into()];
                measured.set_or("file", &arguments, file.seconds, "a file did not arrive within the run");
            }
        }
    }
    Ok(measured)
}

/// Figure 5.
pub(super) fn cells(point: &Point, runs: &[Measurements]) -> Result<Vec<Cell>, ConfigError> {
    let mut cells = Vec::new();
    for (suite, delay) in scenarios(point)?.into_iter().zip(DELAYS) {
        let bound = bound_of_one(suite.scenario, "files");
        for scheme in ["TCP", "STCP"] {
            for file in [1, 2] {
                let row = [
                    ("scheme", scheme.to_owned()),
                    ("file", file.to_string()),
                    ("delay", format!("{delay} s")),
                ];
                let cell = Cell::new("figure 5", &row, runs, &format!("file('{scheme}', {file}, {delay})"));
                cells.push(Cell { bound, ..cell });
            }
        }
    }
    Ok(cells)
}
