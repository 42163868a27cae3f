//! Whole tunnels, end to end, over lines that lose, repeat, reorder, damage and shorten.

use crate::between::{OTHER, Pair, SETUPS, Setup, packet, path};
use base::wire::ip::Ecn;
use base::wire::tcp::Flags;
use base::{Duration, Instant, Rate};
use longhaul_tunnel::config::Link;
use longhaul_tunnel::hub::Taken;
use longhaul_tunnel::session::KEEP_ALIVE;
use longhaul_tunnel::{Event, Presence, Sent};
use proptest::prelude::*;

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pair(link: &'static str) -> Pair {
    Pair::new(Setup::of(link, false))
}

fn counter(pair: &Pair, at: usize, name: &str) -> u64 {
    let counters = pair.end(at).counters();
    counters.into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

#[test]
fn what_goes_in_at_one_end_comes_out_at_the_other() {
    for setup in SETUPS {
        let mut pair = Pair::new(setup);
        pair.pass(second(3));
        assert!(pair.is_connected(), "{setup:?}");
        let numbers: Vec<_> = (0..20).map(|at| pair.offer(at % 2, 60 + 70 * at, 0, OTHER)).collect();
        pair.pass(second(3));
        for end in 0..2 {
            let mut delivered = pair.delivered(end).to_vec();
            delivered.sort_unstable();
            let expected = numbers.iter().copied().filter(|number| *number as usize % 2 != end);
            assert_eq!(delivered, expected.collect::<Vec<_>>(), "{setup:?}");
        }
    }
}

/// Frames are cut for datagrams as long as the path carries: none is longer.
#[test]
fn long_packets_fill_whole_frames() {
    for setup in SETUPS {
        let mut pair = Pair::new(setup);
        pair.pass(second(3));
        let numbers: Vec<_> = (0..20)
            .map(|_| {
                pair.pass(Duration::from_millis(50));
                pair.offer(0, 1500, 0, OTHER)
            })
            .collect();
        pair.pass(second(3));
        let mut delivered = pair.delivered(1).to_vec();
        delivered.sort_unstable();
        assert_eq!(delivered, numbers, "{setup:?}");
        assert_eq!(counter(&pair, 0, "frames-cut"), 0, "{setup:?}");
    }
}

/// The path carries less than it did while frames that are longer wait to be repeated: they arrive in parts.
#[test]
fn frames_that_became_too_long_arrive_in_parts() {
    for link in ["rate = \"4 Mbit/s\"", "rate = \"4 Mbit/s\"\nprotocol = \"cotmll\""] {
        let mut pair = pair(link);
        pair.pass(second(3));
        pair.line(0).longest = 1000;
        pair.line(0).says = true;
        let numbers: Vec<_> = (0..30).map(|_| pair.offer(0, 1400, 0, OTHER)).collect();
        pair.pass(second(60));
        let mut delivered = pair.delivered(1).to_vec();
        delivered.sort_unstable();
        assert_eq!(delivered, numbers, "{link}");
        assert!(counter(&pair, 0, "frames-cut") > 0);
        assert_eq!(counter(&pair, 1, "frames-cut"), 0, "the other way carries what it did");
    }
}

#[test]
fn who_restarts_is_told_apart_from_who_renews_its_keys() {
    let mut pair = pair("rate = \"2 Mbit/s\"");
    pair.pass(second(250));
    let established = |restarted| Event::Established { peer: path(1).peer, restarted };
    let sessions = |pair: &Pair, at| {
        let events = pair.events(at).iter().filter(|event| matches!(event, Event::Established { .. }));
        events.cloned().collect::<Vec<_>>()
    };
    let renewed = pair.end(0).session().established.get();
    assert_eq!(
        (renewed, sessions(&pair, 0)),
        (2, vec![established(false)]),
        "renewed after four idle minutes"
    );
    pair.restart(1);
    // Something passes, so that an answer is missed.
    pair.offer(0, 1000, 0, OTHER);
    pair.pass(second(10));
    assert_eq!(sessions(&pair, 0)[1..], [established(true)]);
    let number = pair.offer(0, 1000, 0, OTHER);
    pair.pass(second(2));
    assert!(pair.delivered(1).contains(&number));
}

#[test]
fn that_nobody_answers_is_told_after_half_a_minute_and_then_less_and_less_often() {
    let setup = Setup::of("", false);
    let at = |seconds| Instant::ZERO + second(seconds);
    for (end, address) in [(0, Some(path(1).peer)), (1, None)] {
        let mut hub = setup.end(end, 0);
        let mut told = Vec::new();
        for now in 0..2000 {
            hub.handle_timeout(at(now));
            assert!(hub.poll_timeout(at(now)).is_some_and(|due| due <= at(4 * now + 31)), "{now}");
            told.extend(core::iter::from_fn(|| hub.poll_event()).map(|(_, event)| event));
        }
        let expected =
            [30, 120, 480, 1920].map(|silence| Event::Unanswered { peer: address, silence: second(silence) });
        // Whoever calls nobody has nothing to tell.
        assert_eq!(told, if end == 0 { &expected[..] } else { &[] });
    }
    let mut hub = setup.end(0, 0);
    let (id, _) = hub.peers().next().unwrap();
    hub.handle_timeout(at(29));
    hub.tunnel_mut(id).unwrap().call_at(at(29), path(0).peer);
    hub.handle_timeout(at(58));
    assert_eq!(hub.poll_event(), None, "nobody has been called there for long");
    hub.tunnel_mut(id).unwrap().call_at(at(58), path(0).peer);
    // Whoever waits for a turn has its timers looked at seldom.
    while hub.poll_transmit(at(58), 1, false).is_some() {
        hub.on_sent(at(58), Sent::Yes);
    }
    hub.handle_timeout(at(59));
    let event = Event::Unanswered { peer: Some(path(0).peer), silence: second(30) };
    assert_eq!(hub.poll_event(), Some((id, event)));
}

/// One direction alone is dark: who hears nothing says so, and that it hears again, though nobody has shaken hands.
#[test]
fn who_is_heard_again_under_the_same_keys_is_told() {
    let mut pair = pair("");
    pair.pass(second(3));
    pair.set_fates(0, &[1]);
    pair.pass(second(60));
    assert!(pair.end(0).session().is_heard(Instant::ZERO + second(63)), "this end hears all the time");
    pair.set_fates(0, &[]);
    pair.pass(second(30));
    let handshakes = pair.end(1).session().established.get();
    let told: Vec<_> =
        pair.events(1).iter().filter(|event| !matches!(event, Event::Rate { .. })).cloned().collect();
    let connected = Event::Established { peer: path(0).peer, restarted: false };
    let [first, Event::Silent { .. }, again] = &told[..] else { panic!("{told:?}") };
    assert_eq!((handshakes, first, again), (1, &connected, &connected));
    let now = Instant::ZERO + second(93);
    assert!(
        matches!(pair.end(1).presence(now), Presence::Connected { since } if since > Instant::ZERO + second(63))
    );
}

/// Who ends in order is not waited for, and is called until it is back.
#[test]
fn a_peer_that_ends_says_so() {
    for (setup, fates) in
        SETUPS.into_iter().flat_map(|setup| [vec![], vec![1, 0], vec![0, 1]].map(|fates| (setup, fates)))
    {
        let mut pair = Pair::new(setup);
        pair.pass(second(100));
        pair.set_fates(1, &fates);
        pair.close(1);
        // It is no more, and answers nothing.
        pair.set_fates(1, &[1]);
        pair.pass(Duration::from_millis(100));
        assert_eq!(
            pair.events(0).last(),
            Some(&Event::Left { peer: Some(path(1).peer) }),
            "{setup:?} {fates:?}"
        );
        assert!(matches!(pair.end(0).presence(Instant::ZERO + second(101)), Presence::Silent { .. }));
        // It may come back, so what comes waits a little.
        pair.offer(0, 100, 0, OTHER);
        assert_eq!(pair.refused(0), 0);
        pair.set_fates(1, &[]);
        pair.restart(1);
        pair.pass(Duration::from_millis(1500));
        assert!(pair.is_connected(), "{setup:?} {fates:?}");
        let told = pair.events(0).iter().filter(|event| matches!(event, Event::Left { .. })).count();
        assert_eq!(told, 1);
        pair.recovers(second(3));
    }
}

/// If it does not come back it is soon refused.
#[test]
fn a_peer_that_has_ended_is_soon_given_up() {
    let mut pair = pair("");
    pair.pass(second(3));
    pair.close(1);
    (0..2).for_each(|at| pair.set_fates(at, &[1]));
    for at in 0..6 {
        pair.pass(second(1));
        pair.offer(0, 100, 0, OTHER);
        assert_eq!(pair.refused(0), u32::max(at, 2) - 2, "second {at}");
    }
}

/// What is told is what was heard: new keys are no news, and keys that outlast their peer are no session.
#[test]
fn a_peers_presence_is_what_was_heard_of_it() {
    let mut pair = pair("");
    assert_eq!(pair.end(0).presence(Instant::ZERO), Presence::Never);
    pair.pass(second(3));
    let told = Event::Established { peer: path(1).peer, restarted: false };
    assert_eq!(pair.events(0), std::slice::from_ref(&told));
    for _ in 0..100 {
        pair.offer(0, 100, 0, OTHER);
        pair.pass(second(10));
    }
    assert!(pair.end(0).session().established.get() >= 6, "keys were renewed");
    assert_eq!(pair.events(0), std::slice::from_ref(&told));
    let now = Instant::ZERO + second(1003);
    let Presence::Connected { since } = pair.end(0).presence(now) else { panic!("it is not heard") };
    assert!(since < Instant::ZERO + second(3));
    (0..2).for_each(|at| pair.set_fates(at, &[1]));
    pair.pass(second(60));
    let Presence::Silent { since } = pair.end(0).presence(now + second(60)) else { panic!("it is heard") };
    let [_, Event::Silent { peer, silence }, ..] = pair.events(0) else { panic!("{:?}", pair.events(0)) };
    assert_eq!(*peer, Some(path(1).peer));
    assert!(since <= now && *silence >= second(30) && *silence <= second(60), "{since:?} {silence:?}");
    (0..2).for_each(|at| pair.set_fates(at, &[]));
    pair.pass(second(10));
    assert_eq!(pair.events(0).last(), Some(&told));
    assert!(
        matches!(pair.end(0).presence(now + second(70)), Presence::Connected { since } if since > now + second(60))
    );
}

/// Whoever has no answer to wait for is told so: not while the peer may just be behind something, and no longer than it is away.
#[test]
fn packets_to_a_peer_that_is_gone_are_refused() {
    for setup in SETUPS {
        let mut pair = Pair::new(setup);
        pair.pass(second(3));
        (0..2).for_each(|at| pair.set_fates(at, &[1]));
        let mut refused_from = None;
        for at in 0..60 {
            pair.offer(0, 100, 0, OTHER);
            pair.pass(second(1));
            if refused_from.is_none() && pair.refused(0) > 0 {
                refused_from = Some(at);
            }
        }
        // 30 s after what it was heard last, and 10 more of patience.
        let from = refused_from.unwrap_or_else(|| panic!("{setup:?}: nothing is refused"));
        assert!((38..=42).contains(&from), "{setup:?}: from second {from}");
        assert_eq!(pair.refused(0), 60 - from, "{setup:?}");
        assert_eq!(counter(&pair, 0, "packets-turned-away"), u64::from(pair.refused(0)));
        pair.recovers(second(3));
        assert_eq!(pair.refused(0), 60 - from, "{setup:?}");
    }
}

/// Handshakes may take a while, so the first packets wait.
#[test]
fn packets_to_a_peer_that_never_came_are_refused_after_a_while() {
    let mut pair = pair("");
    (0..2).for_each(|at| pair.set_fates(at, &[1]));
    for at in 0..15 {
        pair.offer(0, 100, 0, OTHER);
        assert_eq!(pair.refused(0), u32::max(at, 9) - 9, "second {at}");
        pair.pass(second(1));
    }
    // No more messages than anybody needs.
    let before = pair.refused(0);
    for _ in 0..200 {
        pair.offer(0, 100, 0, OTHER);
    }
    assert_eq!(pair.refused(0) - before, 50);
}

/// The proxy keeps its connections while the peer is away, and only new ones are refused.
#[test]
fn connections_under_way_outlast_an_absence() {
    for has_proxy in [false, true] {
        let mut pair = Pair::new(Setup::of("", has_proxy));
        (0..2).for_each(|at| pair.set_fates(at, &[1]));
        pair.pass(second(20));
        let flags = [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK];
        let refused = flags.map(|flags| {
            let before = pair.refused(0);
            pair.offer_segment(0, flags);
            pair.refused(0) - before
        });
        assert_eq!(refused, if has_proxy { [1, 0, 0] } else { [1, 1, 1] });
    }
}

/// Without a rate the kernel's queue holds what the carrier does not take.
#[test]
fn a_carrier_that_is_full_is_waited_for() {
    let mut pair = pair("rate = \"max\"");
    pair.pass(second(3));
    let now = Instant::ZERO + second(3);
    assert_eq!(pair.end(0).rate(), None);
    let hub = pair.hub(0);
    assert_eq!((hub.wants_packets(), hub.is_blocked()), (true, false));
    let taken = hub.handle_packet(now, packet(0, 1000, 0, OTHER));
    assert!(matches!(taken, Taken::ToLeave), "it is best cut up at once");
    assert!(!hub.wants_packets(), "one waits");
    let bytes = hub.poll_transmit(now, 1, false).expect("it leaves").bytes.to_vec();
    hub.on_sent(now, Sent::Full);
    assert!(hub.is_blocked() && !hub.wants_packets());
    assert!(hub.poll_transmit(now, 1, false).is_none());
    assert!(hub.poll_timeout(now).is_some_and(|due| due > now), "nothing is due before there is room");
    hub.on_writable();
    let mut left = Vec::new();
    while let Some(transmit) = hub.poll_transmit(now, 1, false) {
        left.push(transmit.bytes.to_vec());
        hub.on_sent(now, Sent::Yes);
    }
    assert!(left.contains(&bytes));
    assert!(hub.wants_packets() && !hub.is_blocked());
}

#[test]
fn a_configured_rate_is_kept_on_the_line_with_all_headers() {
    let mut pair = pair("rate = \"2 Mbit/s\"");
    pair.pass(second(3));
    let mut second_of_traffic = || {
        let before = pair.sent(0);
        for _ in 0..200 {
            pair.offer(0, 1400, 0, OTHER);
            pair.pass(Duration::from_millis(5));
        }
        pair.sent(0) - before
    };
    // The first reports are on their way.
    second_of_traffic();
    let sent = second_of_traffic();
    // A second at 2 Mbit/s, and a burst of 10 ms.
    assert!((240_000..=256_000).contains(&sent), "{sent} bytes");
    assert_eq!(pair.end(0).rate(), Some(Rate::from_bps(2_000_000)));
}

#[test]
fn when_a_peer_was_heard_last_is_known_once_it_was() {
    let mut pair = pair("rate = \"2 Mbit/s\"");
    assert_eq!(pair.end(0).session().last_heard(), None);
    pair.pass(second(3));
    let heard = pair.end(0).session().last_heard().expect("it is there");
    assert!(heard > Instant::ZERO + second(1) && heard <= Instant::ZERO + second(3), "{heard:?}");
}

#[test]
fn a_tunnel_that_is_told_another_rate_keeps_to_it() {
    let mut pair = pair("rate = \"2 Mbit/s\"");
    pair.pass(second(3));
    let link = Link::parse("link.toml", "rate = \"1 Mbit/s\"").unwrap();
    let hub = pair.hub(0);
    let (id, _) = hub.peers().next().expect("the other end");
    hub.tunnel_mut(id).unwrap().reconfigure(Instant::ZERO + second(3), &link, KEEP_ALIVE);
    assert_eq!(pair.end(0).rate(), Some(Rate::from_bps(1_000_000)));
    let mut second_of_traffic = || {
        let before = pair.sent(0);
        for _ in 0..200 {
            pair.offer(0, 1400, 0, OTHER);
            pair.pass(Duration::from_millis(5));
        }
        pair.sent(0) - before
    };
    second_of_traffic();
    let sent = second_of_traffic();
    assert!((120_000..=128_000).contains(&sent), "{sent} bytes");
}

/// A tunnel that nothing passes says all that its session has to say: a peer in a new place is answered, and both places are challenged.
#[test]
fn all_that_an_idle_session_has_to_say_leaves() {
    let mut pair = Pair::new(SETUPS[5]);
    pair.pass(second(30));
    let caller = pair.hub(0);
    let now = caller.poll_timeout(Instant::ZERO + second(31)).expect("a keep-alive is due");
    caller.handle_timeout(now);
    let mut datagram = caller.poll_transmit(now, 16, false).expect("a keep-alive").bytes.to_vec();
    caller.on_sent(now, Sent::Yes);
    let called = pair.hub(1);
    called.handle_datagram(now, path(7), Ecn::NotEct, &mut datagram).expect("it is the peer's");
    let mut places = Vec::new();
    while let Some(transmit) = called.poll_transmit(now, 16, false) {
        places.push(transmit.to);
        called.on_sent(now, Sent::Yes);
    }
    assert!(places.contains(&path(0)) && places.contains(&path(7)), "{places:?}");
}

/// A keep-alive leaves when its time has come if the hub is awake, and has it wake a little later.
#[test]
fn a_keep_alive_waits_for_other_work_a_little() {
    let leaves = |early: Duration| {
        let mut pair = Pair::new(SETUPS[5]);
        pair.pass(second(30));
        let caller = pair.hub(0);
        let due = caller.poll_timeout(Instant::ZERO + second(31)).expect("a keep-alive is due");
        let now = due.saturating_sub(early);
        caller.handle_timeout(now);
        caller.poll_transmit(now, 16, false).is_some()
    };
    assert!(leaves(Duration::ZERO) && leaves(Duration::from_millis(20)));
    assert!(!leaves(Duration::from_nanos(20_000_001)));
}

/// What a tunnel that has been idle holds now is counted, though it comes to rest before anybody reads a deadline: a packet that waits
/// for one before it, which is lost.
#[test]
fn memory_is_counted_after_a_rest() {
    let mut pair = Pair::new(SETUPS[5]);
    pair.pass(second(30));
    let now = Instant::ZERO + second(30);
    assert_eq!(pair.hub(1).status()["memory_bytes"], 0);
    let sender = pair.hub(0);
    let mut last = Vec::new();
    // Of the same flow are those whose numbers differ by four.
    for number in 0..5 {
        let _ = sender.handle_packet(now, packet(number, 1000, 0, OTHER));
        last = sender.poll_transmit(now, 1, false).expect("a packet").bytes.to_vec();
        sender.on_sent(now, Sent::Yes);
    }
    let receiver = pair.hub(1);
    receiver.handle_datagram(now, path(0), Ecn::NotEct, &mut last).expect("it is the peer's");
    while receiver.poll_transmit(now, 16, false).is_some() {
        receiver.on_sent(now, Sent::Yes);
    }
    let _ = receiver.poll_timeout(now);
    let held = receiver.status()["memory_bytes"].as_u64();
    assert!(held > Some(1000), "{held:?} of {}", pair.end(1).memory());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens to datagrams, nothing panics, every deadline passes, and the ends recover.
    #[test]
    fn tunnels_recover(setup in 0..SETUPS.len(), steps in proptest::collection::vec(any::<[u8; 4]>(), 0..60)) {
        let mut pair = Pair::new(SETUPS[setup]);
        steps.into_iter().for_each(|step| pair.step(step));
        pair.recovers(second(60));
    }
}
