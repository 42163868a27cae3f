use proptest::prelude::*;
use std::collections::BTreeSet;

use super::*;
use crate::arq::Transmission;
use crate::coded::coverage::coefficient;
use crate::coded::work::MOST_SAVED;

/// The frame `sequence`, of a length that differs from frame to frame.
fn payload(sequence: u64) -> Vec<u8> {
    (0..10 + sequence % 7).map(|at| (sequence * 31 + at) as u8).collect()
}

fn part(sequence: u64, payload: &[u8]) -> Part<'_> {
    Part { sequence: on_air(sequence), first: sequence.is_multiple_of(3), last: true, back: 0, payload }
}

/// The sum of some frames, the last first, as the transmission `serial` makes it.
fn sum_of(serial: u64, frames: &[u64]) -> Sum {
    let mut symbol = Vec::new();
    let mut equation = Vec::new();
    for sequence in frames {
        let factor = coefficient(Transmission::first(serial), *sequence);
        symbol::add(&mut symbol, factor, &part(*sequence, &payload(*sequence)));
        equation.push((*sequence, factor));
    }
    Sum::new(&equation, symbol).unwrap()
}

/// What the decoder knows, and what it has said is seen.
#[derive(Default)]
struct Known {
    decoder: Decoder,
    known: BTreeSet<u64>,
    seen: BTreeSet<u64>,
}

impl Known {
    fn add(&mut self, serial: u64, frames: &[u64]) {
        let unknown: Vec<u64> = frames.iter().copied().filter(|it| !self.known.contains(it)).collect();
        if unknown.is_empty() {
            return;
        }
        // As its owner takes the known ones out: what is left is the sum of the others.
        assert!(self.decoder.add(sum_of(serial, &unknown)));
        self.take_news();
    }

    fn know(&mut self, sequence: u64) {
        self.known.insert(sequence);
        self.decoder.on_known(&part(sequence, &payload(sequence)), sequence);
        self.take_news();
    }

    fn take_news(&mut self) {
        let news = self.decoder.take_news();
        self.seen.extend(news.seen);
        for (sequence, symbol) in news.solved {
            let read = symbol::read(on_air(sequence), &symbol).unwrap();
            assert_eq!(read, part(sequence, &payload(sequence)), "frame {sequence}");
            assert!(self.known.insert(sequence), "{sequence} twice");
        }
    }

    fn check(&self) {
        let mut load = Load::default();
        self.decoder.sums.values().for_each(|sum| load.add(sum.load()));
        assert_eq!(self.decoder.load, load);
        for (pivot, sum) in &self.decoder.sums {
            assert_eq!(*pivot, sum.end);
            assert!(sum.coefficients.len() > 1 && sum.coefficients[0] != 0);
            assert_eq!(sum.unknown as usize, sum.coefficients.iter().filter(|it| **it != 0).count());
            assert!(self.seen.contains(pivot) && !self.known.contains(pivot));
        }
    }
}

#[test]
fn as_many_sums_as_frames_solve_all() {
    let mut known = Known::default();
    let frames: Vec<u64> = (0..20).rev().collect();
    for serial in 0..19 {
        known.add(serial, &frames);
        known.check();
        assert!(known.known.is_empty());
    }
    // All but the first are seen, though none is known.
    assert_eq!(known.seen, (1..20).collect());
    known.add(19, &frames);
    assert_eq!(known.known, (0..20).collect());
    assert!(known.decoder.is_empty());
}

#[test]
fn frames_that_come_are_taken_out() {
    let mut known = Known::default();
    known.add(1, &[3, 2, 1]);
    known.know(3);
    assert_eq!(known.seen, BTreeSet::from([2, 3]), "the pivot has moved on");
    known.know(1);
    assert_eq!(known.known, BTreeSet::from([1, 2, 3]));
    known.check();
}

/// The first frame of the longest sum that may come is taken out as any other; nothing beyond is.
#[test]
fn a_frame_is_taken_out_of_the_longest_sum() {
    let first = 7;
    let end = first + MAX_SPAN - 1;
    let mut known = Known::default();
    known.add(1, &[end, end - 1, first]);
    known.add(2, &[end + 1, end]);
    known.know(first);
    known.check();
    known.know(end - 1);
    assert_eq!(known.known, BTreeSet::from([first, end - 1, end, end + 1]));
    assert!(known.decoder.is_empty());
}

/// A frame that a sum ends with leaves it without its place, whatever else is in it.
#[test]
fn a_pivot_that_comes_finds_its_sum_another() {
    let mut known = Known::default();
    known.add(1, &[5, 2, 1]);
    known.add(2, &[4, 1]);
    known.know(5);
    known.check();
    assert_eq!((known.decoder.sums.len(), known.seen.clone()), (2, BTreeSet::from([2, 4, 5])));
    known.know(4);
    assert_eq!(known.known, BTreeSet::from([1, 2, 4, 5]), "1 follows, and 2 from that");
}

