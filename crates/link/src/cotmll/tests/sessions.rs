//! Several sessions over one line: whose frame goes, and what is in it.

use super::*;
use FrameKind::{Control, Filler, New};

fn endpoint(sessions: u32) -> Sessions {
    let (sessions, session_queue) = (sessions.try_into().unwrap(), 3.try_into().unwrap());
    Sessions::new(Config { sessions, session_queue, ..Config::default() }, &LineLimits::default())
}

/// A packet of a flow that belongs to this session, the `nth` of these.
fn packet(endpoint: &Sessions, session: usize, len: usize) -> Packet {
    let datagram = |port: u16| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(port.to_be_bytes());
        packet.resize(len, session as u8);
        Packet::from_slice(&packet)
    };
    let mut all = (1..).map(datagram);
    all.find(|packet| endpoint.session_of(packet) == session).unwrap()
}

fn offer(endpoint: &mut Sessions, session: usize, len: usize) {
    let packet = packet(endpoint, session, len);
    endpoint.offer(NOW, packet, Treatment::Reliable).unwrap();
}

/// The next frame: its kind, session, payload and trailer.
fn next(endpoint: &mut Sessions) -> (FrameKind, u8, Vec<u8>, Trailer) {
    let mut frame = Vec::new();
    let info = endpoint.poll_frame(NOW, &mut frame).unwrap();
    assert_eq!(info.late_len, TRAILER_LEN);
    endpoint.seal_frame(NOW, &mut frame);
    let (trailer, body) = Trailer::parse(&frame).unwrap();
    let (session, payload) = body.split_last().unwrap();
    (info.kind, *session, payload.to_vec(), trailer)
}

fn turns(endpoint: &mut Sessions, count: usize) -> Vec<(FrameKind, u8)> {
    (0..count).map(|_| next(endpoint)).map(|(kind, session, ..)| (kind, session)).collect()
}

fn deliver(endpoint: &mut Sessions, session: u8, trailer: Trailer, payload: &[u8]) -> Result<(), Discard> {
    endpoint.handle_frame(NOW, &[payload, &[session], &trailer.emit()].concat())
}

fn count(endpoint: &Sessions, name: &str) -> u64 {
    endpoint.counters().iter().find(|(n, _)| *n == name).unwrap().1
}

const WHOLE: Trailer =
    Trailer { protocol: SubProtocol::Reliable, first: true, last: true, tx: 0, ack: Ack::Cumulative(0) };

#[test]
fn a_frame_names_its_session_before_its_trailer() {
    let mut a = endpoint(3);
    offer(&mut a, 2, 100);
    let (kind, session, payload, trailer) = next(&mut a);
    assert_eq!((kind, session, trailer), (New, 2, WHOLE));
    assert_eq!(payload, &*packet(&a, 2, 100));
    // Each session counts and acknowledges by itself.
    offer(&mut a, 0, 100);
    deliver(&mut a, 0, WHOLE, b"hello").unwrap();
    let (kind, session, _, trailer) = next(&mut a);
    assert_eq!((kind, session, trailer), (New, 0, Trailer { ack: cumulative(1), ..WHOLE }));
    assert_eq!(a.poll_packet().as_deref(), Some(b"hello".as_slice()));
}

#[test]
fn a_frame_is_a_byte_longer_than_alone() {
    let mut a = endpoint(2);
    offer(&mut a, 0, 1500);
    let mut frame = Vec::new();
    a.poll_frame(NOW, &mut frame).unwrap();
    assert_eq!(frame.len(), 487 + SESSION_LEN + TRAILER_LEN);
    // Not where the line sets the limit.
    let sessions = 2.try_into().unwrap();
    let mut a = Sessions::new(Config { sessions, ..Config::default() }, &LineLimits::new(100, None));
    offer(&mut a, 0, 1500);
    frame.clear();
    a.poll_frame(NOW, &mut frame).unwrap();
    assert_eq!(frame.len(), 100);
}

#[test]
fn frames_of_no_session_are_refused() {
    let mut a = endpoint(2);
    assert_eq!(deliver(&mut a, 2, WHOLE, b"x"), Err(Discard::Malformed));
    assert_eq!(a.handle_frame(NOW, &[0; 4]), Err(Discard::Truncated(4)));
    assert_eq!(a.handle_frame(NOW, &[]), Err(Discard::Truncated(0)));
    assert_eq!((count(&a, "frames-of-no-session"), count(&a, "frames-received")), (3, 0));
    deliver(&mut a, 1, WHOLE, b"x").unwrap();
    assert_eq!(deliver(&mut a, 1, WHOLE, b"x"), Err(Discard::Duplicate(0)));
    deliver(&mut a, 0, WHOLE, b"y").unwrap();
}

#[test]
fn those_with_something_to_send_take_turns() {
    let mut a = endpoint(3);
    offer(&mut a, 0, 1400);
    offer(&mut a, 2, 1400);
    assert_eq!(turns(&mut a, 6), [(New, 2), (New, 0), (New, 2), (New, 0), (New, 2), (New, 0)]);
    // Then what is unacknowledged goes again, and who has nothing of that stays silent for a while.
    assert_eq!(turns(&mut a, 4), [(Filler, 2), (Filler, 0), (Filler, 2), (Filler, 0)]);
}

