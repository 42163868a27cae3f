//! The receiver's half: what came of each block, what can be computed from it, and which duplicate acknowledgements wait for that
//! (Figure 1b of the paper, as the project's notes restore it).
//!
//! Deviations: data are handed over in order as they come, and those behind a gap wait where TCP keeps them anyway; only their
//! acknowledgements are withheld. A block is whole as soon as as many of its segments have come as it has sources. Repairs
//! are kept when acknowledgements go out, for later ones may complete the block.

mod block;

use std::collections::VecDeque;

use base::wire::tcp::coding::{Place, Report};
use base::{Duration, Instant};

use super::{Key, RepairStatistics};
use block::{Block, Coded, OVERHEAD};

/// Data that were computed: their offset and they.
pub(crate) type Recovered = (u64, Vec<u8>);

/// What the receiver knows of the blocks that come.
#[derive(Debug)]
pub(crate) struct Incoming {
    key: Key,
    /// In the order in which they began; the last one is the current one.
    blocks: VecDeque<Block>,
    /// The block that a segment was kept of since it was last tried.
    changed: Option<u8>,
    /// Bytes of all symbols, and the most of them.
    memory: usize,
    most_memory: usize,
    /// Duplicate acknowledgements withheld.
    withheld: u16,
    /// When they are let go.
    deadline: Instant,
    last_at: Option<Instant>,
    /// Between packets of a block, smoothed.
    spacing: Duration,
    ended: Option<[(u8, u8); 2]>,
    pub(crate) statistics: RepairStatistics,
}

