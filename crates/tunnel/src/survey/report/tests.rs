//! Reports between two ends, and what they tell.

use super::*;

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn two_ends_learn_round_trip_and_what_arrived() {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    assert_eq!((near.poll_timeout(), near.poll_report(ms(1000))), (None, None));
    let mut samples = Vec::new();
    for round in 1..4 {
        // Of ten datagrams nine arrive, 300 ms later; the answer takes 200 ms.
        let now = 1000 * round;
        near.on_sent(10, 10_000);
        near.on_traffic(ms(now - 100));
        (0..9).for_each(|_| far.on_received(ms(1), 1000, 0));
        far.on_traffic(ms(now - 100));
        let report = near.poll_report(ms(now)).unwrap();
        far.handle_report(ms(now + 300), &report);
        let answer = far.poll_report(ms(now + 350)).unwrap();
        samples.extend(near.handle_report(ms(now + 550), &answer));
        assert_eq!(near.handle_report(ms(now + 560), &answer), None, "the same again is no news");
    }
    let [first, second, _] = samples[..] else { panic!("{} samples", samples.len()) };
    assert_eq!((first.span, first.delay, first.sent_at), (None, 300_000_000, ms(1000)));
    assert_eq!(second.round_trip, Duration::from_millis(500));
    let totals = |datagrams| Totals { datagrams, bytes: datagrams * 1000 };
    let second_span = second.span.unwrap();
    assert_eq!((second_span.sent, second_span.received), (totals(10), totals(9)));
    assert_eq!(second_span.received_in, Duration::from_secs(1));
}

#[test]
fn what_was_lost_in_a_silence_is_no_part_of_what_left() {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    let mut samples = Vec::new();
    for (round, skipped) in [(1, 0), (2, 0), (3, 50), (4, 0)] {
        let now = 1000 * round;
        near.on_sent(100, 100_000);
        near.on_traffic(ms(now - 100));
        // One in a hundred is lost besides.
        far.on_received(ms(now - 300), 1000, skipped);
        (skipped + 1..99).for_each(|at| far.on_received(ms(now - 300 + at), 1000, 0));
        let report = near.poll_report(ms(now)).unwrap();
        far.handle_report(ms(now + 300), &report);
        let answer = far.poll_report(ms(now + 350)).unwrap();
        samples.extend(near.handle_report(ms(now + 550), &answer));
    }
    let [_, second, third, fourth] = samples[..] else { panic!("{} samples", samples.len()) };
    assert_eq!((second.silence, fourth.silence), (Silence::default(), Silence::default()));
    // From 1798 to 2700 ms of the other end's time.
    let time = Duration::from_micros(902_000 * 50 / 51 / 100 * 100);
    assert_eq!(third.silence, Silence { datagrams: 50, time });
    let (whole, heard) = (third.span.unwrap(), third.span.unwrap().without(third.silence));
    assert_eq!((whole.sent.datagrams, whole.received.datagrams), (100, 49));
    assert_eq!((heard.sent, heard.received), (Totals { datagrams: 50, bytes: 50_000 }, whole.received));
    let left = Duration::from_secs(1).saturating_sub(time);
    assert_eq!((heard.sent_in, heard.received_in), (left, left));
    assert_eq!(second.span.unwrap().without(second.silence), second.span.unwrap());
    // No more than was lost at all.
    let two = Silence { datagrams: 2, time };
    assert_eq!(second.span.unwrap().without(two).sent.datagrams, 99);
}

#[test]
fn what_is_not_believed_is_told_with_what_follows() {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    let mut samples = Vec::new();
    for (round, takes) in [(1, 300), (2, 10), (3, 300)] {
        let now = 1000 * round;
        near.on_sent(10, 10_000);
        near.on_traffic(ms(now - 100));
        (0..10).for_each(|_| far.on_received(ms(1), 1000, 0));
        let report = near.poll_report(ms(now)).unwrap();
        far.handle_report(ms(now + takes), &report);
        let answer = far.poll_report(ms(now + 400)).unwrap();
        let sample = near.handle_report(ms(now + 700), &answer).unwrap();
        if takes == 10 {
            near.disbelieve();
        }
        samples.push(sample.span.map(|span| (span.sent.datagrams, span.received_in.as_millis())));
    }
    assert_eq!(samples, [None, Some((10, 710)), Some((20, 2000))]);
}

#[test]
fn an_answer_is_not_answered() {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    near.restart();
    let report = near.poll_report(ms(1000)).unwrap();
    assert_eq!(report.len(), 8);
    assert_eq!(far.handle_report(ms(1100), &report), None);
    let answer = far.poll_report(ms(1200)).unwrap();
    assert_eq!(near.handle_report(ms(1300), &answer).unwrap().round_trip, Duration::from_millis(200));
    assert_eq!((near.poll_timeout(), far.poll_timeout()), (None, None));
}

/// One end's stamps of a second of traffic, each with whether it came in a report.
fn stamps(near: &mut Reports, from: u64) -> Vec<(u64, Vec<u8>)> {
    let mut stamps = Vec::new();
    for now in from..from + 1000 {
        near.on_sent(1, 1000);
        near.on_traffic(ms(now));
        stamps.extend(near.poll_report(ms(now)).map(|body| (now, body)));
    }
    stamps
}

