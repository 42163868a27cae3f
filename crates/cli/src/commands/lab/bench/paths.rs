//! `longhaul bench paths`: what several paths give together, beside Multipath TCP and each path alone.

use std::process::ExitCode;

use base::config::ConfigError;
use base::{Duration, Rate};
use field::comparison::configuration::Controller;
use field::paths::{self, Measured, Plan};
use field::testbed::{self, FurtherPath, Name, PathUsage, Paths, TestbedError};
use lab::statistics::{Spread, quantile};
use serde_json::json;
use tunnel::config::{Link, LinkRate};

use crate::commands::lab::emulate::ChannelArgs;
use crate::commands::lab::testbed::read_path;
use crate::commands::outcome::{complain, failure, misconfigured, say};

/// Measure a download by the kernel's TCP over several paths, and short requests beside it. Needs root.
///
/// Gateways carry them over all paths, with nothing configured but the paths. Beside them, on the same emulated lines with
/// the same seeds: the kernel's Multipath TCP over all paths, begun over the one with the shortest delay, and its TCP
/// over each path alone. Each measurement has its own testbed; they take turns.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench paths --runs 3
  longhaul bench paths --path 'rate=\"50 Mbit/s\",delay=\"300 ms\"' \\
      --path 'rate=\"20 Mbit/s\",delay=\"25 ms\"' --scheme gateways")]
pub(crate) struct Arguments {
    /// A path, in TOML: the options of a channel, such as rate="20 Mbit/s",delay="25 ms". May be given several times.
    #[arg(long = "path", value_name = "PATH", default_values = USUAL)]
    paths: Vec<String>,
    /// What is measured, if not everything.
    #[arg(long = "scheme", value_name = "NAME", value_enum)]
    schemes: Vec<Scheme>,
    /// Congestion control of the kernel's connections.
    #[arg(long, value_enum, default_value_t = Control::Bbr)]
    controller: Control,
    /// Limit of TCP's buffers at both ends, in megabytes [default: the kernel's].
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1000))]
    buffers: Option<u64>,
    /// Measurements of each scheme, with seeds 1 to this number; schemes take turns.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long requests go alone, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    idle_seconds: u32,
    /// How long the download is measured, from its first SYN, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// How long requests go beside it then, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    loaded_seconds: u32,
    /// Bytes of a reply.
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    reply: u32,
    /// Print one JSON object with what each request took.
    #[arg(long)]
    json: bool,
}

/// A satellite and a mobile network.
const USUAL: [&str; 2] =
    ["rate=\"50 Mbit/s\",delay=\"300 ms\",line-queue=500", "rate=\"20 Mbit/s\",delay=\"25 ms\""];
/// Largest IP packet between the hosts, in bytes: the gateway's default.
const MTU: u32 = 1400;

/// What is between the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scheme {
    /// Two gateways over all paths.
    Gateways,
    /// Multipath TCP over all paths.
    Multipath,
    /// TCP over each path alone.
    Alone,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Control {
    Reno,
    Cubic,
    Bbr,
}

/// What is measured, and what came of each run.
struct Cell {
    name: String,
    scheme: Scheme,
    /// Numbers of its paths.
    paths: Vec<usize>,
    runs: Vec<Measured>,
}

/// A path, as it is given.
struct Given {
    channel: ChannelArgs,
    usage: PathUsage,
    rate: Rate,
    delay: Duration,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let given = match args.paths.iter().map(|text| Given::read(text)).collect::<Result<Vec<_>, _>>() {
        Ok(given) if (2..=8).contains(&given.len()) => given,
        Ok(given) => {
            return misconfigured(format_args!("--path is given {} times; allowed are 2 to 8", given.len()));
        }
        Err(error) => return misconfigured(error),
    };
    match measure(args, &given) {
        Ok(cells) => {
            print(args, &given, &cells);
            ExitCode::SUCCESS
        }
        Err(error) => failure(error),
    }
}

impl Given {
    fn read(text: &str) -> Result<Self, ConfigError> {
        let (arguments, usage) = read_path(text)?;
        let channel = arguments.channel()?;
        Ok(Self { channel: arguments, usage, rate: channel.rate, delay: channel.greatest_delay() })
    }

    /// Its emulator's arguments in the run of this seed. Paths have realisations of their own, the same for all schemes.
    fn channel(&self, number: usize, seed: u32) -> Vec<String> {
        let seed = u64::from(seed) * 8 + number as u64;
        ChannelArgs { seed, ..self.channel.clone() }.to_arguments()
    }
}

