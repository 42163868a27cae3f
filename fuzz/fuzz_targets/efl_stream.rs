//! A line of EFL behind anything at all, or damaged by bursts: what must arrive does, and nothing that was not sent.
//!
//! The input chooses what is on the line: a key or none, sizes, fills, damage, pieces and silences. Behind *garbage*, which
//! are its own bytes, every frame must arrive that a frame and, with a key, 16 clean bytes precede: all from the third on, if
//! bodies have 3 bytes. In a line with *bursts* every frame in front of them and, from 16 clean bytes on, behind them must
//! arrive, and nothing else may.
//!
//! The 31 check bits let one false frame in 2^31 pass, wherever bits are searched, and a minute of fuzzing searches more. So
//! contents and burst patterns come from a random stream, and what contradicts is a finding only if it contradicts again with
//! two other streams: with 2^17 positions in a run at most, one run in 2^42 does so by chance.

#![no_main]

use base::Rng;
use libfuzzer_sys::fuzz_target;
use link::efl::{Deframer, Framer, HEADER_BITS, Key, MAX_BODY};

fuzz_target!(|bytes: &[u8]| {
    let line = Line::chosen(&mut Input(bytes));
    let mut contradiction = None;
    for stream in 0..STREAMS {
        contradiction = line.run(stream);
        if contradiction.is_none() {
            return;
        }
    }
    panic!("{contradiction:?} with each of {STREAMS} contents: {line:?}");
});

/// Contents that must agree on a finding.
const STREAMS: u64 = 3;
/// Frames and fills of a line.
const MOST_FRAMES: u8 = 12;
/// Fills that end any false header's claim: more than the longest frame.
const CLOSING_FILLS: usize = 120;
/// Clean bits that a frame with a key needs in front of it: a block of the cipher.
const CONTEXT_BITS: usize = 128;

/// Bytes of the input, zeros behind its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    fn number(&mut self) -> usize {
        u16::from_be_bytes([self.byte(), self.byte()]).into()
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// What a burst does to the stream where it has got to.
#[derive(Debug)]
enum Harm {
    /// This many bits are random.
    Noise(usize),
    /// One bit is wrong.
    Flip,
    /// This many random bits come in between.
    Insert(usize),
    /// This many bits are missing.
    Delete(usize),
}

/// What precedes the line's frames.
#[derive(Debug)]
struct Garbage<'a> {
    bytes: &'a [u8],
    bits: usize,
    silence: bool,
}

/// A line as the input describes it.
#[derive(Debug)]
struct Line<'a> {
    keyed: bool,
    seed: u64,
    /// Bodies are one byte repeated, but for the last four, which are random.
    monotonous: bool,
    /// Lengths of bodies; zero is a fill.
    sizes: Vec<usize>,
    /// Bits that are handed over at once.
    piece: usize,
    ends_in_silence: bool,
    /// Whether the first frame is also the sender's first, and so has the preamble that a key needs.
    begins: bool,
    /// Empty in a line with bursts.
    garbage: Vec<Garbage<'a>>,
    /// Where each burst begins, behind the one before, and what it does.
    bursts: Vec<(usize, Harm)>,
}

/// A frame on the line.
struct Sent {
    body: Vec<u8>,
    /// Its bits.
    start: usize,
    end: usize,
}

impl<'a> Line<'a> {
    fn chosen(input: &mut Input<'a>) -> Self {
        let choice = input.byte();
        let chosen = |bit: u32| choice >> bit & 1 == 1;
        let has_bursts = chosen(0);
        let seed = input.number() as u64;
        let piece = input.number() % 5000 + 1;
        let count = input.byte() % MOST_FRAMES + 1;
        let sizes = (0..count).map(|_| size(input)).collect();
        let mut line = Line {
            keyed: chosen(1),
            seed,
            monotonous: chosen(2),
            sizes,
            piece,
            ends_in_silence: chosen(3),
            begins: has_bursts || chosen(4),
            garbage: Vec::new(),
            bursts: Vec::new(),
        };
        if has_bursts {
            line.bursts = (0..input.byte() % 5).map(|_| (input.number() % 20_000, harm(input))).collect();
        } else {
            while !input.0.is_empty() {
                let head = input.number();
                let bytes = input.bytes((head >> 4) % 1024);
                let bits = (bytes.len() * 8).saturating_sub(head & 7);
                line.garbage.push(Garbage { bytes, bits, silence: head & 8 != 0 });
            }
        }
        line
    }

    /// What contradicts, if anything does.
    fn run(&self, stream: u64) -> Option<String> {
        let mut rng = Rng::named(self.seed << 8 | stream, "contents");
        let (mut framer, mut deframer) = self.ends(&mut rng);
        let mut found = Vec::new();
        let mut heard = 0;
        for garbage in &self.garbage {
            deframer.handle_bits(garbage.bytes, garbage.bits, |body| found.push(body.to_vec()));
            heard += garbage.bits;
            if garbage.silence {
                deframer.handle_silence(|body| found.push(body.to_vec()));
                assert!(!deframer.is_waiting());
            }
        }
        let (line, sent) = self.frames(&mut framer, &mut rng);
        let (line, clean) = self.damage(&line, &mut rng);
        for piece in line.chunks(self.piece) {
            deframer.handle_bits(&bytes_of(piece), piece.len(), |body| found.push(body.to_vec()));
        }
        heard += line.len();
        if self.ends_in_silence {
            deframer.handle_silence(|body| found.push(body.to_vec()));
        } else {
            let mut fills = Vec::new();
            (0..CLOSING_FILLS).for_each(|_| framer.fill(&mut fills));
            deframer.handle_bytes(&fills, |body| found.push(body.to_vec()));
            heard += fills.len() * 8;
        }
        let contradiction = self.contradiction(&sent, clean, &found);
        deframer.handle_silence(|body| found.push(body.to_vec()));
        assert!(!deframer.is_waiting());
        let counters = deframer.counters();
        let header = HEADER_BITS as usize;
        let framed: usize = found.iter().map(|body| header + body.len() * 8).sum();
        let told = counters.bits_skipped as usize + counters.fills as usize * header + framed;
        assert_eq!((told, counters.frames as usize), (heard, found.len()), "each bit counts once");
        contradiction
    }

