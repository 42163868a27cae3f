//! The controller on paths that are fluids: what it finds, what it does to them meanwhile, and what it tells.

mod path;

use super::*;
use crate::survey::report::Totals;
use path::{Path, seconds};

const fn mbit(count: u64) -> Rate {
    Rate::from_bps(count * 1_000_000)
}

#[track_caller]
fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= 0.01 * expected, "{what}: {value}, not {expected}");
}

/// For so many seconds the path is used, and the queue is the one that is kept.
#[track_caller]
fn assert_is_used(path: &mut Path, time: f64, part: f64) {
    let (queue, arrived) = path.pass(time);
    let carried = path.carries * (1.0 - path.loses) / 1e6;
    assert!(arrived >= part * carried && arrived < 1.005 * carried, "{arrived} of {carried} Mbit/s");
    let capacity = path.believed() * 1e6 / path.carries;
    assert!((0.99..1.03).contains(&capacity), "{capacity} of what it carries");
    assert!((0.018..0.035).contains(&queue), "a queue of {queue} s");
}

/// The only finding so far, and after how many seconds.
#[track_caller]
fn told(path: &mut Path) -> (f64, Finding) {
    let told = core::mem::take(&mut path.findings);
    let [(at, finding)] = told[..] else { panic!("{told:?}") };
    (at.as_secs_f64(), finding)
}

#[test]
fn what_an_idle_path_carries_is_found_in_five_seconds_or_three_if_there_are_trains() {
    for (has_trains, time) in [(false, 4.5), (true, 3.0)] {
        let mut path = Path::new(Aim::Find, 10.0);
        path.has_trains = has_trains;
        path.pass(time);
        assert!((9.5..10.05).contains(&path.believed()), "{}", path.believed());
        path.pass(6.0);
        assert!(path.controller.experiments() <= 3, "{}", path.controller.experiments());
        assert_is_used(&mut path, 30.0, 0.997);
        let (at, Finding::Found { measured }) = told(&mut path) else { panic!("it was not told") };
        assert!((13.0..16.0).contains(&at), "{at}");
        assert_near(measured.as_bps() as f64, 10e6, "what is told");
    }
}

#[test]
fn a_path_that_carries_another_rate_is_followed() {
    for has_trains in [false, true] {
        let mut path = Path::new(Aim::Find, 10.0);
        path.has_trains = has_trains;
        path.pass(20.0);
        for (carries, within) in [(4.0, 1.0), (12.0, 2.0), (1.0, 2.0)] {
            path.findings.clear();
            path.carries = carries * 1e6;
            path.pass(within);
            assert_near(path.believed(), carries, "the capacity at once");
            path.pass(8.0);
            assert_is_used(&mut path, 20.0, 0.97);
            let (_, Finding::Found { measured }) = told(&mut path) else { panic!("it was not told") };
            assert!((measured.as_bps() as f64 / carries / 1e6 - 1.0).abs() < 0.04, "{measured}");
        }
    }
}

#[test]
fn a_rate_that_is_known_is_kept_unless_the_path_carries_less() {
    let mut fits = Path::new(Aim::Known(mbit(10)), 20.0);
    let (queue, arrived) = fits.pass(30.0);
    assert!(queue == 0.0 && arrived > 9.97 && fits.believed() == 10.0, "{queue} s, {arrived} Mbit/s");
    assert!(fits.findings.is_empty() && fits.controller.experiments() == 0);
    let mut too_fast = Path::new(Aim::Known(mbit(20)), 10.0);
    too_fast.pass(30.0);
    assert_near(too_fast.believed(), 10.0, "the capacity");
    let (at, Finding::TooFast { measured, queueing, lost }) = told(&mut too_fast) else { panic!() };
    assert!((11.0..13.0).contains(&at), "{at}");
    assert_near(measured.as_bps() as f64, 10e6, "what is told");
    assert!((700..=900).contains(&queueing.as_millis()) && lost == 0, "{queueing:?}, {lost} %");
    let mut overflows = Path::new(Aim::Known(mbit(20)), 10.0);
    overflows.holds = 0.05;
    overflows.pass(30.0);
    let (_, Finding::TooFast { queueing, lost, .. }) = told(&mut overflows) else { panic!() };
    assert!(queueing.as_millis() <= 50 && (40..=60).contains(&lost), "{queueing:?}, {lost} %");
}

