//! Two sessions over a wire that loses, delays, repeats and forges, in virtual time.

mod attacks;
mod idle;
mod renewal;
mod roaming;

use core::ops::{Deref, DerefMut};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use base::Duration;

use super::*;
use crate::key::{PresharedKey, PrivateKey};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn addr(port: u16) -> Path {
    Address::Udp(SocketAddr::from(([127, 0, 0, 1], port))).into()
}

const CALLER: u16 = 1;
const CALLED: u16 = 2;
/// Who is none of the two.
const ELSEWHERE: u16 = 666;

/// A gateway with one peer: its reception, and its session.
#[derive(Debug)]
struct Side {
    reception: Reception,
    session: Session,
}

impl Deref for Side {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Side {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Side {
    fn handle_datagram(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &mut [u8],
    ) -> Result<Option<Arrival>, Rejection> {
        if bytes.first() != Some(&1) {
            return self.session.handle_datagram(now, from, bytes);
        }
        let Self { reception, session } = self;
        let allows = |number| (number == NUMBER).then(|| session.allows_answer(now));
        let challenge = match reception.handle_initiation(now, from, bytes, allows)? {
            Received::Challenged(challenge) => challenge,
            Received::Call(call) if call.key() != session.peer_key() => {
                return Err(Rejection::UnknownPeer(call.key()));
            }
            Received::Call(call) if !session.is_newest(&call) => reception.challenge_again(now, &call)?,
            Received::Call(call) => {
                let reply = reception.reply(now, from, NUMBER);
                return session.answer(now, call, reply).map(|()| None);
            }
        };
        session.send((from, LineId::FIRST), challenge);
        Ok(None)
    }
}

/// A caller and a called side, and the datagrams between them.
struct Pair {
    caller: Side,
    called: Side,
}

impl Pair {
    fn new() -> Self {
        Self { caller: caller(), called: called() }
    }

    fn established() -> Self {
        let mut pair = Self::new();
        pair.exchange(at(0));
        assert!(pair.is_established());
        pair.caller.events.clear();
        pair.called.events.clear();
        pair
    }

    fn is_established(&self) -> bool {
        self.caller.is_established() && self.called.is_established()
    }

    /// Lets both do what is due and carries datagrams to and fro until there are none.
    fn exchange(&mut self, now: Instant) {
        self.caller.handle_timeout(now);
        self.called.handle_timeout(now);
        for _ in 0..10 {
            while let Some((_, datagram)) = self.caller.poll_transmit() {
                let _ = give(&mut self.called, now, CALLER, &datagram);
            }
            while let Some((_, datagram)) = self.called.poll_transmit() {
                let _ = give(&mut self.caller, now, CALLED, &datagram);
            }
        }
    }

    /// An initiation of the caller's that shows a cookie, so that the called side will answer it.
    fn initiation(&mut self, now: Instant) -> Vec<u8> {
        self.caller.initiate(now);
        if self.caller.lines.first().cookie.is_none() {
            let first = sent(&mut self.caller);
            give(&mut self.called, now, CALLER, &first).unwrap();
            let challenge = sent(&mut self.called);
            give(&mut self.caller, now, CALLED, &challenge).unwrap();
        }
        sent(&mut self.caller)
    }

