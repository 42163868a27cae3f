use std::collections::BTreeMap;

use base::wire::ip::{Ecn, Protocol, Repr};
use base::{Duration, Rate};
use proptest::prelude::*;

use super::*;
use crate::marks::Marks;

/// At 8 Mbit/s a byte takes a microsecond.
const RATE: Rate = Rate::from_bps(8_000_000);

fn queue(text: &str) -> FqCodel {
    queue_with(text, 1)
}

fn queue_with(text: &str, seed: u64) -> FqCodel {
    let config = base::config::parse("queue.toml", text).unwrap();
    FqCodel::new(config, &Site { rate: Some(RATE), seed, name: "l" }, "queue")
}

/// A datagram of a flow, `len` bytes long; its number is at the end.
fn packet(flow: u16, len: usize, ecn: Ecn, number: u32) -> Packet {
    let mut packet = vec![0; len];
    Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP, ecn, len - 20).emit(&mut packet);
    packet[20..22].copy_from_slice(&flow.to_be_bytes());
    packet[len - 4..].copy_from_slice(&number.to_be_bytes());
    Packet::from_slice(&packet)
}

fn flow_of(packet: &Packet) -> u16 {
    u16::from_be_bytes([packet[20], packet[21]])
}

fn number_of(packet: &Packet) -> u32 {
    u32::from_be_bytes(*packet.last_chunk().unwrap())
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn push(queue: &mut FqCodel, now: Instant, flow: u16, len: usize) {
    queue.push(now, packet(flow, len, Ecn::NotEct, 0), &mut |_, reason| panic!("dropped: {reason:?}"));
}

/// The flow of the packet that leaves, and the reasons of those that are dropped for it.
fn pop(queue: &mut FqCodel, now: Instant) -> (Option<u16>, Vec<Refusal>) {
    let mut reasons = Vec::new();
    let packet = queue.pop(now, &mut |_, reason| reasons.push(reason));
    (packet.as_ref().map(flow_of), reasons)
}

fn flows(queue: &mut FqCodel, count: usize) -> Vec<u16> {
    (0..count).map(|_| pop(queue, Instant::ZERO).0.unwrap()).collect()
}

#[test]
fn what_is_written_is_what_is_read_and_wrong_values_are_named() {
    for text in ["", "target = \"20 ms\"\ninterval = \"600 ms\"\necn = false\npause-when-blocked = false"] {
        let config: Config = base::config::parse("queue.toml", text).unwrap();
        let written = toml::to_string(&config).unwrap();
        assert_eq!(base::config::parse::<Config>("again.toml", &written).unwrap(), config, "{written}");
    }
    for (text, complaint) in [
        ("memory = \"1 kB\"", "memory = \"1 kB\"; allowed are 66 KiB or more"),
        ("target = \"0 s\"", "target = \"0 s\"; allowed are times above 0 s"),
        (
            "interval = \"4 ms\"\ntarget = \"5 ms\"",
            "interval = \"4 ms\"; allowed are times from target, which is 5 ms, to 1 min",
        ),
        ("interval = \"2 min\"", "interval = \"120 s\"; allowed are times from target, which is 6 s, to"),
        ("quantum = \"0 B\"", "quantum = \"0 B\"; allowed are 1 B to 66 KiB"),
        ("packets = 0", "packets"),
        ("flows = 3", "flows"),
    ] {
        let error = base::config::parse::<Config>("queue.toml", text).unwrap_err().to_string();
        assert!(error.contains(complaint), "{text}: {error}");
    }
    assert!(super::super::Config::FqCodel(Config::default()).needs_rate());
}

/// A target that is told alone must be below the interval that there is.
#[test]
fn times_follow_the_round_trip_unless_told() {
    let times = |text: &str, round_trip: Option<u64>| {
        let config: Config = base::config::parse("queue.toml", text).unwrap();
        let config = round_trip.map_or(config, |millis| config.for_round_trip(Duration::from_millis(millis)));
        (config.target().as_millis(), config.interval().as_millis())
    };
    assert_eq!(times("", None), (5, 100));
    assert_eq!(times("interval = \"400 ms\"", None), (20, 400));
    assert_eq!(times("target = \"50 ms\"", None), (50, 100));
    assert_eq!(times("", Some(600)), (90, 1800));
    assert_eq!(times("", Some(10)), (5, 100));
    assert_eq!(times("", Some(600_000)), (3000, 60_000));
    assert_eq!(times("interval = \"100 ms\"", Some(600)), (5, 100));
    assert_eq!(times("target = \"5 ms\"", Some(600)), (5, 1800));
    assert!(base::config::parse::<Config>("queue.toml", "target = \"101 ms\"").is_err());
}

/// RFC 8290, 4.2: by bytes, not packets.
#[test]
fn flows_take_turns_by_bytes() {
    let mut queue = queue("quantum = \"1000 B\"");
    (0..4).for_each(|_| push(&mut queue, Instant::ZERO, 1, 1000));
    (0..12).for_each(|_| push(&mut queue, Instant::ZERO, 2, 250));
    assert_eq!(flows(&mut queue, 10), [1, 2, 2, 2, 2, 1, 2, 2, 2, 2]);
    // Who has sent more than its turn allows pays for it later.
    let mut queue = queue_with("quantum = \"1000 B\"", 1);
    (0..3).for_each(|_| push(&mut queue, Instant::ZERO, 1, 1900));
    (0..6).for_each(|_| push(&mut queue, Instant::ZERO, 2, 1000));
    assert_eq!(flows(&mut queue, 8), [1, 2, 1, 2, 2, 1, 2, 2]);
}

#[test]
fn who_sends_little_goes_first() {
    let mut queue = queue("quantum = \"3000 B\"");
    (0..50).for_each(|_| push(&mut queue, Instant::ZERO, 1, 1500));
    assert_eq!(flows(&mut queue, 3), [1, 1, 1]);
    push(&mut queue, Instant::ZERO, 2, 100);
    assert_eq!(flows(&mut queue, 2), [2, 1]);
    // It has had its turn and is an old one now, although it has nothing: it does not go first again.
    push(&mut queue, Instant::ZERO, 2, 100);
    assert_eq!(queue.new.len(), 0);
    assert_eq!(flows(&mut queue, 2), [2, 1], "its turn comes with the others'");
    // Once it was found empty among the old ones, it is new again.
    let place = queue.place_of(&packet(2, 100, Ecn::NotEct, 0));
    assert!(queue.flows[usize::from(place)].as_ref().is_some_and(|flow| !flow.is_active));
    push(&mut queue, Instant::ZERO, 2, 100);
    assert_eq!((queue.new.len(), flows(&mut queue, 1)), (1, vec![2]));
}

/// Goal: a new flow that always comes back just when it was served does not keep the old ones from their turns (RFC 8290, 4.2).
#[test]
fn nobody_starves() {
    let mut queue = queue("quantum = \"300 B\"");
    (0..100).for_each(|_| push(&mut queue, Instant::ZERO, 1, 300));
    let mut served = 0;
    for _ in 0..100 {
        push(&mut queue, Instant::ZERO, 2, 300);
        push(&mut queue, Instant::ZERO, 3, 300);
        served += flows(&mut queue, 3).iter().filter(|flow| **flow == 1).count();
    }
    assert!(served >= 95, "{served}");
}

/// A second of packets of two flows, one of which fills the line and the other of which sends one every 20 ms.
fn worst_wait(queue: &mut dyn Queue) -> Duration {
    let (mut worst, mut sent_at) = (Duration::ZERO, BTreeMap::new());
    let mut dropped = 0;
    for step in 0..5000_u32 {
        // A packet of 1000 bytes leaves each millisecond, and twice as many come.
        let now = millis(step.into());
        let mut drop = |_, _| dropped += 1;
        if step % 20 == 0 {
            sent_at.insert(step, now);
            queue.push(now, packet(2, 100, Ecn::NotEct, step), &mut drop);
        }
        (0..2).for_each(|_| queue.push(now, packet(1, 1000, Ecn::NotEct, 0), &mut drop));
        let left = queue.pop(now, &mut drop).unwrap();
        if flow_of(&left) == 2 {
            worst = worst.max(now.saturating_since(sent_at.remove(&number_of(&left)).unwrap()));
        }
    }
    assert!(dropped > 0);
    worst
}

/// Goal: a sparse flow never waits for more than a packet; where there is one queue for all, it waits for all of it.
#[test]
fn a_sparse_flow_is_isolated() {
    let site = Site { rate: Some(RATE), seed: 1, name: "l" };
    let drop_tail = super::super::Config::default().build(&site, "queue");
    let mut fq_codel = queue("");
    assert!(worst_wait(&mut fq_codel) <= Duration::from_millis(2));
    assert!(worst_wait(&mut *{ drop_tail }) >= Duration::from_millis(99));
    let counted = |name| fq_codel.counters().iter().find(|(of, _)| *of == name).unwrap().1;
    assert!(counted("dropped-for-delay") > 50, "{:?}", fq_codel.counters());
}

/// Goal: what exceeds the limit goes from the head of who has most, half of it and no more than 64 packets.
#[test]
fn the_fattest_flow_pays_for_an_overflow() {
    for (fat, expected) in [(90_u32, 45), (390, 64)] {
        let mut queue = queue(&format!("packets = {}", fat + 400));
        for number in 0..fat {
            queue.push(Instant::ZERO, packet(1, 1000, Ecn::Ect0, number), &mut |_, _| panic!("too early"));
        }
        (0..400).for_each(|_| push(&mut queue, Instant::ZERO, 2, 60));
        let mut dropped = Vec::new();
        queue.push(Instant::ZERO, packet(3, 500, Ecn::NotEct, 7), &mut |packet, reason| {
            assert_eq!((flow_of(&packet), reason), (1, Refusal::Packets));
            dropped.push(number_of(&packet));
        });
        assert_eq!(dropped, (0..expected).collect::<Vec<_>>());
        assert_eq!(queue.counters()[3], ("dropped-for-packets", u64::from(expected)));
        assert_eq!(queue.len() as u32, fat + 401 - expected);
    }
    // Small packets take 1664 bytes each, long ones 66 KiB.
    let mut queue = queue("memory = \"200 kB\"");
    (0..90).for_each(|_| push(&mut queue, Instant::ZERO, 1, 1000));
    let mut dropped = Vec::new();
    queue.push(Instant::ZERO, packet(2, 2000, Ecn::NotEct, 0), &mut |packet, reason| {
        dropped.push((packet.len(), reason));
    });
    assert_eq!(dropped, [(1000, Refusal::Bytes); 45]);
    assert_eq!((queue.bytes(), queue.memory), (47_000, 45 * 1664 + 66 * 1024));
}

/// Fills the queue with packets of one flow at zero and empties it over `empties`; the reasons of drops.
fn drained(
    queue: &mut FqCodel,
    packets: u32,
    ecn: Ecn,
    leaves_at: impl Fn(u64) -> Instant,
) -> (Vec<Packet>, Vec<Refusal>) {
    (0..packets)
        .for_each(|number| queue.push(Instant::ZERO, packet(1, 1000, ecn, number), &mut |_, _| panic!()));
    let (mut left, mut reasons) = (Vec::new(), Vec::new());
    for step in 0.. {
        match queue.pop(leaves_at(step), &mut |_, reason| reasons.push(reason)) {
            Some(packet) => left.push(packet),
            None => break,
        }
    }
    (left, reasons)
}

#[test]
fn what_waits_too_long_is_dropped_or_marked() {
    // 400 ms of waiting: drops 100 ms after the first that waited for 5, and then 100, 71, 58 and 50 ms later.
    let (left, reasons) = drained(&mut queue(""), 400, Ecn::NotEct, millis);
    assert_eq!((left.len(), reasons.as_slice()), (395, [Refusal::Delay; 5].as_slice()));
    let (left, reasons) = drained(&mut queue(""), 400, Ecn::Ect0, millis);
    let marked: Vec<u32> = left.iter().filter(|p| Marks::of(p).ecn() == Ecn::Ce).map(number_of).collect();
    assert_eq!(
        (left.len(), reasons.len(), marked.as_slice()),
        (400, 0, [105, 205, 276, 334, 384].as_slice())
    );
    let (_, reasons) = drained(&mut queue("ecn = false"), 400, Ecn::Ect0, millis);
    assert_eq!(reasons.len(), 5);
    // With a longer interval and target nothing at all.
    let patient = "target = \"30 ms\"\ninterval = \"600 ms\"";
    assert_eq!(drained(&mut queue(patient), 400, Ecn::NotEct, millis).1, []);
}

/// Goal: a link that is blocked for a second in the middle changes nothing, if the queue is told, and drops dozens of packets at once
/// otherwise.
#[test]
fn a_blockage_is_no_wait() {
    // It opens again a second later than the 201st packet would have left.
    let leaves_at = |step: u64| millis(if step <= 200 { step } else { step + 1000 });
    let drops = |text: &str, told: bool| {
        let mut queue = queue(text);
        (0..400).for_each(|_| push(&mut queue, Instant::ZERO, 1, 1000));
        let mut dropped = Vec::new();
        for step in 0..400 {
            if step == 201 && told {
                // It shows after a while.
                queue.set_blocked(millis(700), Some(millis(200)));
                queue.set_blocked(millis(1200), None);
            }
            let (left, reasons) = pop(&mut queue, leaves_at(step));
            dropped.push(reasons.len());
            if left.is_none() {
                break;
            }
        }
        dropped
    };
    let (open, most) = (drained(&mut queue(""), 400, Ecn::NotEct, millis).1.len(), |drops: &[usize]| {
        *drops.iter().max().unwrap()
    });
    let told = drops("", true);
    assert_eq!((told.iter().sum::<usize>(), most(&told)), (open, 1));
    assert!(most(&drops("", false)) > 20);
    assert!(most(&drops("pause-when-blocked = false", true)) > 20);
}

#[test]
fn other_limits_hold_from_then_on_and_what_waits_moves_in_order() {
    let site = Site { rate: Some(RATE), seed: 1, name: "l" };
    let mut queue = queue("");
    for number in 0..6 {
        queue.push(
            millis(number.into()),
            packet(number as u16 % 2, 1000, Ecn::NotEct, number),
            &mut |_, _| panic!(),
        );
    }
    assert!(!queue.set_limits(&super::super::Config::default(), &site));
    let tighter = base::config::parse("q.toml", "packets = 6").unwrap();
    assert!(queue.set_limits(&super::super::Config::FqCodel(tighter), &site));
    let mut dropped = 0;
    queue.push(millis(9), packet(5, 1000, Ecn::NotEct, 6), &mut |_, _| dropped += 1);
    assert_eq!(dropped, 2);
    let moved: Vec<u32> = queue.drain().iter().map(number_of).collect();
    assert_eq!((moved.len(), moved.is_sorted(), queue.len(), queue.bytes()), (5, true, 0, 0));
    push(&mut queue, millis(10), 1, 1000);
    assert_eq!(pop(&mut queue, millis(10)).0, Some(1));
}

/// Two senders that collide with one seed do not with another.
#[test]
fn the_key_moves_flows() {
    let places = |seed| {
        let queue = queue_with("", seed);
        (0..100).map(|flow| queue.place_of(&packet(flow, 100, Ecn::NotEct, 0))).collect::<Vec<_>>()
    };
    assert_eq!(places(1), places(1));
    let moved = places(1).iter().zip(places(2)).filter(|(one, other)| **one != *other).count();
    assert!(moved > 95, "{moved}");
}

/// A UDP packet to `2::2` from `2001:db8::` and these last words of an address.
fn ipv6(words: [u32; 2]) -> Packet {
    let mut packet = vec![0; 60];
    (packet[0], packet[6]) = (0x60, 17);
    packet[8..12].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    packet[16..20].copy_from_slice(&words[0].to_be_bytes());
    packet[20..24].copy_from_slice(&words[1].to_be_bytes());
    packet[39] = 2;
    Packet::from_slice(&packet)
}

/// Goal: whoever knows how flows are told apart, and may choose addresses, finds none that are in another's way in any queue but by luck.
/// These two have the same number, which nobody's key is in.
#[test]
fn flows_with_the_same_number_collide_under_few_keys() {
    let before = [0x2001_0db8, 0].into_iter().fold(flow::mixed(0), |hash, word| flow::mixed(hash ^ word));
    let mut by_half = BTreeMap::new();
    let (one, other) = (0_u32..)
        .find_map(|word| {
            let hash = flow::mixed(before ^ u64::from(word));
            let (other, low) = by_half.insert(hash >> 32, (word, hash as u32))?;
            // The last word makes the rest alike too.
            Some((ipv6([word, 0]), ipv6([other, low ^ hash as u32])))
        })
        .unwrap();
    assert!(*one != *other && flow::hash(&one) == flow::hash(&other));
    let collide = |seed: &u64| {
        let queue = queue_with("", *seed);
        queue.place_of(&one) == queue.place_of(&other)
    };
    assert!((0..200).filter(collide).count() < 5);
}

#[test]
fn room_for_a_burst_is_given_back() {
    let mut queue = queue("");
    drained(&mut queue, 5000, Ecn::Ect0, |_| Instant::ZERO);
    let kept: usize = queue.flows.iter().flatten().map(|flow| flow.waiting.capacity()).sum();
    assert!(kept <= KEPT, "{kept}");
}

proptest! {
    /// Whatever comes and goes, everything is somewhere, once; each flow's packets keep their order; limits hold.
    #[test]
    fn nothing_is_lost_in_silence(
        steps in proptest::collection::vec((0_u8..5, 0_u16..6, 30_usize..3000, 0_u64..40), 1..800),
        quantum in 1_u64..4000,
    ) {
        let mut queue = queue(&format!("packets = 40\nmemory = \"100 kB\"\nquantum = \"{quantum} B\""));
        let (mut now, mut next, mut bytes) = (Instant::ZERO, 0_u32, 0_u64);
        let mut gone = Vec::new();
        let mut last_of_flow = BTreeMap::new();
        let mut drops = 0;
        for (action, flow, len, millis) in steps {
            now += Duration::from_millis(millis);
            let mut dropped = Vec::new();
            match action {
                0 | 1 => {
                    if let Some(packet) = queue.pop(now, &mut |packet, _| dropped.push(packet)) {
                        let last = last_of_flow.insert(flow_of(&packet), number_of(&packet));
                        prop_assert!(last.is_none_or(|last| last < number_of(&packet)));
                        bytes -= packet.len() as u64;
                        gone.push(number_of(&packet));
                    }
                }
                2 => queue.set_blocked(now, (len % 2 == 0).then_some(now)),
                _ => {
                    let ecn = if action == 3 { Ecn::Ect0 } else { Ecn::NotEct };
                    bytes += len as u64;
                    queue.push(now, packet(flow, len, ecn, next), &mut |packet, _| dropped.push(packet));
                    next += 1;
                }
            }
            drops += dropped.len() as u64;
            bytes -= dropped.iter().map(|packet| packet.len() as u64).sum::<u64>();
            gone.extend(dropped.iter().map(number_of));
            prop_assert_eq!(queue.bytes(), bytes);
            prop_assert_eq!(next as usize, gone.len() + queue.len());
            prop_assert!(queue.len() <= 40 && queue.memory <= 100_000 && queue.bytes() <= queue.memory);
            prop_assert!(queue.new.len() + queue.old.len() <= FLOWS);
        }
        let counted: u64 = queue.counters().iter().filter(|(name, _)| name.starts_with("dropped")).map(|(_, n)| n).sum();
        prop_assert_eq!(counted, drops);
        gone.extend(queue.drain().iter().map(number_of));
        gone.sort_unstable();
        prop_assert_eq!(gone, (0..next).collect::<Vec<_>>());
    }
}
