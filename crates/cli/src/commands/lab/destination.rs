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
    let note = directory.join(NOTE);
    let before = fs::read_to_string(&note).ok().map(|text| text.trim().to_owned());
    // A command that ended before it had any leaves nothing to be lost.
    let has_results = ["report.html", "measured"].iter().any(|name| directory.join(name).exists());
    let goes_on = |before: &str| {
        let rest = extends.and_then(|extends| before.strip_prefix(extends));
        rest.is_some_and(|options| options.is_empty() || options.starts_with(" --"))
    };
    match before.as_deref() {
        _ if !has_results => {}
        Some(before) if before == command => {}
        Some(before) if force || goes_on(before) => {
            complain(format_args!("{}: replaces the report of: {before}", directory.display()));
        }
        None if force => {}
        other => return Err(Refused::Taken(taken(directory, other))),
    }
    let made = fs::create_dir_all(directory).and_then(|()| fs::write(&note, format!("{command}\n")));
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

/// Where results go if nothing is said: `out` and the name of what is run.
pub(crate) fn usual(name: &str) -> PathBuf {
    PathBuf::from("out").join(name)
}

/// The file that tells whose results a directory has.
const NOTE: &str = "command.txt";
