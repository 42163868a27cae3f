//! Whole tunnels, end to end, over lines that lose, repeat, reorder, damage and shorten.

extern crate longhaul_tunnel as tunnel;

mod between;

use base::Duration;
use between::{OTHER, Pair, SETUPS, Setup};
use proptest::prelude::*;

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pair(link: &'static str) -> Pair {
    Pair::new(Setup { link, has_proxy: false })
}

fn counter(pair: &Pair, at: usize, name: &str) -> u64 {
    let counters = pair.end(at).counters();
    counters.into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

#[test]
fn what_goes_in_at_one_end_comes_out_at_the_other() {
    for setup in SETUPS {
        let mut pair = Pair::new(setup);
        pair.pass(second(3));
        assert!(pair.is_connected(), "{setup:?}");
        let numbers: Vec<_> = (0..20).map(|at| pair.offer(at % 2, 60 + 70 * at, 0, OTHER)).collect();
        pair.pass(second(3));
        for end in 0..2 {
            let mut delivered = pair.delivered(end).to_vec();
            delivered.sort_unstable();
            let expected = numbers.iter().copied().filter(|number| *number as usize % 2 != end);
            assert_eq!(delivered, expected.collect::<Vec<_>>(), "{setup:?}");
        }
    }
}

/// The path carries less than it did while frames that are longer wait to be repeated: they arrive in parts.
#[test]
fn frames_that_became_too_long_arrive_in_parts() {
    for link in ["rate = \"4 Mbit/s\"", "rate = \"4 Mbit/s\"\nprotocol = \"cotmll\""] {
        let mut pair = pair(link);
        pair.pass(second(3));
        pair.line(0).longest = 1000;
        pair.line(0).says = true;
        let numbers: Vec<_> = (0..30).map(|_| pair.offer(0, 1400, 0, OTHER)).collect();
        pair.pass(second(60));
        let mut delivered = pair.delivered(1).to_vec();
        delivered.sort_unstable();
        assert_eq!(delivered, numbers, "{link}");
        assert!(counter(&pair, 0, "frames-cut") > 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens to datagrams, nothing panics, every deadline passes, and the ends recover.
    #[test]
    fn tunnels_recover(setup in 0..SETUPS.len(), steps in proptest::collection::vec(any::<[u8; 4]>(), 0..60)) {
        let mut pair = Pair::new(SETUPS[setup]);
        steps.into_iter().for_each(|step| pair.step(step));
        pair.recovers(second(60));
    }
}
