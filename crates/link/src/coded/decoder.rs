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
//!
//! **Bounds**, whatever the peer sends. Sums take [`MAX_BYTES`] of memory at most, in all classes of an endpoint together, counted as
//! allocated. What they cost is paid for by what is received (`work`), and solving all that wait costs no more than [`MAX_DEBT`]. A sum
//! that would exceed any of it is given up before it is seen, so the sender does not count on it. A sum is as long as the longest frame
//! in it; one that a frame of its own is longer than is no sender's, and dropped.

use std::collections::BTreeMap;

use base::Packet;
use base::code::gf256;

use crate::arq::frame::Part;
use crate::arq::sequence::on_air;

use super::coverage::MAX_SPAN;
use super::symbol;
use super::work::{STEP, Work};

/// Sums that wait for more.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// By their pivots.
    sums: BTreeMap<u64, Sum>,
    load: Load,
    /// Bytes that the sums of other classes take.
    elsewhere: usize,
    /// Bytes that sums may take, with those of other classes, if that is less than [`MAX_BYTES`].
    limit: Option<usize>,
    work: Work,
    news: News,
    /// Sums for which there was no room, and those that no sender makes.
    given_up: u64,
}

/// What sums take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    /// Of memory.
    bytes: usize,
    /// Bytes that are computed at most to solve them.
    debt: u64,
}

/// What is left of a sum without the pivots of others.
enum Reduced {
    Sum(Sum),
    Nothing,
    /// It has cost more than was paid for.
    GivenUp,
}

/// An equation: the frames up to `end`, each times its coefficient, add up to `symbol`.
#[derive(Debug)]
pub(super) struct Sum {
    end: u64,
    /// The last frame's first.
    coefficients: Vec<u8>,
    symbol: Vec<u8>,
    /// Coefficients that are not zero, once it has a place.
    unknown: u32,
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

/// Bytes of memory that sums take at most, in all classes together: as many full frames of an Ethernet, with as many coefficients each.
pub(super) const MAX_BYTES: usize = MAX_SUMS * (1500 + 4096);

/// Bytes that are computed at most once what solves all sums has come. Ours: four times as many as 256 sums of as many full frames can take,
/// and enough for frames of 7900 bytes.
pub(super) const MAX_DEBT: u64 = 4 * 256 * 256 * (STEP as u64 + 1500);

/// Bytes of notes about a sum.
const NOTES: usize = 128;

impl Decoder {
    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Bytes of memory that sums take.
    pub(super) const fn memory(&self) -> usize {
        self.load.bytes
    }

    /// Bytes of memory that the frames may take that come of them.
    pub(super) fn reserved(&self) -> usize {
        2 * self.load.bytes + self.sums.len() * Packet::kept_size(1)
    }

    /// Sums of other classes take so many bytes.
    pub(super) fn set_elsewhere(&mut self, bytes: usize) {
        self.elsewhere = bytes;
    }

    /// Sums, here and in other classes, may take so many bytes from now on. Those that wait stay.
    pub(super) fn limit_memory(&mut self, bytes: usize) {
        self.limit = Some(bytes.min(MAX_BYTES));
    }

    /// What pays for the sums.
    pub(super) const fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    /// Sums that were given up.
    pub(super) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Takes a sum in; false if it is given up, since there is no room for it.
    pub(super) fn add(&mut self, sum: Sum) -> bool {
        let given_up = self.given_up;
        self.settle(vec![sum]);
        self.given_up == given_up
    }

    /// A frame has come: it is taken out of all sums.
    pub(super) fn on_known(&mut self, part: &Part<'_>, sequence: u64) {
        let unsettled = self.take_out(part, sequence);
        self.settle(unsettled);
    }

    /// Forgets all sums; what was spent stays spent.
    pub(super) fn reset(&mut self) {
        let Self { work, given_up, limit, .. } = core::mem::take(self);
        (self.work, self.given_up, self.limit) = (work, given_up, limit);
    }

    fn has_room_for(&self, load: Load) -> bool {
        self.sums.len() < MAX_SUMS
            && self.elsewhere + self.load.bytes + load.bytes <= self.limit.unwrap_or(MAX_BYTES)
            && self.load.debt + load.debt <= MAX_DEBT
    }

    /// Nothing before `next` is missing, or it is given up: sums that end there are of no use any more.
    pub(super) fn forget_before(&mut self, next: u64) {
        while let Some(entry) = self.sums.first_entry()
            && *entry.key() < next
        {
            self.load.remove(entry.remove().load());
        }
    }

