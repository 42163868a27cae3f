//! One direction of a link as a stream of bits: frames are sent as EFL, bits are damaged, and frames are found again.
//!
//! A synchronous line is never silent: between frames it carries empty ones. Of a gap only the last [`LONGEST_FILL`]
//! bytes are made and, so that no frame waits behind a false header, also that much after the last frame; noise
//! elsewhere in a gap could only pass for a frame, once in 2^31 bits.
//!
//! What the stream carried between two ends of frames arrives at once, when its last bit does.

use core::ops::Range;

use base::{Duration, Instant, Packet, Rng};
use channel::Line;
use link::efl::{Deframer, Framer, HEADER_BITS, Key, MAX_FRAME};

/// The sender's and the receiver's half of a stream.
#[derive(Debug)]
pub struct Stream {
    framer: Framer,
    /// At the far end.
    deframer: Deframer,
    /// Whether the gap after the last frame is filled as far as it is going to be.
    filled: bool,
}

/// Bytes, in whole empty frames: enough to complete the longest frame that a header can claim.
const LONGEST_FILL: usize = (MAX_FRAME / EMPTY_LEN + 1) * EMPTY_LEN;
const EMPTY_LEN: usize = HEADER_BITS as usize / 8;

impl Stream {
    /// A stream without encryption.
    #[must_use]
    pub fn clear() -> Self {
        Self { framer: Framer::clear(), deframer: Deframer::clear(), filled: true }
    }

    /// A stream with a key and a preamble of `rng`.
    #[must_use]
    pub fn encrypted(mut rng: Rng) -> Self {
        let mut block = || (u128::from(rng.bits()) << 64 | u128::from(rng.bits())).to_be_bytes();
        let key = Key::new(block());
        Self { framer: Framer::keyed(key, block()), deframer: Deframer::keyed(key), filled: true }
    }

    /// What the far end counted.
    pub(super) fn counters(&self) -> [(&'static str, u64); 6] {
        self.deframer.counters().named()
    }

    /// When empty frames are to follow the last frame, if nothing else does.
    pub(super) fn fill_at(&self, line: &Line) -> Option<Instant> {
        (!self.filled).then(|| line.free_at().saturating_add(fill_time(line)))
    }

    /// Sends the empty frames since the line became free, if there is room for any: when the last bit has left, and the
    /// bytes as they arrive.
    pub(super) fn fill(&mut self, now: Instant, line: &mut Line) -> Option<(Instant, Packet)> {
        self.filled = true;
        let gap = now.saturating_since(line.free_at()).min(fill_time(line));
        let frames = line.rate().bits_in(gap) / u64::from(HEADER_BITS);
        // Before its first frame the line is switched off.
        if frames == 0 || line.free_at() == Instant::ZERO {
            return None;
        }
        let mut bytes = Packet::default();
        (0..frames).for_each(|_| self.framer.fill(bytes.as_vec_mut()));
        let on_air = line.reserve(now.saturating_sub(gap), bytes.len() as u32 * 8);
        line.damage(&on_air, &mut bytes);
        Some((on_air.end, bytes))
    }

    /// Takes the line for a frame of this many bits; when it is on the air.
    pub(super) fn reserve(&mut self, now: Instant, bits: u32, line: &mut Line) -> Range<Instant> {
        self.filled = false;
        line.reserve(now, bits)
    }

    /// Whether the next frame has the framing's preamble in front.
    pub(super) fn preamble_is_due(&self) -> bool {
        self.framer.line_len(0) > EMPTY_LEN
    }

    /// Bits on the line of the next frame, if its body has `len` bytes.
    pub(super) fn line_bits(&self, len: usize) -> u32 {
        self.framer.line_len(len) as u32 * 8
    }

    /// Sends a frame that is on the air as [`Stream::reserve`] said: its bytes as they arrive, and whether they are as they
    /// were sent.
    pub(super) fn send(&mut self, line: &mut Line, on_air: &Range<Instant>, body: &[u8]) -> (Packet, bool) {
        let mut bytes = Packet::default();
        let framed = self.framer.frame(body, bytes.as_vec_mut());
        debug_assert!(framed.is_ok(), "the endpoint was told how long a frame may be");
        // On a line of rate zero there is no time at which errors could happen.
        let intact = on_air.end < Instant::MAX && line.damage(on_air, &mut bytes) == 0;
        (bytes, intact)
    }

    /// Takes what has arrived, and hands each frame that it completes to `deliver`.
    pub(super) fn handle(&mut self, bytes: &[u8], deliver: impl FnMut(&mut [u8])) {
        self.deframer.handle_bytes(bytes, deliver);
    }
}

fn fill_time(line: &Line) -> Duration {
    line.rate().time_for(LONGEST_FILL as u64 * 8)
}
