//! On a line that is blocked again and again: no sums, and shorter frames.

use base::Rng;

use super::*;
use crate::arq::frame::{Fields, Frame, Progress};
use crate::arq::tests::pair::Pair;
use crate::arq::{Copies, Core, Detection};

const STEPS: u32 = 4000;

/// Packets of 60 bytes over a line that loses runs of frames, of so many on average, with as many between them; and how many came out.
fn carry(config: Config, run: f64) -> (Pair<Class>, usize) {
    let (mut pair, mut rng, mut is_blocked) = (pair(config, 20), Rng::named(1, "blockages"), false);
    let mut fate = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        // Both directions have one obstacle.
        if side == 0 && rng.unit() < 1.0 / run {
            is_blocked = !is_blocked;
        }
        if is_blocked {
            line.pop_back();
            line.push_back(None);
        }
    };
    let packets = (0..STEPS).map(|number| packet(1, number, 60));
    let arrived = pair.carry(packets, STEPS, &mut fate).len();
    (pair, arrived)
}

#[test]
fn what_blocks_a_line_is_no_reason_for_sums() {
    let (pair, arrived) = carry(Config::default(), 40.0);
    assert!(pair.ends[0].core.is_blocked_often() && arrived > 1400, "{arrived}");
    assert!(pair.count(0, "frames-retransmitted") > u64::from(STEPS) / 3);
    // None but before anybody knew.
    assert!(pair.count(0, "frames-repair") < 200, "{}", pair.count(0, "frames-repair"));
    assert!(pair.ends[0].demand(pair.now) > Demand::Nothing, "a line that may be open is never idle");
}

#[test]
fn losses_one_by_one_are_no_blockage() {
    let (pair, arrived) = carry(Config::default(), 2.0);
    assert!(!pair.ends[0].core.is_blocked_often() && arrived > 1400, "{arrived}");
    assert_eq!(pair.ends[0].core.length.room(), pair.ends[0].core.length.full);
}

/// A line of 100 bytes a frame is too short for parts, so this one has longer ones.
#[test]
fn frames_are_shorter_between_blockages_and_full_again_after_them() {
    let line = LineLimits::new(1500, Some(base::Rate::from_bps(800_000)));
    let mut core = Core::new(Order::Flow, Copies::default());
    core.set_line(&line, 1400, 1024, true);
    let told = |core: &mut Core<Copies>, loss: u8, in_runs: bool| {
        let mut frame = Vec::new();
        let progress = Progress { next: 0, heard: 0, loss, in_runs };
        Fields::control(1).emit(0, progress, true, &mut frame);
        let frame = Frame::parse(&frame).unwrap();
        let heard = core.heard(LineId::FIRST, &frame);
        core.handle_report(&frame, heard);
    };
    told(&mut core, 30, true);
    assert_eq!((core.length.room(), core.is_blocked_often()), (350, true));
    // As many bytes may be in flight as before, and a silent sender speaks at once.
    assert_eq!(Detection::pause(&core), core.length.frame_time());
    told(&mut core, 30, false);
    assert_eq!((core.length.room(), core.is_blocked_often()), (1400, false));
    told(&mut core, 30, true);
    // What is told of the line again changes nothing about that.
    core.set_line(&line, 1400, 1024, true);
    assert_eq!(core.length.room(), 350);
}

#[test]
fn who_says_how_long_frames_are_is_obeyed() {
    let config = Config { frame_payload: Some(60.try_into().unwrap()), ..Config::default() };
    let (pair, _) = carry(config, 40.0);
    assert!(pair.ends[0].core.is_blocked_often());
    assert_eq!(pair.ends[0].core.length.room(), 60);
}
