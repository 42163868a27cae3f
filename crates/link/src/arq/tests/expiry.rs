//! Tests of packets whose time is up, over each protocol that gives them up.

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant, Packet, Rng};
use proptest::prelude::*;

use super::pair::{Fate, LINE, MS, Pair, fated, flow_and_number, packet};
use crate::arq::{FramePayload, Window};
use crate::coded::{self, Coded};
use crate::cotmll::{Wide, wide};
use crate::endpoint::Endpoint;
use crate::slacp::{self, Slacp};
use crate::treatment::Treatment;

/// Steps of a millisecond that a frame takes.
const DELAY: usize = 10;

/// Flows below this number are of datagrams, which expire; the others are of TCP.
const EXPIRING: u8 = 2;

fn wide(window: u32) -> Wide {
    let window = Some(Window::try_from(window).unwrap());
    Wide::new(wide::Config { window, ..wide::Config::default() }, &LINE)
}

fn coded(window: u32) -> Coded {
    let window = Some(Window::try_from(window).unwrap());
    Coded::new(coded::Config { window, ..coded::Config::default() }, &LINE)
}

fn lose(line: &mut VecDeque<Option<Vec<u8>>>) {
    line.pop_back();
    line.push_back(None);
}

/// What came, and when: its flow, its number, the millisecond.
type Arrived = Vec<(u8, u32, u64)>;

/// A pair to which packets are offered one after another as there is room.
struct Lane<E> {
    pair: Pair<E>,
    waiting: VecDeque<Packet>,
    arrived: Arrived,
}

impl<E: Endpoint> Lane<E> {
    fn new(end: impl Fn() -> E, delay: usize) -> Self {
        Self { pair: Pair::new(end, delay), waiting: VecDeque::new(), arrived: Vec::new() }
    }

    fn now(&self) -> u64 {
        self.pair.now.saturating_since(Instant::ZERO).as_millis()
    }

    /// A packet that expires after so many milliseconds, if it is one of a flow whose packets do.
    fn push(&mut self, flow: u8, number: u32, len: usize, age: u64) {
        let mut packet = packet(flow, number, len);
        if flow < EXPIRING {
            packet.set_expiry(Some(self.pair.now + Duration::from_millis(age)));
        } else {
            packet[9] = 6;
        }
        self.waiting.push_back(packet);
    }

    fn step(&mut self, fate: Fate<'_>) {
        while self.pair.ends[0].has_room(Treatment::Reliable)
            && let Some(packet) = self.waiting.pop_front()
        {
            self.pair.ends[0].offer(self.pair.now, packet, Treatment::Reliable).unwrap();
        }
        let came = self.pair.step(fate);
        let now = self.now();
        let note = |packet: &Packet| {
            let (flow, number) = flow_and_number(packet);
            (flow, number, now)
        };
        self.arrived.extend(came[1].iter().map(note));
    }

    fn numbers(&self, flow: u8) -> Vec<u32> {
        self.arrived.iter().filter(|(of, ..)| *of == flow).map(|(_, number, _)| *number).collect()
    }
}

/// Goal: a frame that was lost and whose time is up is sent no more, and the packet behind it in its flow comes as soon as that is told.
fn lost_and_too_old<E: Endpoint>(end: impl Fn() -> E) {
    let mut lane = Lane::new(end, DELAY);
    lane.push(0, 0, 60, 15);
    lane.push(0, 1, 60, 500);
    let mut count = 0;
    for _ in 0..200 {
        lane.step(&mut |side, line| {
            if side == 0
                && line.back().is_some_and(|frame| frame.as_ref().is_some_and(|frame| frame.len() > 60))
            {
                count += 1;
                if count == 1 {
                    lose(line);
                }
            }
        });
    }
    // Its time was up after 15 ms, and the floor takes 10 ms.
    assert_eq!(lane.numbers(0), [1]);
    assert!((25..35).contains(&lane.arrived[0].2), "{:?}", lane.arrived);
    assert_eq!(lane.pair.count(0, "packets-expired"), 1);
    assert_eq!(lane.pair.count(0, "frames-retransmitted"), 0);
    assert!(lane.pair.is_at_rest(0), "nobody waits for anything");
}

#[test]
fn what_was_lost_and_is_too_old_is_not_sent_again() {
    lost_and_too_old(|| wide(100));
    lost_and_too_old(|| coded(100));
}

