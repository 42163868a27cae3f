//! What follows the payload of a frame.
//!
//! ```text
//! +---------+-----------+---------+-----------+----------+--------+------+-------+------+
//! | payload | extension | flags   | extension | sequence | serial | next | heard | loss |
//! |         |           |         | length    |          |        |      |       |      |
//! +---------+-----------+---------+-----------+----------+--------+------+-------+------+
//!   n bytes   0 to 255    1         1           3          3        3      3       1      big-endian
//! ```
//!
//! The flags are, from the highest bit: runs, class (2), first, last, open, place, floor. Over several lines the extension starts with
//! what was heard over the others: how many these are, and of each its number (1 byte) and its newest serial (3). In front of a packet
//! (class 001, first) follows the distance back to the last frame of the packet before it in its flow, or 0.
//! Then comes, where its flag is set, the frame's place in a block (2 bytes for the block, 1 for the frame in it), and the floor (3
//! bytes): wide COTMLL has no places. Then comes the report, if it says more than `next` and `heard` do: the distance from `next` to where its stretch
//! starts, and in turn how many frames are missing and how many have come. Each number is a varint: seven bits a byte,
//! the lowest first, and a high bit on all bytes but the last (LEB128).

use crate::endpoint::Discard;

use super::lines::{LineId, Over};
use super::sequence::on_air;

/// Bytes of a trailer without its extension.
pub const TRAILER_LEN: usize = 15;

/// The longest extension.
pub(crate) const MAX_EXTENSION: usize = 255;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// 000: nothing but a report. Has no sequence number. With *first* it asks for a report, with *last* it says for how many
    /// milliseconds nothing has come, in place of the sequence number: SLACP's.
    Control,
    /// 001: part of a packet that is sent again if necessary.
    Reliable,
    /// 010: part of a packet that is sent once. Has a sequence of its own.
    Unreliable,
    /// 011: redundancy. In place of a sequence number it has how many frames of a block it is for (SLACP, HARQ), or the last
    /// frame in it (coded ARQ).
    Repair,
}

/// What some protocols say besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Where the frame stands in a block that redundancy protects.
    pub(crate) place: Option<Place>,
    /// No frame before this one will be sent again.
    pub(crate) floor: Option<u32>,
}

/// A frame of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u16,
    /// Among the block's frames, those of redundancy behind the others.
    pub(crate) index: u8,
}

/// A frame, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) class: Class,
    /// The payload starts a packet.
    pub(crate) first: bool,
    /// The payload ends a packet.
    pub(crate) last: bool,
    /// The frame's number in its class, or what [`Class`] says.
    pub(crate) sequence: u32,
    /// Frames back to the last one of the flow's packet before; 0 if that is known to have arrived, or if there is none.
    pub(crate) back: u32,
    /// Counts all frames that were sent, whatever they carry.
    pub(crate) serial: u32,
    pub(crate) extras: Extras,
    pub(crate) report: Report<'a>,
    pub(crate) payload: &'a [u8],
}

/// Part of a packet of class 001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The frame's number.
    pub(crate) sequence: u32,
    /// It starts a packet.
    pub(crate) first: bool,
    /// It ends a packet.
    pub(crate) last: bool,
    /// As [`Frame::back`].
    pub(crate) back: u32,
    pub(crate) payload: &'a [u8],
}

/// What a receiver tells of its window, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report<'a> {
    /// All frames before this one have come.
    pub(crate) next: u32,
    /// The newest serial that has come over the line of the frame.
    pub(crate) heard: u32,
    /// Those of other lines, as [`Report::elsewhere`] reads them.
    pub(crate) elsewhere: &'a [[u8; HEARD_LEN]],
    /// How often frames are lost lately, one after another counted once, in 256ths.
    pub(crate) loss: u8,
    /// Whether many are lost one after another.
    pub(crate) in_runs: bool,
    /// No frame beyond the stretch has come.
    pub(crate) is_open: bool,
    /// The stretch, as [`Report::runs`] reads it.
    pub(crate) runs: &'a [u8],
}

