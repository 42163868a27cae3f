//! `longhaul bench channels`: the kernel's TCP over each protocol and over none, on a grid of channels.

use std::process::ExitCode;

use base::config::ConfigError;
use base::{Duration, Rate};
use field::bulk::{self, Case, Options, Run};
use field::comparison::configuration::{Configuration, Controller};
use field::testbed::{self, TestbedError};
use gateway::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};
use lab::statistics::Spread;
use serde_json::{Value, json};

use super::percent;
use crate::commands::lab::scheme::{GatewayRate, Scheme};
use crate::commands::outcome::{failure, say, show};

/// Measure downloads by the kernel's CUBIC and BBR, in real time, with each link protocol and without gateways. Needs root.
///
/// Each run has its own testbed. The emulated line has a queue of one bandwidth-delay product. The gateways are configured with
/// its rate unless --gateway-rate says otherwise. Options with several values may be repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench channels --seconds 20
  longhaul bench channels --rate 20 --rtt 20 --loss 0 --scheme wide \\
      --flood 0 --flood 100000
  longhaul bench channels --rate 50 --rtt 600 --loss 0 --loss 1 \\
      --scheme none --scheme plain --seeds 3")]
pub(crate) struct Arguments {
    /// Rate of the line, in Mbit/s.
    #[arg(long = "rate", value_name = "MBIT/S", default_values_t = [1, 10, 20], value_parser = clap::value_parser!(u64).range(1..=1000))]
    rates: Vec<u64>,
    /// Round-trip time, in milliseconds.
    #[arg(long = "rtt", value_name = "MS", default_values_t = [50, 600], value_parser = clap::value_parser!(u64).range(2..=10_000))]
    round_trips: Vec<u64>,
    /// Random packet loss in each direction, in percent.
    #[arg(long = "loss", value_name = "PERCENT", default_values_t = [0.0, 1.0, 5.0], value_parser = percent)]
    losses: Vec<f64>,
    /// Flood the hub's gateway with this many bogus handshake initiations per second.
    #[arg(long = "flood", value_name = "DATAGRAMS", default_values_t = [0], value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    floods: Vec<u32>,
    /// What is between the hosts: nothing, or gateways with a link protocol; those ending in -pep split TCP connections too.
    #[arg(long = "scheme", value_name = "NAME", value_enum, default_values_t = Scheme::USUAL)]
    schemes: Vec<Scheme>,
    /// Which rate the gateways are configured with.
    #[arg(long, value_enum, default_value_t = GatewayRate::Line)]
    gateway_rate: GatewayRate,
    /// The hosts' congestion control.
    #[arg(long = "congestion", value_enum, default_values_t = [Congestion::Cubic, Congestion::Bbr])]
    controllers: Vec<Congestion>,
    /// Largest socket buffers of the hosts, in MiB [default: the kernel's, 4 to send and 6 to receive].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1024))]
    host_buffers: Option<u64>,
    /// Connections per download.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    streams: u16,
    /// Channel realisations: seeds 1 to this number.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// How long each download lasts, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Testbeds to run at the same time; more than two per core may overload the machine.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    jobs: u16,
    /// Print one JSON object with every run instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Congestion {
    Cubic,
    Bbr,
}

impl Congestion {
    const fn controller(self) -> Controller {
        match self {
            Self::Cubic => Controller::Cubic,
            Self::Bbr => Controller::Bbr,
        }
    }
}

/// A channel of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    /// Mbit/s.
    rate: u64,
    /// Milliseconds.
    round_trip: u64,
    /// Percent.
    loss: f64,
    /// Datagrams a second.
    flood: u32,
}

/// When downloads open: the gateways know each other, and the emulator is up.
const OPENS: Duration = Duration::from_secs(3);
/// Largest IP packet between the hosts, and of the line, in bytes: the gateway's defaults.
const MTU: u32 = 1400;

impl Place {
    fn case(self, scheme: Scheme, told: GatewayRate, seed: u64) -> Result<Case, ConfigError> {
        let rate = Rate::from_bps(self.rate * 1_000_000);
        let told = told.of(rate).unwrap_or_else(|| unreachable!("rates are above zero"));
        let link = scheme.link(told)?;
        let packet_bits = u64::from(testbed::ETHERNET_MTU) * 8;
        let queue = rate.bits_in(Duration::from_millis(self.round_trip)).div_ceil(packet_bits).max(10);
        let channel = [
            ("--rate", format!("{} Mbit/s", self.rate)),
            ("--delay", format!("{} us", self.round_trip * 500)),
            ("--seed", seed.to_string()),
            ("--line-queue", queue.to_string()),
        ];
        let errors = match self.loss {
            0.0 => "none".to_owned(),
            loss => format!("erasure={{probability={}}}", loss / 100.0),
        };
        let channel = channel.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        Ok(Case { link, pep: scheme.pep(), rate, channel, errors, flood: self.flood })
    }
}

/// One cell of the table: its downloads' Mbit/s.
struct Cell {
    place: Place,
    congestion: Congestion,
    scheme: Scheme,
    goodput: Vec<f64>,
    /// The floods that were reached, in datagrams a second.
    floods: Vec<f64>,
    /// Downloads that failed: their seeds, and why.
    failures: Vec<(u64, String)>,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let cells = match measure(args) {
        Ok(cells) => cells,
        Err(error) => return failure(error),
    };
    if args.json {
        let cells: Vec<_> = cells.iter().map(object).collect();
        say!("{:#}", json!({ "seconds": args.seconds, "streams": args.streams, "cells": cells }));
    } else {
        print(args, &cells);
    }
    let mut code = ExitCode::SUCCESS;
    for Cell { place, congestion, scheme, failures, .. } in &cells {
        let Place { rate, round_trip, loss, .. } = place;
        for (seed, why) in failures {
            let (congestion, scheme) = (congestion.controller().name(), scheme.name());
            code = failure(format_args!(
                "{scheme}, {congestion}, {rate} Mbit/s, {round_trip} ms, {loss} %, seed {seed}: {why}"
            ));
        }
    }
    code
}

