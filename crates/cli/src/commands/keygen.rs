//! `longhaul keygen`: a key for a pair of gateways.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::ExitCode;

use tunnel::key::PresharedKey;

use super::outcome::{failure, say};

/// Make a key for two gateways to share: 32 random bytes in base64.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul keygen --out site.key      # then copy it to the other site")]
pub(crate) struct Arguments {
    /// Write the key to this new file, readable by its owner only, instead of to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let key = PresharedKey::generate(&mut gateway::random::system()).to_base64();
    if args.out.is_none()
        && let Err(error) = make_output_private()
    {
        return failure(format_args!(
            "standard output is a file that others may read: {error}; --out FILE makes one that they may not"
        ));
    }
    if let Some(path) = &args.out {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{key}")) {
            return failure(format_args!("{}: {error}", path.display()));
        }
    }
    match (&args.out, args.json) {
        (None, false) => say!("{key}"),
        (None, true) => say!("{}", serde_json::json!({ "key": key })),
        (Some(_), false) => {}
        (Some(path), true) => say!("{}", serde_json::json!({ "file": path })),
    }
    ExitCode::SUCCESS
}

/// Shells make files that everybody may read. Whoever redirects a key to one wants that no more than we do.
fn make_output_private() -> io::Result<()> {
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let metadata = output.metadata()?;
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        output.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}
