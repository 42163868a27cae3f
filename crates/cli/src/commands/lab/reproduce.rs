//! `longhaul reproduce`: a paper's tables and figures beside ours, with a verdict for each of its claims.

use std::process::ExitCode;

use lab::papers;
use lab::study::Plan;

use super::studies::{self, Running};
use crate::commands::known::Known;
use crate::commands::outcome::{complain, failure, misconfigured};

/// Reproduce a paper: run its experiments, draw its figures beside Longhaul's, and judge each of its claims.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul reproduce peng
  longhaul reproduce peng --quick --figure 3
  longhaul reproduce peng --json | jq '.verdicts[] | {id, verdict}'
  longhaul reproduce faulkner --figure 4-4 --default-reading")]
pub(crate) struct Arguments {
    /// Short name of the paper.
    #[arg(value_parser = Known::new(papers::ALL.iter().map(|paper| paper.name)))]
    paper: String,
    #[command(flatten)]
    running: Running,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let Some(paper) = papers::find(&arguments.paper) else {
        let known: Vec<&str> = papers::ALL.iter().map(|paper| paper.name).collect();
        return misconfigured(format!("no paper \"{}\"; there are {}", arguments.paper, known.join(", ")));
    };
    let study = match paper.study() {
        Ok(study) => study,
        Err(error) => return failure(error),
    };
    if let Some(file) = paper.edited() {
        complain(format_args!(
            "{} is not what was built in, which is what runs; `longhaul sweep {}` runs it",
            file.display(),
            paper.head().display()
        ));
    }
    let command = format!("longhaul reproduce {}", arguments.paper);
    studies::execute(&study, &arguments.running, Plan::default(), &command)
}
