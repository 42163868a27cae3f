//! Lines whose rate changes.

use std::path::Path;

use lab::run::{self, Watch};
use lab::scenario::Suite;
use longhaul_lab as lab;

/// A file over a link that slows down after 10 s.
const SLOWING: &str = "name = \"slowing\"\nduration = \"200 s\"\n\
    [link.satellite]\nends = [\"hub\", \"terminal\"]\n\
    [link.satellite.channel]\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\n\
    rate-changes = [{ at = \"10 s\", rate = \"250 kbit/s\" }]\n\
    [traffic.download.bulk]\nfrom = \"hub\"\nto = \"terminal\"\nsize = \"2 MB\"\n";

fn parse(changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("s.toml", SLOWING, Path::new(""), &changes).map_err(|error| error.to_string())
}

/// Goal: 2 MB leave at the first rate for 10 s and the rest at the second, within 10 % of the bound, over a wire and a link.
#[test]
fn a_scenarios_rates_change_and_its_bound_follows() {
    for changes in [&[][..], &["link.satellite.protocol=\"cotmll-thesis\""]] {
        let suite = parse(changes).unwrap();
        let run = run::run("slowing", &suite.scenario, 1, &Watch::default()).unwrap();
        assert!(run.complete && run.intact);
        // With headers 2.06 MB: 1.25 MB of that in the first 10 s, and the rest in 26 s.
        assert!((35.0..42.0).contains(&run.seconds), "{} s", run.seconds);
        assert!(
            (0.9..=1.0).contains(&(run.goodput_bps / run.bound_bps)),
            "{} of {}",
            run.goodput_bps,
            run.bound_bps
        );
        assert_eq!(run.normalised_throughput, None);
    }
}

/// Goal: what a rate that changes cannot be combined with is refused, with what is allowed.
#[test]
fn changes_that_make_no_sense_are_refused() {
    for (change, complaint) in [
        (
            "rate-changes=[{at=\"0 s\",rate=\"1 bit/s\"}]",
            "changes its rate at 0 s; allowed are times after 0 s",
        ),
        (
            "rate-changes=[{at=\"2 s\",rate=\"1 bit/s\"},{at=\"2 s\",rate=\"2 bit/s\"}]",
            "changes its rate at 2 s; allowed are times after 0 s, in increasing order",
        ),
        ("errors.bit-errors.ber=1e-6", "has rate-changes and bit errors; allowed are erasure, and blockages"),
        ("rate-changes=[{rate=\"1 bit/s\"}]", "missing key `at`"),
        (
            "errors.erasure={probability=0.1,changes=[{at=\"3 s\",probability=0.2},{at=\"2 s\",probability=0}]}",
            "changes its erasures at 2 s; allowed are times in increasing order",
        ),
    ] {
        let error = parse(&[&format!("link.satellite.channel.{change}")]).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
    let framing =
        parse(&["link.satellite.protocol=\"cotmll-thesis\"", "link.satellite.framing=\"efl\""]).unwrap_err();
    assert!(framing.contains("has rate-changes and a framing; allowed is framing = \"ideal\""), "{framing}");
    assert!(parse(&["link.satellite.channel.errors.erasure.probability=0.01"]).is_ok());
}