    fn ends(&self, rng: &mut Rng) -> (Framer, Deframer) {
        if !self.keyed {
            return (Framer::clear(), Deframer::clear());
        }
        let mut random = || core::array::from_fn(|_| rng.bits() as u8);
        let key = Key::new(random());
        let mut framer = Framer::keyed(key, random());
        if !self.begins {
            framer.fill(&mut Vec::new());
        }
        (framer, Deframer::keyed(key))
    }

    /// The line's bits without damage, and the frames that have a body.
    fn frames(&self, framer: &mut Framer, rng: &mut Rng) -> (Vec<bool>, Vec<Sent>) {
        let (mut line, mut sent) = (Vec::new(), Vec::new());
        let (mask, dull) = (rng.bits() as u8, rng.bits() as u8);
        for (index, &size) in self.sizes.iter().enumerate() {
            if size == 0 {
                framer.fill(&mut line);
                continue;
            }
            let body: Vec<u8> = (0..size)
                .map(|at| match at {
                    // No two are alike.
                    0 => index as u8 ^ mask,
                    _ if self.monotonous && at + 4 < size => dull,
                    _ => rng.bits() as u8,
                })
                .collect();
            framer.frame(&body, &mut line).expect("it fits");
            let end = line.len() * 8;
            sent.push(Sent { body, start: end - size * 8 - HEADER_BITS as usize, end });
        }
        (bits_of(&line), sent)
    }

    /// The line after its bursts, and which of its bits, as they were sent, lie in front of all of them and behind.
    fn damage(&self, line: &[bool], rng: &mut Rng) -> (Vec<bool>, Clean) {
        let (mut new, mut old) = (Vec::new(), 0);
        let mut clean = Clean { before: 0, from: 0 };
        for (index, (gap, harm)) in self.bursts.iter().enumerate() {
            let at = (old + gap).min(line.len());
            new.extend(&line[old..at]);
            old = at;
            if index == 0 {
                clean.before = at;
            }
            let rest = line.len() - old;
            match *harm {
                Harm::Noise(bits) => {
                    new.extend(noise(bits.min(rest), rng));
                    old += bits.min(rest);
                }
                Harm::Flip => {
                    new.extend(line.get(old).map(|bit| !bit));
                    old += rest.min(1);
                }
                Harm::Insert(bits) => new.extend(noise(bits, rng)),
                Harm::Delete(bits) => old += bits.min(rest),
            }
            clean.from = old;
        }
        new.extend(&line[old..]);
        (new, clean)
    }

    fn contradiction(&self, sent: &[Sent], clean: Clean, found: &[Vec<u8>]) -> Option<String> {
        let context = if self.keyed { CONTEXT_BITS } else { 0 };
        // A false frame of the input's own bytes may end in the head of the first frame, which is alike in all streams.
        let garbled = !self.keyed && self.garbage.last().is_some_and(|garbage| !garbage.silence);
        let is_owed = |index: usize, sent: &Sent| {
            sent.end <= clean.before || sent.start >= clean.from + context && !(garbled && index == 0)
        };
        if !self.garbage.is_empty() {
            let owed = sent.iter().enumerate().filter(|(index, sent)| is_owed(*index, sent));
            let owed: Vec<_> = owed.map(|(_, sent)| &sent.body).collect();
            let last = &found[found.len().saturating_sub(owed.len())..];
            return (!last.iter().eq(owed)).then(|| "a frame behind garbage is missing".to_owned());
        }
        let mut found = found.iter().peekable();
        for (index, sent) in sent.iter().enumerate() {
            if found.next_if(|found| **found == sent.body).is_none() && is_owed(index, sent) {
                return Some(format!("frame {index}, bits {} to {}, is missing", sent.start, sent.end));
            }
        }
        found.next().map(|body| format!("{body:?} was not sent, or out of order"))
    }
}

/// Bits of a line, as it was sent, that no burst has met: those before the one and from the other on.
#[derive(Clone, Copy, Debug)]
struct Clean {
    before: usize,
    from: usize,
}

/// Mostly short, since in short frames more depends on what precedes them.
fn size(input: &mut Input<'_>) -> usize {
    match input.byte() {
        short @ 0..192 => usize::from(short % 32),
        _ => input.number() % (MAX_BODY + 1),
    }
}

fn harm(input: &mut Input<'_>) -> Harm {
    let kind = input.byte();
    // Up to a frame or two.
    let bits = input.number() % 6000 >> (kind >> 4);
    match kind & 3 {
        0 => Harm::Noise(bits),
        1 => Harm::Flip,
        2 => Harm::Insert(bits),
        _ => Harm::Delete(bits),
    }
}

fn noise(bits: usize, rng: &mut Rng) -> impl Iterator<Item = bool> {
    let mut word = 0;
    (0..bits).map(move |at| {
        word = if at % 64 == 0 { rng.bits() } else { word >> 1 };
        word & 1 == 1
    })
}

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

fn bytes_of(bits: &[bool]) -> Vec<u8> {
    let byte =
        |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at));
    bits.chunks(8).map(byte).collect()
}
