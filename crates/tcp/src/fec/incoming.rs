//! The receiver's half: what came of each block, what can be computed from it, and which duplicate acknowledgements wait for that
//! (Figure 1b of the paper, as the project's notes restore it).
//!
//! Deviations: data are handed over in order as they come, and those behind a gap wait where TCP keeps them anyway; only their
//! acknowledgements are withheld. A block is whole as soon as as many of its segments have come as it has sources. Repairs
//! are kept when acknowledgements go out, for later ones may complete the block.

use std::collections::VecDeque;

use base::code::reed_solomon::Plan;
use base::wire::tcp::coding::{Place, Report};
use base::{Duration, Instant};

use super::Key;

/// Data that were computed: their offset and they.
pub(crate) type Recovered = (u64, Vec<u8>);

/// What is known of one block.
#[derive(Debug)]
struct Block {
    number: u8,
    /// Segments with data; as planned until a repair says how many there are.
    sources: u8,
    repairs: u8,
    /// Segments that came, by number, and how many of them were not sent again.
    came: [u64; 4],
    arrived: u8,
    /// Numbers up to here have left the sender.
    reached: u16,
    /// Offset of its first byte.
    start: Option<u64>,
    /// Of the repairs: bytes of each, of the last source, and the check.
    coded: Option<Coded>,
    /// What came of it, until it is whole.
    symbols: Vec<(u8, Vec<u8>)>,
    whole: bool,
    /// It was counted for the report.
    ended: bool,
    /// Its rest did not come when it was due.
    late: bool,
}

/// What repairs say of their block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Coded {
    symbol_len: usize,
    tail: u16,
    check: u32,
}

/// What the receiver knows of the blocks that come.
#[derive(Debug)]
pub(crate) struct Incoming {
    key: Key,
    /// In the order in which they began; the last one is the current one.
    blocks: VecDeque<Block>,
    /// Bytes of all symbols.
    memory: usize,
    /// Duplicate acknowledgements withheld.
    withheld: u16,
    /// When they are let go.
    deadline: Instant,
    last_at: Option<Instant>,
    /// Between packets of a block, smoothed.
    spacing: Duration,
    ended: Option<[(u8, u8); 2]>,
}

impl Incoming {
    pub(super) const fn new(key: Key) -> Self {
        Self {
            key,
            blocks: VecDeque::new(),
            memory: 0,
            withheld: 0,
            deadline: Instant::MAX,
            last_at: None,
            spacing: Duration::ZERO,
            ended: None,
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
        let coded = Coded { symbol_len: data.len(), tail, check };
        let sound = place.number >= place.sources && (1..=data.len()).contains(&usize::from(tail));
        if !sound {
            return 0;
        }
        let Some((at, freed)) = self.note(now, place) else { return 0 };
        let block = &mut self.blocks[at];
        // The first word counts: what contradicts it is forged, or that was.
        if *block.coded.get_or_insert(coded) != coded {
            return freed;
        }
        block.start = Some(start);
        block.sources = place.sources;
        self.keep(at, place.number, data);
        freed
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
        let block = &mut self.blocks[at];
        let bit = (usize::from(place.number) / 64, 1_u64 << (place.number % 64));
        let first = block.came[bit.0] & bit.1 == 0;
        block.came[bit.0] |= bit.1;
        block.arrived += u8::from(first && !place.again && !block.ended);
        block.reached = block.reached.max(u16::from(place.number) + 1);
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

    /// Keeps a segment for as long as its block is not whole.
    fn keep(&mut self, mut at: usize, number: u8, data: &[u8]) {
        let block = &mut self.blocks[at];
        if block.whole || block.symbols.iter().any(|(kept, _)| *kept == number) {
            return;
        }
        while self.memory + data.len() > MOST_MEMORY && at > 0 {
            self.forget_first();
            at -= 1;
        }
        if self.memory + data.len() <= MOST_MEMORY {
            self.blocks[at].symbols.push((number, data.to_vec()));
            self.memory += data.len();
        }
    }

    /// Data that can be computed now; whether a check failed.
    pub(crate) fn decode(&mut self) -> (Vec<Recovered>, bool) {
        let (mut recovered, mut failed) = (Vec::new(), false);
        for block in &mut self.blocks {
            if block.whole || !block.is_decodable() {
                continue;
            }
            let before = block.memory();
            match block.decode(self.key) {
                Some(mut data) => {
                    recovered.append(&mut data);
                    block.whole = true;
                    block.symbols.clear();
                }
                None => {
                    failed = true;
                    block.drop_repairs();
                }
            }
            self.memory -= before - block.memory();
        }
        (recovered, failed)
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
        let wait = self.spacing.saturating_mul(u64::from(left) + 1).max(LEAST_WAIT);
        self.deadline = now.saturating_add(wait);
    }

    /// Duplicate acknowledgements that have waited in vain: the block cannot be repaired with what it was to bring.
    pub(crate) fn release_if_hopeless(&mut self) -> u16 {
        let hopeless = self.blocks.back().is_some_and(|block| !block.may_be_repaired() || block.left() == 0);
        if self.withheld > 0 && hopeless { self.release() } else { 0 }
    }

    /// The gap was filled: the acknowledgements are not needed. How many.
    pub(crate) const fn forget_withheld(&mut self) -> u16 {
        self.release()
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
            block.ended = true;
            let now = (block.number, block.arrived);
            self.ended = Some([now, self.ended.map_or(now, |before| before[0])]);
        }
    }

    /// What to tell the sender, once there is something: bytes up to `next` have come in order.
    pub(crate) fn report(&mut self, next: u64) -> Option<Report> {
        for block in &mut self.blocks {
            let (k, due) = (u16::from(block.sources), u16::from(block.sources) + u16::from(block.repairs));
            if !block.ended && block.coded.is_some() && u16::from(block.arrived) >= due.max(k) {
                block.ended = true;
                let now = (block.number, block.arrived);
                self.ended = Some([now, self.ended.map_or(now, |before| before[0])]);
            }
        }
        let incomplete = |block: &&Block| {
            let ends_below = block.start.zip(block.coded).is_some_and(|(start, coded)| {
                let sources = u64::from(block.sources);
                start + (sources - 1) * coded.symbol_len as u64 + u64::from(coded.tail) <= next
            });
            !block.whole && !ends_below && block.known() < u16::from(block.sources)
        };
        let missing = self
            .blocks
            .iter()
            .filter(|block| block.ended || block.late || block.coded.is_some())
            .find(incomplete);
        let missing = missing.map_or((0, 0), |block| {
            (block.number, u16::from(block.sources).saturating_sub(block.known()) as u8)
        });
        let ended = self.ended?;
        Some(Report { ended, missing })
    }
}

impl Block {
    /// Different segments that are at hand.
    fn known(&self) -> u16 {
        self.symbols.len() as u16
    }

