//! What datagrams that nobody marked get of a link: their time is up at some age, those of thin flows go before a download's, and with order
//! per flow none waits for another flow's losses.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::{Scenario, Suite};

/// One way, in milliseconds.
const DELAY: u64 = 250;

fn run(text: &str, seed: u64) -> Run {
    let suite = Suite::parse("datagrams.toml", text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
    run_scenario(&suite.scenario, seed)
}

fn run_scenario(scenario: &Scenario, seed: u64) -> Run {
    let watch = Watch { latencies: true, ..Watch::default() };
    let run = run::run("datagrams", scenario, seed, &watch).unwrap();
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

/// A call of 50 packets of 200 bytes a second beside a download over 20 Mbit/s of which 2 % are lost, for a minute.
fn call_beside_download(link: &str, seed: u64) -> Run {
    let text = format!(
        "name = \"call\"\nduration = \"60 s\"\n[tcp]\npreset = \"linux\"\n\
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

/// Goal: packets of a call that something in front of the link held back come together, more than a thin flow sends; once they have left, the
/// call is thin again, though some of its packets are always on their way.
#[test]
fn a_call_that_was_held_back_for_a_moment_goes_before_a_download_again() {
    let lan = |host: &str, changes: &str| {
        format!(
            "[link.lan-{host}]\nends = [\"{host}\", \"hub\"]\nqueue = {{ drop-tail = {{ packets = 1000 }} }}\n\
             channel = {{ rate = \"1 Gbit/s\", delay = \"1 ms\"{changes} }}\n"
        )
    };
    let held =
        ", rate-changes = [{ at = \"20 s\", rate = \"0 bit/s\" }, { at = \"20.5 s\", rate = \"1 Gbit/s\" }]";
    let text = format!(
        "name = \"held back\"\nduration = \"40 s\"\n[tcp]\npreset = \"linux\"\n{}{}\
         [link.satellite]\nends = [\"hub\", \"terminal\"]\nprotocol = \"coded\"\n\
         datagram-age = \"auto\"\nsparse-flows = true\nqueue = {{ drop-tail = {{ time = \"{} ms\" }} }}\n\
         channel = {{ rate = \"20 Mbit/s\", delay = \"{DELAY} ms\", errors = {{ erasure = {{ probability = 0.02 }} }} }}\n\
         [traffic.file.bulk]\nfrom = \"server\"\nto = \"terminal\"\n{}",
        lan("server", ""),
        lan("caller", held),
        2 * DELAY,
        datagrams("call", 200, 50).replace("\"hub\"", "\"caller\"")
    );
    for seed in 1..=2 {
        let run = run(&text, seed);
        for (from, to) in [(5.0, 19.0), (21.0, 40.0)] {
            let of = run.latencies["call"].iter().filter(|it| (from..to).contains(&it.sent.as_secs_f64()));
            let mut millis: Vec<u64> = of.map(|it| it.latency.as_millis()).collect();
            millis.sort_unstable();
            assert!(
                millis.len() > 600 && within(&millis, 95) < DELAY + 60,
                "{from}: {}",
                within(&millis, 95)
            );
        }
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

/// All frames are lost for a minute.
const LOST: &str = "errors = { erasure = { probability = 0.02, changes = \
    [{ at = \"20 s\", probability = 1 }, { at = \"80 s\", probability = 0.02 }] } }";

/// Nothing is sent for a minute, as to a peer that is silent.
const DARK: &str = "rate-changes = [{ at = \"20 s\", rate = \"0 bit/s\" }, { at = \"80 s\", rate = \"4 Mbit/s\" }], \
    errors = { erasure = { probability = 0.02 } }";

/// What the queue takes to drain and two and a half round trips of 506 ms.
const AUTO: u64 = 500 + 1265;

/// Goal: after an outage of a minute no ping and no packet of a call comes that is older than the limit and the way, but for half a second in which
/// it is solved from what is sent for others, or, where a window has a download's frames too, the time for which the far end may hold it back.
/// Without a limit all come, up to a minute late.
#[test]
fn nothing_too_old_comes_after_an_outage() {
    for (protocol, more) in [("\"coded\"", 500), ("\"cotmll\"", AUTO), ("\"slacp\"", AUTO)] {
        for channel in [LOST, DARK] {
            let late = outage(protocol, "", channel, 1);
            assert!(within(&latencies(&late, "ping"), 90) > 50_000);
            for link in ["datagram-age = \"auto\"", "datagram-age = \"auto\"\nsparse-flows = true"] {
                let run = outage(protocol, link, channel, 1);
                for source in ["ping", "call"] {
                    let mut all = latencies(&run, source);
                    // The frame that the line has begun with when it stops.
                    all.pop_if(|last| channel == DARK && *last > 60_000);
                    let oldest = *all.last().unwrap();
                    assert!(oldest <= AUTO + DELAY + more, "{protocol} {link} {source}: {oldest} ms");
                    // SLACP asks what has come every 30 s.
                    if protocol != "\"slacp\"" {
                        assert_goes_on(&run, source);
                    }
                }
                let of = &run.links["satellite/down"];
                // On a line that stands still it is chance whether they grow too old or find the queue full, some hundreds of the download's with them.
                let full = of["queue-dropped-for-bytes"];
                let dropped = of["queue-expired"] + of["endpoint-packets-expired"] + full;
                assert!(dropped > 3400, "{protocol} {channel} {link}: {dropped}");
            }
        }
    }
}

/// What is sent from two seconds after the outage on comes as usual, but for what the download's queue has no room for.
fn assert_goes_on(run: &Run, source: &str) {
    let after = run.latencies[source].iter().filter(|it| it.sent.as_secs_f64() > 82.0);
    let mut after: Vec<u64> = after.map(|it| it.latency.as_millis()).collect();
    after.sort_unstable();
    let all = if source == "ping" { 8 * 18 } else { 50 * 18 };
    assert!(after.len() * 100 >= all * 90, "{} of {all}", after.len());
    assert!(within(&after, 90) < 1200, "{after:?}");
}

/// Goal: what has no fault of its own loses nothing to the age: of a stream of full packets over UDP at four fifths of the line with one frame in twenty
/// lost, as many come as without an age, but for one in a thousand.
#[test]
fn a_stream_over_a_lossy_link_keeps_its_repairs() {
    for protocol in ["\"coded\"", "\"cotmll\""] {
        let stream = |link: &str| {
            let text = format!(
                "name = \"stream\"\nduration = \"120 s\"\n\
                 [link.satellite]\nends = [\"hub\", \"terminal\"]\nprotocol = {protocol}\n{link}\n\
                 queue = {{ drop-tail = {{ time = \"500 ms\" }} }}\n\
                 channel = {{ rate = \"4 Mbit/s\", delay = \"{DELAY} ms\", errors = {{ erasure = {{ probability = 0.05 }} }} }}\n{}",
                datagrams("stream", 1400, 285)
            );
            let run = run(&text, 1);
            (run.sources[0].delivered, run.sources[0].late)
        };
        let (before, after) = (stream(""), stream("datagram-age = \"auto\"\nsparse-flows = true"));
        assert!(after.0 * 1000 >= before.0 * 999, "{after:?} of {before:?}");
    }
}

#[test]
fn a_wire_has_neither_key() {
    for key in ["datagram-age = \"auto\"", "sparse-flows = true"] {
        let text = format!(
            "name = \"wire\"\nduration = \"1 s\"\n[link.l]\nends = [\"a\", \"b\"]\n{key}\n\
             channel = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n[traffic.t.bulk]\nfrom = \"a\"\nto = \"b\"\n"
        );
        let error = Suite::parse("wire.toml", &text, Path::new(""), &[]).unwrap_err().to_string();
        let name = key.split(' ').next().unwrap();
        assert!(error.contains(&format!("has {name} but no protocol")), "{error}");
    }
}

/// Goal: where frames are lost one by one, most records of a quiet flow that are late wait for a busy flow's frames. With order per flow
/// they wait for their own alone: fewer than a quarter as many are late, and the mean falls by more than 120 ms. Least late is what goes first.
#[test]
fn with_order_per_flow_no_flow_waits_for_anothers_losses() {
    const SCENARIO: &str = include_str!("../../../scenarios/demo/order.toml");
    let suite = Suite::parse("order.toml", SCENARIO, Path::new(""), &[]).unwrap();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let voices = suite.schemes.iter().map(|(_, scenario)| {
        let runs = (1..=3).map(|seed| latencies(&run_scenario(scenario, seed), "voice"));
        let millis: Vec<u64> = runs.flatten().collect();
        let is_late = |millis: &u64| f64::from(*millis > 2 * DELAY);
        (
            mean(millis.iter().map(is_late).collect()),
            mean(millis.iter().map(|millis| *millis as f64).collect()),
        )
    });
    let voices: Vec<_> = voices.collect();
    let &[(late_link, mean_link), (late_flow, mean_flow), (late_none, mean_none), thin] = &voices[..] else {
        panic!("four schemes: {voices:?}");
    };
    assert!(late_link > 0.3 && late_flow < late_link / 4.0 && late_none < late_flow / 2.0, "{voices:?}");
    assert!(mean_flow < mean_link - 120.0 && mean_none < mean_flow, "{voices:?}");
    // Thin flows that go first, with sums that repair their losses, do not even wait for their own.
    assert!(thin.0 < late_none / 2.0 && thin.1 < mean_none, "{voices:?}");
}
