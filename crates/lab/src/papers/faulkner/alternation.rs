//! Section 2.3: which acknowledgements a receiver sends, beside a model of it.
//!
//! A gap and a block that do not fit the receive window of 512 frames together are cut off by it: the frames beyond are not
//! accepted, by endpoint and model alike.

use std::collections::BTreeSet;
use std::io;

use base::{Instant, Rng};
use link::cotmll::{Ack, Config, Cotmll, SubProtocol, Trailer};
use link::{Endpoint, LineLimits};

use crate::claims::Measurements;
use crate::study::probe::{Method, Probe, Trial};

/// `trailers(how)` that were looked at, `'scripted'` or `'random'`; of these `wrong(how)`, otherwise than the model's, and
/// `blocks(how)`; of these `at_start(how)`, those that start at the first missing frame; `longest(how)`: frames of the
/// longest block. `with.steps` says how many random steps.
pub(super) const ALTERNATION: Probe = Probe {
    name: "alternation",
    version: 1,
    quantities: &["trailers", "wrong", "blocks", "at_start", "longest"],
    series: &[],
    method: Method::Trial(measure),
};

/// Missing frames before the block.
const GAPS: [u64; 3] = [1, 100, 511];
/// Frames received beyond the gap.
const BLOCKS: [u64; 4] = [1, 127, 128, 400];
/// Frames received before the gap, so that gap, block or both wrap at 1024, or neither.
const BASES: [u64; 7] = [0, 100, 600, 1000, 1023, 1024, 1500];
/// Trailers that are looked at in every state.
const TRAILERS: u32 = 6;
const WINDOW: u64 = 512;
const SPACE: u64 = super::SPACE as u64;
/// What the count's seven bits hold.
const LONGEST: u64 = 127;
const NOW: Instant = Instant::ZERO;

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let (mut scripted, mut random) = (Seen::default(), Seen::default());
    for base in BASES {
        for gap in GAPS {
            BLOCKS.iter().for_each(|&block| script(base, gap, block, &mut scripted));
        }
    }
    walk(trial.number("steps")? as u32, &mut Rng::named(trial.seed, ALTERNATION.name), &mut random);
    for (how, seen) in [("scripted", scripted), ("random", random)] {
        let mut note = |name: &str, count: u32| measured.set(name, &[how.into()], f64::from(count));
        note("trailers", seen.trailers);
        note("wrong", seen.wrong);
        note("blocks", seen.blocks);
        note("at_start", seen.at_start);
        note("longest", seen.longest.into());
    }
    Ok(())
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
