//! Two ends of wide COTMLL, of coded ARQ or of SLACP over lines that lose, repeat, delay and change frames: what arrives is what was sent, once, and
//! in the order of its flow. Over the first two all of it arrives once the lines are well.

#![no_main]

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, Packet};
use libfuzzer_sys::fuzz_target;
use link::arq::Order;
use link::cotmll::wide;
use link::{Demand, Endpoint, LineLimits, Protocol, Treatment, coded, slacp};

/// Steps of the line, enough for all that was sent to arrive or to be given up: a question after 5 s may be lost.
const AFTER: usize = 12_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[setting, window], mut fates)) = bytes.split_first_chunk() else { return };
    let ordered = [Order::Flow, Order::Link, Order::None][usize::from(setting) % 3];
    let window = Some((u32::from(window) + 8).try_into().expect("in range"));
    let protocol = if setting & 0x40 != 0 {
        let max_retransmissions = u32::from(setting >> 3 & 3).try_into().expect("in range");
        // Of all packets here.
        let marks = if setting & 0x20 == 0 { vec![] } else { vec![0x45 >> 2] };
        let protect_dscp = marks.try_into().expect("a DSCP");
        let config = slacp::Config { ordered, window, max_retransmissions, protect_dscp, ..Default::default() };
        Protocol::Slacp(config)
    } else if setting & 0x20 != 0 {
        Protocol::Coded(coded::Config { ordered, window, ..Default::default() })
    } else {
        Protocol::Cotmll(wide::Config { ordered, window, ..wide::Config::default() })
    };
    let rate = (setting & 0x80 != 0).then(|| base::Rate::from_bps(1_000_000));
    let mut ends: [Box<dyn Endpoint>; 2] = [0, 1].map(|_| protocol.build(&LineLimits::new(120, rate)));
    let mut lines: [VecDeque<Vec<u8>>; 2] = Default::default();
    let (mut now, mut latest, mut arrived, mut after) = (Instant::ZERO, BTreeMap::new(), 0, 0);
    let mut sent: Vec<Packet> = Vec::new();
    while after < AFTER {
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
            let mut frame = Vec::new();
            if ends[side].demand(now) > Demand::Nothing && ends[side].poll_frame(now, &mut frame).is_some() {
                lines[side].push_back(frame);
            }
            let line = &mut lines[side];
            let len = line.len();
            // Each side has half of the fate.
            match fate.map(|fate| fate >> (4 * side) & 0xf) {
                Some(0..3) => _ = line.pop_back(),
                Some(3) => line.extend(line.back().cloned()),
                Some(4) if len > 5 => line.swap(len - 1, len - 5),
                Some(5) => line.iter_mut().next_back().into_iter().for_each(|frame| frame.truncate(len % 7)),
                // The line holds up to sixteen frames.
                Some(6..12) if len < 16 => continue,
                _ => {}
            }
            if let Some(frame) = line.pop_front() {
                let _ = ends[1 - side].handle_frame(now, &frame);
            }
        }
        while let Some(packet) = ends[1].poll_packet() {
            arrived += 1;
            let number = u32::from_be_bytes(packet[36..40].try_into().expect("four bytes"));
            assert_eq!(packet, sent[number as usize]);
            let before = latest.insert((number % 5, if ordered == Order::None { number } else { 0 }), number);
            assert!(before.is_none_or(|before| before < number), "{before:?}, then {number}");
        }
    }
    let given_up: u64 = ends[0].counters().iter().filter(|(name, _)| *name == "frames-given-up").map(|(_, n)| n).sum();
    assert!(arrived + given_up as usize >= sent.len());
});
