//! What somebody on the path can do without the key: record, repeat, hold back, reflect, forge.

use super::*;
use crate::session::cookies::COOKIE_LEN;

/// The types of what a session has to send.
fn kinds(session: &mut Side) -> Vec<u8> {
    std::iter::from_fn(|| session.poll_transmit()).map(|(_, datagram)| datagram[0]).collect()
}

/// Initiations of one life, `without` a cookie and `with` one, that the called side never saw.
fn held_back(pair: &mut Pair, without: u64, with: u64) -> Vec<Vec<u8>> {
    let mut held: Vec<_> = (0..without)
        .map(|_| {
            pair.caller.initiate(at(0));
            sent(&mut pair.caller)
        })
        .collect();
    held.push(pair.initiation(at(0)));
    held.extend((1..with).map(|_| pair.initiation(at(0))));
    held
}

/// Two thousand recordings, a thousand a second, with the caller's own address on them, while both sides have
/// restarted: the genuine caller gets in within seconds, and recordings are never answered.
#[test]
fn recordings_keep_nobody_out() {
    let mut pair = Pair::new();
    let recorded = held_back(&mut pair, 1500, 500);
    pair = Pair::new();
    let (mut answers, mut challenges) = (0, 0);
    for millis in 0..20_000 {
        let now = at(millis);
        let recording = &recorded[millis as usize % recorded.len()];
        let result = give(&mut pair.called, now, CALLER, recording);
        assert!(millis < 2000 || result == Err(Rejection::Replayed), "{millis} ms: {result:?}");
        let kinds = kinds(&mut pair.called);
        answers += kinds.iter().filter(|kind| **kind == 2).count();
        challenges += kinds.iter().filter(|kind| **kind == 3).count();
        if millis % 10 == 0 {
            pair.exchange(now);
        }
        assert!(millis < 4000 || pair.is_established(), "{millis} ms");
    }
    assert_eq!(answers, 0);
    assert!((1..=2000).contains(&challenges), "one for each recording: {challenges}");
    assert_eq!((pair.caller.established.get(), pair.called.established.get()), (1, 1));
}

/// An initiation that was answered is not answered again, nor one that its sender made before it.
#[test]
fn no_initiation_is_answered_twice_or_after_a_later_one() {
    let mut pair = Pair::new();
    let held = held_back(&mut pair, 0, 3);
    assert_eq!(give(&mut pair.called, at(1), CALLER, &held[1]), Ok(None));
    assert_eq!(kinds(&mut pair.called), [2]);
    assert_eq!(give(&mut pair.called, at(2), CALLER, &held[1]), Err(Rejection::Replayed));
    assert!(kinds(&mut pair.called).is_empty());
    // One that was held back until now is asked for a newer cookie.
    assert_eq!(give(&mut pair.called, at(3), CALLER, &held[0]), Ok(None));
    assert_eq!(kinds(&mut pair.called), [3]);
    assert_eq!(give(&mut pair.called, at(4), CALLER, &held[2]), Ok(None));
    assert_eq!(kinds(&mut pair.called), [2]);
}

/// A caller that restarts counts from one again. What its former life said, however much and however late,
/// ranks below what it says once it was challenged.
#[test]
fn a_former_life_ranks_below_the_present_one() {
    let mut pair = Pair::new();
    let held = held_back(&mut pair, 0, 100);
    pair.caller = caller();
    let initiation = pair.initiation(at(10));
    assert_eq!(give(&mut pair.called, at(20), CALLER, &initiation), Ok(None));
    let answer = sent(&mut pair.called);
    for (millis, old) in (30..).zip(&held) {
        let _ = give(&mut pair.called, at(millis), CALLER, old);
        assert!(!kinds(&mut pair.called).contains(&2), "{millis} ms");
    }
    give(&mut pair.caller, at(200), CALLED, &answer).unwrap();
    pair.exchange(at(200));
    assert!(pair.is_established());
}

/// What a former life would confirm is gone once its successor is confirmed: it must not reset the link.
#[test]
fn a_confirmed_session_ends_those_before_it() {
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
    let confirming = sent(&mut pair.caller);
    pair.caller = caller();
    pair.exchange(at(1000));
    assert!(pair.is_established());
    pair.called.events.clear();
    assert_eq!(give(&mut pair.called, at(2000), CALLER, &confirming), Err(Rejection::UnknownSession));
    assert_eq!(pair.called.poll_event(), None);
}