fn heard(far: &Reports) -> u64 {
    far.told.map_or(0, |told| told.stamp / 1_000_000)
}

#[test]
fn stamps_that_leave_alone_are_answered_only_while_reports_are_late() {
    for reports_pass in [true, false] {
        let (mut near, mut far) = (Reports::new(None), Reports::new(None));
        // With something to answer, so that reports are longer than stamps.
        far.on_traffic(ms(900));
        near.handle_report(ms(990), &far.poll_report(ms(900)).unwrap());
        let mut answered = Vec::new();
        for (now, body) in stamps(&mut near, 1000) {
            if reports_pass || body.len() == STAMP_LEN {
                far.handle_report(ms(now + 300), &body);
            }
            if far.poll_report(ms(now + 305)).is_some() {
                answered.push(heard(&far));
            }
        }
        assert!((9..=11).contains(&answered.len()), "{answered:?}");
        // Reports leave ten times a second, and so do answers.
        let are_reports = answered.iter().all(|at| at % 100 == 0);
        assert_eq!(are_reports, reports_pass, "{answered:?}");
        assert!(answered.is_sorted());
    }
}

#[test]
fn stamps_take_little_of_the_line_and_keep_no_step_with_anything() {
    let count = |bps| {
        let mut near = Reports::new(Some(Rate::from_bps(bps)));
        stamps(&mut near, 1000).len() as u64
    };
    // Of a line of 2 Mbit/s half of a hundredth, besides that much for reports; none on slow lines.
    assert_eq!([count(64_000), count(1_000_000)], [1, 10]);
    assert!((16..=24).contains(&count(2_000_000)) && (75..=100).contains(&count(50_000_000)));
    let mut near = Reports::new(None);
    let times: Vec<u64> = stamps(&mut near, 1000).iter().map(|stamp| stamp.0).collect();
    let spaces: std::collections::BTreeSet<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(spaces.len() >= 4, "{spaces:?}");
}

/// When reports and stamps leave of two bursts, of 10 and of 50 ms.
fn told_of_bursts(mut near: Reports) -> Vec<u64> {
    near.on_traffic(ms(100));
    assert!(near.poll_report(ms(100)).is_some(), "the first is not waited for");
    let mut left = Vec::new();
    for now in 1000..3000 {
        if matches!(now, 1000..1010 | 2000..2050) {
            near.on_sent(1, 1000);
            near.on_traffic(ms(now));
        }
        left.extend(near.poll_report(ms(now)).map(|_| now));
    }
    left
}

/// A report with the first datagram, stamps while the burst lasts, the last one behind its end, and a report of the rest.
#[test]
fn nothing_is_told_of_a_silence() {
    let left = told_of_bursts(Reports::new(None));
    let (first, second) = left.split_at(left.partition_point(|at| *at < 2000));
    let [1000, stamp, 1100] = first[..] else { panic!("{left:?}") };
    assert!((1010..=1015).contains(&stamp), "{left:?}");
    let [2000, stamps @ .., 2100] = second else { panic!("{left:?}") };
    assert!((4..=5).contains(&stamps.len()) && stamps.iter().all(|at| *at < 2065), "{left:?}");
}

#[test]
fn where_nobody_looks_for_a_rate_a_burst_is_reported_once() {
    let mut near = Reports::new(None);
    near.take_time();
    assert_eq!(told_of_bursts(near), [1020, 2020, 2120]);
}

/// When each of two ends reports of a burst from the first to the second every 1.1 s, which is answered by a datagram of traffic; of each burst `lost`
/// datagrams do not arrive. Nobody looks for a rate.
fn reported_bursts(lost: u64) -> [Vec<u64>; 2] {
    let mut ends = [Reports::new(None), Reports::new(None)];
    let (mut left, mut arriving): ([Vec<u64>; 2], _) = Default::default();
    ends.iter_mut().for_each(Reports::take_time);
    ends[0].on_traffic(ms(0));
    for now in 1..20_000_u64 {
        if now % 1100 == 0 {
            (0..10).for_each(|_| ends[0].on_sent(1, 1000));
            ends[0].on_traffic(ms(now));
            (lost..10).for_each(|at| ends[1].on_received(ms(now), 1000, if at == lost { lost } else { 0 }));
            ends[1].on_traffic(ms(now));
        }
        let come: Vec<(usize, Vec<u8>)> = core::mem::take(&mut arriving);
        for (to, body) in come {
            ends[to].on_received(ms(now), body.len() as u64, 0);
            ends[to].handle_report(ms(now), &body);
        }
        for (at, end) in ends.iter_mut().enumerate() {
            if let Some(body) = end.poll_report(ms(now)) {
                end.on_sent(1, body.len() as u64);
                left[at].push(now);
                arriving.push((1 - at, body));
            }
        }
    }
    left.map(|times| times.into_iter().filter(|now| *now >= 10_000).collect())
}

