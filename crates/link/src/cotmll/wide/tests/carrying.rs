//! Everything arrives, once, and no frame is sent again without need.

use base::Rng;
use proptest::prelude::*;

use super::*;

#[test]
fn on_a_clean_line_every_frame_is_sent_once() {
    let mut pair = pair(Config::default(), 40);
    let arrived = pair.carry((0..500).map(|n| packet(1, n, 60)), 700, &mut intact);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    // A packet a millisecond from the first, which the line holds for 40.
    assert_eq!(arrived.last().unwrap().0, Instant::ZERO + MS * 540);
    assert_eq!((pair.count(0, "frames-new"), pair.count(0, "frames-retransmitted")), (500, 0));
    assert_eq!(pair.ends[0].in_flight(), 0);
}

#[test]
fn a_side_with_nothing_to_say_is_silent() {
    let mut pair = pair(Config::default(), 5);
    assert_eq!(pair.carry((0..3).map(|n| packet(1, n, 60)), 50, &mut intact).len(), 3);
    let sent = |pair: &Pair<Wide>| [0, 1].map(|side| pair.ends[side].core.transmissions());
    let before = sent(&pair);
    pair.carry([], 1000, &mut intact);
    assert_eq!(sent(&pair), before);
    assert_eq!(pair.ends.each_ref().map(Wide::poll_timeout), [None, None]);
}

/// The sender knows from a report what was lost: with random losses both ways, as many frames are sent again as were lost.
#[test]
fn as_many_frames_are_sent_again_as_were_lost() {
    for (loss, seed) in [(0.01, 1), (0.05, 2), (0.2, 3), (0.5, 4)] {
        let mut pair = pair(Config::default(), 50);
        let mut rng = Rng::named(seed, "losses");
        let mut losing = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            if rng.unit() < loss
                && let Some(frame) = line.back_mut()
            {
                *frame = None;
            }
        };
        // No filler in between: data does not end, and the window has room.
        let mut offered = 0;
        let endless = core::iter::from_fn(|| {
            offered += 1;
            Some(packet(1, offered, 60))
        });
        pair.carry(endless, 4000, &mut losing);
        let again = pair.count(0, "frames-retransmitted");
        let lost = pair.lost[0];
        // Of the losses of the latest round trip the sender does not know yet.
        let unknown = (50.0 * 3.0 * loss) as u64 + 20;
        assert!(again <= lost && lost <= again + unknown, "{loss}: {again} again, {lost} lost");
        let duplicates = pair.count(1, "frames-duplicate");
        assert_eq!(duplicates, 0, "{loss}");
    }
}

#[test]
fn frames_may_overtake_each_other_by_two() {
    let mut pair = pair(Config::default(), 20);
    let mut steps = 0;
    let mut overtaking = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        steps += u32::from(side == 0);
        let len = line.len();
        if side == 0 && len > 3 && steps % 5 == 0 {
            // The frame before the last two goes behind them.
            line.swap(len - 3, len - 2);
            line.swap(len - 2, len - 1);
        }
    };
    let arrived = pair.carry((0..300).map(|n| packet(1, n, 60)), 400, &mut overtaking);
    assert_eq!((arrived.len(), pair.count(0, "frames-retransmitted")), (300, 0));
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

/// The last frame of all is lost, and nothing follows.
#[test]
fn a_lost_tail_is_sent_again() {
    let mut pair = pair(Config::default(), 20);
    let mut count = 0;
    let mut losing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        count += u32::from(side == 0 && line.back().is_some_and(Option::is_some));
        if side == 0 && count == 10 {
            line.pop_back();
            line.push_back(None);
        }
    };
    let arrived = pair.carry((0..10).map(|n| packet(1, n, 60)), 200, &mut losing);
    assert_eq!(arrived.len(), 10);
    // 50 ms of silence, and the line's delay.
    assert_eq!(arrived.last().unwrap().0, Instant::ZERO + MS * (10 + 50 + 20));
}