    /// An initiation and its answer.
    fn answer(&mut self, now: Instant) -> Vec<u8> {
        let initiation = self.initiation(now);
        give(&mut self.called, now, CALLER, &initiation).unwrap();
        sent(&mut self.called)
    }
}

/// What a session has to send.
fn sent(session: &mut Session) -> Vec<u8> {
    session.poll_transmit().expect("there is something to send").1
}

fn give(session: &mut Side, now: Instant, from: u16, bytes: &[u8]) -> Result<Option<Arrival>, Rejection> {
    session.handle_datagram(now, addr(from), &mut bytes.to_vec())
}

/// The private key of the gateway at this port.
fn key(port: u16) -> PrivateKey {
    PrivateKey::from_bytes([port as u8; 32])
}

/// Where a peer is called, if it is.
fn place(calls: Option<u16>) -> Peer {
    Peer { address: calls.map(|port| addr(port).peer), pinned: false }
}

/// Of the one peer.
const NUMBER: u32 = 5;

/// A side whose random numbers no other one of the test has, and that are the same in each run.
fn side(own: PrivateKey, peer: PublicKey, place: Peer, agreement: &str) -> Side {
    thread_local!(static SEED: Cell<u64> = const { Cell::new(0) });
    SEED.set(SEED.get() + 1);
    let mut random = Random::seeded(SEED.get());
    let own = Arc::new(own);
    let indices = (Indices::new(&mut random), NUMBER);
    let reception = Reception::new(Arc::clone(&own), Random::seeded(SEED.get() + 1_000_000));
    let ends = Ends { own, peer, preshared: PresharedKey::from_bytes([7; 32]) };
    Side { reception, session: Session::new(ends, place, agreement, Timing::default(), indices, random) }
}

fn caller() -> Side {
    side(key(CALLER), key(CALLED).public(), place(Some(CALLED)), "link")
}

/// The called side; as a caller too if it `calls`.
fn called_who(calls: Option<u16>, agreement: &str) -> Side {
    side(key(CALLED), key(CALLER).public(), place(calls), agreement)
}

fn called() -> Side {
    called_who(None, "link")
}

fn sealed(session: &mut Session, now: Instant, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; HEADER_LEN];
    datagram.extend_from_slice(payload);
    session.seal(now, LineId::FIRST, Kind::Frame, &mut datagram, 0);
    datagram
}

fn opened(session: &mut Side, now: Instant, datagram: &[u8]) -> Result<(Vec<u8>, bool), Rejection> {
    let mut datagram = datagram.to_vec();
    let arrival = session.handle_datagram(now, addr(CALLER), &mut datagram)?.expect("data");
    Ok((datagram[arrival.payload].to_vec(), arrival.late))
}

#[test]
fn a_handshake_makes_two_working_directions() {
    let mut pair = Pair::new();
    assert_eq!(pair.called.peer(), None);
    pair.exchange(at(0));
    assert_eq!(pair.called.peer(), Some(addr(CALLER).peer), "learnt from an authentic datagram");
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
fn control_datagrams_look_like_frames_from_outside() {
    let mut pair = Pair::new();
    assert!(
        !pair.caller.send_control(at(0), LineId::FIRST, Kind::Report, b"nobody"),
        "there is no session yet"
    );
    pair = Pair::established();
    assert!(pair.caller.send_control(at(1), LineId::FIRST, Kind::Report, b"body"));
    let (to, datagram) = pair.caller.poll_transmit().unwrap();
    assert_eq!((to, datagram[0], datagram.len()), (addr(CALLED), 4, OVERHEAD + 4));
    let mut bytes = datagram.clone();
    let arrival = pair.called.handle_datagram(at(1), addr(CALLER), &mut bytes).unwrap().unwrap();
    assert_eq!((arrival.kind, &bytes[arrival.payload], arrival.late), (Kind::Report, &b"body"[..], false));
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Err(Rejection::Replayed), "one window for both");
    let data = sealed(&mut pair.caller, at(1), b"frame");
    assert!(data[8] > datagram[8], "one counter for both");
    assert_eq!((&data[..8], &data[9..16]), (&datagram[..8], &datagram[9..16]));
    // A body that only a later version knows.
    assert!(pair.caller.send_control(at(2), LineId::FIRST, Kind::PathChallenge, b""));
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

/// About every two minutes where something passes, and half as often where nothing does.
#[test]
fn new_keys_alone_are_no_restart() {
    for (is_idle, period) in [(false, 125), (true, 245)] {
        let mut pair = Pair::established();
        let (mut now, mut handshakes) = (0, pair.caller.established.get());
        for _ in 0..3 {
            for second in 0..period {
                now += 1000;
                if !is_idle {
                    let datagram = sealed(&mut pair.caller, at(now), b"traffic");
                    let _ = give(&mut pair.called, at(now), CALLER, &datagram);
                }
                pair.exchange(at(now));
                let due = if is_idle { 220 } else { 100 };
                assert!(second >= due || pair.caller.established.get() == handshakes, "too soon: {second} s");
            }
            assert_eq!(pair.caller.established.get(), handshakes + 1);
            handshakes += 1;
        }
        let events = std::iter::from_fn(|| pair.called.poll_event()).collect::<Vec<_>>();
        assert_eq!(events, [Event::Established { restarted: false }; 3]);
    }
}

/// Initiations that the caller sends in `seconds`, beginning with `from`, while nothing comes back.
fn initiations(pair: &mut Pair, from: u64, seconds: u64) -> Vec<u64> {
    let mut at_seconds = Vec::new();
    for second in from..from + seconds {
        pair.caller.handle_timeout(at(second * 1000));
        while let Some((_, datagram)) = pair.caller.poll_transmit() {
            if datagram[0] == 1 {
                at_seconds.push(second);
            }
        }
    }
    at_seconds
}

#[test]
fn silence_makes_the_caller_try_again_for_ever() {
    let mut pair = Pair::established();
    sealed(&mut pair.caller, at(0), b"to no avail");
    assert_eq!(initiations(&mut pair, 0, 21), (3..21).collect::<Vec<_>>(), "one a second");
    pair.exchange(at(21_000));
    pair.caller.events.clear();
    assert!(pair.caller.initiation_due().unwrap() > at(23_000), "the peer is back");
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
    assert!(
        pair.called.is_heard(at(42_999)) && !pair.called.is_heard(at(43_000)),
        "nothing has passed so far"
    );
    for millis in (0..10_000).step_by(100) {
        sealed(&mut pair.called, at(millis), b"to no avail");
    }
    let last = at(9_900);
    assert!(pair.called.is_heard(last), "what has begun has its time");
    for millis in (10_000..30_000).step_by(100) {
        assert!(pair.called.is_heard(at(millis)));
        sealed(&mut pair.called, at(millis), b"to no avail");
    }
    assert!(!pair.called.is_heard(at(30_000)));
    assert!(pair.called.is_established(), "the link's state stays");
    pair.called.handle_timeout(at(50_000));
    assert!(pair.called.poll_transmit().is_some(), "a keep-alive says that we live");
    let datagram = sealed(&mut pair.caller, at(60_000), b"back");
    assert_eq!(opened(&mut pair.called, at(60_000), &datagram), Ok((b"back".to_vec(), false)));
    assert!(pair.called.is_heard(at(60_001)));
}

#[test]
fn a_caller_that_restarts_is_a_new_life() {
    let mut pair = Pair::established();
    let old = [b"1", b"2"].map(|payload| sealed(&mut pair.caller, at(10), payload));
    let answer = pair.answer(at(20));
    give(&mut pair.caller, at(20), CALLED, &answer).unwrap();
    let confirming = sent(&mut pair.caller);
    give(&mut pair.called, at(20), CALLER, &confirming).unwrap();
    assert!(opened(&mut pair.called, at(20), &old[0]).is_ok(), "the keys before are kept");
    pair.called.events.clear();
    let new = sealed(&mut pair.caller, at(20), b"from a former life");
    pair.caller = caller();
    pair.exchange(at(30));
    assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: true }));
    for stale in [&old[1], &new] {
        assert_eq!(opened(&mut pair.called, at(40), stale), Err(Rejection::UnknownSession));
    }
}

