//! Two COTMLL ends beside their models, over lines of which the input decides what happens to each frame.
//!
//! The rules are those of the link crate's model test, and so is what checks them.

#![no_main]

// The name by which the link crate's own tests call it.
extern crate link as longhaul_link;

use base::Duration;
use libfuzzer_sys::fuzz_target;
use link::Treatment;
use link::cotmll::{Acknowledge, Config, FlagAgainst, GapOpensWith, ToldBlock};

// The tests there ask it for more.
#[allow(dead_code)]
#[path = "../../crates/link/tests/model/mod.rs"]
mod model;

use model::pair::{FRAME_TIME, Fate, Pair};

/// Frames that a run may last: the sequence space goes round, and an input still takes but milliseconds.
const LONGEST: usize = 3_000;

/// Bytes of the input, zeros behind its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn config(&mut self) -> Config {
        let choice = self.byte();
        let chosen = |bit: u32| choice >> bit & 1 == 1;
        // Small windows behave differently each, wide ones alike.
        let window = if chosen(0) { self.number() % 512 } else { self.number() % 8 } + 1;
        let persistence = chosen(1).then(|| {
            let frames = u64::from(self.number() % 1024) + 1;
            Duration::from_nanos(frames * FRAME_TIME).try_into().expect("not zero")
        });
        let attempts = chosen(2).then(|| (u32::from(self.byte()) % 16 + 1).try_into().expect("in range"));
        Config {
            window: u32::from(window).try_into().expect("in range"),
            ordered: chosen(3),
            frame_payload: (u32::from(self.byte()) % 64 + 8).try_into().expect("in range"),
            persistence,
            attempts,
            flag_against: if chosen(4) { FlagAgainst::First } else { FlagAgainst::Latest },
            acknowledge: if chosen(5) { Acknowledge::Start } else { Acknowledge::Trailer },
            block: if chosen(6) { ToldBlock::Latest } else { ToldBlock::First },
            gap_opens_with: if chosen(7) { GapOpensWith::Cumulative } else { GapOpensWith::Block },
        }
    }
}

/// Something happens on the lines.
fn step(pair: &mut Pair, input: &mut Input<'_>) -> usize {
    let op = input.byte();
    let (side, argument) = (usize::from(op >> 3 & 1), usize::from(op >> 4));
    let lost = Fate { lost: true, ..Fate::default() };
    match op & 7 {
        0 => {
            let treatment = if argument & 1 == 1 { Treatment::Once } else { Treatment::Reliable };
            pair.offer(side, input.byte().into(), treatment);
            0
        }
        1 => {
            (0..=argument).for_each(|_| pair.transfer(side, Fate::default()));
            argument + 1
        }
        2 => {
            let fate = Fate {
                lost: argument & 1 == 1,
                repeated: argument >> 1 & 1 == 1,
                replayed: (argument >> 2 & 1 == 1).then(|| input.byte().into()),
                interrupted: argument >> 3 & 1 == 1,
            };
            pair.transfer(side, fate);
            1
        }
        // One direction is blocked.
        3 => {
            (0..=argument).for_each(|_| pair.transfer(side, lost));
            argument + 1
        }
        // Both are, or both are open, for long.
        4 | 5 => {
            let count = usize::from(input.byte()) + 1;
            let fate = if op & 7 == 4 { lost } else { Fate::default() };
            for _ in 0..count {
                if side == 1 {
                    pair.offer(argument & 1, argument * 16, Treatment::Reliable);
                }
                pair.transfer(0, fate);
                pair.transfer(1, fate);
            }
            2 * count
        }
        // A busy direction that loses one frame in a few.
        6 => {
            let count = usize::from(input.byte()) + 1;
            for n in 0..count {
                pair.offer(side, 8, Treatment::Reliable);
                pair.transfer(side, Fate { lost: n % (argument + 1) == argument, ..Fate::default() });
            }
            count
        }
        _ => {
            pair.pass((FRAME_TIME / 2) << argument);
            1
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let config = input.config();
    let mut pair = Pair::new(config, usize::from(input.byte()) % 64);
    let mut frames = 0;
    while !input.0.is_empty() && frames < LONGEST {
        frames += step(&mut pair, &mut input);
    }
    pair.drain();
});
