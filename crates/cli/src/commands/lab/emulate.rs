//! `longhaul emulate`: the channel in real time.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use base::Duration;
use base::config::ConfigError;
use field::emulator::{Emulator, Options, Ports, Report, UdpPort};
use gateway::config::InterfaceName;
use gateway::signals::Signals;
use tunnel::config::Overhead;

use crate::commands::outcome::{failure, misconfigured, say};

/// Carry packets between two UDP ports, or two TUN devices, as a bad link would.
///
/// Side A is the hub and side B the terminal: down is from A to B, up from B to A. Rates count whole IP packets plus
/// --overhead.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul emulate --udp-a 127.0.0.1:7001 --peer-a 127.0.0.1:7000 \\
      --udp-b 127.0.0.1:7002 --rate '256 kbit/s' --delay '250 ms' \\
      --errors 'gilbert-elliott={f=0.3,d=\"1 s\"}' --stats 5
  longhaul emulate --tun-a sat0 --tun-b sat1 --rate '10 Mbit/s' \\
      --up-rate '1 Mbit/s' --delay '270 ms'")]
pub(crate) struct Arguments {
    /// Local UDP address of side A.
    #[arg(long, value_name = "ADDR:PORT", requires = "udp_b", required_unless_present = "tun_a")]
    udp_a: Option<SocketAddr>,
    /// Where to send side A's packets [default: where its latest packet came from].
    #[arg(long, value_name = "ADDR:PORT", requires = "udp_a")]
    peer_a: Option<SocketAddr>,
    /// Local UDP address of side B.
    #[arg(long, value_name = "ADDR:PORT", requires = "udp_a")]
    udp_b: Option<SocketAddr>,
    /// Where to send side B's packets [default: where its latest packet came from].
    #[arg(long, value_name = "ADDR:PORT", requires = "udp_b")]
    peer_b: Option<SocketAddr>,
    /// Name of side A's TUN device, which this command creates.
    #[arg(long, value_name = "NAME", requires = "tun_b", conflicts_with = "udp_a", value_parser = interface)]
    tun_a: Option<String>,
    /// Name of side B's TUN device, which this command creates.
    #[arg(long, value_name = "NAME", requires = "tun_a", value_parser = interface)]
    tun_b: Option<String>,
    #[command(flatten)]
    channel: ChannelArgs,
    /// Print the counters at this interval, in seconds.
    #[arg(long, value_name = "SECONDS")]
    stats: Option<u32>,
    /// Print counters as JSON objects, one per line.
    #[arg(long)]
    json: bool,
}

/// The channel, as `emulate` and `testbed up` take it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ChannelArgs {
    /// Rate from A to B (down).
    #[arg(long, value_name = "RATE", default_value = "1 Mbit/s")]
    pub(crate) rate: String,
    /// Rate from B to A (up) [default: the same as --rate].
    #[arg(long, value_name = "RATE")]
    pub(crate) up_rate: Option<String>,
    /// Changes of the rate over time, in TOML: [{at="20 s",rate="500 kbit/s"}]; with --up-rate, each may have an up-rate too.
    #[arg(long, value_name = "CHANGES")]
    pub(crate) rate_changes: Option<String>,
    /// Propagation delay, one way.
    #[arg(long, value_name = "TIME", default_value = "250 ms")]
    pub(crate) delay: String,
    /// Error model, in TOML: none, bit-errors={ber=1e-5}, erasure={probability=0.01},
    /// gilbert-elliott={f=0.3,d="1 s"}, periodic={open="10 s",blocked="5 s"}, trace={file="outages.csv"}, or several:
    /// any=[{erasure={probability=0.01}},{gilbert-elliott={f=0.3,d="1 s"}}].
    #[arg(long, value_name = "MODEL", default_value = "none")]
    pub(crate) errors: String,
    /// Error model from B to A [default: the same as --errors].
    #[arg(long, value_name = "MODEL")]
    pub(crate) up_errors: Option<String>,
    /// Block each direction independently, instead of both at the same times.
    #[arg(long)]
    pub(crate) uncorrelated: bool,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Extra bytes that each packet takes up on the line, -64 to 256.
    #[arg(long, value_name = "BYTES", default_value = "0", allow_negative_numbers = true, value_parser = overhead)]
    pub(crate) overhead: Overhead,
    /// Length of the queue in front of each line, in packets.
    #[arg(long, value_name = "PACKETS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) line_queue: u32,
}

