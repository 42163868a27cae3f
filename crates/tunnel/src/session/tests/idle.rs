//! Sessions that carry nothing.

use super::*;

/// A pair between which nothing has passed for a while; one was heard last after 18 s.
fn idle_at_20() -> Pair {
    let mut pair = Pair::established();
    (1..=20).for_each(|second| pair.exchange(at(second * 1000)));
    pair
}

/// Where nothing passes, two keep-alives may be lost before the peer is taken for gone.
#[test]
fn an_idle_side_is_patient() {
    let mut pair = idle_at_20();
    assert_eq!(initiations(&mut pair, 21, 24), [41, 42, 43, 44]);
}

/// An idle side speaks every ten seconds, and every second for a while after something has passed.
#[test]
fn keep_alives_are_as_frequent_as_there_is_reason() {
    let mut pair = idle_at_20();
    let spoken = |millis: u64, pair: &mut Pair| {
        pair.called.handle_timeout(at(millis));
        std::iter::from_fn(|| pair.called.poll_transmit()).count()
    };
    let idle: usize = (21..=120).map(|second| spoken(second * 1000, &mut pair)).sum();
    assert_eq!(idle, 10);
    let datagram = sealed(&mut pair.caller, at(120_500), b"x");
    opened(&mut pair.called, at(120_500), &datagram).unwrap();
    let busy: usize = (121..=130).map(|second| spoken(second * 1000, &mut pair)).sum();
    assert_eq!(busy, 10);
    let idle: usize = (131..=230).map(|second| spoken(second * 1000, &mut pair)).sum();
    assert!((9..=11).contains(&idle), "{idle}");
}

/// The one that speaks first is answered at once; who speaks second waits for it, and not for long if it is lost.
#[test]
fn idle_sides_speak_in_one_moment() {
    let mut pair = idle_at_20();
    let mut spoken = Vec::new();
    for millis in (20_100..120_000).step_by(100) {
        for called in [false, true] {
            let (of, to) = if called {
                (&mut pair.called, &mut pair.caller)
            } else {
                (&mut pair.caller, &mut pair.called)
            };
            of.handle_timeout(at(millis));
            while let Some((_, datagram)) = of.poll_transmit() {
                spoken.push((millis, called));
                // One is lost on its way.
                if millis < 80_000 || spoken.len() % 9 > 0 {
                    give(to, at(millis), if called { CALLED } else { CALLER }, &datagram).unwrap();
                }
            }
        }
    }
    let moments: std::collections::BTreeSet<_> = spoken.iter().map(|(millis, _)| *millis).collect();
    let longest = |called: bool| {
        let of: Vec<_> = spoken.iter().filter(|by| by.1 == called).map(|by| by.0).collect();
        of.windows(2).map(|two| two[1] - two[0]).max().unwrap()
    };
    assert!((20..=24).contains(&spoken.len()), "{spoken:?}");
    assert!(moments.len() <= 14, "{spoken:?}");
    assert!(longest(false).max(longest(true)) <= 10_100, "{spoken:?}");
}

#[test]
fn keep_alives_do_not_fill_a_slow_link() {
    let slow = Timing::for_frames_of(Duration::from_millis(1250), KEEP_ALIVE);
    assert_eq!((slow.keepalive, slow.silence), (Duration::from_millis(2500), Duration::from_millis(7_500)));
    assert_eq!(Timing::for_frames_of(Duration::from_millis(3), KEEP_ALIVE), Timing::default());
}

#[test]
fn an_idle_side_keeps_the_session_alive() {
    let mut pair = Pair::established();
    for second in 1..60 {
        pair.exchange(at(second * 1000));
    }
    assert_eq!(pair.caller.established.get(), 1, "nobody took the other for dead");
    assert!(pair.caller.poll_timeout().unwrap() <= at(70_000));
}