impl<'a> Frame<'a> {
    /// What a frame of class 001 carries.
    pub(crate) const fn part(&self) -> Part<'a> {
        let Self { sequence, first, last, back, payload, .. } = *self;
        Part { sequence, first, last, back, payload }
    }

    /// Takes a frame of the only line apart.
    ///
    /// # Errors
    /// As [`Frame::parse_as`].
    pub(crate) fn parse(frame: &'a [u8]) -> Result<Self, Discard> {
        Self::parse_as(frame, Over::Only)
    }

    /// Takes `frame` apart, which may have come over one of several lines.
    ///
    /// # Errors
    /// [`Discard::Truncated`] if it is shorter than its fields, [`Discard::Malformed`] with values that no sender writes.
    pub(crate) fn parse_as(frame: &'a [u8], over: Over) -> Result<Self, Discard> {
        let truncated = Discard::Truncated(frame.len());
        let (rest, trailer) = frame.split_last_chunk::<TRAILER_LEN>().ok_or(truncated)?;
        let [flags, extension, numbers @ ..] = trailer;
        let (payload, extension) =
            rest.split_at_checked(rest.len().wrapping_sub((*extension).into())).ok_or(truncated)?;
        let class = match flags >> 5 & 3 {
            0 => Class::Control,
            1 => Class::Reliable,
            2 => Class::Unreliable,
            _ => Class::Repair,
        };
        let first = flags & FIRST != 0;
        let mut runs = extension;
        let elsewhere = match over {
            Over::Only => &[],
            Over::OneOf(_) => take_elsewhere(&mut runs).ok_or(Discard::Malformed)?,
        };
        let has_back = first && class == Class::Reliable;
        let back = if has_back { read_varint(&mut runs).ok_or(Discard::Malformed)? } else { 0 };
        let extras = Extras::parse(*flags, &mut runs).ok_or(Discard::Malformed)?;
        let number = |at: usize| u32::from_be_bytes([0, numbers[at], numbers[at + 1], numbers[at + 2]]);
        let (next, heard, loss) = (number(6), number(9), numbers[12]);
        let (is_open, in_runs) = (flags & OPEN != 0, flags & RUNS != 0);
        let report = Report { next, heard, elsewhere, loss, in_runs, is_open, runs };
        let (sequence, serial, last) = (number(0), number(3), flags & LAST != 0);
        Ok(Self { class, first, last, sequence, back, serial, extras, report, payload })
    }
}

impl Extras {
    fn parse(flags: u8, bytes: &mut &[u8]) -> Option<Self> {
        let mut extras = Self::default();
        if flags & PLACE != 0 {
            let (&[high, low, index], rest) = bytes.split_first_chunk()?;
            extras.place = Some(Place { block: u16::from_be_bytes([high, low]), index });
            *bytes = rest;
        }
        if flags & FLOOR != 0 {
            let (&[high, middle, low], rest) = bytes.split_first_chunk()?;
            extras.floor = Some(u32::from_be_bytes([0, high, middle, low]));
            *bytes = rest;
        }
        Some(extras)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        if let Some(Place { block, index }) = self.place {
            out.extend_from_slice(&block.to_be_bytes());
            out.push(index);
        }
        if let Some(floor) = self.floor {
            out.extend_from_slice(&floor.to_be_bytes()[1..]);
        }
    }
}

impl<'a> Report<'a> {
    /// Other lines, and the newest serial that has come over each.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = (LineId, u32)> + use<'a> {
        self.elsewhere.iter().filter_map(|&[line, high, middle, low]| {
            Some((LineId::new(line)?, u32::from_be_bytes([0, high, middle, low])))
        })
    }

    /// Where the stretch starts, as its distance from `next`, and what it consists of: pairs of frames missing and
    /// frames received. `None` where the bytes are no report; the pairs end early if they are none.
    pub(crate) fn runs(&self) -> Option<(u64, impl Iterator<Item = Option<(u64, u64)>> + use<'a>)> {
        let mut bytes = self.runs;
        let from = if bytes.is_empty() { 0 } else { read_varint(&mut bytes)? };
        let pairs = core::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let missing = read_varint(&mut bytes);
            let received = missing.and_then(|_| read_varint(&mut bytes));
            if received.is_none() {
                bytes = &[];
            }
            Some(missing.zip(received).map(|(missing, received)| (missing.into(), received.into())))
        });
        Some((from.into(), pairs))
    }
}

