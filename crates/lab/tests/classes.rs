//! What a class of its own brings a shell beside a download, and what it costs.

use std::path::Path;

use base::Duration;
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

const SCENARIO: &str = include_str!("../../../scenarios/demo/shell.toml");

fn run(scheme: &str, seed: u64) -> Run {
    let suite = Suite::parse("shell.toml", SCENARIO, Path::new(""), &[]).unwrap();
    let (name, scenario) = suite.schemes.iter().find(|(name, _)| name == scheme).unwrap();
    let watch = Watch { latencies: true, ..Watch::default() };
    let run = run::run(name, scenario, seed, &watch).unwrap();
    assert!(run.intact, "{run:?}");
    run
}

/// The latency in milliseconds that this part of the keystrokes that came did not exceed.
fn within(run: &Run, part: f64) -> u64 {
    let mut latencies: Vec<Duration> = run.latencies["shell"].iter().map(|sample| sample.latency).collect();
    latencies.sort_unstable();
    latencies[(part * (latencies.len() - 1) as f64) as usize].as_millis()
}

/// Goal: on 300 ms of line, one frame in twenty lost, 99 of 100 keystrokes come within 20 ms more, where those without a class wait for a
/// round trip when they are lost or stand behind what is; the download keeps 98 of 100 of its goodput.
#[test]
fn keystrokes_wait_neither_for_a_download_nor_for_a_round_trip() {
    for seed in 1..=3 {
        let [unmarked, classed] = ["coded, unmarked", "coded"].map(|scheme| run(scheme, seed));
        assert!(within(&unmarked, 0.99) > 900, "{}", within(&unmarked, 0.99));
        assert!(within(&classed, 0.99) < 320, "{}", within(&classed, 0.99));
        assert!(classed.goodput_bps > 0.98 * unmarked.goodput_bps);
        let source = &classed.sources[0];
        // The last are still on their way at the end.
        assert!(source.undelivered < 10 && source.duplicates == 0 && source.late == 0, "{source:?}");
    }
}

/// Goal: what is sent once comes in time or not at all, and nearly all of it comes.
#[test]
fn what_is_sent_once_is_repaired_in_time() {
    let once = run("coded, sent once", 4);
    assert!(within(&once, 0.99) < 320, "{}", within(&once, 0.99));
    let source = &once.sources[0];
    assert!(source.undelivered * 200 < source.generated, "{source:?}");
    assert_eq!(source.duplicates, 0);
}
