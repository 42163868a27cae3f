//! `longhaul peer add`: a terminal's whole configuration, and what its hub needs to know of it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown, fchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::Prefix;
use base::config::ConfigError;
use gateway::config::{Config, Destination, PEER_DIRECTORY, PeerName};
use tunnel::key::{PresharedKey, PrivateKey, PublicKey};

use super::outcome::{complain, failure, has_failed, misconfigured};
use super::peer_files::{self, Terminal};
use super::secret;

/// Give a hub another peer, and make that peer's configuration.
///
/// Writes peers.d/NAME.toml beside the hub's configuration, and prints the complete site.toml of the peer: copy it there, and
/// start a gateway with it. The hub takes the peer up when it reloads its configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, at the hub:
  longhaul peer add boat7 --config /etc/longhaul/hub.toml \\
    --endpoint hub.example.org:51900 --address 10.77.0.7/24 \\
    --allowed 10.78.7.0/24 --out boat7.toml
  systemctl reload longhaul@hub

Then at the peer, once the file is there:
  longhaul gateway --config boat7.toml")]
pub(crate) struct Arguments {
    /// The peer's name at the hub, and of its file: letters, digits, dots, hyphens and underscores.
    name: PeerName,
    /// The hub's configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where the peer reaches the hub: an address or a host name, with a port.
    #[arg(long, value_name = "HOST:PORT")]
    endpoint: Destination,
    /// A network behind the peer; may be repeated. Its addresses within the tunnel are always allowed.
    #[arg(long, value_name = "PREFIX")]
    allowed: Vec<Prefix>,
    /// An address of the peer within the tunnel, with its network's prefix length; may be repeated.
    #[arg(long, value_name = "PREFIX")]
    address: Vec<Prefix>,
    /// A network behind the hub that the peer is to reach, besides those of the hub's `[tun]` addresses and routes; may be repeated.
    #[arg(long, value_name = "PREFIX")]
    route: Vec<Prefix>,
    /// The public key of a peer that has a private key already, in a file site.key. Default: make one, which its configuration holds.
    #[arg(long, value_name = "KEY")]
    public_key: Option<PublicKey>,
    /// Make a secret that the two share besides their private keys.
    #[arg(long)]
    preshared: bool,
    /// Write the hub's file into this directory. Default: peers.d beside the hub's configuration.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the peer's configuration to this new file, readable by its owner only, instead of to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Two files that fit each other, neither of them written yet.
struct Plan {
    /// The peer's, in the hub's directory.
    file: PathBuf,
    peer: String,
    /// The configuration of the peer.
    site: String,
    /// Networks of the peer for which the hub's kernel has no route to the device.
    unrouted: Vec<Prefix>,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(error) => return misconfigured(error),
    };
    if let Err(error) = write(args, &plan) {
        return failure(error);
    }
    let (file, config) = (plan.file.display(), args.config.display());
    for network in plan.unrouted {
        complain(format_args!(
            "{config}: no network of [tun] addresses or routes holds {network}, so nothing is sent there; add it to routes"
        ));
    }
    complain(format_args!(
        "{file}: written; the hub takes it up when it reloads its configuration: systemctl reload, or SIGHUP"
    ));
    ExitCode::SUCCESS
}

/// Makes both files, and reads both as their gateways will.
fn plan(args: &Arguments) -> Result<Plan, ConfigError> {
    let wrong = |message: &str| ConfigError::about(&args.config.display().to_string(), message);
    let beside = || args.config.parent().unwrap_or(Path::new("")).join(PEER_DIRECTORY);
    let file = args.dir.clone().unwrap_or_else(beside).join(format!("{}.toml", args.name));
    if fs::symlink_metadata(&file).is_ok() {
        let message = "it exists already; choose another name, or remove it first";
        return Err(ConfigError::about(&file.display().to_string(), message));
    }
    let hub = Config::read(&args.config)?;
    let own = hub.identity.load()?.public();
    let allowed = allowed(args);
    if allowed.is_empty() {
        return Err(wrong(
            "a peer without --address and --allowed can be sent nothing; allowed is one of them, or both",
        ));
    }
    let private_key = args.public_key.is_none().then(|| PrivateKey::generate(&mut gateway::random::system()));
    let public_key = args.public_key.or(private_key.as_ref().map(PrivateKey::public));
    let public_key = public_key.unwrap_or_else(|| unreachable!("one of the two is there"));
    let preshared_key = args.preshared.then(|| PresharedKey::generate(&mut gateway::random::system()));
    let peer = peer_files::at_hub(public_key, preshared_key.as_ref(), &allowed);
    let hub = Config::read_with(&args.config, Some((&file, &peer)))?;
    hub.check_identity(own)?;
    let terminal = Terminal {
        name: &args.name,
        addresses: &args.address,
        allowed: &allowed,
        routes: &args.route,
        endpoint: &args.endpoint,
        private_key: private_key.as_ref(),
        preshared_key: preshared_key.as_ref(),
    };
    let site = terminal.site(&hub, own).map_err(|message| wrong(&message))?;
    let name = args.out.as_ref().map_or_else(|| "site.toml".to_owned(), |out| out.display().to_string());
    Config::parse(&name, &site)?;
    let reached = || hub.tun.addresses.iter().chain(&hub.tun.routes);
    let is_unrouted = |network: &Prefix| !reached().any(|reached| holds(*reached, *network));
    let unrouted = allowed.iter().copied().filter(is_unrouted).collect();
    Ok(Plan { file, peer, site, unrouted })
}

/// What the peer may send from: its networks and its own addresses.
fn allowed(args: &Arguments) -> Vec<Prefix> {
    let mut allowed = args.allowed.clone();
    for own in &args.address {
        let host = Prefix { address: own.address, len: if own.address.is_ipv4() { 32 } else { 128 } };
        if !allowed.iter().any(|network| holds(*network, host)) {
            allowed.push(host);
        }
    }
    allowed
}

/// Whether all of a network lies in another.
pub(super) fn holds(outer: Prefix, inner: Prefix) -> bool {
    outer.len <= inner.len && outer.overlaps(inner)
}

/// Hands the peer's configuration over, and then has the hub's file appear whole or not at all: without the one the other is of
/// no use.
fn write(args: &Arguments, plan: &Plan) -> Result<(), String> {
    let about = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    let directory = plan.file.parent().unwrap_or(Path::new(""));
    // The daemon may have become another user, who reads the configuration by its group.
    let group = fs::metadata(&args.config).map_err(about(&args.config))?.gid();
    make_directory(directory, group).map_err(about(directory))?;
    let draft = Draft(directory.join(format!(".{}.{}.new", args.name, std::process::id())));
    let file = secret::write_new(&draft.0, 0o640, &plan.peer).map_err(about(&draft.0))?;
    // Who may not give a file to that group is in it, or is told so by the daemon.
    let _ = fchown(&file, None, Some(group));
    match &args.out {
        Some(out) => drop(secret::write_new(out, 0o600, &plan.site).map_err(about(out))?),
        None => secret::print(&plan.site)?,
    }
    if has_failed() {
        return Err(format!(
            "{}: not written, since nobody has the peer's configuration",
            plan.file.display()
        ));
    }
    // Unlike a renamed file, a link replaces nothing.
    fs::hard_link(&draft.0, &plan.file).map_err(|error| {
        if let Some(out) = &args.out {
            let _ = fs::remove_file(out);
        }
        about(&plan.file)(error)
    })
}

fn make_directory(directory: &Path, group: u32) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o750).create(directory)?;
    let _ = chown(directory, None, Some(group));
    Ok(())
}

/// A file under its first name, which it loses in the end.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
