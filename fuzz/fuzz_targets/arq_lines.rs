//! Two ends of wide COTMLL or of coded ARQ over several lines, each of which loses, repeats, delays and changes frames, or goes dark for a while: what
//! arrives is what was sent, once and in the order of its flow, and all of it arrives once the lines are well.

#![no_main]

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, Packet, Rate};
use libfuzzer_sys::fuzz_target;
use link::arq::Order;
use link::cotmll::wide;
use link::{Demand, Endpoint, LineId, LineLimits, LineTerms, Protocol, Treatment, When, coded};

/// Steps of the lines, enough for all that was sent to arrive: a line in doubt may take 3 s, a probe a second.
const AFTER: usize = 15_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[setting, kinds], mut fates)) = bytes.split_first_chunk() else { return };
    let protocol = match setting & 1 {
        0 => Protocol::Coded(coded::Config { ordered: Order::Flow, ..Default::default() }),
        _ => Protocol::Cotmll(wide::Config { ordered: Order::Flow, ..Default::default() }),
    };
    let count = 2 + usize::from(setting >> 1 & 3);
    let mut ends: [Box<dyn Endpoint>; 2] =
        [0, 1].map(|_| protocol.build(&LineLimits::new(160, Some(Rate::from_bps(4_000_000)))));
    // Of some lines nothing is told.
    for (line, end) in (0..count).flat_map(|line| [(line, 0), (line, 1)]) {
        if setting & 8 << line.min(3) != 0 {
            let terms = LineTerms::new(Rate::from_bps(1_000_000), Duration::from_millis(3 + 20 * line as u64));
            let when = When::of(kinds & 1 << line != 0, kinds & 16 << line != 0);
            let id = LineId::new(line as u8).expect("there are eight");
            ends[end].lines().expect("it knows lines").set_line_over(id, LineTerms { when, ..terms });
        }
    }
    let mut lines: Vec<[VecDeque<Vec<u8>>; 2]> = vec![Default::default(); count];
    let mut dark = vec![0_u32; count];
    let (mut now, mut latest, mut arrived, mut after) = (Instant::ZERO, BTreeMap::new(), 0, 0);
    let mut sent: Vec<Packet> = Vec::new();
    while after < AFTER && (after == 0 || arrived < sent.len()) {
        now += Duration::from_millis(1);
        let fate = fates.split_first().map(|(&fate, rest)| {
            fates = rest;
            fate
        });
        after += usize::from(fate.is_none());
        if fate.is_some() && ends[0].has_room(Treatment::Reliable) {
            let mut packet = vec![0x45; 40 + usize::from(fate.unwrap_or(0)) * 2];
            packet[12..20].fill((sent.len() % 5) as u8);
            packet[36..40].copy_from_slice(&(sent.len() as u32).to_be_bytes());
            sent.push(Packet::from_slice(&packet));
            ends[0].offer(now, Packet::from_slice(&packet), Treatment::Reliable).expect("it has room");
        }
        for side in 0..2 {
            if ends[side].poll_timeout().is_some_and(|due| due <= now) {
                ends[side].handle_timeout(now);
            }
            for line in 0..count {
                let id = LineId::new(line as u8).expect("there are eight");
                let mut frame = Vec::new();
                let is_wanted = ends[side].demand_over(now, id) > Demand::Nothing;
                let over = ends[side].lines().expect("it knows lines");
                if is_wanted && over.poll_frame_over(now, id, &mut frame).is_some() {
                    lines[line][side].push_back(frame);
                }
                // Each line holds some frames, the farther ones more.
                let held = &mut lines[line][side];
                dark[line] = dark[line].saturating_sub(1);
                match fate.filter(|fate| usize::from(fate >> 5) % count == line).map(|fate| fate & 31) {
                    Some(0..=3) => _ = held.pop_front(),
                    Some(4) if !held.is_empty() => held.rotate_left(1),
                    Some(5) => held.extend(held.front().cloned()),
                    Some(6) => dark[line] = 400,
                    // Somebody else is sure of it, rightly or not.
                    Some(8) => over.suspect(id),
                    Some(7) if setting & 0x80 != 0 => held.iter_mut().for_each(|frame| frame.truncate(5)),
                    _ => {}
                }
                if dark[line] > 0 && fate.is_some() {
                    held.clear();
                }
                if held.len() > line * 3
                    && let Some(frame) = held.pop_front()
                {
                    let over = ends[1 - side].lines().expect("it knows lines");
                    let _ = over.handle_frame_over(now, id, &frame);
                }
            }
        }
        while let Some(packet) = ends[1].poll_packet() {
            let number = u32::from_be_bytes(packet[36..40].try_into().expect("four bytes"));
            assert_eq!(packet[..], sent[number as usize][..], "what arrives is what was sent");
            let before = latest.insert(packet[12], number);
            assert!(before.is_none_or(|before| before < number), "in the order of its flow, once");
            arrived += 1;
        }
        while ends[0].poll_packet().is_some() {}
    }
    assert_eq!(arrived, sent.len(), "all of it arrives");
});
