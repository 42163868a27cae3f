//! Everything arrives, once, whatever the line does.

use base::Rng;
use proptest::prelude::*;

use super::*;
use crate::arq::frame::{self, Frame};

#[test]
fn on_a_clean_line_every_frame_is_sent_once() {
    let mut pair = pair(Config::default(), 40);
    let arrived = pair.carry((0..500).map(|n| packet(1, n, 60)), 700, &mut intact);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    assert_eq!(arrived.last().unwrap().0, Instant::ZERO + MS * 540);
    assert_eq!((pair.count(0, "frames-new"), pair.count(0, "frames-retransmitted")), (500, 0));
}

/// How late packets of a steady stream are, in order and beyond the line's delay, in steps: the mean and the 99th percentile. The stream takes
/// a share of `load` of what the line carries.
fn lateness(loss: f64, load: f64, seed: u64) -> (f64, u32) {
    const DELAY: u32 = 16;
    const STEPS: u32 = 30_000;
    let mut pair = pair(Config::default(), DELAY as usize);
    let mut rng = Rng::named(seed, "losses");
    let mut losing = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if rng.unit() < loss {
            line.pop_back();
            line.push_back(None);
        }
    };
    let (mut waiting, mut offered, mut late, mut next) = (0.0, Vec::new(), Vec::new(), 0);
    for step in 0..STEPS {
        waiting += load * (1.0 - loss);
        while waiting >= 1.0 && pair.ends[0].has_room(Treatment::Reliable) {
            let number = offered.len() as u32;
            pair.ends[0].offer(pair.now, packet(1, number, 60), Treatment::Reliable).unwrap();
            offered.push(step);
            waiting -= 1.0;
        }
        pair.ends[0].set_backlog(Treatment::Reliable, waiting as u64 * 60);
        for packet in &pair.step(&mut losing)[1] {
            assert_eq!(flow_and_number(packet).1, next);
            // At first nobody knows how much is lost.
            if step > STEPS / 10 {
                late.push(step - offered[next as usize] - DELAY);
            }
            next += 1;
        }
    }
    // What a peer may have us compute is enough for one that means well, even with short frames.
    assert_eq!([0, 1].map(|end| pair.count(end, "sums-refused")), [0, 0], "{loss}, {load}");
    late.sort_unstable();
    (f64::from(late.iter().sum::<u32>()) / late.len() as f64, late[late.len() * 99 / 100])
}

/// What is lost is solved from sums that were on their way before anybody could ask for them: without these each loss costs more than a
/// round trip of 32 steps.
#[test]
fn losses_seldom_cost_a_round_trip() {
    for (loss, mean, most) in [(0.01, 0.5, 12), (0.1, 1.2, 20), (0.3, 5.0, 70)] {
        let late = lateness(loss, 0.8, 1);
        assert!(late.0 < mean && late.1 < most, "{loss}: {late:?}");
    }
}

/// With less to spare it takes longer, and does not collapse.
#[test]
fn a_full_line_still_delivers() {
    for (loss, mean) in [(0.1, 10.0), (0.3, 40.0), (0.5, 60.0)] {
        let late = lateness(loss, 0.9, 2);
        assert!(late.0 < mean, "{loss}: {late:?}");
    }
}

