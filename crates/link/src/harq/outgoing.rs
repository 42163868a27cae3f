//! The block whose fragments are being sent.

use crate::endpoint::{FrameInfo, FrameKind};
use crate::marks::Marks;

use super::code;
use super::config::Config;

/// A block on its way, cut and coded.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Its number, among those that are sent once or among the others.
    pub(super) number: u64,
    /// Which transmission it is; `None` if it is sent once.
    pub(super) serial: Option<u64>,
    /// Whether nothing of its packet is left to be cut.
    pub(super) ends_packet: bool,
    /// What its data is: new or sent again.
    kind: FrameKind,
    marks: Marks,
    block: Vec<u8>,
    /// The length of a fragment.
    size: usize,
    /// The first fragment's place in the code.
    start: usize,
    /// One behind the last's.
    end: usize,
    redundancy: Vec<Vec<u8>>,
    next: usize,
}

/// What a transmission of a block is.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) number: u64,
    pub(super) serial: Option<u64>,
    pub(super) kind: FrameKind,
    pub(super) marks: Marks,
    pub(super) first: bool,
    pub(super) last: bool,
    /// Transmissions before this one.
    pub(super) before: u8,
}

impl Outgoing {
    /// Codes `block`, of which the first byte is free.
    pub(super) fn new(config: &Config, about: &About, mut block: Vec<u8>) -> Self {
        let (data, all) = (config.data.get() as usize, config.fragments.get() as usize);
        let size = code::complete(&mut block, about.first, about.last, data);
        let start = if config.combine { all * usize::from(about.before) } else { 0 };
        let end = start + all;
        let redundancy = code::redundancy(&block, data, start, end);
        let &About { number, serial, kind, marks, last: ends_packet, .. } = about;
        Self { number, serial, ends_packet, kind, marks, block, size, start, end, redundancy, next: start }
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory(&self) -> usize {
        self.block.capacity() + self.redundancy.len() * (self.size + NOTES)
    }

    /// The next fragment's place in the code.
    pub(super) const fn index(&self) -> u8 {
        self.next as u8
    }

    /// Whether no fragment has left.
    pub(super) const fn is_at_start(&self) -> bool {
        self.next == self.start
    }

    /// Whether all fragments have left.
    pub(super) const fn is_done(&self) -> bool {
        self.next == self.end
    }

    /// Appends the next fragment; there is one.
    pub(super) fn poll(&mut self, out: &mut Vec<u8>) -> FrameInfo {
        let data = self.block.len() / self.size;
        let kind = if self.next < data {
            let from = self.next * self.size;
            out.extend_from_slice(&self.block[from..from + self.size]);
            self.kind
        } else {
            out.extend_from_slice(&self.redundancy[self.next - self.start.max(data)]);
            FrameKind::Repair
        };
        self.next += 1;
        FrameInfo { kind, late_len: 0, marks: self.marks }
    }
}

/// Bytes of notes about a fragment.
const NOTES: usize = 24;