/// What sending less does not bring down is the channel's; it counts as such for no longer than it lasts.
#[test]
fn losses_of_the_channel_cost_no_rate() {
    for loses in [0.02, 0.2, 0.5] {
        let mut path = Path::new(Aim::Find, 10.0);
        path.loses = loses;
        path.pass(30.0);
        assert!((path.controller.channel_loss() - loses).abs() < 0.01, "{}", path.controller.channel_loss());
        assert_is_used(&mut path, 20.0, 0.98);
        path.loses = 0.0;
        path.pass(5.0);
        assert!(path.controller.channel_loss() < 0.005, "{}", path.controller.channel_loss());
    }
}

/// Nothing queues at a policer: losses alone tell that too much is sent.
#[test]
fn what_a_policer_drops_is_our_doing() {
    for has_trains in [false, true] {
        let mut path = Path::new(Aim::Find, 10.0);
        (path.holds, path.has_trains) = (0.002, has_trains);
        path.pass(10.0);
        let sent = path.sent;
        let (_, arrived) = path.pass(50.0);
        let lost = 1.0 - arrived * 50.0e6 / 8000.0 / (path.sent - sent);
        assert!(arrived > 9.7 && lost < 0.04, "{arrived} Mbit/s, {lost} lost");
        assert!(path.controller.channel_loss() < 0.01, "{}", path.controller.channel_loss());
    }
}

/// A queue that sending less does not empty is none, where nobody else is known to be there.
#[test]
fn a_path_that_became_longer_is_used_as_before() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.pass(20.0);
    path.others = (0.0, 0.1);
    let made = path.controller.experiments();
    path.pass(2.0);
    assert_eq!(path.controller.experiments(), made + 1);
    assert!(path.rate() > 9.0 && path.controller.queue.is_accepted());
    let (queue, arrived) = path.pass(20.0);
    assert!(arrived > 9.7 && (0.11..0.14).contains(&queue), "{arrived} Mbit/s, {queue} s");
}

/// Trains show that the bottleneck carries more than is left for us; when it is all ours again, that is found out.
#[test]
fn a_bottleneck_is_shared_with_those_who_fill_it() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.has_trains = true;
    path.pass(10.0);
    path.others = (6e6, 0.15);
    path.pass(5.0);
    assert!(path.controller.sharing.is_sure(path.now), "the queue is theirs");
    let (_, arrived) = path.pass(60.0);
    assert!((3.4..4.1).contains(&arrived), "{arrived} Mbit/s");
    assert!(path.believed() <= 5.0, "at most as much as one other: {}", path.believed());
    path.others = (0.0, 0.0);
    path.pass(2.0);
    assert_near(path.believed(), 5.0, "while it may still be theirs");
    path.pass(5.0);
    assert!(path.believed() > 9.9 && !path.controller.sharing.is_found(path.now), "{}", path.believed());
}

/// Where no trains come back, others are only guessed at: their queue is taken for the path, and what passes is used.
#[test]
fn without_trains_what_others_leave_is_used() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.pass(10.0);
    path.others = (6e6, 0.15);
    path.pass(10.0);
    let (queue, arrived) = path.pass(60.0);
    assert!((3.8..4.2).contains(&arrived) && queue < 0.4, "{arrived} Mbit/s, {queue} s");
    path.others = (0.0, 0.0);
    path.pass(8.0);
    let (_, arrived) = path.pass(20.0);
    assert!(arrived > 9.7, "{arrived} Mbit/s");
}

