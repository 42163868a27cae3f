//! The directory that a command's results go to, and what keeps another command's results in it from being lost.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fs_err as fs;

use crate::commands::outcome::{complain, failure, misconfigured};

/// Why results do not go to a directory.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It cannot be made or written.
    Unwritable(std::io::Error),
    /// It has the results of another command.
    Taken(String),
}

/// Makes `directory` and notes in it that `command` writes there. Where another command has written, it is refused unless `force` is
/// set; so is a directory with results that do not tell. A command that begins with `extends` is none other: `reproduce` and
/// `sweep` go on with what they have measured for the same study, and only the report is replaced, which they say.
pub(crate) fn claim(
    directory: &Path,
    command: &str,
    extends: Option<&str>,
    force: bool,
) -> Result<(), Refused> {
    let before = before(directory);
    let goes_on = |before: &str| extends.is_some_and(|extends| goes_on(before, extends));
    match before.as_deref() {
        _ if !has_results(directory) => {}
        Some(before) if before == command => {}
        Some(before) if force || goes_on(before) => {
            complain(format_args!("{}: replaces the report of: {before}", directory.display()));
        }
        None if force => {}
        other => return Err(Refused::Taken(taken(directory, other))),
    }
    let made =
        fs::create_dir_all(directory).and_then(|()| fs::write(directory.join(NOTE), format!("{command}\n")));
    made.map_err(Refused::Unwritable)
}

impl Refused {
    /// Says it.
    pub(crate) fn complain(self) -> ExitCode {
        match self {
            Self::Taken(complaint) => misconfigured(complaint),
            Self::Unwritable(error) => failure(error),
        }
    }
}

fn taken(directory: &Path, command: Option<&str>) -> String {
    let directory = directory.display();
    let whose = command.map_or_else(|| "another command".to_owned(), |command| format!("`{command}`"));
    format!(
        "--out {directory} has the results of {whose}; name another directory, or replace them with --force"
    )
}

/// Where results go if nothing is said: `out` and the name of what is run, with a number if another command has results there.
pub(crate) fn of_its_own(name: &str, command: &str, extends: &str) -> PathBuf {
    let all = (1..MOST).map(|number| match number {
        1 => PathBuf::from("out").join(name),
        _ => PathBuf::from("out").join(format!("{name}-{number}")),
    });
    let is_own = |directory: &&PathBuf| {
        before(directory).is_some_and(|before| before == command || goes_on(&before, extends))
    };
    let is_free = |directory: &&PathBuf| !has_results(directory);
    // Beyond that the last is refused, and says why.
    let all: Vec<PathBuf> = all.collect();
    all.iter().find(is_own).or(all.iter().find(is_free)).or(all.last()).cloned().unwrap_or_default()
}

/// So many directories of one name are enough to be told that one should be named.
const MOST: u32 = 100;

/// Whose results a directory has, if that is known.
fn before(directory: &Path) -> Option<String> {
    fs::read_to_string(directory.join(NOTE)).ok().map(|text| text.trim().to_owned())
}

/// Measurements alone are no results: they stay, whoever adds others.
fn has_results(directory: &Path) -> bool {
    directory.join("report.html").exists()
}

/// Whether the command `before` is `extends` with other options, or none.
fn goes_on(before: &str, extends: &str) -> bool {
    // Other axes make it another sweep.
    let is_other = |options: &str| options.contains(" --axis ");
    let options = before.strip_prefix(extends).filter(|options| !is_other(options));
    options.is_some_and(|options| options.is_empty() || options.starts_with(" --"))
}

/// The file that tells whose results a directory has.
const NOTE: &str = "command.txt";
