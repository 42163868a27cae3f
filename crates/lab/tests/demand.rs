//! Bandwidth on demand in whole runs: terminals that share a network, MAC buffers with and without flow control.

use std::ops::ControlFlow;
use std::path::Path;

use longhaul_lab::run::{self, Recordings, Run};
use longhaul_lab::scenario::{Override, Suite};

/// Three terminals, each with a file to send to the hub.
const BEAM: &str = r#"
name = "beam"
duration = "20 min"

[link.lan]
ends = ["hub", "server"]
channel = { rate = "100 Mbit/s", delay = "1 ms" }

[dama.beam]
capacity = "128 kbit/s"
"#;

/// One of the terminals.
const TERMINAL: &str = r#"
[link.X]
ends = ["hub", "X"]
protocol = "plain"
channel = { rate = "512 kbit/s", up-rate = "128 kbit/s", delay = "250 ms" }
dama = { network = "beam", vbdc = true }
encapsulation = { down = "mpe", up = "aal5" }

[traffic.from-X.bulk]
from = "X"
to = "server"
size = "300 kB"
"#;

fn suite(changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let beam = ["a", "b", "c"].map(|name| TERMINAL.replace('X', name)).concat();
    Suite::parse("beam.toml", &[BEAM, &beam].concat(), Path::new(""), &changes)
        .map_err(|error| error.to_string())
}

fn run(changes: &[&str]) -> Run {
    let mut runs =
        run::run_all(&suite(changes).unwrap(), &Recordings::default(), |_| ControlFlow::Continue(()))
            .unwrap();
    runs.remove(0)
}

fn seconds(run: &Run) -> Vec<f64> {
    assert!(run.intact && run.complete, "{run:?}");
    run.transfers.iter().map(|transfer| transfer.seconds.expect("it ended")).collect()
}

fn counter(run: &Run, way: &str, name: &str) -> u64 {
    run.links[way][name]
}

/// Goal: what three terminals get together is what the network has, and each gets its part.
#[test]
fn terminals_share_what_their_network_has() {
    let alone = seconds(&run(&["dama.beam.capacity=384 kbit/s"]));
    let shared = run(&[]);
    let together = seconds(&shared);
    for (alone, together) in alone.iter().zip(&together) {
        assert!((2.0..3.5).contains(&(together / alone)), "{alone} alone, {together} together");
    }
    let last = together.iter().copied().fold(0.0, f64::max);
    let used: u64 = ["a/up", "b/up", "c/up"].map(|way| counter(&shared, way, "mac-slots-used")).iter().sum();
    let slots = (last + 10.0) * 128_000.0 / 424.0;
    assert!(used as f64 <= slots, "{used} of {slots} slots");
    let least = 3.0 * 300_000.0 / 48.0;
    assert!(used as f64 >= least, "{used} slots carry less than {least}");
}

