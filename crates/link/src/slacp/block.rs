//! Blocks: frames that are sent again, and the redundancy computed from them.
//!
//! What the code protects of a frame is its *symbol*: its number in the window, what else puts it in its place, its
//! length and its payload. A symbol that was recovered says all that the frame would have said.
//!
//! ```text
//! +----------+---------------------+------+--------+---------+
//! | sequence | flags: first 2, last 1 | back | length | payload |
//! +----------+---------------------+------+--------+---------+
//!   3          1                     3      2        n bytes   big-endian
//! ```

use std::collections::VecDeque;

use base::Instant;
use base::code::reed_solomon::{MAX_FRAMES, Plan};

use crate::arq::frame::{Part, Place};

/// Bytes of a symbol before its payload.
pub(super) const SYMBOL_FIELDS: usize = 9;

/// Appends a frame's symbol.
fn push_symbol(part: &Part<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&part.sequence.to_be_bytes()[1..]);
    out.push(u8::from(part.first) << 1 | u8::from(part.last));
    out.extend_from_slice(&part.back.to_be_bytes()[1..]);
    out.extend_from_slice(&(part.payload.len() as u16).to_be_bytes());
    out.extend_from_slice(part.payload);
}

/// Reads a symbol that zeros may follow; `None` for one that no sender makes.
pub(super) fn read_symbol(symbol: &[u8]) -> Option<Part<'_>> {
    let (&[a, b, c, flags, d, e, f, high, low], rest) = symbol.split_first_chunk::<SYMBOL_FIELDS>()?;
    let (payload, padding) = rest.split_at_checked(u16::from_be_bytes([high, low]).into())?;
    if flags > 3 || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    Some(Part {
        sequence: u32::from_be_bytes([0, a, b, c]),
        first: flags & 2 != 0,
        last: flags & 1 != 0,
        back: u32::from_be_bytes([0, d, e, f]),
        payload,
    })
}

/// The sender's side: the block that is gathering frames.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    number: u16,
    symbols: Vec<Vec<u8>>,
    /// Bytes of memory that they take.
    bytes: usize,
    /// The frames' numbers in the window.
    sequences: Vec<u64>,
    /// When the last of them joined.
    latest: Option<Instant>,
}

/// A block whose frames are all on their way; its redundancy is not.
#[derive(Debug)]
pub(super) struct Closed {
    number: u16,
    /// How many frames redundancy protects.
    sources: usize,
    pub(super) sequences: Vec<u64>,
    repairs: Vec<Vec<u8>>,
    /// The next frame of redundancy.
    next: usize,
}

impl Gathering {
    /// Adds a frame that is about to be sent again; its place.
    pub(super) fn push(&mut self, now: Instant, sequence: u64, part: &Part<'_>) -> Place {
        let mut symbol = Vec::with_capacity(SYMBOL_FIELDS + part.payload.len());
        push_symbol(part, &mut symbol);
        self.latest = Some(now);
        self.bytes += symbol.capacity() + NOTES;
        self.symbols.push(symbol);
        self.sequences.push(sequence);
        Place { block: self.number, index: (self.symbols.len() - 1) as u8 }
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Bytes of memory that the block takes.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }

    /// When the last of the block's frames joined, if it has any.
    pub(super) const fn latest(&self) -> Option<Instant> {
        self.latest
    }

    /// Completes the block, for which `count` frames of redundancy will be sent, and begins the next.
    pub(super) fn close(&mut self, count: usize) -> Closed {
        let number = self.number;
        let next = Self { number: number.wrapping_add(1), ..Self::default() };
        let Self { symbols, sequences, .. } = core::mem::replace(self, next);
        let count = count.min(MAX_FRAMES.saturating_sub(symbols.len()));
        let mut repairs = vec![vec![0; symbols.iter().map(Vec::len).max().unwrap_or(0)]; count];
        Plan::encode(symbols.len(), count).add(symbols.iter().map(Vec::as_slice), &mut repairs);
        Closed { number, sources: symbols.len(), sequences, repairs, next: 0 }
    }

    /// Forgets the block's frames. The next block has another number.
    pub(super) fn reset(&mut self) {
        self.close(0);
    }
}

