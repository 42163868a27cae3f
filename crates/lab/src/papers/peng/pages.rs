//! Section 4.2 and figure 4: three consecutive pages of 100 kB, one new persistent connection each.

use std::io;

use base::config::ConfigError;

use super::bound_of_one;
use super::trial::Trial;
use crate::claims::Measurements;
use crate::reproduce::{Cell, Point};
use crate::scenario::Suite;

const SCENARIO: &str = include_str!("../../../../../scenarios/peng/pages.toml");

pub(super) fn scenarios(point: &Point) -> Result<Vec<Suite>, ConfigError> {
    Ok(vec![super::scenario("pages", SCENARIO, point, &[])?])
}

/// `page(scheme, n)`.
pub(super) fn measure(suites: &[Suite], seed: u64) -> io::Result<Measurements> {
    let mut measured = Measurements::new();
    for scheme in ["TCP", "STCP"] {
        let trial = Trial::of(&suites[0], scheme, seed)?;
        for (number, page) in (1..).zip(trial.group("pages")) {
            let arguments = [scheme.into(), f64::from(number).into()];
            measured.set_or("page", &arguments, page.seconds, "a page did not arrive within the run");
        }
    }
    Ok(measured)
}

/// Figure 4.
pub(super) fn cells(point: &Point, runs: &[Measurements]) -> Result<Vec<Cell>, ConfigError> {
    let bound = bound_of_one(scenarios(point)?.remove(0).scenario, "pages");
    let mut cells = Vec::new();
    for scheme in ["TCP", "STCP"] {
        for page in 1..=3 {
            let row = [("scheme", scheme.to_owned()), ("page", page.to_string())];
            let cell = Cell::new("figure 4", &row, runs, &format!("page('{scheme}', {page})"));
            cells.push(Cell { bound, ..cell });
        }
    }
    let row = [("ratio", "page 3, TCP / STCP".to_owned())];
    let ratio = Cell::ratio("figure 4", &row, runs, "page('TCP', 3)", "page('STCP', 3)");
    // "almost 3 times faster"
    cells.push(Cell { paper: Some(3.0), ..ratio });
    Ok(cells)
}
