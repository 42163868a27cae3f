//! What `reproduce` and `sweep` have in common: running a study with a bar, and telling what came out.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::report::{COLUMN, Points, destination};
use lab::study::published::Published;
use lab::study::{self, Plan, Study, StudyError, Summary, Sweep};

use super::interruption::{self, Interruption};
use super::{pages, suite};
use crate::commands::outcome::{complain, failure, misconfigured, say, show};

/// How a study is run, and where its report goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// Run only what this figure, table or experiment of the study needs.
    #[arg(long, value_name = "X")]
    figure: Option<String>,
    /// Run only the default reading: the default choice wherever the paper leaves something unsaid.
    #[arg(long)]
    default_reading: bool,
    /// Run a reduced version, defined by the study's `quick`, in less than a minute.
    #[arg(long)]
    quick: bool,
    /// Number of seeds of each random experiment [default: the experiment's own].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Seed of the first; the next has the next seed [default: the study's, or the scenario's].
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at the same time [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Directory for the report and for measurements, which later runs reuse [default: out/NAME, or out/NAME-2 and so on where another command has
    /// results].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace another study's results in --out.
    #[arg(long)]
    force: bool,
    /// Width of figures for print, in pt, in, mm or cm [default: a column of a page with two].
    #[arg(long, value_name = "WIDTH", default_value_t = COLUMN, hide_default_value = true)]
    figure_width: Points,
    /// Run only part I of N, to share the work among machines.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u32, u32)>,
    /// Add the measurements of other runs, given by their --out directories; may be repeated.
    #[arg(long, value_name = "DIR")]
    merge: Vec<PathBuf>,
    /// Write what comes out into the marks of this Markdown page, or of each page in this directory; may be repeated.
    #[arg(long, value_name = "PATH")]
    pages: Vec<PathBuf>,
    /// Compare with --pages instead of writing; fail where they differ.
    #[arg(long, requires = "pages")]
    check: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Running {
    /// The options that change what is measured.
    fn choices(&self) -> String {
        let mut choices = String::new();
        if let Some(figure) = &self.figure {
            choices += &format!(" --figure {figure:?}");
        }
        for (given, option) in [(self.default_reading, " --default-reading"), (self.quick, " --quick")] {
            choices += if given { option } else { "" };
        }
        if let Some(seeds) = self.seeds {
            choices += &format!(" --seeds {seeds}");
        }
        if let Some(seed) = self.seed {
            choices += &format!(" --seed {seed}");
        }
        choices
    }
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match parsed {
        Some((part, of)) if (1..=of).contains(&part) && of <= 10_000 => Ok((part, of)),
        _ => Err(format!("\"{text}\" is not a shard, as in 2/5; allowed are 1/N to N/N, with N up to 10000")),
    }
}

/// Runs what is asked for, of the axes in `plan`, and writes the report. `command` without the options in common runs all of
/// it.
pub(crate) fn execute(study: &Study, running: &Running, plan: Plan, command: &str) -> ExitCode {
    let whole = format!("{command}{}", running.choices());
    let out = match &running.out {
        Some(out) => out.clone(),
        None => destination::of_its_own(&study.name, &whole, command),
    };
    let plan = Plan {
        figure: running.figure.clone(),
        default_reading_only: running.default_reading,
        seeds: running.seeds,
        seed: running.seed,
        quick: running.quick,
        store: Some(out.join("measured")),
        merge: running.merge.iter().map(|folder| folder.join("measured")).collect(),
        shard: running.shard,
        ..plan
    };
    if let Err(error) = Sweep::check(study, &plan) {
        return misconfigured(error);
    }
    if let Some(nowhere) = plan.merge.iter().find(|folder| !folder.is_dir()) {
        let message = "no such folder; allowed are --out folders of runs that have measured something";
        return misconfigured(format_args!("--merge: {}: {message}", nowhere.display()));
    }
    if !running.pages.is_empty() && !plan.is_whole() {
        return misconfigured(
            "--pages: pages show whole runs; allowed beside it is --quick, and nothing else that leaves something out",
        );
    }
    if let Err(refused) = suite::claim(&out, &whole, Some(command), running.force) {
        return refused;
    }
    match try_execute(study, running, plan, (command, &whole), &out) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(differences) => failure(format_args!("pages and run differ at {differences} marks")),
        Err(StudyError::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {
            complain(format_args!(
                "interrupted: what was measured is kept in {}, and the same command goes on from there",
                out.join("measured").display()
            ));
            ExitCode::from(interruption::EXIT_CODE)
        }
        Err(error @ StudyError::Io(_)) => failure(error),
        Err(error) => misconfigured(error),
    }
}

fn try_execute(
    study: &Study,
    running: &Running,
    plan: Plan,
    (full, command): (&str, &str),
    out: &Path,
) -> Result<usize, StudyError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(running.jobs.map_or(0, usize::from))
        .build()
        .map_err(io::Error::other)?;
    let interruption = Interruption::watch(
        "interrupted: finishing the current runs, which are kept; press Ctrl-C again to stop at once",
    )?;
    let outcome = pool.install(|| {
        let sweep = Sweep::prepare(study, plan)?;
        let progress = Progress::new(sweep.work());
        let outcome = sweep.run_while(|step| {
            match step {
                study::Progress::Done(work) => progress.advance(work),
                study::Progress::Added(work) => progress.extend(work),
            }
            if interruption.has_come() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        progress.finish();
        outcome
    })?;
    let page = study::write(&outcome, command, out, running.figure_width)?;
    let summary = Summary::new(&outcome, Some(page.clone()))?;
    let differences = match running.pages.is_empty() {
        true => 0,
        false => pages::show(&Published::new(&outcome, full)?, &running.pages, running.check)?,
    };
    if running.json {
        say!("{}", summary.to_json());
        return Ok(differences);
    }
    say!("{}\n", study.title);
    if outcome.plan.shard.is_none() && !study.claims.is_empty() {
        show(format_args!("{}", outcome.table()));
    }
    if study.claims.is_empty() {
        show(format_args!("{}", summary.tables(study)));
        if !study.setting.is_empty() {
            say!("{}\n", study.setting);
        }
    }
    show(format_args!("{}", summary.agreement()));
    say!("report: {}", page.display());
    Ok(differences)
}

/// A bar on a terminal; elsewhere a line now and then.
struct Progress {
    bar: ProgressBar,
    /// When the last line was printed, where there is no terminal.
    lines: Option<Mutex<Duration>>,
}

/// Time between lines.
const PAUSE: Duration = Duration::from_secs(15);

impl Progress {
    fn new(work: u64) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(work), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent} %, {eta} left") {
            bar.set_style(style);
        }
        bar.tick();
        Self { bar, lines: (!is_terminal).then(Mutex::default) }
    }

    fn advance(&self, work: u64) {
        self.bar.inc(work);
        let Some(last) = &self.lines else { return };
        let Ok(mut last) = last.try_lock() else { return };
        let elapsed = self.bar.elapsed();
        if elapsed.saturating_sub(*last) < PAUSE {
            return;
        }
        *last = elapsed;
        let (done, all) = (self.bar.position() as f64, self.bar.length().unwrap_or(0) as f64);
        let left = elapsed.as_secs_f64() * (all / done - 1.0).max(0.0);
        let _ = writeln!(io::stderr(), "{:.0} %, about {left:.0} s left", 100.0 * done / all);
    }

    /// There is more to do than was known.
    fn extend(&self, work: u64) {
        self.bar.inc_length(work);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
