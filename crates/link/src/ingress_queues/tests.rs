//! What waits where in front of a link, for how long, and in which order it leaves.

use super::*;
use crate::dscp::DscpSet;
use crate::endpoint::{Demand, Discard, FrameInfo, Full};
use crate::line::LineLimits;
use crate::protocol::Protocol;
use crate::queue::Refusal;

const NOW: Instant = Instant::ZERO;

fn dscps(marks: &[u32]) -> DscpSet {
    marks.to_vec().try_into().unwrap()
}

/// Packets with these marks are sent once.
fn marks(marks: &[u32]) -> ByDscp {
    ByDscp { once: dscps(marks), ..ByDscp::default() }
}

fn ipv4(dscp: u8) -> Packet {
    Packet::from_slice(&[&[0x45, dscp << 2 | 1], [0; 18].as_slice()].concat())
}

fn cotmll() -> Protocol {
    Protocol::CotmllThesis(crate::cotmll::Config::default())
}

fn queues(queue: &queue::Config, marks: ByDscp, protocol: &Protocol) -> IngressQueues {
    let site = queue::Site { rate: None, seed: 1, name: "l" };
    IngressQueues::new(queue, &site, marks, protocol.capabilities())
}

fn push(queues: &mut IngressQueues, packet: Packet) -> Result<(), Refusal> {
    let mut result = Ok(());
    queues.push(NOW, packet, &Stub::Free, &mut |_, reason| result = Err(reason));
    result
}

fn no_drops(_: Packet, reason: Refusal) {
    panic!("dropped: {reason:?}");
}

fn build(protocol: &Protocol) -> Box<dyn Endpoint> {
    protocol.build(&LineLimits::default())
}

#[test]
fn what_is_sent_once_does_not_wait_behind_the_rest() {
    let (mut queues, mut endpoint) =
        (queues(&queue::Config::default(), marks(&[46]), &cotmll()), build(&cotmll()));
    for dscp in [0, 0, 46, 46] {
        push(&mut queues, ipv4(dscp)).unwrap();
    }
    let mut taken = Vec::new();
    while let Some((packet, treatment)) = queues.pop_for(NOW, &*endpoint, &mut no_drops) {
        taken.push((packet[1] >> 2, treatment));
        let Ok(()) = endpoint.offer(NOW, packet, treatment) else { panic!("no room for {treatment:?}") };
    }
    // One of each, for which the endpoint has room.
    assert_eq!(taken, [(46, Treatment::Once), (0, Treatment::Reliable)]);
    assert!((queues.len(), queues.is_empty()) == (2, false) && queues.once_counters().is_some());
    let refused = endpoint.offer(NOW, ipv4(46), Treatment::Once);
    assert!(matches!(refused, Err(Full(_))));
}

#[test]
fn what_is_interactive_has_a_queue_where_there_are_classes() {
    let by_dscp = ByDscp { once: dscps(&[46]), interactive: dscps(&[18]) };
    let coded = Protocol::Coded(crate::coded::Config::default());
    let order = |protocol: &Protocol| {
        let (mut queues, endpoint) = (queues(&queue::Config::default(), by_dscp, protocol), build(protocol));
        for dscp in [0, 18, 46] {
            push(&mut queues, ipv4(dscp)).unwrap();
        }
        let waits = Treatment::ALL.map(|treatment| queues.bytes_for(treatment));
        let order = [0; 3].map(|_| queues.pop_for(NOW, &*endpoint, &mut no_drops).unwrap());
        (waits, order.map(|(packet, treatment)| (packet[1] >> 2, treatment)))
    };
    let (waits, taken) = order(&coded);
    assert_eq!(waits, [20; 3]);
    assert_eq!(taken, [(46, Treatment::Once), (18, Treatment::Interactive), (0, Treatment::Reliable)]);
    let (waits, taken) = order(&cotmll());
    assert_eq!(waits, [20, 0, 40]);
    assert_eq!(taken.map(|(dscp, _)| dscp), [46, 0, 18]);
    // Whoever sends a packet again until it has come does not ask the link to send it once.
    let mut queues = queues(&queue::Config::default(), by_dscp, &coded);
    let treatments = [0, 18, 46].map(|dscp| queues.stream_treatment(NOW, &ipv4(dscp), &Stub::Free));
    assert_eq!(treatments, [Treatment::Reliable, Treatment::Interactive, Treatment::Interactive]);
}

