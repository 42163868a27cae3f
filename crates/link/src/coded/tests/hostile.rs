//! Frames that no honest peer sends.

use base::Rng;

use super::*;
use crate::arq::frame::{self, Fields, Progress};

/// A sum of the frames that `coverage` says, up to `end`.
fn sum(end: u64, serial: u64, coverage: &[u8]) -> Vec<u8> {
    let mut frame = coverage.to_vec();
    frame.extend([7; 30]);
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
