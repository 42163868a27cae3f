//! `longhaul chaos`: scenarios drawn from seeds, held to what has to be true of any.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use lab::chaos::{self, Failure, Outcome, Tally};
use rayon::prelude::*;

use super::interruption::{self, Interruption};
use crate::commands::outcome::{complain, failure, say};

/// Run scenarios that nobody would write, drawn from seeds: topologies, channels, protocols, tunnels and traffic in any combination.
///
/// Of each it is checked that nothing panics or stands still, that what arrives is what was sent, once and in order, that all that ends
/// arrives, that a second run is the same, and that the work for a packet is bounded. What fails is made as small as possible and
/// written to a scenario file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul chaos
  longhaul chaos --seed 5000 --cases 20000 --out out/chaos
  longhaul chaos --with .path.                         # several paths alone
  longhaul chaos --seed 4711 --cases 1                 # one case again")]
pub(crate) struct Arguments {
    /// Seed of the first case; the next has the next seed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    seed: u64,
    /// Number of cases.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    cases: u64,
    /// Leave out cases whose scenario does not have this text in it, such as `.path.`, `[tunnel` or `bbr`.
    #[arg(long, value_name = "TEXT")]
    with: Option<String>,
    /// Cases at the same time [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Directory for scenarios that fail.
    #[arg(long, default_value = "out/chaos")]
    out: PathBuf,
    /// Print one JSON object instead of sentences.
    #[arg(long)]
    json: bool,
}

/// A scenario's seed is an integer of TOML, which has a sign; and there are cases after the first.
const MOST_SEED: u64 = 1 << 62;

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    match try_execute(arguments) {
        Ok(code) => code,
        Err(error) => failure(error),
    }
}

fn try_execute(arguments: &Arguments) -> io::Result<ExitCode> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.jobs.map_or(0, usize::from))
        .build()
        .map_err(io::Error::other)?;
    let interruption =
        Interruption::watch("interrupted: finishing the current cases; press Ctrl-C again to stop at once")?;
    let bar = ProgressBar::new(arguments.cases);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} cases, {eta} left{msg}") {
        bar.set_style(style);
    }
    let (tally, next) = (Mutex::new(Tally::default()), AtomicU64::new(0));
    // Seeds are handed out in their order, so that an interruption leaves no gaps.
    let work = |_| -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.cases || interruption.has_come() {
                return Ok(());
            }
            let seed = arguments.seed + number;
            if arguments.with.as_ref().is_some_and(|words| !chaos::is_with(seed, words)) {
                bar.inc(1);
                continue;
            }
            let case = chaos::case(seed);
            if let Outcome::Failed(failure) = &case.outcome {
                let file = write(&arguments.out, case.seed, failure)?;
                let (seed, fault, message) = (case.seed, failure.fault, &failure.message);
                bar.suspend(|| complain(format_args!("seed {seed}: {fault}: {message}; {}", file.display())));
            }
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(case);
            bar.inc(1);
        }
    };
    let done: io::Result<()> =
        pool.install(|| (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).try_for_each(work));
    bar.finish_and_clear();
    done?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    show(arguments, &tally);
    Ok(match (interruption.has_come(), tally.failures.is_empty()) {
        (true, _) => ExitCode::from(interruption::EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn show(arguments: &Arguments, tally: &Tally) {
    if arguments.json {
        say!("{}", tally.to_json());
        return;
    }
    let Tally { cases, refused, packets, failures, .. } = tally;
    let first = arguments.seed;
    say!(
        "{cases} cases from seed {first}: {} ran, {refused} were no scenarios; {packets} packets",
        cases - refused
    );
    match failures.len() {
        0 => say!("nothing was wrong"),
        count => say!("{count} failed; their scenarios are in {}", arguments.out.display()),
    }
}

/// Writes the scenario of a failure, with what it is above it.
fn write(directory: &Path, seed: u64, failure: &Failure) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let file = directory.join(format!("{seed}-{}.toml", failure.fault));
    let Failure { fault, message, scenario } = failure;
    let message = message.replace('\n', " ");
    let head = format!(
        "# {fault}: {message}\n# longhaul chaos --seed {seed} --cases 1\n# longhaul run {}\n",
        file.display()
    );
    fs::write(&file, format!("{head}\n{scenario}"))?;
    Ok(file)
}
