//! `longhaul bench code`: how fast redundancy is computed, and lost frames from it.

use std::hint::black_box;
use std::process::ExitCode;

use base::code::reed_solomon::Plan;
use lab::statistics::Spread;

use super::timed;

use crate::commands::outcome::say;

/// Measure the Reed-Solomon code over frames of 1500 bytes, in gigabytes of frames per second of one core
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul bench code --runs 9")]
pub(crate) struct Arguments {
    /// Timed runs of each block size; sizes take turns.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Sources and repairs of the blocks.
const BLOCKS: [(usize, usize); 2] = [(10, 3), (8, 8)];
const FRAME: usize = 1500;
/// Bytes of sources that a run takes.
const RUN: usize = 256 << 20;

struct Measured {
    block: (usize, usize),
    operation: &'static str,
    /// Gigabytes of sources a second.
    rate: Spread,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let mut rates = vec![Vec::new(); 2 * BLOCKS.len()];
    for _ in 0..arguments.runs {
        for (block, rates) in BLOCKS.iter().zip(rates.chunks_mut(2)) {
            let [encoding, decoding] = measure(*block);
            rates[0].push(encoding);
            rates[1].push(decoding);
        }
    }
    let measured = rates.iter().enumerate().filter_map(|(at, rates)| {
        let rate = Spread::of(rates.iter().copied())?;
        Some(Measured { block: BLOCKS[at / 2], operation: ["encode", "decode"][at % 2], rate })
    });
    let measured: Vec<_> = measured.collect();
    if arguments.json {
        let block = |Measured { block: (sources, repairs), operation, rate }: &Measured| {
            serde_json::json!({
                "sources": sources,
                "repairs": repairs,
                "operation": operation,
                "gigabytes_per_second": rate,
            })
        };
        let blocks: Vec<_> = measured.iter().map(block).collect();
        say!("{:#}", serde_json::json!({ "frame_bytes": FRAME, "blocks": blocks }));
        return ExitCode::SUCCESS;
    }
    say!(
        "Reed-Solomon code over frames of {FRAME} bytes, one core: computing all repairs, and recovering as many lost frames"
    );
    say!("\n  block  operation  GB/s of sources, median (quartiles)");
    for Measured { block: (sources, repairs), operation, rate } in measured {
        let block = format!("{sources}:{repairs}");
        say!("{block:>7}  {operation:>9}  {:.2} ({:.2} - {:.2})", rate.median, rate.p25, rate.p75);
    }
    ExitCode::SUCCESS
}

/// Gigabytes of sources per second, encoding and decoding.
fn measure((sources, repairs): (usize, usize)) -> [f64; 2] {
    let frame = |number: usize| (0..FRAME).map(|at| (number * 89 + at * 57) as u8).collect::<Vec<_>>();
    let frames: Vec<_> = (0..sources).map(frame).collect();
    let mut coded = vec![vec![0; FRAME]; repairs];
    let rounds = RUN / (sources * FRAME);
    let rate = |seconds: f64| (rounds * sources * FRAME) as f64 / seconds / 1e9;
    let ((), encoding) = timed(|| {
        for _ in 0..rounds {
            coded.iter_mut().for_each(|sum| sum.fill(0));
            let plan = Plan::encode(black_box(sources), repairs);
            plan.add(black_box(&frames).iter().map(Vec::as_slice), &mut coded);
            black_box(&mut coded);
        }
    });
    // The first frames are lost, and as many repairs have come.
    let lost = repairs.min(sources);
    let numbers: Vec<u8> = (lost as u8..(sources + lost) as u8).collect();
    let missing: Vec<u8> = (0..lost as u8).collect();
    let known: Vec<&[u8]> = frames[lost..].iter().chain(&coded[..lost]).map(Vec::as_slice).collect();
    let mut recovered = vec![vec![0; FRAME]; lost];
    let ((), decoding) = timed(|| {
        for _ in 0..rounds {
            recovered.iter_mut().for_each(|sum| sum.fill(0));
            Plan::decode(black_box(&numbers), &missing)
                .add(black_box(&known).iter().copied(), &mut recovered);
            black_box(&mut recovered);
        }
    });
    assert_eq!(recovered, frames[..lost], "what was recovered is what was lost");
    [rate(encoding), rate(decoding)]
}
