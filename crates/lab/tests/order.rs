//! Transfers that wait for each other, and start times that the seed jitters.

use std::path::Path;

use longhaul_lab::run::{self, Run, TransferResult, Watch};
use longhaul_lab::scenario::Suite;

const SCENARIO: &str = r#"
name = "order"
duration = "100 s"
link.satellite = { ends = ["server", "client"], channel = { rate = "2 Mbit/s", delay = "250 ms" } }

[traffic.first.bulk]
from = "server"
to = "client"
size = "30 kB"
connections = 3
jitter = "100 ms"

[traffic.a-second.bulk]
from = "server"
to = "client"
size = "20 kB"
connections = 2
after = "first"
start = "1 s"
"#;

fn suite(text: &str) -> Result<Suite, String> {
    Suite::parse("order.toml", text, Path::new(""), &[]).map_err(|error| error.to_string())
}

fn run(text: &str, seed: u64) -> Run {
    let suite = suite(text).unwrap();
    let run = run::run("order", &suite.scenario, seed, &Watch::default()).unwrap();
    assert!(run.complete && run.intact, "{run:?}");
    assert!(run.goodput_bps <= run.bound_bps, "{} above {}", run.goodput_bps, run.bound_bps);
    run
}

fn of<'a>(run: &'a Run, name: &str) -> Vec<&'a TransferResult> {
    run.transfers.iter().filter(|transfer| transfer.name == name).collect()
}

fn opened(transfer: &TransferResult) -> f64 {
    transfer.opened.unwrap()
}

fn ended(transfer: &TransferResult) -> f64 {
    opened(transfer) + transfer.seconds.unwrap()
}

/// Goal: a group opens its start time after the last end of the group before, whatever their names' order.
#[test]
fn a_group_waits_for_all_of_another() {
    let run = run(SCENARIO, 1);
    let last = of(&run, "first").into_iter().map(ended).fold(0.0, f64::max);
    let second = of(&run, "a-second");
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|transfer| (opened(transfer) - last - 1.0).abs() < 1e-9), "{last}: {second:?}");
}

/// Goal: connections in turn never overlap, whichever side opens them, and keep their pauses.
#[test]
fn connections_in_turn_follow_each_other() {
    for opener in ["receiver", "sender"] {
        let text = SCENARIO.replace(
            "connections = 2",
            &format!("connections = 4\nat-once = 1\nstagger = \"200 ms\"\nopened-by = \"{opener}\""),
        );
        let text = text.replace("jitter = \"100 ms\"", &format!("opened-by = \"{opener}\""));
        let run = run(&text, 1);
        for pair in of(&run, "a-second").windows(2) {
            let pause = opened(pair[1]) - ended(pair[0]);
            // A sender learns of the end half a round trip later, or one and a half where the FIN goes last.
            let allowed = if opener == "sender" { 0.45..0.75 } else { 0.2 - 1e-9..0.2 + 1e-9 };
            assert!(allowed.contains(&pause), "{opener}: {pause}");
        }
    }
}

/// Goal: jitter is the seed's: the same for every scheme, another for another seed, and never more than was said.
#[test]
fn the_seed_jitters_start_times() {
    let times = |seed| -> Vec<f64> { of(&run(SCENARIO, seed), "first").into_iter().map(opened).collect() };
    let first = times(1);
    assert_eq!(first, times(1));
    assert_ne!(first, times(2));
    assert!(first.iter().all(|time| (0.0..0.1).contains(time)) && first[0] != first[1], "{first:?}");
}

#[test]
fn an_order_that_cannot_be_is_refused_with_its_place() {
    for (from, to, want) in [
        (
            "after = \"first\"",
            "after = \"frist\"",
            "order.toml:18: after = \"frist\": traffic \"a-second\" waits for something that is not a bulk transfer; allowed are first",
        ),
        ("size = \"30 kB\"", "", "waits for a transfer that never ends; give that one a size"),
        ("jitter", "after = \"a-second\"\njitter", "waits for itself, directly or through others"),
        ("after = \"first\"", "after = \"a-second\"", "waits for itself, directly or through others"),
        (
            "size = \"20 kB\"",
            "at-once = 1",
            "has several connections in turn, but the first never ends; give it a size",
        ),
        ("\"100 ms\"", "\"100 s\"", "starts after the end of the run"),
    ] {
        let complaint = suite(&SCENARIO.replace(from, to)).unwrap_err();
        assert!(complaint.contains(want), "{complaint}");
    }
    let apart = SCENARIO.replace(
        "[traffic.first",
        "link.b = { ends = [\"hub\", \"far\"], channel = { rate = \"1 Mbit/s\", delay = \"1 ms\" } }\n[traffic.first",
    );
    let apart = apart.replacen("from = \"server\"\nto = \"client\"", "from = \"hub\"\nto = \"far\"", 1);
    let complaint = suite(&apart).unwrap_err();
    assert!(
        complaint.contains("waits for a transfer in which \"client\", which opens this one, takes no part"),
        "{complaint}"
    );
}
