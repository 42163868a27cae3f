//! Several pairs of gateways on one path: each should come to share it, and none should starve the others or take their losses for the channel's.

use std::path::Path;

use base::{Duration, Instant};
use lab::network::Network;
use lab::node::Element;
use lab::scenario::Suite;
use lab::traffic::Application;
use longhaul_lab as lab;

const MANY: &str = include_str!("../../../scenarios/rate/many.toml");
/// When it is first looked at what arrived, and when last, in seconds.
const FROM: u64 = 40;
const TO: u64 = 70;

/// Bytes that have arrived, by download.
fn received(network: &Network) -> Vec<u64> {
    let of = |transfer: &lab::network::Transfer| {
        let Element::Host(host) = network.engine.node(transfer.to) else { return 0 };
        match &host.applications()[transfer.receiver] {
            Application::BulkReceiver(receiver) => receiver.received(),
            _ => 0,
        }
    };
    network.transfers.iter().map(of).collect()
}

/// Mbit/s of each download.
fn shares(seed: u64) -> Vec<f64> {
    let suite = Suite::parse("many.toml", MANY, Path::new(""), &[]).unwrap();
    let mut network = Network::build(&suite.schemes[0].1, seed);
    let mut until = |second: u64| {
        network.engine.run(Instant::ZERO + Duration::from_secs(second), 0);
        received(&network)
    };
    let (before, after) = (until(FROM), until(TO));
    let rate = |(before, after): (&u64, &u64)| (after - before) as f64 * 8e-6 / (TO - FROM) as f64;
    before.iter().zip(&after).map(rate).collect()
}

#[test]
fn eight_pairs_share_a_path() {
    // Once some lost half of what they sent in the first of these, and took it for the channel's; some took the common queue for their own in the second; and
    // in the third one paced nothing.
    for seed in [3, 8, 9] {
        let shares = shares(seed);
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let jain = sum * sum / (shares.len() as f64 * squares);
        assert!(
            sum >= 17.0 && jain >= 0.9,
            "seed {seed}: {shares:?}, {sum:.1} Mbit/s, Jain's index {jain:.3}"
        );
    }
}