/// What is to be measured, nothing measured yet.
fn cells(args: &Arguments) -> Vec<Cell> {
    let mut places = Vec::new();
    for &rate in &args.rates {
        for &round_trip in &args.round_trips {
            for &loss in &args.losses {
                places.extend(args.floods.iter().map(|&flood| Place { rate, round_trip, loss, flood }));
            }
        }
    }
    let rows =
        args.controllers.iter().flat_map(|&congestion| places.iter().map(move |&place| (congestion, place)));
    rows.flat_map(|(congestion, place)| {
        let cell = move |&scheme: &Scheme| Cell {
            place,
            congestion,
            scheme,
            goodput: Vec::new(),
            floods: Vec::new(),
            failures: Vec::new(),
        };
        args.schemes.iter().map(cell)
    })
    .collect()
}

fn measure(args: &Arguments) -> Result<Vec<Cell>, TestbedError> {
    let mut signals = Signals::new()?;
    let mut cells = cells(args);
    let bar = ProgressBar::new(cells.len() as u64 * args.seeds);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} downloads, {eta} left") {
        bar.set_style(style);
    }
    for &congestion in &args.controllers {
        let ours = |cell: &&mut Cell| cell.congestion == congestion;
        let mut cells: Vec<&mut Cell> = cells.iter_mut().filter(ours).collect();
        let seeds = 1..=args.seeds;
        let cases = cells
            .iter()
            .flat_map(|cell| seeds.clone().map(|seed| cell.place.case(cell.scheme, args.gateway_rate, seed)));
        let cases = cases.collect::<Result<Vec<_>, _>>().map_err(std::io::Error::other)?;
        let configuration = Configuration { controller: congestion.controller(), sack: true, scaling: true };
        let options = Options {
            configuration,
            host_buffers: args.host_buffers.map(|mebibytes| mebibytes << 20),
            streams: args.streams,
            mtu: MTU,
            carrier_mtu: testbed::ETHERNET_MTU,
            opens: OPENS,
            duration: Duration::from_secs(args.seconds.into()),
            jobs: args.jobs.into(),
        };
        let runs = bulk::run(&options, &cases, &mut signals, |_| bar.inc(1))?;
        let goodput = |run: &Run| run.bytes as f64 * 8.0 / f64::from(args.seconds) / 1e6;
        for (cell, runs) in cells.iter_mut().zip(runs.chunks(args.seeds as usize)) {
            for (seed, run) in seeds.clone().zip(runs) {
                match run {
                    Ok(run) => {
                        cell.goodput.push(goodput(run));
                        cell.floods.push(run.flood);
                    }
                    Err(error) => cell.failures.push((seed, error.to_string())),
                }
            }
        }
    }
    bar.finish_and_clear();
    Ok(cells)
}

fn print(args: &Arguments, cells: &[Cell]) {
    say!(
        "application goodput in Mbit/s over {} s from the first SYN, {} connections: median (min - max) of {} seeds; {} testbeds at a time\n",
        args.seconds,
        args.streams,
        args.seeds,
        args.jobs
    );
    let floods = args.floods.iter().any(|flood| *flood > 0);
    show(format_args!("{:>8} {:>7} {:>6} {:>6}", "Mbit/s", "RTT", "loss", "TCP"));
    if floods {
        show(format_args!(" {:>8}", "junk/s"));
    }
    args.schemes.iter().for_each(|scheme| show(format_args!("  {:>22}", scheme.name())));
    say!();
    for row in cells.chunks(args.schemes.len()) {
        let Some(Cell { place, congestion, .. }) = row.first() else { return };
        let Place { rate, round_trip, loss, .. } = place;
        show(format_args!("{rate:>8} {round_trip:>4} ms {loss:>4} % {:>6}", congestion.controller().name()));
        if floods {
            let reached = row.iter().flat_map(|cell| &cell.floods).copied();
            show(format_args!(" {:>8.0}", Spread::of(reached).map_or(0.0, |spread| spread.median)));
        }
        for cell in row {
            let spread = Spread::of(cell.goodput.iter().copied());
            let text = spread.map_or_else(
                || "failed".to_owned(),
                |spread| match args.seeds {
                    1 => format!("{:.2}", spread.median),
                    _ => format!("{:.2} ({:.2} - {:.2})", spread.median, spread.min, spread.max),
                },
            );
            let text = match (cell.goodput.len(), cell.failures.len()) {
                (0, _) | (_, 0) => text,
                (done, failed) => format!("{text} {done} of {}", done + failed),
            };
            show(format_args!("  {text:>22}"));
        }
        say!();
    }
}

fn object(cell: &Cell) -> Value {
    json!({
        "rate_mbps": cell.place.rate,
        "rtt_ms": cell.place.round_trip,
        "loss_percent": cell.place.loss,
        "flood_per_second": cell.floods,
        "congestion": cell.congestion.controller().name(),
        "scheme": cell.scheme.name(),
        "goodput_mbps": cell.goodput,
        "failures": cell.failures.iter().map(|(seed, why)| json!({ "seed": seed, "why": why })).collect::<Vec<_>>(),
    })
}
