//! One block as its sender has it, and its repairs.

use core::ops::Range;
use std::collections::VecDeque;

use base::code::reed_solomon;
use base::wire::tcp::coding::Place;

use super::Symbol;
use crate::buffer::send::SendBuffer;

/// A stretch of the stream that is coded together.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: u8,
    /// Offset of its first byte, and of the one after its last so far.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes of its segments but the last.
    pub(super) mss: u32,
    /// Segments with data: as planned, and once it is closed as they are.
    pub(super) sources: u8,
    pub(super) sent: u8,
    /// Repairs to be sent in any case.
    pub(super) repairs: u8,
    /// Repairs begun.
    pub(super) repaired: u8,
    /// No more data belong to it.
    pub(super) closed: bool,
    pub(super) check: u32,
    /// The data of the repairs that are still to be sent in any case.
    pub(super) ready: VecDeque<Vec<u8>>,
    /// Its data that were acknowledged and left the buffer.
    pub(super) kept: Vec<u8>,
    /// It is not repaired: its data are gone, or its segments are too large for the path.
    pub(super) given_up: bool,
}

impl Block {
    /// Bytes of its longest segment.
    pub(super) fn symbol_len(&self) -> u32 {
        u64::from(self.mss).min(self.end - self.start) as u32
    }

    /// Whether there are numbers for more repairs.
    pub(super) fn can_repair(&self) -> bool {
        !self.given_up && usize::from(self.sources) + usize::from(self.repaired) < reed_solomon::MAX_FRAMES
    }

    /// There will be no more repairs of it.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
        (self.ready, self.kept) = (VecDeque::new(), Vec::new());
    }

    /// Its next repair, with these data.
    pub(super) fn symbol(&mut self, data: Vec<u8>) -> Symbol {
        let number = self.sources + self.repaired;
        self.repaired += 1;
        Symbol {
            place: Place {
                block: self.number,
                number,
                sources: self.sources,
                repairs: self.repairs,
                again: false,
            },
            start: self.start,
            tail: self.tail(),
            check: self.check,
            data,
        }
    }

    /// Bytes of data in its last segment.
    pub(super) fn tail(&self) -> u16 {
        let len = self.end - self.start;
        (len - u64::from(self.sources - 1) * u64::from(self.mss)) as u16
    }

    /// Its data: what was acknowledged, and the rest from the buffer, whose first byte is at `una`.
    pub(super) fn whole(&self, una: u64, buffer: &SendBuffer) -> Vec<u8> {
        let mut whole = Vec::with_capacity((self.end - self.start) as usize);
        whole.extend_from_slice(&self.kept);
        let from = self.start + whole.len() as u64;
        if from < self.end {
            buffer.read((from - una) as usize, (self.end - from) as usize, |piece| {
                whole.extend_from_slice(piece);
            });
        }
        whole
    }

    /// These of its repairs, where `whole` are its data.
    pub(super) fn encode(&self, whole: &[u8], repairs: Range<u16>) -> Vec<Vec<u8>> {
        let known: Vec<u8> = (0..self.sources).collect();
        let wanted: Vec<u8> = repairs.map(|at| (u16::from(self.sources) + at) as u8).collect();
        let mut sums = vec![vec![0; self.symbol_len() as usize]; wanted.len()];
        reed_solomon::Plan::decode(&known, &wanted).add(whole.chunks(self.mss as usize), &mut sums);
        sums
    }
}
