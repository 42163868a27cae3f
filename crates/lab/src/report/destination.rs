//! The directory that a command's results go to, and what keeps another command's results in it from being lost.

use std::path::{Path, PathBuf};

use fs_err as fs;

/// Why results do not go to a directory.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It cannot be made or written.
    #[error(transparent)]
    Unwritable(std::io::Error),
    /// It has the results of another command, named so that it stands in a sentence.
    #[error("{} has the results of {by}; name another directory", directory.display())]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// Whose results they are.
        by: String,
    },
}

/// Makes `directory` and notes in it that `command` writes there. Where another command has written, it is refused unless `force` is
/// set; so is a directory with results that do not tell. A command that begins with `extends` is none other: `reproduce` and
/// `sweep` go on with what they have measured for the same study, and only the report is replaced. Gives the command whose report that is.
///
/// # Errors
/// The directory is another command's, or cannot be written.
pub fn claim(
    directory: &Path,
    command: &str,
    extends: Option<&str>,
    force: bool,
) -> Result<Option<String>, Refused> {
    let before = before(directory).filter(|before| before != command);
    let goes_on = |before: &str| extends.is_some_and(|extends| goes_on(before, extends));
    let is_own = directory.join(NOTE).exists() && before.is_none();
    let replaced = match before {
        _ if is_own || !has_results(directory) => None,
        Some(before) if force || goes_on(&before) => Some(before),
        None if force => None,
        other => {
            let by = other.map_or_else(|| "another command".to_owned(), |command| format!("`{command}`"));
            return Err(Refused::Taken { directory: directory.to_owned(), by });
        }
    };
    let made =
        fs::create_dir_all(directory).and_then(|()| fs::write(directory.join(NOTE), format!("{command}\n")));
    made.map(|()| replaced).map_err(Refused::Unwritable)
}

/// Where results go if nothing is said: `out` and the name of what is run, with a number if another command has results there.
#[must_use]
pub fn of_its_own(name: &str, command: &str, extends: &str) -> PathBuf {
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
