//! `longhaul reproduce`: a paper's tables and figures beside ours, with a verdict for each of its claims.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use lab::papers;
use lab::reproduce::{self, Paper, Plan, ReproduceError, Reproduction, Summary};

use super::outcome::{failure, misconfigured};

/// Run a paper's experiments, draw its figures beside ours, and decide each of its claims.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul reproduce peng
  longhaul reproduce peng --quick --figure 3
  longhaul reproduce peng --json | jq '.verdicts[] | {id, verdict}'
  longhaul reproduce faulkner --figure 4-4")]
pub(crate) struct Arguments {
    /// The paper's short name.
    paper: String,
    /// Only what this figure or table of the paper needs.
    #[arg(long, value_name = "X")]
    figure: Option<String>,
    /// A coarse grid and fewer seeds: under a minute.
    #[arg(long)]
    quick: bool,
    /// Replications of everything; if not given, as many as each experiment needs.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Runs at a time; all cores if not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Where the report goes, and where measurements are kept for the next time; out/PAPER if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let Some(paper) = papers::find(&arguments.paper) else {
        let known: Vec<&str> = papers::ALL.iter().map(|paper| paper.name()).collect();
        return misconfigured(format!("no paper \"{}\"; there are {}", arguments.paper, known.join(", ")));
    };
    match try_execute(paper, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ ReproduceError::NoFigure { .. }) => misconfigured(error),
        Err(error) => failure(error),
    }
}

fn try_execute(paper: &dyn Paper, arguments: &Arguments) -> Result<(), ReproduceError> {
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(paper.name()));
    let plan = Plan {
        seeds: arguments.seeds,
        quick: arguments.quick,
        figure: arguments.figure.clone(),
        cache: Some(out.join("measured")),
        build: build()?,
    };
    let reproduction = Reproduction::prepare(paper, plan)?;
    // Draws nothing where standard error is not a terminal.
    let bar = ProgressBar::new(reproduction.work());
    let style = ProgressStyle::with_template("{bar:30} {percent} %, {eta} left");
    bar.set_style(style.map_err(io::Error::other)?);
    bar.tick();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.jobs.map_or(0, usize::from))
        .build()
        .map_err(io::Error::other)?;
    let outcome = pool.install(|| reproduction.run(|work| bar.inc(work)))?;
    bar.finish_and_clear();
    let page = reproduce::write(&outcome, &command(arguments), &out)?;
    if arguments.json {
        println!("{}", Summary::new(&outcome, Some(page)).to_json());
    } else {
        println!("{}\n", paper.title());
        print!("{}", outcome.table());
        println!("report: {}", page.display());
    }
    Ok(())
}

/// Names this very program: what another build measured is measured again.
fn build() -> io::Result<String> {
    let program = std::fs::read(std::env::current_exe()?)?;
    Ok(format!("{:016x}", base::random::fnv1a(&program)))
}

/// The command that gives the same results.
fn command(arguments: &Arguments) -> String {
    let mut command = format!("longhaul reproduce {}", arguments.paper);
    if let Some(figure) = &arguments.figure {
        command += &format!(" --figure {figure}");
    }
    if arguments.quick {
        command += " --quick";
    }
    if let Some(seeds) = arguments.seeds {
        command += &format!(" --seeds {seeds}");
    }
    command
}