proptest! {
    /// Whatever the line does, packets of a flow arrive once and in order, and all of them once the line is well again.
    #[test]
    fn flows_arrive_whole_and_in_order(
        ordered in prop::sample::select(vec![Order::Flow, Order::Link, Order::None]),
        delay in 1_usize..40,
        packets in prop::collection::vec((0_u8..4, 20_usize..400), 1..80),
        fates in prop::collection::vec(0_u8..10, 0..300),
        window in 40_u32..200,
        backlog in prop::sample::select(vec![0, 400, 10_000]),
    ) {
        let config = Config { ordered, window: Some(window.try_into().unwrap()), frame_payload: None };
        let mut pair = pair(config, delay);
        let mut fate = fated(fates);
        pair.ends.iter_mut().for_each(|end| end.set_backlog(Treatment::Reliable, backlog));
        let sent: Vec<Packet> =
            packets.iter().enumerate().map(|(n, (flow, len))| packet(*flow, n as u32, *len)).collect();
        let arrived = pair.carry(sent.clone(), 3000, &mut fate);
        let arrived: Vec<Packet> = arrived.into_iter().map(|(_, packet)| packet).collect();
        prop_assert_eq!(arrived.len(), sent.len());
        let of = |packets: &[Packet], flow: u8| -> Vec<Packet> {
            packets.iter().filter(|p| flow_and_number(p).0 == flow).cloned().collect()
        };
        match ordered {
            Order::Link => prop_assert_eq!(arrived, sent),
            Order::Flow => for flow in 0..4 { prop_assert_eq!(of(&arrived, flow), of(&sent, flow)); },
            Order::None => {
                let sorted = |mut packets: Vec<Packet>| { packets.sort_by_key(|p| flow_and_number(p).1); packets };
                prop_assert_eq!(sorted(arrived), sorted(sent));
            }
        }
        prop_assert_eq!(pair.count(0, "acks-invalid") + pair.count(1, "acks-invalid"), 0);
    }
}

/// Goal: where the newest frame has been told of and no report comes any more, an idle line gets a few repairs of those before it, and then
/// is left alone but for fillers every 50 ms.
#[test]
fn an_idle_line_is_left_alone_when_reports_are_lost() {
    let mut pair = pair(Config::default(), 10);
    let mut count = [0; 2];
    let mut losing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        count[side] += usize::from(line.back().is_some_and(Option::is_some));
        // The first two frames, and all reports but the first.
        if side == 0 && count[0] <= 2 || side == 1 && count[1] > 1 {
            line.pop_back();
            line.push_back(None);
        }
    };
    pair.carry((0..3).map(|number| packet(1, number, 60)), 1000, &mut losing);
    assert!(pair.count(0, "frames-repair") < 40, "{}", pair.count(0, "frames-repair"));
}

/// Goal: while no report comes, an idle line carries in turn a sum of the newest frames and the one that was sent longest ago.
#[test]
fn fillers_are_sums_and_frames_in_turn() {
    let mut end = class(Config::default());
    for number in 0..3 {
        end.offer(Instant::ZERO, packet(1, number, 60), Treatment::Reliable).unwrap();
        end.poll_frame(Instant::ZERO, &mut Vec::new()).unwrap();
    }
    let (mut now, mut fillers) = (Instant::ZERO, Vec::new());
    while fillers.len() < 6 {
        now += MS;
        end.handle_timeout(now);
        let (demand, mut frame) = (end.demand(now), Vec::new());
        if demand > Demand::Nothing {
            end.poll_frame(now, &mut frame).unwrap();
        }
        if demand == Demand::Filler {
            let Frame { class, sequence, .. } = Frame::parse(&frame).unwrap();
            fillers.push((class, sequence));
        }
    }
    let turns = (0..3).flat_map(|oldest| [(frame::Class::Repair, 2), (frame::Class::Reliable, oldest)]);
    assert_eq!(fillers, turns.collect::<Vec<_>>());
}

/// Goal: with more than eight frames waiting, what was lost goes out again as it is, which delays nobody who has everything before it; with
/// eight, as a sum of all that is missing up to it, which makes good for whichever is lost again.
#[test]
fn what_was_lost_goes_out_as_a_sum_while_few_frames_wait() {
    for (waiting, second) in [(8, frame::Class::Repair), (9, frame::Class::Reliable)] {
        let [mut end, mut peer] = [(); 2].map(|()| class(Config::default()));
        for number in 0..8 {
            end.offer(Instant::ZERO, packet(1, number, 60), Treatment::Reliable).unwrap();
            let mut frame = Vec::new();
            end.poll_frame(Instant::ZERO, &mut frame).unwrap();
            if ![1, 3].contains(&number) {
                peer.handle_frame(Instant::ZERO + MS, &frame).unwrap();
            }
        }
        let mut report = Vec::new();
        peer.poll_frame(Instant::ZERO + MS, &mut report).unwrap();
        end.handle_frame(Instant::ZERO + MS * 2, &report).unwrap();
        let backlog = (0..).find(|bytes| {
            end.set_backlog(Treatment::Reliable, *bytes);
            end.waiting() == waiting
        });
        assert!(backlog.is_some());
        let repairs = [(); 2].map(|()| {
            let mut frame = Vec::new();
            end.poll_frame(Instant::ZERO + MS * 2, &mut frame).unwrap();
            let Frame { class, sequence, .. } = Frame::parse(&frame).unwrap();
            (class, sequence)
        });
        assert_eq!(repairs, [(frame::Class::Reliable, 1), (second, 3)], "{waiting} wait");
    }
}

