//! Coded ARQ over channels that change at random: whatever happens, everything arrives once, in order, byte for byte.
//!
//! Each seed is a scenario of its own. A failure prints its seed; the same again is
//! `LONGHAUL_CHANGING_SEED=N cargo test -p longhaul-lab --test all changing::`. With `LONGHAUL_CHANGING_PACKETS` as many packets cross links as that says.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Rng;
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::{Scenario, Suite};

/// Packets that cross links in all, unless told: some seconds.
const PACKETS: u64 = 200_000;

/// Seconds in which packets are sent, and until the run ends. All that waits has left by then: 16,000 packets of a class at most are three frames
/// each, twelve windows; where 70 % are lost, the last frame of a window goes out 23 times, with 0.8 s in between.
const SENDING: u64 = 20;
const ENDING: u64 = 300;

/// Packets a second of a class at most.
const BUSIEST: u64 = 800;

fn between(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least + 1)
}

/// A rate between 50 kbit/s and 20 Mbit/s, of each size as often.
fn rate(rng: &mut Rng) -> u64 {
    let size = 50e3_f64 * 2_f64.powf(rng.unit() * 8.64);
    size as u64
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u64) as usize]
}

/// What goes wrong: losses whose probability changes, blockages, or bursts.
fn errors(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => {
            let mut at = 0;
            let mut changes = Vec::new();
            for _ in 0..rng.below(8) {
                at += between(rng, 100, 4000);
                changes.push(format!("{{ at = \"{at} ms\", probability = {:.3} }}", rng.unit() * 0.7));
            }
            let first = rng.unit() * 0.6;
            format!("{{ erasure = {{ probability = {first:.3}, changes = [{}] }} }}", changes.join(", "))
        }
        1 => {
            let (f, d) = (0.05 + rng.unit() * 0.5, between(rng, 5, 1500));
            format!("{{ gilbert-elliott = {{ f = {f:.3}, d = \"{d} ms\" }} }}")
        }
        _ => {
            let (quiet, burst) = (between(rng, 20, 3000), between(rng, 1, 600));
            // Open for half of the time at least.
            let least = burst.div_ceil(2);
            format!(
                "{{ bursts = {{ interval = [\"{least} ms\", \"{} ms\"], length = [\"1 us\", \"{burst} ms\"] }} }}",
                least + quiet
            )
        }
    }
}

/// The scenario of a seed.
fn scenario(seed: u64) -> String {
    let rng = &mut Rng::named(seed, "changing");
    let (first, up, delay) = (rate(rng), rate(rng), between(rng, 0, 400));
    let mut changes = String::new();
    let mut at = 0;
    for _ in 0..rng.below(8) {
        at += between(rng, 100, 4000);
        // Nothing at all now and then.
        let rates = if rng.chance(0.1) { [0, 0] } else { [rate(rng), rate(rng)] };
        let _ = write!(
            changes,
            "{{ at = \"{at} ms\", rate = \"{} bit/s\", up-rate = \"{} bit/s\" }}, ",
            rates[0], rates[1]
        );
    }
    // In the end everything that waits leaves.
    let end = (at + 1).max(SENDING * 1000);
    let _ = write!(changes, "{{ at = \"{end} ms\", rate = \"200 Mbit/s\", up-rate = \"20 Mbit/s\" }}");
    let mut coded = format!("ordered = {}", pick(rng, &["\"flow\"", "true"]));
    if rng.chance(0.3) {
        let _ = write!(coded, ", frame-payload = {}", between(rng, 500, 1400));
    }
    // The default is for the first rate, and may be too small by far for the last.
    let _ = write!(coded, ", window = {}", between(rng, 4096, 20_000));
    let (errors, up_errors) = (errors(rng), errors(rng));
    let mut text = format!(
        "name = \"changing {seed}\"\nduration = \"{ENDING} s\"\ntcp.preset = \"linux\"\n\
         [link.sky]\nends = [\"hub\", \"terminal\"]\nprotocol.coded = {{ {coded} }}\n\
         once-dscp = [46]\ninteractive-dscp = [18]\nqueue.drop-tail.bytes = \"1 GB\"\n\
         [link.sky.channel]\nrate = \"{first} bit/s\"\nup-rate = \"{up} bit/s\"\ndelay = \"{delay} ms\"\n\
         rate-changes = [{changes}]\nerrors = {errors}\nup-errors = {up_errors}\ncorrelated = {}\n",
        rng.chance(0.5)
    );
    for (name, dscp) in [("bulk", 0), ("shell", 18), ("voice", 46)] {
        let (record, connections) = (between(rng, 60, 1400), between(rng, 1, 3));
        let bps = record * 8 * between(rng, 10, BUSIEST) / connections;
        let _ = write!(
            text,
            "[traffic.{name}.rate]\nfrom = \"hub\"\nto = \"terminal\"\ntransport = \"udp\"\nrate = \"{bps} bit/s\"\n\
             record = \"{record} B\"\ndscp = {dscp}\nduration = \"{SENDING} s\"\nconnections = {connections}\n"
        );
    }
    let _ = write!(
        text,
        "[traffic.file.bulk]\nfrom = \"terminal\"\nto = \"hub\"\nsize = \"{} kB\"\nconnections = 2\n",
        between(rng, 10, 500)
    );
    text
}

