//! Two sessions over a wire that loses, delays, repeats and forges, in virtual time.

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

const CALLER: u16 = 1;
const CALLED: u16 = 2;

/// A caller and a called side, and the datagrams between them.
struct Pair {
    caller: Session,
    called: Session,
}

impl Pair {
    fn new() -> Self {
        Self { caller: caller(), called: called() }
    }

    fn established() -> Self {
        let mut pair = Self::new();
        pair.exchange(at(0));
        assert!(pair.caller.is_established() && pair.called.is_established());
        pair.caller.events.clear();
        pair.called.events.clear();
        pair
    }

    /// Lets both do what is due and carries datagrams to and fro until there are none.
    fn exchange(&mut self, now: Instant) {
        self.caller.handle_timeout(now);
        self.called.handle_timeout(now);
        for _ in 0..10 {
            while let Some((_, mut datagram)) = self.caller.poll_transmit() {
                let _ = self.called.handle_datagram(now, addr(CALLER), &mut datagram);
            }
            while let Some((_, mut datagram)) = self.called.poll_transmit() {
                let _ = self.caller.handle_datagram(now, addr(CALLED), &mut datagram);
            }
        }
    }
}

fn key() -> PresharedKey {
    PresharedKey::from_bytes([7; 32])
}

fn caller() -> Session {
    Session::new(key(), Some(addr(CALLED)), "link", Timing::default())
}

fn called() -> Session {
    Session::new(key(), None, "link", Timing::default())
}

fn sealed(session: &mut Session, now: Instant, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; DATA_HEADER_LEN];
    datagram.extend_from_slice(payload);
    session.seal(now, &mut datagram, 0);
    datagram
}

fn opened(session: &mut Session, now: Instant, datagram: &[u8]) -> Result<(Vec<u8>, bool), Rejection> {
    let mut datagram = datagram.to_vec();
    let arrival = session.handle_datagram(now, addr(CALLER), &mut datagram)?.expect("data");
    Ok((datagram[arrival.payload].to_vec(), arrival.late))
}

#[test]
fn a_handshake_makes_two_working_directions() {
    let mut pair = Pair::new();
    assert_eq!(pair.called.peer(), None);
    pair.exchange(at(0));
    assert_eq!(pair.called.peer(), Some(addr(CALLER)), "learnt from an authentic datagram");
    assert_eq!(pair.caller.poll_event(), Some(Event::Established { restarted: false }));
    assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: false }));
    let datagram = sealed(&mut pair.caller, at(1), b"frame");
    assert_eq!(datagram.len(), OVERHEAD + 5);
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Ok((b"frame".to_vec(), false)));
    let datagram = sealed(&mut pair.called, at(2), b"back");
    assert_eq!(opened(&mut pair.caller, at(2), &datagram), Ok((b"back".to_vec(), false)));
}

#[test]
fn what_nobody_sent_is_refused_by_reason_and_the_session_lives() {
    let mut pair = Pair::established();
    let datagram = sealed(&mut pair.caller, at(1), b"frame");
    for bit in 0..datagram.len() * 8 {
        let mut forged = datagram.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(opened(&mut pair.called, at(1), &forged).is_err(), "bit {bit}");
    }
    let mut forged = datagram.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(opened(&mut pair.called, at(1), &forged), Err(Rejection::Forged));
    forged[8..16].fill(0xff);
    assert_eq!(opened(&mut pair.called, at(1), &forged), Err(Rejection::Forged));
    for len in 0..datagram.len() {
        let rejection = opened(&mut pair.called, at(1), &datagram[..len]).unwrap_err();
        let want = if len < OVERHEAD { Rejection::Truncated } else { Rejection::Forged };
        assert_eq!(rejection, want, "{len} bytes");
    }
    assert_eq!(opened(&mut pair.called, at(1), b"GET / HTTP/1.0"), Err(Rejection::UnknownType));
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Ok((b"frame".to_vec(), false)));
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Err(Rejection::Replayed));
}

