//! What goes up, when, and in which order.

use super::*;

#[test]
fn packets_go_up_in_order() {
    let mut b = endpoint(512);
    arrive(&mut b, 2, 2).unwrap();
    fragment(&mut b, 1, false, true, 1).unwrap();
    assert!(delivered(&mut b).is_empty());
    fragment(&mut b, 0, true, false, 0).unwrap();
    assert_eq!(delivered(&mut b), [vec![0, 0, 0, 1, 1, 1], vec![2; 3]]);
}

#[test]
fn unordered_packets_go_up_once_complete() {
    let mut b = unordered();
    arrive(&mut b, 5, 5).unwrap();
    assert_eq!(delivered(&mut b), [vec![5; 3]]);
    fragment(&mut b, 3, false, true, 3).unwrap();
    assert!(delivered(&mut b).is_empty());
    fragment(&mut b, 2, true, false, 2).unwrap();
    assert_eq!(delivered(&mut b), [vec![2, 2, 2, 3, 3, 3]]);
    // They keep their receive bits.
    assert_eq!(arrive(&mut b, 5, 5), Err(Discard::Duplicate(5)));
    assert_eq!(next(&mut b).trailer.ack, block(2, 2));
    arrive(&mut b, 0, 0).unwrap();
    assert_eq!(delivered(&mut b), [vec![0; 3]]);
    // 1 begins a packet of which 4, behind delivered ones, is no part.
    arrive(&mut b, 1, 1).unwrap();
    arrive(&mut b, 4, 4).unwrap();
    assert_eq!(delivered(&mut b), [vec![1; 3], vec![4; 3]]);
    assert_eq!(next(&mut b).trailer.ack, cumulative(6));
}

#[test]
fn an_unordered_packet_may_straddle_the_gap() {
    let mut b = unordered();
    fragment(&mut b, 0, true, false, 0).unwrap();
    fragment(&mut b, 2, false, false, 2).unwrap();
    arrive(&mut b, 4, 4).unwrap();
    fragment(&mut b, 3, false, true, 3).unwrap();
    assert_eq!(delivered(&mut b), [vec![4; 3]]);
    fragment(&mut b, 1, false, false, 1).unwrap();
    assert_eq!(delivered(&mut b), [vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]);
}

/// A super-segment passes whole, through frames of either size.
#[test]
fn a_super_segment_stays_whole() {
    for frame_payload in [487, 1400] {
        let config = Config { frame_payload: frame_payload.try_into().unwrap(), ..Config::default() };
        let (mut a, mut b) = (with(config), with(config));
        let packet: Vec<u8> = (0..65_548_u32).map(|i| (i * 7) as u8).collect();
        a.offer(NOW, Packet::from_slice(&packet), Treatment::Reliable).unwrap();
        while !a.has_room(Treatment::Reliable) {
            let mut frame = Vec::new();
            a.poll_frame(NOW, &mut frame).unwrap();
            b.handle_frame(NOW, &frame).unwrap();
        }
        assert_eq!(delivered(&mut b), [packet]);
    }
}

/// Fragments that no rule-abiding peer sends cost a packet, not the endpoint.
#[test]
fn fragments_that_do_not_fit_are_dropped_and_counted() {
    let mut b = endpoint(512);
    fragment(&mut b, 0, true, false, 0).unwrap();
    fragment(&mut b, 1, true, true, 1).unwrap();
    fragment(&mut b, 2, false, true, 2).unwrap();
    assert_eq!(delivered(&mut b), [vec![1; 3]]);
    assert_eq!(count(&b, "packets-incomplete"), 2);
    let trailer =
        Trailer { protocol: SubProtocol::Reliable, first: false, last: false, tx: 0, ack: cumulative(0) };
    for tx in 3..10 {
        deliver(&mut b, Trailer { first: tx == 3, last: tx == 9, tx, ..trailer }, &vec![0; 20_000]).unwrap();
    }
    assert!(delivered(&mut b).is_empty());
    assert_eq!(count(&b, "packets-incomplete"), 3);
}

#[test]
fn packets_that_nobody_takes_are_counted_away() {
    let mut b = endpoint(512);
    for tx in 0..1030 {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!((delivered(&mut b).len(), count(&b, "packets-not-taken")), (1024, 6));
}
