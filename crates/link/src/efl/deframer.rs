//! Line bits to frames.
//!
//! In step, a frame is checked byte by byte where the one before it ended. When a check fails the deframer hunts: from
//! the failed header's second bit on, each position is tried in turn. Work is bounded: for each bit one step of the
//! rolling check and one comparison, and for each frame, empty ones too, one byte-wise check of the next, which may
//! not be there. A position is decided when the frame that it would begin is complete, so a frame behind noise waits for
//! at most [`MAX_FRAME`] bytes of stream; on a line that falls silent [`Deframer::handle_silence`] ends the waiting.

use core::ops::Range;

use super::bits::Bits;
use super::check::{Check, RING, Rolling, WIDTH};
use super::cipher::{Cipher, Key};
use super::{CONTEXT_LEN, HEADER_BITS, LENGTH_BITS, MAX_BODY, MAX_FRAME};

/// The receiving end of a serial line.
#[derive(Clone, Debug)]
pub struct Deframer {
    cipher: Option<Cipher>,
    /// What is undecided, and [`CONTEXT_LEN`] bytes or more in front of that.
    bits: Bits,
    /// Position in the stream of the first of `bits`.
    origin: u64,
    /// The first undecided bit of `bits`.
    at: usize,
    /// Whether a frame is expected there, in step with the sender.
    in_step: bool,
    rolling: Rolling,
    /// Where `rolling` has gone, in positions of the stream.
    rolled: Range<u64>,
    /// The check bits that count; all but in tests.
    mask: u32,
    body: Vec<u8>,
    counters: Counters,
}

/// What a deframer counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames delivered.
    pub frames: u64,
    /// Empty frames.
    pub fills: u64,
    /// Times that the boundaries had to be searched for.
    pub hunts: u64,
    /// Bits that belong to no frame.
    pub bits_skipped: u64,
    /// Frames whose check bits were wrong where a frame was expected.
    pub checksum_failures: u64,
    /// Frames that were cut off by silence.
    pub cut_off: u64,
}

impl Counters {
    /// The counters by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("frames", self.frames),
            ("fills", self.fills),
            ("hunts", self.hunts),
            ("bits-skipped", self.bits_skipped),
            ("checksum-failures", self.checksum_failures),
            ("cut-off", self.cut_off),
        ]
    }
}

/// Input taken at once, in bytes: with two frames and a context it fits the rolling check's memory.
const SLICE: usize = 256;
const _: () = assert!((MAX_FRAME + SLICE + CONTEXT_LEN + 2) * 8 < RING as usize);
/// Decided bytes after which the buffer moves up.
const KEPT: usize = 1024;

impl Deframer {
    /// The receiving end of a line without encryption.
    #[must_use]
    pub fn clear() -> Self {
        Self::new(None)
    }

    /// The receiving end of an encrypted line.
    #[must_use]
    pub fn keyed(key: Key) -> Self {
        Self::new(Some(Cipher::new(key)))
    }

