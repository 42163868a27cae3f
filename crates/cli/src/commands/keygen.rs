//! `longhaul keygen`: a gateway's private key, or a secret that two gateways share.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use tunnel::key::{PresharedKey, PrivateKey};

use super::outcome::{failure, say};
use super::secret;

/// Make a private key for a gateway: 32 random bytes in base64.
///
/// With --out the public key, which the other end needs, is printed; `longhaul pubkey` prints it again at any time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul keygen --out site.key      # prints the public key
  longhaul keygen --preshared --out hub.psk")]
pub(crate) struct Arguments {
    /// Write the key to this new file, readable by its owner only (in /etc/longhaul by the service's group too), instead of to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Make a secret for two gateways to share besides their private keys.
    #[arg(long)]
    preshared: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let mut random = gateway::random::system();
    let (kind, key, public) = if args.preshared {
        ("preshared_key", PresharedKey::generate(&mut random).to_base64(), None)
    } else {
        let key = PrivateKey::generate(&mut random);
        ("private_key", key.to_base64(), Some(key.public()))
    };
    let mut told: Map<String, Value> =
        public.map(|public| ("public_key".to_owned(), json!(public))).into_iter().collect();
    let Some(path) = &args.out else {
        told.insert(kind.to_owned(), json!(*key));
        let text = if args.json { Value::from(told).to_string() } else { key.to_string() };
        return match secret::print(&format!("{text}\n")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure(error),
        };
    };
    if let Err(error) = secret::write_private(path, &format!("{}\n", *key)) {
        return failure(format_args!("{}: {error}", path.display()));
    }
    told.insert("file".to_owned(), json!(path));
    match (args.json, public) {
        (true, _) => say!("{}", Value::from(told)),
        (false, Some(public)) => say!("{public}"),
        (false, None) => {}
    }
    ExitCode::SUCCESS
}
