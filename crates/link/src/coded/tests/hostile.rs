//! Frames that no honest peer sends.

use base::Rng;

use super::*;
use crate::arq::frame::{self, Extras, Fields, Place, Progress};

/// A sum of the frames that `coverage` says, up to `end`.
fn sum(end: u64, serial: u64, coverage: &[u8]) -> Vec<u8> {
    sum_of(30, end, serial, coverage)
}

/// A sum of the frames that `coverage` says, up to `end`, in which each frame has `len` bytes.
fn sum_of(len: usize, end: u64, serial: u64, coverage: &[u8]) -> Vec<u8> {
    let mut frame = coverage.to_vec();
    frame.resize(frame.len() + len, 7);
    let fields = Fields { class: frame::Class::Repair, sequence: end, ..Fields::control(serial) };
    fields.emit(0, Progress { next: 0, heard: 0, loss: 0, in_runs: false }, true, &mut frame);
    frame
}

#[test]
fn a_sum_that_no_sender_makes_is_refused() {
    let mut end = class(Config::default());
    for coverage in [&[0, 0][..], &[200, 1], &[0, 0xff, 0xff, 0xff, 0x7f]] {
        assert_eq!(end.handle_frame(Instant::ZERO, &sum(5, 1, coverage)), Err(Discard::Malformed));
    }
    let outside = end.handle_frame(Instant::ZERO, &sum(1 << 17, 1, &[0, 1]));
    assert_eq!(outside, Err(Discard::Duplicate(1 << 17)));
    assert!(end.handle_frame(Instant::ZERO, &sum(5, 1, &[0, 2])).is_ok());
}

/// A frame of class `class`, which says nothing but `extras`.
fn bare(class: frame::Class, extras: Extras) -> Vec<u8> {
    let mut frame = Vec::new();
    let fields = Fields { class, sequence: 1, extras, ..Fields::control(1) };
    fields.begin(&mut frame);
    fields.emit(frame.len(), Progress { next: 0, heard: 0, loss: 0, in_runs: false }, true, &mut frame);
    frame
}

/// There are no blocks and no class 010 here, and a floor only where packets are given up.
#[test]
fn what_only_other_protocols_say_is_refused() {
    let place = Some(Place { block: 0, index: 0 });
    let floor = Some(1);
    for kind in KINDS {
        let gives_up = kind.expires || kind.treatment.is_once();
        for (class, extras, is_sound) in [
            (frame::Class::Control, Extras::default(), true),
            (frame::Class::Unreliable, Extras::default(), false),
            (frame::Class::Reliable, Extras::default(), true),
            (frame::Class::Control, Extras { place, floor: None }, false),
            (frame::Class::Reliable, Extras { place, floor: None }, false),
            (frame::Class::Control, Extras { place: None, floor }, gives_up),
            (frame::Class::Reliable, Extras { place: None, floor }, gives_up),
        ] {
            let mut end = Class::new(Config::default(), kind, &LINE);
            let handled = end.handle_frame(Instant::ZERO, &bare(class, extras));
            let expected = if is_sound { Ok(()) } else { Err(Discard::Malformed) };
            assert_eq!(handled, expected, "{kind:?} {class:?} {extras:?}");
            assert!(end.counters().contains(&("frames-malformed", u64::from(!is_sound))));
        }
    }
}

/// Sums without end of frames that never come: as many are kept as there is room for, and what is promised of them is kept.
#[test]
fn sums_without_end_take_bounded_memory() {
    let mut end = class(Config::default());
    let sums = decoder::MAX_SUMS as u64 + 1000;
    for serial in 1..=sums {
        // Two frames each, so that none is ever solved.
        let _ = end.handle_frame(Instant::ZERO, &sum(serial * 3, serial, &[0, 2]));
    }
    assert!(end.counters().contains(&("sums-refused", 1000)));
}

/// Classes share the memory for sums: what one has filled no other can fill again.
#[test]
fn sums_of_all_classes_share_one_memory() {
    const LEN: usize = 60_000;
    let mut end = Coded::new(Config::default(), &LINE);
    let of = |end: &Coded, place: usize| end.classes[place].memory().sums;
    let fill = |end: &mut Coded, place: usize, most: u64| {
        for serial in 1..=most {
            let mut frame = sum_of(LEN, serial * 3, serial, &[0, 2]);
            frame.push(KINDS[place].number);
            let _ = end.handle_frame(Instant::ZERO, &frame);
        }
        of(end, place)
    };
    let [some, more] = [true, false].map(|expires| place(Treatment::Reliable, expires));
    let part = fill(&mut end, some, 100);
    assert!(part > 100 * LEN && part < decoder::MAX_BYTES / 2, "{part}");
    let rest = fill(&mut end, more, 1000);
    assert!(rest > decoder::MAX_BYTES / 2 && part + rest <= decoder::MAX_BYTES, "{part} {rest}");
    assert_eq!(fill(&mut end, place(Treatment::Interactive, false), 10), 0, "nothing is left");
    assert_eq!((of(&end, some), of(&end, more)), (part, rest));
}

/// Goal: however sums are made, what they have us compute is paid for by what they take on the wire. The dearest are short sums of frames
/// that others end with, too.
#[test]
fn no_sums_cost_more_than_their_bytes_pay_for() {
    let mut rng = Rng::named(7, "dear sums");
    for (count, len) in [(16, 5), (100, 5), (64, 400), (64, 1350)] {
        let mut end = class(Config::default());
        let mut paid = 0;
        for serial in 1..=30_000 {
            let frame = sum_of(len, count + (rng.unit() * 3000.0) as u64, serial, &[0, count as u8]);
            paid += (work::WORK_PER_BYTE as usize * (frame.len() + work::OVERHEAD)) as u64;
            let _ = end.handle_frame(Instant::ZERO, &frame);
        }
        let spent = end.decoder.work().spent;
        // What is begun is finished: one sum, and what is solved by it.
        let most = work::MOST_SAVED as u64 + paid;
        assert!(spent > most / 4, "{count}, {len}: these are not dear: {spent} of {most}");
        assert!(spent < most + decoder::MAX_DEBT, "{count}, {len}: {spent} of {most}");
    }
}

/// True frames with some of their bytes changed do no harm to either side.
#[test]
fn noise_does_no_harm() {
    let mut rng = Rng::named(7, "noise");
    let [mut a, mut b] = [(); 2].map(|()| Coded::new(Config::default(), &LINE));
    let treatments = [Treatment::Reliable, Treatment::Once, Treatment::Interactive];
    let mut now = Instant::ZERO;
    for round in 0..20_000_u32 {
        now += MS;
        let mut frame = Vec::new();
        a.poll_frame(now, &mut frame);
        if round % 3 > 0 {
            let at = (rng.unit() * frame.len() as f64) as usize;
            frame[at] = (rng.unit() * 256.0) as u8;
        }
        if round % 5 > 0 {
            let _ = b.handle_frame(now, &frame);
        }
        while b.poll_packet().is_some() {}
        let treatment = treatments[round as usize % 3];
        if b.has_room(treatment) {
            b.offer(now, packet(3, round, 300), treatment).unwrap();
        }
        b.set_backlog(treatment, u64::from(round % 1000));
        core::mem::swap(&mut a, &mut b);
    }
}
