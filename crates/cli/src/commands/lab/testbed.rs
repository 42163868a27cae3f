//! `longhaul testbed`: two hosts, two gateways and a satellite in network namespaces.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;

use base::Duration;
use base::config::ConfigError;
use field::testbed::namespaces::Room;
use field::testbed::{self, FurtherPath, Link, Name, Options, PathUsage, Paths, TestbedError};
use gateway::signals::Signals;
use link::Protocol;
use tunnel::config::{LinkRate, Overhead};

use super::emulate::ChannelArgs;
use super::scheme::GatewayRate;
use crate::commands::known::Known;
use crate::commands::outcome::{complain, failure, misconfigured, say};

/// Build a test network in namespaces: host1 - gw1 - emulated satellite - gw2 - host2. Needs root.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  longhaul testbed up --rate '1 Mbit/s' --delay '250 ms' \\
      --errors 'gilbert-elliott={f=0.3,d=\"1 s\"}'
  head -c 1000000 /dev/urandom > file
  longhaul testbed exec host2 -- python3 -m http.server &
  longhaul testbed exec host1 -- curl --fail -o copy http://10.77.2.2:8000/file
  longhaul testbed exec gw1 -- longhaul gateway status
  longhaul testbed down

host1 (at the terminal) is 10.77.1.2 and fd77:1::2, host2 (at the hub) 10.77.2.2 and fd77:2::2.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Up(Box<Up>),
    Exec(Exec),
    Down(Down),
}

/// Build the testbed, and return once it carries packets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  longhaul testbed up --name a --protocol plain --rate '256 kbit/s' \\
      --errors 'gilbert-elliott={f=0.3,d=\"1 s\"}' --seed 3")]
