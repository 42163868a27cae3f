//! The encrypted frame layer (EFL): frames on a serial stream of bits.
//!
//! After Faulkner 2004, section 2.3: it "detects frame boundaries within the serial stream, verifies frame integrity
//! with a checksum, and resynchronizes when frame boundaries are obscured by channel errors", at 40 bits a frame. The
//! thesis gives neither the fields nor the cipher's mode. Ours, most significant bit first:
//!
//! | bits | field |
//! |---|---|
//! | 9 | length of the body in bytes, 1 to 511; 0 is an *empty frame*, which only fills the line |
//! | 8 a byte | body, encrypted if there is a key |
//! | 31 | check bits over the length and the body, and with a key over the 128 line bits in front of them too |
//!
//! An error-free stream is frames back to back, so each one's end says where the next begins. Where a check fails, the
//! receiver hunts: every bit may begin a frame until a length and its check bits agree, also inside what a false
//! header had claimed. A line that may fall silent does; one that may not carries empty frames.
//!
//! **The cipher is AES-128 in CFB mode on the line**: the first block's feedback is the 128 line bits in front of
//! the frame. That costs no bits, needs no padding for short frames, encrypts as the bits leave, and finds itself again
//! with the boundaries, which a counter would not. The price is that an error in a frame's last 128 bits also costs
//! the frame behind it. The length is in the clear.
//!
//! **After a burst** the first whole frame is taken, or with a key the first that 16 clean bytes precede, once the
//! false headers in front of it are decided. So a burst costs two frames of the clean stream at most, if bodies have 3 bytes
//! or more; COTMLL's have four, its trailer. Shorter ones cost three with a key, and empty ones four.
//!
//! **This is no modern security.** Anybody can alter frames, invent and repeat them: the check bits are linear and need
//! no key, and CFB lets chosen bits be flipped. Without a key a packet may hold a whole frame, which a receiver that
//! has lost the boundary would take. What matters needs an authenticated session above, as the gateway has.
//!
//! Deviations: the check bits follow the body, where the thesis speaks of a header of 40 bits. Bits in front of
//! the body could not cover a trailer that is filled when it leaves, which the same section asks for.

mod bits;
mod check;
mod cipher;
mod deframer;
mod framer;

pub use cipher::{Key, NotAKey};
pub use deframer::{Counters, Deframer};
pub use framer::{BadLength, Framer};

/// Bits that a frame adds to its body (Faulkner 2004, 2.3).
pub const HEADER_BITS: u32 = 40;
/// The longest body in bytes: what 9 bits can say.
pub const MAX_BODY: usize = 511;
/// The longest frame in bytes.
pub const MAX_FRAME: usize = MAX_BODY + HEADER_LEN;

/// Of those, the check bits, which follow the body.
pub const CHECK_BITS: u32 = check::WIDTH;

const HEADER_LEN: usize = HEADER_BITS as usize / 8;
/// Bits in front of the body.
const LENGTH_BITS: usize = 9;
/// Bytes of the stream in front of a frame that an encrypted one depends on: a block of the cipher.
const CONTEXT_LEN: usize = 16;

#[cfg(test)]
mod tests;
