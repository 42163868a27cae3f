//! What segments say of an erasure code across them: Loss-Tolerant TCP's options, of the experimental kind with an identifier of
//! their own (RFC 6994; it is not registered). They differ by their length.
//!
//! ```text
//! offer, on a SYN          kind 254, length 4, identifier
//! place, of a segment      kind 254, length 8, identifier, block, number, sources, again | repairs
//! repair                   kind 254, length 18, identifier, block, number, sources, repairs, start (4), tail (2), check (4)
//! report, beside an ACK    kind 254, length 10, identifier, block, arrived, block, arrived, block, missing
//! ```
//!
//! A block has `sources` segments with data, numbered from 0, and behind them *repairs*, numbered on from there; `repairs` of them
//! are sent in any case. A repair segment is one whose data are no part of the stream: its sequence number lies a whole
//! segment before what is acknowledged, so that whoever does not know the option takes it for an old duplicate.

use super::{EXPERIMENT, NOP};
use crate::seq::SeqNum;
use crate::wire::{be16, be32};

/// RFC 6994: the identifier that tells these options from others (not registered).
const IDENTIFIER: u16 = 0x4c54;
/// The bit of a place's last field that says "sent again".
const AGAIN: u8 = 0x80;
/// Sources, and repairs that are sent in any case, of a block at most.
pub const MOST: u8 = 127;
/// Bytes of the longest of these options on a segment with data, padding included: a repair's.
pub const REPAIR_LEN: usize = 20;
/// Bytes of a report and its padding.
pub const REPORT_LEN: usize = 12;

/// Where a segment is in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's number; wraps.
    pub block: u8,
    /// The segment's number in it, repairs behind the sources.
    pub number: u8,
    /// Segments with data in the block, as planned; at most [`MOST`].
    pub sources: u8,
    /// Repairs that follow in any case, as planned; at most [`MOST`].
    pub repairs: u8,
    /// Whether it was sent before; never on a repair.
    pub again: bool,
}

/// What a repair says of its block besides its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Sequence number of the block's first byte.
    pub start: SeqNum,
    /// Bytes of data in the last source.
    pub tail: u16,
    /// A check of all data of the block.
    pub check: u32,
}

/// What a receiver says of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Report {
    /// The two blocks of which nothing more is expected that ended last, the last one first, and how many of their segments,
    /// repairs among them, arrived of those that were not sent again. A lone one is there twice.
    pub ended: [(u8, u8); 2],
    /// The oldest block that is incomplete, and how many segments it lacks; zero if there is none.
    pub missing: (u8, u8),
}

/// These options, as a segment carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Coding {
    /// On a SYN: its sender can do this.
    pub offered: bool,
    /// Where the segment is in its block.
    pub place: Option<Place>,
    /// It is a repair; `place` is there too.
    pub repair: Option<Repair>,
    /// Of blocks that came.
    pub report: Option<Report>,
}

impl Coding {
    /// Takes an experimental option with this body, if it is one of these.
    pub(super) fn read(&mut self, body: &[u8]) {
        if body.len() < 2 || be16(body, 0) != IDENTIFIER {
            return;
        }
        match *body {
            [_, _] => self.offered = true,
            [_, _, block, number, sources, repairs] if is_sound(sources, repairs & !AGAIN) => {
                let again = repairs & AGAIN != 0;
                self.place = Some(Place { block, number, sources, repairs: repairs & !AGAIN, again });
                self.repair = None;
            }
            [_, _, a, of_a, b, of_b, block, missing] => {
                self.report = Some(Report { ended: [(a, of_a), (b, of_b)], missing: (block, missing) });
            }
            [_, _, block, number, sources, repairs, ..] if body.len() == 16 && is_sound(sources, repairs) => {
                self.place = Some(Place { block, number, sources, repairs, again: false });
                self.repair = Some(Repair {
                    start: SeqNum(be32(body, 6)),
                    tail: be16(body, 10),
                    check: be32(body, 12),
                });
            }
            _ => {}
        }
    }

    /// Bytes of what is emitted.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is no collection")]
    pub const fn len(&self) -> usize {
        let offer = if self.offered { 4 } else { 0 };
        let place = match (&self.place, &self.repair) {
            (Some(_), Some(_)) => REPAIR_LEN,
            (Some(_), None) => 8,
            (None, _) => 0,
        };
        offer + place + if self.report.is_some() { REPORT_LEN } else { 0 }
    }

    pub(super) fn emit(&self, mut put: impl FnMut(&[u8])) {
        let [high, low] = IDENTIFIER.to_be_bytes();
        if self.offered {
            put(&[EXPERIMENT, 4, high, low]);
        }
        if let Some(Place { block, number, sources, repairs, again }) = self.place {
            match self.repair {
                None => {
                    let again = if again { AGAIN } else { 0 };
                    put(&[EXPERIMENT, 8, high, low, block, number, sources, repairs | again]);
                }
                Some(repair) => {
                    put(&[NOP, NOP, EXPERIMENT, 18, high, low, block, number, sources, repairs]);
                    put(&repair.start.0.to_be_bytes());
                    put(&repair.tail.to_be_bytes());
                    put(&repair.check.to_be_bytes());
                }
            }
        }
        if let Some(Report { ended: [(a, of_a), (b, of_b)], missing: (block, missing) }) = self.report {
            put(&[NOP, NOP, EXPERIMENT, 10, high, low, a, of_a, b, of_b, block, missing]);
        }
    }
}

const fn is_sound(sources: u8, repairs: u8) -> bool {
    sources >= 1 && sources <= MOST && repairs <= MOST
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    const PLACE: Place = Place { block: 200, number: 3, sources: 10, repairs: 4, again: true };

    #[test]
    fn options_read_as_they_were_written() {
        let repair = Repair { start: SeqNum(0x0102_0304), tail: 980, check: 0xdead_beef };
        let report = Report { ended: [(7, 12), (6, 0)], missing: (7, 3) };
        for (coding, len) in [
            (Coding { offered: true, ..Coding::default() }, 4),
            (Coding { place: Some(PLACE), ..Coding::default() }, 8),
            (Coding { report: Some(report), ..Coding::default() }, 12),
            (Coding { place: Some(PLACE), report: Some(report), ..Coding::default() }, 20),
            (
                Coding {
                    place: Some(Place { again: false, ..PLACE }),
                    repair: Some(repair),
                    report: Some(report),
                    ..Coding::default()
                },
                32,
            ),
        ] {
            let options = Options { coding, ..Options::default() };
            assert_eq!(options.len(), len);
            let mut bytes = vec![0; len];
            options.emit(&mut bytes);
            assert_eq!(Options::parse(&bytes), options, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_block_is_ignored() {
        for body in [[0x4c, 0x54, 1, 0, 0, 4], [0x4c, 0x54, 1, 0, 128, 4], [0x4c, 0x48, 1, 0, 10, 4]] {
            let mut coding = Coding::default();
            coding.read(&body);
            assert_eq!(coding, Coding::default(), "{body:?}");
        }
        let mut coding = Coding::default();
        coding.read(&[0x4c, 0x54, 1, 2, 10, 0x80 | 5, 9]);
        assert_eq!(coding, Coding::default(), "a length of no option");
    }
}
