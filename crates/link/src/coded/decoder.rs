//! What sums say of the frames that are missing: linear equations in echelon form, solved as they come.
//!
//! RFC 8681, 3.3 is the code (random linear, sliding window, GF(256)) with coefficients of our own. A sum from which all
//! known frames were taken out, and the unknown ones that other sums end with, ends with an unknown frame that no other ends with:
//! its *pivot*. That frame is *seen* (RFC 8406 counts degrees of freedom): the sender need not say more about it, whatever else is
//! in the sum. A sum with nothing but its pivot is solved, which takes that frame out of all others.
//!
//! It is the last frame that counts, since the first is what everybody waits for: of the frames up to any place just as many are seen
//! as sums can be made of these alone, so all are solved as soon as all are seen.
//!
//! Work is done when it can be: a frame that comes is taken out of the sums that have it, a sum that comes is reduced by those before
//! it. Nothing is ever solved from its start.

use std::collections::BTreeMap;

use base::code::gf256;

use crate::arq::frame::Part;
use crate::arq::sequence::on_air;

use super::coverage::MAX_SPAN;
use super::symbol;

/// Sums that wait for more.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// By their pivots.
    sums: BTreeMap<u64, Sum>,
    /// Bytes of them.
    bytes: usize,
    news: News,
}

/// An equation: the frames up to `end`, each times its coefficient, add up to `symbol`.
#[derive(Debug)]
pub(super) struct Sum {
    end: u64,
    /// The last frame's first.
    coefficients: Vec<u8>,
    symbol: Vec<u8>,
}

/// What came of what was taken in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Frames that are seen now.
    pub(super) seen: Vec<u64>,
    /// Frames that are known now, with their symbols.
    pub(super) solved: Vec<(u64, Vec<u8>)>,
}

/// Sums that wait at most.
pub(super) const MAX_SUMS: usize = 4096;

/// Bytes that they take at most: as many full frames of an Ethernet, with as many coefficients each.
const MAX_BYTES: usize = MAX_SUMS * (1500 + MAX_SPAN as usize);

impl Decoder {
    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Takes a sum in; false if there is no room for it.
    pub(super) fn add(&mut self, sum: Sum) -> bool {
        if self.sums.len() >= MAX_SUMS || self.bytes + sum.bytes() > MAX_BYTES {
            return false;
        }
        self.settle(vec![sum]);
        true
    }

    /// A frame has come: it is taken out of all sums.
    pub(super) fn on_known(&mut self, part: &Part<'_>, sequence: u64) {
        let unsettled = self.take_out(part, sequence);
        self.settle(unsettled);
    }

    /// Nothing before `next` is missing, or it is given up: sums that end there are of no use any more.
    pub(super) fn forget_before(&mut self, next: u64) {
        while let Some(entry) = self.sums.first_entry()
            && *entry.key() < next
        {
            self.bytes -= entry.remove().bytes();
        }
    }

    /// What came of what was taken in since the last call.
    pub(super) fn take_news(&mut self) -> News {
        core::mem::take(&mut self.news)
    }

    /// Finds a place for sums that have none, and takes the frames that are solved on the way out of all others.
    fn settle(&mut self, mut unsettled: Vec<Sum>) {
        while let Some(sum) = unsettled.pop() {
            let Some(sum) = self.reduce(sum) else { continue };
            let sequence = sum.end;
            self.news.seen.push(sequence);
            if sum.coefficients.len() > 1 {
                self.bytes += sum.bytes();
                self.sums.insert(sequence, sum);
                continue;
            }
            let symbol = sum.solved();
            if let Some(part) = symbol::read(on_air(sequence), &symbol) {
                unsettled.extend(self.take_out(&part, sequence));
            }
            self.news.solved.push((sequence, symbol));
        }
    }

    /// Takes the pivots of other sums off a sum's end, until there is a frame that none ends with, or that is solved; `None` if
    /// nothing is left.
    fn reduce(&self, mut sum: Sum) -> Option<Sum> {
        while sum.trim() {
            let other = self.sums.get(&sum.end).filter(|_| sum.coefficients.len() > 1);
            let Some(other) = other else { return Some(sum) };
            sum.subtract(other);
        }
        None
    }

    /// Takes a frame out of all sums. Those that ended with it have no place any more; those with nothing left but their pivots have none
    /// either.
    fn take_out(&mut self, part: &Part<'_>, sequence: u64) -> Vec<Sum> {
        let Self { sums, bytes, .. } = self;
        let mut loose = Vec::new();
        for (pivot, sum) in sums.range_mut(sequence..sequence + MAX_SPAN + 8) {
            let before = sum.bytes();
            if sum.take_out(part, sequence) && (*pivot == sequence || sum.coefficients.len() == 1) {
                loose.push(*pivot);
                *bytes -= before;
            } else {
                *bytes = *bytes + sum.bytes() - before;
            }
        }
        loose.into_iter().filter_map(|pivot| sums.remove(&pivot)).collect()
    }
}

impl Sum {
    /// An equation of frames and coefficients, the last frame first, that add up to `symbol`.
    pub(super) fn new(frames: &[(u64, u8)], symbol: Vec<u8>) -> Option<Self> {
        let (start, end) = (frames.last()?.0, frames.first()?.0);
        let mut coefficients = vec![0; (end - start) as usize + 1];
        for (sequence, coefficient) in frames {
            coefficients[(end - sequence) as usize] = *coefficient;
        }
        Some(Self { end, coefficients, symbol })
    }

    fn bytes(&self) -> usize {
        self.coefficients.len() + self.symbol.len()
    }

    /// Removes the zeros around its coefficients; whether there are others.
    fn trim(&mut self) -> bool {
        let Some(zeros) = self.coefficients.iter().position(|it| *it != 0) else { return false };
        if zeros > 0 {
            self.coefficients.drain(..zeros);
            self.end -= zeros as u64;
        }
        let last = self.coefficients.iter().rposition(|it| *it != 0).unwrap_or(0);
        self.coefficients.truncate(last + 1);
        true
    }

    /// Subtracts the multiple of a sum with the same end that leaves nothing there.
    fn subtract(&mut self, other: &Self) {
        let factor = gf256::mul(self.coefficients[0], gf256::inverse(other.coefficients[0]));
        for (mine, theirs) in
            [(&mut self.coefficients, &other.coefficients), (&mut self.symbol, &other.symbol)]
        {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0);
            }
            gf256::add_multiple(mine, factor, theirs);
        }
    }

    /// Takes a frame out, if it is in; whether it was.
    fn take_out(&mut self, part: &Part<'_>, sequence: u64) -> bool {
        let place = (self.end - sequence) as usize;
        let Some(coefficient) = self.coefficients.get_mut(place).filter(|it| **it != 0) else { return false };
        let factor = core::mem::take(coefficient);
        symbol::add(&mut self.symbol, factor, part);
        if place > 0 {
            // The pivot stays, and with it the end.
            self.trim();
        }
        true
    }

    /// The symbol of its only frame.
    fn solved(self) -> Vec<u8> {
        let Self { coefficients, symbol, .. } = self;
        let mut solved = vec![0; symbol.len()];
        gf256::add_multiple(&mut solved, gf256::inverse(coefficients[0]), &symbol);
        solved
    }
}

#[cfg(test)]
mod tests;
