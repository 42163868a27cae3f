//! What endpoints say keeps packets from leaving: nothing on an open link, repairs and a full window on one that was blocked.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate};
use longhaul_link::{Demand, LineLimits, Obstacle, Protocol, Treatment};

/// A frame of up to 500 bytes takes a millisecond, and 50 more to arrive.
const LINE: LineLimits = LineLimits::new(500, Some(Rate::from_bps(4_000_000)));
const DELAY: usize = 50;

/// What is in the way in each millisecond, between two ends of which the first always has packets to send and all frames of `blocked` are lost;
/// and whether a packet left.
fn obstacles(
    protocol: &Protocol,
    millis: u64,
    blocked: core::ops::Range<u64>,
) -> Vec<(Option<Obstacle>, bool)> {
    let mut ends = [protocol.build(&LINE), protocol.build(&LINE)];
    let mut lines: [VecDeque<Option<Vec<u8>>>; 2] = Default::default();
    let mut seen = Vec::new();
    for milli in 1..=millis {
        let now = Instant::ZERO + Duration::from_millis(milli);
        let mut left = false;
        for flow in 0_u8.. {
            if !ends[0].has_room(Treatment::Reliable) {
                break;
            }
            let mut packet = vec![0; 400];
            (packet[0], packet[15]) = (0x45, flow.wrapping_add(milli as u8));
            ends[0].offer(now, Packet::from_slice(&packet), Treatment::Reliable).unwrap();
            left = true;
        }
        for (end, line) in ends.iter_mut().zip(&mut lines) {
            if end.poll_timeout().is_some_and(|due| due <= now) {
                end.handle_timeout(now);
            }
            let mut frame = Vec::new();
            let info = (end.demand(now) > Demand::Nothing).then(|| end.poll_frame(now, &mut frame)).flatten();
            if info.is_some_and(|info| info.late_len > 0) {
                end.seal_frame(now, &mut frame);
            }
            line.push_back(info.filter(|_| !blocked.contains(&milli)).map(|_| frame));
        }
        for (line, end) in lines.iter_mut().zip(ends.iter_mut().rev()) {
            if line.len() > DELAY
                && let Some(frame) = line.pop_front().flatten()
            {
                let _ = end.handle_frame(now, &frame);
            }
        }
        while ends[1].poll_packet().is_some() {}
        seen.push((ends[0].obstacle(), left));
    }
    seen
}

/// The longest time in milliseconds in which the window was full and no packet left.
fn longest_full(seen: &[(Option<Obstacle>, bool)]) -> usize {
    let runs = seen.split(|(obstacle, left)| *obstacle != Some(Obstacle::Window) || *left);
    runs.map(<[_]>::len).max().unwrap_or(0)
}

fn protocol(text: &str) -> Protocol {
    #[derive(serde::Deserialize)]
    struct Table {
        protocol: Protocol,
    }
    base::config::parse::<Table>("p.toml", &format!("protocol = {text}")).unwrap().protocol
}

fn all(more: &str) -> [(&'static str, Protocol); 4] {
    let of = |name| (name, protocol(&format!("{{ {name} = {{ {more} }} }}")));
    ["cotmll-thesis", "cotmll", "slacp", "coded"].map(of)
}

#[test]
fn nothing_is_in_the_way_on_an_open_link() {
    for (name, protocol) in all("") {
        let seen = obstacles(&protocol, 3000, 0..0);
        assert!(seen.iter().all(|(obstacle, _)| obstacle.is_none()), "{name}");
    }
}

/// Nothing is ever in the way where nothing is repeated.
#[test]
fn plain_never_waits_for_anything_but_its_turn() {
    let seen = obstacles(&Protocol::default(), 3000, 1000..2000);
    assert!(seen.iter().all(|(obstacle, _)| obstacle.is_none()));
}

/// 400 ms are less than any window here, so the first thing in the way is what was lost.
#[test]
fn after_a_blockage_repairs_are_in_the_way() {
    for (name, protocol) in all("") {
        let seen = obstacles(&protocol, 4000, 1000..1400);
        let repairs = |from: usize, to: usize| {
            seen[from..to].iter().filter(|(obstacle, _)| *obstacle == Some(Obstacle::Repair)).count()
        };
        assert!(repairs(0, 1400) == 0 && repairs(3500, 4000) == 0, "{name}");
        assert!(repairs(1400, 3500) > 200, "{name}: {}", repairs(1400, 3500));
    }
}

/// A window of 40 frames is filled in 40 of 100 ms.
#[test]
fn a_small_window_is_full_for_less_than_a_round_trip() {
    for (name, protocol) in all("window = 40") {
        let longest = longest_full(&obstacles(&protocol, 3000, 0..0));
        assert!((20..=110).contains(&longest), "{name}: {longest} ms");
    }
}

#[test]
fn a_blocked_link_keeps_the_window_full() {
    for (name, protocol) in all("window = 40") {
        let longest = longest_full(&obstacles(&protocol, 6000, 1000..4000));
        assert!(longest > 2500, "{name}: {longest} ms");
    }
}
