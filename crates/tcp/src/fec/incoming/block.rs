//! One block as its receiver knows it, and what can be computed of it.

use base::code::reed_solomon::Plan;
use base::wire::tcp::coding::Place;

use super::super::Key;
use super::Recovered;

/// What is known of one block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: u8,
    /// Segments with data; as planned until a repair says how many there are.
    pub(super) sources: u8,
    pub(super) repairs: u8,
    /// Segments that came, by number, and how many of them were not sent again.
    pub(super) came: [u64; 4],
    pub(super) arrived: u8,
    /// Numbers up to here have left the sender.
    pub(super) reached: u16,
    /// Offset of its first byte.
    pub(super) start: Option<u64>,
    /// What the first repair said, unless that was found wrong.
    pub(super) coded: Option<Coded>,
    /// What came of it, until it is whole.
    pub(super) symbols: Vec<(u8, Vec<u8>)>,
    pub(super) whole: bool,
    /// It was counted for the report.
    pub(super) ended: bool,
    /// Its rest did not come when it was due.
    pub(super) late: bool,
}

/// What repairs say of their block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coded {
    pub(super) start: u64,
    pub(super) sources: u8,
    pub(super) symbol_len: usize,
    pub(super) tail: u16,
    pub(super) check: u32,
}

impl Block {
    /// Nothing more is expected of it: it comes first in what is reported.
    pub(super) fn end(&mut self, reported: &mut Option<[(u8, u8); 2]>) {
        self.ended = true;
        let now = (self.number, self.arrived);
        *reported = Some([now, reported.map_or(now, |before| before[0])]);
    }

    /// A segment of it came.
    pub(super) fn note(&mut self, place: Place) {
        let bit = (usize::from(place.number) / 64, 1_u64 << (place.number % 64));
        let first = self.came[bit.0] & bit.1 == 0;
        self.came[bit.0] |= bit.1;
        // A forger may use all 256 numbers.
        self.arrived = self.arrived.saturating_add(u8::from(first && !place.again && !self.ended));
        self.reached = self.reached.max(u16::from(place.number) + 1);
    }

    /// Different segments that are at hand.
    pub(super) fn known(&self) -> u16 {
        self.symbols.len() as u16
    }

    pub(super) fn memory(&self) -> usize {
        self.symbols.iter().map(|(_, data)| data.len() + OVERHEAD).sum()
    }

    /// Packets that are still to come of what was planned.
    pub(super) fn left(&self) -> u16 {
        (u16::from(self.sources) + u16::from(self.repairs)).saturating_sub(self.reached)
    }

    /// Whether what it lacks so far is no more than its repairs can make good.
    pub(super) fn may_be_repaired(&self) -> bool {
        let came: u32 = self.came.iter().map(|bits| bits.count_ones()).sum();
        self.repairs > 0 && u32::from(self.reached) <= came + u32::from(self.repairs)
    }

    pub(super) fn is_decodable(&self) -> bool {
        let sources = usize::from(self.sources);
        let whole = self.came_of_sources() == sources;
        whole || (self.coded.is_some() && self.symbols.len() >= sources)
    }

    /// Sources at hand.
    pub(super) fn came_of_sources(&self) -> usize {
        self.symbols.iter().filter(|(number, _)| *number < self.sources).count()
    }

    /// How many bytes that freed.
    pub(super) fn drop_repairs(&mut self) -> usize {
        let before = self.memory();
        let sources = self.sources;
        self.symbols.retain(|(number, _)| *number < sources);
        before - self.memory()
    }

    /// The sources that are missing; none if the check fails.
    pub(super) fn decode(&mut self, key: Key) -> Option<Vec<Recovered>> {
        let sources = self.sources;
        if self.came_of_sources() == usize::from(sources) {
            return Some(Vec::new());
        }
        let coded = self.coded?;
        self.symbols.sort_unstable_by_key(|(number, _)| *number);
        // They stay, even so: it may be the repairs that are wrong.
        let fits =
            |(number, data): &&(u8, Vec<u8>)| *number >= sources || data.len() == coded.len_of(*number);
        let known: Vec<_> = self.symbols.iter().filter(fits).take(sources.into()).collect();
        if known.len() < usize::from(sources) {
            return None;
        }
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
            whole.extend_from_slice(&data[..coded.len_of(number)]);
        }
        let offset = |number: u8| usize::from(number) * coded.symbol_len;
        let piece = |number: &u8| {
            let at = offset(*number);
            (coded.start + at as u64, whole[at..at + coded.len_of(*number)].to_vec())
        };
        let is_right = key.check(coded.start, sources, &whole) == coded.check;
        is_right.then(|| missing.iter().map(piece).collect())
    }
}

impl Coded {
    /// Bytes of data of a source.
    pub(super) const fn len_of(&self, number: u8) -> usize {
        if number + 1 == self.sources { self.tail as usize } else { self.symbol_len }
    }

    /// The offset behind its block.
    pub(super) fn end(self) -> u64 {
        let whole = u64::from(self.sources - 1) * self.symbol_len as u64;
        self.start.saturating_add(whole + u64::from(self.tail))
    }
}

/// Bytes that a segment which is kept takes besides its data.
pub(super) const OVERHEAD: usize = size_of::<(u8, Vec<u8>)>();