/// What every report tells, as the receiver counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) next: u64,
    pub(crate) heard: u64,
    pub(crate) loss: u8,
    pub(crate) in_runs: bool,
}

/// What a sender writes behind a payload, but for the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) class: Class,
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) sequence: u64,
    pub(crate) serial: u64,
    /// In front of a packet of class 001.
    pub(crate) back: Option<u32>,
    pub(crate) extras: Extras,
}

impl Fields {
    /// A frame with nothing but a report.
    pub(crate) const fn control(serial: u64) -> Self {
        let extras = Extras { place: None, floor: None };
        Self { class: Class::Control, first: false, last: false, sequence: 0, serial, back: None, extras }
    }

    /// Appends what the extension starts with, before the report.
    pub(crate) fn begin(&self, out: &mut Vec<u8>) {
        if let Some(back) = self.back {
            push_varint(back.into(), out);
        }
        self.extras.emit(out);
    }

    /// Appends the trailer behind an extension of `extension` bytes.
    pub(crate) fn emit(&self, extension: usize, progress: Progress, is_open: bool, out: &mut Vec<u8>) {
        debug_assert!(extension <= MAX_EXTENSION, "the extension has one byte for its length");
        let flag = |on, bit| if on { bit } else { 0 };
        out.push(
            (self.class as u8) << 5
                | flag(progress.in_runs, RUNS)
                | flag(self.first, FIRST)
                | flag(self.last, LAST)
                | flag(is_open, OPEN)
                | flag(self.extras.place.is_some(), PLACE)
                | flag(self.extras.floor.is_some(), FLOOR),
        );
        out.push(extension as u8);
        for number in [self.sequence, self.serial, progress.next, progress.heard] {
            out.extend_from_slice(&on_air(number).to_be_bytes()[1..]);
        }
        out.push(progress.loss);
    }
}

/// Appends what was heard over other lines than the one that a frame leaves over: how many these are, and the number of each with its newest
/// serial.
pub(crate) fn push_elsewhere(over: LineId, heard: impl Iterator<Item = (LineId, u64)>, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    for (line, serial) in heard.filter(|(line, _)| *line != over) {
        let [_, high, middle, low] = on_air(serial).to_be_bytes();
        out.extend_from_slice(&[line.number(), high, middle, low]);
        out[start] += 1;
    }
}

/// Takes off what [`push_elsewhere`] has written.
fn take_elsewhere<'a>(bytes: &mut &'a [u8]) -> Option<&'a [[u8; HEARD_LEN]]> {
    let (&count, rest) = bytes.split_first()?;
    let (heard, rest) = rest.split_at_checked(usize::from(count) * HEARD_LEN)?;
    *bytes = rest;
    Some(heard.as_chunks().0)
}

/// Bytes that [`push_elsewhere`] takes for so many lines.
pub(crate) const fn elsewhere_len(lines: usize) -> usize {
    1 + HEARD_LEN * lines
}

/// Bytes of a line's number and what was heard over it.
const HEARD_LEN: usize = 4;

/// Appends a number in as few bytes as it needs.
pub(crate) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number of up to 28 bits off the front of `bytes`.
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

