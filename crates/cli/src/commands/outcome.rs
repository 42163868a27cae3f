//! How a command ends when it cannot do its work.

use std::fmt::Display;
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
