//! Where data goes, and who can change that.

use super::*;

/// A new place of the caller's.
const NEW_PLACE: u16 = 3;

fn pinned() -> Side {
    let place = Peer { address: Some(addr(CALLED).peer), pinned: true };
    side(key(CALLER), key(CALLED).public(), place, "link")
}

/// Carries what both have to send, the caller being at `port`, until there is nothing.
fn carry(pair: &mut Pair, now: Instant, port: u16) {
    for _ in 0..4 {
        while let Some((to, datagram)) = pair.called.poll_transmit() {
            if to == addr(port) {
                give(&mut pair.caller, now, CALLED, &datagram).unwrap();
            }
        }
        while let Some((_, datagram)) = pair.caller.poll_transmit() {
            give(&mut pair.called, now, port, &datagram).unwrap();
        }
    }
}

#[test]
fn a_peer_that_moved_is_followed_once_it_answers() {
    let mut pair = Pair::established();
    let datagram = sealed(&mut pair.caller, at(10), b"from elsewhere");
    assert!(give(&mut pair.called, at(10), NEW_PLACE, &datagram).unwrap().is_some(), "it is authentic");
    assert_eq!(pair.called.path(), Some(addr(CALLER)), "until it has answered");
    let (to, challenge) = pair.called.poll_transmit().unwrap();
    assert_eq!((to, challenge[0]), (addr(NEW_PLACE), 4));
    give(&mut pair.caller, at(20), CALLED, &challenge).unwrap();
    let answer = sent(&mut pair.caller);
    assert_eq!(pair.called.poll_transmit().unwrap().0, addr(CALLER), "the old path is challenged too");
    give(&mut pair.called, at(30), NEW_PLACE, &answer).unwrap();
    assert_eq!(pair.called.path(), Some(addr(NEW_PLACE)));
    assert_eq!(pair.called.poll_transmit(), None);
}

/// A datagram is captured and delivered from elsewhere before the genuine one: nothing moves, whatever is done with
/// the challenge, since the peer goes on speaking from where it is.
#[test]
fn a_raced_datagram_moves_nothing() {
    let mut pair = Pair::established();
    let captured = sealed(&mut pair.caller, at(10), b"captured");
    give(&mut pair.called, at(10), ELSEWHERE, &captured).unwrap();
    let challenge = sent(&mut pair.called);
    assert_eq!(pair.called.poll_transmit().unwrap().0, addr(CALLER), "the old path is challenged too");
    assert_eq!(give(&mut pair.called, at(11), CALLER, &captured), Err(Rejection::Replayed));
    // The challenge is sent back as it is, and carried to the caller, whose answer is carried back too.
    assert_eq!(give(&mut pair.called, at(12), ELSEWHERE, &challenge), Err(Rejection::UnknownSession));
    give(&mut pair.caller, at(12), CALLED, &challenge).unwrap();
    let answer = sent(&mut pair.caller);
    let genuine = sealed(&mut pair.caller, at(13), b"goes on");
    let goes_on = sealed(&mut pair.caller, at(14), b"and on");
    opened(&mut pair.called, at(13), &genuine).unwrap();
    assert_eq!(give(&mut pair.called, at(14), ELSEWHERE, &answer), Ok(None), "late, and so without effect");
    opened(&mut pair.called, at(15), &goes_on).unwrap();
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
    assert_eq!(pair.called.poll_transmit(), None, "what is late gets no challenge");
}