/// Goal: where nothing gets through for so long that the window is full of what is too old, what is new goes out at once afterwards, and nothing
/// that is too old comes; memory holds no packets that will not be sent.
fn outage<E: Endpoint>(end: impl Fn() -> E) {
    let mut lane = Lane::new(end, DELAY);
    for step in 0..1600 {
        if step % 4 == 0 {
            lane.push(0, step, 60, 100);
        }
        lane.step(&mut |_, line| {
            if step < 1000 {
                lose(line);
            }
        });
    }
    let expired = lane.pair.count(0, "packets-expired");
    assert!((220..=250).contains(&expired), "{expired}");
    let first = lane.arrived[0];
    assert!(first.1 >= 900 && first.2 < 1040, "{first:?}");
    for (_, number, at) in &lane.arrived {
        // Until the first report tells what is missing, a packet may wait for those before it.
        assert!(at - u64::from(*number) <= 100 + 2 * DELAY as u64, "{number} at {at}");
    }
    // The last are on their way.
    let last = lane.numbers(0);
    assert!(last.iter().filter(|number| **number >= 1000).count() >= 145, "{last:?}");
}

#[test]
fn an_outage_leaves_no_window_full_of_what_is_too_old() {
    outage(|| wide(40));
    outage(|| coded(40));
}

/// Goal: a packet of many frames of which some were sent when its time was up is given up whole, and the next one comes whole.
fn partly_sent<E: Endpoint>(end: impl Fn() -> E, steps: u32) {
    let mut lane = Lane::new(end, DELAY);
    lane.push(0, 0, 600, 50);
    lane.push(1, 1, 300, 10_000);
    for step in 0..steps {
        lane.step(&mut |_, line| {
            if step < 100 {
                lose(line);
            }
        });
    }
    assert_eq!(lane.arrived.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [1]);
    assert_eq!(lane.pair.count(0, "packets-expired"), 1);
}

#[test]
fn a_packet_that_was_partly_sent_is_given_up_whole() {
    partly_sent(|| wide(4), 400);
    partly_sent(|| coded(4), 400);
    // It asks what has come after 5 s.
    let config = slacp::Config { window: Some(4.try_into().unwrap()), ..slacp::Config::default() };
    partly_sent(|| Slacp::new(config, &LINE), 7000);
}

