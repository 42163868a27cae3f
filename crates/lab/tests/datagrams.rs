//! What datagrams that nobody marked get of a link: their time is up at some age, and those of thin flows go before a download's.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

/// One way, in milliseconds.
const DELAY: u64 = 250;

fn run(text: &str, seed: u64) -> Run {
    let suite = Suite::parse("datagrams.toml", text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
    let watch = Watch { latencies: true, ..Watch::default() };
    let run = run::run("datagrams", &suite.scenario, seed, &watch).unwrap();
    assert!(run.intact, "{run:?}");
    run
}

/// A source of datagrams of `len` bytes, headers included, so many a second.
fn datagrams(name: &str, len: u64, rate: u64) -> String {
    let payload = len - 28;
    format!(
        "[traffic.{name}.rate]\nfrom = \"hub\"\nto = \"terminal\"\nrate = \"{} bit/s\"\nrecord = \"{payload} B\"\ntransport = \"udp\"\n",
        payload * 8 * rate
    )
}

/// Latencies of a source's records in milliseconds, sorted.
fn latencies(run: &Run, source: &str) -> Vec<u64> {
    let mut millis: Vec<u64> =
        run.latencies[source].iter().map(|sample| sample.latency.as_millis()).collect();
    millis.sort_unstable();
    millis
}

fn within(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// A call of 50 packets of 200 bytes a second beside a download over 20 Mbit/s of which 2 % are lost, for two minutes.
fn call_beside_download(link: &str, seed: u64) -> Run {
    let text = format!(
        "name = \"call\"\nduration = \"120 s\"\n[tcp]\npreset = \"linux\"\n\
         [link.satellite]\nends = [\"hub\", \"terminal\"]\nprotocol = \"coded\"\n{link}\n\
         queue = {{ drop-tail = {{ time = \"{} ms\" }} }}\n\
         channel = {{ rate = \"20 Mbit/s\", delay = \"{DELAY} ms\", errors = {{ erasure = {{ probability = 0.02 }} }} }}\n\
         [traffic.file.bulk]\nfrom = \"hub\"\nto = \"terminal\"\n{}",
        2 * DELAY,
        datagrams("call", 200, 50)
    );
    run(&text, seed)
}

/// Goal: with thin flows told, 95 of 100 packets of a call that nobody marked come within 60 ms of the 250 ms and their frame's time, where
/// they would wait behind the download and for its repairs; the download loses nothing that shows.
#[test]
fn an_unmarked_call_does_not_wait_for_a_download() {
    for seed in 1..=2 {
        let before = call_beside_download("", seed);
        let after = call_beside_download("datagram-age = \"auto\"\nsparse-flows = true", seed);
        let [slow, fast] = [&before, &after].map(|run| latencies(run, "call"));
        assert!(within(&slow, 95) > DELAY + 300, "{}", within(&slow, 95));
        assert!(within(&fast, 95) < DELAY + 60, "{}", within(&fast, 95));
        assert!(within(&fast, 99) < DELAY + 60, "{}", within(&fast, 99));
        assert!(
            after.goodput_bps > 0.95 * before.goodput_bps,
            "{} {}",
            after.goodput_bps,
            before.goodput_bps
        );
        let source = &after.sources[0];
        // What is sent in the last 250 ms is still on its way.
        assert!(source.undelivered <= 15 && source.duplicates == 0 && source.late == 0, "{source:?}");
    }
}

/// Pings, a call and a download before, during and after a minute in which nothing gets through, as `channel` has it.
fn outage(protocol: &str, link: &str, channel: &str, seed: u64) -> Run {
    let text = format!(
        "name = \"outage\"\nduration = \"100 s\"\n[tcp]\npreset = \"linux\"\n\
         [link.satellite]\nends = [\"hub\", \"terminal\"]\nprotocol = {protocol}\n{link}\n\
         queue = {{ drop-tail = {{ time = \"{} ms\" }} }}\n\
         channel = {{ rate = \"4 Mbit/s\", delay = \"{DELAY} ms\", {channel} }}\n\
         [traffic.file.bulk]\nfrom = \"hub\"\nto = \"terminal\"\n{}{}",
        2 * DELAY,
        datagrams("ping", 84, 8),
        datagrams("call", 200, 50)
    );
    run(&text, seed)
}

#[test]
fn measure_outages() {
    let lost = "errors = { erasure = { probability = 0.02, changes = [{ at = \"20 s\", probability = 1 }, { at = \"80 s\", probability = 0.02 }] } }";
    let dark = "rate-changes = [{ at = \"20 s\", rate = \"0 bit/s\" }, { at = \"80 s\", rate = \"4 Mbit/s\" }], errors = { erasure = { probability = 0.02 } }";
    for protocol in ["\"coded\"", "{ cotmll = { sequence = \"wide\" } }", "\"slacp\""] {
        for (what, channel) in [("lost", lost), ("dark", dark)] {
            for link in ["", "datagram-age = \"auto\"", "datagram-age = \"auto\"\nsparse-flows = true"] {
                let run = outage(protocol, link, channel, 1);
                for source in ["ping", "call"] {
                    let all = latencies(&run, source);
                    println!(
                        "{protocol} {what} {link:?} {source}: {:?} n {}",
                        [5, 50, 90, 95, 99, 100].map(|p| within(&all, p)),
                        all.len()
                    );
                    let first = run.latencies[source].iter().find(|s| s.sent.as_secs_f64() > 79.0).unwrap();
                    println!("   first after {:?} {:?}", first.sent, first.latency);
                }
                println!("   {:?}", run.sources);
                let of = &run.links["satellite/down"];
                println!(
                    "   expired {:?} {:?} {:?} {:?}",
                    of.get("queue-expired"),
                    of.get("interactive-queue-expired"),
                    of.get("endpoint-packets-expired"),
                    run.goodput_bps
                );
            }
        }
    }
}
