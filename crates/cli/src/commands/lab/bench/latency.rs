//! `longhaul bench latency`: what a download costs `ping` beside it, for each queue.

use std::process::ExitCode;

use base::{Duration, Rate};
use field::comparison::configuration::Controller;
use field::latency::{self, Measured, Plan};
use field::testbed::{self, Name, TestbedError};
use lab::statistics::{Spread, quantile};
use link::queue;
use serde_json::json;
use tunnel::config::LinkRate;

use crate::commands::lab::scheme::Scheme;
use crate::commands::outcome::{failure, say};

/// Measure `ping` during a download by the kernel's CUBIC, over gateways with each protocol and queue. Needs root.
///
/// Each measurement has its own testbed. The emulated line has a queue of one bandwidth-delay product. The gateways are
/// configured with its rate.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench latency
  longhaul bench latency --scheme wide --queue default \\
      --queue 'fq-codel = { interval = \"600 ms\" }' --runs 3")]
pub(crate) struct Arguments {
    /// Rate of the line, in Mbit/s.
    #[arg(long, value_name = "MBIT/S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: u64,
    /// Round-trip time, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    rtt: u64,
    /// What is between the hosts.
    #[arg(long = "scheme", value_name = "NAME", value_enum, default_values_t = [Scheme::Plain, Scheme::Wide, Scheme::WidePep])]
    schemes: Vec<Scheme>,
    /// The gateways' queue: `default`, or what stands inside `queue = { ... }` in their configuration.
    #[arg(long = "queue", value_name = "TOML", default_values = ["default", "red = {}", "fq-codel = {}"], value_parser = queue)]
    queues: Vec<Queue>,
    /// Measurements of each combination; combinations take turns.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long to ping before the download starts, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    idle_seconds: u32,
    /// How long the download runs before it counts, in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(0..=3600))]
    warm_up_seconds: u32,
    /// How long ping and download are measured together, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Print one JSON object with every round trip.
    #[arg(long)]
    json: bool,
}

/// A queue and how it was written; `None` is the gateways' default.
#[derive(Clone, Debug)]
struct Queue {
    text: String,
    config: Option<queue::Config>,
}

fn queue(text: &str) -> Result<Queue, String> {
    let config = match text {
        "default" => None,
        text => Some(base::config::parse("--queue", text).map_err(|error| error.to_string())?),
    };
    Ok(Queue { text: text.to_owned(), config })
}

/// Largest IP packet between the hosts, in bytes: the gateway's default.
const MTU: u32 = 1400;

impl Arguments {
    fn options(&self, scheme: Scheme, queue: &Queue, seed: u32) -> Result<testbed::Options, TestbedError> {
        let rate = Rate::from_bps(self.rate * 1_000_000);
        let positive = LinkRate::of(rate).unwrap_or_else(|| unreachable!("rates are above zero"));
        let packet_bits = u64::from(testbed::ETHERNET_MTU) * 8;
        let line_queue = rate.bits_in(Duration::from_millis(self.rtt)).div_ceil(packet_bits).max(10);
        let channel = [
            ("--rate", format!("{} Mbit/s", self.rate)),
            ("--delay", format!("{} us", self.rtt * 500)),
            ("--seed", seed.to_string()),
            ("--line-queue", line_queue.to_string()),
        ];
        let mut link = scheme.link(positive).map_err(std::io::Error::other)?;
        if let Some(link) = &mut link {
            link.config.queue = queue.config;
        }
        Ok(testbed::Options {
            name: Name::new(&format!("lhl{}", std::process::id()))?,
            link,
            pep: scheme.pep(),
            channel: channel.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect(),
            mtu: MTU,
            carrier_mtu: testbed::ETHERNET_MTU,
            paths: testbed::Paths::default(),
            patience: Duration::from_secs(60),
        })
    }

    const fn plan(&self) -> Plan {
        Plan {
            controller: Controller::Cubic,
            idle: Duration::from_secs(self.idle_seconds as u64),
            warm_up: Duration::from_secs(self.warm_up_seconds as u64),
            loaded: Duration::from_secs(self.seconds as u64),
        }
    }

    /// Every queue of every scheme; where there are no gateways, there is one of no choice.
    fn cells(&self) -> Vec<(Scheme, &Queue)> {
        let of = |scheme: &Scheme| if *scheme == Scheme::None { 1 } else { self.queues.len() };
        self.schemes
            .iter()
            .flat_map(|scheme| self.queues[..of(scheme)].iter().map(|queue| (*scheme, queue)))
            .collect()
    }
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    match measure(args) {
        Ok(measured) => {
            print(args, &measured);
            ExitCode::SUCCESS
        }
        Err(error) => failure(error),
    }
}

/// By cell: its measurements.
fn measure(args: &Arguments) -> Result<Vec<Vec<Measured>>, TestbedError> {
    let cells = args.cells();
    let mut measured = vec![Vec::new(); cells.len()];
    for seed in 1..=args.runs {
        for ((scheme, queue), measured) in cells.iter().zip(&mut measured) {
            measured.push(latency::measure(&args.options(*scheme, queue, seed)?, &args.plan())?);
        }
    }
    Ok(measured)
}

fn print(args: &Arguments, measured: &[Vec<Measured>]) {
    let cells = args.cells();
    if args.json {
        let cell = |((scheme, queue), runs): (&(Scheme, &Queue), &Vec<Measured>)| json!({ "scheme": scheme.name(), "queue": queue.text, "runs": runs });
        let cells: Vec<_> = cells.iter().zip(measured).map(cell).collect();
        return say!("{:#}", json!({ "rate_mbps": args.rate, "rtt_ms": args.rtt, "cells": cells }));
    }
    say!(
        "ping during a download, {} Mbit/s, {} ms; round-trip times in ms over {} s, after {} s of warm-up; {} runs\n",
        args.rate,
        args.rtt,
        args.seconds,
        args.warm_up_seconds,
        args.runs
    );
    let width = cells.iter().map(|(_, queue)| queue.text.len()).max().unwrap_or(0).max(5);
    say!("{:12} {:width$}   idle  loaded   rise  95 %  99 %  unanswered  Mbit/s", "scheme", "queue");
    for ((scheme, queue), runs) in cells.iter().zip(measured) {
        let all = |of: fn(&Measured) -> &Vec<f64>| {
            let mut all: Vec<f64> = runs.iter().flat_map(of).copied().collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (idle, loaded) = (all(|run| &run.idle_ms), all(|run| &run.loaded_ms));
        let goodput = Spread::of(runs.iter().map(|run| run.goodput_mbps)).map_or(0.0, |spread| spread.median);
        let unanswered: usize = runs.iter().map(|run| run.unanswered).sum();
        if idle.is_empty() || loaded.is_empty() {
            say!("{:12} {:width$}  no answers", scheme.name(), queue.text);
            continue;
        }
        let (before, beside) = (quantile(&idle, 0.5), quantile(&loaded, 0.5));
        say!(
            "{:12} {:width$} {before:>6.0} {beside:>7.0} {:>6.0} {:>5.0} {:>5.0} {unanswered:>11} {goodput:>7.2}",
            scheme.name(),
            queue.text,
            beside - before,
            quantile(&loaded, 0.95),
            quantile(&loaded, 0.99),
        );
    }
}