#[test]
fn both_may_call_at_once() {
    for _ in 0..8 {
        let mut pair = Pair::new();
        pair.called = called_who(Some(CALLER), "link");
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
fn another_key_gets_no_session() {
    let mut pair = Pair::new();
    pair.called = side(key(ELSEWHERE), key(CALLER).public(), place(None), "link");
    pair.caller.handle_timeout(at(0));
    let (to, initiation) = pair.caller.poll_transmit().unwrap();
    assert_eq!(to, addr(CALLED));
    let result = give(&mut pair.called, at(0), CALLER, &initiation);
    assert_eq!(result, Err(Rejection::ForgedHandshake));
    assert_eq!(pair.called.poll_transmit(), None, "no answer to who calls somebody else");
}

/// Who knows whom he calls is told to prove his address, and no more.
#[test]
fn a_stranger_gets_no_session() {
    let mut pair = Pair::new();
    let stranger = key(ELSEWHERE);
    pair.caller = side(stranger.clone(), key(CALLED).public(), place(Some(CALLED)), "link");
    let initiation = pair.initiation(at(0));
    let result = give(&mut pair.called, at(0), CALLER, &initiation);
    assert_eq!(result, Err(Rejection::UnknownPeer(stranger.public())));
    assert_eq!(pair.called.poll_transmit(), None);
}

#[test]
fn another_preshared_key_gets_no_session() {
    let mut pair = Pair::new();
    let own = Arc::new(key(CALLED));
    let ends = Ends { own, peer: key(CALLER).public(), preshared: PresharedKey::NONE };
    let indices = (Indices::new(&mut Random::seeded(1)), NUMBER);
    pair.called.session =
        Session::new(ends, place(None), "link", Timing::default(), indices, Random::seeded(2));
    let answer = pair.answer(at(0));
    assert_eq!(give(&mut pair.caller, at(0), CALLED, &answer), Err(Rejection::ForgedHandshake));
    assert!(!pair.caller.is_established());
}

#[test]
fn another_link_protocol_gets_no_session() {
    let mut pair = Pair::new();
    pair.called = called_who(None, "other link");
    let initiation = pair.initiation(at(0));
    let result = give(&mut pair.called, at(0), CALLER, &initiation);
    assert_eq!(result, Err(Rejection::Disagreement(key(CALLER).public())));
    let answer = sent(&mut pair.called);
    let result = give(&mut pair.caller, at(0), CALLED, &answer);
    assert_eq!(result, Err(Rejection::Disagreement(key(CALLED).public())), "both sides know");
    pair.exchange(at(1000));
    assert!(!pair.caller.is_established() && !pair.called.is_established());
}

/// The first handshake of two lives takes two round trips, every further one a single one: answers bring new cookies.
#[test]
fn a_fresh_handshake_takes_one_round_trip() {
    let mut pair = Pair::established();
    for second in [120, 240, 360, 480] {
        let answer = pair.answer(at(second * 1000));
        assert_eq!((answer[0], answer.len()), (2, 156));
        give(&mut pair.caller, at(second * 1000), CALLED, &answer).unwrap();
        pair.exchange(at(second * 1000));
    }
    assert_eq!((pair.caller.established.get(), pair.called.established.get()), (5, 5));
}

/// The round trip may be longer than the retry interval: answers to earlier initiations count too.
#[test]
fn an_answer_may_come_after_the_next_initiation() {
    let mut pair = Pair::new();
    let first = pair.initiation(at(0));
    pair.caller.handle_timeout(at(1000));
    assert!(pair.caller.poll_transmit().is_some());
    give(&mut pair.called, at(1200), CALLER, &first).unwrap();
    let answer = sent(&mut pair.called);
    give(&mut pair.caller, at(2400), CALLED, &answer).unwrap();
    assert!(pair.caller.is_established());
}

#[test]
fn the_called_side_waits_for_the_first_datagram() {
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
    assert!(!pair.called.is_established());
    // The confirming keep-alive is lost; data confirms as well.
    assert!(pair.caller.poll_transmit().is_some());
    let datagram = sealed(&mut pair.caller, at(1), b"frame");
    assert_eq!(opened(&mut pair.called, at(1), &datagram), Ok((b"frame".to_vec(), false)));
    assert!(pair.called.is_established());
}

/// When both call and ours cannot be answered, theirs is, whoever drew the larger key.
#[test]
fn an_initiation_with_a_cookie_wins_over_one_without() {
    for _ in 0..8 {
        let mut pair = Pair::new();
        pair.called = called_who(Some(CALLER), "link");
        let theirs = pair.initiation(at(0));
        pair.called.initiate(at(0));
        assert_eq!(sent(&mut pair.called)[0], 1);
        give(&mut pair.called, at(0), CALLER, &theirs).unwrap();
        assert_eq!(sent(&mut pair.called)[0], 2);
    }
}

/// A called side that restarts knows nobody. The caller hears nothing, and asks for a session again.
#[test]
fn a_called_side_that_restarts_is_called_again_soon() {
    let mut pair = Pair::established();
    pair.called = called();
    for now in (100..=3100).step_by(100) {
        let datagram = sealed(&mut pair.caller, at(now), b"to a former life");
        let result = give(&mut pair.called, at(now), CALLER, &datagram);
        assert!(result == Err(Rejection::UnknownSession) || pair.called.is_established());
        assert_eq!(pair.called.poll_transmit(), None, "no answer to what anybody may have sent");
        pair.exchange(at(now));
    }
    assert_eq!(pair.caller.poll_event(), Some(Event::Established { restarted: true }));
    assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: false }));
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
            let local = sealed(&mut pair.caller, at(1), b"");
            datagram[4..8].copy_from_slice(&local[4..8]);
        }
        let result = pair.called.handle_datagram(at(1), addr(CALLER), &mut datagram);
        proptest::prop_assert!(result.is_err());
        let fine = sealed(&mut pair.caller, at(2), b"frame");
        proptest::prop_assert_eq!(opened(&mut pair.called, at(2), &fine), Ok((b"frame".to_vec(), false)));
    }
}