#[test]
fn prefixes_are_solved_first() {
    let mut known = Known::default();
    known.add(1, &[2, 1]);
    known.add(2, &[9, 8, 2, 1]);
    known.add(3, &[2, 1]);
    assert_eq!(known.known, BTreeSet::from([1, 2]));
    assert_eq!(known.seen, BTreeSet::from([1, 2, 9]));
    known.check();
}

#[test]
fn memory_is_bounded() {
    let mut decoder = Decoder::default();
    let long = |start: u64| Sum::new(&[(start + MAX_SPAN - 1, 1), (start, 1)], vec![1; 60_000]).unwrap();
    let taken = (0..MAX_SUMS as u64).filter(|start| decoder.add(long(*start))).count();
    assert!(
        taken < MAX_SUMS && decoder.load.bytes <= MAX_BYTES,
        "{taken} sums, {} bytes",
        decoder.load.bytes
    );
    let mut decoder = Decoder::default();
    let short = |start| Sum::new(&[(start + 1_000, 1), (start, 1)], vec![1]);
    assert!((0..10).all(|start| decoder.add(short(start).unwrap())));
    decoder.set_elsewhere(MAX_BYTES);
    assert!(!decoder.add(short(10).unwrap()), "other classes have taken all");
}

/// A frame that a sum cannot have been made of, since it is longer, makes no sum grow.
#[test]
fn a_frame_that_is_longer_than_its_sums_drops_them() {
    let mut decoder = Decoder::default();
    for start in 1..=500 {
        assert!(decoder.add(Sum::new(&[(1000 + start, 1), (1000, 1), (start, 1)], vec![1; 20]).unwrap()));
    }
    let before = decoder.memory();
    decoder.on_known(&part(1000, &[7; 60_000]), 1000);
    assert!(decoder.memory() < before && decoder.is_empty(), "{} bytes", decoder.memory());
    assert_eq!((decoder.given_up(), decoder.load), (500, Load::default()));
}

/// What will have to be computed at once is bounded: sums are refused before it is too much.
#[test]
fn solving_all_that_waits_costs_no_more_than_is_said() {
    let mut decoder = Decoder::default();
    let mut taken = 0;
    for serial in 0..300 {
        // Each of the same frames: the first that is known solves all, if there are enough.
        let frames: Vec<(u64, u8)> =
            (0..256).rev().map(|frame| (frame, coefficient(Transmission::first(serial), frame))).collect();
        decoder.work().earn(1 << 24);
        taken += usize::from(decoder.add(Sum::new(&frames, vec![1; 30_000]).unwrap()));
    }
    assert!((20..200).contains(&taken), "{taken}");
    let debt: u64 = decoder.sums.values().map(|sum| sum.load().debt).sum();
    assert!(debt <= MAX_DEBT && debt > MAX_DEBT / 2, "{debt}");
}

/// Who has no credit left has sums given up, and what is known is still taken out of those that are there.
#[test]
fn without_credit_nothing_new_is_promised() {
    let mut decoder = Decoder::default();
    let sum = |serial| {
        Sum::new(
            &[
                (2, coefficient(Transmission::first(serial), 2)),
                (0, coefficient(Transmission::first(serial), 0)),
            ],
            vec![1; 30_000],
        )
        .unwrap()
    };
    assert!(decoder.add(sum(1)));
    let before = decoder.work().spent;
    decoder.work().spend(MOST_SAVED as usize);
    assert!(!decoder.work().is_paid() && !decoder.add(sum(2)));
    assert_eq!(decoder.work().spent, before + MOST_SAVED as u64 + STEP as u64, "nothing was computed");
    assert_eq!((decoder.take_news().seen, decoder.given_up()), (vec![2], 1));
    decoder.on_known(&part(0, &payload(0)), 0);
    assert_eq!(decoder.take_news().solved.len(), 1, "what was promised is kept");
    // What comes pays for further ones.
    decoder.add(sum(3));
    decoder.work().earn(1 << 10);
    assert!(decoder.add(sum(4)), "what is left of it is solved");
    assert!(!decoder.take_news().solved.is_empty());
}

proptest! {
    /// Whatever comes in whatever order: what is solved is right, the seen are as many as there are independent equations, and none is
    /// taken back.
    #[test]
    fn agrees_with_counting(
        steps in prop::collection::vec((any::<bool>(), prop::collection::btree_set(0_u64..24, 1..9)), 1..60),
    ) {
        let mut known = Known::default();
        let mut heard: Vec<Vec<u64>> = Vec::new();
        for (serial, (is_sum, frames)) in steps.into_iter().enumerate() {
            let frames: Vec<u64> = frames.into_iter().rev().collect();
            if is_sum {
                known.add(serial as u64, &frames);
                heard.push(frames);
            } else if !known.known.contains(&frames[0]) {
                known.know(frames[0]);
                known.seen.insert(frames[0]);
                heard.push(vec![frames[0]]);
            }
            known.check();
            prop_assert!(known.known.is_subset(&known.seen));
            prop_assert!(known.seen.len() <= heard.len());
            let all: BTreeSet<u64> = heard.iter().flatten().copied().collect();
            prop_assert!(known.seen.is_subset(&all));
            prop_assert_eq!(known.seen.len(), known.known.len() + known.decoder.sums.len());
        }
    }
}
