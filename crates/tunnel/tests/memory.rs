//! What a hub holds for its peers, as it is allocated, beside what it counts and what it may have.

#[path = "../../link/tests/allocations/mod.rs"]
mod allocations;
#[allow(dead_code, reason = "the star has more to it than these tests ask for")]
mod star;

use allocations::live;
use base::{Duration, Packet};
use star::{Star, packet};

/// Bytes that all tunnels of the hub may have.
const BUDGET: usize = 16 << 20;

/// What a tunnel takes that carries nothing (`idle_memory.rs`), and what a class of frames notes however few there are.
const EACH: usize = 200_000;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hub that may have [`BUDGET`], with terminals that are there.
fn star(peers: usize, link: &'static str, is_deaf: bool) -> Star {
    let mut star = Star::new(peers, link, None);
    if is_deaf {
        (1..=peers).for_each(|end| star.deafen(end));
    }
    star.end(0).set_memory(BUDGET);
    star.pass(millis(3000));
    assert!((1..=peers).all(|end| star.is_connected(end)));
    star
}

fn counted(star: &mut Star) -> usize {
    star.end(0).status()["memory_bytes"].as_u64().expect("a number") as usize
}

/// Bytes that the hub holds, which is gone then. What it gives back is not kept for later packets, since as many are kept already.
fn held(star: Star) -> usize {
    let hub = star.take_hub();
    let kept: Vec<_> = [1000; 5000].into_iter().chain([60_000; 200]).map(Packet::with_capacity).collect();
    drop(kept);
    let before = live();
    drop(hub);
    before - live()
}

/// Goal: all that a hub holds is in its budget, and what it says that it holds it does hold.
fn assert_within(star: Star, peers: usize, of: &str) {
    let mut star = star;
    let counted = counted(&mut star);
    let held = held(star);
    assert!(held < BUDGET + peers * EACH, "{of}: {held} bytes are held");
    let tolerance = counted / 5 + peers * EACH;
    assert!(held.abs_diff(counted) < tolerance, "{of}: {counted} of {held} bytes are counted");
}

/// Terminals that are there and acknowledge nothing.
#[test]
fn windows_of_deaf_peers_are_in_the_budget() {
    const PEERS: usize = 2;
    for (link, len, count, pause) in [
        ("rate = \"max\"", 60, 30_000, 10),
        ("rate = \"max\"", 1400, 30_000, 10),
        ("rate = \"max\"\nprotocol = \"cotmll\"", 1400, 30_000, 10),
        ("rate = \"max\"\nprotocol = \"slacp\"", 1400, 30_000, 10),
        ("rate = \"20 Mbit/s\"", 1400, 20_000, 60),
    ] {
        let mut star = star(PEERS, link, true);
        for n in 0..count {
            (1..=PEERS).for_each(|end| star.send(0, end, len));
            if n % 100 == 0 {
                star.pass(millis(pause));
            }
        }
        star.pass(millis(500));
        assert_within(star, PEERS, &format!("{link}, {len} bytes"));
    }
}

/// A burst of packets that take a buffer each and have next to no bytes, none of which has left.
#[test]
fn short_packets_are_counted_as_what_they_take() {
    let mut star = star(1, "rate = \"20 Mbit/s\"\nround-trip = \"600 ms\"", false);
    let now = star.now;
    for _ in 0..50_000 {
        star.end(0).handle_packet(now, packet(0, 1, 28));
    }
    let _ = star.end(0).poll_timeout(now);
    assert_within(star, 1, "short packets");
}

/// Copies that `coded` keeps while frames are lost are in the budget, and all arrives without them.
#[test]
fn honest_uploads_over_a_lossy_path_are_in_the_budget() {
    const PEERS: usize = 4;
    let mut star = star(PEERS, "rate = \"20 Mbit/s\"", false);
    star.loses = Some(101);
    for _ in 0..1000 {
        for end in 1..=PEERS {
            (0..30).for_each(|_| star.send(end, 0, 1400));
        }
        star.pass(millis(20));
    }
    star.pass(millis(2000));
    assert_eq!(star.delivered[0].len(), PEERS * 30_000);
    star.delivered.iter_mut().for_each(Vec::clear);
    assert_within(star, PEERS, "uploads");
}

/// Goal: with a budget that is next to nothing an honest peer's transfers go on both ways, slower.
#[test]
fn a_tiny_budget_stops_nobody() {
    for protocol in ["coded", "cotmll", "slacp"] {
        let link = format!("rate = \"20 Mbit/s\"\nprotocol = \"{protocol}\"");
        let mut star = star(2, Box::leak(link.into_boxed_str()), false);
        star.loses = Some(101);
        star.end(0).set_memory(1);
        for second in 0..10 {
            let from = star.now;
            for _ in 0..50 {
                for end in 1..=2 {
                    for _ in 0..25 {
                        star.send(end, 0, 1400);
                        star.send(0, end, 1400);
                    }
                }
                star.pass(millis(20));
            }
            // A tenth of what they send.
            for end in 0..=2 {
                let received = star.received(end, from);
                assert!(received > 175_000, "{protocol}, second {second}: {received} bytes at {end}");
            }
        }
    }
}