/// One worker admits a call and another one answers it: the next call shows a cookie of the first, which names the caller to it.
#[test]
fn a_call_that_another_worker_answers_names_its_caller_the_next_time() {
    let (mut pair, mut other, mut named) = (Pair::new(), called().reception, Vec::new());
    for now in [at(0), at(250_000)] {
        pair.caller.handle_timeout(now);
        while let Some((_, bytes)) = pair.caller.poll_transmit() {
            if bytes[0] != 1 {
                let _ = give(&mut pair.called, now, CALLER, &bytes);
                continue;
            }
            let allows = |number| {
                named.push(number);
                Some(true)
            };
            let received = pair.called.reception.handle_initiation(now, addr(CALLER), &bytes, allows);
            match received.unwrap() {
                Received::Challenged(challenge) => {
                    give(&mut pair.caller, now, CALLED, &challenge).unwrap();
                }
                Received::Call(call) => {
                    let admitted = pair.called.reception.hand_over(now, call, NUMBER + 70);
                    let (call, reply) = other.take_over(admitted);
                    pair.called.session.answer(now, call, reply).unwrap();
                    let (_, response) = pair.called.poll_transmit().unwrap();
                    give(&mut pair.caller, now, CALLED, &response).unwrap();
                }
            }
        }
        assert!(pair.is_established());
    }
    assert_eq!(named, [NUMBER + 70]);
}

