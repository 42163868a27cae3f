use super::*;
use proptest::prelude::*;

/// An end with a buffer of this many packets, for frames of up to this many bytes.
fn endpoint(buffer: u32, frame_limit: usize) -> Plain {
    Plain::new(Config { buffer: buffer.try_into().unwrap() }, &LineLimits::new(frame_limit, None))
}

/// Both ends of a line.
fn ends(frame_limit: usize) -> (Plain, Plain) {
    (endpoint(10, frame_limit), endpoint(10, frame_limit))
}

fn packet(first: u8, len: usize) -> Packet {
    let mut packet = Packet::from_slice(&(0..len).map(|i| i as u8).collect::<Vec<_>>());
    packet[0] = first;
    packet
}

fn frames(sender: &mut Plain) -> Vec<Vec<u8>> {
    let next = || {
        let mut frame = Vec::new();
        sender.poll_frame(Instant::ZERO, &mut frame).map(|_| frame)
    };
    core::iter::from_fn(next).collect()
}

fn received(receiver: &mut Plain) -> Vec<Packet> {
    core::iter::from_fn(|| receiver.poll_packet()).collect()
}

fn count(endpoint: &Plain, name: &str) -> u64 {
    endpoint.counters().iter().find(|(n, _)| *n == name).unwrap().1
}

#[test]
fn a_packet_that_fits_is_a_frame_without_overhead() {
    let (mut a, mut b) = ends(1500);
    for first in [0x45, 0x60, 0x00] {
        a.offer(Instant::ZERO, packet(first, 1500), Treatment::Reliable).unwrap();
        let sent = frames(&mut a);
        assert_eq!(sent, [packet(first, 1500).to_vec()]);
        b.handle_frame(Instant::ZERO, &sent[0]).unwrap();
        assert_eq!(received(&mut b), [packet(first, 1500)]);
    }
    assert_eq!((a.demand(Instant::ZERO), a.poll_timeout()), (Demand::Nothing, None));
}

#[test]
fn a_full_buffer_hands_the_packet_back() {
    let mut a = endpoint(2, 1500);
    for _ in 0..2 {
        assert!(a.has_room(Treatment::Once));
        a.offer(Instant::ZERO, packet(0x45, 20), Treatment::Once).unwrap();
    }
    let Full(back) = a.offer(Instant::ZERO, packet(0x45, 21), Treatment::Reliable).unwrap_err();
    assert_eq!(
        (back.len(), a.has_room(Treatment::Reliable), a.demand(Instant::ZERO)),
        (21, false, Demand::Fresh)
    );
}

#[test]
fn a_long_packet_travels_in_fragments() {
    let (mut a, mut b) = ends(1400);
    let long = packet(0x00, 64 * 1024 + 12);
    a.offer(Instant::ZERO, long.clone(), Treatment::Reliable).unwrap();
    a.offer(Instant::ZERO, packet(0x45, 40), Treatment::Reliable).unwrap();
    let sent = frames(&mut a);
    assert_eq!(sent.len(), (64 * 1024 + 12_usize).div_ceil(1396) + 1);
    assert_eq!((sent[0][0], sent[1][0], sent[46][0]), (0x12, 0x10, 0x11));
    assert!(sent.iter().all(|frame| frame.len() <= 1400));
    assert_eq!(count(&a, "frames-sent"), sent.len() as u64);
    for frame in &sent {
        b.handle_frame(Instant::ZERO, frame).unwrap();
    }
    assert_eq!(received(&mut b), [long, packet(0x45, 40)]);
}

#[test]
fn a_packet_with_a_missing_fragment_is_dropped_and_counted() {
    for missing in 0..5 {
        let (mut a, mut b) = ends(1004);
        a.offer(Instant::ZERO, packet(0x45, 4000), Treatment::Reliable).unwrap();
        a.offer(Instant::ZERO, packet(0x45, 2000), Treatment::Reliable).unwrap();
        for (n, frame) in frames(&mut a).iter().enumerate().filter(|(n, _)| *n != missing) {
            let _ = (n, b.handle_frame(Instant::ZERO, frame));
        }
        let expected = if missing < 4 { packet(0x45, 2000) } else { packet(0x45, 4000) };
        assert_eq!(received(&mut b), [expected], "{missing}");
        // A lost first fragment leaves nothing begun.
        assert_eq!(count(&b, "packets-incomplete"), u64::from(missing != 0 && missing != 4), "{missing}");
    }
}

/// A router may let a marked packet pass the fragments of another.
#[test]
fn a_whole_packet_may_come_between_fragments() {
    let (mut a, mut b) = ends(1004);
    a.offer(Instant::ZERO, packet(0x45, 4000), Treatment::Reliable).unwrap();
    a.offer(Instant::ZERO, packet(0x45, 40), Treatment::Reliable).unwrap();
    let sent = frames(&mut a);
    for frame in [0, 4, 1, 2, 3].map(|n| &sent[n]) {
        b.handle_frame(Instant::ZERO, frame).unwrap();
    }
    assert_eq!(received(&mut b), [packet(0x45, 40), packet(0x45, 4000)]);
}