/// What the path does besides errors, each in TOML.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PathArgs {
    /// Changes of the delay over time, in steps or slowly: [{at="20 s",delay="80 ms"},{at="60 s",delay="30 ms",over="2 min"}].
    #[arg(long, value_name = "CHANGES")]
    pub(crate) delay_changes: Option<String>,
    /// Time added to the delay slot by slot, perhaps with silence between two: {every="15 s",more=["0 ms","9 ms"],gap="60 ms"}.
    #[arg(long, value_name = "SLOTS")]
    pub(crate) delay_slots: Option<String>,
    /// Let packets overtake those sent before them when the delay falls.
    #[arg(long)]
    pub(crate) overtaking: bool,
    /// Random additions to the delay: in-order={up-to="50 ms"}, or
    /// overtaking={probability=0.1,from="1 ms",to="20 ms"} for that part of the packets, which others then overtake.
    #[arg(long, value_name = "JITTER")]
    pub(crate) jitter: Option<String>,
    /// Jitter from B to A [default: the same as --jitter].
    #[arg(long, value_name = "JITTER")]
    pub(crate) up_jitter: Option<String>,
    /// Drop longer packets, in silence: {bytes=1280}, for a time {bytes=1280,from="10 s",until="20 s"}.
    #[arg(long, value_name = "LIMIT")]
    pub(crate) largest_packet: Option<String>,
    /// Largest packet from B to A [default: the same as --largest-packet].
    #[arg(long, value_name = "LIMIT")]
    pub(crate) up_largest_packet: Option<String>,
    /// Drop what exceeds a rate and a burst, in front of the queue: {rate="5 Mbit/s",burst="15 kB"}.
    #[arg(long, value_name = "POLICER")]
    pub(crate) policer: Option<String>,
    /// Policer from B to A [default: the same as --policer].
    #[arg(long, value_name = "POLICER")]
    pub(crate) up_policer: Option<String>,
}

/// How an option's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// In TOML.
    Toml,
    /// A name, or a name and parameters: see [`model`].
    Model,
}

impl PathArgs {
    /// The keys that are given, with their values.
    fn options(&self) -> impl Iterator<Item = (&'static str, &str, Kind)> {
        let all = [
            ("delay-changes", &self.delay_changes, Kind::Toml),
            ("delay-slots", &self.delay_slots, Kind::Toml),
            ("jitter", &self.jitter, Kind::Model),
            ("up-jitter", &self.up_jitter, Kind::Model),
            ("largest-packet", &self.largest_packet, Kind::Toml),
            ("up-largest-packet", &self.up_largest_packet, Kind::Toml),
            ("policer", &self.policer, Kind::Toml),
            ("up-policer", &self.up_policer, Kind::Toml),
        ];
        all.into_iter().filter_map(|(key, value, kind)| Some((key, value.as_deref()?, kind)))
    }
}

/// A complaint about a line that was written for an option is one about the option.
fn of_option(error: ConfigError) -> ConfigError {
    match error.excerpt.split_once(" = ") {
        Some((key, value)) => {
            ConfigError::about(&format!("--{key} {}", value.trim_matches('"')), error.message)
        }
        None => ConfigError { line: None, ..error },
    }
}

