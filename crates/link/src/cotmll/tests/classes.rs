//! Control frames, and class 010.

use super::*;

fn offer_unreliable(endpoint: &mut Cotmll, len: usize) {
    endpoint.offer(NOW, Packet::from_slice(&vec![1; len]), Treatment::Once).unwrap();
}

fn unreliable(endpoint: &mut Cotmll, tx: u16, first: bool, last: bool) -> Result<(), Discard> {
    let trailer = Trailer { protocol: SubProtocol::Unreliable, first, last, tx, ack: cumulative(0) };
    deliver(endpoint, trailer, &[tx as u8])
}

/// The next frame's class and number.
fn class(endpoint: &mut Cotmll) -> (SubProtocol, u16) {
    let sent = next(endpoint);
    (sent.trailer.protocol, sent.trailer.tx)
}

#[test]
fn control_frames_take_no_sequence_number() {
    let mut a = endpoint(512);
    assert_eq!(class(&mut a), (SubProtocol::Control, 0));
    send_new(&mut a, 1);
    ack(&mut a, cumulative(1));
    assert_eq!(class(&mut a), (SubProtocol::Control, 0));
    offer(&mut a, 1, 10);
    assert_eq!(class(&mut a), (SubProtocol::Reliable, 1));
    // Nor do they when they arrive.
    ack(&mut a, cumulative(1));
    assert_eq!(next(&mut a).trailer.ack, cumulative(0));
}

#[test]
fn control_messages_that_nobody_knows_are_refused() {
    let mut a = endpoint(512);
    send_new(&mut a, 1);
    let trailer =
        Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack: cumulative(1) };
    assert_eq!(deliver(&mut a, trailer, b"?"), Err(Discard::Malformed));
    // Their acknowledgement counts.
    assert_eq!((a.in_flight(), count(&a, "frames-malformed")), (0, 1));
}

#[test]
fn class_010_is_counted_apart_and_never_sent_again() {
    let mut a = endpoint(2);
    send_new(&mut a, 2);
    offer_unreliable(&mut a, 1000);
    assert!(!a.has_room(Treatment::Once));
    // The window is full, which does not concern this class.
    let sent: Vec<_> = (0..3).map(|_| next(&mut a)).collect();
    let numbers: Vec<_> = sent.iter().map(|s| (s.trailer.protocol, s.trailer.tx, s.payload.len())).collect();
    let class_010 = SubProtocol::Unreliable;
    assert_eq!(numbers, [(class_010, 0, 487), (class_010, 1, 487), (class_010, 2, 26)]);
    assert_eq!((sent[0].trailer.first, sent[2].trailer.last), (true, true));
    assert_eq!((class(&mut a), a.in_flight()), ((SubProtocol::Reliable, 0), 2));
    assert!(a.has_room(Treatment::Once));
}

#[test]
fn class_010_takes_turns_with_what_is_urgent() {
    use SubProtocol::{Reliable, Unreliable};
    let mut a = endpoint(512);
    send_new(&mut a, 2);
    ack(&mut a, block(1, 1));
    offer(&mut a, 1, 900);
    offer_unreliable(&mut a, 2000);
    let order: Vec<_> = (0..9).map(|_| class(&mut a)).collect();
    let expected = [
        (Unreliable, 0),
        (Reliable, 0),
        (Unreliable, 1),
        (Reliable, 2),
        (Unreliable, 2),
        (Reliable, 3),
        (Unreliable, 3),
        (Unreliable, 4),
        (Reliable, 0),
    ];
    assert_eq!(order, expected);
}

/// A frame lost with nothing behind it is found by rule 3 alone, which must come round.
#[test]
fn class_010_leaves_room_to_find_what_was_lost() {
    let mut a = endpoint(512);
    send_new(&mut a, 1);
    offer_unreliable(&mut a, 487 * 20);
    let classes: Vec<_> = (0..18).map(|_| class(&mut a).0).collect();
    let turn = [SubProtocol::Unreliable; 8].into_iter().chain([SubProtocol::Reliable]);
    assert_eq!(classes, turn.clone().chain(turn).collect::<Vec<_>>());
}

#[test]
fn a_gap_gives_up_the_packet_begun() {
    let mut b = endpoint(512);
    unreliable(&mut b, 0, true, false).unwrap();
    unreliable(&mut b, 2, false, true).unwrap();
    unreliable(&mut b, 3, true, false).unwrap();
    unreliable(&mut b, 4, false, true).unwrap();
    assert_eq!(delivered(&mut b), [vec![3, 4]]);
    assert_eq!((count(&b, "packets-incomplete"), count(&b, "frames-missing")), (2, 1));
    // Neither window nor acknowledgement know of them.
    assert_eq!(next(&mut b).trailer.ack, cumulative(0));
}

#[test]
fn late_frames_are_dropped_and_long_gaps_are_not_late() {
    let mut b = endpoint(512);
    for tx in [0, 1] {
        unreliable(&mut b, tx, true, true).unwrap();
    }
    assert_eq!(unreliable(&mut b, 1, true, true), Err(Discard::Late(1)));
    assert_eq!(unreliable(&mut b, 0, true, true), Err(Discard::Late(0)));
    unreliable(&mut b, 900, true, true).unwrap();
    unreliable(&mut b, 700, true, true).unwrap();
    assert_eq!(delivered(&mut b).len(), 4);
    assert_eq!(count(&b, "frames-late"), 2);
}

#[test]
fn both_classes_deliver_through_each_other() {
    let (mut a, mut b) = (endpoint(512), endpoint(512));
    for n in 0..50_u8 {
        offer(&mut a, n, 1200);
        offer_unreliable(&mut a, 700);
        while !(a.has_room(Treatment::Reliable) && a.has_room(Treatment::Once)) {
            let mut frame = Vec::new();
            a.poll_frame(NOW, &mut frame).unwrap();
            b.handle_frame(NOW, &frame).unwrap();
        }
    }
    let arrived = delivered(&mut b);
    let reliable: Vec<_> = arrived.iter().filter(|p| p.len() == 1200).map(|p| p[0]).collect();
    assert_eq!(reliable, (0..50).collect::<Vec<_>>());
    assert_eq!(arrived.len(), 100);
}