impl Closed {
    /// How many frames redundancy protects.
    pub(super) const fn sources(&self) -> usize {
        self.sources
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        let symbol = self.repairs.first().map_or(0, Vec::capacity) + NOTES;
        self.repairs.len() * symbol + self.sequences.capacity() * size_of::<u64>()
    }

    /// Whether all redundancy has been sent.
    pub(super) const fn is_done(&self) -> bool {
        self.next == self.repairs.len()
    }

    /// Appends the next frame of redundancy; its place.
    pub(super) fn poll(&mut self, out: &mut Vec<u8>) -> Option<Place> {
        out.extend_from_slice(self.repairs.get(self.next)?);
        let index = self.sources + self.next;
        self.next += 1;
        Some(Place { block: self.number, index: index as u8 })
    }
}

/// The receiver's side: what is known of the latest blocks.
///
/// **Bounds**, whatever the peer sends: blocks take [`MAX_BYTES`] of memory; of more the oldest go, and what they would have recovered is
/// lost. Solving a block takes as many multiples of each byte that came as it has frames missing, 127 at most; and while it does, as many
/// frames of the longest that came, 8.4 MB.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// In the order in which they were first heard of.
    blocks: VecDeque<Block>,
    /// Bytes of memory that they take.
    bytes: usize,
    /// How many they may take, if that is less than [`MAX_BYTES`].
    limit: Option<usize>,
}

#[derive(Debug, Default)]
struct Block {
    number: u16,
    /// How many frames it protects, which its redundancy says.
    sources: Option<u8>,
    /// The symbols that have come, those of redundancy among them, by their numbers.
    known: Vec<(u8, Vec<u8>)>,
    /// Bytes of memory that they take.
    bytes: usize,
    /// All its frames are known.
    is_complete: bool,
}

/// Blocks that the receiver keeps. Ours: a sender has one open and few whose redundancy is on its way.
const KEPT: usize = 16;

/// Bytes of memory that they take at most. Ours: three blocks of as many frames as there may be, of 64 KB, and more than ever wait on a line with
/// shorter ones.
const MAX_BYTES: usize = 16 << 20;

/// Bytes of notes about a symbol.
const NOTES: usize = 32;

impl Blocks {
    /// Takes a frame that was sent again; symbols that this makes known go to `recovered`.
    pub(super) fn handle_source(&mut self, place: Place, part: &Part<'_>, recovered: &mut Vec<Vec<u8>>) {
        let mut symbol = Vec::with_capacity(SYMBOL_FIELDS + part.payload.len());
        push_symbol(part, &mut symbol);
        self.add(place, symbol, recovered);
    }

    /// Takes a frame of redundancy for `sources` frames; false if there is none like it.
    pub(super) fn handle_repair(
        &mut self,
        place: Place,
        sources: u32,
        symbol: &[u8],
        recovered: &mut Vec<Vec<u8>>,
    ) -> bool {
        let Ok(sources) = u8::try_from(sources) else { return false };
        if sources == 0 || place.index < sources || symbol.len() < SYMBOL_FIELDS {
            return false;
        }
        let at = self.place_of(place.block);
        let block = &mut self.blocks[at];
        if block.sources.is_some_and(|told| told != sources) {
            return false;
        }
        block.sources = Some(sources);
        self.add(place, symbol.to_vec(), recovered);
        true
    }

    fn add(&mut self, place: Place, symbol: Vec<u8>, recovered: &mut Vec<Vec<u8>>) {
        let at = self.place_of(place.block);
        let block = &mut self.blocks[at];
        let before = block.bytes;
        block.add(place.index, symbol, recovered);
        self.bytes = self.bytes + block.bytes - before;
        self.shrink();
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }

    /// They may take so many bytes from now on; of more the oldest go.
    pub(super) fn limit_memory(&mut self, bytes: usize) {
        self.limit = Some(bytes.min(MAX_BYTES));
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.bytes > self.limit.unwrap_or(MAX_BYTES) {
            self.drop_oldest();
        }
    }

    /// Where the block stands, which begins now if nothing is known of it.
    fn place_of(&mut self, number: u16) -> usize {
        self.blocks.iter().position(|block| block.number == number).unwrap_or_else(|| {
            if self.blocks.len() == KEPT {
                self.drop_oldest();
            }
            self.blocks.push_back(Block { number, ..Block::default() });
            self.blocks.len() - 1
        })
    }

