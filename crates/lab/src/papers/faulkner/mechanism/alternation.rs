//! Which acknowledgements a receiver sends, beside a model of it.
//!
//! A gap and a block that do not fit the receive window of 512 frames together are cut off by it: the frames beyond are not
//! accepted, of endpoint and model alike.

use std::collections::BTreeSet;
use std::io;

use base::config::ConfigError;
use base::{Instant, Rng};
use link::cotmll::{Ack, Config, Cotmll, SubProtocol, Trailer};
use link::{Endpoint, LineLimits};

use super::FIGURE;
use crate::claims::Measurements;
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-acknowledgement-alternation"],
    cases,
    measure,
};

const NAME: &str = "alternation";
const SCRIPTED: &str = "scripted";
const RANDOM: &str = "random";
/// Missing frames before the block.
const GAPS: [u64; 3] = [1, 100, 511];
/// Frames received beyond the gap.
const BLOCKS: [u64; 4] = [1, 127, 128, 400];
/// Frames received before the gap, so that gap, block or both wrap at 1024, or neither.
const BASES: [u64; 7] = [0, 100, 600, 1000, 1023, 1024, 1500];
/// Trailers that are looked at in every state.
const TRAILERS: u32 = 6;
const WINDOW: u64 = 512;
const SPACE: u64 = 1024;
/// What the count's seven bits hold.
const LONGEST: u64 = 127;
const NOW: Instant = Instant::ZERO;

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let steps = effort.choose(50_000.0, 1_000_000.0);
    Ok(vec![Case::calculation(SCRIPTED, 1, 20), Case::calculation(RANDOM, 1, 500).with("steps", steps)])
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let mut seen = Seen::default();
    if case.name == SCRIPTED {
        for base in BASES {
            for gap in GAPS {
                BLOCKS.iter().for_each(|&block| script(base, gap, block, &mut seen));
            }
        }
    } else {
        walk(case.numbers["steps"] as u32, &mut Rng::named(seed, NAME), &mut seen);
    }
    let mut measured = Measurements::new();
    measured.note("trailers", f64::from(seen.trailers));
    measured.note("wrong", f64::from(seen.wrong));
    measured.note("at start", f64::from(seen.at_start));
    measured.note("longest", f64::from(seen.longest));
    measured.note("blocks", f64::from(seen.blocks));
    Ok(measured)
}

/// Frames up to `base` arrive, then a block beyond a gap, then what was missing.
fn script(base: u64, gap: u64, block: u64, seen: &mut Seen) {
    let mut pair = Pair::new();
    (0..base).for_each(|number| pair.arrive(number));
    pair.look(TRAILERS, seen);
    (base + gap..base + gap + block).for_each(|number| pair.arrive(number));
    pair.look(TRAILERS, seen);
    (base..base + gap).for_each(|number| pair.arrive(number));
    pair.look(TRAILERS, seen);
}

/// Frames of the window arrive in any order, some of them again, and trailers leave between them.
fn walk(steps: u32, rng: &mut Rng, seen: &mut Seen) {
    let mut pair = Pair::new();
    for _ in 0..steps {
        if rng.chance(0.5) {
            pair.look(1, seen);
        } else {
            // Mostly near the gap; at times beyond the window, or before it.
            let reach = if rng.chance(0.8) { 8 } else { 600 };
            let ahead = rng.below(reach);
            // What is more than a window old looks like new: no sender would send it.
            let old = pair.next.saturating_sub(ahead.min(WINDOW));
            let number = if rng.chance(0.05) { old } else { pair.next + ahead };
            pair.arrive(number);
        }
    }
}

/// What the trailers said.
#[derive(Debug, Default)]
struct Seen {
    trailers: u32,
    /// Otherwise than the model's.
    wrong: u32,
    blocks: u32,
    /// Blocks that start at the first missing frame.
    at_start: u32,
    /// Frames of the longest block.
    longest: u8,
}

/// A receiver and a model of it.
struct Pair {
    endpoint: Cotmll,
    /// The first frame that is missing.
    next: u64,
    beyond: BTreeSet<u64>,
    /// Whether the last trailer told a block.
    told_block: bool,
}

impl Pair {
    fn new() -> Self {
        let endpoint = Cotmll::new(Config::default(), &LineLimits::default());
        Self { endpoint, next: 0, beyond: BTreeSet::new(), told_block: false }
    }

    /// A frame arrives that is a packet by itself.
    fn arrive(&mut self, number: u64) {
        let (tx, ack) = ((number % SPACE) as u16, Ack::Cumulative(0));
        let trailer = Trailer { protocol: SubProtocol::Reliable, first: true, last: true, tx, ack };
        // Frames that have come before, or lie beyond the window, are refused; what is acknowledged shows it.
        let _ = self.endpoint.handle_frame(NOW, &[&[0_u8; 3][..], &trailer.emit()].concat());
        while self.endpoint.poll_packet().is_some() {}
        if (self.next..self.next + WINDOW).contains(&number) {
            self.beyond.insert(number);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
    }

    /// The acknowledgement that has to come next.
    fn expected(&mut self) -> Ack {
        let first = self.beyond.first().copied().filter(|_| !self.told_block);
        self.told_block = first.is_some();
        let Some(start) = first else { return Ack::Cumulative((self.next % SPACE) as u16) };
        let run = (start..).take_while(|number| self.beyond.contains(number)).take(LONGEST as usize);
        Ack::Block { start: (start % SPACE) as u16, count: run.count() as u8 }
    }

    /// Looks at the next trailers.
    fn look(&mut self, trailers: u32, seen: &mut Seen) {
        for _ in 0..trailers {
            let mut frame = Vec::new();
            self.endpoint.poll_frame(NOW, &mut frame);
            self.endpoint.seal_frame(NOW, &mut frame);
            let told = Trailer::parse(&frame).ok().map(|(trailer, _)| trailer.ack);
            seen.trailers += 1;
            seen.wrong += u32::from(told != Some(self.expected()));
            if let Some(Ack::Block { start, count }) = told {
                seen.blocks += 1;
                seen.at_start += u32::from(u64::from(start) == self.next % SPACE);
                seen.longest = seen.longest.max(count);
            }
        }
    }
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for case in [SCRIPTED, RANDOM] {
        let of = |quantity: &str| samples.mean(NAME, case, quantity);
        let what = |what: &str| format!("{what}, {case}");
        criteria.push(Criterion::at_most(what("trailers otherwise than the model's"), of("wrong"), 0.0));
        criteria.push(Criterion::at_most(what("blocks at the window's start"), of("at start"), 0.0));
        criteria.push(Criterion::told(what("trailers"), of("trailers")));
        criteria.push(Criterion::told(what("blocks"), of("blocks")));
    }
    let longest = samples.mean(NAME, SCRIPTED, "longest");
    criteria.push(Criterion::within("longest block, frames", longest, LONGEST as f64, LONGEST as f64));
    Ruling::all(criteria)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endpoint that told the same twice would be noticed.
    #[test]
    fn a_trailer_out_of_turn_is_noticed() {
        let (mut pair, mut seen) = (Pair::new(), Seen::default());
        pair.arrive(5);
        pair.look(3, &mut seen);
        assert_eq!((seen.trailers, seen.wrong, seen.blocks), (3, 0, 2));
        pair.told_block = !pair.told_block;
        pair.look(2, &mut seen);
        assert_eq!(seen.wrong, 2);
    }
}