#[test]
fn a_blockage_costs_one_round_trip_after_its_end() {
    let mut pair = pair(Config::default(), 50);
    let mut step = 0;
    let mut blocked = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        step += u32::from(side == 0);
        if (300..600).contains(&step) {
            line.pop_back();
            line.push_back(None);
        }
    };
    let arrived = pair.carry((0..1000).map(|n| packet(1, n, 60)), 1600, &mut blocked);
    assert_eq!(arrived.len(), 1000);
    // 300 steps of blockage, and nothing else was lost: 1000 frames and the line's delay, twice for the latest to be told of.
    let end = arrived.last().unwrap().0;
    assert!(end < Instant::ZERO + MS * (1000 + 300 + 3 * 50 + 20), "{end:?}");
}

#[test]
fn the_window_is_kept() {
    let config = Config { window: Some(10.try_into().unwrap()), ..Config::default() };
    let mut pair = pair(config, 100);
    for n in 0..190 {
        if n % 2 == 0 && pair.ends[0].has_room(Treatment::Reliable) {
            pair.ends[0].offer(pair.now, packet(1, n, 60), Treatment::Reliable).unwrap();
        }
        pair.step(&mut intact);
        assert!(pair.ends[0].in_flight() <= 10);
    }
    assert_eq!(pair.ends[0].in_flight(), 10);
    let fillers = pair.count(0, "frames-filler");
    assert!((1..=4).contains(&fillers), "every 50 ms one: {fillers}");
}

#[test]
fn after_a_reset_of_both_ends_what_was_not_cut_goes_on() {
    let mut pair = pair(Config::default(), 10);
    pair.carry((0..3).map(|n| packet(1, n, 60)), 3, &mut intact);
    pair.ends[0].offer(pair.now, packet(1, 3, 60), Treatment::default()).unwrap();
    assert!(!pair.ends[0].has_room(Treatment::Reliable));
    pair.ends.iter_mut().for_each(Endpoint::reset);
    pair.lines = Default::default();
    let arrived = pair.carry([packet(1, 9, 60)], 50, &mut intact);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert_eq!((numbers, pair.count(0, "packets-reset")), (vec![3, 9], 3));
}

#[test]
fn packets_that_are_sent_once_are_not_repeated_and_let_others_through() {
    let mut pair = pair(Config::default(), 10);
    let mut drop_every_third = {
        let mut n = 0;
        move |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            n += usize::from(side == 0);
            if side == 0 && n % 3 == 0 {
                line.pop_back();
                line.push_back(None);
            }
        }
    };
    let (mut voice, mut data) = (0, 0);
    let mut arrived = Vec::new();
    for _ in 0..300 {
        for (flow, count, treatment) in
            [(1, &mut voice, Treatment::Once), (2, &mut data, Treatment::Reliable)]
        {
            if pair.ends[0].has_room(treatment) {
                pair.ends[0].offer(pair.now, packet(flow, *count, 60), treatment).unwrap();
                *count += 1;
            }
        }
        arrived.extend(pair.step(&mut drop_every_third)[1].iter().map(flow_and_number));
    }
    let of = |flow| arrived.iter().filter(|(of, _)| *of == flow).map(|(_, n)| *n).collect::<Vec<_>>();
    assert!(of(2).iter().copied().eq(0..of(2).len() as u32), "{:?}", of(2));
    assert!(of(1).is_sorted() && of(1).len() > 80 && of(2).len() > 60, "{} {}", of(1).len(), of(2).len());
    assert!(of(1).len() < voice as usize * 3 / 4, "some are gone for good");
}

