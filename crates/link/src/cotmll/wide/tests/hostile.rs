//! Frames that no honest peer sends.

use base::Rng;

use super::*;

fn bare(next: u64, heard: u64, runs: &[u64]) -> Vec<u8> {
    let mut frame = Vec::new();
    runs.iter().for_each(|number| push_varint(*number, &mut frame));
    let fields = Fields::control(1);
    fields.emit(frame.len(), Progress { next, heard, loss: 0, in_runs: false }, true, &mut frame);
    frame
}

/// A sender with frames 0 to 9 in flight.
fn sender() -> Wide {
    let mut end = Wide::new(Config::default(), &LINE);
    for number in 0..10 {
        end.offer(Instant::ZERO, packet(1, number, 60), Treatment::default()).unwrap();
        end.poll_frame(Instant::ZERO, &mut Vec::new());
    }
    end
}

#[test]
fn a_report_of_what_was_never_sent_changes_nothing() {
    for frame in [
        bare(11, 10, &[]),
        bare(0, 11, &[]),
        bare(0, SPACE - 1, &[]),
        bare(SPACE / 2, 10, &[]),
        bare(4, 10, &[0, 1, 6]),
        bare(4, 10, &[7, 0, 0, 0, 1]),
        bare(4, 10, &[0, 1]),
        bare(0, 10, &[(1 << 28) - 1, (1 << 28) - 1, (1 << 28) - 1]),
    ] {
        let mut end = sender();
        end.handle_frame(Instant::ZERO, &frame).unwrap();
        assert_eq!((end.in_flight(), end.core.sender.flags()), (10, 0), "{frame:?}");
        assert!(end.counters().contains(&("acks-invalid", 1)), "{frame:?}");
    }
    // The same, as far as it is true.
    let mut end = sender();
    end.handle_frame(Instant::ZERO, &bare(4, 10, &[0, 1, 5])).unwrap();
    assert_eq!((end.in_flight(), end.core.sender.flags()), (6, 1));
}

#[test]
fn a_frame_far_outside_the_window_costs_nothing() {
    let mut end = Wide::new(Config::default(), &LINE);
    for sequence in [u64::from(MAX_WINDOW), SPACE / 2 - 1] {
        let mut frame = Vec::new();
        let (first, last) = (true, true);
        let fields =
            Fields { class: Class::Reliable, first, last, sequence, back: Some(0), ..Fields::control(1) };
        fields.begin(&mut frame);
        fields.emit(1, Progress { next: 0, heard: 0, loss: 0, in_runs: false }, true, &mut frame);
        let outside = Err(Discard::OutsideWindow(sequence));
        assert_eq!(end.handle_frame(Instant::ZERO, &frame), outside);
    }
}

/// Any bytes, and true frames with some of their bytes changed, do no harm to either side of an end.
#[test]
fn noise_does_no_harm() {
    let mut rng = Rng::named(7, "noise");
    let (mut a, mut b) = (sender(), sender());
    let now = Instant::ZERO;
    for round in 0..20_000_u32 {
        let mut frame = Vec::new();
        a.poll_frame(now, &mut frame);
        if round % 3 > 0 {
            let at = (rng.unit() * frame.len() as f64) as usize;
            frame[at] = rng.unit().to_bits() as u8 ^ (rng.unit() * 256.0) as u8;
        }
        let _ = b.handle_frame(now, &frame);
        while b.poll_packet().is_some() {}
        if b.has_room(Treatment::default()) {
            b.offer(now, packet(3, round, 300), Treatment::default()).unwrap();
        }
        core::mem::swap(&mut a, &mut b);
    }
}