#[test]
fn control_datagrams_reach_the_daemon_and_cannot_pass_for_data() {
    let mut pair = Pair::new();
    assert!(!pair.caller.send_control(at(0), 16, b"nobody"), "there is no session yet");
    pair = Pair::established();
    assert!(pair.caller.send_control(at(1), 16, b"body"));
    let (to, datagram) = pair.caller.poll_transmit().unwrap();
    assert_eq!((to, datagram[0], datagram.len()), (addr(CALLED), 5, OVERHEAD + 5));
    let mut as_data = datagram.clone();
    as_data[0] = 4;
    assert_eq!(opened(&mut pair.called, at(1), &as_data), Err(Rejection::Forged));
    let mut bytes = datagram.clone();
    let arrival = pair.called.handle_datagram(at(1), addr(CALLER), &mut bytes).unwrap().unwrap();
    assert_eq!(
        (arrival.kind, &bytes[arrival.payload], arrival.late),
        (Kind::Control(16), &b"body"[..], false)
    );
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Err(Rejection::Replayed), "one window for both");
    let data = sealed(&mut pair.caller, at(1), b"frame");
    assert!(data[8] > datagram[8], "one counter for both");
    // A kind of the session's own that only a later version knows.
    assert!(pair.caller.send_control(at(2), 15, b""));
    let (_, mut unknown) = pair.caller.poll_transmit().unwrap();
    assert_eq!(
        pair.called.handle_datagram(at(2), addr(CALLER), &mut unknown),
        Err(Rejection::UnknownControl)
    );
}

#[test]
fn overtaken_datagrams_are_late_but_authentic() {
    let mut pair = Pair::established();
    let first = sealed(&mut pair.caller, at(1), b"1");
    let second = sealed(&mut pair.caller, at(1), b"2");
    assert_eq!(opened(&mut pair.called, at(2), &second), Ok((b"2".to_vec(), false)));
    assert_eq!(opened(&mut pair.called, at(3), &first), Ok((b"1".to_vec(), true)));
    assert_eq!(pair.called.late.get(), 1);
}

#[test]
fn another_key_gets_no_session() {
    let mut pair = Pair::new();
    pair.called = Session::new(PresharedKey::from_bytes([8; 32]), None, "link", Timing::default());
    pair.caller.handle_timeout(at(0));
    let (to, mut datagram) = pair.caller.poll_transmit().unwrap();
    assert_eq!(to, addr(CALLED));
    let result = pair.called.handle_datagram(at(0), addr(CALLER), &mut datagram);
    assert_eq!(result, Err(Rejection::ForgedHandshake));
    assert_eq!(pair.called.poll_transmit(), None, "no answer to strangers");
}

#[test]
fn another_link_protocol_gets_no_session() {
    let mut pair = Pair::new();
    pair.called = Session::new(key(), None, "other link", Timing::default());
    pair.caller.handle_timeout(at(0));
    let (_, mut datagram) = pair.caller.poll_transmit().unwrap();
    let result = pair.called.handle_datagram(at(0), addr(CALLER), &mut datagram);
    assert_eq!(result, Err(Rejection::Disagreement));
    let (_, mut answer) = pair.called.poll_transmit().unwrap();
    let result = pair.caller.handle_datagram(at(0), addr(CALLED), &mut answer);
    assert_eq!(result, Err(Rejection::Disagreement), "both sides know");
    pair.exchange(at(1000));
    assert!(!pair.caller.is_established());
}

#[test]
fn a_replayed_initiation_changes_nothing() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    let (_, initiation) = pair.caller.poll_transmit().unwrap();
    let mut first = initiation.clone();
    assert_eq!(pair.called.handle_datagram(at(0), addr(CALLER), &mut first), Ok(None));
    pair.exchange(at(0));
    let learnt = pair.called.peer();
    let mut again = initiation.clone();
    assert_eq!(pair.called.handle_datagram(at(1), addr(666), &mut again), Err(Rejection::Replayed));
    // One that was never answered here may be, but without its key nothing can follow.
    pair.caller.initiate(at(2000));
    let (_, mut unanswered) = pair.caller.poll_transmit().unwrap();
    assert_eq!(pair.called.handle_datagram(at(2000), addr(666), &mut unanswered), Ok(None));
    assert_eq!(pair.called.peer(), learnt);
    let datagram = sealed(&mut pair.caller, at(2001), b"still");
    assert_eq!(opened(&mut pair.called, at(2001), &datagram), Ok((b"still".to_vec(), false)));
}