#[test]
fn none_is_silent_for_more_than_16_frames() {
    for sessions in 2..=8 {
        let mut a = endpoint(sessions);
        let mut spoke_at = vec![0; sessions as usize];
        let mut others = 0;
        for frame in 1..400 {
            if a.has_room(Treatment::Reliable) {
                offer(&mut a, 1, 1400);
            }
            let (kind, session, _, trailer) = next(&mut a);
            others += usize::from(session != 1);
            spoke_at[usize::from(session)] = frame;
            assert!(spoke_at.iter().all(|spoke| frame - spoke < 16), "{spoke_at:?} at {frame}");
            if session == 1 {
                let tx = trailer.tx;
                let ack =
                    Trailer { protocol: SubProtocol::Control, ack: cumulative((tx + 1) % 1024), ..WHOLE };
                deliver(&mut a, 1, Trailer { tx: 0, first: false, last: false, ..ack }, &[]).unwrap();
                assert_eq!(kind, New);
            }
        }
        // And no more than that takes from the one that is busy.
        assert!(others <= 400 * (sessions as usize - 1) / 15, "{others} of 400");
    }
}

/// While another has data, acknowledgements alone are no reason to send an old frame again.
#[test]
fn acknowledgements_are_bare_while_another_has_data() {
    let mut a = endpoint(2);
    offer(&mut a, 1, 1400);
    assert_eq!(turns(&mut a, 3), [(New, 1); 3]);
    deliver(&mut a, 1, WHOLE, b"news").unwrap();
    offer(&mut a, 0, 1400);
    assert_eq!(turns(&mut a, 1), [(New, 0)]);
    let (kind, session, payload, trailer) = next(&mut a);
    assert_eq!((kind, session, payload.len(), trailer.ack), (Control, 1, 0, cumulative(1)));
    assert_eq!(turns(&mut a, 2), [(New, 0); 2]);
    // With nothing else to say, the same news takes a frame along.
    deliver(&mut a, 1, Trailer { tx: 1, ..WHOLE }, b"news").unwrap();
    assert_eq!(a.demand(NOW), Demand::Fresh);
    assert_eq!(turns(&mut a, 1), [(Filler, 1)]);
    assert_eq!(a.demand(NOW), Demand::Filler);
}

/// Another's data puts off what is unacknowledged for a window's frames, and not for longer.
#[test]
fn an_old_frame_has_its_turn_beside_data() {
    let config =
        Config { sessions: 2.try_into().unwrap(), window: 6.try_into().unwrap(), ..Config::default() };
    let mut a = Sessions::new(config, &LineLimits::default());
    offer(&mut a, 1, 100);
    assert_eq!(next(&mut a).0, New);
    let mut again = Vec::new();
    for frame in 2..=30 {
        if a.has_room(Treatment::Reliable) {
            offer(&mut a, 0, 1400);
        }
        let (kind, session, _, trailer) = next(&mut a);
        if session == 1 {
            assert_eq!(kind, Filler);
            again.push(frame);
            continue;
        }
        assert_eq!(kind, New);
        let ack = cumulative((trailer.tx + 1) % 1024);
        let bare = Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack };
        deliver(&mut a, 0, bare, &[]).unwrap();
    }
    assert_eq!(again, [8, 15, 22, 29]);
}

#[test]
fn a_packet_waits_for_its_session_and_for_no_other() {
    let mut a = endpoint(2);
    offer(&mut a, 0, 700);
    assert!(a.has_room(Treatment::Reliable));
    (0..5).for_each(|_| offer(&mut a, 0, 700));
    assert_eq!(count(&a, "packets-dropped-session"), 2);
    offer(&mut a, 1, 700);
    assert!(!a.has_room(Treatment::Reliable), "no session has room");
    assert!(a.has_room(Treatment::Once));
    let refused = packet(&a, 0, 700);
    assert!(a.offer(NOW, refused, Treatment::Reliable).is_err());
    assert_eq!(count(&a, "packets-dropped-session"), 2);
    let new = turns(&mut a, 20).into_iter().filter(|(kind, _)| *kind == New);
    let (of_0, of_1): (Vec<_>, Vec<_>) = new.partition(|(_, session)| *session == 0);
    // Two frames a packet, and what had waited went too.
    assert_eq!((of_0.len(), of_1.len()), (8, 2));
}

#[test]
fn a_reset_is_one_of_all_sessions() {
    let mut a = endpoint(2);
    for session in 0..2 {
        offer(&mut a, session, 100);
        deliver(&mut a, session as u8, WHOLE, b"x").unwrap();
    }
    turns(&mut a, 2);
    a.reset();
    assert_eq!(count(&a, "packets-reset"), 2);
    for session in 0..2 {
        deliver(&mut a, session, WHOLE, b"y").unwrap();
        offer(&mut a, session.into(), 100);
    }
    let first: Vec<Trailer> = (0..2).map(|_| next(&mut a).3).collect();
    assert_eq!(first, [Trailer { ack: cumulative(1), ..WHOLE }; 2]);
}
