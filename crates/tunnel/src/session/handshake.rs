//! The handshake: Noise `NNpsk0` over X25519 (Noise Protocol Framework, revision 34, section 9).
//!
//! One round trip gives two fresh keys; only holders of the pre-shared key can take part.
//!
//! Deviations: the keys of Noise's `Split()` are used with AES-256-GCM in our own datagrams, because data
//! datagrams are sealed in place and in batches. What is ours is wiped from memory; what `snow` keeps while a
//! handshake is under way is not, since it has no means for that.

use core::fmt;

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver};
use snow::types::{Cipher, Dh, Hash};
use snow::{Builder, HandshakeState};
use zeroize::Zeroize as _;

use crate::key::PresharedKey;
use crate::random::Random;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"longhaul session 3";

/// Bytes of an ephemeral public key at the start of a Noise message.
pub(super) const EPHEMERAL_LEN: usize = 32;
/// Ephemeral key and the tag of an empty payload.
pub(super) const NOISE_LEN: usize = EPHEMERAL_LEN + 16;

/// The two keys of a session, from one side's point of view.
pub(super) struct Keys {
    pub(super) seal: [u8; 32],
    pub(super) open: [u8; 32],
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.seal.zeroize();
        self.open.zeroize();
    }
}

/// A Noise message that no holder of the key made for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unauthentic;

/// An initiation that was sent and not yet answered.
pub(super) struct Initiation {
    noise: HandshakeState,
    /// Our index of the session that it asks for.
    pub(super) local: u32,
    /// Our ephemeral public key.
    pub(super) ephemeral: [u8; EPHEMERAL_LEN],
    /// Whether it showed a cookie, so that an answer is to be expected.
    pub(super) has_cookie: bool,
}

impl Initiation {
    /// Starts a handshake; the Noise message to send.
    pub(super) fn new(
        key: &PresharedKey,
        random: &mut Random,
        local: u32,
        has_cookie: bool,
    ) -> (Self, [u8; NOISE_LEN]) {
        let noise = builder(key, random).build_initiator();
        let mut noise = noise.expect("the pattern and its parameters are constants");
        let mut message = [0; NOISE_LEN];
        let len = noise.write_message(&[], &mut message).expect("the buffer fits the message");
        debug_assert_eq!(len, NOISE_LEN);
        let ephemeral = *message.first_chunk().expect("the message starts with it");
        (Self { noise, local, ephemeral, has_cookie }, message)
    }

    /// Completes the handshake with the peer's answer.
    pub(super) fn finish(&mut self, message: &[u8; NOISE_LEN]) -> Result<Keys, Unauthentic> {
        self.noise.read_message(message, &mut []).map_err(|_| Unauthentic)?;
        let (seal, open) = self.noise.dangerously_get_raw_split();
        Ok(Keys { seal, open })
    }
}

impl fmt::Debug for Initiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiation").field("local", &self.local).finish_non_exhaustive()
    }
}

/// Answers an initiation: the session's keys and the Noise message to send.
pub(super) fn answer(
    key: &PresharedKey,
    random: &mut Random,
    message: &[u8; NOISE_LEN],
) -> Result<(Keys, [u8; NOISE_LEN]), Unauthentic> {
    let noise = builder(key, random).build_responder();
    let mut noise = noise.expect("the pattern and its parameters are constants");
    noise.read_message(message, &mut []).map_err(|_| Unauthentic)?;
    let mut answer = [0; NOISE_LEN];
    // Fails for a degenerate ephemeral key, which no honest peer sends.
    noise.write_message(&[], &mut answer).map_err(|_| Unauthentic)?;
    let (open, seal) = noise.dangerously_get_raw_split();
    Ok((Keys { seal, open }, answer))
}

fn builder<'a>(key: &'a PresharedKey, random: &mut Random) -> Builder<'a> {
    let resolver = FallbackResolver::new(Box::new(Drawn(random.draw())), Box::new(DefaultResolver));
    Builder::with_resolver(PATTERN.parse().expect("the pattern is a constant"), Box::new(resolver))
        .prologue(PROLOGUE)
        .and_then(|builder| builder.psk(0, key.as_bytes()))
        .expect("each is set once")
}

/// The ephemeral secret of one handshake, which is all that Noise draws at random.
struct Drawn([u8; 32]);

impl CryptoResolver for Drawn {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(Self(self.0)))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        None
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        None
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        None
    }
}

impl snow::types::Random for Drawn {
    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), snow::Error> {
        to.copy_from_slice(&self.0);
        Ok(())
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