/// Each class has half of the line, whichever has the longer packets.
#[test]
fn what_is_sent_once_and_the_rest_share_by_bytes() {
    for (once_len, bulk_len) in [(200, 1300), (1300, 200), (1000, 1000)] {
        let mut end = Wide::new(Config::default(), &LineLimits::new(1500, LINE.rate()));
        let (mut once, mut bulk, mut now) = (0, 0, Instant::ZERO);
        for number in 0..400 {
            for (len, treatment) in [(once_len, Treatment::Once), (bulk_len, Treatment::Reliable)] {
                if end.has_room(treatment) {
                    end.offer(now, packet(1, number, len), treatment).unwrap();
                }
            }
            let mut frame = Vec::new();
            end.poll_frame(now, &mut frame).expect("there is always something to say");
            match Frame::parse(&frame).expect("it is well-formed").class {
                Class::Unreliable => once += frame.len(),
                _ => bulk += frame.len(),
            }
            now += MS;
        }
        let share = f64::from(once as u32) / f64::from((once + bulk) as u32);
        assert!((0.45..0.55).contains(&share), "{once_len} beside {bulk_len}: {once} and {bulk} bytes");
    }
}

/// Numbers on the air wrap while frames are lost.
#[test]
fn numbers_wrap() {
    let mut pair = pair(Config::default(), 30);
    pair.ends[0].start_at(SPACE - 100);
    pair.ends[1].expect_from(SPACE - 100);
    let mut n = 0;
    let mut losing = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        n += 1;
        if n % 7 == 0 {
            line.pop_back();
            line.push_back(None);
        }
    };
    let arrived = pair.carry((0..400).map(|n| packet(1, n, 60)), 1000, &mut losing);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect();
    assert_eq!(numbers, (0..400).collect::<Vec<_>>());
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
    ) {
        let config = Config { ordered, window: Some(window.try_into().unwrap()), frame_payload: None };
        let mut pair = pair(config, delay);
        let mut fate = fated(fates);
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
        prop_assert_eq!(pair.ends[0].in_flight(), 0);
        prop_assert_eq!(pair.count(0, "acks-invalid") + pair.count(1, "acks-invalid"), 0);
    }
}

/// What is sent once has its packet's DSCP, so a router may let it pass everything else: nothing is taken for lost by that.
#[test]
fn what_is_sent_once_may_overtake_everything() {
    let [mut a, mut b] = [(); 2].map(|()| Wide::new(Config::default(), &LINE));
    let mut now = Instant::ZERO;
    let (mut best_effort, mut voice) = (VecDeque::new(), VecDeque::new());
    for number in 0..200 {
        now += Duration::from_millis(1);
        let (treatment, line) = match number % 2 {
            0 => (Treatment::Reliable, &mut best_effort),
            _ => (Treatment::Once, &mut voice),
        };
        a.offer(now, packet(1, number, 60), treatment).unwrap();
        let mut frame = Vec::new();
        a.poll_frame(now, &mut frame).unwrap();
        line.push_back(frame);
    }
    // All of the voice first.
    for frame in voice.into_iter().chain(best_effort) {
        b.handle_frame(now, &frame).unwrap();
        let mut report = Vec::new();
        b.poll_frame(now, &mut report).unwrap();
        a.handle_frame(now, &report).unwrap();
    }
    assert_eq!((a.in_flight(), a.core.sender.flags()), (0, 0));
    assert_eq!(std::iter::from_fn(|| b.poll_packet()).count(), 200);
}

/// The line's rate was configured anew: the window and what hangs on it follow.
#[test]
fn another_rate_has_another_window() {
    let line = |kbps: u64| LineLimits::new(1440, Some(base::Rate::from_bps(kbps * 1000)));
    let mut end = Wide::new(Config::default(), &line(64));
    let fill = |end: &mut Wide| {
        for number in 0..20_000 {
            if end.has_room(Treatment::default()) {
                end.offer(Instant::ZERO, packet(1, number, 60), Treatment::default()).unwrap();
            }
            end.poll_frame(Instant::ZERO, &mut Vec::new()).unwrap();
        }
        end.in_flight()
    };
    assert_eq!(fill(&mut end), 1024);
    end.set_line(&line(16_000));
    let window = Config::default().window(&line(16_000));
    assert!(window > 8000);
    assert_eq!(fill(&mut end), u64::from(window));
    assert_eq!((end.core.news.worth, Detection::pause(&end.core)), (2, MS.saturating_mul(50)));
}