const RUNS: u8 = 0b1000_0000;
const FIRST: u8 = 0b1_0000;
const LAST: u8 = 0b1000;
const OPEN: u8 = 0b100;
const PLACE: u8 = 0b10;
const FLOOR: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_where_the_layout_says() {
        let fields = Fields {
            class: Class::Reliable,
            first: true,
            last: false,
            sequence: 0x1_02_03_04,
            serial: 0x05_06_07,
            back: Some(300),
            extras: Extras::default(),
        };
        let mut frame = b"payload".to_vec();
        fields.begin(&mut frame);
        [3, 1, 200].into_iter().for_each(|number| push_varint(number, &mut frame));
        let progress = Progress { next: 0x08_09_0a, heard: 0x0b_0c_0d, loss: 14, in_runs: true };
        fields.emit(6, progress, true, &mut frame);
        let trailer = [0b1011_0100, 6, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        assert_eq!(frame, [b"payload".as_slice(), &[0xac, 2, 3, 1, 0xc8, 1], &trailer].concat());
        let parsed = Frame::parse(&frame).unwrap();
        assert_eq!((parsed.payload, parsed.back), (b"payload".as_slice(), 300));
        assert_eq!((parsed.sequence, parsed.serial), (0x02_03_04, 0x05_06_07));
        assert!((parsed.first, parsed.last, parsed.report.is_open) == (true, false, true));
        assert!(parsed.report.in_runs);
        let (from, pairs) = parsed.report.runs().unwrap();
        assert_eq!((from, pairs.collect::<Vec<_>>()), (3, vec![Some((1, 200))]));
    }

    #[test]
    fn place_and_floor_are_in_front_of_the_report() {
        let place = Some(Place { block: 0x0102, index: 3 });
        for extras in [Extras { place, floor: Some(0x04_05_06) }, Extras { place, floor: None }] {
            let mut frame = b"p".to_vec();
            let fields = Fields { extras, ..Fields::control(7) };
            fields.begin(&mut frame);
            frame.extend([0, 1, 2]);
            fields.emit(
                frame.len() - 1,
                Progress { next: 0, heard: 0, loss: 0, in_runs: false },
                false,
                &mut frame,
            );
            assert_eq!(frame[1..4], [1, 2, 3]);
            let parsed = Frame::parse(&frame).unwrap();
            assert_eq!(
                (parsed.payload, parsed.extras, parsed.report.runs),
                (b"p".as_slice(), extras, [0, 1, 2].as_slice())
            );
        }
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let bare = |flags, extension| [&[flags, extension], [0; 13].as_slice()].concat();
        assert_eq!(Frame::parse(&[0; 14]), Err(Discard::Truncated(14)));
        assert_eq!(Frame::parse(&bare(0, 1)), Err(Discard::Truncated(15)));
        for flags in [1, 2] {
            assert_eq!(Frame::parse(&bare(flags, 0)), Err(Discard::Malformed));
        }
        // The first frame of a packet has a distance, and numbers end.
        assert_eq!(Frame::parse(&bare(0b0011_0000, 0)), Err(Discard::Malformed));
        let endless = [[0x80; 4].as_slice(), &bare(0b0011_0000, 4)].concat();
        assert_eq!(Frame::parse(&endless), Err(Discard::Malformed));
    }

    #[test]
    fn a_report_that_ends_early_says_so() {
        let report = |runs| Report {
            next: 0,
            heard: 0,
            elsewhere: &[],
            loss: 0,
            in_runs: false,
            is_open: false,
            runs,
        };
        assert!(report(&[0x80]).runs().is_none());
        let pairs = |runs| report(runs).runs().unwrap().1.collect::<Vec<_>>();
        assert_eq!(pairs(&[]), []);
        assert_eq!(pairs(&[0, 1, 2, 3]), [Some((1, 2)), None]);
        assert_eq!(pairs(&[0, 1, 0x80]), [None]);
    }

    proptest! {
        #[test]
        fn numbers_read_as_they_were_written(number in 0_u32..1 << 28, rest in any::<[u8; 2]>()) {
            let mut bytes = Vec::new();
            push_varint(number.into(), &mut bytes);
            bytes.extend(rest);
            let mut left = bytes.as_slice();
            prop_assert_eq!(read_varint(&mut left), Some(number));
            prop_assert_eq!(left, rest);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(frame) = Frame::parse(&bytes) && let Some((_, pairs)) = frame.report.runs() {
                prop_assert!(pairs.count() <= bytes.len());
            }
        }
    }
}