/// A cookie proves an address: an initiation that is delivered from elsewhere gets no answer there.
#[test]
fn an_initiation_from_elsewhere_is_not_answered() {
    let mut pair = Pair::new();
    let initiation = pair.initiation(at(0));
    assert_eq!(give(&mut pair.called, at(0), ELSEWHERE, &initiation), Ok(None));
    let (to, challenge) = pair.called.poll_transmit().unwrap();
    assert_eq!((to, challenge[0]), (addr(ELSEWHERE), 3));
    assert_eq!(pair.called.poll_transmit(), None);
    // Nor does it help to carry the challenge to the caller: its cookie is for elsewhere.
    give(&mut pair.caller, at(0), CALLED, &challenge).unwrap();
    let misled = sent(&mut pair.caller);
    give(&mut pair.called, at(0), CALLER, &misled).unwrap();
    assert_eq!(kinds(&mut pair.called), [3]);
    pair.exchange(at(1000));
    assert!(pair.is_established());
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

/// Somebody delivers each initiation from elsewhere before it arrives: it still gets its challenge, and its answer.
#[test]
fn a_raced_initiation_still_counts() {
    let mut pair = Pair::new();
    pair.caller.initiate(at(0));
    for want in [3, 2] {
        let initiation = sent(&mut pair.caller);
        for other in ELSEWHERE..ELSEWHERE + 20 {
            assert_eq!(give(&mut pair.called, at(0), other, &initiation), Ok(None));
            assert_eq!(give(&mut pair.called, at(0), other, &initiation), Err(Rejection::Replayed));
        }
        assert!(kinds(&mut pair.called).iter().all(|kind| *kind == 3));
        assert_eq!(give(&mut pair.called, at(0), CALLER, &initiation), Ok(None));
        let answer = sent(&mut pair.called);
        assert_eq!(answer[0], want);
        assert_eq!(give(&mut pair.called, at(0), CALLER, &initiation), Err(Rejection::Replayed));
        give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
    }
    pair.exchange(at(0));
    assert!(pair.is_established());
}

/// Somebody shows a recording from ever other addresses, 2000 times a second, while its maker has restarted and has no cookie.
#[test]
fn a_recording_shown_from_everywhere_keeps_nobody_out() {
    let mut pair = Pair::established();
    let captured = pair.initiation(at(1000));
    give(&mut pair.called, at(1001), CALLER, &captured).unwrap();
    pair.caller = caller();
    let mut challenges = 0;
    for millis in 2000..12_000 {
        for number in 0..2 {
            let port = 1000 + (millis * 2 + number) as u16 % 60_000;
            let _ = give(&mut pair.called, at(millis), port, &captured);
        }
        while pair.called.poll_transmit().is_some() {
            challenges += 1;
        }
        if millis % 1000 == 999 {
            pair.caller = caller();
            pair.exchange(at(millis));
            assert!(pair.is_established(), "at {millis} ms");
        }
    }
    assert!(challenges < 700, "{challenges} challenges for one recording");
}

/// Each end calls, and the first datagram under the keys of one handshake arrives after the other handshake is complete: the
/// younger keys stay, and nothing that comes when the others have expired needs keys that are gone.
#[test]
fn a_late_confirmation_of_older_keys_changes_nothing() {
    let mut pair = Pair::new();
    pair.called = called_who(Some(CALLER), "link");
    // Until chance has it that the called side's initiation is answered first.
    let (mut other, slow) = std::iter::repeat_with(|| crossing(&mut pair)).flatten().next().unwrap();
    give(&mut pair.caller, at(70), CALLED, &slow).unwrap();
    assert!(pair.caller.keys.current().unwrap().initiated, "its own handshake is the younger one");
    let datagram = sealed(&mut other, at(299_000), b"x");
    pair.caller.handle_timeout(at(300_021));
    let _ = give(&mut pair.caller, at(300_022), ELSEWHERE, &datagram);
}

/// Two handshakes that cross, up to the caller's: the called side, and the datagram with which that confirms its own.
fn crossing(pair: &mut Pair) -> Option<(Side, Vec<u8>)> {
    let (mut a, mut b) = (caller(), called_who(Some(CALLER), "link"));
    a.initiate(at(0));
    b.initiate(at(0));
    give(&mut b, at(0), CALLER, &sent(&mut a)).ok()?;
    let own = sent(&mut b);
    let for_a = sent(&mut b);
    give(&mut a, at(0), CALLED, &own).ok()?;
    give(&mut b, at(10), CALLER, &sent(&mut a)).ok()?;
    give(&mut a, at(20), CALLED, &sent(&mut b)).ok()?;
    let answer_of_a = a.poll_transmit()?.1;
    give(&mut a, at(30), CALLED, &for_a).ok()?;
    let initiation = a.poll_transmit()?.1;
    give(&mut b, at(40), CALLER, &answer_of_a).ok()?;
    let slow = b.poll_transmit()?.1;
    give(&mut b, at(50), CALLER, &initiation).ok()?;
    let answer_of_b = b.poll_transmit()?.1;
    give(&mut a, at(60), CALLED, &answer_of_b).ok()?;
    pair.caller = a;
    Some((b, slow))
}

/// A cookie is worth nothing once the keys that it could have given would be too old.
#[test]
fn cookies_expire() {
    for (now, want) in [(300_000, 2), (300_001, 3)] {
        let mut pair = Pair::new();
        let initiation = pair.initiation(at(0));
        assert_eq!(give(&mut pair.called, at(now), CALLER, &initiation), Ok(None));
        assert_eq!(kinds(&mut pair.called), [want], "{now} ms");
    }
}

/// Somebody sends everything back to where it came from: the genuine answers still count.
#[test]
fn reflections_change_nothing() {
    for round in 0..8 {
        let mut pair = Pair::new();
        pair.called = called_who(Some(CALLER), "link");
        for _ in 0..6 {
            for by_caller in [true, false] {
                let Pair { caller, called } = &mut pair;
                let (from, to, own, other) = if by_caller {
                    (caller, called, CALLER, CALLED)
                } else {
                    (called, caller, CALLED, CALLER)
                };
                from.handle_timeout(at(round));
                let Some((_, datagram)) = from.poll_transmit() else { continue };
                let want =
                    if datagram[0] < 3 { Rejection::ForgedHandshake } else { Rejection::UnknownSession };
                assert_eq!(give(from, at(round), other, &datagram), Err(want));
                let _ = give(to, at(round), own, &datagram);
            }
        }
        pair.exchange(at(1000 + round));
        assert!(pair.is_established());
    }
}

/// A handshake datagram with any bit changed, and a recorded one of another handshake, leaves ours pending.
#[test]
fn a_forged_or_recorded_answer_costs_nothing() {
    let mut pair = Pair::new();
    let recorded = pair.answer(at(0));
    give(&mut pair.caller, at(0), CALLED, &recorded).unwrap();
    pair = Pair { caller: pair.caller, called: called() };
    pair.caller.outbox.clear();
    pair.caller.initiate(at(5));
    let first = sent(&mut pair.caller);
    give(&mut pair.called, at(5), CALLER, &first).unwrap();
    let challenge = sent(&mut pair.called);
    give(&mut pair.caller, at(5), CALLED, &challenge).unwrap();
    let initiation = sent(&mut pair.caller);
    give(&mut pair.called, at(5), CALLER, &initiation).unwrap();
    let answer = sent(&mut pair.called);
    for bit in 32..answer.len() * 8 {
        let mut forged = answer.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            give(&mut pair.caller, at(6), ELSEWHERE, &forged),
            Err(Rejection::ForgedHandshake),
            "bit {bit}"
        );
    }
    for (old, want) in [(&recorded, Rejection::UnknownSession), (&challenge, Rejection::Replayed)] {
        assert_eq!(give(&mut pair.caller, at(7), CALLED, old), Err(want));
    }
    assert_eq!(pair.caller.poll_transmit(), None);
    give(&mut pair.caller, at(8), CALLED, &answer).unwrap();
    pair.exchange(at(8));
    assert!(pair.is_established());
}