impl Incoming {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            blocks: VecDeque::new(),
            changed: None,
            memory: 0,
            most_memory: MOST_MEMORY,
            withheld: 0,
            deadline: Instant::MAX,
            last_at: None,
            spacing: Duration::ZERO,
            ended: None,
            statistics: RepairStatistics::default(),
        }
    }

    /// When [`Incoming::handle_timeout`] wants to be called.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether duplicate acknowledgements are withheld.
    pub(crate) const fn withholds(&self) -> bool {
        self.withheld > 0
    }

    /// Bytes of data that it keeps.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// A segment with data came for `start`. Duplicate acknowledgements that are to go out now.
    pub(crate) fn on_source(&mut self, now: Instant, place: Place, start: u64, data: &[u8]) -> u16 {
        if place.number >= place.sources {
            return 0;
        }
        let Some((at, freed)) = self.note(now, place) else { return 0 };
        let block = &mut self.blocks[at];
        if block.coded.is_some_and(|coded| place.number >= coded.sources) {
            return freed;
        }
        if place.number == 0 {
            block.start.get_or_insert(start);
        } else if place.number + 1 < place.sources {
            block.start.get_or_insert(start.saturating_sub(u64::from(place.number) * data.len() as u64));
        }
        self.keep(at, place.number, data);
        freed
    }

    /// A repair came, of a block whose first byte is at `start`. Duplicate acknowledgements that are to go out now.
    pub(crate) fn on_repair(
        &mut self,
        now: Instant,
        place: Place,
        (start, tail, check): (u64, u16, u32),
        data: &[u8],
    ) -> u16 {
        let coded = Coded { start, sources: place.sources, symbol_len: data.len(), tail, check };
        let sound = place.number >= place.sources && (1..=data.len()).contains(&usize::from(tail));
        if !sound {
            return 0;
        }
        let Some((at, freed)) = self.note(now, place) else { return 0 };
        let block = &mut self.blocks[at];
        // The first word counts: what contradicts it is forged, or that was.
        match block.coded {
            Some(known) if known != coded => return freed,
            Some(_) => {}
            None => {
                (block.coded, block.start, block.sources) = (Some(coded), Some(start), coded.sources);
                // There are no repairs yet: what has such a number came as data.
                self.memory -= block.drop_repairs();
            }
        }
        self.keep(at, place.number, data);
        freed
    }

    /// A segment with data came that had been computed before: it was not lost.
    pub(crate) fn on_late_source(&mut self, place: Place) {
        let block = self.blocks.iter_mut().rev().find(|block| block.number == place.block);
        if let Some(block) = block.filter(|_| place.number < place.sources) {
            block.note(place);
        }
    }

    /// Counts a segment of a block; where that is, and duplicate acknowledgements that nothing holds any more.
    fn note(&mut self, now: Instant, place: Place) -> Option<(usize, u16)> {
        if let Some(last) = self.last_at.replace(now) {
            let gap = now.saturating_since(last).min(MOST_SPACING);
            self.spacing = self.spacing - self.spacing / 8 + gap / 8;
        }
        let mut freed = 0;
        let at = match self.blocks.iter().rposition(|block| block.number == place.block) {
            Some(at) => at,
            None if self.is_old(place.block) => return None,
            None => {
                freed = self.release();
                self.end_all();
                self.begin(place);
                self.blocks.len() - 1
            }
        };
        self.blocks[at].note(place);
        if self.withheld > 0 {
            self.wait(now);
        }
        Some((at, freed))
    }

    /// Whether a block with this number has come and gone: numbers wrap.
    fn is_old(&self, number: u8) -> bool {
        self.blocks.back().is_some_and(|last| number.wrapping_sub(last.number) >= 128)
    }

    fn begin(&mut self, place: Place) {
        if self.blocks.len() == MOST_BLOCKS {
            self.forget_first();
        }
        self.blocks.push_back(Block {
            number: place.block,
            sources: place.sources,
            repairs: place.repairs,
            came: [0; 4],
            arrived: 0,
            reached: 0,
            start: None,
            coded: None,
            symbols: Vec::new(),
            whole: false,
            ended: false,
            late: false,
        });
    }

    fn forget_first(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.memory -= block.memory();
        }
    }

    /// Keeps no more than so many bytes from here on.
    pub(crate) const fn set_allowance(&mut self, bytes: usize) {
        let most = self.memory.saturating_add(bytes);
        self.most_memory = if most < MOST_MEMORY { most } else { MOST_MEMORY };
    }

    /// The connection is over.
    pub(crate) fn rest(&mut self) {
        (self.blocks, self.memory, self.changed) = (VecDeque::new(), 0, None);
        self.release();
    }

    /// Keeps a segment for as long as its block is not whole.
    fn keep(&mut self, mut at: usize, number: u8, data: &[u8]) {
        let block = &mut self.blocks[at];
        if block.whole || block.symbols.iter().any(|(kept, _)| *kept == number) {
            return;
        }
        let needed = data.len() + OVERHEAD;
        while self.memory + needed > self.most_memory && at > 0 {
            self.forget_first();
            at -= 1;
        }
        if self.memory + needed <= self.most_memory {
            let block = &mut self.blocks[at];
            block.symbols.push((number, data.to_vec()));
            self.memory += needed;
            self.changed = Some(block.number);
        }
    }

    /// Data that can be computed since the latest segment came.
    pub(crate) fn decode(&mut self) -> Vec<Recovered> {
        let Some(number) = self.changed.take() else { return Vec::new() };
        let changed = self.blocks.iter_mut().rev().find(|block| block.number == number);
        let Some(block) = changed.filter(|block| !block.whole && block.is_decodable()) else {
            return Vec::new();
        };
        if let Some(recovered) = block.decode(self.key) {
            self.memory -= block.memory();
            (block.whole, block.symbols) = (true, Vec::new());
            recovered
        } else {
            self.memory -= block.drop_repairs();
            block.coded = None;
            self.statistics.failed_checks += 1;
            Vec::new()
        }
    }

    /// Whether the acknowledgement of a segment at `place`, behind a gap whose first byte is `next`, may wait: the gap is in the
    /// block that is coming, which may still be repaired.
    pub(crate) fn may_withhold(&self, place: Place, next: u64) -> bool {
        self.blocks.back().is_some_and(|block| {
            block.number == place.block
                && !place.again
                && block.start.is_some_and(|start| start <= next)
                && block.may_be_repaired()
        })
    }

    /// Withholds a duplicate acknowledgement.
    pub(crate) fn withhold(&mut self, now: Instant) {
        self.withheld = self.withheld.saturating_add(1);
        self.wait(now);
    }

    /// As long as what is due of the block takes, at the pace so far.
    fn wait(&mut self, now: Instant) {
        let left = self.blocks.back().map_or(0, Block::left);
        let wait = self.spacing.saturating_mul(u64::from(left) + 1).clamp(LEAST_WAIT, MOST_WAIT);
        self.deadline = now.saturating_add(wait);
    }

    /// Duplicate acknowledgements that have waited in vain: the block cannot be repaired with what it was to bring.
    pub(crate) fn release_if_hopeless(&mut self) -> u16 {
        let hopeless = self.blocks.back().is_some_and(|block| !block.may_be_repaired() || block.left() == 0);
        if self.withheld > 0 && hopeless { self.release() } else { 0 }
    }

    /// The gap was filled: the acknowledgements are not needed.
    pub(crate) fn forget_withheld(&mut self) {
        self.statistics.acks_spared += u64::from(self.release());
    }

    const fn release(&mut self) -> u16 {
        self.deadline = Instant::MAX;
        core::mem::replace(&mut self.withheld, 0)
    }

    /// The time for the rest of the block is over: the acknowledgements that are to go out.
    pub(crate) fn handle_timeout(&mut self) -> u16 {
        // It is not over: the rest may come when these acknowledgements have opened the window.
        if let Some(current) = self.blocks.back_mut() {
            current.late = true;
        }
        self.release()
    }

    /// Nothing more is expected of the blocks that are here.
    fn end_all(&mut self) {
        for block in self.blocks.iter_mut().filter(|block| !block.ended) {
            block.end(&mut self.ended);
        }
    }

    /// What to tell the sender, once there is something: bytes up to `next` have come in order.
    pub(crate) fn report(&mut self, next: u64) -> Option<Report> {
        for block in &mut self.blocks {
            let due = u16::from(block.sources) + u16::from(block.repairs);
            if !block.ended && block.coded.is_some() && u16::from(block.arrived) >= due {
                block.end(&mut self.ended);
            }
        }
        // Of a block without repairs, the next one's start tells where it ends.
        let follower = |at: usize| self.blocks.iter().skip(at + 1).find_map(|block| block.start);
        let incomplete = |&(at, block): &(usize, &Block)| {
            let end = block.coded.map(Coded::end).or_else(|| follower(at));
            !block.whole && end.is_none_or(|end| end > next) && block.known() < u16::from(block.sources)
        };
        let missing = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.ended || block.late || block.coded.is_some())
            .find(incomplete)
            .map(|(_, block)| block);
        let missing = missing.map_or((0, 0), |block| {
            (block.number, u16::from(block.sources).saturating_sub(block.known()) as u8)
        });
        let ended = self.ended?;
        Some(Report { ended, missing })
    }
}

/// Blocks of which something is remembered.
const MOST_BLOCKS: usize = 16;
/// Bytes of segments that are kept to compute others from.
const MOST_MEMORY: usize = 1 << 20;
/// The paper lacks this timer; far below the least retransmission time-out.
const LEAST_WAIT: Duration = Duration::from_millis(10);
/// However slowly packets come: no later than half the least retransmission time-out of the RFCs.
const MOST_WAIT: Duration = Duration::from_millis(500);
/// A longer gap between packets is a pause.
const MOST_SPACING: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