impl Cell {
    fn all(args: &Arguments, count: usize) -> Vec<Self> {
        let over_all = (0..count).collect::<Vec<_>>();
        let cell = |name: String, scheme, paths| Self { name, scheme, paths, runs: Vec::new() };
        let mut cells = vec![
            cell("gateways".to_owned(), Scheme::Gateways, over_all.clone()),
            cell("multipath TCP".to_owned(), Scheme::Multipath, over_all),
        ];
        cells.extend((0..count).map(|at| cell(format!("path {} alone", at + 1), Scheme::Alone, vec![at])));
        cells.retain(|cell| args.schemes.is_empty() || args.schemes.contains(&cell.scheme));
        cells
    }

    fn options(&self, given: &[Given], seed: u32) -> Result<testbed::Options, TestbedError> {
        let auto = |()| -> Result<testbed::Link, ConfigError> {
            let config = Link::parse_without_rate("the gateways' link", "")?;
            Ok(testbed::Link { config, up: LinkRate::Auto, down: LinkRate::Auto })
        };
        let has_gateways = self.scheme == Scheme::Gateways;
        let [first, further @ ..] = &self.paths[..] else { unreachable!("each cell has a path") };
        let further = further.iter().map(|at| FurtherPath {
            channel: given[*at].channel(*at, seed),
            rate: LinkRate::Auto,
            usage: given[*at].usage.clone(),
        });
        Ok(testbed::Options {
            name: Name::new(&format!("lhw{}", std::process::id()))?,
            link: has_gateways.then_some(()).map(auto).transpose().map_err(std::io::Error::other)?,
            pep: has_gateways.then(pep::Config::default),
            channel: given[*first].channel(*first, seed),
            paths: Paths { usage: given[*first].usage.clone(), further: further.collect() },
            mtu: MTU,
            carrier_mtu: testbed::ETHERNET_MTU,
            patience: Duration::from_secs(60),
        })
    }

    fn plan(&self, args: &Arguments, given: &[Given]) -> Plan {
        let nearest = (0..given.len()).min_by_key(|at| given[*at].delay);
        let seconds = |count: u32| Duration::from_secs(count.into());
        Plan {
            controller: match args.controller {
                Control::Reno => Controller::Reno,
                Control::Cubic => Controller::Cubic,
                Control::Bbr => Controller::Bbr,
            },
            multipath: nearest.filter(|_| self.scheme == Scheme::Multipath),
            buffer_limit: args.buffers.map(|megabytes| megabytes * 1_000_000),
            idle: seconds(args.idle_seconds),
            download: seconds(args.seconds),
            loaded: seconds(args.loaded_seconds),
            reply: args.reply as usize,
        }
    }
}

fn measure(args: &Arguments, given: &[Given]) -> Result<Vec<Cell>, TestbedError> {
    let mut cells = Cell::all(args, given.len());
    for seed in 1..=args.runs {
        for cell in &mut cells {
            let measured = paths::measure(&cell.options(given, seed)?, &cell.plan(args, given))?;
            complain(format_args!("{}, seed {seed}: {:.1} Mbit/s", cell.name, measured.goodput_mbps));
            cell.runs.push(measured);
        }
    }
    Ok(cells)
}

fn print(args: &Arguments, given: &[Given], cells: &[Cell]) {
    if args.json {
        let cell = |cell: &Cell| json!({ "scheme": cell.name, "runs": cell.runs });
        let cells: Vec<_> = cells.iter().map(cell).collect();
        return say!("{:#}", json!({ "paths": args.paths, "cells": cells }));
    }
    for (number, path) in args.paths.iter().enumerate() {
        say!("path {}: {path}", number + 1);
    }
    let sum: u64 = given.iter().map(|path| path.rate.as_bps()).sum();
    say!(
        "\ndownload of {} s from its first SYN, {} Mbit/s in all; replies of {} bytes in ms, alone and beside it; {} runs\n",
        args.seconds,
        sum as f64 / 1e6,
        args.reply,
        args.runs
    );
    say!("{:15} Mbit/s (least - most)    idle    95 %   beside    95 %", "");
    for cell in cells {
        let Some(goodput) = Spread::of(cell.runs.iter().map(|run| run.goodput_mbps)) else { continue };
        let of = |times: fn(&Measured) -> &Vec<f64>, part| {
            let mut all: Vec<f64> = cell.runs.iter().flat_map(times).copied().collect();
            all.sort_by(f64::total_cmp);
            if all.is_empty() { f64::NAN } else { quantile(&all, part) }
        };
        say!(
            "{:15} {:>6.1} ({:>5.1} - {:>5.1})     {:>6.0}  {:>6.0}   {:>6.0}  {:>6.0}",
            cell.name,
            goodput.median,
            goodput.min,
            goodput.max,
            of(|run| &run.idle_ms, 0.5),
            of(|run| &run.idle_ms, 0.95),
            of(|run| &run.loaded_ms, 0.5),
            of(|run| &run.loaded_ms, 0.95),
        );
    }
}