/// Whoever is among many loses as they do, and is heard again when they have gone.
#[test]
fn a_crowd_leaves_a_share_and_not_nothing() {
    for (has_trains, share) in [(true, 0.002..0.1), (false, 0.1..0.4)] {
        let mut path = Path::new(Aim::Find, 10.0);
        path.has_trains = has_trains;
        path.pass(10.0);
        path.others = (40e6, 0.15);
        path.pass(5.0);
        assert_eq!(path.controller.sharing.is_sure(path.now), has_trains);
        let (_, arrived) = path.pass(30.0);
        assert!(share.contains(&arrived), "{arrived} Mbit/s");
        path.others = (0.0, 0.0);
        path.pass(10.0);
        assert_is_used(&mut path, 20.0, 0.98);
    }
}

/// A line that is blocked loses all for a while: that is no reason to send less afterwards.
#[test]
fn a_gap_changes_nothing() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.pass(30.0);
    let (made, believed) = (path.controller.experiments(), path.believed());
    for _ in 0..5 {
        path.loses = 1.0;
        path.pass(0.3);
        path.loses = 0.0;
        path.pass(1.7);
    }
    assert_eq!(path.controller.experiments(), made);
    assert_near(path.believed(), believed, "the capacity");
    assert_eq!(path.controller.channel_loss(), 0.0);
}

#[test]
fn who_sends_little_learns_nothing_wrong() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.pass(20.0);
    path.has = 1e6;
    path.pass(60.0);
    assert_near(path.believed(), 10.0, "the capacity");
    path.has = f64::INFINITY;
    path.pass(2.0);
    assert_is_used(&mut path, 10.0, 0.98);
}

/// What is told of a path that carries a fifth says most by what is lost behind a long queue: less is sent at once.
#[test]
fn a_path_that_nearly_ends_is_not_flooded() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.holds = 0.3;
    path.pass(20.0);
    path.carries = 0.5e6;
    path.pass(1.5);
    assert!(path.rate() < 1.3, "{}", path.rate());
    path.pass(8.0);
    let (_, arrived) = path.pass(20.0);
    assert!(arrived > 0.48 && path.controller.channel_loss() < 0.05, "{arrived} Mbit/s");
}

/// Nothing is tried while nothing is told; after ten seconds without an answer there is a trickle.
#[test]
fn who_hears_nothing_sends_no_more_than_is_known_and_then_a_trickle() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.pass(3.2);
    assert!(path.rate() > 1.5 * path.believed(), "more is tried");
    let (now, known) = (path.now, path.believed());
    path.controller.on_asked(now);
    let rate = |after| path.controller.rate(now + seconds(after)).unwrap().as_bps() as f64 / 1e6;
    assert!(rate(0.9) > 1.5 * known);
    assert_near(rate(2.0), known, "blind");
    assert_near(rate(9.9), known, "still blind");
    assert_near(rate(10.0), breaker::trickle(known * 1e6) / 1e6, "a trickle");
    assert!(path.controller.expected(now + seconds(9.9)).is_some());
    assert!(path.controller.expected(now + seconds(10.0)).is_none(), "no train either");
}

#[test]
fn who_is_not_to_be_paced_is_not_whatever_is_found() {
    let mut path = Path::new(Aim::Unlimited, 10.0);
    path.has = 30e6;
    path.pass(10.0);
    assert!(path.controller.rate(path.now).is_none() && path.controller.capacity().is_none());
    assert!(path.controller.expected(path.now).is_none() && path.findings.is_empty());
    assert!(!path.controller.wants_trains() && !path.controller.wants_padding());
}

