//! AES-128 in CFB mode (NIST SP 800-38A, 6.3) with the line itself as feedback.

use core::fmt;
use core::str::FromStr;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CONTEXT_LEN;

/// A key of 128 bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[0-9A-Fa-f]{32}$"))]
pub struct Key([u8; 16]);

impl Key {
    /// The key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

/// A text that is no key. The text is not repeated, since it may almost be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key; allowed are 32 hexadecimal digits")]
pub struct NotAKey;

impl FromStr for Key {
    type Err = NotAKey;
    fn from_str(text: &str) -> Result<Self, NotAKey> {
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotAKey);
        }
        u128::from_str_radix(text, 16).map(|key| Self(key.to_be_bytes())).map_err(|_| NotAKey)
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;
    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        format!("{:032x}", u128::from_be_bytes(key.0))
    }
}

/// Says nothing of the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The key, expanded.
#[derive(Clone)]
pub(super) struct Cipher(Aes128);

impl Cipher {
    pub(super) fn new(key: Key) -> Self {
        Self(Aes128::new(&key.0.into()))
    }

    /// Encrypts a frame's body in place; `context` is what the line carried in front of the frame.
    pub(super) fn encrypt(&self, context: [u8; CONTEXT_LEN], body: &mut [u8]) {
        let mut feedback = context;
        for block in body.chunks_mut(CONTEXT_LEN) {
            self.mask(&mut feedback, block);
            feedback[..block.len()].copy_from_slice(block);
        }
    }

    /// Undoes [`Cipher::encrypt`].
    pub(super) fn decrypt(&self, context: [u8; CONTEXT_LEN], body: &mut [u8]) {
        let mut feedback = context;
        for block in body.chunks_mut(CONTEXT_LEN) {
            let mut next = [0; CONTEXT_LEN];
            next[..block.len()].copy_from_slice(block);
            self.mask(&mut feedback, block);
            feedback = next;
        }
    }

    fn mask(&self, feedback: &mut [u8; CONTEXT_LEN], block: &mut [u8]) {
        self.0.encrypt_block(feedback.into());
        block.iter_mut().zip(feedback).for_each(|(byte, mask)| *byte ^= *mask);
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(AES-128)")
    }
}
