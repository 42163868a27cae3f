//! The traffic models: rate-controlled sources over TCP and UDP, transactions, and everything at once.

use std::path::Path;

use base::{Duration, Instant};
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

fn suite(errors: &str, traffic: &str) -> Result<Suite, String> {
    // Keys of the scenario itself come before its tables.
    let (keys, traffic) = traffic.split_at(traffic.find('[').unwrap());
    let text = format!(
        "name = \"traffic\"\nduration = \"60 s\"\n{keys}[link.l]\nends = [\"hub\", \"terminal\"]\n\
         channel = {{ rate = \"256 kbit/s\", delay = \"250 ms\", errors = {errors} }}\n{traffic}"
    );
    Suite::parse("traffic.toml", &text, Path::new(""), &[]).map_err(|error| error.to_string())
}

fn run(errors: &str, traffic: &str) -> Run {
    let suite = suite(errors, traffic).unwrap();
    let watch = Watch { latencies: true, progress: true, ..Watch::default() };
    let run = run::run("traffic", &suite.schemes[0].1, 1, &watch).unwrap();
    assert!(run.intact, "{run:?}");
    assert!(run.goodput_bps <= run.bound_bps, "faster than the channel allows: {run:?}");
    run
}

const RATE: &str = "[traffic.voice.rate]\nfrom = \"hub\"\nto = \"terminal\"\n";
const CLICKS: &str = "[traffic.web.transactions]\nfrom = \"hub\"\nto = \"terminal\"\n";

/// Goal: over a clean link a record takes the propagation delay and its time on the line, and every record comes; with
/// Nagle's algorithm, records shorter than a segment wait for acknowledgements as well.
#[test]
fn a_rate_within_the_capacity_has_the_latency_of_the_path() {
    for transport in ["tcp", "udp"] {
        let source = format!("{RATE}rate = \"64 kbit/s\"\ntransport = \"{transport}\"\n");
        let run = run("\"none\"", &format!("tcp.nagle = false\n{source}"));
        let voice = &run.sources[0];
        let latency = voice.latency.unwrap();
        assert!((470..=481).contains(&voice.generated), "{voice:?}");
        assert!(voice.undelivered <= 5 && voice.dropped == 0, "{voice:?}");
        // 250 ms, and a kilobyte at 256 kbit/s with its headers: 32 ms.
        assert!(latency.p50 >= 0.281 && latency.p50 < 0.290, "{transport}: {latency:?}");
        assert_eq!(run.latencies["voice"].len() as u64, voice.delivered);
        let progress = &run.progress[0].points;
        assert_eq!(progress.last().unwrap().1, voice.bytes);
    }
    let nagle = run("\"none\"", &format!("{RATE}rate = \"64 kbit/s\"\n"));
    assert!(nagle.sources[0].latency.unwrap().p50 > 0.35, "{nagle:?}");
}

/// Goal: a rate beyond the capacity shows as latency that grows with the run and records that never come, over TCP as a
/// wait in the application, over UDP as losses at the queue.
#[test]
fn overload_shows() {
    let over_tcp = run("\"none\"", &format!("{RATE}rate = \"512 kbit/s\"\n"));
    let voice = &over_tcp.sources[0];
    assert!(voice.undelivered > 1_000 && voice.undelivered_age.unwrap() > 5.0, "{voice:?}");
    let samples = &over_tcp.latencies["voice"];
    let (early, late) = (samples[10].latency, samples.last().unwrap().latency);
    assert!(late > Duration::from_secs(20) && late > early * 5, "{early} then {late}");
    let over_udp = run("\"none\"", &format!("{RATE}rate = \"512 kbit/s\"\ntransport = \"udp\"\n"));
    let voice = &over_udp.sources[0];
    assert!(voice.undelivered * 3 > voice.generated && voice.undelivered_age.is_none(), "{voice:?}");
    assert!(voice.latency.unwrap().max < 5.0, "a queue bounds the wait: {voice:?}");
}