/// A machine next door: trains arrive as fast as they leave, until a queue shows that there is a bottleneck after all.
#[test]
fn where_trains_find_no_bottleneck_nothing_is_paced() {
    let mut path = Path::new(Aim::Find, 300.0);
    (path.round_trip, path.has_trains) = (Duration::from_millis(2), true);
    path.pass(10.0);
    assert!(path.believed() > 250.0, "{}", path.believed());
    let totals = Totals { datagrams: 40, bytes: 60_000 };
    let quick = Duration::from_micros(480);
    let fast = TrainReport {
        sent: totals,
        received: totals,
        sent_in: quick,
        received_in: quick,
        ..path.passage(false)
    };
    let hurries: Vec<_> = (0..5).map(|_| path.controller.on_train(path.now, &fast)).collect();
    assert_eq!(hurries[..4], [Some(openness::SPACING); 4]);
    assert!(path.controller.rate(path.now).is_none() && path.controller.capacity().is_none());
    path.has = 400e6;
    path.pass(2.0);
    assert!(path.controller.rate(path.now).is_some(), "a queue stands");
}

#[test]
fn a_train_that_loses_more_than_the_channel_is_policed_unless_a_queue_explains_it() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.loses = 0.2;
    path.pass(40.0);
    let totals = |datagrams| Totals { datagrams, bytes: datagrams * 1000 };
    let passage = path.passage(false);
    let train = |lost: u64, is_padding| TrainReport {
        sent: totals(40),
        received: totals(40 - lost),
        is_padding,
        ..passage
    };
    // Of 40 the channel loses eight, and chance eight more; of what is lost besides, one in eight may be.
    path.has = 1e6;
    path.pass(2.0);
    assert!(path.queue == 0.0 && (path.controller.channel_loss() - 0.2).abs() < 0.005);
    let policed = [15, 20, 21, 22, 25].map(|lost| path.controller.is_policed(&train(lost, false)));
    assert_eq!(policed, [false, false, true, true, true]);
    assert!(!path.controller.is_policed(&train(30, true)), "padding opens a session");
}

#[test]
fn another_configuration_begins_anew_but_for_the_path_s_own_delay_and_losses() {
    let mut path = Path::new(Aim::Find, 10.0);
    path.loses = 0.2;
    path.pass(30.0);
    let (round_trip, losses) = (path.controller.round_trip(), path.controller.channel_loss());
    path.controller.configure(Aim::Known(mbit(5)), 28);
    assert_eq!((path.believed(), path.rate()), (5.0, 5.0));
    assert_eq!((path.controller.round_trip(), path.controller.channel_loss()), (round_trip, losses));
    assert_eq!(path.controller.experiments(), 0);
    assert!(!path.controller.wants_trains() && path.controller.wants_padding());
}

/// What a train of padding finds is where it begins; what is configured it can only confirm, or contradict twice.
#[test]
fn trains_of_padding_begin() {
    let mut path = Path::new(Aim::Find, 10.0);
    let short = TrainReport { is_long: false, ..path.passage(true) };
    let found = 20.0 * 0.008 / 0.016;
    path.controller.on_train(path.now, &short);
    assert_near(path.believed(), found, "the first");
    let less = TrainReport { received_in: Duration::from_millis(32), ..short };
    path.controller.on_train(path.now, &less);
    assert_near(path.believed(), found, "the larger counts");
    let more = TrainReport { received_in: Duration::from_millis(8), ..short };
    path.controller.on_train(path.now, &more);
    assert_near(path.believed(), 2.0 * found, "the larger counts");
    path.controller.on_train(path.now, &path.passage(true));
    assert_near(path.believed(), trains::TRUSTED * found, "a long one tells");
    let mut known = Path::new(Aim::Known(mbit(5)), 10.0);
    let passage = known.passage(true);
    assert_eq!(
        known.controller.on_train(known.now, &passage),
        Some(Duration::ZERO),
        "another is to confirm it"
    );
    assert_eq!(known.controller.on_train(known.now, &passage), None);
    known.pass(1.0);
    let (_, Finding::TooSlow { measured }) = told(&mut known) else { panic!() };
    assert_near(measured.as_bps() as f64, 10e6, "what is told");
    assert_eq!(known.believed(), 5.0);
}
