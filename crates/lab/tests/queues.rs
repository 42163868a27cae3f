//! What active queue management does to TCP in front of a bottleneck.

use core::fmt::Write as _;
use std::path::Path;

use base::{Duration, Instant};
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

/// Ten senders through one wire of 10 Mbit/s, 50 ms from end to end, for a minute.
fn ten_flows(queue: &str, tcp: &str, seed: u64) -> Run {
    let mut text = format!(
        "name = \"ten flows\"\nduration = \"60 s\"\n[tcp]\npreset = \"linux\"\ncongestion = \"reno\"\n{tcp}\n\
         [link.bottleneck]\nends = [\"left\", \"right\"]\nqueue = {queue}\n\
         channel = {{ rate = \"10 Mbit/s\", delay = \"20 ms\" }}\n"
    );
    for flow in 0..10 {
        let access = "channel = { rate = \"100 Mbit/s\", delay = \"2.5 ms\" }";
        let _ = write!(
            text,
            "[link.from{flow}]\nends = [\"sender{flow}\", \"left\"]\n{access}\n\
             [link.to{flow}]\nends = [\"right\", \"receiver{flow}\"]\n{access}\n\
             [traffic.flow{flow}.bulk]\nfrom = \"sender{flow}\"\nto = \"receiver{flow}\"\n"
        );
    }
    run_one(&text, seed)
}

fn run_one(text: &str, seed: u64) -> Run {
    let suite = Suite::parse("queues.toml", text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
    let watch = Watch { queues: true, latencies: true, windows: true, ..Watch::default() };
    let run = run::run("queues", &suite.scenario, seed, &watch).unwrap();
    assert!(run.intact);
    run
}

/// Packets that waited on average after the first ten seconds, and the mean of RED's average.
fn lengths(run: &Run) -> (f64, Option<f64>) {
    let span = Instant::ZERO + Duration::from_secs(10)..Instant::ZERO + Duration::from_secs(60);
    let trace = &run.queues["bottleneck/down"];
    (trace.mean_packets(&span).unwrap(), trace.mean_average(&span))
}

fn counter(run: &Run, name: &str) -> u64 {
    run.links["bottleneck/down"][&format!("queue-{name}")]
}

fn drops(run: &Run) -> u64 {
    counter(run, "dropped-early") + counter(run, "dropped-for-packets")
}

/// Goal: RED tells ten flows that understand marks to slow down and drops little, holds the queue between its thresholds, and
/// leaves no more of the line unused than a full queue does.
#[test]
fn red_holds_the_queue_of_ten_flows_between_its_thresholds() {
    let red = "{ red = { packets = 200, min = 15, max = 45, mean-packet = \"1500 B\" } }";
    for seed in 1..=3 {
        let marked = ten_flows(red, "ecn = \"on\"", seed);
        // Slow start overshoots, and what is sent again for that must not be marked (RFC 3168, 6.1.5).
        assert!(counter(&marked, "marked") > 5 * drops(&marked), "{:?}", marked.links["bottleneck/down"]);
        let (length, average) = lengths(&marked);
        assert!(
            (15.0..45.0).contains(&length) && (15.0..45.0).contains(&average.unwrap()),
            "{length}, {average:?}"
        );
        assert!(
            marked.goodput_bps > 0.9 * marked.bound_bps,
            "{} of {}",
            marked.goodput_bps,
            marked.bound_bps
        );

        let dropped = ten_flows(red, "", seed);
        assert!(counter(&dropped, "marked") == 0 && counter(&dropped, "dropped-early") > 100);
        assert_eq!(
            dropped.drops["bottleneck/down"].len() as u64,
            drops(&dropped),
            "observers see each of them"
        );
        assert!(dropped.goodput_bps > 0.9 * dropped.bound_bps);

        let (full, none) = lengths(&ten_flows("{ drop-tail = { packets = 200 } }", "", seed));
        assert!(full > 2.5 * length && none.is_none(), "{full} against {length}");
    }
}
