//! Running a suite of scenarios and showing what came of it: what `demo` and `run` share.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use lab::report::{self, Summary};
use lab::run::{self, Recordings, Run};
use lab::scenario::Suite;

use super::outcome::failure;

/// Where a suite's results go.
pub(crate) struct Output {
    /// The report's directory.
    pub(crate) out: Option<PathBuf>,
    /// Runs at a time.
    pub(crate) jobs: Option<u16>,
    /// Print JSON instead of a table.
    pub(crate) json: bool,
    /// What the runs write while they go on.
    pub(crate) recordings: Recordings,
    /// The command that gives the same results.
    pub(crate) command: String,
}

/// Runs `suite` and shows it.
pub(crate) fn execute(suite: &Suite, output: &Output) -> ExitCode {
    match try_execute(suite, output) {
        Ok(runs) => match runs.iter().find(|run| !run.intact) {
            None => ExitCode::SUCCESS,
            Some(run) => {
                let (scheme, seed, command) = (&run.scheme, run.seed, &output.command);
                failure(format!(
                    "bytes arrived wrong in {scheme}: a bug; replay with: {command} --seed {seed} --seeds 1"
                ))
            }
        },
        Err(error) => failure(error),
    }
}

fn try_execute(suite: &Suite, output: &Output) -> io::Result<Vec<Run>> {
    if let Some(directory) = &output.out {
        std::fs::create_dir_all(directory)?;
    }
    let runs = run_with_progress(suite, output.jobs, &output.recordings)?;
    let page = match &output.out {
        Some(directory) => Some(report::write(suite, &runs, &output.command, directory)?),
        None => None,
    };
    if output.json {
        println!("{}", Summary::new(suite, &runs, page).to_json());
        return Ok(runs);
    }
    println!("{}", suite.scenario.name);
    println!(
        "seeds {} to {}\n",
        suite.scenario.seed,
        suite.scenario.seed + u64::from(suite.scenario.seeds) - 1
    );
    print!("{}", report::table(suite, &runs));
    println!("trace hash {}", run::trace_hash(&runs));
    for (scheme, path) in &output.recordings.captures.files {
        println!("capture of {scheme}: {}", path.display());
    }
    if let Some((scheme, path)) = &output.recordings.log {
        println!("event log of {scheme}: {}", path.display());
    }
    if let Some(page) = page {
        println!("report: {}", page.display());
    }
    Ok(runs)
}

fn run_with_progress(suite: &Suite, jobs: Option<u16>, recordings: &Recordings) -> io::Result<Vec<Run>> {
    let count = suite.schemes.len() as u64 * u64::from(suite.scenario.seeds);
    // Draws nothing where standard error is not a terminal.
    let bar = ProgressBar::new(count);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left  {msg}");
    bar.set_style(style.map_err(io::Error::other)?);
    bar.tick();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.map_or(0, usize::from))
        .build()
        .map_err(io::Error::other)?;
    let on_done = |run: &Run| {
        bar.set_message(format!("{}, seed {}", run.scheme, run.seed));
        bar.inc(1);
    };
    let runs = pool.install(|| run::run_all(suite, recordings, on_done));
    bar.finish_and_clear();
    runs
}