fn read(text: &str) -> Scenario {
    Suite::parse("changing.toml", text, Path::new(""), &[])
        .unwrap_or_else(|it| panic!("{it}\n{text}"))
        .scenario
}

/// What is wrong with a run, in words.
fn complaint(run: &Run) -> Option<String> {
    let mut wrong = String::new();
    if !run.intact {
        wrong += "bytes arrived wrong; ";
    }
    for transfer in run.transfers.iter().filter(|it| it.seconds.is_none() || it.failed) {
        let _ = write!(wrong, "{} did not end; ", transfer.name);
    }
    for source in &run.sources {
        let is_once = source.name == "voice";
        if source.duplicates > 0 || (!is_once && (source.late > 0 || source.undelivered > 0)) {
            let _ = write!(wrong, "{source:?}; ");
        }
    }
    for direction in ["sky/down", "sky/up"] {
        let dropped = run.links[direction].iter().filter(|(name, _)| name.contains("dropped"));
        for (name, count) in dropped.filter(|(_, count)| **count > 0) {
            let _ = write!(wrong, "{direction} {name} {count}; ");
        }
    }
    (!wrong.is_empty()).then_some(wrong)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
}

/// Goal: over any channel, of what is to be repeated until it has come everything comes, once, in order and as it was sent, and what is sent
/// once comes at most once.
#[test]
fn everything_arrives_over_channels_that_change() {
    let (one, packets) =
        (number("LONGHAUL_CHANGING_SEED"), number("LONGHAUL_CHANGING_PACKETS").unwrap_or(PACKETS));
    let (next, crossed) = (AtomicU64::new(one.unwrap_or(1)), AtomicU64::new(0));
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while crossed.load(Ordering::Relaxed) < packets {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if one.is_some_and(|one| one != seed) {
                        return;
                    }
                    let text = scenario(seed);
                    let run = run::run("coded", &read(&text), seed, &Watch::default()).unwrap();
                    if let Some(wrong) = complaint(&run) {
                        panic!("LONGHAUL_CHANGING_SEED={seed}: {wrong}\n{text}");
                    }
                    let links = run.links.values();
                    let delivered: u64 = links.map(|counters| counters["packets-delivered"]).sum();
                    crossed.fetch_add(delivered, Ordering::Relaxed);
                }
            });
        }
    });
    let (seeds, crossed) = (next.into_inner(), crossed.into_inner());
    println!("{crossed} packets, seeds up to {seeds}");
    assert!(one.is_some() || crossed >= packets);
}

/// Thousands of frames are lost in a window of 14,447, whose reports tell of a part of it each, and were sent again in another order than their
/// numbers'. The line is 200 Mbit/s from the 20th second on.
const GAPS: &str = r#"
name = "gaps"
duration = "60 s"
[link.sky]
ends = ["hub", "terminal"]
protocol.coded = { ordered = true, frame-payload = 922, window = 14447 }
once-dscp = [46]
interactive-dscp = [18]
queue.drop-tail.bytes = "1 GB"
[link.sky.channel]
rate = "3005409 bit/s"
up-rate = "56466 bit/s"
delay = "270 ms"
rate-changes = [{ at = "20 s", rate = "200 Mbit/s", up-rate = "20 Mbit/s" }]
errors = { erasure = { probability = 0.418, changes = [{ at = "3300 ms", probability = 0.697 }] } }
up-errors = { gilbert-elliott = { f = 0.125, d = "1346 ms" } }
correlated = false
[traffic.bulk.rate]
from = "hub"
to = "terminal"
transport = "udp"
rate = "668448 bit/s"
record = "633 B"
duration = "20 s"
connections = 2
[traffic.shell.rate]
from = "hub"
to = "terminal"
transport = "udp"
rate = "6858200 bit/s"
record = "1325 B"
dscp = 18
duration = "20 s"
[traffic.voice.rate]
from = "hub"
to = "terminal"
transport = "udp"
rate = "5764608 bit/s"
record = "1251 B"
dscp = 46
duration = "20 s"
[traffic.file.bulk]
from = "terminal"
to = "hub"
size = "36 kB"
connections = 2
"#;

/// Goal: a frame that no report has told of yet holds up none of those that one does tell of, so gaps close within seconds.
#[test]
fn a_window_full_of_gaps_closes() {
    let run = run::run("coded", &read(GAPS), 793, &Watch::default()).unwrap();
    assert_eq!(complaint(&run), None);
}

/// The same seed is the same scenario and the same run.
#[test]
fn a_seed_replays() {
    let hash = |seed| run::run("coded", &read(&scenario(seed)), seed, &Watch::default()).unwrap().trace_hash;
    assert_eq!(scenario(3), scenario(3));
    assert_eq!(hash(3), hash(3));
    assert_ne!(scenario(3), scenario(4));
}