    fn drop_oldest(&mut self) {
        self.bytes -= self.blocks.pop_front().map_or(0, |block| block.bytes);
    }

    pub(super) fn reset(&mut self) {
        *self = Self { limit: self.limit, ..Self::default() };
    }
}

impl Block {
    fn add(&mut self, index: u8, symbol: Vec<u8>, recovered: &mut Vec<Vec<u8>>) {
        if self.is_complete || self.known.iter().any(|(known, _)| *known == index) {
            return;
        }
        self.bytes += symbol.capacity() + NOTES;
        self.known.push((index, symbol));
        let Some(sources) = self.sources.map(usize::from) else { return };
        if self.known.len() < sources {
            return;
        }
        self.is_complete = true;
        self.bytes = 0;
        self.known.truncate(sources);
        let (numbers, symbols): (Vec<u8>, Vec<Vec<u8>>) =
            core::mem::take(&mut self.known).into_iter().unzip();
        let missing: Vec<u8> = (0..sources as u8).filter(|source| !numbers.contains(source)).collect();
        let longest = symbols.iter().map(Vec::len).max().unwrap_or(0);
        let mut sums = vec![vec![0; longest]; missing.len()];
        Plan::decode(&numbers, &missing).add(symbols.iter().map(Vec::as_slice), &mut sums);
        recovered.append(&mut sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(sequence: u32) -> Part<'static> {
        Part { sequence, first: true, last: true, back: 0, payload: b"payload" }
    }

    /// A block of `sources` frames and its redundancy, as a sender makes it.
    fn block(gathering: &mut Gathering, sources: u32, count: usize) -> (Vec<Place>, Vec<(Place, Vec<u8>)>) {
        let places = (0..sources).map(|n| gathering.push(Instant::ZERO, n.into(), &part(n))).collect();
        let mut closed = gathering.close(count);
        let repairs = core::iter::from_fn(|| {
            let mut symbol = Vec::new();
            closed.poll(&mut symbol).map(|place| (place, symbol))
        });
        (places, repairs.collect())
    }

    /// The numbers of frames that were recovered.
    fn sequences(recovered: &[Vec<u8>]) -> Vec<u32> {
        recovered.iter().map(|symbol| read_symbol(symbol).unwrap().sequence).collect()
    }

    #[test]
    fn redundancy_that_no_sender_makes_is_refused() {
        let mut blocks = Blocks::default();
        let mut recovered = Vec::new();
        let place = |index| Place { block: 7, index };
        for (index, sources, len) in
            [(0, 0, 20), (5, 0, 20), (2, 3, 20), (3, 256, 20), (3, 3, SYMBOL_FIELDS - 1)]
        {
            let is_taken = blocks.handle_repair(place(index), sources, &vec![0; len], &mut recovered);
            assert!(!is_taken, "{index} of {sources}, {len} bytes");
        }
        assert!(blocks.blocks.is_empty(), "nothing is kept of it");
        assert!(blocks.handle_repair(place(3), 3, &[0; SYMBOL_FIELDS], &mut recovered));
        for other in [2, 4] {
            assert!(!blocks.handle_repair(place(5), other, &[0; 20], &mut recovered), "it has three frames");
        }
        assert!(blocks.handle_repair(place(4), 3, &[0; 20], &mut recovered));
        assert!(recovered.is_empty());
    }

    /// As many blocks are kept as there is room for: of one more, the oldest goes.
    #[test]
    fn the_oldest_block_goes_first() {
        for others in [KEPT - 1, KEPT] {
            let (mut gathering, mut blocks, mut recovered) =
                (Gathering::default(), Blocks::default(), Vec::new());
            let (places, repairs) = block(&mut gathering, 2, 1);
            blocks.handle_source(places[1], &part(1), &mut recovered);
            for _ in 0..others {
                let (places, _) = block(&mut gathering, 2, 1);
                blocks.handle_source(places[0], &part(0), &mut recovered);
                assert!(blocks.blocks.len() <= KEPT);
            }
            assert!(blocks.handle_repair(repairs[0].0, 2, &repairs[0].1, &mut recovered));
            let expected: &[u32] = if others < KEPT { &[0] } else { &[] };
            assert_eq!(sequences(&recovered), expected, "{others} others");
        }
    }
}