    fn memory(&self) -> usize {
        self.symbols.iter().map(|(_, data)| data.len()).sum()
    }

    /// Packets that are still to come of what was planned.
    fn left(&self) -> u16 {
        (u16::from(self.sources) + u16::from(self.repairs)).saturating_sub(self.reached)
    }

    /// Whether what it lacks so far is no more than its repairs can make good.
    fn may_be_repaired(&self) -> bool {
        let came: u32 = self.came.iter().map(|bits| bits.count_ones()).sum();
        self.repairs > 0 && u32::from(self.reached) <= came + u32::from(self.repairs)
    }

    fn is_decodable(&self) -> bool {
        let sources = usize::from(self.sources);
        let whole = self.came_of_sources() == sources;
        whole || (self.coded.is_some() && self.start.is_some() && self.symbols.len() >= sources)
    }

    /// Sources at hand.
    fn came_of_sources(&self) -> usize {
        self.symbols.iter().filter(|(number, _)| *number < self.sources).count()
    }

    fn drop_repairs(&mut self) {
        let sources = self.sources;
        self.symbols.retain(|(number, _)| *number < sources);
        self.coded = None;
    }

    /// The sources that are missing; none if the check fails.
    fn decode(&mut self, key: Key) -> Option<Vec<Recovered>> {
        let sources = self.sources;
        if self.came_of_sources() == usize::from(sources) {
            return Some(Vec::new());
        }
        let (coded, start) = (self.coded?, self.start?);
        self.symbols.sort_unstable_by_key(|(number, _)| *number);
        self.symbols
            .retain(|(number, data)| *number >= sources || data.len() == coded.len_of(*number, sources));
        if self.symbols.len() < usize::from(sources) {
            return None;
        }
        let known = &self.symbols[..usize::from(sources)];
        let numbers: Vec<u8> = known.iter().map(|(number, _)| *number).collect();
        let missing: Vec<u8> = (0..sources).filter(|number| !numbers.contains(number)).collect();
        let mut sums = vec![vec![0; coded.symbol_len]; missing.len()];
        Plan::decode(&numbers, &missing).add(known.iter().map(|(_, data)| data.as_slice()), &mut sums);
        let mut whole = Vec::with_capacity(usize::from(sources) * coded.symbol_len);
        let mut found = missing.iter().zip(&sums);
        for number in 0..sources {
            let data = match known.iter().find(|(at, _)| *at == number) {
                Some((_, data)) => data,
                None => found.next()?.1,
            };
            whole.extend_from_slice(&data[..coded.len_of(number, sources)]);
        }
        let offset = |number: u8| usize::from(number) * coded.symbol_len;
        let piece = |number: &u8| {
            let at = offset(*number);
            (start + at as u64, whole[at..at + coded.len_of(*number, sources)].to_vec())
        };
        (key.check(&whole) == coded.check).then(|| missing.iter().map(piece).collect())
    }
}

impl Coded {
    /// Bytes of data of a source.
    const fn len_of(&self, number: u8, sources: u8) -> usize {
        if number + 1 == sources { self.tail as usize } else { self.symbol_len }
    }
}

/// Blocks of which something is remembered.
const MOST_BLOCKS: usize = 16;
/// Bytes of segments that are kept to compute others from.
const MOST_MEMORY: usize = 1 << 20;
/// The paper lacks this timer; far below the least retransmission time-out.
const LEAST_WAIT: Duration = Duration::from_millis(10);
/// A longer gap between packets is a pause.
const MOST_SPACING: Duration = Duration::from_millis(200);