struct Up {
    #[command(flatten)]
    name: NameArgs,
    /// The gateways' link protocol.
    #[arg(long, default_value = "coded", conflicts_with_all = ["link_config", "no_gateway"], value_parser = Known::new(Protocol::NAMES))]
    protocol: String,
    /// TOML file with the keys of a gateway's link table, instead of --protocol; the rate comes from --rate.
    #[arg(long, value_name = "FILE", conflicts_with = "no_gateway")]
    link_config: Option<PathBuf>,
    /// Which rate the gateways are configured with.
    #[arg(long, value_enum, default_value_t = GatewayRate::Auto, conflicts_with = "no_gateway")]
    gateway_rate: GatewayRate,
    /// Do not split TCP connections at the gateways.
    #[arg(long, conflicts_with_all = ["no_gateway", "pep_config"])]
    no_pep: bool,
    /// TOML file with the keys of a gateway's pep table.
    #[arg(long, value_name = "FILE", conflicts_with = "no_gateway")]
    pep_config: Option<PathBuf>,
    /// Leave out the gateways: the emulator connects the two TUN devices.
    #[arg(long)]
    no_gateway: bool,
    /// Largest IP packet between the hosts, in bytes; IPv6 needs at least 1280.
    #[arg(long, default_value_t = 1400, value_parser = clap::value_parser!(u32).range(1280..=1500))]
    mtu: u32,
    #[command(flatten)]
    channel: ChannelArgs,
    /// One more path between the gateways, in TOML: the options of a channel, and how it is used:
    /// rate="20 Mbit/s",delay="25 ms",metered=true. May be given several times.
    #[arg(long, value_name = "PATH", conflicts_with = "no_gateway")]
    path: Vec<String>,
    /// What the first path is used for beside others, in TOML: metered=true, backup=true or
    /// classes=["interactive"].
    #[arg(long, value_name = "USAGE", requires = "path")]
    usage: Option<String>,
    /// How long to wait for the gateways to establish a session, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Run a command in one of the testbed's namespaces, and exit with its exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul testbed exec host1 -- ping -c 3 10.77.2.2")]
struct Exec {
    #[command(flatten)]
    name: NameArgs,
    /// Which namespace to run it in.
    room: RoomName,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Stop the testbed's processes, and remove its namespaces and files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul testbed down --name a")]
struct Down {
    #[command(flatten)]
    name: NameArgs,
}

#[derive(Debug, clap::Args)]
struct NameArgs {
    /// The testbed's name; testbeds with different names can run side by side.
    #[arg(long, default_value = "longhaul")]
    name: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoomName {
    Host1,
    Gw1,
    Sat,
    Gw2,
    Host2,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let result = match &args.action {
        Action::Up(up) => build(up),
        Action::Exec(exec) => enter(exec),
        Action::Down(down) => {
            Name::new(&down.name.name).and_then(|name| testbed::down(&name)).map_err(Wrong::Testbed)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Wrong::Config(error)) => misconfigured(error),
        Err(Wrong::Testbed(error @ TestbedError::Name(_))) => misconfigured(error),
        Err(Wrong::Testbed(error)) => failure(error),
    }
}

/// What went wrong, for the exit code.
enum Wrong {
    Config(ConfigError),
    Testbed(TestbedError),
}

impl From<TestbedError> for Wrong {
    fn from(error: TestbedError) -> Self {
        Self::Testbed(error)
    }
}

impl From<ConfigError> for Wrong {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

fn build(up: &Up) -> Result<(), Wrong> {
    let name = Name::new(&up.name.name)?;
    let channel = up.channel.channel()?;
    let told = |rate| up.gateway_rate.of(rate).expect("a channel's rates are above zero");
    let down = told(channel.rate);
    let up_rate = channel.up_rate.map_or(down, told);
    let config = if up.no_gateway { None } else { Some(link(up)?) };
    let link = config.map(|config| Link { config, up: up_rate, down });
    let protocol =
        link.as_ref().map_or_else(|| "none".to_owned(), |link| link.config.protocol.name().to_owned());
    if let Some(edge) = link.as_ref().and_then(|link| link.edge(channel.greatest_delay().saturating_mul(2))) {
        complain(edge);
    }
    let mut signals = Signals::new().map_err(TestbedError::from)?;
    let options = Options {
        name: name.clone(),
        link,
        pep: pep(up)?,
        channel: up.channel.to_arguments(),
        paths: Paths {
            usage: usage(up)?,
            further: up.path.iter().map(|path| further(up, path)).collect::<Result<_, _>>()?,
        },
        mtu: up.mtu,
        carrier_mtu: testbed::ETHERNET_MTU,
        patience: Duration::from_secs(up.patience.into()),
    };
    testbed::up(&options, || signals.received())?;
    let (host1, host2) = ("10.77.1.2", "10.77.2.2");
    if up.json {
        let directory = name.directory();
        say!(
            "{}",
            serde_json::json!({ "name": name.as_str(), "host1": host1, "host2": host2, "directory": directory })
        );
    } else {
        say!("testbed {} is up ({protocol}); host1 is {host1}, host2 is {host2}", name.as_str());
        say!("  longhaul testbed exec --name {} host1 -- ping -c 3 {host2}", name.as_str());
    }
    Ok(())
}

/// The gateways' link, checked before anything is built.
fn link(up: &Up) -> Result<tunnel::config::Link, ConfigError> {
    let (file, table) = match &up.link_config {
        Some(path) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| ConfigError::about(&file, error))?;
            (file, text)
        }
        None => ("arguments".to_owned(), format!("protocol = \"{}\"", up.protocol)),
    };
    let mut config = tunnel::config::Link::parse_without_rate(&file, &table)?;
    if config.rate != LinkRate::Auto {
        return Err(ConfigError::about(
            &file,
            "rate: not here; --rate and --up-rate give the rates, or --gateway-rate auto or max",
        ));
    }
    if config.overhead != Overhead::default() {
        return Err(ConfigError::about(&file, "overhead: not allowed here; use --overhead"));
    }
    config.overhead = up.channel.overhead;
    Ok(config)
}

/// What the first path is used for.
fn usage(up: &Up) -> Result<PathUsage, ConfigError> {
    up.usage.as_ref().map_or(Ok(PathUsage::default()), |text| read_usage("--usage", &table("--usage", text)?))
}

/// Keys with values, as an option has them.
fn table(option: &str, text: &str) -> Result<toml::Table, ConfigError> {
    let inline = toml::from_str(&format!("it = {{ {text} }}"));
    let table: toml::Table =
        inline.map_err(|error: toml::de::Error| ConfigError::about(option, error.message()))?;
    let it = table.get("it").and_then(toml::Value::as_table);
    it.cloned()
        .ok_or_else(|| ConfigError::about(option, "no keys; allowed is rate=\"20 Mbit/s\" and the like"))
}

fn read_usage(option: &str, keys: &toml::Table) -> Result<PathUsage, ConfigError> {
    base::config::parse(option, &keys.to_string())
}

/// A further path, as it is written.
fn further(up: &Up, text: &str) -> Result<FurtherPath, ConfigError> {
    let (channel, usage) = read_path(text)?;
    let rates = channel.channel()?;
    let rate =
        up.gateway_rate.of(rates.up_rate.unwrap_or(rates.rate)).expect("a channel's rates are above zero");
    Ok(FurtherPath { channel: channel.to_arguments(), rate, usage })
}

/// A value of `--path`: a channel, and what the path is used for.
pub(crate) fn read_path(text: &str) -> Result<(ChannelArgs, PathUsage), ConfigError> {
    const OPTION: &str = "--path";
    let mut keys = table(OPTION, text)?;
    let mut usage = toml::Table::new();
    for key in ["metered", "backup", "classes"] {
        usage.extend(keys.remove_entry(key));
    }
    let usage = read_usage(OPTION, &usage)?;
    // What an option is called is its key, and a flag has no value.
    let arguments = keys.into_iter().flat_map(|(key, value)| match value {
        toml::Value::Boolean(true) => vec![format!("--{key}")],
        toml::Value::Boolean(false) => vec![],
        toml::Value::String(value) => vec![format!("--{key}"), value],
        value => vec![format!("--{key}"), value.to_string()],
    });
    let arguments = core::iter::once(OPTION.to_owned()).chain(arguments);
    let channel = OfPath::try_parse_from(arguments).map_err(|error| {
        let said = error.to_string();
        ConfigError::about(OPTION, said.lines().next().unwrap_or_default().trim_start_matches("error: "))
    })?;
    Ok((channel.channel, usage))
}

/// The options of a further path's channel.
#[derive(clap::Parser)]
struct OfPath {
    #[command(flatten)]
    channel: ChannelArgs,
}

/// The gateways' proxy, if there is to be one.
fn pep(up: &Up) -> Result<Option<pep::Config>, ConfigError> {
    let Some(path) = &up.pep_config else { return Ok((!up.no_pep).then(pep::Config::default)) };
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::about(&file, error))?;
    base::config::parse(&file, &text).map(Some)
}

fn enter(exec: &Exec) -> Result<(), Wrong> {
    let room = match exec.room {
        RoomName::Host1 => Room::Host1,
        RoomName::Gw1 => Room::Gateway1,
        RoomName::Sat => Room::Satellite,
        RoomName::Gw2 => Room::Gateway2,
        RoomName::Host2 => Room::Host2,
    };
    Err(testbed::exec(&Name::new(&exec.name.name)?, room, &exec.command).into())
}