/// Goal: a packet that is sent after the one before it in its flow has expired does not wait for that, although a stream's frame is missing before both.
#[test]
fn what_is_new_does_not_wait_for_what_has_expired() {
    let mut lane = Lane::new(|| wide(100), DELAY);
    lane.push(2, 0, 60, 0);
    lane.push(0, 1, 60, 15);
    for step in 0..100 {
        if step == 20 {
            lane.push(0, 2, 60, 100);
        }
        lane.step(&mut |_, line| {
            if step < 10 {
                lose(line);
            }
        });
    }
    assert_eq!(lane.arrived.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(lane.arrived[0].2, 21 + DELAY as u64);
}

#[test]
fn what_was_never_sent_is_dropped() {
    let mut lane = Lane::new(|| wide(1), DELAY);
    lane.push(2, 0, 60, 0);
    lane.push(0, 1, 60, 5);
    lane.push(0, 2, 60, 500);
    (0..100).for_each(|_| lane.step(&mut |_, _| ()));
    assert_eq!(lane.arrived.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((lane.pair.count(0, "packets-expired"), lane.pair.count(0, "frames-new")), (1, 2));
}

/// Goal: what has come waits for an earlier packet of its flow no longer than told, although what is lost is given up much later.
fn held_back<E: Endpoint>(end: impl Fn() -> E, flow: u8) -> u64 {
    let mut lane = Lane::new(end, DELAY);
    lane.pair.ends[1].set_hold(Some(Duration::from_millis(30)));
    (0..2).for_each(|number| lane.push(flow, number, 60, 1000));
    let mut count = 0;
    for step in 0..400 {
        lane.step(&mut |side, line| {
            count += u32::from(side == 0 && line.back().is_some_and(Option::is_some));
            // The second frame gets through.
            if step < 300 && count != 2 {
                lose(line);
            }
        });
    }
    lane.arrived.iter().find(|(_, number, _)| *number == 1).unwrap().2
}

#[test]
fn nobody_is_held_back_for_longer_than_told() {
    for at in [held_back(|| wide(100), 0), held_back(|| coded(100), 0)] {
        assert!((DELAY as u64 + 30..DELAY as u64 + 35).contains(&at), "{at}");
    }
    // Streams keep their order: whoever sends them sends them again.
    let at = held_back(|| wide(100), EXPIRING);
    assert!(at > 300, "{at}");
}

/// What came of packets that were pushed one a step, a quarter of which is lost at random, and how much of a flow that does not expire was lost.
fn mixed<E: Endpoint>(end: impl Fn() -> E, hold: u64, seed: u64) -> Lane<E> {
    let mut lane = Lane::new(end, DELAY);
    lane.pair.ends[1].set_hold(Some(Duration::from_millis(hold)));
    let mut rng = Rng::named(seed, "losses");
    for step in 0..4000 {
        if step < 3000 && step % 2 == 0 {
            lane.push((step / 2 % 4) as u8, step, 60, 60);
        }
        lane.step(&mut |_, line| {
            if step < 3500 && rng.unit() < 0.25 {
                lose(line);
            }
        });
    }
    lane
}

/// Goal: whatever is given up, flows that do not expire come whole and in order, and what does expire comes at its age, the line's delay and the time
/// for which it may be held back at the latest.
fn is_reliable_beside_what_expires<E: Endpoint>(end: impl Fn() -> E) {
    for seed in 1..=5 {
        let lane = mixed(&end, 60, seed);
        for flow in 0..4 {
            let numbers = lane.numbers(flow);
            let all: Vec<u32> = (0..3000).filter(|n| n % 2 == 0 && n / 2 % 4 == u32::from(flow)).collect();
            if flow < EXPIRING {
                assert!(numbers.len() * 10 > all.len() * 8, "{} of {}", numbers.len(), all.len());
                assert!(numbers.iter().all(|number| all.contains(number)));
                let twice = numbers.iter().collect::<BTreeSet<_>>().len();
                assert_eq!(twice, numbers.len());
            } else {
                assert_eq!(numbers, all, "flow {flow}, seed {seed}");
            }
        }
        let expiring = lane.arrived.iter().filter(|(flow, ..)| *flow < EXPIRING);
        let oldest = expiring.map(|(_, number, at)| at - u64::from(*number)).max().unwrap();
        assert!(oldest <= 60 + 60 + DELAY as u64 + 2, "{oldest} ms");
        assert!(lane.pair.count(0, "packets-expired") > 0);
    }
}

#[test]
fn what_does_not_expire_is_reliable_beside_what_does() {
    is_reliable_beside_what_expires(|| wide(1000));
    is_reliable_beside_what_expires(|| coded(1000));
}

proptest! {
    /// Whatever happens to frames, packets that do not expire come once, in the order of their flow, and nobody waits in the end.
    #[test]
    fn any_line_settles(
        packets in prop::collection::vec((0_u8..4, 20_usize..300, 1_u64..80), 1..60),
        fates in prop::collection::vec(0_u8..10, 0..300),
        window in 20_u32..60,
        payload in 30_u32..70,
        is_coded in any::<bool>(),
    ) {
        let (window, frame_payload) = (Some(window.try_into().unwrap()), Some(FramePayload::try_from(payload).unwrap()));
        if is_coded {
            settles(|| Coded::new(coded::Config { window, frame_payload, ..coded::Config::default() }, &LINE), &packets, fates)?;
        } else {
            settles(|| Wide::new(wide::Config { window, frame_payload, ..wide::Config::default() }, &LINE), &packets, fates)?;
        }
    }
}

fn settles<E: Endpoint>(
    end: impl Fn() -> E,
    packets: &[(u8, usize, u64)],
    fates: Vec<u8>,
) -> Result<(), TestCaseError> {
    let mut lane = Lane::new(end, DELAY);
    let mut fate = fated(fates);
    for (number, (flow, len, age)) in packets.iter().enumerate() {
        lane.push(*flow, number as u32, *len, *age);
        lane.step(&mut fate);
    }
    (0..2500).for_each(|_| lane.step(&mut fate));
    for flow in 0..4 {
        let numbers = lane.numbers(flow);
        let sent: Vec<u32> =
            (0..).zip(packets).filter(|(_, packet)| packet.0 == flow).map(|(number, _)| number).collect();
        if flow < EXPIRING {
            // What comes although its time was up at the sender may be overtaken.
            let once: BTreeSet<u32> = numbers.iter().copied().collect();
            prop_assert!(once.len() == numbers.len() && once.iter().all(|number| sent.contains(number)));
        } else {
            prop_assert_eq!(numbers, sent);
        }
    }
    prop_assert!(lane.pair.is_at_rest(0));
    prop_assert_eq!(lane.pair.now, Instant::ZERO + MS.saturating_mul(packets.len() as u64 + 2500));
    Ok(())
}