#[test]
fn handshakes_are_limited_in_rate() {
    let mut called = called();
    let mut results = Vec::new();
    for _ in 0..30 {
        let mut stranger = caller();
        stranger.handle_timeout(at(0));
        let (_, mut datagram) = stranger.poll_transmit().unwrap();
        results.push(called.handle_datagram(at(0), addr(CALLER), &mut datagram));
    }
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 20);
    assert_eq!(results.last(), Some(&Err(Rejection::TooManyHandshakes)));
}

/// The round trip may be longer than the retry interval: answers to earlier initiations count too.
#[test]
fn an_answer_may_come_after_the_next_initiation() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    let (_, mut first) = pair.caller.poll_transmit().unwrap();
    pair.caller.handle_timeout(at(1000));
    assert!(pair.caller.poll_transmit().is_some());
    pair.called.handle_datagram(at(1200), addr(CALLER), &mut first).unwrap();
    let (_, mut answer) = pair.called.poll_transmit().unwrap();
    pair.caller.handle_datagram(at(2400), addr(CALLED), &mut answer).unwrap();
    assert!(pair.caller.is_established());
}

#[test]
fn the_called_side_waits_for_the_first_datagram() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
    pair.called.handle_datagram(at(0), addr(CALLER), &mut initiation).unwrap();
    let (_, mut answer) = pair.called.poll_transmit().unwrap();
    pair.caller.handle_datagram(at(0), addr(CALLED), &mut answer).unwrap();
    assert!(!pair.called.is_established());
    // The confirming keep-alive is lost; data confirms as well.
    assert!(pair.caller.poll_transmit().is_some());
    let datagram = sealed(&mut pair.caller, at(1), b"frame");
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Ok((b"frame".to_vec(), false)));
    assert!(pair.called.is_established());
}

#[test]
fn new_keys_alone_are_no_restart() {
    let mut pair = Pair::established();
    let (mut now, mut handshakes) = (0, pair.caller.established.get());
    for _ in 0..3 {
        for _ in 0..125 {
            now += 1000;
            pair.exchange(at(now));
        }
        assert_eq!(pair.caller.established.get(), handshakes + 1, "renewed about every two minutes");
        handshakes += 1;
    }
    let events = std::iter::from_fn(|| pair.called.poll_event()).collect::<Vec<_>>();
    assert_eq!(events, [Event::Established { restarted: false }; 3]);
}

#[test]
fn data_under_the_old_keys_still_counts_until_new_data_came() {
    let mut pair = Pair::established();
    let old = [sealed(&mut pair.caller, at(1), b"a"), sealed(&mut pair.caller, at(1), b"b")];
    pair.caller.initiate(at(2));
    let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
    pair.called.handle_datagram(at(2), addr(CALLER), &mut initiation).unwrap();
    assert_eq!(opened(&mut pair.called, at(3), &old[0]), Ok((b"a".to_vec(), false)));
    let (_, mut answer) = pair.called.poll_transmit().unwrap();
    pair.caller.handle_datagram(at(3), addr(CALLED), &mut answer).unwrap();
    let new = sealed(&mut pair.caller, at(4), b"c");
    assert_eq!(opened(&mut pair.called, at(5), &new), Ok((b"c".to_vec(), false)));
    assert_eq!(opened(&mut pair.called, at(6), &old[1]), Ok((b"b".to_vec(), true)));
}

#[test]
fn silence_makes_the_caller_try_again_for_ever() {
    let mut pair = Pair::established();
    let (mut now, mut initiations) = (0, 0);
    for _ in 0..20 {
        now += 1000;
        pair.caller.handle_timeout(at(now));
        while let Some((_, datagram)) = pair.caller.poll_transmit() {
            initiations += u32::from(datagram[0] == 1);
        }
    }
    assert!((14..=16).contains(&initiations), "from the fifth second on, one a second: {initiations}");
    pair.exchange(at(now + 1000));
    pair.caller.events.clear();
    assert!(pair.caller.initiation_due().unwrap() > at(now + 2000), "the peer is back");
}