    /// What came of what was taken in since the last call.
    pub(super) fn take_news(&mut self) -> News {
        core::mem::take(&mut self.news)
    }

    /// Finds a place for sums that have none, and takes the frames that are solved on the way out of all others.
    fn settle(&mut self, mut unsettled: Vec<Sum>) {
        while let Some(sum) = unsettled.pop() {
            let mut sum = match self.reduce(sum) {
                Reduced::Sum(sum) => sum,
                Reduced::Nothing => continue,
                Reduced::GivenUp => {
                    self.given_up += 1;
                    continue;
                }
            };
            let sequence = sum.end;
            if sum.coefficients.len() > 1 {
                sum.count();
                // Nothing depends on it yet: its former pivot, if it had one, has come.
                if self.has_room_for(sum.load()) {
                    self.news.seen.push(sequence);
                    self.load.add(sum.load());
                    self.sums.insert(sequence, sum);
                } else {
                    self.given_up += 1;
                }
                continue;
            }
            self.news.seen.push(sequence);
            let symbol = sum.solved();
            if let Some(part) = symbol::read(on_air(sequence), &symbol) {
                unsettled.extend(self.take_out(&part, sequence));
            }
            self.news.solved.push((sequence, symbol));
        }
    }

    /// Takes the pivots of other sums off a sum's end, until there is a frame that none ends with, or that is solved.
    fn reduce(&mut self, mut sum: Sum) -> Reduced {
        while sum.trim() {
            let other = self.sums.get(&sum.end).filter(|_| sum.coefficients.len() > 1);
            let Some(other) = other else { return Reduced::Sum(sum) };
            if !self.work.is_paid() {
                return Reduced::GivenUp;
            }
            self.work.spend(other.coefficients.len() + other.symbol.len());
            sum.subtract(other);
        }
        Reduced::Nothing
    }

    /// Takes a frame out of all sums. Those that ended with it have no place any more; those with nothing left but their pivots have none
    /// either, and are solved.
    fn take_out(&mut self, part: &Part<'_>, sequence: u64) -> Vec<Sum> {
        let Self { sums, load, work, given_up, .. } = self;
        let (len, mut out) = (symbol::len(part), Vec::new());
        for (pivot, sum) in sums.range_mut(sequence..sequence + MAX_SPAN) {
            if !sum.has(sequence) {
                continue;
            }
            let before = sum.load();
            let is_sound = len <= sum.symbol.len();
            if is_sound {
                work.spend(len);
                sum.take_out(part, sequence);
            }
            load.remove(before);
            if !is_sound || *pivot == sequence || sum.coefficients.len() == 1 {
                out.push((*pivot, is_sound));
            } else {
                load.add(sum.load());
            }
        }
        let mut loose = Vec::new();
        for (pivot, is_sound) in out {
            let sum = sums.remove(&pivot);
            if is_sound {
                loose.extend(sum);
            } else {
                *given_up += 1;
            }
        }
        loose
    }
}

impl Load {
    const fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.debt += other.debt;
    }

    const fn remove(&mut self, other: Self) {
        self.bytes -= other.bytes;
        self.debt -= other.debt;
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
        Some(Self { end, coefficients, symbol, unknown: 0 })
    }

    fn load(&self) -> Load {
        Load {
            bytes: self.coefficients.capacity() + self.symbol.capacity() + NOTES,
            debt: u64::from(self.unknown) * (STEP + self.symbol.len()) as u64,
        }
    }

    /// Counts what is unknown in it.
    fn count(&mut self) {
        self.unknown = self.coefficients.iter().map(|it| u32::from(*it != 0)).sum();
    }

    /// Whether a frame is in it, up to its end.
    fn has(&self, sequence: u64) -> bool {
        self.coefficients.get((self.end - sequence) as usize).is_some_and(|it| *it != 0)
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
                mine.reserve_exact(theirs.len() - mine.len());
                mine.resize(theirs.len(), 0);
            }
            gf256::add_multiple(mine, factor, theirs);
        }
    }

    /// Takes a frame out that is in it.
    fn take_out(&mut self, part: &Part<'_>, sequence: u64) {
        let place = (self.end - sequence) as usize;
        let factor = core::mem::take(&mut self.coefficients[place]);
        symbol::add(&mut self.symbol, factor, part);
        self.unknown -= 1;
        if place > 0 {
            // The pivot stays, and with it the end.
            self.trim();
        }
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
