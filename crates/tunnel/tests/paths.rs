//! What whole tunnels find out about the path between them, and do about it.

use crate::between::{OTHER, Pair, Setup};
#[allow(dead_code, reason = "the pair has more to it than these tests ask for")]
use base::{Duration, Rate};
use longhaul_tunnel::Event;
use longhaul_tunnel::survey::rate::Finding;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Two ends with a bottleneck of so many Mbit/s on the way to the second, that holds 300 ms.
fn pair(link: &'static str, carries: u64) -> Pair {
    let mut pair = Pair::new(Setup::of(link, false));
    let holds = Duration::from_millis(300);
    pair.line(0).bottleneck = Some((Rate::from_bps(carries * 1_000_000), holds));
    pair
}

/// A host sends more than passes; Mbit/s that arrive.
fn fill(pair: &mut Pair, millis: u64, bytes_each: usize) -> f64 {
    let before = pair.delivered(1).len();
    for _ in 0..millis {
        pair.offer(0, bytes_each, 0, OTHER);
        pair.pass(Duration::from_millis(1));
    }
    (pair.delivered(1).len() - before) as f64 * bytes_each as f64 * 8.0 / millis as f64 / 1e3
}

/// The rate that is believed, in Mbit/s.
fn believed(pair: &Pair) -> f64 {
    let capacity = pair.end(0).survey().rate_controller.capacity();
    capacity.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 1e6)
}

fn findings(pair: &Pair) -> Vec<Finding> {
    let rates = pair.events(0).iter().filter_map(|event| match event {
        Event::Rate { finding, .. } => Some(*finding),
        _ => None,
    });
    rates.collect()
}

fn is_near(rate: Rate, mbit: u64) -> bool {
    rate.as_bps().abs_diff(mbit * 1_000_000) <= mbit * 30_000
}

/// A few datagrams of padding go ahead of the first packet.
#[test]
fn rate_and_round_trip_are_known_before_anything_passes() {
    let mut pair = pair("", 4);
    pair.pass(seconds(1));
    assert!((3.8..4.1).contains(&believed(&pair)), "{}", believed(&pair));
    assert!(pair.sent(0) < 20_000, "{} bytes", pair.sent(0));
    let round_trip = pair.end(0).survey().round_trip().expect("it was measured");
    assert!((40..=42).contains(&round_trip.as_millis()), "{round_trip:?}");
    assert!(findings(&pair).is_empty(), "that is not sure yet");
}

#[test]
fn a_bottleneck_is_used_with_a_short_queue_in_front_of_it_and_told_once() {
    for link in ["", "protocol = \"cotmll\""] {
        let mut pair = pair(link, 4);
        pair.pass(seconds(1));
        fill(&mut pair, 500, 1400);
        let arrived = fill(&mut pair, 2000, 1400);
        assert!((3.6..4.0).contains(&arrived), "{link}: {arrived} Mbit/s");
        let queueing = pair.end(0).survey().rate_controller.queueing();
        assert!(queueing.as_millis() < 40, "{queueing:?}");
        fill(&mut pair, 15_000, 1400);
        let told = findings(&pair);
        assert!(
            matches!(told[..], [Finding::Found { measured }] if is_near(measured, 4)),
            "{link}: {told:?}"
        );
        // The path becomes faster, and slower.
        for carries in [8, 2] {
            pair.line(0).bottleneck = Some((Rate::from_bps(carries * 1_000_000), Duration::from_millis(300)));
            fill(&mut pair, 4000, 1400);
            let arrived = fill(&mut pair, 2000, 1400);
            assert!(
                (0.85..1.0).contains(&(arrived / carries as f64)),
                "{link}: {arrived} of {carries} Mbit/s"
            );
        }
    }
}

#[test]
fn a_configured_rate_that_the_path_does_not_carry_is_told() {
    let mut too_fast = pair("rate = \"8 Mbit/s\"", 4);
    too_fast.pass(seconds(1));
    fill(&mut too_fast, 20_000, 1400);
    let told = findings(&too_fast);
    assert!(matches!(told[..], [Finding::TooFast { measured, .. }] if is_near(measured, 4)), "{told:?}");
    let mut too_slow = pair("rate = \"2 Mbit/s\"", 4);
    too_slow.pass(seconds(1));
    let arrived = fill(&mut too_slow, 10_000, 1400);
    assert!((1.8..2.0).contains(&arrived), "{arrived} Mbit/s");
    let told = findings(&too_slow);
    assert!(matches!(told[..], [Finding::TooSlow { measured }] if is_near(measured, 4)), "{told:?}");
}

/// Nobody says that packets are too long: those that are do not arrive.
#[test]
fn a_path_that_carries_shorter_packets_is_found_out() {
    for link in ["", "rate = \"2 Mbit/s\""] {
        let mut pair = pair(link, 4);
        pair.pass(seconds(1));
        fill(&mut pair, 2000, 1400);
        pair.line(0).longest = 1200;
        fill(&mut pair, 12_000, 1400);
        let mtu = pair.end(0).survey().mtu.as_ref().expect("there are packets");
        assert!((1193..=1200).contains(&mtu.size()), "{link}: {}", mtu.size());
        assert_eq!(mtu.shrunk, 1);
        let size = mtu.size();
        assert!(
            pair.events(0).contains(&Event::PathMtu { line: None, size }),
            "{link}: {:?}",
            pair.events(0)
        );
        let arrived = fill(&mut pair, 2000, 1400);
        assert!(arrived > 1.7, "{link}: {arrived} Mbit/s");
    }
}

/// While nearly nothing arrives there is a trickle, which is enough to find out that something does again.
#[test]
fn a_path_that_starved_is_used_again() {
    let mut pair = pair("", 1);
    pair.pass(seconds(1));
    fill(&mut pair, 5000, 1400);
    pair.line(0).fates = [[1; 99].as_slice(), &[0]].concat();
    fill(&mut pair, 40_000, 1400);
    let before = pair.sent(0);
    fill(&mut pair, 5000, 1400);
    let trickle = (pair.sent(0) - before) * 8 / 5;
    assert!(trickle < 60_000, "{trickle} bit/s");
    pair.line(0).fates = Vec::new();
    fill(&mut pair, 15_000, 1400);
    let arrived = fill(&mut pair, 3000, 1400);
    assert!(arrived > 0.8, "{arrived} Mbit/s");
}
