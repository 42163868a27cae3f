//! Several pairs of gateways on one path: each should come to share it, and none should starve the others or take their losses for the channel's.

use crate::gateways::{received, run_with};

const MANY: &str = include_str!("../../../scenarios/rate/many.toml");

#[test]
fn eight_pairs_share_a_path() {
    // Once some lost half of what they sent in the first of these, and took it for the channel's; some took the common queue for their own in the second; and
    // in the third one paced nothing.
    for seed in [3, 8, 9] {
        let run = run_with(MANY, "", &[&format!("seed={seed}"), "duration=70 s"]);
        let shares: Vec<f64> = (1..=8).map(|n| received(&run, &format!("download-{n}"), 40, 70)).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let jain = sum * sum / (shares.len() as f64 * squares);
        assert!(
            sum >= 17.0 && jain >= 0.9,
            "seed {seed}: {shares:?}, {sum:.1} Mbit/s, Jain's index {jain:.3}"
        );
    }
}