/// Of many sessions of a gateway a denial finds the one that it is about, and only a caller's.
#[test]
fn a_denial_is_about_the_session_of_its_index() {
    let mut pair = Pair::established();
    let index = |datagram: &[u8]| u32::from_le_bytes(*datagram[4..].first_chunk().unwrap());
    let to_called = index(&sealed(&mut pair.caller, at(1), b""));
    let to_caller = index(&sealed(&mut pair.called, at(1), b""));
    assert!(pair.caller.may_be_denied(to_called) && !pair.caller.may_be_denied(to_called ^ 1));
    assert!(!pair.caller.may_be_denied(to_caller) && !pair.called.may_be_denied(to_caller));
    assert!(!caller().may_be_denied(to_called), "it has no session yet");
}

/// A denial is of a datagram that was sent, and comes from where the peer is; it makes a caller call, once for a while.
#[test]
fn a_denial_of_what_was_sent_makes_a_caller_call() {
    let mut pair = Pair::established();
    let sent_now = sealed(&mut pair.caller, at(3000), b"");
    let mut never_sent = sent_now.clone();
    never_sent[8..16].copy_from_slice(&1000_u64.to_le_bytes());
    let [denial, of_nothing] = [sent_now, never_sent]
        .map(|datagram| pair.called.reception.deny(at(3000), addr(CALLER), &datagram).unwrap());
    for (from, bytes) in [(CALLED, &of_nothing), (ELSEWHERE, &denial)] {
        assert_eq!(give(&mut pair.caller, at(3000), from, bytes), Err(Rejection::UnknownSession));
    }
    assert_eq!(pair.caller.poll_transmit(), None);
    let mut calls = Vec::new();
    for second in 3..60 {
        for _ in 0..2 {
            assert_eq!(give(&mut pair.caller, at(second * 1000), CALLED, &denial), Ok(None));
        }
        calls
            .extend(core::iter::from_fn(|| pair.caller.poll_transmit()).map(|(_, bytes)| (second, bytes[0])));
    }
    // Three at once, and one each five seconds.
    let seconds: Vec<_> = calls.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, [3, 4, 5, 8, 13, 18, 23, 28, 33, 38, 43, 48, 53, 58]);
    assert!(calls.iter().all(|(_, kind)| *kind == 1), "{calls:?}");
}

/// Goal: whoever runs a hub hears of a terminal with another pre-shared key, which only the terminal can see; and hears it once.
#[test]
fn who_takes_up_no_answer_is_told_of_once() {
    for (heeds, calls, told) in [(false, 3, 0), (false, 4, 1), (false, 300, 1), (true, 5, 0), (true, 9, 1)] {
        let mut pair = Pair::new();
        for round in 0..calls {
            let response = pair.answer(at(round * 10_000));
            if heeds && round == 1 {
                give(&mut pair.caller, at(10_000), CALLED, &response).unwrap();
                pair.exchange(at(10_000));
                assert_eq!(pair.called.poll_event(), Some(Event::Established { restarted: false }));
            }
        }
        let events: Vec<_> = core::iter::from_fn(|| pair.called.poll_event()).collect();
        assert_eq!(events, vec![Event::Unheeded; told], "{calls} calls, {heeds}");
    }
}