impl ChannelArgs {
    /// The channel, checked, with its recordings loaded.
    pub(crate) fn channel(&self) -> Result<channel::duplex::Config, ConfigError> {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key} = {value}");
        };
        line("rate", &quoted(&self.rate));
        line("delay", &quoted(&self.delay));
        line("errors", &model(&self.errors));
        if let Some(rate) = &self.up_rate {
            line("up-rate", &quoted(rate));
        }
        if let Some(changes) = &self.rate_changes {
            line("rate-changes", changes);
        }
        if let Some(errors) = &self.up_errors {
            line("up-errors", &model(errors));
        }
        if self.uncorrelated {
            line("correlated", "false");
        }
        for (key, value, kind) in self.path.options() {
            line(key, &if kind == Kind::Model { model(value) } else { value.to_owned() });
        }
        if self.path.overtaking {
            line("overtaking", "true");
        }
        let mut channel: channel::duplex::Config =
            base::config::parse("arguments", &text).map_err(of_option)?;
        if !channel.rate_changes.is_sorted_by(|a, b| a.at < b.at) {
            let message = "not in order; allowed are times in increasing order";
            return Err(ConfigError::about("--rate-changes", message));
        }
        if let Err(complaint) = channel.check_path() {
            let message = format!("the channel {}", complaint.message);
            return Err(ConfigError::about(&format!("--{}", complaint.key), message));
        }
        if let Some(key) = channel.saying_key() {
            let message = "the emulator tells nobody of dropped packets; allowed is says = false";
            return Err(ConfigError::about(&format!("--{key}"), message));
        }
        let read = |file: &str| std::fs::read_to_string(file);
        channel.errors.load(read)?;
        if let Some(errors) = &mut channel.up_errors {
            errors.load(read)?;
        }
        Ok(channel)
    }

    /// These options as command-line arguments, for another process.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut option = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        option("rate", self.rate.clone());
        option("delay", self.delay.clone());
        option("errors", self.errors.clone());
        option("seed", self.seed.to_string());
        option("line-queue", self.line_queue.to_string());
        option("overhead", self.overhead.get().to_string());
        if let Some(rate) = &self.up_rate {
            option("up-rate", rate.clone());
        }
        if let Some(changes) = &self.rate_changes {
            option("rate-changes", changes.clone());
        }
        if let Some(errors) = &self.up_errors {
            option("up-errors", errors.clone());
        }
        for (key, value, _) in self.path.options() {
            option(key, value.to_owned());
        }
        if self.path.overtaking {
            arguments.push("--overtaking".to_owned());
        }
        if self.uncorrelated {
            arguments.push("--uncorrelated".to_owned());
        }
        arguments
    }
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let channel = match args.channel.channel() {
        Ok(channel) => channel,
        Err(error) => return misconfigured(error),
    };
    let ports = match (args.udp_a, args.udp_b, &args.tun_a, &args.tun_b) {
        (Some(a), Some(b), _, _) => Ports::Udp {
            a: UdpPort { listen: a, peer: args.peer_a },
            b: UdpPort { listen: b, peer: args.peer_b },
        },
        (_, _, Some(a), Some(b)) => Ports::Tun { a: a.clone(), b: b.clone() },
        _ => return misconfigured("ports: allowed are --udp-a with --udp-b, or --tun-a with --tun-b"),
    };
    let report_every = args.stats.map(|seconds| Duration::from_secs(seconds.max(1).into()));
    let options = Options {
        ports,
        channel,
        seed: args.channel.seed,
        overhead: args.channel.overhead,
        queue: args.channel.line_queue as usize,
        report_every,
    };
    let result = Signals::new().and_then(|mut signals| {
        let mut emulator = Emulator::new(&options)?;
        emulator.run(&mut signals, |report| print(report, args.json))?;
        print(&emulator.report(), args.json);
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(error),
    }
}

fn print(report: &Report, json: bool) {
    if json {
        say!("{}", serde_json::json!(report));
        return;
    }
    for (name, counters) in [("down", &report.down), ("up", &report.up)] {
        say!(
            "{:9.3} s  {name:4}  {} packets, {} bytes; delivered {}, queue full {}, damaged {}, too long {}, policed {}, \
             not accepted {}; missed {}, at most {:.1} ms late",
            report.seconds,
            counters.packets.get(),
            counters.bytes.get(),
            counters.delivered.get(),
            counters.dropped_queue.get(),
            counters.damaged.get(),
            counters.too_long,
            counters.policed,
            counters.dropped_at_exit.get(),
            counters.dropped_at_entry,
            counters.greatest_lateness_us as f64 / 1000.0,
        );
    }
}

fn interface(name: &str) -> Result<String, String> {
    InterfaceName::try_from(name.to_owned()).map(|name| name.as_str().to_owned())
}

fn overhead(bytes: &str) -> Result<Overhead, String> {
    bytes.parse::<i16>().map_err(|_| "allowed are -64 to 256 (bytes)".to_owned()).and_then(Overhead::try_from)
}

fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// `none` or `name={…}` as a TOML value.
fn model(text: &str) -> String {
    if text.contains('=') { format!("{{ {text} }}") } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(Debug, clap::Parser)]
    struct Wrapper {
        #[command(flatten)]
        channel: ChannelArgs,
    }

    fn parse(arguments: &[&str]) -> ChannelArgs {
        Wrapper::parse_from([&["x"], arguments].concat()).channel
    }

    #[test]
    fn a_channel_survives_as_arguments() {
        let args = parse(&[
            "--rate",
            "2 Mbit/s",
            "--errors",
            "gilbert-elliott={f=0.3,d=\"1 s\"}",
            "--up-rate",
            "64 kbit/s",
            "--seed",
            "7",
            "--overhead",
            "-55",
            "--uncorrelated",
        ]);
        let again = args.to_arguments();
        let again = parse(&again.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(args.channel().unwrap(), again.channel().unwrap());
        assert_eq!((again.seed, again.uncorrelated, again.overhead.get()), (7, true, -55));
    }

    #[test]
    fn a_path_survives_as_arguments_and_means_what_it_says() {
        let options = [
            ("--errors", "any=[{erasure={probability=0.01}},{gilbert-elliott={f=0.3,d=\"1 s\"}}]"),
            (
                "--delay-changes",
                "[{at=\"20 s\",delay=\"80 ms\"},{at=\"60 s\",delay=\"30 ms\",over=\"2 min\"}]",
            ),
            ("--delay-slots", "{every=\"15 s\",more=[\"0 ms\",\"9 ms\"],gap=\"60 ms\"}"),
            ("--jitter", "overtaking={probability=0.1,from=\"1 ms\",to=\"20 ms\"}"),
            ("--up-jitter", "none"),
            ("--largest-packet", "{bytes=1280,from=\"10 s\",until=\"20 s\"}"),
            ("--up-largest-packet", "{bytes=1400}"),
            ("--policer", "{rate=\"5 Mbit/s\",burst=\"15 kB\"}"),
            ("--up-policer", "{rate=\"1 Mbit/s\",burst=\"15 kB\"}"),
        ];
        let mut arguments: Vec<&str> = options.iter().flat_map(|(name, value)| [*name, *value]).collect();
        arguments.push("--overtaking");
        let args = parse(&arguments);
        let again = args.to_arguments();
        let again = parse(&again.iter().map(String::as_str).collect::<Vec<_>>());
        let channel = args.channel().unwrap();
        assert_eq!(channel, again.channel().unwrap());
        let keys = [
            "delay-changes",
            "delay-slots",
            "overtaking",
            "jitter",
            "largest-packet",
            "up-largest-packet",
            "policer",
            "up-policer",
        ];
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(channel.path_key_besides(&keys[..number]), Some(*key));
        }
        assert_eq!((channel.path_key_besides(&keys), channel.errors.each().len()), (None, 2));
    }

    #[test]
    fn a_path_that_the_emulator_cannot_have_is_refused() {
        let complaint = |arguments: &[&str]| parse(arguments).channel().unwrap_err().to_string();
        let says = complaint(&["--largest-packet", "{bytes=1280,says=true}"]);
        assert!(
            says.contains("largest-packet: the emulator tells nobody") && says.contains("says = false"),
            "{says}"
        );
        let order = complaint(&["--delay-changes", "[{at=\"0 s\",delay=\"1 ms\"}]"]);
        assert!(order.contains("delay-changes: the channel changes its delay at 0 s; allowed"), "{order}");
    }

    #[test]
    fn a_wrong_channel_says_what_is_allowed() {
        let complaint = |arguments: &[&str]| parse(arguments).channel().unwrap_err().to_string();
        let rate = complaint(&["--rate", "1 Mbps"]);
        assert!(rate.starts_with("--rate 1 Mbps: ") && rate.contains("Mbit/s"), "{rate}");
        let model = complaint(&["--errors", "gilbert={f=0.3}"]);
        assert!(model.contains("gilbert") && model.contains("expected one of"), "{model}");
        let f = complaint(&["--errors", "gilbert-elliott={f=1.5,d=\"1 s\"}"]);
        assert!(f.contains("1.5 is not a blocked fraction; allowed"), "{f}");
    }
}