#[test]
fn what_is_no_frame_is_counted() {
    let mut b = endpoint(10, 200);
    assert_eq!(b.handle_frame(Instant::ZERO, &[]), Err(Discard::Truncated(0)));
    assert_eq!(b.handle_frame(Instant::ZERO, &[0x12, 0, 0]), Err(Discard::Truncated(3)));
    b.handle_frame(Instant::ZERO, &packet(0x45, 40)).unwrap();
    assert_eq!((count(&b, "frames-malformed"), count(&b, "frames-received")), (2, 3));
}

#[test]
fn any_packet_arrives_whatever_its_first_byte() {
    let (mut a, mut b) = (endpoint(256, 200), endpoint(10, 200));
    for first in 0..=255 {
        a.offer(Instant::ZERO, packet(first, 100), Treatment::Reliable).unwrap();
    }
    for frame in frames(&mut a) {
        b.handle_frame(Instant::ZERO, &frame).unwrap();
    }
    let expected: Vec<_> = (0..=255).map(|first| packet(first, 100)).collect();
    assert_eq!(received(&mut b), expected);
}

#[test]
fn reassembly_is_bounded() {
    let mut b = endpoint(10, 1500);
    let mut fragment = vec![0x10; 60_004];
    fragment[..4].copy_from_slice(&[0x12, 0, 0, 0]);
    b.handle_frame(Instant::ZERO, &fragment).unwrap();
    fragment[..4].copy_from_slice(&[0x10, 0, 0, 1]);
    b.handle_frame(Instant::ZERO, &fragment).unwrap();
    fragment[..4].copy_from_slice(&[0x11, 0, 0, 2]);
    assert!(b.handle_frame(Instant::ZERO, &fragment).is_err());
    assert!(received(&mut b).is_empty());
}

#[test]
fn a_reset_starts_the_packet_again() {
    let (mut a, mut b) = ends(1000);
    a.offer(Instant::ZERO, packet(0x45, 3000), Treatment::Reliable).unwrap();
    let mut lost = Vec::new();
    a.poll_frame(Instant::ZERO, &mut lost).unwrap();
    a.reset();
    for frame in frames(&mut a) {
        b.handle_frame(Instant::ZERO, &frame).unwrap();
    }
    assert_eq!(received(&mut b), [packet(0x45, 3000)]);
}

proptest! {
    /// Lost frames lose their packets and no others; nothing is altered or reordered.
    #[test]
    fn what_arrives_is_what_was_sent(
        lens in prop::collection::vec(1_usize..5000, 1..20),
        lost in prop::collection::vec(prop::bool::weighted(0.1), 200),
    ) {
        let (mut a, mut b) = (endpoint(100, 1000), endpoint(1, 1000));
        let packets: Vec<_> = lens.iter().enumerate().map(|(n, len)| packet(0x40 | n as u8, *len)).collect();
        for packet in &packets {
            a.offer(Instant::ZERO, packet.clone(), Treatment::Reliable).unwrap();
        }
        let sent = frames(&mut a);
        for (frame, _) in sent.iter().zip(lost.iter().cycle()).filter(|(_, lost)| !**lost) {
            let _ = b.handle_frame(Instant::ZERO, frame);
        }
        let arrived = received(&mut b);
        let mut left = packets.iter();
        for packet in &arrived {
            prop_assert!(left.any(|sent| sent == packet));
        }
        if !lost.contains(&true) {
            prop_assert_eq!(arrived.len(), packets.len());
        }
    }

    #[test]
    fn any_bytes_are_handled(inputs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..50)) {
        let mut b = endpoint(1, 1500);
        for input in &inputs {
            let _ = b.handle_frame(Instant::ZERO, input);
        }
    }
}

#[test]
fn frames_are_shorter_once_the_line_says_so() {
    let mut plain = Plain::new(Config::default(), &LineLimits::new(1000, None));
    let mut far = Plain::new(Config::default(), &LineLimits::default());
    let packet = [&[0x45_u8], [7; 998].as_slice()].concat();
    plain.offer(Instant::ZERO, Packet::from_slice(&packet), Treatment::Reliable).unwrap();
    plain.set_line(&LineLimits::new(300, None));
    let mut lens = Vec::new();
    let mut frame = Vec::new();
    while plain.poll_frame(Instant::ZERO, &mut frame).is_some() {
        lens.push(frame.len());
        far.handle_frame(Instant::ZERO, &frame).unwrap();
        frame.clear();
    }
    assert_eq!(lens, [300, 300, 300, 999 - 3 * 296 + 4]);
    assert_eq!(&*far.poll_packet().unwrap(), &*packet);
}
