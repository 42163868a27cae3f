//! Gateways with default settings over paths drawn from seeds: whatever happens to them, nothing collapses and stays down.
//!
//! `LONGHAUL_RANDOM_PATHS=1000 cargo test --release -p longhaul-lab --test all random_paths::` runs a thousand; `LONGHAUL_RANDOM_PATH=17` one again.

use core::num::NonZero;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::gateways::{received, run_with};
use base::Rng;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// Paths that are run by default.
const PATHS: u64 = 16;

/// A path and what happens to it: what is set, and the rate at the end that arrives, in Mbit/s.
fn draw(seed: u64) -> (String, String, f64) {
    let mut rng = Rng::named(seed, "random path");
    let mut between = |low: f64, high: f64| low + (high - low) * rng.unit();
    let log = |low: f64, high: f64, at: f64| low * (high / low).powf(at);
    let rate = log(0.1, 30.0, between(0.0, 1.0));
    let delay = log(5.0, 300.0, between(0.0, 1.0));
    let step = log(0.25, 4.0, between(0.0, 1.0));
    let after = (rate * step).max(0.064);
    let (kind, size) = (between(0.0, 4.0) as u32, between(0.0, 1.0));
    let (errors, part) = match kind {
        0 => (String::new(), 1.0),
        1 => (format!(", errors={{erasure={{probability={:.3}}}}}", 0.2 * size), 1.0 - 0.2 * size),
        2 => (
            format!(
                ", errors={{gilbert-elliott={{f={:.3}, d=\"{:.0} ms\"}}}}",
                0.3 * size,
                100.0 + 900.0 * size
            ),
            1.0 - 0.3 * size,
        ),
        _ => (format!(", jitter={{in-order={{up-to=\"{:.0} ms\"}}}}", 1.0 + delay * size), 1.0),
    };
    let channel = format!(
        "link.wan.channel={{rate=\"{} bit/s\", delay=\"{:.1} ms\", rate-changes=[{{at=\"15 s\", rate=\"{} bit/s\"}}]{errors}}}",
        (rate * 1e6) as u64,
        delay,
        (after * 1e6) as u64,
    );
    // At the new rate it holds a few packets at least.
    let queue = log(50.0, 1000.0, between(0.0, 1.0)).max(60.0 / rate.min(after));
    (channel, format!("link.wan.queue.drop-tail.time=\"{queue:.0} ms\""), after * part)
}

/// What arrives in the last fifteen of so many seconds, as a part of what could.
fn carried_after(seed: u64, seconds: u64) -> f64 {
    let (channel, queue, rate) = draw(seed);
    let duration = format!("duration={seconds} s");
    let run = run_with(BASE, "", &[&channel, &queue, &duration, &format!("seed={seed}")]);
    received(&run, "download", seconds - 15, seconds) / rate
}

/// What arrives in the last fifteen of 60 seconds, as a part of what could.
fn carried(seed: u64) -> f64 {
    carried_after(seed, 60)
}

/// What arrives on each path, with its seed; on every core.
fn all(seeds: Range<u64>) -> Vec<(f64, u64)> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut carried_by = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return carried_by;
            }
            if seed.is_multiple_of(100) {
                eprintln!("path {seed} of {}", seeds.end - 1);
            }
            carried_by.push((carried(seed), seed));
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no path panics")).collect()
    })
}

#[test]
fn nothing_collapses_and_stays_down() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect(name));
    let seeds = match number("LONGHAUL_RANDOM_PATH") {
        Some(seed) => seed..seed + 1,
        None => 1..number("LONGHAUL_RANDOM_PATHS").unwrap_or(PATHS) + 1,
    };
    let mut carried = all(seeds);
    carried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let median = carried[carried.len() / 2].0;
    println!("median {median:.3}, worst {:?}", &carried[..carried.len().min(10)]);
    // A rate that began far too low takes its time on a slow line that loses much: each step needs dozens of packets. So what is
    // down after a minute is looked at once more.
    for &(part, seed) in carried.iter().take_while(|it| it.0 < 0.2) {
        let later = carried_after(seed, 240);
        println!("seed {seed}: {part:.3} after a minute, {later:.3} after four");
        assert!(
            later >= 0.5,
            "seed {seed}: {part:.3} after a minute, {later:.3} after four, of {:?}",
            draw(seed)
        );
    }
    assert!(median >= 0.8, "{median}");
}

/// A path that becomes slower, too slow for trains, and looked like one that somebody else had filled.
#[test]
fn a_slow_path_that_becomes_slower_is_no_crowd() {
    assert!(carried(728) >= 0.5);
}
