use base::code::reed_solomon::Plan;
use proptest::prelude::*;

use super::*;

const KEY: Key = Key([1, 2]);
const LEN: usize = 10;
const START: u64 = 1 << 32;

/// The sources of a block that begins at `START`; the last one is shorter.
fn sources(count: u8) -> Vec<Vec<u8>> {
    let len = |number: u8| if number + 1 == count { 4 } else { LEN };
    let byte = |number: u8, at: usize| number.wrapping_mul(31) ^ (at as u8).wrapping_mul(77);
    (0..count).map(|number| (0..len(number)).map(|at| byte(number, at)).collect()).collect()
}

fn place(block: u8, number: u8, (sources, repairs): (u8, u8)) -> Place {
    Place { block, number, sources, repairs, again: false }
}

fn offset(number: u8) -> u64 {
    START + u64::from(number) * LEN as u64
}

/// The repair with this number.
fn repair(data: &[Vec<u8>], number: u8) -> ((u64, u16, u32), Vec<u8>) {
    let known: Vec<u8> = (0..data.len() as u8).collect();
    let len = if data.len() == 1 { data[0].len() } else { LEN };
    let mut sums = vec![vec![0; len]];
    Plan::decode(&known, &[number]).add(data.iter().map(Vec::as_slice), &mut sums);
    let check = KEY.check(START, data.len() as u8, &data.concat());
    ((START, data.last().unwrap().len() as u16, check), sums.remove(0))
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A receiver, and what came of block 1.
struct Script {
    incoming: Incoming,
    data: Vec<Vec<u8>>,
    shape: (u8, u8),
    now: Instant,
}

impl Script {
    fn new(shape: (u8, u8)) -> Self {
        Self { incoming: Incoming::new(KEY), data: sources(shape.0), shape, now: Instant::ZERO }
    }

    fn arrive(&mut self, number: u8) -> u16 {
        let place = place(1, number, self.shape);
        if number < self.shape.0 {
            self.incoming.on_source(self.now, place, offset(number), &self.data[usize::from(number)])
        } else {
            let (says, data) = repair(&self.data, number);
            self.incoming.on_repair(self.now, place, says, &data)
        }
    }

    fn arrive_all(&mut self, numbers: &[u8]) {
        for &number in numbers {
            self.arrive(number);
        }
    }

    /// Sources that come behind a gap which begins with source `gap`; what is released.
    fn behind(&mut self, gap: u8, numbers: core::ops::Range<u8>) -> u16 {
        let mut freed = 0;
        for number in numbers {
            freed += self.arrive(number);
            if self.incoming.may_withhold(place(1, number, self.shape), offset(gap)) {
                self.incoming.withhold(self.now);
            }
            freed += self.incoming.release_if_hopeless();
        }
        freed
    }
}

proptest! {
    /// As many segments of a block as it has sources give the rest, whichever they are and in whatever order they come.
    #[test]
    fn any_segments_make_a_block_whole(
        count in 1_u8..30,
        order in Just((0_u8..60).collect::<Vec<_>>()).prop_shuffle(),
        duplicates: bool,
    ) {
        let mut script = Script::new((count, 60 - count));
        let mut lacking: std::collections::BTreeSet<u8> = (0..count).collect();
        let mut found = Vec::new();
        for (at, number) in order.into_iter().enumerate() {
            script.arrive(number);
            lacking.remove(&number);
            found.extend(script.incoming.decode());
            if duplicates {
                script.arrive(number);
                found.extend(script.incoming.decode());
            }
            if at + 1 == usize::from(count) {
                break;
            }
            prop_assert!(found.is_empty());
        }
        let expected: Vec<_> =
            lacking.iter().map(|number| (offset(*number), script.data[usize::from(*number)].clone())).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(script.incoming.memory(), 0);
    }

    /// Whoever sends anything gets nothing computed, and takes no more memory than there is.
    #[test]
    fn nothing_is_computed_from_what_is_forged(
        segments in prop::collection::vec(
            (any::<[u8; 4]>(), any::<bool>(), 0_usize..3000, (any::<u32>(), any::<u16>(), any::<u32>())), 1..400,
        ),
    ) {
        let mut incoming = Incoming::new(KEY);
        for ([block, number, sources, repairs], again, len, (start, tail, check)) in segments {
            let (sources, repairs) = (1 + sources % 127, repairs % 128);
            let place = Place { block: block % 8, number, sources, repairs, again };
            let data = vec![number; len];
            incoming.on_source(Instant::ZERO, place, START + u64::from(start), &data);
            let tail = 1 + tail % 40;
            incoming.on_repair(Instant::ZERO, place, (START + u64::from(start % 3), tail, check % 2), &data);
            prop_assert!(incoming.decode().is_empty());
            incoming.report(START);
            prop_assert!(incoming.memory() <= MOST_MEMORY);
            let counted: usize = incoming.blocks.iter().map(Block::memory).sum();
            prop_assert_eq!(counted, incoming.memory());
        }
    }
}

#[test]
fn memory_is_bounded() {
    let mut incoming = Incoming::new(KEY);
    let data = vec![1; 65_000];
    for block in 0..3000_u32 {
        for number in 0..=255 {
            // Tiny ones of some blocks, giants of others.
            let data = if block % 2 == 0 { &data[..] } else { &data[..1] };
            let place = place(block as u8, number, (127, 127));
            incoming.on_source(Instant::ZERO, place, START, data);
            incoming.on_repair(Instant::ZERO, place, (START, 1, block), data);
        }
        incoming.decode();
        incoming.report(START);
        assert!(incoming.memory() <= MOST_MEMORY && incoming.blocks.len() <= MOST_BLOCKS);
    }
    incoming.set_allowance(0);
    let before = incoming.memory();
    incoming.on_source(Instant::ZERO, place(200, 0, (9, 1)), START, &[0; 100]);
    assert!(incoming.memory() <= before);
    incoming.rest();
    assert_eq!((incoming.memory(), incoming.deadline()), (0, Instant::MAX));
}

/// All 256 numbers are in use: sources below one place's count, repairs from another's on.
#[test]
fn every_number_may_come() {
    let mut script = Script::new((127, 127));
    for number in 0..=254 {
        let shape = if number < 127 { (127, 0) } else { (1, 127) };
        script.incoming.on_source(ms(0), place(1, number, shape), START, &[1]);
        script.incoming.on_repair(ms(0), place(1, number, shape), (START, 1, 1), &[1]);
        script.incoming.on_repair(ms(0), place(1, 255, (1, 127)), (START, 1, 1), &[1]);
    }
    script.incoming.decode();
    assert!(script.incoming.blocks[0].arrived >= 127);
}

/// Figure 1b: duplicates wait while no more is missing than there are repairs.
#[test]
fn duplicates_wait_for_repairs() {
    let mut script = Script::new((8, 2));
    script.arrive(0);
    // One and two missing: they wait, and with the third all of them go.
    assert_eq!(script.behind(1, 2..4), 0);
    assert_eq!(script.behind(1, 5..7), 0);
    assert!(script.incoming.withholds());
    assert_eq!(script.arrive(8), 0);
    assert_eq!(script.incoming.release_if_hopeless(), 4);
    assert!(!script.incoming.withholds() && script.incoming.deadline() == Instant::MAX);
}

#[test]
fn duplicates_go_when_nothing_more_comes_of_the_block() {
    // The last repair has come, and it was not enough.
    let mut script = Script::new((6, 2));
    script.arrive(0);
    assert_eq!(script.behind(1, 3..6), 0);
    assert_eq!(script.arrive(7), 0);
    assert_eq!(script.incoming.release_if_hopeless(), 3);

    // The next block begins.
    let mut script = Script::new((6, 2));
    script.arrive(0);
    assert_eq!(script.behind(1, 2..6), 0);
    let next = place(2, 0, (6, 2));
    assert_eq!(script.incoming.on_source(ms(1), next, offset(6), &[1; LEN]), 4);
}

/// The timer the paper lacks: the spacing of packets times what is due, and no more than half a second.
#[test]
fn duplicates_go_when_the_time_is_over() {
    for (spacing, waits) in [(0, 10..30), (2, 10..40), (100, 100..501), (5000, 500..501)] {
        let mut script = Script::new((60, 4));
        for number in 0..40 {
            script.arrive(number);
            script.now += Duration::from_millis(spacing);
        }
        assert_eq!(script.behind(40, 41..44), 0);
        let wait = script.incoming.deadline().saturating_since(script.now).as_millis();
        assert!(waits.contains(&wait), "{wait} ms at a spacing of {spacing} ms");
        // What comes puts it off.
        script.now += Duration::from_millis(5);
        script.arrive(44);
        let later = script.incoming.deadline().saturating_since(script.now).as_millis();
        assert!(waits.contains(&later), "{later} ms at a spacing of {spacing} ms");
        assert_eq!(script.incoming.handle_timeout(), 3);
        assert_eq!((script.incoming.deadline(), script.incoming.withholds()), (Instant::MAX, false));
    }
}

/// A gap in an older block, a segment sent again, and a block without repairs: they do not wait.
#[test]
fn what_cannot_be_repaired_does_not_wait() {
    let mut script = Script::new((6, 2));
    script.arrive(1);
    let here = place(1, 1, script.shape);
    assert!(script.incoming.may_withhold(here, offset(0)));
    assert!(!script.incoming.may_withhold(here, offset(0) - 1), "in the block before");
    assert!(!script.incoming.may_withhold(Place { again: true, ..here }, offset(0)));
    assert!(!script.incoming.may_withhold(place(2, 1, script.shape), offset(0)));
    let mut bare = Script::new((6, 0));
    bare.arrive(1);
    assert!(!bare.incoming.may_withhold(place(1, 1, bare.shape), offset(0)));
}

/// Repairs that come after the acknowledgements went out, and after the next block began, complete the block.
#[test]
fn late_repairs_complete_a_block() {
    let mut script = Script::new((6, 1));
    script.arrive_all(&[0, 2, 3, 5, 6]);
    assert_eq!(script.incoming.decode(), vec![]);
    script.incoming.on_source(ms(1), place(2, 0, (6, 1)), offset(6), &[1; LEN]);
    script.arrive(9);
    let expected = [1, 4].map(|number| (offset(number), script.data[usize::from(number)].clone()));
    assert_eq!(script.incoming.decode(), expected.to_vec());
}

/// A forged repair that came first is found out, and the genuine ones count after that.
#[test]
fn forged_repairs_are_dropped() {
    let (says, data) = repair(&sources(6), 6);
    let (start, tail, check) = says;
    let wrong = [0xa5; LEN];
    for (forged, data) in [
        ((start + 1, tail, check), &data[..]),
        ((start, tail + 1, check), &data[..]),
        ((start, tail, check ^ 1), &data[..]),
        (says, &wrong[..]),
        ((start, tail, check), &data[..LEN - 1]),
    ] {
        let mut script = Script::new((6, 2));
        script.incoming.on_repair(ms(0), place(1, 6, script.shape), forged, data);
        script.arrive_all(&[0, 1, 2, 4, 5]);
        assert_eq!(script.incoming.decode(), vec![]);
        script.arrive(7);
        assert_eq!(script.incoming.decode(), vec![(offset(3), script.data[3].clone())]);
    }
    // It says that the block has fewer sources: then the check is of something else.
    let mut script = Script::new((6, 2));
    script.arrive_all(&[0, 1, 2, 4, 5]);
    script.incoming.on_repair(ms(0), place(1, 3, (3, 2)), says, &data);
    script.arrive_all(&[0, 1]);
    assert!(script.incoming.decode().is_empty());
}

/// Of the two blocks that ended last, how much came of what was not sent again; and what the oldest incomplete one lacks.
#[test]
fn reports_tell_what_came() {
    let mut script = Script::new((6, 2));
    script.arrive_all(&[0, 1, 3, 5]);
    assert_eq!(script.incoming.report(offset(2)), None);
    script.arrive(6);
    script.incoming.on_source(
        ms(0),
        Place { again: true, ..place(1, 4, (6, 2)) },
        offset(4),
        &script.data[4],
    );
    // The block is whole by what was sent again, which does not count.
    assert_eq!(script.incoming.decode().len(), 1);
    script.incoming.on_source(ms(0), place(2, 1, (6, 2)), offset(7), &[1; LEN]);
    let report = script.incoming.report(offset(6)).unwrap();
    assert_eq!(report, Report { ended: [(1, 5), (1, 5)], missing: (0, 0) });
    // A source that was computed comes after all: too late to count, for its block has ended.
    script.incoming.on_late_source(place(1, 2, (6, 2)));
    script.incoming.on_source(ms(0), place(3, 0, (6, 2)), offset(12), &[1; LEN]);
    let report = script.incoming.report(offset(6)).unwrap();
    assert_eq!(report, Report { ended: [(2, 1), (1, 5)], missing: (2, 5) });
    // All of that has come in order meanwhile, sent again in pieces: nothing is missing, though no repair has told where it ended.
    let report = script.incoming.report(offset(12)).unwrap();
    assert_eq!(report.missing, (0, 0));
}

#[test]
fn late_sources_count() {
    let mut script = Script::new((6, 2));
    script.arrive_all(&[0, 1, 2, 3, 4, 6]);
    assert_eq!(script.incoming.decode().len(), 1);
    script.incoming.on_late_source(place(1, 5, (6, 2)));
    script.incoming.on_late_source(place(1, 5, (6, 2)));
    script.arrive(7);
    assert_eq!(script.incoming.report(offset(6)).unwrap().ended[0], (1, 8));
}

/// Block numbers wrap; what is older than the last one by half the circle is not begun again.
#[test]
fn block_numbers_wrap() {
    let mut incoming = Incoming::new(KEY);
    for block in 0..600_u32 {
        incoming.on_source(ms(0), place(block as u8, 0, (2, 1)), START + u64::from(block), &[1]);
        assert_eq!(incoming.blocks.back().unwrap().number, block as u8);
        incoming.on_source(ms(0), place((block as u8).wrapping_sub(100), 0, (2, 1)), START, &[1]);
        assert_eq!(incoming.blocks.back().unwrap().number, block as u8);
    }
}

/// Where there is no more memory, what came of old blocks goes, so that the new one can be repaired.
#[test]
fn old_blocks_make_way() {
    let mut script = Script::new((5, 2));
    script.incoming.set_allowance(6 * (LEN + OVERHEAD));
    script.arrive_all(&[0, 1, 2, 3]);
    for number in [0, 1, 2, 3] {
        let data = script.data[usize::from(number)].clone();
        script.incoming.on_source(ms(1), place(2, number, (5, 2)), offset(number), &data);
    }
    let (says, data) = repair(&script.data, 5);
    script.incoming.on_repair(ms(1), place(2, 5, (5, 2)), says, &data);
    assert_eq!(script.incoming.decode(), vec![(offset(4), script.data[4].clone())]);
    // Of the first block nothing is left.
    script.arrive(5);
    assert_eq!(script.incoming.decode(), []);
}

/// What the oldest block lacks is told as it is, once the block is over: all of it, and no more.
#[test]
fn a_block_that_is_over_is_reported_by_what_it_lacks() {
    for (shape, came, gap, lacking) in [((4, 1), vec![0, 1, 4], 2, 1), ((8, 1), vec![0, 1, 2, 3, 4, 8], 5, 2)]
    {
        let mut script = Script::new(shape);
        script.arrive_all(&came);
        // The next block begins.
        let next = place(2, 0, shape);
        script.incoming.on_source(ms(1), next, offset(shape.0) - 6, &[1; LEN]);
        let report = script.incoming.report(offset(gap)).expect("a report");
        assert_eq!(report.missing, (1, lacking), "{shape:?}: too few repairs come, or far too many");
    }
}

/// A block is over with its last repair, and is told of once: else its erasures count high, and push out what is told of others.
#[test]
fn a_block_is_reported_once_and_not_before_it_is_over() {
    let mut script = Script::new((4, 2));
    // One that begins and ends before it.
    script.incoming.on_source(ms(0), place(0, 0, (4, 2)), START - LEN as u64, &[1; LEN]);
    script.arrive_all(&[0, 1, 2, 3, 4]);
    let ended = |script: &mut Script| script.incoming.report(START).map(|report| report.ended);
    assert_eq!(ended(&mut script), Some([(0, 1), (0, 1)]), "before it is over");
    script.arrive(5);
    for _ in 0..2 {
        assert_eq!(ended(&mut script), Some([(1, 6), (0, 1)]));
    }
}

/// Memory is shared by blocks, the oldest goes first: as long as there is enough, each is kept; where there is not, the newer.
#[test]
fn blocks_are_kept_while_there_is_memory() {
    let two = 2 * (LEN + OVERHEAD);
    for (memory, kept) in [(20 * two, true), (two, false)] {
        let mut script = Script::new((4, 1));
        script.incoming.set_allowance(memory);
        script.arrive_all(&[0, 1, 2]);
        // A later block.
        for number in 0..2 {
            script.incoming.on_source(ms(0), place(2, number, (4, 1)), offset(4 + number), &[1; LEN]);
        }
        let later = script.incoming.blocks.iter().find(|block| block.number == 2);
        assert_eq!(later.map(Block::known), Some(2), "the newer is kept");
        script.arrive(4);
        let found = script.incoming.decode();
        assert_eq!(found.len(), usize::from(kept), "memory for {memory}");
        assert!(script.incoming.memory() <= memory);
    }
}
