//! Whole runs over real framing: bits are damaged one by one, and frames are found among them.

use std::ops::ControlFlow;
use std::path::Path;

use longhaul_lab::run::{self, Run};
use longhaul_lab::scenario::{Override, Suite};

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

fn suite(changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("download.toml", DEMO, Path::new(""), &changes).map_err(|error| error.to_string())
}

/// A run over `plain` and one over COTMLL, for each seed.
fn runs(framing: &str, errors: &str, more: &[&str]) -> Vec<Run> {
    let framing = format!("link.satellite.framing={framing}");
    let errors = format!("link.satellite.channel.errors={errors}");
    let changes = [&[&framing, &errors, "traffic.download.bulk.size=200 kB", "seeds=1"], more].concat();
    run::run_all(&suite(&changes).unwrap(), &run::Recordings::default(), |_| ControlFlow::Continue(()))
        .unwrap()
}

fn counter(run: &Run, direction: &str, name: &str) -> u64 {
    run.links[&format!("satellite/{direction}")][name]
}

/// Goal: over each kind of channel every byte arrives, and the receiver finds the frames again after every blockage.
#[test]
fn every_byte_arrives_among_damaged_bits() {
    for framing in ["efl", "encrypted-efl"] {
        for errors in [
            "{ bit-errors = { ber = 3e-5 } }",
            "{ gilbert-elliott = { f = 0.3, d = \"300 ms\", c = 1e-6 } }",
            "{ periodic = { open = \"2 s\", blocked = \"500 ms\" } }",
        ] {
            for run in runs(framing, errors, &[]) {
                assert!(run.intact && run.complete && run.bytes == 200_000, "{framing} {errors}: {run:?}");
                assert!(run.goodput_bps <= run.bound_bps, "faster than the channel allows: {run:?}");
                for direction in ["down", "up"] {
                    let [sent, lost, found, hunts] =
                        ["frames-sent", "frames-lost", "efl-frames", "efl-hunts"]
                            .map(|name| counter(&run, direction, name));
                    // A transfer's few acknowledgements may all miss the blockages.
                    let some = lost > 0 || (run.scheme == "TCP" && direction == "up");
                    assert!(some && hunts > 0, "{framing} {errors}: {run:?}");
                    // Intact frames are found but for what is still on its way, a quarter of a second of bare
                    // acknowledgements at most, and, encrypted, those behind a loss.
                    let on_its_way = if run.scheme == "TCP" { 40 } else { 256_000 / 4 / 72 };
                    let at_most = sent - lost;
                    let at_least =
                        if framing == "efl" { at_most } else { at_most.saturating_sub(hunts + lost) };
                    assert!(
                        found <= at_most && found + on_its_way >= at_least,
                        "{found} of {at_most}: {run:?}"
                    );
                }
            }
        }
    }
}

/// Goal: where no bit is wrong, finding the frames changes nothing but the moment of an acknowledgement, by 31 bits.
#[test]
fn a_clean_line_is_as_fast_as_an_ideal_one() {
    let ideal = runs("ideal", "none", &["link.satellite.protocol.plain.buffer=10"]);
    for framing in ["efl", "encrypted-efl"] {
        let [plain, cotmll, ..] = &runs(framing, "none", &["link.satellite.protocol.plain.buffer=10"])[..]
        else {
            panic!("two schemes and more");
        };
        assert!((cotmll.seconds / ideal[1].seconds - 1.0).abs() < 0.01, "{} s", cotmll.seconds);
        // Packets are cut into three frames.
        assert!((1.0..1.05).contains(&(plain.seconds / ideal[0].seconds)), "{} s", plain.seconds);
        for run in [plain, cotmll] {
            let hunts = counter(run, "down", "efl-hunts");
            assert_eq!(hunts, u64::from(framing == "encrypted-efl"), "the preamble is the only unknown");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let hashes = |framing: &str| -> Vec<String> {
        let errors = "{ gilbert-elliott = { f = 0.3, d = \"300 ms\" } }";
        runs(framing, errors, &[]).into_iter().map(|run| run.trace_hash).collect()
    };
    for framing in ["efl", "encrypted-efl"] {
        assert_eq!(hashes(framing), hashes(framing));
    }
    assert_ne!(hashes("efl"), hashes("ideal"));
}

#[test]
fn a_stream_needs_frames_and_wrong_bits() {
    let complaint = |changes: &[&str]| suite(changes).unwrap_err();
    let erasure = "link.satellite.channel.errors={ erasure = { probability = 0.1 } }";
    let lost = complaint(&["link.satellite.framing=efl", erasure]);
    assert!(lost.contains("loses whole frames") && lost.contains("allowed are other errors"), "{lost}");
    let text = DEMO.replace("protocol = \"plain\"", "framing = \"efl\"");
    let wire = Suite::parse("download.toml", &text, Path::new(""), &[]).unwrap_err().to_string();
    assert!(wire.contains("a framing but no protocol; allowed is framing = \"ideal\""), "{wire}");
    let unknown = complaint(&["link.satellite.framing=hdlc"]);
    assert!(unknown.contains("expected one of `ideal`, `efl`, `encrypted-efl`"), "{unknown}");
}
