//! Frames to line bits.

use super::check::{Check, WIDTH};
use super::cipher::{Cipher, Key};
use super::{CONTEXT_LEN, HEADER_LEN, MAX_BODY};

/// The sending end of a serial line. What it appends is whole bytes, to be sent most significant bit first and in order.
#[derive(Clone, Debug)]
pub struct Framer {
    cipher: Option<Cipher>,
    /// The last bytes that the line has carried; random before the first frame.
    context: [u8; CONTEXT_LEN],
    /// Whether the peer is still to learn the context.
    preamble_due: bool,
}

/// A body that no frame can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes; allowed are 1 to {MAX_BODY}")]
pub struct BadLength(pub usize);

impl Framer {
    /// The sending end of a line without encryption.
    #[must_use]
    pub const fn clear() -> Self {
        Self { cipher: None, context: [0; CONTEXT_LEN], preamble_due: false }
    }

    /// The sending end of an encrypted line. The `preamble` precedes the first frame and is to be random: two
    /// lives with one key and one preamble would encrypt alike.
    #[must_use]
    pub fn keyed(key: Key, preamble: [u8; 16]) -> Self {
        Self { cipher: Some(Cipher::new(key)), context: preamble, preamble_due: true }
    }

    /// Bytes that the line carries for the next frame, if its body has `len` bytes.
    #[must_use]
    pub const fn line_len(&self, len: usize) -> usize {
        len + HEADER_LEN + if self.preamble_due { CONTEXT_LEN } else { 0 }
    }

    /// Appends a frame to `line`.
    ///
    /// # Errors
    /// [`BadLength`], and nothing is appended.
    pub fn frame(&mut self, body: &[u8], line: &mut Vec<u8>) -> Result<(), BadLength> {
        if body.is_empty() || body.len() > MAX_BODY {
            return Err(BadLength(body.len()));
        }
        self.append(body, line);
        Ok(())
    }

    /// Appends an empty frame, 40 bits for a line that may not fall silent.
    pub fn fill(&mut self, line: &mut Vec<u8>) {
        self.append(&[], line);
    }

    fn append(&mut self, body: &[u8], line: &mut Vec<u8>) {
        if core::mem::take(&mut self.preamble_due) {
            line.extend_from_slice(&self.context);
        }
        let start = line.len();
        let length = (body.len() as u16).to_be_bytes();
        line.extend_from_slice(&length);
        line.extend_from_slice(body);
        let coded = &mut line[start + length.len()..];
        if let Some(cipher) = &self.cipher {
            cipher.encrypt(self.context, coded);
        }
        let mut check = Check::of_head(self.cipher.is_some().then_some(self.context), body.len());
        check.update(coded);
        line.extend_from_slice(&check.bits().to_be_bytes());
        // Nine bits of length and 31 of check: what lies between moves up by seven, and the check bits by one.
        let frame = &mut line[start..];
        let last = frame.len() - 4;
        let body_end = frame[last - 1];
        for at in 0..last - 1 {
            frame[at] = frame[at] << 7 | frame[at + 1] >> 1;
        }
        let bits = u32::from_be_bytes([frame[last], frame[last + 1], frame[last + 2], frame[last + 3]]);
        let tail = (u32::from(body_end) << WIDTH | bits).to_be_bytes();
        frame[last - 1..last + 3].copy_from_slice(&tail);
        line.pop();
        self.remember(&line[start..]);
    }

    /// Keeps the last bytes of the line.
    fn remember(&mut self, sent: &[u8]) {
        let new = sent.len().min(CONTEXT_LEN);
        self.context.copy_within(new.., 0);
        self.context[CONTEXT_LEN - new..].copy_from_slice(&sent[sent.len() - new..]);
    }
}