#[test]
fn a_called_side_that_restarts_is_noticed_by_a_hint() {
    let mut pair = Pair::established();
    pair.called = called();
    let mut datagram = sealed(&mut pair.caller, at(2100), b"to a former life");
    let result = pair.called.handle_datagram(at(2100), addr(CALLER), &mut datagram);
    assert_eq!(result, Err(Rejection::UnknownSession));
    pair.exchange(at(2100));
    pair.exchange(at(2200));
    assert_eq!(pair.caller.poll_event(), Some(Event::Established { restarted: true }));
    assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: false }));
}

#[test]
fn hints_are_limited_and_must_fit() {
    let mut called = called();
    let mut stray = wire::sealed_header(Sealed::Data, 9, 0).to_vec();
    stray.resize(OVERHEAD, 0);
    for _ in 0..100 {
        let _ = called.handle_datagram(at(0), addr(CALLER), &mut stray.clone());
    }
    assert_eq!(std::iter::from_fn(|| called.poll_transmit()).count(), 2);
    let mut pair = Pair::established();
    let mut hint = wire::hint(pair.caller.current.as_ref().unwrap().remote.wrapping_add(1));
    assert_eq!(pair.caller.handle_datagram(at(1), addr(CALLED), &mut hint), Err(Rejection::UnknownSession));
    let mut hint = wire::hint(pair.caller.current.as_ref().unwrap().remote);
    for (now, from) in [(1, CALLED), (1999, CALLED), (3000, 666)] {
        let result = pair.caller.handle_datagram(at(now), addr(from), &mut hint);
        assert_eq!(result, Err(Rejection::UnexpectedHint), "{now} ms, from {from}");
    }
    assert!(!pair.caller.handshake_wanted);
    assert_eq!(pair.caller.handle_datagram(at(2000), addr(CALLED), &mut hint), Ok(None));
    assert!(pair.caller.handshake_wanted);
}

/// Somebody on the path sends every initiation back to where it came from: the genuine answer still counts.
#[test]
fn a_reflected_initiation_changes_nothing() {
    for round in 0..8 {
        let mut pair = Pair::new();
        pair.called = Session::new(key(), Some(addr(CALLER)), "link", Timing::default());
        pair.caller.handle_timeout(at(round));
        let (_, initiation) = pair.caller.poll_transmit().unwrap();
        let result = pair.caller.handle_datagram(at(round), addr(CALLED), &mut initiation.clone());
        assert_eq!(result, Err(Rejection::Reflected));
        assert_eq!(pair.caller.poll_transmit(), None);
        pair.called.handle_datagram(at(round), addr(CALLER), &mut initiation.clone()).unwrap();
        let (_, mut answer) = pair.called.poll_transmit().unwrap();
        pair.caller.handle_datagram(at(round), addr(CALLED), &mut answer).unwrap();
        assert!(pair.caller.is_established());
    }
}

/// A replayed initiation of the peer's, when both begin, must not cost us our own handshake.
#[test]
fn an_unconfirmed_initiation_leaves_our_own_alone() {
    for _ in 0..8 {
        let mut recorded = caller();
        recorded.handle_timeout(at(0));
        let (_, mut old) = recorded.poll_transmit().unwrap();
        let mut pair = Pair::new();
        pair.caller.handle_timeout(at(0));
        let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
        pair.caller.handle_datagram(at(0), addr(666), &mut old).unwrap();
        pair.called.handle_datagram(at(0), addr(CALLER), &mut initiation).unwrap();
        let (_, mut answer) = pair.called.poll_transmit().unwrap();
        pair.caller.handle_datagram(at(0), addr(CALLED), &mut answer).unwrap();
        assert!(pair.caller.is_established());
    }
}

/// Junk costs no operation on the curve and nothing of what genuine handshakes may use.
#[test]
fn a_flood_of_junk_keeps_no_genuine_handshake_out() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
    for n in 0..1000_u32 {
        let noise: Vec<u8> = (0..72_u32).map(|at| (n.wrapping_mul(0x9e37_79b9) >> (at % 24)) as u8).collect();
        let result = pair.called.handle_datagram(at(0), addr(666), &mut wire::initiation(n, &noise));
        assert_eq!(result, Err(Rejection::ForgedHandshake));
        let local = pair.caller.initiations[0].local;
        for receiver in [n, local] {
            let mut junk = wire::response(n, receiver, &noise);
            assert!(pair.caller.handle_datagram(at(0), addr(666), &mut junk).is_err());
        }
    }
    pair.called.handle_datagram(at(0), addr(CALLER), &mut initiation).unwrap();
    pair.exchange(at(0));
    assert!(pair.caller.is_established() && pair.called.is_established());
}