/// Junk is told by its seal: it costs no key work and none of what genuine handshakes may use.
#[test]
fn a_flood_of_junk_keeps_no_genuine_handshake_out() {
    let mut pair = Pair::new();
    let genuine = pair.initiation(at(0));
    let mut junk = Random::seeded(1);
    for _ in 0..10_000 {
        let mut datagram = genuine.clone();
        datagram[4..].copy_from_slice(&junk.draw::<204>());
        assert_eq!(give(&mut pair.called, at(0), CALLER, &datagram), Err(Rejection::ForgedHandshake));
    }
    assert_eq!(pair.called.poll_transmit(), None);
    give(&mut pair.called, at(0), CALLER, &genuine).unwrap();
    assert_eq!(kinds(&mut pair.called), [2]);
}

/// A peer that asks without end gets a few answers of its own, and as many as one stranger may have: half of what all may.
#[test]
fn handshakes_of_a_peer_are_limited_in_rate() {
    let mut pair = Pair::established();
    let mut served = 0;
    for _ in 0..1000 {
        let initiation = pair.initiation(at(1));
        served += usize::from(give(&mut pair.called, at(1), CALLER, &initiation).is_ok());
        pair.called.outbox.clear();
    }
    assert!((520..=530).contains(&served), "{served}");
}

