//! What an idle line carries while frames are lost.

use super::*;

/// Ends that have lost every fifth frame for a while, and then none more.
fn lossy() -> Pair<Wide> {
    let mut pair = pair(Config::default(), 10);
    let mut n = 0;
    let mut losing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        n += u32::from(side == 0);
        if side == 0 && n % 5 == 0 {
            line.pop_back();
            line.push_back(None);
        }
    };
    pair.carry((0..300).map(|n| packet(1, n, 60)), 600, &mut losing);
    assert_eq!(pair.ends[0].in_flight(), 0);
    pair
}

/// In how many of the 20 steps until the next packet is acknowledged it is sent, and before how many of them that is urgent.
fn transmissions(pair: &mut Pair<Wide>) -> (u64, usize) {
    pair.ends[0].offer(pair.now, packet(1, 0, 60), Treatment::default()).unwrap();
    let (before, mut urgent) = (pair.ends[0].core.transmissions(), 0);
    for _ in 0..20 {
        urgent += usize::from(pair.ends[0].demand(pair.now + MS) == Demand::Fresh);
        pair.step(&mut intact);
    }
    (pair.ends[0].core.transmissions() - before, urgent)
}

#[test]
fn frames_are_copied_while_frames_are_lost() {
    let (sent, urgent) = transmissions(&mut lossy());
    // About a fifth is lost, so five transmissions or six leave less than one in a thousand.
    assert!((5..=6).contains(&sent) && urgent as u64 == sent, "{urgent} of {sent}");
    // On a line without losses it is sent once.
    assert_eq!(transmissions(&mut pair(Config::default(), 10)), (1, 1));
}

/// Copies go to an idle line only: new data goes before.
#[test]
fn data_goes_before_copies() {
    let mut pair = lossy();
    let fillers = pair.count(0, "frames-filler");
    pair.carry((0..100).map(|n| packet(1, n, 60)), 100, &mut intact);
    assert_eq!(pair.count(0, "frames-filler"), fillers);
}

/// Without a rate nobody knows when a line is idle.
#[test]
fn a_line_without_a_rate_carries_no_copies() {
    for (rate, demand) in [(None, Demand::Nothing), (Some(Rate::from_bps(800_000)), Demand::Fresh)] {
        let mut end = Wide::new(Config::default(), &LineLimits::new(100, rate));
        let mut told = Vec::new();
        Fields::control(1).emit(0, Progress { next: 0, heard: 0, loss: 50, in_runs: false }, true, &mut told);
        end.handle_frame(Instant::ZERO, &told).unwrap();
        end.offer(Instant::ZERO, packet(1, 0, 60), Treatment::default()).unwrap();
        end.poll_frame(Instant::ZERO, &mut Vec::new());
        assert_eq!(end.demand(Instant::ZERO), demand);
    }
}
