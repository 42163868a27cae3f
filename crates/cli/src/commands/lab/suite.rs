//! Running a suite of scenarios and showing what came of it: what `demo` and `run` share.

use std::fmt::Display;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use lab::report::destination::{self, Refused};
use lab::report::{self, Points, Summary};
use lab::run::{self, Recordings, Run};
use lab::scenario::Suite;

use super::interruption::{self, Interruption};
use crate::commands::outcome::{complain, failure, misconfigured, say, show};

/// Where a suite's results go.
pub(crate) struct Output {
    /// The report's directory.
    pub(crate) out: Option<PathBuf>,
    /// Replace another command's results there.
    pub(crate) force: bool,
    /// How wide its figures for print are.
    pub(crate) figure_width: Points,
    /// Runs at a time.
    pub(crate) jobs: Option<u16>,
    /// Print JSON instead of a table.
    pub(crate) json: bool,
    /// What the runs write while they go on.
    pub(crate) recordings: Recordings,
    /// The command that gives the same results.
    pub(crate) command: String,
}

/// Makes sure that results may go to `directory`, as [`destination::claim`] does, and says what becomes of those that are there.
pub(super) fn claim(
    directory: &Path,
    command: &str,
    extends: Option<&str>,
    force: bool,
) -> Result<(), ExitCode> {
    match destination::claim(directory, command, extends, force) {
        Ok(None) => Ok(()),
        Ok(Some(before)) => {
            complain(format_args!("{}: replaces the report of: {before}", directory.display()));
            Ok(())
        }
        Err(Refused::Unwritable(error)) => Err(failure(error)),
        Err(taken @ Refused::Taken { .. }) => {
            Err(misconfigured(format_args!("--out {taken}, or replace them with --force")))
        }
    }
}

/// Runs `suite` and shows it.
pub(crate) fn execute(suite: &Suite, output: &Output) -> ExitCode {
    if let Some(directory) = &output.out
        && let Err(refused) = claim(directory, &output.command, None, output.force)
    {
        return refused;
    }
    let runs = match run_with_progress(suite, output.jobs, &output.recordings) {
        Ok(runs) => runs,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return interrupted(error),
        Err(error) => return failure(error),
    };
    let (wanted, done) = (suite.scenario.seeds, (runs.len() / suite.schemes.len()) as u32);
    let command = match done == wanted {
        true => output.command.clone(),
        false => format!("{} --set seeds={done}", output.command),
    };
    let suite = &suite.with_seeds(done);
    if let Err(error) = show_all(suite, &runs, &command, output) {
        return failure(error);
    }
    if let Some(run) = runs.iter().find(|run| !run.intact) {
        let (scheme, seed) = (&run.scheme, run.seed);
        return failure(format!(
            "bytes arrived damaged in {scheme}, which is a bug in Longhaul; replay with: {command} --seed {seed} --seeds 1"
        ));
    }
    match done == wanted {
        true => ExitCode::SUCCESS,
        false => interrupted(format_args!("interrupted: results are of {done} of {wanted} seeds")),
    }
}

fn interrupted(notice: impl Display) -> ExitCode {
    complain(notice);
    ExitCode::from(interruption::EXIT_CODE)
}

fn show_all(suite: &Suite, runs: &[Run], command: &str, output: &Output) -> io::Result<()> {
    let page = match &output.out {
        Some(directory) => Some(report::write(suite, runs, command, directory, output.figure_width)?),
        None => None,
    };
    if output.json {
        say!("{}", Summary::new(suite, runs, page).to_json());
        return Ok(());
    }
    say!("{}", suite.scenario.name);
    say!("seeds {} to {}\n", suite.scenario.seed, suite.scenario.seed + u64::from(suite.scenario.seeds) - 1);
    show(format_args!("{}", report::table(suite, runs)));
    say!("trace hash {}", run::trace_hash(runs));
    for (scheme, path) in &output.recordings.captures.files {
        say!("capture of {scheme}: {}", path.display());
    }
    if let Some((scheme, path)) = &output.recordings.log {
        say!("event log of {scheme}: {}", path.display());
    }
    if let Some(page) = page {
        say!("report: {}", page.display());
    }
    Ok(())
}

fn run_with_progress(suite: &Suite, jobs: Option<u16>, recordings: &Recordings) -> io::Result<Vec<Run>> {
    let interruption = Interruption::watch(
        "interrupted: finishing the current runs and writing the report; press Ctrl-C again to stop at once",
    )?;
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
        bar.inc(1);
        if interruption.has_come() {
            return ControlFlow::Break(());
        }
        bar.set_message(format!("{}, seed {}", run.scheme, run.seed));
        ControlFlow::Continue(())
    };
    let runs = pool.install(|| run::run_all(suite, recordings, on_done));
    bar.finish_and_clear();
    runs
}