/// Strangers with keys of their own, everywhere, ask for all answers that there are: the peer still gets its own.
#[test]
fn strangers_take_nothing_from_a_peer() {
    let mut pair = Pair::established();
    let mut stranger = side(key(9), key(CALLED).public(), place(Some(CALLED)), "link");
    let mut refused = 0;
    for port in 1000..4000 {
        stranger.initiate(at(1));
        let _ = give(&mut pair.called, at(1), port, &sent(&mut stranger));
        let Some((_, challenge)) = pair.called.poll_transmit() else { continue };
        give(&mut stranger, at(1), CALLED, &challenge).unwrap();
        let result = give(&mut pair.called, at(1), port, &sent(&mut stranger));
        refused += u32::from(result == Err(Rejection::TooManyHandshakes));
        stranger.outbox.clear();
    }
    assert!(refused > 400, "{refused}");
    let initiation = pair.initiation(at(1));
    assert_eq!(give(&mut pair.called, at(1), CALLER, &initiation), Ok(None));
    assert_eq!(kinds(&mut pair.called), [2]);
}

/// All that a handshake shows to whoever looks on is as in any other's: no field of two sessions of a pair is the same.
#[test]
fn nothing_in_clear_links_two_sessions() {
    let mut pair = Pair::established();
    let mut seen = Vec::new();
    for second in [1, 2] {
        let initiation = pair.initiation(at(second * 1000));
        give(&mut pair.called, at(second * 1000), CALLER, &initiation).unwrap();
        let answer = sent(&mut pair.called);
        give(&mut pair.caller, at(second * 1000), CALLED, &answer).unwrap();
        seen.push([initiation, answer, sent(&mut pair.caller)]);
    }
    let (first, second) = seen.split_at(1);
    // Before that come the kind of the datagram and, in a sealed one, a counter that begins at zero.
    let clear = |datagram: &[u8]| datagram[if datagram[0] == 4 { 16 } else { 4 }..].to_vec();
    for (first, second) in
        first[0].iter().flat_map(|first| second[0].iter().map(move |second| (first, second)))
    {
        let (first, second) = (clear(first), clear(second));
        let alike = first.windows(6).filter(|part| second.windows(6).any(|other| other == *part)).count();
        assert_eq!(alike, 0, "{first:?} and {second:?}");
    }
    assert!(first[0].iter().zip(&second[0]).all(|(first, second)| first[4..8] != second[4..8]), "indices");
}

/// Somebody shows each initiation from everywhere and passes on what he is told: only so many follow, and a session comes of it.
#[test]
fn challenges_that_others_asked_for_are_followed_a_few_times() {
    let mut pair = Pair::new();
    let initiation = pair.initiation(at(0));
    give(&mut pair.called, at(0), CALLER, &initiation).unwrap();
    let answer = sent(&mut pair.called);
    let mut followed = 0;
    let mut shown = VecDeque::from([initiation]);
    while let Some(initiation) = shown.pop_front() {
        for port in ELSEWHERE..ELSEWHERE + 3 {
            let _ = give(&mut pair.called, at(0), port, &initiation);
        }
        while let Some((_, challenge)) = pair.called.poll_transmit() {
            let _ = give(&mut pair.caller, at(0), CALLED, &challenge);
        }
        shown.extend(std::iter::from_fn(|| pair.caller.poll_transmit()).map(|(_, initiation)| initiation));
        followed += 1;
        assert!(followed < 20, "without end");
    }
    let _ = give(&mut pair.caller, at(0), CALLED, &answer);
    pair.exchange(at(0));
    assert!(pair.is_established());
}

/// Recordings must not cost a side its own handshake when both begin.
#[test]
fn a_recorded_initiation_leaves_our_own_alone() {
    for _ in 0..8 {
        let mut other = called_who(Some(CALLER), "link");
        let mut pair = Pair::new();
        let answer = pair.answer(at(0));
        for cookie in [None, Some([1; COOKIE_LEN])] {
            other.lines.get_mut(LineId::FIRST).unwrap().cookie = cookie;
            other.initiate(at(0));
            assert_eq!(give(&mut pair.caller, at(0), CALLED, &sent(&mut other)), Ok(None));
        }
        pair.caller.outbox.retain(|(_, datagram)| datagram[0] != 3);
        give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
        assert!(pair.caller.is_established());
    }
}
