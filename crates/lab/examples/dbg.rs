//! X
#![allow(missing_docs)]
use longhaul_lab::run::{self, Watch};
use longhaul_lab::scenario::Suite;
use std::path::Path;
fn main() {
    let text = std::fs::read_to_string(std::env::var("SCN").unwrap()).unwrap();
    let suite = Suite::parse("a.toml", &text, Path::new(""), &[]).unwrap();
    let run = run::run("t", &suite.schemes[0].1, suite.scenario.seed, &Watch::default()).unwrap();
    eprintln!("{:?}", run.transfers);
}
