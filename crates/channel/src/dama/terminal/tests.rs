//! A terminal on a carrier of 106 kbit/s: 62.5 slots of 4 ms, 48 bytes of payload each, in a superframe of 250 ms.

use base::Rate;

use super::*;
use crate::dama::RateRequest;

const SUPERFRAME: Duration = Duration::from_millis(250);
const PROCESSING: Duration = Duration::from_millis(250);
const HOP: Duration = Duration::from_millis(250);

fn rate() -> Rate {
    Rate::from_bps(106_000)
}

struct Bench {
    terminal: Terminal<usize>,
    line: Line,
    now: Instant,
    left: Vec<Departure<usize>>,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        Self::with(Encapsulation::Aal5, change)
    }

    fn with(encapsulation: Encapsulation, change: impl FnOnce(&mut Config)) -> Self {
        Self::in_superframes(SUPERFRAME, encapsulation, change)
    }

    fn in_superframes(
        superframe: Duration,
        encapsulation: Encapsulation,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let slots = Slots::new(rate(), encapsulation.cell_bits(), superframe);
        let control = Rc::new(RefCell::new(Control::new(slots, PROCESSING)));
        let mut config = Config { flow_control: false, ..Config::default() };
        change(&mut config);
        let mut terminal = Terminal::join(control, config, encapsulation, slots, HOP);
        terminal.keep_cycles();
        Self { terminal, line: Line::error_free(rate(), HOP), now: Instant::ZERO, left: Vec::new() }
    }

    /// Lets time go on until then.
    fn until(&mut self, ms: u64) {
        let end = Instant::ZERO + Duration::from_millis(ms);
        while let Some(at) = self.terminal.poll_timeout().filter(|at| *at <= end) {
            self.now = at;
            self.turn();
        }
        self.now = end;
        self.turn();
    }

    fn turn(&mut self) {
        self.terminal.advance(self.now, &mut self.line);
        self.left.extend(core::iter::from_fn(|| self.terminal.poll_departure()));
    }

    /// Frames of `len` bytes come; how many were taken.
    fn push(&mut self, frames: usize, len: usize) -> usize {
        let taken = (0..frames).filter(|_| self.terminal.push(len, len).is_ok()).count();
        self.turn();
        taken
    }

    /// From when to when each frame was on the air, in milliseconds.
    fn departures(&self) -> Vec<(u64, u64)> {
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        self.left.iter().map(|departure| (ms(departure.on_air.start), ms(departure.on_air.end))).collect()
    }
}

fn by_volume(config: &mut Config) {
    config.vbdc = true;
}

#[test]
fn constant_rate_leaves_at_once_in_slots_that_are_spread() {
    let mut bench = Bench::new(|config| config.cra = Rate::from_bps(53_000));
    bench.until(100);
    // 88 bytes and the trailer fill two cells: every other slot.
    assert_eq!(bench.push(1, 88), 1);
    assert_eq!(bench.departures(), [(100, 112)]);
    assert_eq!(bench.left[0].arrives_at, Instant::ZERO + Duration::from_millis(112 + 250));
}

#[test]
fn a_slot_is_used_once() {
    let mut bench = Bench::new(|config| config.cra = Rate::from_bps(53_000));
    bench.until(100);
    bench.push(1, 88);
    bench.push(1, 88);
    assert_eq!(bench.departures(), [(100, 112), (116, 128)]);
    bench.until(300);
    let counters = bench.terminal.counters();
    assert_eq!((counters.used, counters.requests), (4, 0));
    assert_eq!(bench.terminal.cycles().map(|cycle| cycle.used).collect::<Vec<_>>(), [4, 0]);
}

#[test]
fn volume_waits_for_the_next_opportunity_two_hops_and_processing() {
    let mut bench = Bench::new(by_volume);
    bench.until(10);
    bench.push(1, 1432);
    bench.until(3000);
    // Asked for at 250 ms, heard at 500, planned for 500 + 250 + 250; 30 slots in one piece.
    assert_eq!(bench.departures(), [(1000, 1120)]);
    let asked: Vec<u32> = bench.terminal.cycles().map(|cycle| cycle.asked_volume).collect();
    assert_eq!(asked.iter().sum::<u32>(), 30);
    assert_eq!(bench.terminal.counters().requests, 1);
    assert_eq!(bench.terminal.poll_timeout(), None);
}

#[test]
fn what_comes_while_a_grant_is_awaited_is_asked_for_at_the_next_opportunity() {
    let mut bench = Bench::new(by_volume);
    bench.until(10);
    bench.push(1, 1432);
    bench.until(300);
    bench.push(1, 1432);
    bench.until(3000);
    assert_eq!(bench.departures(), [(1000, 1120), (1252, 1372)]);
}

