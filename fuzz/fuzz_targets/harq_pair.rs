//! Two ends of hybrid FEC/ARQ, or of FEC alone, over lines that lose, repeat, delay and change frames: what arrives is what was sent,
//! once, and in order where that is asked for. What is missing was given up, and nothing is left over.

#![no_main]

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant, Packet};
use libfuzzer_sys::fuzz_target;
use link::harq::{Config, Ordered};
use link::{Demand, Endpoint, LineLimits, Protocol, Treatment};

/// Steps of the line, enough for all that was sent to arrive or to be given up: time-outs double up to 30 s.
const AFTER: usize = 40_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[setting, sizes, window], mut fates)) = bytes.split_first_chunk() else { return };
    let fragments = u32::from(sizes >> 4) + 1;
    let config = Config {
        fragments: fragments.try_into().expect("in range"),
        data: (u32::from(sizes & 0xf) % fragments + 1).try_into().expect("in range"),
        transmissions: (u32::from(setting & 3) + 1).try_into().expect("in range"),
        combine: setting & 4 != 0,
        ordered: Ordered(setting & 8 != 0),
        window: Some((u32::from(window) + 8).try_into().expect("in range")),
    };
    let repeats = setting & 3 != 0;
    let treatment = if setting & 0x10 != 0 { Treatment::Once } else { Treatment::Reliable };
    let rate = (setting & 0x80 != 0).then(|| base::Rate::from_bps(1_000_000));
    let line = LineLimits::new(120, rate);
    let mut ends: [Box<dyn Endpoint>; 2] = [0, 1].map(|_| Protocol::Harq(config).build(&line));
    let mut lines: [VecDeque<Vec<u8>>; 2] = Default::default();
    let (mut now, mut arrived, mut after) = (Instant::ZERO, BTreeSet::new(), 0);
    let mut sent: Vec<Packet> = Vec::new();
    while after < AFTER {
        now += Duration::from_millis(1);
        let fate = fates.split_first().map(|(&fate, rest)| {
            fates = rest;
            fate
        });
        after += usize::from(fate.is_none());
        if fate.is_some() && ends[0].has_room(treatment) {
            let mut packet = vec![0x45; 40 + usize::from(fate.unwrap_or(0)) * 3];
            packet[36..40].copy_from_slice(&(sent.len() as u32).to_be_bytes());
            sent.push(Packet::from_slice(&packet));
            ends[0].offer(now, Packet::from_slice(&packet), treatment).expect("it has room");
        }
        for side in 0..2 {
            if ends[side].poll_timeout().is_some_and(|due| due <= now) {
                ends[side].handle_timeout(now);
            }
            let mut frame = Vec::new();
            if ends[side].demand(now) > Demand::Nothing {
                ends[side].poll_frame(now, &mut frame).expect("it said that it would");
                lines[side].push_back(frame);
            }
            let line = &mut lines[side];
            let len = line.len();
            // Each side has half of the fate.
            match fate.map(|fate| fate >> (4 * side) & 0xf) {
                Some(0..3) => _ = line.pop_back(),
                Some(3) => line.extend(line.back().cloned()),
                Some(4) if len > 5 => line.swap(len - 1, len - 5),
                // Cut short inside its header.
                Some(5) => line.iter_mut().next_back().into_iter().for_each(|frame| frame.truncate(len % 4)),
                // The line holds up to sixteen frames.
                Some(6..12) if len < 16 => continue,
                _ => {}
            }
            if let Some(frame) = line.pop_front() {
                let _ = ends[1 - side].handle_frame(now, &frame);
            }
        }
        while let Some(packet) = ends[1].poll_packet() {
            let number = u32::from_be_bytes(packet[36..40].try_into().expect("four bytes"));
            assert_eq!(packet, sent[number as usize]);
            let latest = arrived.last().copied();
            assert!(arrived.insert(number), "{number} twice");
            let in_order = latest.is_none_or(|latest| latest < number);
            assert!(in_order || setting & 8 == 0, "{latest:?}, then {number}");
        }
    }
    if repeats && setting & 0x10 == 0 {
        let counters = ends[0].counters();
        let given_up: u64 = counters.iter().filter(|(name, _)| *name == "blocks-given-up").map(|(_, n)| n).sum();
        assert!(arrived.len() + given_up as usize >= sent.len());
    }
    assert!(ends.iter().all(|end| end.poll_timeout().is_none() && end.demand(now) == Demand::Nothing));
});
