//! How a command speaks while it runs, and ends when it cannot do its work.

use std::fmt::{self, Display};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Something failed while running: exit code 1.
pub(crate) fn failure(error: impl Display) -> ExitCode {
    complain(error);
    ExitCode::FAILURE
}

/// The configuration or the arguments are wrong: exit code 2.
pub(crate) fn misconfigured(error: impl Display) -> ExitCode {
    complain(error);
    ExitCode::from(2)
}

/// A line on standard error: something to set right, but no reason to end.
pub(crate) fn complain(notice: impl Display) {
    show_error(format_args!("longhaul: {notice}\n"));
}

/// Writes text to standard error; whoever does not read it does not miss it.
pub(crate) fn show_error(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Writes a line to standard output, in the way of `println!` but without its panic; see [`show`].
macro_rules! say {
    () => { $crate::commands::outcome::show(format_args!("\n")) };
    ($($line:tt)*) => { $crate::commands::outcome::show(format_args!("{}\n", format_args!($($line)*))) };
}
pub(crate) use say;

/// Writes text to standard output. After the first failure nothing more is written, and [`ended`] decides what the failure means.
pub(crate) fn show(text: fmt::Arguments<'_>) {
    if UNWRITTEN.get().is_none()
        && let Err(error) = write(text)
    {
        let _ = UNWRITTEN.set(error);
    }
}

/// Whether something could not be written to standard output.
pub(crate) fn has_failed() -> bool {
    UNWRITTEN.get().is_some()
}

fn write(text: fmt::Arguments<'_>) -> io::Result<()> {
    // Standard output by itself asks the kernel once for each line, and a status may have a million.
    let mut output = io::BufWriter::new(io::stdout().lock());
    output.write_fmt(text)?;
    output.flush()
}

/// The exit code of a command that would have ended with `code`: a reader that has gone, as `head` does, is no failure;
/// output that could not be written for another reason is one.
pub(crate) fn ended(code: ExitCode) -> ExitCode {
    match UNWRITTEN.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            failure(format_args!("standard output: {error}"))
        }
        _ => code,
    }
}

/// Why standard output takes nothing more.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// A word as a shell takes it literally.
#[cfg(feature = "lab")]
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
