//! The handshake: Noise `NNpsk0` over X25519 (Noise Protocol Framework, revision 34, section 9).
//!
//! One round trip gives two fresh keys; only holders of the pre-shared key can take part. Each side tells
//! the other its [`Hello`] inside the handshake.
//!
//! Deviations: the keys of Noise's `Split()` are used with AES-256-GCM in our own datagrams, because data
//! datagrams are sealed in place and in batches.

use snow::{Builder, HandshakeState};

use crate::key::PresharedKey;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"longhaul session 1";

/// Bytes of an ephemeral public key at the start of a Noise message.
pub(super) const EPHEMERAL_LEN: usize = 32;
/// Ephemeral key, sealed hello and its tag.
const MESSAGE_LEN: usize = EPHEMERAL_LEN + HELLO_LEN + 16;
const HELLO_LEN: usize = 24;

/// What the sides tell each other about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Random, drawn when the daemon starts: another number is another life, without the link's old state.
    pub(super) incarnation: u64,
    /// A hash of what both ends must agree on, the link protocol among it.
    pub(super) agreement: u64,
    /// Nanoseconds of the calendar, when it was said: of several initiations the latest is not a replayed one.
    pub(super) stamp: u64,
}

impl Hello {
    fn to_bytes(self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip([self.incarnation, self.agreement, self.stamp]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; HELLO_LEN]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let [incarnation, agreement, stamp] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
        Self { incarnation, agreement, stamp }
    }
}

/// The two keys of a session, from one side's point of view.
pub(super) struct Keys {
    pub(super) seal: [u8; 32],
    pub(super) open: [u8; 32],
}

/// A Noise message that no holder of the key made for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unauthentic;

/// An initiation that was sent and not yet answered.
#[derive(Debug)]
pub(super) struct Initiation {
    noise: HandshakeState,
    /// Our index of the session that it asks for.
    pub(super) local: u32,
    /// Our ephemeral public key.
    pub(super) ephemeral: [u8; EPHEMERAL_LEN],
}

impl Initiation {
    /// Starts a handshake; the Noise message to send.
    pub(super) fn new(key: &PresharedKey, local: u32, hello: Hello) -> (Self, [u8; MESSAGE_LEN]) {
        let mut noise = builder(key).build_initiator().expect("the pattern and its parameters are constants");
        let mut message = [0; MESSAGE_LEN];
        let len = noise.write_message(&hello.to_bytes(), &mut message).expect("the buffer fits the message");
        debug_assert_eq!(len, MESSAGE_LEN);
        let ephemeral = *message.first_chunk().expect("the message starts with it");
        (Self { noise, local, ephemeral }, message)
    }

    /// Completes the handshake with the peer's answer. An answer that is none leaves it as it was.
    pub(super) fn finish(&mut self, message: &[u8]) -> Result<(Keys, Hello), Unauthentic> {
        let hello = read(&mut self.noise, message)?;
        let (seal, open) = self.noise.dangerously_get_raw_split();
        Ok((Keys { seal, open }, hello))
    }
}

/// An authentic initiation that waits for our answer.
pub(super) struct Asked {
    noise: HandshakeState,
    /// What the peer says about itself.
    pub(super) hello: Hello,
}

impl Asked {
    /// Reads the initiation `message`. This costs a few hashes and no operation on the curve.
    pub(super) fn read(key: &PresharedKey, message: &[u8]) -> Result<Self, Unauthentic> {
        let mut noise = builder(key).build_responder().expect("the pattern and its parameters are constants");
        let hello = read(&mut noise, message)?;
        Ok(Self { noise, hello })
    }

    /// The session's keys and the Noise message to send.
    pub(super) fn answer(mut self, hello: Hello) -> Result<(Keys, [u8; MESSAGE_LEN]), Unauthentic> {
        let mut answer = [0; MESSAGE_LEN];
        // Fails for a degenerate ephemeral key, which no honest peer sends.
        self.noise.write_message(&hello.to_bytes(), &mut answer).map_err(|_| Unauthentic)?;
        let (open, seal) = self.noise.dangerously_get_raw_split();
        Ok((Keys { seal, open }, answer))
    }
}

fn builder(key: &PresharedKey) -> Builder<'_> {
    Builder::new(PATTERN.parse().expect("the pattern is a constant"))
        .prologue(PROLOGUE)
        .and_then(|builder| builder.psk(0, key.as_bytes()))
        .expect("each is set once")
}

fn read(noise: &mut HandshakeState, message: &[u8]) -> Result<Hello, Unauthentic> {
    if message.len() != MESSAGE_LEN {
        return Err(Unauthentic);
    }
    let mut hello = [0; MESSAGE_LEN];
    match noise.read_message(message, &mut hello) {
        Ok(HELLO_LEN) => Ok(Hello::from_bytes(*hello.first_chunk().expect("the buffer is longer"))),
        _ => Err(Unauthentic),
    }
}