/// A forged answer that names the right index leaves the initiation pending, whatever it looks like.
#[test]
fn a_forged_answer_costs_nothing() {
    let mut pair = Pair::new();
    pair.caller.handle_timeout(at(0));
    let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
    pair.called.handle_datagram(at(0), addr(CALLER), &mut initiation).unwrap();
    let (_, answer) = pair.called.poll_transmit().unwrap();
    for at_byte in 12..answer.len() {
        let mut forged = answer.clone();
        forged[at_byte] ^= 0x40;
        let result = pair.caller.handle_datagram(at(1), addr(666), &mut forged);
        assert_eq!(result, Err(Rejection::ForgedHandshake), "byte {at_byte}");
    }
    pair.caller.handle_datagram(at(2), addr(CALLED), &mut answer.clone()).unwrap();
    pair.exchange(at(2));
    assert!(pair.caller.is_established() && pair.called.is_established());
    assert_eq!(pair.called.peer(), Some(addr(CALLER)));
}

/// After a restart the called side recognises no old initiation, but the genuine one outlasts them all.
#[test]
fn replayed_initiations_do_not_push_a_genuine_one_out() {
    let mut pair = Pair::new();
    let mut recorded = Vec::new();
    for second in 0..100 {
        pair.caller.initiate(at(second * 1000));
        recorded.push(pair.caller.poll_transmit().unwrap().1);
    }
    pair.called = called();
    let start = 200_000;
    pair.caller.initiate(at(start));
    let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
    pair.called.handle_datagram(at(start), addr(CALLER), &mut initiation).unwrap();
    let (_, mut answer) = pair.called.poll_transmit().unwrap();
    for (n, old) in recorded.iter().enumerate() {
        let now = at(start + 100 * (n as u64 + 1));
        let _ = pair.called.handle_datagram(now, addr(666), &mut old.clone());
        while pair.called.poll_transmit().is_some() {}
    }
    let refused = pair.called.handle_datagram(at(start + 20_000), addr(666), &mut recorded[0].clone());
    assert_eq!(refused, Err(Rejection::Replayed), "nothing but later ones wait");
    pair.caller.handle_datagram(at(start + 20_000), addr(CALLED), &mut answer).unwrap();
    pair.exchange(at(start + 20_000));
    assert!(pair.called.is_established());
    // From now on what the same life said before is known to be old.
    pair.called.answered.clear();
    let refused = pair.called.handle_datagram(at(start + 20_001), addr(666), &mut recorded[99].clone());
    assert_eq!(refused, Err(Rejection::Replayed));
}

/// New keys under which nothing came must not displace those that the peer still uses.
#[test]
fn keys_in_use_outlast_two_handshakes_without_data() {
    let mut pair = Pair::established();
    let old = sealed(&mut pair.called, at(1), b"old");
    for second in 1..3 {
        pair.caller.initiate(at(second * 1000));
        let (_, mut initiation) = pair.caller.poll_transmit().unwrap();
        pair.called.handle_datagram(at(second * 1000), addr(CALLER), &mut initiation).unwrap();
        let (_, mut answer) = pair.called.poll_transmit().unwrap();
        pair.caller.handle_datagram(at(second * 1000), addr(CALLED), &mut answer).unwrap();
        // The datagram that would confirm the keys is lost.
        while pair.caller.poll_transmit().is_some() {}
    }
    assert_eq!(opened(&mut pair.caller, at(3000), &old), Ok((b"old".to_vec(), false)));
}

