//! Error processes: the fate of each frame on the air.

use core::fmt::Debug;
use core::ops::Range;

use base::{Instant, Rng};

mod any;
mod binomial;
mod bit_errors;
mod blockage;
mod bursts;
mod erasure;
mod error_free;
mod pooled;
mod scripted;

pub use any::AnyOf;
pub use bit_errors::BitErrors;
pub use blockage::Blockage;
pub use bursts::Bursts;
pub use erasure::Erasure;
pub use error_free::ErrorFree;
pub use pooled::Pooled;
pub use scripted::Scripted;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every bit arrived as it was sent.
    Intact,
    /// This many bits are wrong, at least one.
    Damaged(u32),
    /// Nothing arrived at all.
    Lost,
}

impl Fate {
    /// Intact with no wrong bits, else damaged.
    #[must_use]
    pub const fn of_wrong_bits(wrong: u32) -> Self {
        match wrong {
            0 => Self::Intact,
            _ => Self::Damaged(wrong),
        }
    }

    /// Whether the frame may be handed to the receiver.
    #[must_use]
    pub const fn is_intact(self) -> bool {
        matches!(self, Self::Intact)
    }
}

/// What happens to a frame on the air. Air time, not frame count, drives bursts and blockages.
///
/// Frames are asked about in the order of their air time, and their air times do not overlap. Each is asked about once:
/// either what became of it as a whole, or of its bits.
pub trait ErrorProcess: Debug + Send {
    /// The fate of a frame of `bits` whose first bit passes at `on_air.start` and whose last has passed at `on_air.end`.
    fn fate(&mut self, on_air: Range<Instant>, bits: u32) -> Fate;

    /// Inverts the bits of `bytes`, most significant first, that arrive wrong; how many. The first passes at
    /// `on_air.start` and the last has passed at `on_air.end`.
    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32;

    /// How many bits' time on the line a frame of `bits` takes whose first bit is going to pass `at` then: more than its
    /// own where a part of the rate is away. Asked before its fate.
    fn air_bits(&mut self, at: Instant, bits: u64) -> u64 {
        let _ = at;
        bits
    }

    /// Frames that each of several processes on a line has hit, in their order; empty for a single one.
    fn hits(&self) -> &[u64] {
        &[]
    }
}

/// Makes the `bits` of `bytes` random; how many that changed.
fn randomise(rng: &mut Rng, bytes: &mut [u8], bits: Range<usize>) -> u32 {
    let (mut noise, mut changed) = (0, 0);
    for (count, at) in (bits.start / 8..bits.end.div_ceil(8)).enumerate() {
        if count % 8 == 0 {
            noise = rng.bits();
        }
        let (first, end) = (bits.start.saturating_sub(at * 8), (bits.end - at * 8).min(8));
        let wrong = noise as u8 & (0xff >> first) & (0xff00_u16 >> end) as u8;
        bytes[at] ^= wrong;
        changed += wrong.count_ones();
        noise >>= 8;
    }
    changed
}

/// Inverts the bit with this number.
fn invert(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 0x80 >> (bit % 8);
}
