//! Frames that no peer sent, and peers that forget.

use super::*;

/// Any bytes, and true frames with some of their bytes changed, do no harm to either side of an end.
#[test]
fn noise_does_no_harm() {
    for text in ["", "combine = true\nordered = false", "transmissions = 1"] {
        let mut rng = Rng::named(7, "noise");
        let mut pair = pair(config(text), 3);
        let mut noise = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            if let Some(Some(frame)) = line.back_mut() {
                let kind = rng.unit();
                let at = (rng.unit() * frame.len() as f64) as usize;
                if kind < 0.2 {
                    frame[at] = (rng.unit() * 256.0) as u8;
                } else if kind < 0.25 {
                    frame.truncate(at);
                } else if kind < 0.3 {
                    lose(line);
                }
            }
        };
        pair.carry((0..2000).map(|number| packet((number % 4) as u8, number, 150)), 20_000, &mut noise);
        // A line that is well again carries what is new.
        pair.ends.iter_mut().for_each(Endpoint::reset);
        pair.lines.iter_mut().for_each(VecDeque::clear);
        let arrived = pair.carry((9000..9010).map(|number| packet(1, number, 60)), 300, &mut intact);
        assert_eq!(numbers(&arrived).iter().filter(|number| **number >= 9000).count(), 10, "{text}");
    }
}

/// Fragments of ever other blocks: what is kept of them has a limit, and the first block that is missing still gets through.
#[test]
fn forged_fragments_take_no_more_than_their_room() {
    let mut end = Harq::new(config("transmissions = 2"), &LineLimits::new(9000, None));
    let now = Instant::ZERO;
    // A whole packet, with seven bytes of padding.
    let fragment = [0xc7; 7000];
    let mut frame = Vec::new();
    let mut send = |number: u32, index: u8, serial: Option<u32>| {
        frame.clear();
        let transmission = serial.map(|serial| Transmission { serial, floor: None });
        Header { index, number, transmission }.emit(&mut frame);
        frame.extend_from_slice(&fragment);
        end.handle_frame(now, &frame)
    };
    for number in 1..20_000 {
        assert_eq!(send(number, 0, Some(number)), Ok(()));
        assert_eq!(send(number, 9, None), Ok(()));
    }
    for index in 0..9 {
        let _ = send(0, index, Some(20_001));
    }
    assert_eq!(send(200_000, 0, Some(20_002)), Err(Discard::OutsideWindow(200_000)));
    assert!(end.poll_packet().is_some(), "block 0 is whole");
    let counters = end.counters();
    let evicted = counters.iter().find(|(name, _)| *name == "blocks-evicted").unwrap().1;
    assert!((20_000 - evicted) * 7000 < 70 << 20, "{evicted}");
}

/// A fragment must be as long as the others, and none may be longer than any packet needs.
#[test]
fn what_no_sender_makes_is_refused() {
    let mut end = Harq::new(Config::default(), &LineLimits::default());
    for transmission in [None, Some(Transmission { serial: 1, floor: None })] {
        let mut send = |index: u8, len: usize| {
            let mut frame = Vec::new();
            Header { index, number: 0, transmission }.emit(&mut frame);
            frame.resize(frame.len() + len, 0xff);
            end.handle_frame(Instant::ZERO, &frame)
        };
        assert!(matches!(send(0, 0), Err(Discard::Truncated(_))));
        assert_eq!(send(0, 8000), Err(Discard::Malformed));
        assert_eq!(send(0, 3), Ok(()));
        assert_eq!(send(1, 4), Err(Discard::Malformed));
        assert_eq!(send(0, 3), Err(Discard::Duplicate(0)));
        // All ones: more padding than there are bytes.
        assert_eq!((1..8).map(|index| send(index, 3)).filter(Result::is_ok).count(), 7);
        assert_eq!(send(8, 3), Err(Discard::Malformed));
    }
    for frame in [&[][..], &[0xc0], &[0xc1; 30], &[0x40; 7], &[0x80; 10]] {
        assert!(end.handle_frame(Instant::ZERO, frame).is_err(), "{frame:?}");
    }
    assert!(end.poll_packet().is_none());
}

/// Every header reads back, and one that is cut short does not.
#[test]
fn headers_read_back() {
    for transmission in [
        None,
        Some(Transmission { serial: 0xff_fffe, floor: None }),
        Some(Transmission { serial: 1, floor: Some(0x12_3456) }),
    ] {
        for index in [0, 9, 63] {
            let header = Header { index, number: 0xab_cdef, transmission };
            let mut frame = Vec::new();
            header.emit(&mut frame);
            let len = frame.len();
            assert!(len <= header::HEADER_LEN);
            frame.push(5);
            assert_eq!(Piece::parse(&frame), Ok(Piece::Fragment(header, &[5])));
            for short in 0..=len {
                assert_eq!(Piece::parse(&frame[..short]), Err(Discard::Truncated(short)));
            }
        }
    }
}

/// A peer that starts afresh is understood once this end knows, and what was not sent is.
#[test]
fn a_peer_may_start_afresh() {
    for text in ["", "transmissions = 1", "combine = true"] {
        let mut pair = pair(config(text), 5);
        let arrived = pair.carry((0..30).map(|number| packet(1, number, 200)), 155, &mut intact);
        let before = arrived.len() as u64;
        assert!((10..20).contains(&before), "{text}: {before}");
        pair.lines.iter_mut().for_each(VecDeque::clear);
        pair.ends[1] = Harq::new(config(text), &LINE);
        // It takes its time.
        pair.now += Duration::from_secs(10);
        pair.ends[0].reset();
        assert_eq!(pair.ends[0].poll_timeout(), None);
        let arrived = pair.carry((100..130).map(|number| packet(1, number, 200)), 700, &mut intact);
        let new = numbers(&arrived).iter().filter(|number| **number >= 100).count();
        assert_eq!(new, 30, "{text}");
        // Of those before, the one that waited has come too.
        assert_eq!(numbers(&arrived)[0], 16, "{text}");
        assert!(pair.count(0, "packets-reset") > 0, "{text}");
        // Nobody takes an old time for a new one.
        assert_eq!(pair.count(0, "blocks-retransmitted"), 0, "{text}");
    }
}

/// What is sent afterwards is repeated and reported as ever, whichever end it was.
#[test]
fn a_peer_that_starts_afresh_is_answered() {
    for fresh in [0, 1] {
        let mut pair = pair(config(""), 5);
        // The last block is on its way.
        pair.carry((0..5).map(|number| packet(1, number, 200)), 45, &mut intact);
        pair.lines.iter_mut().for_each(VecDeque::clear);
        pair.ends[fresh] = Harq::new(config(""), &LINE);
        pair.ends[1 - fresh].reset();
        super::repeating::check_lost_report(&mut pair);
    }
}
