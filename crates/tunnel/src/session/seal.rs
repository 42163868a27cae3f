//! Seals: the first thing that is checked of a handshake datagram, in a quarter of a microsecond: WireGuard's first MAC (Donenfeld 2017,
//! section 5.4.4).
//!
//! Its key follows from the public key of whoever answers the handshake, and is on all datagrams of it, in both directions. So somebody
//! who does not even know whom he talks to costs next to nothing. It proves no more than that: the Noise messages say who is who.
//!
//! Deviations: HMAC-SHA256 instead of BLAKE2s, and one key for both directions, since a gateway does not know who asks before it has
//! done work on the curve.

use core::fmt;

use ring::hmac;

use super::wire::SEAL_LEN;
use crate::key::PublicKey;

/// Seals and checks handshake datagrams of which one gateway is the responder.
pub(super) struct Seal(hmac::Key);

impl Seal {
    /// For handshakes that the holder of `key` answers.
    pub(super) fn of(key: &PublicKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        let derived = hmac::sign(&key, b"longhaul handshake datagrams");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// Appends the seal to a datagram that is complete but for it. What it answers, if it is to answer nothing else, is under the seal too:
    /// the seal of that.
    pub(super) fn append(&self, datagram: &mut Vec<u8>, answered: &[u8]) {
        let tag = hmac::sign(&self.0, &[datagram, answered].concat());
        datagram.extend_from_slice(tag.as_ref());
    }

    /// Whether somebody who knows the public key sealed `bytes`, to answer what has the seal `answered`.
    pub(super) fn is_on(&self, bytes: &[u8], answered: &[u8], seal: &[u8; SEAL_LEN]) -> bool {
        hmac::verify(&self.0, &[bytes, answered].concat(), seal).is_ok()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}
