//! How a command speaks while it runs, and ends when it cannot do its work.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

/// Something failed while running: exit code 1.
pub(crate) fn failure(error: impl Display) -> ExitCode {
    eprintln!("longhaul: {error}");
    ExitCode::FAILURE
}

/// The configuration or the arguments are wrong: exit code 2.
pub(crate) fn misconfigured(error: impl Display) -> ExitCode {
    eprintln!("longhaul: {error}");
    ExitCode::from(2)
}

/// Something that is to be set right, but is no reason to end.
pub(crate) fn complain(notice: impl Display) {
    let _ = writeln!(std::io::stderr(), "longhaul: {notice}");
}

/// A line on standard output, for commands that run long: that nobody reads it any more is no reason to end.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
