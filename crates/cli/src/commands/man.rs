//! `longhaul man`: the manual, a page for each command.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::Cli;
use super::outcome::failure;

/// Write manual pages, one per command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul man /usr/local/share/man/man1
  man longhaul-run")]
pub(crate) struct Arguments {
    /// Directory to write the pages to.
    directory: PathBuf,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let directory = &args.directory;
    let written = fs_err::create_dir_all(directory).and_then(|()| {
        clap_mangen::generate_to(Cli::command(), directory)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", directory.display())))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(error),
    }
}