/// Goal: TCP makes good what the channel loses, and pays in latency; UDP loses as many records as the channel erases.
#[test]
fn losses_cost_latency_over_tcp_and_records_over_udp() {
    let errors = "{ erasure = { probability = 0.05 } }";
    let tcp = run(errors, &format!("{RATE}rate = \"32 kbit/s\"\nduration = \"40 s\"\n"));
    let udp = run(errors, &format!("{RATE}rate = \"32 kbit/s\"\ntransport = \"udp\"\nduration = \"40 s\"\n"));
    let (tcp_voice, udp_voice) = (&tcp.sources[0], &udp.sources[0]);
    assert!(tcp.complete && tcp_voice.delivered == 160 && tcp_voice.undelivered == 0, "{tcp_voice:?}");
    assert!(tcp.seconds < 60.0, "a source of a given duration ends the run: {tcp:?}");
    assert!((1..=24).contains(&udp_voice.undelivered), "{udp_voice:?}");
    assert_eq!((udp_voice.duplicates, udp_voice.late), (0, 0));
    let (tcp_max, udp_max) = (tcp_voice.latency.unwrap().max, udp_voice.latency.unwrap().max);
    assert!(tcp_max > udp_max + 0.25, "{tcp_max} s against {udp_max} s");
}

/// Goal: every transaction of a given number completes, in two round trips at least, on one port and many connections.
#[test]
fn transactions_complete() {
    let run = run("\"none\"", &format!("{CLICKS}count = 10\nthink = \"1 s\"\n"));
    let web = &run.transactions[0];
    assert!(run.complete && web.completed == 10 && web.failed == 0 && web.bytes == 80_000, "{web:?}");
    let times = web.times.unwrap();
    assert!(times.p50 > 1.0 && times.max < 5.0, "{times:?}");
    let starts: Vec<Instant> = run.latencies["web"].iter().map(|sample| sample.sent).collect();
    assert!(starts.windows(2).all(|pair| pair[1].saturating_since(pair[0]) > Duration::from_secs(2)));
}

/// Goal: starts at fixed times go on whatever became of the ones before, as far as there is room.
#[test]
fn transactions_at_intervals_overlap() {
    let run =
        run("\"none\"", &format!("{CLICKS}interval = \"100 ms\"\nreply = \"20 kB\"\nconcurrency = 4\n"));
    let web = &run.transactions[0];
    assert!(web.completed > 20 && web.skipped > 100 && web.under_way <= 4, "{web:?}");
    // At 0 s, at 60 s, and every tenth of a second between.
    assert_eq!(web.started + web.skipped, 601);
}

/// Goal: all kinds share a link, several of each, and the same seed gives the same run.
#[test]
fn everything_at_once() {
    let bulk = "[traffic.file.bulk]\nfrom = \"hub\"\nto = \"terminal\"\nconnections = 2\n";
    let traffic = format!(
        "{bulk}{RATE}rate = \"16 kbit/s\"\nconnections = 2\nopened-by = \"sender\"\n\
         [traffic.control.rate]\nfrom = \"terminal\"\nto = \"hub\"\nrate = \"8 kbit/s\"\ntransport = \"udp\"\n\
         record = \"100 B\"\n{CLICKS}think = \"500 ms\"\nexponential = true\nconcurrency = 3\n"
    );
    let errors = "{ gilbert-elliott = { f = 0.1, d = \"200 ms\" } }";
    let first = run(errors, &traffic);
    assert_eq!((first.transfers.len(), first.sources.len(), first.transactions.len()), (2, 3, 1));
    assert!(first.transfers.iter().all(|transfer| transfer.bytes > 0), "{first:?}");
    assert!(first.sources.iter().all(|source| source.delivered > 0), "{first:?}");
    assert!(first.transactions[0].completed > 0, "{first:?}");
    assert_eq!(first.trace_hash, run(errors, &traffic).trace_hash);
}

/// Goal: what makes no sense is refused in words.
#[test]
fn impossible_traffic_is_refused() {
    for (traffic, want) in [
        (format!("{RATE}rate = \"0 bit/s\"\n"), "allowed are 1 bit/s or more"),
        (format!("{RATE}rate = \"1 kbit/s\"\nrecord = \"11 B\"\n"), "allowed are 12 to 1000000"),
        (
            format!("{RATE}rate = \"1 kbit/s\"\nrecord = \"2 kB\"\ntransport = \"udp\"\n"),
            "allowed are 20 to 1472",
        ),
        (format!("{RATE}rate = \"1 kbit/s\"\ntransport = \"udp\"\nopened-by = \"sender\"\n"), "opened-by"),
        (format!("{CLICKS}interval = \"1 s\"\nthink = \"1 s\"\n"), "allowed is only one of them"),
        (format!("{CLICKS}concurrency = 0\n"), "allowed are 1 to 10000"),
    ] {
        let complaint = suite("\"none\"", &traffic).unwrap_err();
        assert!(complaint.contains(want), "{complaint}");
    }
}