    fn new(cipher: Option<Cipher>) -> Self {
        Self {
            cipher,
            // Zeros stand for what came before the stream.
            bits: Bits::zeros(CONTEXT_LEN),
            origin: 0,
            at: CONTEXT_LEN * 8,
            in_step: true,
            rolling: Rolling::new(),
            // Nowhere yet.
            rolled: u64::MAX..u64::MAX,
            mask: (1 << WIDTH) - 1,
            body: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// This deframer, if it looks at this many check bits only.
    #[cfg(test)]
    pub(super) fn with_check_bits(self, bits: u32) -> Self {
        Self { mask: (1 << bits) - 1, ..self }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether bits wait for others to be decided about.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        self.at < self.bits.len()
    }

    /// Takes `bytes` of the stream, most significant bit first, and hands each frame's body that they complete to
    /// `deliver`.
    pub fn handle_bytes(&mut self, bytes: &[u8], deliver: impl FnMut(&mut [u8])) {
        self.handle_bits(bytes, bytes.len() * 8, deliver);
    }

    /// Takes the first `bits` bits of `bytes`, and hands each frame's body that they complete to `deliver`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn handle_bits(&mut self, bytes: &[u8], bits: usize, mut deliver: impl FnMut(&mut [u8])) {
        assert!(bits <= bytes.len() * 8, "{bits} bits of {} bytes", bytes.len());
        for (index, slice) in bytes[..bits.div_ceil(8)].chunks(SLICE).enumerate() {
            self.bits.push(slice, (bits - index * SLICE * 8).min(slice.len() * 8));
            self.decide(false, &mut deliver);
        }
    }

    /// The line has fallen silent: what is incomplete will remain so, and frames inside it are delivered.
    pub fn handle_silence(&mut self, mut deliver: impl FnMut(&mut [u8])) {
        self.decide(true, &mut deliver);
    }

    /// Decides about positions as long as enough of the stream is there, or, in silence, to its end.
    fn decide(&mut self, silence: bool, deliver: &mut impl FnMut(&mut [u8])) {
        while self.bits.len() - self.at >= HEADER_BITS as usize {
            if self.in_step {
                let end = self.end_of(self.at);
                let complete = end <= self.bits.len();
                if complete && self.check_whole(end) {
                    self.deliver(end, deliver);
                } else if complete || silence {
                    self.lose_step(complete);
                } else {
                    break;
                }
            } else if let Some(end) = self.hunt(silence) {
                self.in_step = true;
                self.copy_body(end);
                self.deliver(end, deliver);
            } else {
                break;
            }
        }
        if silence {
            self.counters.bits_skipped += (self.bits.len() - self.at) as u64;
            self.at = self.bits.len();
            // Whoever speaks after a silence begins with a frame.
            self.in_step = true;
        }
        self.compact();
    }

    /// Where the frame that would begin at `at` would end.
    fn end_of(&self, at: usize) -> usize {
        let length = self.bits.number(at, LENGTH_BITS as u32) as usize;
        at + HEADER_BITS as usize + length * 8
    }

    /// Copies the frame from `self.at` to `end` and checks it byte by byte.
    fn check_whole(&mut self, end: usize) -> bool {
        self.copy_body(end);
        let mut check = Check::of_head(self.cipher.is_some().then(|| self.context()), self.body.len());
        check.update(&self.body);
        (check.bits() ^ self.bits.number(end - WIDTH as usize, WIDTH)) & self.mask == 0
    }

    /// The body of the frame from `self.at` to `end`, as it is on the line.
    fn copy_body(&mut self, end: usize) {
        let len = (end - self.at - HEADER_BITS as usize) / 8;
        self.body.clear();
        self.bits.copy(self.at + LENGTH_BITS, len, &mut self.body);
    }

    /// The line bits in front of `self.at`.
    fn context(&self) -> [u8; CONTEXT_LEN] {
        let mut context = [0; CONTEXT_LEN];
        for (index, word) in context.chunks_exact_mut(4).enumerate() {
            let at = self.at - CONTEXT_LEN * 8 + index * 32;
            word.copy_from_slice(&self.bits.number(at, 32).to_be_bytes());
        }
        context
    }

    /// Hands `self.body`, of the frame from `self.at` to `end`, over; the next frame is expected there.
    fn deliver(&mut self, end: usize, deliver: &mut impl FnMut(&mut [u8])) {
        if self.body.is_empty() {
            self.counters.fills += 1;
        } else {
            if let Some(cipher) = &self.cipher {
                cipher.decrypt(self.context(), &mut self.body);
            }
            self.counters.frames += 1;
            deliver(&mut self.body);
        }
        self.at = end;
        self.compact();
    }

    /// There is no frame where one was expected.
    fn lose_step(&mut self, complete: bool) {
        self.counters.hunts += 1;
        if complete {
            self.counters.checksum_failures += 1;
        } else {
            self.counters.cut_off += 1;
        }
        self.in_step = false;
        let from = self.origin + (self.at - self.context_bits()) as u64;
        // Where a former hunt has been, it need not go again.
        if !(self.rolled.start..=self.rolled.end).contains(&from) {
            self.rolled = from..from;
            self.rolling.start(from);
        }
        self.skip_bit();
    }

    /// Bits in front of a frame that its check bits cover.
    const fn context_bits(&self) -> usize {
        if self.cipher.is_some() { CONTEXT_LEN * 8 } else { 0 }
    }

    fn skip_bit(&mut self) {
        self.at += 1;
        self.counters.bits_skipped += 1;
    }

    /// Tries position after position until a frame begins at one, which is then `self.at`; where that frame ends. None
    /// if the stream is used up, or the next position's frame is not complete and not to be given up.
    fn hunt(&mut self, silence: bool) -> Option<usize> {
        let len = self.bits.len();
        while self.rolled.end < self.origin + len as u64 {
            let bit = self.bits.bit((self.rolled.end - self.origin) as usize);
            self.rolled.end += 1;
            self.rolling.push(bit, self.rolled.end);
        }
        let context = self.context_bits() as u64;
        while len - self.at >= HEADER_BITS as usize {
            let end = self.end_of(self.at);
            if end <= len {
                let (from, to) = (self.origin + self.at as u64 - context, self.origin + end as u64);
                if self.rolling.syndrome(from, to) & self.mask == 0 {
                    return Some(end);
                }
            } else if !silence {
                return None;
            }
            self.skip_bit();
        }
        None
    }

    /// Drops what is decided, now and then.
    fn compact(&mut self) {
        let spare = (self.at - CONTEXT_LEN * 8) / 8;
        if spare >= KEPT {
            self.bits.drop_front(spare);
            self.origin += spare as u64 * 8;
            self.at -= spare * 8;
        }
    }
}

const _: () = assert!(MAX_BODY < 1 << LENGTH_BITS);