/// A datagram is captured and delivered from elsewhere before the genuine one, and the answer to the challenge is
/// newer than all else: nothing moves, since the peer was heard on its old path after the challenge.
#[test]
fn the_old_path_counts_while_the_peer_is_heard_on_it() {
    let mut pair = Pair::established();
    let captured = sealed(&mut pair.caller, at(10), b"captured");
    give(&mut pair.called, at(10), ELSEWHERE, &captured).unwrap();
    let challenge = sent(&mut pair.called);
    let genuine = sealed(&mut pair.caller, at(11), b"goes on");
    opened(&mut pair.called, at(11), &genuine).unwrap();
    give(&mut pair.caller, at(12), CALLED, &challenge).unwrap();
    let answer = sent(&mut pair.caller);
    give(&mut pair.called, at(13), ELSEWHERE, &answer).unwrap();
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

#[test]
fn an_answer_counts_only_where_the_challenge_went() {
    let mut pair = Pair::established();
    let moved = sealed(&mut pair.caller, at(10), b"moved");
    give(&mut pair.called, at(10), NEW_PLACE, &moved).unwrap();
    let challenge = sent(&mut pair.called);
    give(&mut pair.caller, at(20), CALLED, &challenge).unwrap();
    let answer = sent(&mut pair.caller);
    give(&mut pair.called, at(30), ELSEWHERE, &answer).unwrap();
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
    // A cookie for another way to the same address proves nothing about this one.
    let moved = sealed(&mut pair.caller, at(40), b"moved");
    give(&mut pair.called, at(40), NEW_PLACE, &moved).unwrap();
    carry(&mut pair, at(50), NEW_PLACE);
    assert_eq!(pair.called.path(), Some(addr(NEW_PLACE)), "the genuine answer still counts");
}

/// Overtaken datagrams come from where the peer was.
#[test]
fn a_late_datagram_moves_nothing_and_asks_nothing() {
    let mut pair = Pair::established();
    let first = sealed(&mut pair.caller, at(1), b"1");
    let second = sealed(&mut pair.caller, at(1), b"2");
    opened(&mut pair.called, at(2), &second).unwrap();
    let late = give(&mut pair.called, at(3), ELSEWHERE, &first).unwrap().unwrap();
    assert!(late.late);
    assert_eq!((pair.called.path(), pair.called.poll_transmit()), (Some(addr(CALLER)), None));
    // Not even an answer does.
    let third = sealed(&mut pair.caller, at(4), b"3");
    give(&mut pair.called, at(4), NEW_PLACE, &third).unwrap();
    let challenge = sent(&mut pair.called);
    give(&mut pair.caller, at(5), CALLED, &challenge).unwrap();
    let answer = sent(&mut pair.caller);
    let fourth = sealed(&mut pair.caller, at(5), b"4");
    give(&mut pair.called, at(6), NEW_PLACE, &fourth).unwrap();
    give(&mut pair.called, at(7), NEW_PLACE, &answer).unwrap();
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

/// Challenges elsewhere are few, and do not stand in for what the peer waits for.
#[test]
fn challenges_are_limited_and_no_keep_alives() {
    let mut pair = Pair::established();
    let (mut challenges, mut others) = (0, 0);
    for millis in 1..=1000 {
        let captured = sealed(&mut pair.caller, at(millis), b"captured");
        give(&mut pair.called, at(millis), ELSEWHERE, &captured).unwrap();
        pair.called.handle_timeout(at(millis));
        while let Some((to, _)) = pair.called.poll_transmit() {
            challenges += u32::from(to == addr(ELSEWHERE));
            others += u32::from(to == addr(CALLER));
        }
    }
    assert_eq!((challenges, others), (4 + 3, 4 + 3 + 1), "as many on the old path, and a keep-alive");
    assert_eq!(pair.called.keepalive_due(), Some(at(2000)), "one has just left");
}

/// Somebody delivers each datagram first, from an address of his own, and passes on what comes there, challenges among it. Which of
/// the peer's datagrams go his way is told.
fn redirected(pair: &mut Pair, seconds: u64, mut genuine_arrives: impl FnMut(u64) -> bool) -> u64 {
    let (mut astray, mut delayed) = (0, VecDeque::new());
    for now in (1..seconds * 1000).step_by(20) {
        let said: Vec<_> = std::iter::from_fn(|| pair.caller.poll_transmit()).map(|(_, said)| said).collect();
        for datagram in said.into_iter().chain([sealed(&mut pair.caller, at(now), b"data")]) {
            let _ = give(&mut pair.called, at(now), ELSEWHERE, &datagram);
            delayed.push_back((now + 60, datagram));
        }
        while let Some((_, datagram)) = delayed.pop_front_if(|(due, _)| *due <= now) {
            if genuine_arrives(now) {
                let _ = give(&mut pair.called, at(now), CALLER, &datagram);
            }
        }
        pair.called.handle_timeout(at(now));
        while let Some((_, datagram)) = pair.called.poll_transmit() {
            let _ = give(&mut pair.caller, at(now), CALLED, &datagram);
        }
        astray += u64::from(pair.called.path() == Some(addr(ELSEWHERE)));
    }
    astray
}

/// He who is faster than the path and passes challenges on gets next to nothing of what is for the peer.
#[test]
fn who_is_faster_and_passes_challenges_on_is_not_followed() {
    let mut pair = Pair::established();
    let astray = redirected(&mut pair, 60, |_| true);
    assert!(astray <= 5, "{astray} of 3000");
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

/// Nor if he copies the handshakes too, is faster with them, and passes on what is short alone: keys are renewed where the peer is.
#[test]
fn who_passes_handshakes_on_is_not_followed() {
    for (path, his) in [(60, 10), (300, 40)] {
        let mut pair = Pair::established();
        let (mut to_called, mut to_caller, mut astray, mut lost) = (VecDeque::new(), VecDeque::new(), 0, 0);
        let renewed = pair.called.established.get();
        for now in (1..500_000).step_by(10) {
            pair.caller.handle_timeout(at(now));
            pair.called.handle_timeout(at(now));
            if now % 50 == 1 {
                for side in [&mut pair.caller, &mut pair.called] {
                    let to = side.path().unwrap();
                    let datagram = sealed(side, at(now), &[0; 500]);
                    side.outbox.push_back(((to, LineId::FIRST), datagram));
                }
            }
            while let Some((_, datagram)) = pair.caller.poll_transmit() {
                to_called.push_back((now + his, ELSEWHERE, datagram.clone()));
                to_called.push_back((now + path, CALLER, datagram));
            }
            while let Some((to, datagram)) = pair.called.poll_transmit() {
                let is_his = to == addr(ELSEWHERE);
                (astray, lost) =
                    (astray + u32::from(is_his), lost + u32::from(is_his && datagram.len() > 300));
                if !is_his || datagram.len() <= 300 {
                    to_caller.push_back((now + if is_his { his } else { path }, datagram));
                }
            }
            to_called.make_contiguous().sort_by_key(|(due, ..)| *due);
            while let Some((_, from, datagram)) = to_called.pop_front_if(|(due, ..)| *due <= now) {
                let _ = give(&mut pair.called, at(now), from, &datagram);
            }
            to_caller.make_contiguous().sort_by_key(|(due, ..)| *due);
            while let Some((_, datagram)) = to_caller.pop_front_if(|(due, _)| *due <= now) {
                let _ = give(&mut pair.caller, at(now), CALLED, &datagram);
            }
        }
        assert!(pair.called.established.get() >= renewed + 3, "keys are renewed");
        assert!(astray > 100, "he passes challenges on: {astray}");
        assert!(lost <= 40, "{lost} of 10,000 went to him, path of {path} ms");
        assert_eq!(pair.called.path(), Some(addr(CALLER)));
    }
}

/// A peer that restarts elsewhere is followed at once; one that restarts where it was and whose call somebody passes on is found again.
#[test]
fn a_restart_moves_the_peer_until_it_is_heard_where_it_was() {
    for returns in [false, true] {
        let mut pair = Pair::established();
        let said = sealed(&mut pair.caller, at(10), b"said");
        give(&mut pair.called, at(10), CALLER, &said).unwrap();
        pair.caller = caller();
        pair.caller.handle_timeout(at(500));
        for now in 500..510 {
            while let Some((_, datagram)) = pair.caller.poll_transmit() {
                let _ = give(&mut pair.called, at(now), ELSEWHERE, &datagram);
            }
            while let Some((_, datagram)) = pair.called.poll_transmit() {
                let _ = give(&mut pair.caller, at(now), CALLED, &datagram);
            }
        }
        assert_eq!(pair.called.path(), Some(addr(ELSEWHERE)));
        let said = sealed(&mut pair.caller, at(600), b"said");
        give(&mut pair.called, at(600), ELSEWHERE, &said).unwrap();
        if returns {
            let _ = give(&mut pair.called, at(650), CALLER, &said);
        }
        assert_eq!(pair.called.path(), Some(addr(if returns { CALLER } else { ELSEWHERE })));
    }
}

/// If nothing comes on the old path for a second, the new one is the better; when the old one comes back, it counts again.
#[test]
fn the_old_path_is_preferred_as_soon_as_it_carries_again() {
    let mut pair = Pair::established();
    let astray = redirected(&mut pair, 60, |now| !(10_000..20_000).contains(&now));
    assert!((400..=510).contains(&astray), "{astray} of 3000, of which 500 came that way only");
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

/// Once it has been misled, it waits for a second of silence: a path that carries little is not given up again and again.
#[test]
fn a_path_that_carries_little_is_given_up_once() {
    let mut pair = Pair::established();
    let astray = redirected(&mut pair, 60, |now| now % 800 < 40);
    assert!(astray <= 60, "{astray} of 3000");
}

/// A peer that has really moved is followed at once, whatever comes late from where it was.
#[test]
fn late_datagrams_from_the_old_path_do_not_bring_it_back() {
    let mut pair = Pair::established();
    let late = [10, 20].map(|millis| sealed(&mut pair.caller, at(millis), b"late"));
    let moved = sealed(&mut pair.caller, at(30), b"moved");
    give(&mut pair.called, at(40), NEW_PLACE, &moved).unwrap();
    carry(&mut pair, at(50), NEW_PLACE);
    assert_eq!(pair.called.path(), Some(addr(NEW_PLACE)));
    for datagram in &late {
        opened(&mut pair.called, at(60), datagram).unwrap();
    }
    assert_eq!(pair.called.path(), Some(addr(NEW_PLACE)));
}

/// The first datagram under new keys, delivered from elsewhere: the peer is where its cookie was for.
#[test]
fn a_raced_first_datagram_moves_nothing() {
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    give(&mut pair.caller, at(0), ELSEWHERE, &answer).unwrap();
    assert_eq!(pair.caller.path(), Some(addr(CALLED)), "nor does an answer from elsewhere");
    let (to, confirming) = pair.caller.poll_transmit().unwrap();
    assert_eq!(to, addr(CALLED));
    give(&mut pair.called, at(1), ELSEWHERE, &confirming).unwrap();
    assert!(pair.is_established());
    assert_eq!(pair.called.path(), Some(addr(CALLER)));
}

/// What becomes of a handshake that the called side begins from `port`, once it has proved that address.
fn calls_from(caller: &mut Side, called: &mut Side, port: u16) -> Result<Option<Arrival>, Rejection> {
    called.outbox.clear();
    called.initiate(at(20));
    caller.outbox.clear();
    give(caller, at(20), port, &sent(called)).unwrap();
    let (to, challenge) = caller.poll_transmit().unwrap();
    assert_eq!((to, challenge[0]), (addr(port), 3));
    give(called, at(20), CALLER, &challenge).unwrap();
    give(caller, at(20), port, &sent(called))
}

#[test]
fn a_pinned_peer_is_nowhere_else() {
    let mut pair = Pair { caller: pinned(), called: called() };
    pair.exchange(at(0));
    assert!(pair.is_established());
    let datagram = sealed(&mut pair.called, at(10), b"captured");
    assert!(give(&mut pair.caller, at(10), ELSEWHERE, &datagram).unwrap().is_some(), "it is authentic");
    assert_eq!((pair.caller.path(), pair.caller.poll_transmit()), (Some(addr(CALLED)), None));
    let mut stranger = called_who(Some(CALLER), "link");
    stranger.handle_timeout(at(20));
    assert_eq!(calls_from(&mut pair.caller, &mut stranger, ELSEWHERE), Err(Rejection::Elsewhere));
    assert_eq!(calls_from(&mut pair.caller, &mut stranger, CALLED), Ok(None));
}

/// A wildcard has many addresses: answers come from the one that the peer knows.
#[test]
fn answers_leave_from_where_the_peer_sent_to() {
    let here = |host| Some(std::net::IpAddr::from([192, 0, 2, host]));
    let from = |host| Path { local: here(host), ..addr(CALLER) };
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    for _ in 0..2 {
        let mut datagram = sent(&mut pair.caller);
        pair.called.handle_datagram(at(0), from(1), &mut datagram).unwrap();
        let (to, answer) = pair.called.poll_transmit().unwrap();
        assert_eq!(to, from(1));
        give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
    }
    let mut confirming = sent(&mut pair.caller);
    pair.called.handle_datagram(at(0), from(1), &mut confirming).unwrap();
    assert_eq!((pair.called.path(), pair.called.poll_transmit()), (Some(from(1)), None));
    let mut moved = sealed(&mut pair.caller, at(1), b"to another address");
    pair.called.handle_datagram(at(1), from(2), &mut moved).unwrap();
    assert_eq!(pair.called.path(), Some(from(1)));
    assert_eq!(pair.called.poll_transmit().unwrap().0, from(2), "another way wants proof");
    // Who calls leaves its own address to the kernel, which knows when it changes.
    let mut datagram = sealed(&mut pair.called, at(2), b"back");
    pair.caller.handle_datagram(at(2), Path { local: here(9), ..addr(CALLED) }, &mut datagram).unwrap();
    assert_eq!((pair.caller.path(), pair.caller.poll_transmit()), (Some(addr(CALLED)), None));
}

/// Carries datagrams between the caller and the called side, which is at `port`, until there are none; those for
/// elsewhere are lost.
fn exchange_at(pair: &mut Pair, now: Instant, port: u16) {
    pair.caller.handle_timeout(now);
    pair.called.handle_timeout(now);
    for _ in 0..10 {
        while let Some((to, datagram)) = pair.caller.poll_transmit() {
            if to == addr(port) {
                let _ = give(&mut pair.called, now, CALLER, &datagram);
            }
        }
        while let Some((_, datagram)) = pair.called.poll_transmit() {
            let _ = give(&mut pair.caller, now, port, &datagram);
        }
    }
}

#[test]
fn a_caller_without_an_address_begins_once_it_has_one() {
    let caller = side(key(CALLER), key(CALLED).public(), place(None), "link");
    let mut pair = Pair { caller, called: called() };
    pair.exchange(at(0));
    assert_eq!((pair.caller.called(), pair.caller.poll_timeout()), (None, None));
    pair.caller.call_at(addr(CALLED).peer);
    assert_eq!(pair.caller.called(), Some(addr(CALLED).peer));
    exchange_at(&mut pair, at(10), CALLED);
    assert!(pair.is_established());
    assert_eq!(pair.caller.path(), Some(addr(CALLED)));
}

#[test]
fn a_silent_peer_is_called_at_its_new_address_and_a_handshake_completes_there() {
    for mut pair in [Pair::established(), Pair { caller: pinned(), called: called() }] {
        pair.exchange(at(0));
        // It has moved, and had to start again.
        pair.called = called();
        for millis in (1000..=50_000).step_by(1000) {
            exchange_at(&mut pair, at(millis), NEW_PLACE);
        }
        assert!(!pair.caller.is_heard(at(50_000)), "nobody calls it there");
        let handshakes = pair.caller.established.get();
        pair.caller.call_at(addr(NEW_PLACE).peer);
        exchange_at(&mut pair, at(50_001), NEW_PLACE);
        assert!(pair.caller.is_heard(at(50_001)), "called at once");
        assert_eq!(pair.caller.established.get(), handshakes + 1);
        assert_eq!(pair.caller.path(), Some(addr(NEW_PLACE)));
    }
}

#[test]
fn a_peer_that_is_heard_stays_where_it_is_until_the_next_handshake() {
    let mut pair = Pair::established();
    pair.caller.call_at(addr(NEW_PLACE).peer);
    assert_eq!(pair.caller.path(), Some(addr(CALLED)));
    for millis in (1000..=110_000).step_by(1000) {
        pair.exchange(at(millis));
        assert!(pair.caller.is_heard(at(millis)));
        assert_eq!(pair.caller.path(), Some(addr(CALLED)), "{millis} ms");
    }
    assert_eq!(pair.caller.established.get(), 1);
    assert_eq!(std::iter::from_fn(|| pair.caller.poll_event()).count(), 0);
}

/// Answers to what was sent to the former address say nothing about the new one.
#[test]
fn an_answer_from_the_former_address_does_not_prove_the_new_one() {
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    pair.caller.call_at(addr(NEW_PLACE).peer);
    assert_eq!(give(&mut pair.caller, at(1), CALLED, &answer), Err(Rejection::UnknownSession));
    assert!(!pair.caller.is_established());
    // The same address again is no new one.
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    pair.caller.call_at(addr(CALLED).peer);
    assert_eq!(give(&mut pair.caller, at(1), CALLED, &answer), Ok(None));
}

#[test]
fn a_pinned_peer_is_where_it_is_called() {
    let mut pair = Pair { caller: pinned(), called: called() };
    pair.exchange(at(0));
    pair.caller.events.clear();
    let datagram = sealed(&mut pair.called, at(1), b"from where it was");
    pair.caller.call_at(addr(NEW_PLACE).peer);
    assert_eq!((pair.caller.path(), pair.caller.poll_event()), (Some(addr(NEW_PLACE)), Some(Event::Lost)));
    assert_eq!(give(&mut pair.caller, at(2), CALLED, &datagram), Err(Rejection::UnknownSession));
    let mut stranger = called_who(Some(CALLER), "link");
    stranger.handle_timeout(at(20));
    assert_eq!(calls_from(&mut pair.caller, &mut stranger, CALLED), Err(Rejection::Elsewhere));
    assert_eq!(calls_from(&mut pair.caller, &mut stranger, NEW_PLACE), Ok(None));
}

/// Has the caller move to `port`, from where it answers.
fn move_to(pair: &mut Pair, now: Instant, port: u16) {
    let moved = sealed(&mut pair.caller, now, b"moved");
    give(&mut pair.called, now, port, &moved).unwrap();
    carry(pair, now, port);
    assert_eq!(pair.called.path(), Some(addr(port)));
}

/// Whoever moves on before is still at home where it was before: nobody may lead it away in two steps.
#[test]
fn a_peer_is_at_home_where_it_has_been_for_a_minute() {
    for (moves_on, is_at_home) in [(59_000, false), (61_000, true)] {
        let mut pair = Pair::established();
        move_to(&mut pair, at(40), NEW_PLACE);
        move_to(&mut pair, at(moves_on), NEW_PLACE + 1);
        let back = sealed(&mut pair.caller, at(moves_on + 10), b"back");
        give(&mut pair.called, at(moves_on + 10), NEW_PLACE, &back).unwrap();
        assert_eq!(pair.called.path() == Some(addr(NEW_PLACE)), is_at_home, "after {moves_on} ms");
    }
}