#[test]
fn a_slot_that_was_granted_carries_what_came_later() {
    let mut bench = Bench::new(|config| {
        config.rbdc = rate();
        config.rbdc_request = RateRequest::Backlog;
        config.rbdc_timeout = 4.try_into().expect("a time-out");
    });
    bench.until(10);
    bench.push(1, 1432);
    bench.until(1050);
    // 30 cells over four superframes are 8 slots a superframe: granted from the second second on. What comes now shares them.
    bench.push(1, 88);
    bench.until(4000);
    assert_eq!(bench.left.len(), 2);
    let cycle = bench.terminal.cycles().find(|cycle| cycle.grant.rbdc > 0).expect("a grant");
    assert_eq!((cycle.start, cycle.grant.rbdc), (Instant::ZERO + Duration::from_secs(1), 8));
    assert!(bench.left[0].on_air.end <= bench.left[1].on_air.start);
}

#[test]
fn without_flow_control_the_buffer_drops_what_it_has_no_room_for() {
    let mut bench = Bench::new(|config| {
        by_volume(config);
        config.mac_buffer = base::units::Size(4 * 1440);
    });
    bench.until(10);
    // With the trailer 1440 bytes each.
    assert_eq!(bench.push(6, 1432), 4);
    assert_eq!(bench.terminal.counters().dropped, 2);
    bench.until(1000);
    // A slot's bytes stay until it has passed.
    assert_eq!(bench.push(1, 1432), 0);
    bench.until(1120);
    assert_eq!(bench.push(2, 1432), 1);
}

#[test]
fn with_flow_control_there_is_room_when_the_longest_frame_fits() {
    let mut bench = Bench::new(|config| {
        by_volume(config);
        config.flow_control = true;
        config.mac_buffer = base::units::Size(2 * 1440);
    });
    bench.until(10);
    assert!(bench.terminal.has_room());
    bench.push(1, 1432);
    assert!(bench.terminal.has_room());
    bench.push(1, 40);
    assert!(!bench.terminal.has_room());
    assert_eq!(bench.terminal.room_at(), None);
    bench.until(1000);
    let room_at = bench.terminal.room_at().expect("slots are known");
    assert_eq!(room_at, Instant::ZERO + Duration::from_millis(1004));
    bench.until(1004);
    assert!(bench.terminal.has_room());
}

#[test]
fn frames_leave_in_their_order_and_share_cells_only_where_the_encapsulation_packs() {
    // 58 bytes a frame in cells of 48 of its own, and 54 one behind the other in bursts of 121.
    for (encapsulation, slots) in [(Encapsulation::Aal5, 20), (Encapsulation::Rle, 5)] {
        let mut bench = Bench::with(encapsulation, by_volume);
        bench.push(10, 50);
        bench.until(3000);
        assert_eq!(bench.terminal.counters().used, slots);
        assert!(bench.left.is_sorted_by_key(|departure| departure.on_air.end));
        assert_eq!(bench.left.len(), 10);
    }
}

#[test]
fn every_byte_that_was_granted_a_slot_leaves_the_buffer() {
    let mut bench = Bench::new(|config| {
        by_volume(config);
        config.cra = Rate::from_bps(10_000);
    });
    let mut pushed = 0;
    for step in 0..200 {
        pushed += bench.push(1 + step % 3, 40 + 137 * step % 1400);
        bench.until(60 * (step as u64 + 1));
    }
    bench.until(60_000);
    assert_eq!(bench.left.len(), pushed);
    assert_eq!(bench.terminal.buffered(), 0);
    let counters = bench.terminal.counters();
    assert!(counters.used <= counters.granted, "{counters:?}");
    assert!(counters.most_buffered <= 14_400);
}

/// What constant rate carries until a plan can heed a request is not asked for, whatever the superframe: hop, processing and hop take
/// 0.75 s, fifteen superframes of 50 ms or one of a second.
#[test]
fn volume_is_asked_for_beyond_what_constant_rate_carries_meanwhile() {
    for (superframe, ahead) in [(50, 15), (250, 3), (300, 3), (1000, 1)] {
        let superframe = Duration::from_millis(superframe);
        let mut bench = Bench::in_superframes(superframe, Encapsulation::Aal5, |config| {
            by_volume(config);
            config.cra = Rate::from_bps(53_000);
        });
        bench.push(1, 1432);
        let granted = bench.terminal.cycles().next().expect("it is awake").grant.cra;
        assert!(granted > 0);
        assert_eq!(bench.terminal.opportunity(1).coming, ahead * u64::from(granted), "{superframe}");
    }
}

/// A frame that is longer than the buffer goes alone, so that nothing waits for ever.
#[test]
fn a_frame_longer_than_the_buffer_goes_when_that_is_empty() {
    let mut bench = Bench::new(|config| {
        by_volume(config);
        config.flow_control = true;
        config.mac_buffer = base::units::Size(1440);
    });
    bench.until(10);
    bench.push(1, 3000);
    assert!(!bench.terminal.has_room());
    bench.until(999);
    assert_eq!(bench.terminal.room_at(), None);
    bench.until(1000);
    let room_at = bench.terminal.room_at().expect("all of it has slots");
    assert_eq!(room_at, bench.left[0].on_air.end);
    bench.until(2000);
    assert!(bench.terminal.has_room());
}
