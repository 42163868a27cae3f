//! `longhaul bench tcp`: our TCP beside the kernel's.

use std::process::ExitCode;

use field::comparison::configuration::Configuration;
use field::comparison::{self, Contender, Options, Run};
use field::testbed::TestbedError;
use gateway::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};
use lab::statistics::Spread;
use serde_json::{Value, json};

use super::percent;
use crate::commands::outcome::{failure, misconfigured, say};

/// Compare the kernel's TCP with Longhaul's: the same transfers over `longhaul emulate`, with the same seeds. Needs root.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench tcp
  longhaul bench tcp --seeds 3 --loss 1 --configuration cubic-sack-scaling \\
      --json")]
pub(crate) struct Arguments {
    /// Channel realisations: seeds 1 to this number.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Packet loss in both directions, in percent; may be repeated.
    #[arg(long = "loss", value_name = "PERCENT", value_parser = percent, default_values_t = [0.0, 0.1, 1.0])]
    losses: Vec<f64>,
    /// Only this configuration: reno or cubic, optionally followed by -sack and -scaling; may be repeated [default: all eight].
    #[arg(long = "configuration", value_name = "NAME", value_parser = configuration)]
    configurations: Vec<Configuration>,
    /// Further setting of Longhaul's TCP, as in a `[tcp]` table; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Size of a transfer, in bytes.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Rate of the channel.
    #[arg(long, default_value = "1 Mbit/s")]
    rate: String,
    /// Propagation delay of the channel, one way.
    #[arg(long, default_value = "250 ms")]
    delay: String,
    /// Length of the queue in front of each line, in packets.
    #[arg(long, value_name = "PACKETS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    line_queue: u32,
    /// Transfers to run at the same time; they need little processor time.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=200))]
    jobs: u16,
    /// Print one JSON object with every transfer instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn configuration(name: &str) -> Result<Configuration, String> {
    let names = || Configuration::ALL.map(|configuration| configuration.name()).join(", ");
    Configuration::named(name).ok_or_else(|| format!("allowed are {}", names()))
}

/// What the two did in one setting.
struct Cell {
    configuration: Configuration,
    loss: f64,
    /// Seconds of the kernel's transfers, then of ours.
    seconds: [Spread; 2],
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let mut configurations = args.configurations.clone();
    if configurations.is_empty() {
        configurations = Configuration::ALL.to_vec();
    }
    let options = Options {
        size: args.size as usize,
        rate: args.rate.clone(),
        delay: args.delay.clone(),
        queue: args.line_queue,
        configurations,
        changes: args.changes.clone(),
        losses: args.losses.clone(),
        seeds: (1..=args.seeds).collect(),
        jobs: args.jobs.into(),
    };
    if let Some(error) = options.configurations.iter().find_map(|one| one.tcp(&options.changes).err()) {
        return misconfigured(error);
    }
    let transfers = options.configurations.len() * options.losses.len() * options.seeds.len() * 2;
    let bar = ProgressBar::new(transfers as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} transfers, {eta} left") {
        bar.set_style(style);
    }
    let result = Signals::new()
        .map_err(TestbedError::from)
        .and_then(|mut signals| comparison::run(&options, &mut signals, |_| bar.inc(1)));
    bar.finish_and_clear();
    let runs = match result {
        Ok(runs) => runs,
        Err(error) => return failure(error),
    };
    let cells = cells(&options, &runs);
    if args.json {
        say!("{:#}", object(&cells, &runs));
    } else {
        print(args, &cells, &runs);
    }
    ExitCode::SUCCESS
}

fn cells(options: &Options, runs: &[Run]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &configuration in &options.configurations {
        for &loss in &options.losses {
            let seconds = [Contender::Kernel, Contender::Ours].map(|contender| {
                let of_cell = runs.iter().filter(|run| {
                    run.configuration == configuration
                        && run.loss.to_bits() == loss.to_bits()
                        && run.contender == contender
                });
                Spread::of(of_cell.map(|run| run.seconds))
            });
            if let [Some(kernel), Some(ours)] = seconds {
                cells.push(Cell { configuration, loss, seconds: [kernel, ours] });
            }
        }
    }
    cells
}

impl Cell {
    /// Our median as a multiple of the kernel's.
    fn ratio(&self) -> f64 {
        self.seconds[1].median / self.seconds[0].median
    }
}

fn print(args: &Arguments, cells: &[Cell], runs: &[Run]) {
    say!(
        "{} bytes at {}, {} one way, queue {} packets; seconds over {} seeds: median (quartiles)\n",
        args.size,
        args.rate,
        args.delay,
        args.line_queue,
        args.seeds
    );
    say!("configuration       erasure            kernel           Longhaul          ratio");
    for cell in cells {
        let [kernel, ours] = cell
            .seconds
            .map(|spread| format!("{:.2} ({:.2} - {:.2})", spread.median, spread.p25, spread.p75));
        say!(
            "{:18} {:>6} %  {kernel:>20}  {ours:>20}  {:.3}",
            cell.configuration.name(),
            cell.loss,
            cell.ratio()
        );
    }
    if let Some(late) = lateness(runs) {
        say!(
            "\nemulator's maximum lateness: median of the transfers {:.2} ms, upper quartile {:.2} ms, largest {:.2} ms",
            late.median,
            late.p75,
            late.max
        );
    }
}

fn lateness(runs: &[Run]) -> Option<Spread> {
    Spread::of(runs.iter().map(|run| run.emulator_late_ms))
}

fn object(cells: &[Cell], runs: &[Run]) -> Value {
    let cell = |cell: &Cell| {
        json!({
            "configuration": cell.configuration,
            "loss_percent": cell.loss,
            "kernel_seconds": cell.seconds[0],
            "our_seconds": cell.seconds[1],
            "ratio": cell.ratio(),
        })
    };
    json!({
        "cells": cells.iter().map(cell).collect::<Vec<_>>(),
        "emulator_late_ms": lateness(runs),
        "runs": runs,
    })
}
