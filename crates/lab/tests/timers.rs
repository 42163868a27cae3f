//! A link-layer protocol with timers, over the lab's links.

use std::collections::BTreeMap;

use crate::repeater::Repeater;
use crate::things::{Thing, packet};
use base::{Duration, Instant, Rate};
use channel::{Line, Streams};
use lab::engine::{Engine, Port};
use lab::node::{FrameCost, Link, LinkEnd};
use link::{ByDscp, DscpSet, IngressQueues, LineLimits, queue};
use longhaul_lab as lab;

const RATE: Rate = Rate::from_bps(1_000_000);
const DELAY: Duration = Duration::from_millis(20);
const HOLD: Duration = Duration::from_millis(7);

/// What an end of the link counted, by name.
type Report = BTreeMap<String, u64>;

/// A line that is blocked from 30 ms to 500 ms.
fn line() -> Line {
    let text = "rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
                errors = { periodic = { open = \"100 s\", blocked = \"470 ms\", first = \"30 ms\" } }";
    let config: channel::line::Config = base::config::parse("line.toml", text).unwrap();
    assert_eq!((config.rate, config.delay), (RATE, DELAY));
    config.build(&Streams {
        seed: 1,
        timeline: "sat".to_owned(),
        later: Duration::ZERO,
        line: "sat/down".to_owned(),
    })
}

fn end(once: &[u32]) -> LinkEnd {
    let limits = LineLimits::new(125, Some(RATE));
    let endpoint = Box::new(Repeater::new(limits, DELAY * 2, HOLD));
    let marks = DscpSet::try_from(once.to_vec()).unwrap();
    let capabilities = link::Endpoint::capabilities(&*endpoint);
    let site = queue::Site { rate: Some(RATE), seed: 1, name: "sat/down" };
    let queues = IngressQueues::new(
        &queue::Config::default(),
        &site,
        ByDscp { once: marks, ..ByDscp::default() },
        capabilities,
    );
    LinkEnd::new(queues, endpoint, line(), FrameCost::Framing(0))
}

/// Twenty packets, of which those with even numbers are marked 46: what the far end heard, and both reports.
fn run(once: &[u32]) -> (Vec<(Instant, u8)>, [Report; 2]) {
    let packets = (0..20).map(|n| (Instant::ZERO, packet(n, if n % 2 == 0 { 46 } else { 0 }, 100)));
    let (near_host, _) = Thing::host(packets.collect());
    let (far_host, heard) = Thing::host(Vec::new());
    let mut engine = Engine::new();
    let link = engine.add(Thing::Link(Box::new(Link::new([end(once), end(once)]))));
    let (near, far) = (engine.add(near_host), engine.add(far_host));
    engine.connect(link, near);
    engine.connect(link, far);
    engine.run(Instant::ZERO + Duration::from_secs(10), 0);
    let Thing::Link(link) = engine.node(link) else { panic!("not the link") };
    let reports = [0, 1].map(|port| link.end(Port(port)).report());
    (heard.take(), reports)
}

/// Goal: every packet arrives, in order, although the link has nothing to say in the blockage but what a timer asks for.
#[test]
fn a_timer_wakes_a_link_that_has_nothing_to_say() {
    let (heard, [near, far]) = run(&[]);
    let numbers: Vec<_> = heard.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    assert!(near["endpoint-time-outs"] >= 5, "{near:?}");
    assert!(near["bits-retransmission"] > 0 && near["steps-with-timer"] > 20);
    assert_eq!((near["packets-delivered"], far["packets-delivered"]), (20, 0));
}

/// Goal: what a timer releases goes up when it is released: the first packet at its arrival and the hold.
#[test]
fn a_timer_releases_packets() {
    let (heard, _) = run(&[]);
    let arrived = Instant::ZERO + RATE.time_for(102 * 8) + DELAY;
    assert_eq!(heard[0], (arrived + HOLD, 0));
}

/// Goal: a packet that asks for one transmission gets one: those that meet the blockage are given up at their time-outs.
#[test]
fn packets_are_treated_as_they_ask() {
    let (heard, [near, _]) = run(&[46]);
    let lost: Vec<_> = (0..20).filter(|n| heard.iter().all(|(_, number)| number != n)).collect();
    assert!(!lost.is_empty() && lost.iter().all(|number| number % 2 == 0), "{lost:?}");
    // The first packet arrived before the blockage, and its acknowledgement did not.
    assert_eq!(near["endpoint-packets-given-up"], 1 + lost.len() as u64);
}
