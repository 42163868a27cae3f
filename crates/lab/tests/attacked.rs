//! Somebody on the path of a tunnel, who can copy, drop and hold back datagrams. He tells control datagrams by their length.

use std::path::Path;

use base::{Duration, Instant, Rng};
use lab::engine::Port;
use lab::network::Network;
use lab::node::{Element, Meddler};
use lab::scenario::{Override, Suite};
use lab::traffic::Application;
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// What is done with datagrams.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// This part of them is copied, and the copies arrive so much earlier.
    Copies(f64, Duration),
    /// All that is as short as control datagrams are is dropped, from end to end.
    DropsControl,
    /// All that is held back for so long.
    DelaysControl(Duration),
}

/// Attacks from the 10th to the 30th second.
#[derive(Debug)]
struct Attacker {
    attack: Attack,
    rng: Rng,
}

/// Bytes of IP packets that carry a frame full of data are longer than these.
const CONTROL: usize = 200;

impl Meddler for Attacker {
    fn meddle(&mut self, now: Instant, arrives_at: Instant, packet: &[u8]) -> Option<Vec<Instant>> {
        let second = now.as_nanos() / 1_000_000_000;
        if !(10..30).contains(&second) {
            return None;
        }
        let is_control = packet.len() <= CONTROL;
        match self.attack {
            Attack::Copies(part, by) => {
                self.rng.chance(part).then(|| vec![arrives_at.saturating_sub(by), arrives_at])
            }
            Attack::DropsControl => is_control.then(Vec::new),
            Attack::DelaysControl(by) => is_control.then(|| vec![arrives_at + by]),
        }
    }
}

/// Mbit/s of goodput in each second of a minute over 20 Mbit/s and 200 ms, with somebody on the path in the direction of the download.
fn attacked(attack: Attack, seed: u64) -> Vec<f64> {
    let changes = ["duration=60 s", "link.wan.channel.delay=100 ms"];
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("base.toml", BASE, Path::new(""), &changes).unwrap();
    let mut network = Network::build(&suite.schemes[0].1, seed);
    let wan = network.links["wan"];
    let Element::Wire(wire) = network.engine.node_mut(wan) else { panic!("a wire") };
    wire.meddle(Port(0), Attacker { attack, rng: Rng::named(seed, "attacker") });
    let download = network.transfers[0].clone();
    let mut before = 0;
    let goodput = |second| {
        network.engine.run(Instant::ZERO + Duration::from_secs(second), 0);
        let Element::Host(host) = network.engine.node(download.to) else { panic!("a host") };
        let Application::BulkReceiver(receiver) = &host.applications()[download.receiver] else {
            panic!("a receiver")
        };
        let received = receiver.received();
        let bytes = received - core::mem::replace(&mut before, received);
        bytes as f64 * 8e-6
    };
    (1..=60).map(goodput).collect()
}

/// The mean between two seconds.
fn mean(goodput: &[f64], from: usize, to: usize) -> f64 {
    goodput[from..to].iter().sum::<f64>() / (to - from) as f64
}

/// The least of any two seconds in a row.
fn least(goodput: &[f64], from: usize, to: usize) -> f64 {
    goodput[from..to].windows(2).map(|two| (two[0] + two[1]) / 2.0).fold(f64::INFINITY, f64::min)
}

/// Goodput at this rate, of which headers take 6.7 %.
const ALL: f64 = 18.6;

/// A plain minimum of delays would hold what no other confirms for a minute or two.
#[test]
fn early_copies_of_some_datagrams_change_nothing() {
    for part in [0.02, 0.2] {
        let goodput = attacked(Attack::Copies(part, Duration::from_millis(93)), 1);
        assert!(mean(&goodput, 10, 30) > 0.95 * ALL, "{part}: {}", mean(&goodput, 10, 30));
        assert!(least(&goodput, 32, 60) > 0.9 * ALL, "{part}: {}", least(&goodput, 32, 60));
    }
}

/// While all come early, the path is shorter. When they no longer do, it has become longer, which takes a while to tell from a queue.
#[test]
fn early_copies_of_all_datagrams_cost_little_for_ten_seconds() {
    for seed in [1, 2] {
        let goodput = attacked(Attack::Copies(1.0, Duration::from_millis(93)), seed);
        assert!(least(&goodput, 12, 30) > 0.95 * ALL, "{}", least(&goodput, 12, 30));
        assert!(mean(&goodput, 30, 40) > 0.6 * ALL, "{}", mean(&goodput, 30, 40));
        assert!(least(&goodput, 40, 60) > 0.9 * ALL, "{}", least(&goodput, 40, 60));
    }
}

#[test]
fn control_datagrams_that_are_held_back_tell_nothing() {
    for late in [100, 1000, 5000] {
        let goodput = attacked(Attack::DelaysControl(Duration::from_millis(late)), 1);
        assert!(mean(&goodput, 10, 60) > 0.85 * ALL, "{late} ms: {}", mean(&goodput, 10, 60));
        assert!(mean(&goodput, 33, 60) > 0.97 * ALL, "{late} ms: {}", mean(&goodput, 33, 60));
    }
}

/// What frames acknowledge keeps the circuit breaker closed.
#[test]
fn control_datagrams_that_are_dropped_cost_nothing_while_frames_pass() {
    for seed in [1, 2] {
        let goodput = attacked(Attack::DropsControl, seed);
        assert!(least(&goodput, 10, 60) > 0.85 * ALL, "{goodput:.1?}");
        assert!(mean(&goodput, 32, 60) > 0.97 * ALL, "{}", mean(&goodput, 32, 60));
    }
}
