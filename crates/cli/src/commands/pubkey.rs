//! `longhaul pubkey`: the public half of a private key.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use tunnel::key::PrivateKey;

use super::outcome::{failure, misconfigured, say};

/// Print the public key that belongs to a private key, for the other end's configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul pubkey /etc/longhaul/site.key")]
pub(crate) struct Arguments {
    /// The file that holds the private key. Default: standard input.
    file: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// More than any text of a key has; who pipes something else in is told so at once.
const LONGEST: u64 = 1024;

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let mut text = String::new();
    let (name, read) = match &args.file {
        Some(file) => {
            let opened = std::fs::File::open(file);
            (file.display().to_string(), opened.and_then(|it| it.take(LONGEST).read_to_string(&mut text)))
        }
        None => ("standard input".to_owned(), std::io::stdin().take(LONGEST).read_to_string(&mut text)),
    };
    if let Err(error) = read {
        return failure(format_args!("{name}: {error}"));
    }
    let public = match text.parse::<PrivateKey>() {
        Ok(key) => key.public(),
        Err(error) => return misconfigured(format_args!("{name}: {error}")),
    };
    if args.json {
        say!("{}", serde_json::json!({ "public_key": public }));
    } else {
        say!("{public}");
    }
    ExitCode::SUCCESS
}