/// Packets keep their order where each is sent once anyway.
#[test]
fn without_marks_or_repetitions_there_is_one_queue() {
    for (marks, protocol) in [(marks(&[46]), Protocol::default()), (ByDscp::default(), cotmll())] {
        let (mut queues, endpoint) = (queues(&queue::Config::default(), marks, &protocol), build(&protocol));
        push(&mut queues, ipv4(0)).unwrap();
        push(&mut queues, ipv4(46)).unwrap();
        let order = [0, 1].map(|_| queues.pop_for(NOW, &*endpoint, &mut no_drops).unwrap());
        assert_eq!(
            order.map(|(packet, treatment)| (packet[1] >> 2, treatment)),
            [(0, Treatment::Reliable), (46, Treatment::Reliable)]
        );
        assert!(queues.is_empty() && queues.once_counters().is_none());
    }
}

#[test]
fn each_queue_has_its_own_limit() {
    let one = queue::Config::DropTail(queue::drop_tail::Config::packets(core::num::NonZeroU32::MIN));
    let mut queues = queues(&one, marks(&[46]), &cotmll());
    for dscp in [46, 0] {
        push(&mut queues, ipv4(dscp)).unwrap();
        assert_eq!(push(&mut queues, ipv4(dscp)), Err(Refusal::Packets));
    }
    assert_eq!(queues.len(), 2);
    assert!(push(&mut queues, ipv4(0)).is_err());
    let dropped = |counters: Vec<(&str, u64)>| counters.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!([Some(queues.counters()), queues.once_counters()].map(|of| dropped(of.unwrap())), [2, 1]);
}

/// An endpoint that takes any packet, or has no room, perhaps because of an obstacle.
#[derive(Debug)]
enum Stub {
    Free,
    Full(Option<Obstacle>),
}