#[test]
fn where_nobody_looks_for_a_rate_reports_stand_in_for_keep_alives_while_all_arrives() {
    for times in reported_bursts(0) {
        assert!((9..=10).contains(&times.len()), "one for each burst: {times:?}");
        assert!(times.windows(2).all(|two| two[1] - two[0] < 1200), "{times:?}");
    }
    // Where one of each burst is lost, what is told of it is told soon.
    let [calm, lossy] =
        [0, 1].map(|lost| reported_bursts(lost)[0].iter().map(|at| at % 1100).collect::<Vec<_>>());
    assert!(
        calm.iter().all(|after| *after >= 800) && lossy.iter().all(|after| *after <= 150),
        "{calm:?} {lossy:?}"
    );
}

/// An end with all arrived, and the stamp that it sends then.
fn calm() -> (Reports, Vec<u8>) {
    let mut near = Reports::new(None);
    near.take_time();
    near.is_calm = true;
    near.on_traffic(ms(100));
    let body = near.poll_report(ms(100)).unwrap();
    (near, body)
}

#[test]
fn an_answer_waits_only_while_it_may_and_nothing_is_missing() {
    let due = |body: &[u8], before: u64, after: u64| {
        let mut far = Reports::new(None);
        far.on_traffic(ms(10));
        far.poll_report(ms(10));
        far.on_received(ms(200), 1000, before);
        far.handle_report(ms(200), body);
        far.on_received(ms(300), 1000, after);
        far.poll_timeout().unwrap()
    };
    let (mut near, body) = calm();
    assert_eq!(due(&body, 0, 0), ms(2200));
    assert_eq!(due(&body, 1, 0), ms(110), "something that left before it has not come");
    assert_eq!(due(&body, 0, 1), ms(110), "something that left after it has not");
    near.set_rate(None);
    near.on_traffic(ms(250));
    let body = near.poll_report(ms(300)).unwrap();
    assert_eq!(due(&body, 0, 0), ms(110), "whoever looks for a rate does not wait");
}

/// An end that takes its time is late with nothing that somebody waits for, and takes none once something may be lost.
#[test]
fn who_takes_time_hurries_for_others_and_for_losses() {
    let late = |near: &Reports| near.due().map(|due| (due.from, due.by));
    let (mut near, _) = calm();
    near.on_traffic(ms(150));
    assert_eq!(late(&near), Some((ms(1050), ms(1070))));
    let mut seeker = Reports::new(None);
    seeker.on_traffic(ms(140));
    near.handle_report(ms(160), &seeker.poll_report(ms(140)).unwrap());
    assert_eq!(late(&near), Some((ms(200), ms(200))), "it looks for a rate");
    let (mut near, body) = calm();
    near.on_traffic(ms(150));
    let mut far = Reports::new(None);
    far.handle_report(ms(160), &body);
    // The first of all, which says nothing of what arrived since.
    near.handle_report(ms(210), &far.poll_report(ms(160)).unwrap());
    assert_eq!(late(&near), Some((ms(230), ms(230))));
}

/// That an answer may wait is no part of the stamp, neither for whoever answers it nor for whoever gets the answer.
#[test]
fn a_stamp_whose_answer_may_wait_is_a_time() {
    let (mut near, body) = calm();
    let mut far = Reports::new(None);
    far.handle_report(ms(150), &body);
    far.on_traffic(ms(160));
    let answer = far.poll_report(ms(160)).unwrap();
    assert_eq!(answer[8..16], 100_000_000_u64.to_le_bytes());
    let sample = near.handle_report(ms(210), &answer).unwrap();
    assert_eq!((sample.sent_at, sample.round_trip), (ms(100), Duration::from_millis(100)));
    // An older version gives it back as it came.
    let (mut near, body) = calm();
    let mut answer = answer;
    answer[8..16].copy_from_slice(&body[..8]);
    assert!(near.handle_report(ms(210), &answer).is_some());
}

#[test]
fn reports_are_missed_and_stamps_that_leave_alone_are_not() {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    let stamps = stamps(&mut near, 1000);
    far.handle_report(ms(1300), &stamps[0].1);
    near.handle_report(ms(1600), &far.poll_report(ms(1301)).unwrap()).unwrap();
    let (_, last) = stamps.last().unwrap();
    far.handle_report(ms(2300), last);
    let sample = near.handle_report(ms(2600), &far.poll_report(ms(2301)).unwrap()).unwrap();
    assert!((8..=9).contains(&sample.missed), "{}", sample.missed);
}

#[test]
fn reports_take_a_hundredth_of_a_slow_line() {
    let mut slow = Reports::new(Some(Rate::from_bps(9600)));
    slow.on_traffic(ms(1));
    assert!(slow.poll_report(ms(1)).is_some(), "the first is not waited for");
    slow.on_traffic(ms(2));
    assert!(slow.poll_timeout().unwrap() > ms(10_000));
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        let mut reports = Reports::new(None);
        reports.on_traffic(ms(1000));
        reports.poll_report(ms(1000));
        reports.handle_report(ms(2000), &body);
        reports.poll_report(ms(3000));
    }
}