/// Goal: who is guaranteed a rate has it whatever the others ask for.
#[test]
fn a_guaranteed_rate_is_not_shared() {
    let run = run(&[r#"link.a.dama={ cra = "64 kbit/s", vbdc = false }"#]);
    let seconds = seconds(&run);
    // 300 kB at 64 kbit/s and 48 of 53 bytes take 41 s, and a few round trips.
    assert!((41.0..52.0).contains(&seconds[0]), "{seconds:?}");
    assert!(seconds[1] > 60.0 && seconds[2] > 60.0, "{seconds:?}");
}

/// Goal: with flow control the IP queue is where packets are dropped, without it the MAC buffer.
#[test]
fn packets_are_dropped_where_there_is_no_flow_control() {
    let queue = "link.a.queue={ drop-tail = { bytes = \"10 kB\" } }";
    let with = run(&[queue, "dama.beam.capacity=384 kbit/s"]);
    assert_eq!(counter(&with, "a/up", "mac-drops"), 0);
    assert!(counter(&with, "a/up", "queue-dropped-for-bytes") > 0);
    assert!(counter(&with, "a/up", "mac-most-buffered") <= 14_400);
    let without = run(&[queue, "link.a.dama.flow-control=false", "dama.beam.capacity=384 kbit/s"]);
    assert!(counter(&without, "a/up", "mac-drops") > 0);
    assert_eq!(counter(&without, "a/up", "queue-dropped-for-bytes"), 0);
}

/// Goal: a protocol that repairs losses does so across a MAC buffer, and waits for no report before the frame is out.
#[test]
fn losses_are_repaired_across_a_mac_buffer() {
    let bursts = r#"link.a.channel.up-errors={ bursts = { interval = ["2 s", "10 s"], length = ["100 ms", "300 ms"] } }"#;
    for protocol in ["slacp", "cotmll-thesis", "harq"] {
        let protocol = format!("link.a.protocol={protocol}");
        let run = run(&[bursts, &protocol, "dama.beam.capacity=384 kbit/s"]);
        assert!(seconds(&run)[0] < 45.0, "{:?}", seconds(&run));
        assert!(counter(&run, "a/up", "bits-retransmission") > 0, "{run:?}");
        assert!(run.transfers[0].retransmissions <= 40, "{:?}", run.transfers[0]);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (change, complaint) in [
        ("dama.beam.superframe=0 s", r#"network "beam" has superframes of 0 s; allowed are 1 ms to 60 s"#),
        (r#"dama.other={ capacity = "1 Mbit/s" }"#, r#"no link's dama names network "other""#),
        ("link.a.dama.network=bean", r#"link "a" is in network "bean"; allowed are those of [dama]: beam"#),
        (
            "link.a.dama.vbdc=false",
            r#"link "a" has dama, but requests no capacity; allowed are vbdc = true, rbdc or cra"#,
        ),
        (
            "link.a.dama.cra=200 kbit/s",
            r#"link "a" has cra = "200 kbit/s"; allowed are up to the line's 128 kbit/s"#,
        ),
        (
            "link.a.dama.rbdc=200 kbit/s",
            r#"link "a" has rbdc = "200 kbit/s"; allowed are up to the line's 128 kbit/s"#,
        ),
        (
            "link.a.dama.mac-buffer=1000 B",
            r#"link "a" has a mac-buffer of 1 kB; allowed are 1632 B, for a long packet, or more"#,
        ),
        ("tcp.mss=15000", r#"link "a" has a mac-buffer of 14400 B; allowed are 15168 B"#),
        (
            "dama.beam.capacity=0 bit/s",
            r#"network "beam" has a capacity of 0 bit/s; allowed are 1 bit/s or more"#,
        ),
        ("link.a.channel.up-rate=0 bit/s", "a rate of zero"),
        ("link.a.dama.rbdc-timeout=16", "a time-out of 16 superframes; allowed are 0 (without end) to 15"),
        (
            "link.a.encapsulation.up=rle",
            r#"the terminals of network "beam" have cells of different lengths; allowed is one length for all"#,
        ),
        (
            "link.a.framing=efl",
            r#"link "a" has an encapsulation, which needs a protocol and framing = "ideal"; allowed is that, or no encapsulation"#,
        ),
        (
            r#"link.a.channel.rate-changes=[{ at = "1 s", rate = "1 Mbit/s" }]"#,
            r#"link "a" has both dama and rate-changes; allowed is only one of them"#,
        ),
    ] {
        let error = suite(&[change]).expect_err(change);
        assert!(error.contains(complaint), "{change}: {error}");
    }
    let greedy = suite(&["link.a.dama.cra=100 kbit/s", "link.b.dama.cra=100 kbit/s"]).unwrap_err();
    assert!(
        greedy.contains(
            r#"the terminals of network "beam" have 200 kbit/s of cra in all; allowed are up to 128 kbit/s"#
        ),
        "{greedy}"
    );
}