impl Endpoint for Stub {
    fn capabilities(&self) -> Capabilities {
        cotmll().capabilities()
    }
    fn offer(&mut self, _: Instant, _: Packet, _: Treatment) -> Result<(), Full> {
        Ok(())
    }
    fn has_room(&self, _: Treatment) -> bool {
        matches!(self, Self::Free)
    }
    fn obstacle(&self) -> Option<Obstacle> {
        if let Self::Full(obstacle) = self { *obstacle } else { None }
    }
    fn handle_frame(&mut self, _: Instant, _: &[u8]) -> Result<(), Discard> {
        Ok(())
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_frame(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<FrameInfo> {
        None
    }
    fn poll_packet(&mut self) -> Option<Packet> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn demand(&self, _: Instant) -> Demand {
        Demand::Nothing
    }
    fn reset(&mut self) {}
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

fn fq_codel(text: &str) -> queue::Config {
    queue::Config::FqCodel(base::config::parse("queue.toml", text).unwrap())
}

/// What a queue of which a packet leaves each millisecond drops at each, `endpoint` saying in what state that is.
fn drops(text: &str, millis: u64, mut endpoint: impl FnMut(u64, &mut IngressQueues) -> Stub) -> Vec<u32> {
    let mut queues = queues(&fq_codel(text), ByDscp::default(), &cotmll());
    (0..500).for_each(|_| push(&mut queues, ipv4(0).padded(1000)).unwrap());
    let step = |milli| {
        let stub = endpoint(milli, &mut queues);
        let (now, mut dropped) = (NOW + Duration::from_millis(milli), 0);
        if queues.pop_for(now, &stub, &mut |_, _| dropped += 1).is_some() {
            queues.push(now, ipv4(0).padded(1000), &stub, &mut |_, reason| panic!("{reason:?}"));
        }
        dropped
    };
    (0..millis).map(step).collect()
}

fn full_if(is_full: bool, obstacle: Option<Obstacle>) -> Stub {
    if is_full { Stub::Full(obstacle) } else { Stub::Free }
}

trait Padded {
    fn padded(self, len: usize) -> Packet;
}

impl Padded for Packet {
    fn padded(mut self, len: usize) -> Packet {
        self.resize(len);
        self
    }
}

fn most(drops: &[u32]) -> u32 {
    *drops.iter().max().unwrap()
}

/// Goal: what waits because the link repeats, or takes nothing for a second, or has nobody at its other end, is not dropped for that; where
/// the queue does not pause, dozens are.
#[test]
fn a_blocked_link_stops_the_queues_clock() {
    let during = |milli: u64, length: u64| (300..300 + length).contains(&milli);
    for (name, obstacle) in [("repair", Obstacle::Repair), ("window", Obstacle::Window)] {
        let blocked = |milli, _: &mut IngressQueues| full_if(during(milli, 1500), Some(obstacle));
        assert_eq!(most(&drops("", 2500, blocked)), 1, "{name}");
        assert!(most(&drops("pause-when-blocked = false", 2500, blocked)) > 30, "{name}");
    }
    let silent = |milli, queues: &mut IngressQueues| {
        queues.set_silent(NOW + Duration::from_millis(milli), during(milli, 1500));
        // Nobody asks it for frames, so it has no room, and nothing is in the way.
        full_if(during(milli, 1500), None)
    };
    let (alone, together) = (drops("", 2500, silent), drops("", 1000, |_, _| Stub::Free));
    assert_eq!(most(&alone), 1);
    // It goes on where it stopped.
    assert_eq!(alone.iter().sum::<u32>(), together.iter().sum::<u32>());
    // A pause of less than a second may be a window that is too small.
    let short = |milli, _: &mut IngressQueues| full_if(during(milli, 999), Some(Obstacle::Window));
    assert!(most(&drops("", 2500, short)) > 10);
}

/// Goal: where a window that is too small for its link lets packets through in bursts, once a round trip, the queue is managed all the same.
#[test]
fn a_small_window_does_not_stop_the_clock() {
    let bursts = |milli: u64, _: &mut IngressQueues| full_if(milli % 700 >= 100, Some(Obstacle::Window));
    let dropped = |text| drops(text, 10_000, bursts).iter().sum::<u32>();
    let (paused, running) = (dropped(""), dropped("pause-when-blocked = false"));
    assert!(running > 100 && paused == running, "{paused} against {running}");
}

#[test]
fn another_kind_of_queue_takes_over_what_waits() {
    let site = queue::Site { rate: None, seed: 1, name: "l" };
    let mut queues = queues(&queue::Config::default(), marks(&[46]), &cotmll());
    for dscp in [0, 46, 0, 0] {
        push(&mut queues, ipv4(dscp)).unwrap();
    }
    queues.reconfigure(NOW, &fq_codel(""), &site, marks(&[46]));
    assert_eq!((queues.len(), queues.bytes()), (4, 80));
    let delayed = |counters: Vec<(&str, u64)>| counters.iter().any(|(name, _)| *name == "dropped-for-delay");
    assert!(delayed(queues.counters()) && delayed(queues.once_counters().unwrap()));
    let red = queue::Config::Red(base::config::parse("queue.toml", "packets = 2").unwrap());
    queues.reconfigure(NOW, &red, &site, marks(&[46]));
    assert_eq!(queues.len(), 3);
    assert_eq!(queues.counters().last(), Some(&("dropped-for-packets", 1)));
    assert_eq!(queues.average(), Some(0.002 * 1.0 + 0.002 * (2.0 - 0.002)));
}

/// A datagram of this flow and mark, or a packet of TCP.
fn packet(protocol: u8, flow: u8, dscp: u8, len: usize) -> Packet {
    let mut packet = ipv4(dscp).padded(len);
    (packet[1], packet[9], packet[15]) = (dscp << 2, protocol, flow);
    packet
}

const UDP: u8 = 17;
const TCP: u8 = 6;

fn at(millis: u64) -> Instant {
    NOW + Duration::from_millis(millis)
}

fn coded() -> Protocol {
    Protocol::Coded(crate::coded::Config::default())
}

/// Goal: what is too old is dropped and counted, whatever the queue; what is marked, or is no datagram, waits for ever.
#[test]
fn datagrams_that_are_too_old_are_dropped() {
    let red = queue::Config::Red(base::config::parse("queue.toml", "").unwrap());
    for queue in [queue::Config::default(), fq_codel(""), red] {
        let by_dscp = ByDscp { once: dscps(&[46]), interactive: dscps(&[18]) };
        let mut queues = queues(&queue, by_dscp, &coded());
        queues.set_datagram_age(Some(Duration::from_millis(100)));
        for (protocol, dscp) in [(UDP, 0), (TCP, 0), (UDP, 10), (UDP, 18), (UDP, 46), (1, 0)] {
            queues.push(at(0), packet(protocol, protocol + dscp, dscp, 100), &Stub::Free, &mut no_drops);
        }
        let mut reasons = Vec::new();
        let mut left = Vec::new();
        while let Some((packet, _)) = queues.pop_for(at(100), &Stub::Free, &mut |_, why| reasons.push(why)) {
            left.push((packet[9], packet[1] >> 2));
        }
        assert_eq!(left, [(UDP, 46), (UDP, 18), (TCP, 0)], "{queue:?}");
        assert_eq!(reasons, [Refusal::Expired; 3]);
        let count = |counters: Vec<(&str, u64)>, name: &str| {
            counters.iter().find(|(it, _)| *it == name).map(|(_, count)| *count)
        };
        assert_eq!(count(queues.counters(), "expired"), Some(3));
        assert_eq!(count(queues.counters(), "passed"), Some(1), "{queue:?}");
        assert_eq!(count(queues.interactive_counters().unwrap(), "expired"), Some(0));
        queues.set_datagram_age(None);
        queues.push(at(100), packet(UDP, 0, 0, 100), &Stub::Free, &mut no_drops);
        assert!(queues.pop_for(at(1 << 30), &Stub::Free, &mut no_drops).is_some());
        assert_eq!(count(queues.counters(), "expired"), None);
    }
}

/// Goal: what is too old leaves a link that takes nothing, before it keeps what is new from its place.
#[test]
fn what_is_too_old_takes_no_place() {
    for queue in [
        queue::Config::DropTail(queue::drop_tail::Config::packets(20.try_into().unwrap())),
        fq_codel("packets = 20"),
        queue::Config::Red(base::config::parse("queue.toml", "packets = 20").unwrap()),
    ] {
        let mut queues = queues(&queue, ByDscp::default(), &cotmll());
        queues.set_datagram_age(Some(Duration::from_millis(100)));
        let mut reasons = Vec::new();
        for milli in 0..1000 {
            if milli % 10 == 0 {
                let packet = packet(UDP, 1, 0, 100);
                queues.push(at(milli), packet, &Stub::Full(None), &mut |_, why| reasons.push(why));
                assert!(queues.len() <= 14 && queues.bytes() == queues.len() as u64 * 100);
            }
        }
        assert!(reasons.len() >= 86 && reasons.iter().all(|why| *why == Refusal::Expired), "{reasons:?}");
        assert!(queues.pop_for(at(1050), &Stub::Free, &mut |_, _| ()).is_some());
        while queues.pop_for(at(1050), &Stub::Free, &mut |_, _| ()).is_some() {}
        assert_eq!((queues.len(), queues.bytes()), (0, 0));
    }
}

fn with_sparse_flows(protocol: &Protocol) -> IngressQueues {
    let site = queue::Site { rate: Some(base::Rate::from_bps(8_000_000)), seed: 1, name: "l" };
    let queue = queue::Config::default();
    IngressQueues::new(&queue, &site, ByDscp::default(), protocol.capabilities())
        .with_sparse_flows(&queue, &site)
}

fn waits(queues: &IngressQueues) -> [u64; 2] {
    [Treatment::Interactive, Treatment::Reliable].map(|treatment| queues.bytes_for(treatment) / 100)
}

/// Goal: thin flows of DSCP 0 are interactive, of whatever protocol, where the link has classes.
#[test]
fn thin_flows_are_interactive() {
    let push = |queues: &mut IngressQueues, packet| queues.push(at(1000), packet, &Stub::Free, &mut no_drops);
    let mut queues = with_sparse_flows(&coded());
    push(&mut queues, packet(UDP, 1, 0, 100));
    push(&mut queues, packet(TCP, 2, 0, 100));
    assert_eq!(waits(&queues), [2, 0]);
    // A mark that asks for nothing here asks for something elsewhere, perhaps for less.
    push(&mut queues, packet(UDP, 3, 8, 100));
    assert_eq!(waits(&queues), [2, 1]);
    let mut queues = with_sparse_flows(&cotmll());
    push(&mut queues, packet(UDP, 1, 0, 100));
    assert_eq!(waits(&queues), [0, 1]);
}

/// Goal: once a flow has sent too much it stays where its packets wait, until these have left; one that has sent little does not wait for it.
#[test]
fn a_flow_does_not_overtake_itself() {
    let mut queues = with_sparse_flows(&coded());
    let push = |queues: &mut IngressQueues, millis, flow, len| {
        queues.push(at(millis), packet(TCP, flow, 0, len), &Stub::Full(None), &mut no_drops);
        waits(queues)
    };
    assert_eq!(push(&mut queues, 1000, 1, 1500), [15, 0]);
    assert_eq!(push(&mut queues, 1000, 1, 1500), [30, 0], "a quantum is not quite spent");
    assert_eq!(push(&mut queues, 1000, 1, 1500), [30, 15]);
    assert_eq!(push(&mut queues, 3000, 1, 100), [30, 16], "its packets wait");
    assert_eq!(push(&mut queues, 3000, 2, 100), [31, 16]);
    assert_eq!(push(&mut queues, 3000, 3, 100), [31, 17], "so much waits there that it is no gain");
    let mut order = Vec::new();
    while let Some((packet, treatment)) = queues.pop_for(at(3000), &Stub::Free, &mut no_drops) {
        order.push((packet[15], treatment));
    }
    use Treatment::{Interactive, Reliable};
    let expected =
        [(1, Interactive), (1, Interactive), (2, Interactive), (1, Reliable), (1, Reliable), (3, Reliable)];
    assert_eq!(order, expected);
    assert_eq!(push(&mut queues, 5000, 1, 100), [1, 0], "they have left");
}

/// The flow of a packet is not thin now.
fn demote(queues: &mut IngressQueues, millis: u64, packet: &Packet) {
    queues.sparse.as_mut().unwrap().demote(at(millis), packet);
}

/// Goal: what the queue drops waits no longer, for whatever reason.
#[test]
fn a_flow_does_not_wait_for_what_was_dropped() {
    let one = queue::Config::DropTail(queue::drop_tail::Config::packets(core::num::NonZeroU32::MIN));
    let site = queue::Site { rate: Some(base::Rate::from_bps(8_000_000)), seed: 1, name: "l" };
    let by_dscp = ByDscp::default();
    let queues =
        || IngressQueues::new(&one, &site, by_dscp, coded().capabilities()).with_sparse_flows(&one, &site);
    let push = |queues: &mut IngressQueues, millis, dscp| {
        demote(queues, millis, &packet(UDP, 1, dscp, 100));
        queues.push(at(millis), packet(UDP, 1, dscp, 100), &Stub::Full(None), &mut |_, _| ());
    };
    // One that waits is waited for.
    let mut waiting = queues();
    [8, 0].into_iter().for_each(|dscp| push(&mut waiting, 1000, dscp));
    assert_eq!(waits(&waiting), [0, 1]);
    // The second finds no room.
    let mut full = queues();
    (0..2).for_each(|_| push(&mut full, 1000, 8));
    assert_eq!(full.pop_for(at(1000), &Stub::Free, &mut no_drops).unwrap().1, Treatment::Reliable);
    push(&mut full, 1000, 0);
    assert_eq!(waits(&full), [1, 0]);
    // The first is too old, whether it is its turn or not.
    for purged in [false, true] {
        let mut old = queues();
        old.set_datagram_age(Some(Duration::from_millis(10)));
        push(&mut old, 1000, 8);
        if !purged {
            assert!(old.pop_for(at(1100), &Stub::Free, &mut |_, _| ()).is_none());
        }
        push(&mut old, 1100, 0);
        assert_eq!(waits(&old), [1, 0]);
    }
    // Another kind of queue has room for one.
    let mut other = queues();
    (0..2).for_each(|_| push(&mut other, 1000, 8));
    let red = queue::Config::Red(base::config::parse("queue.toml", "packets = 3").unwrap());
    other.reconfigure(at(1000), &red, &site, by_dscp);
    assert!(other.pop_for(at(1000), &Stub::Free, &mut no_drops).is_some());
    push(&mut other, 1000, 0);
    assert_eq!(waits(&other), [1, 0]);
}

/// Goal: a flow stays where its packets are on their way over the link, as its endpoint knows.
#[test]
fn a_flow_waits_for_its_packets_on_the_link() {
    let line = LineLimits::new(1500, Some(base::Rate::from_bps(8_000_000)));
    let (mut near, mut far) = (coded().build(&line), coded().build(&line));
    let mut queues = with_sparse_flows(&coded());
    for (protocol, number) in [(TCP, 7), (UDP, 8)] {
        let mut sent = packet(protocol, number, 0, 100);
        if protocol == UDP {
            sent.set_expiry(Some(at(9000)));
        }
        near.offer(at(1000), sent, Treatment::Reliable).unwrap();
        let treatment = |queues: &mut IngressQueues, millis, near: &dyn Endpoint| {
            demote(queues, millis, &packet(protocol, number, 0, 100));
            queues.stream_treatment(at(millis), &packet(protocol, number, 0, 100), near)
        };
        assert_eq!(treatment(&mut queues, 1000, &*near), Treatment::Reliable, "not yet cut");
        let mut frame = Vec::new();
        near.poll_frame(at(1000), &mut frame).unwrap();
        assert_eq!(treatment(&mut queues, 2000, &*near), Treatment::Reliable, "on its way");
        let other = packet(protocol, 100 + number, 0, 100);
        assert_eq!(queues.stream_treatment(at(2000), &other, &*near), Treatment::Interactive);
        far.handle_frame(at(2000), &frame).unwrap();
        let mut report = Vec::new();
        far.handle_timeout(at(2010));
        far.poll_frame(at(2010), &mut report).unwrap();
        near.handle_frame(at(2020), &report).unwrap();
        assert_eq!(treatment(&mut queues, 3000, &*near), Treatment::Interactive, "it has come");
    }
}

/// Goal: packets of a call are always on their way, so one that was demoted goes before others again after a second in which it keeps to its share;
/// TCP never overtakes itself, nor does a flow whose packets come in bursts.
#[test]
fn a_call_is_thin_again_after_a_second() {
    for (protocol, burst, again) in [(UDP, false, Some(2100)), (TCP, false, None), (UDP, true, None)] {
        let line = LineLimits::new(1500, Some(base::Rate::from_bps(8_000_000)));
        let mut near = coded().build(&line);
        let mut queues = with_sparse_flows(&coded());
        near.offer(at(1000), packet(protocol, 7, 0, 1000), Treatment::Reliable).unwrap();
        (0..3).for_each(|_| _ = queues.stream_treatment(at(1000), &packet(protocol, 7, 0, 1000), &*near));
        let mut found = None;
        for millis in (1100..4000).step_by(200) {
            if burst {
                (0..20).for_each(|_| {
                    _ = queues.stream_treatment(at(millis - 100), &packet(protocol, 7, 0, 200), &*near);
                });
            }
            let treatment = queues.stream_treatment(at(millis), &packet(protocol, 7, 0, 100), &*near);
            if treatment == Treatment::Interactive && found.is_none() {
                found = Some(millis);
            }
        }
        assert_eq!(found, again, "{protocol} {burst}");
    }
}

/// Goal: a flow that found too much of other thin ones is demoted too, so that it overtakes itself once and not again and again.
#[test]
fn a_crowd_demotes() {
    let mut queues = with_sparse_flows(&coded());
    let push = |queues: &mut IngressQueues, millis, flow, len| {
        queues.push(at(millis), packet(UDP, flow, 0, len), &Stub::Full(None), &mut no_drops);
        waits(queues)
    };
    (1..=3).for_each(|flow| _ = push(&mut queues, 1000, flow, 1500));
    assert_eq!(push(&mut queues, 1000, 9, 100), [45, 1]);
    (0..3).for_each(|_| {
        assert_eq!(queues.pop_for(at(1000), &Stub::Free, &mut no_drops).unwrap().1, Treatment::Interactive);
    });
    assert_eq!(push(&mut queues, 1900, 9, 100), [0, 2]);
    assert_eq!(push(&mut queues, 2100, 9, 100), [1, 2]);
}
