//! When there is something to tell, and what is told.

use super::*;

fn frame_of(end: &mut Wide, now: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    end.poll_frame(now, &mut out).unwrap();
    out
}

#[test]
fn a_frame_is_worth_a_report_after_five_milliseconds_or_at_once() {
    // 2 ms are two frames here.
    let line = LineLimits::new(100, Some(Rate::from_bps(600_000)));
    let (mut a, mut b) = (Wide::new(Config::default(), &line), Wide::new(Config::default(), &line));
    let at = |ms: u64| Instant::ZERO + MS * ms;
    assert_eq!(b.demand(at(0)), Demand::Nothing);
    for (ms, expected) in [(1, Demand::Nothing), (2, Demand::Fresh)] {
        a.offer(at(ms), packet(1, 0, 60), Treatment::default()).unwrap();
        let frame = frame_of(&mut a, at(ms));
        b.handle_frame(at(ms), &frame).unwrap();
        assert_eq!(b.demand(at(ms)), expected);
        assert_eq!(b.poll_timeout(), (ms == 1).then(|| at(6)));
    }
    assert_eq!((frame_of(&mut b, at(3)).len(), b.demand(at(1000))), (TRAILER_LEN, Demand::Nothing));
    a.offer(at(10), packet(1, 0, 60), Treatment::default()).unwrap();
    b.handle_frame(at(10), &frame_of(&mut a, at(10))).unwrap();
    assert_eq!([at(14), at(15)].map(|now| b.demand(now)), [Demand::Nothing, Demand::Fresh]);
    b.handle_timeout(at(14));
    assert_eq!(b.poll_timeout(), Some(at(15)));
    b.handle_timeout(at(15));
    assert_eq!((b.poll_timeout(), b.demand(at(15))), (None, Demand::Fresh));
}

/// With more gaps than a report has room for, the next goes on, and in the end the sender knows of all.
#[test]
fn what_does_not_fit_is_told_later() {
    let mut pair = pair(Config::default(), 1);
    // Every other frame of 200 is lost.
    let mut n = 0;
    for number in 0..200 {
        let end = &mut pair.ends[0];
        end.offer(pair.now, packet(1, number, 60), Treatment::default()).unwrap();
        let frame = frame_of(end, pair.now);
        n += 1;
        if n % 2 == 0 {
            pair.ends[1].handle_frame(pair.now, &frame).unwrap();
        }
    }
    let mut reports = 0;
    while pair.ends[1].demand(pair.now + MS * 5) == Demand::Fresh {
        let frame = frame_of(&mut pair.ends[1], pair.now);
        assert!(frame.len() <= LINE.frame_limit());
        pair.ends[0].handle_frame(pair.now, &frame).unwrap();
        reports += 1;
    }
    // 86 bytes have room for 42 gaps of two bytes.
    assert_eq!(
        (reports, pair.ends[0].core.sender.flags()),
        (3, 99),
        "all but the latest three transmissions"
    );
    assert_eq!(pair.count(0, "acks-invalid"), 0);
}

/// An old report that was overtaken tells nothing and is no mistake.
#[test]
fn reports_may_overtake_each_other() {
    let (mut a, mut b) = (Wide::new(Config::default(), &LINE), Wide::new(Config::default(), &LINE));
    let now = Instant::ZERO;
    let mut reports = Vec::new();
    for number in 0..5 {
        a.offer(now, packet(1, number, 60), Treatment::default()).unwrap();
        b.handle_frame(now, &frame_of(&mut a, now)).unwrap();
        reports.push(frame_of(&mut b, now));
    }
    for report in reports.iter().rev() {
        a.handle_frame(now, report).unwrap();
        assert_eq!(a.in_flight(), 0);
    }
    assert!(a.counters().contains(&("acks-invalid", 0)));
}