#[test]
fn a_round_trip_of_many_seconds_still_gives_a_session() {
    let (mut pair, half) = (Pair::new(), 6_000);
    let mut wire: VecDeque<(u64, bool, Vec<u8>)> = VecDeque::new();
    for now in (0..40_000).step_by(500) {
        while let Some((_, to_called, mut datagram)) = wire.pop_front_if(|(due, ..)| *due <= now) {
            let (to, from) = if to_called { (&mut pair.called, CALLER) } else { (&mut pair.caller, CALLED) };
            let _ = to.handle_datagram(at(now), addr(from), &mut datagram);
        }
        pair.caller.handle_timeout(at(now));
        pair.called.handle_timeout(at(now));
        for (session, to_called) in [(&mut pair.caller, true), (&mut pair.called, false)] {
            while let Some((_, datagram)) = session.poll_transmit() {
                wire.push_back((now + half, to_called, datagram));
            }
        }
    }
    assert!(pair.caller.is_established() && pair.called.is_established());
}

#[test]
fn a_peer_that_fell_silent_is_worth_no_data_until_it_is_heard() {
    let mut pair = Pair::established();
    assert!(pair.called.is_heard(at(29_999)) && !pair.called.is_heard(at(30_000)));
    assert!(pair.called.is_established(), "the link's state stays");
    pair.called.handle_timeout(at(40_000));
    assert!(pair.called.poll_transmit().is_some(), "a keep-alive says that we live");
    let datagram = sealed(&mut pair.caller, at(50_000), b"back");
    assert_eq!(opened(&mut pair.called, at(50_000), &datagram), Ok((b"back".to_vec(), false)));
    assert!(pair.called.is_heard(at(50_001)));
}

#[test]
fn keep_alives_do_not_fill_a_slow_link() {
    let slow = Timing::for_frames_of(Duration::from_millis(1250));
    assert_eq!((slow.keepalive, slow.silence), (Duration::from_millis(2500), Duration::from_millis(12_500)));
    assert_eq!(Timing::for_frames_of(Duration::from_millis(3)), Timing::default());
}

#[test]
fn a_caller_that_restarts_is_a_new_life() {
    let mut pair = Pair::established();
    let stale = sealed(&mut pair.caller, at(10), b"from a former life");
    pair.caller = caller();
    pair.exchange(at(20));
    assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: true }));
    assert_eq!(opened(&mut pair.called, at(30), &stale), Err(Rejection::UnknownSession));
}

#[test]
fn both_may_call_at_once() {
    for _ in 0..8 {
        let mut pair = Pair::new();
        pair.called = Session::new(key(), Some(addr(CALLER)), "link", Timing::default());
        for second in 0..4 {
            pair.exchange(at(second * 1000));
        }
        let to = sealed(&mut pair.caller, at(4000), b"to");
        assert_eq!(opened(&mut pair.called, at(4000), &to), Ok((b"to".to_vec(), false)));
        let fro = sealed(&mut pair.called, at(4000), b"fro");
        assert_eq!(opened(&mut pair.caller, at(4000), &fro), Ok((b"fro".to_vec(), false)));
    }
}

#[test]
fn keys_expire() {
    let mut pair = Pair::established();
    pair.called.handle_timeout(at(299_999));
    assert!(pair.called.is_established());
    pair.called.handle_timeout(at(300_000));
    assert_eq!(pair.called.poll_event(), Some(Event::Lost));
    assert!(!pair.called.is_established());
}

#[test]
fn an_idle_side_keeps_the_session_alive() {
    let mut pair = Pair::established();
    for second in 1..60 {
        pair.exchange(at(second * 1000));
    }
    assert_eq!(pair.caller.established.get(), 1, "nobody took the other for dead");
    assert!(pair.caller.poll_timeout().unwrap() <= at(60_000));
}

proptest::proptest! {
    #[test]
    fn no_datagram_panics(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        kind in 0_u8..6,
        ours: bool,
    ) {
        let mut pair = Pair::established();
        let mut datagram = [&[kind, 0, 0, 0], &bytes[..]].concat();
        if ours && datagram.len() >= 8 {
            let local = pair.called.current.as_ref().unwrap().local;
            datagram[4..8].copy_from_slice(&local.to_le_bytes());
        }
        let result = pair.called.handle_datagram(at(1), addr(CALLER), &mut datagram);
        proptest::prop_assert!(result.is_err());
        let fine = sealed(&mut pair.caller, at(2), b"frame");
        proptest::prop_assert_eq!(opened(&mut pair.called, at(2), &fine), Ok((b"frame".to_vec(), false)));
    }
}