/// Goal: after a loss the next frame is made good for in advance; after a frame that was taken for lost and had only been overtaken it is not.
#[test]
fn what_was_overtaken_makes_nobody_wary() {
    for is_lost in [true, false] {
        let [mut end, mut peer] = [(); 2].map(|()| class(Config::default()));
        let mut now = Instant::ZERO;
        let mut exchange = |end: &mut Class, now: Instant, frame: &[u8]| {
            peer.handle_frame(now, frame).unwrap();
            let mut report = Vec::new();
            peer.poll_frame(now, &mut report).unwrap();
            end.handle_frame(now, &report).unwrap();
        };
        let send = |end: &mut Class, number| {
            end.offer(Instant::ZERO, packet(1, number, 60), Treatment::Reliable).unwrap();
            let mut frame = Vec::new();
            end.poll_frame(Instant::ZERO, &mut frame).unwrap();
            frame
        };
        let first = send(&mut end, 0);
        for number in 1..4 {
            let frame = send(&mut end, number);
            now += MS;
            exchange(&mut end, now, &frame);
        }
        assert_eq!(end.demand(now), Demand::Fresh, "the first one goes out again");
        let mut again = Vec::new();
        end.poll_frame(now, &mut again).unwrap();
        now += MS;
        exchange(&mut end, now, if is_lost { &again } else { &first });
        let _ = send(&mut end, 4);
        let expected = if is_lost { Demand::Fresh } else { Demand::Nothing };
        assert_eq!(end.demand(now), expected, "lost: {is_lost}");
    }
}

/// What sums may need is kept for a while, and not for a peer that has nothing more to say: a hub has thousands of these.
#[test]
fn an_idle_end_keeps_nothing() {
    let mut pair = pair(Config::default(), 20);
    let mut rng = Rng::named(3, "losses");
    let mut losing = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if rng.unit() < 0.1 {
            line.pop_back();
            line.push_back(None);
        }
    };
    let arrived = pair.carry((0..2000).map(|number| packet(1, number, 60)), 4000, &mut losing);
    assert_eq!(arrived.len(), 2000);
    let busy = pair.ends[1].allocated();
    assert!(busy > 100_000, "{busy} bytes");
    // Half a minute, and what the last frames take.
    for _ in 0..31_000 {
        pair.step(&mut intact);
    }
    for (end, at) in pair.ends.iter().zip(["sender", "receiver"]) {
        assert!(end.allocated() < 10_000, "the {at} keeps {} bytes", end.allocated());
        assert_eq!(end.poll_timeout(), None, "the {at} waits for nothing");
    }
    // And goes on as if nothing had been forgotten.
    let arrived = pair.carry((2000..2500).map(|number| packet(1, number, 60)), 1500, &mut losing);
    assert_eq!(arrived.len(), 500);
}

/// Both ends forget what they kept while nothing passes for longer than that lasts, in the middle of all: it comes whole all the same.
#[test]
fn a_minute_without_a_line_loses_nothing() {
    let (mut pair, mut rng) = (pair(Config::default(), 20), Rng::named(4, "losses"));
    let mut step = 0_u32;
    let mut fate = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        step += 1;
        // Two sides a millisecond.
        if (1000..121_000).contains(&step) || rng.unit() < 0.1 {
            line.pop_back();
            line.push_back(None);
        }
    };
    let arrived = pair.carry((0..2000).map(|number| packet(1, number, 60)), 66_000, &mut fate);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
}
