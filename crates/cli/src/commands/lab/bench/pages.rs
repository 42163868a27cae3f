//! `longhaul bench pages`: how long a page takes to load through the gateways.

use std::process::ExitCode;

use base::{Duration, Rate};
use field::pages::{self, Page};
use field::testbed::{self, Name, TestbedError};
use lab::statistics::Spread;
use serde_json::json;
use tunnel::config::LinkRate;

use super::percent;
use crate::commands::lab::scheme::Scheme;
use crate::commands::outcome::{failure, say};

/// Measure page loads by the kernel's TCP over gateways, with and without the split-connection proxy. Needs root.
///
/// Each load has its own testbed, so that no proxy has seen the server before.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench pages --loads 5
  longhaul bench pages --rate 10 --rtt 600 --loss 1 --scheme none \\
      --scheme wide-pep --reuse")]
pub(crate) struct Arguments {
    /// Rate of the line, in Mbit/s.
    #[arg(long, value_name = "MBIT/S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: u64,
    /// Round-trip time, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    rtt: u64,
    /// Random packet loss in each direction, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    loss: f64,
    /// Objects per page, each of 5 to 100 kB.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=1000))]
    objects: u16,
    /// Connections that a browser opens at the same time.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=100))]
    parallel: u16,
    /// Reuse connections for one object after the other, instead of opening one per object.
    #[arg(long)]
    reuse: bool,
    /// Page loads per scheme, with seeds 1 to this number; schemes take turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    loads: u32,
    /// What is between the hosts.
    #[arg(long = "scheme", value_name = "NAME", value_enum, default_values_t = [Scheme::None, Scheme::Wide, Scheme::WidePep])]
    schemes: Vec<Scheme>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Largest IP packet between the hosts, in bytes: the gateway's default.
const MTU: u32 = 1400;

impl Arguments {
    fn options(&self, scheme: Scheme, seed: u32) -> Result<testbed::Options, TestbedError> {
        let rate = Rate::from_bps(self.rate * 1_000_000);
        let positive = LinkRate::of(rate).unwrap_or_else(|| unreachable!("rates are above zero"));
        let packet_bits = u64::from(testbed::ETHERNET_MTU) * 8;
        let queue = rate.bits_in(Duration::from_millis(self.rtt)).div_ceil(packet_bits).max(10);
        let mut channel = vec![
            ("--rate", format!("{} Mbit/s", self.rate)),
            ("--delay", format!("{} us", self.rtt * 500)),
            ("--seed", seed.to_string()),
            ("--line-queue", queue.to_string()),
        ];
        if self.loss > 0.0 {
            channel.push(("--errors", format!("erasure={{probability={}}}", self.loss / 100.0)));
        }
        Ok(testbed::Options {
            name: Name::new(&format!("lhp{}", std::process::id()))?,
            link: scheme.link(positive).map_err(std::io::Error::other)?,
            pep: scheme.pep(),
            channel: channel.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect(),
            mtu: MTU,
            carrier_mtu: testbed::ETHERNET_MTU,
            paths: testbed::Paths::default(),
            patience: Duration::from_secs(60),
        })
    }
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    match measure(args) {
        Ok(seconds) => {
            print(args, &seconds);
            ExitCode::SUCCESS
        }
        Err(error) => failure(error),
    }
}

/// By scheme: the seconds of its loads.
fn measure(args: &Arguments) -> Result<Vec<Vec<f64>>, TestbedError> {
    let page = Page::spread(args.objects.into(), 5_000, 100_000, args.parallel.into(), args.reuse);
    let mut seconds = vec![Vec::new(); args.schemes.len()];
    for seed in 1..=args.loads {
        for (scheme, seconds) in args.schemes.iter().zip(&mut seconds) {
            seconds.push(pages::load(&args.options(*scheme, seed)?, &page)?.as_secs_f64());
        }
    }
    Ok(seconds)
}

fn print(args: &Arguments, seconds: &[Vec<f64>]) {
    let spreads = seconds.iter().map(|seconds| Spread::of(seconds.iter().copied()));
    if args.json {
        let schemes: serde_json::Map<String, serde_json::Value> = args
            .schemes
            .iter()
            .zip(seconds)
            .map(|(scheme, seconds)| (scheme.name().to_owned(), json!(seconds)))
            .collect();
        return say!("{:#}", json!({ "objects": args.objects, "reuse": args.reuse, "seconds": schemes }));
    }
    let kind = if args.reuse { "reused" } else { "one per object" };
    say!(
        "{} objects of 5 to 100 kB over {} connections at a time, {kind}; {} Mbit/s, {} ms, {} % lost; seconds, median of {} loads\n",
        args.objects,
        args.parallel,
        args.rate,
        args.rtt,
        args.loss,
        args.loads
    );
    say!("scheme                 median    min    max  vs the first");
    let mut first = None;
    for (scheme, spread) in args.schemes.iter().zip(spreads) {
        let Some(Spread { median, min, max, .. }) = spread else { continue };
        let first = *first.get_or_insert(median);
        say!("{:20} {median:>8.2} {min:>6.2} {max:>6.2} {:>13.2}", scheme.name(), median / first);
    }
}
