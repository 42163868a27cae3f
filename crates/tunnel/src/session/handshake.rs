//! The handshake: Noise `IKpsk2` over X25519 (Noise Protocol Framework, revision 34, sections 7.5 and 9), as WireGuard has it.
//!
//! One round trip gives two fresh keys and tells each side who the other is. The initiator knows whom it calls; who calls is encrypted for
//! whoever is called. What both ends must agree on goes inside too, so nothing of this in clear is the same in two handshakes of one gateway.
//!
//! Deviations: payloads (a [`Greeting`] and a [`Welcome`]) instead of WireGuard's time stamp; the keys of Noise's `Split()` are used with
//! AES-256-GCM in our own datagrams, because data datagrams are sealed in place and in batches. What is ours is wiped from memory; what
//! `snow` keeps while a handshake is under way is not, since it has no means for that.

use core::fmt;
use std::sync::Arc;

use link::LineId;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver};
use snow::types::{Cipher, Dh, Hash};
use snow::{Builder, HandshakeState};
use zeroize::Zeroize as _;

use super::cookies::{COOKIE_LEN, Cookie};
use super::wire::SEAL_LEN;
use crate::key::{KEY_LEN, PresharedKey, PrivateKey, PublicKey};
use crate::random::Random;

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"longhaul session 4";
/// Where the pattern mixes the pre-shared key in.
const PSK_PLACE: u8 = 2;

const TAG_LEN: usize = 16;
/// Bytes of an ephemeral public key at the start of a Noise message.
pub(super) const EPHEMERAL_LEN: usize = KEY_LEN;
/// Ephemeral key, encrypted static key, encrypted greeting.
pub(super) const INITIATION_LEN: usize = EPHEMERAL_LEN + KEY_LEN + TAG_LEN + Greeting::LEN + TAG_LEN;
/// Ephemeral key, encrypted welcome.
pub(super) const RESPONSE_LEN: usize = EPHEMERAL_LEN + Welcome::LEN + TAG_LEN;

/// Who the two ends of a session are.
#[derive(Clone, Debug)]
pub struct Ends {
    /// This end.
    pub own: Arc<PrivateKey>,
    /// The other end.
    pub peer: PublicKey,
    /// What they share besides; [`PresharedKey::NONE`] if nothing.
    pub preshared: PresharedKey,
}

/// What an initiation says, encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) terms: Terms,
    /// The line that it leaves over.
    pub(super) line: LineId,
    /// Initiations of this life so far.
    pub(super) number: u64,
}

/// What the answer says, encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub(super) terms: Terms,
    /// What the next initiation is to show. Nobody sees it before that, so it does not tell that both are of one peer.
    pub(super) cookie: Cookie,
}

/// What each end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Random, drawn when the session begins: another number is another life, without the link's old state.
    pub(super) life: u64,
    /// A hash of what both ends must agree on, the link protocol among it.
    pub(super) agreement: u64,
    /// Milliseconds between its keep-alives while nothing else passes.
    pub(super) keep_alive: u32,
}

impl Terms {
    const LEN: usize = 8 + 8 + 4;

    fn write(self, to: &mut [u8]) {
        to[..8].copy_from_slice(&self.life.to_le_bytes());
        to[8..16].copy_from_slice(&self.agreement.to_le_bytes());
        to[16..Self::LEN].copy_from_slice(&self.keep_alive.to_le_bytes());
    }

    fn read(bytes: &[u8; Self::LEN]) -> Self {
        let ([life, agreement], keep_alive) = (bytes.as_chunks::<8>().0, bytes.last_chunk()) else {
            unreachable!("two numbers of eight bytes and one of four")
        };
        Self {
            life: u64::from_le_bytes(*life),
            agreement: u64::from_le_bytes(*agreement),
            keep_alive: keep_alive.map_or(0, |bytes| u32::from_le_bytes(*bytes)) & 0xff_ffff,
        }
    }
}

impl Greeting {
    const LEN: usize = Terms::LEN + 8;

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        self.terms.write(&mut bytes);
        // The longest time between keep-alives takes three bytes of four.
        bytes[Terms::LEN - 1] = self.line.number();
        bytes[Terms::LEN..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let terms = bytes.first_chunk().expect("a greeting begins with them");
        let number = bytes.last_chunk().expect("a greeting ends with it");
        let line = LineId::new(bytes[Terms::LEN - 1]).unwrap_or_default();
        Self { terms: Terms::read(terms), line, number: u64::from_le_bytes(*number) }
    }
}

impl Welcome {
    const LEN: usize = Terms::LEN + COOKIE_LEN;

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        self.terms.write(&mut bytes);
        bytes[Terms::LEN..].copy_from_slice(&self.cookie);
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let terms = bytes.first_chunk().expect("a welcome begins with them");
        let cookie = bytes.last_chunk().expect("a welcome ends with it");
        Self { terms: Terms::read(terms), cookie: *cookie }
    }
}

/// The two keys of a session, from one side's point of view.
pub(super) struct Keys {
    pub(super) seal: [u8; KEY_LEN],
    pub(super) open: [u8; KEY_LEN],
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.seal.zeroize();
        self.open.zeroize();
    }
}

/// A Noise message that was not made for us, or not by whom it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unauthentic;

impl From<snow::Error> for Unauthentic {
    fn from(_: snow::Error) -> Self {
        Self
    }
}

/// An initiation that was sent and not yet answered.
pub(super) struct Initiation {
    noise: HandshakeState,
    /// Our index of the session that it asks for.
    pub(super) local: u32,
    /// The line that it left over.
    pub(super) line: LineId,
    /// Our ephemeral public key.
    pub(super) ephemeral: [u8; EPHEMERAL_LEN],
    /// The seal of the datagram that it left in.
    pub(super) seal: [u8; SEAL_LEN],
    /// Whether it showed a cookie, so that an answer is to be expected.
    pub(super) has_cookie: bool,
    /// How many challenges in a row it follows, each of which the one before got; [`Initiation::CHALLENGED`] once it got one itself.
    pub(super) follows: u8,
}

impl Initiation {
    /// It was challenged, and whatever else challenges it is not heard.
    pub(super) const CHALLENGED: u8 = u8::MAX;

    /// Starts a handshake; the Noise message to send.
    pub(super) fn new(
        ends: &Ends,
        random: &mut Random,
        local: u32,
        greeting: Greeting,
    ) -> (Self, [u8; INITIATION_LEN]) {
        let noise = builder(&ends.own, random)
            .remote_public_key(ends.peer.as_bytes())
            .and_then(|builder| builder.psk(PSK_PLACE, ends.preshared.as_bytes()))
            .and_then(Builder::build_initiator);
        let mut noise = noise.expect("the pattern and its parameters are constants");
        let mut message = [0; INITIATION_LEN];
        // A degenerate public key is no key: `PublicKey` refuses it, and Noise does not mind.
        let len =
            noise.write_message(&greeting.to_bytes(), &mut message).expect("the buffer fits the message");
        debug_assert_eq!(len, INITIATION_LEN);
        let ephemeral = *message.first_chunk().expect("the message starts with it");
        let line = greeting.line;
        (Self { noise, local, line, ephemeral, seal: [0; SEAL_LEN], has_cookie: false, follows: 0 }, message)
    }

    /// Completes the handshake with the peer's answer.
    pub(super) fn finish(&mut self, message: &[u8; RESPONSE_LEN]) -> Result<(Keys, Welcome), Unauthentic> {
        let mut welcome = [0; Welcome::LEN];
        self.noise.read_message(message, &mut welcome)?;
        let (seal, open) = self.noise.dangerously_get_raw_split();
        Ok((Keys { seal, open }, Welcome::from_bytes(&welcome)))
    }
}

impl fmt::Debug for Initiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiation").field("local", &self.local).finish_non_exhaustive()
    }
}

/// An initiation for us, of which the static key is proved; the pre-shared one is not yet.
pub(super) struct Request {
    noise: Box<HandshakeState>,
    /// Who calls.
    pub(super) key: PublicKey,
    pub(super) greeting: Greeting,
    pub(super) ephemeral: [u8; EPHEMERAL_LEN],
}

impl Request {
    /// Reads an initiation: two operations on the curve, and two for our own keys.
    pub(super) fn read(
        own: &PrivateKey,
        random: &mut Random,
        message: &[u8; INITIATION_LEN],
    ) -> Result<Self, Unauthentic> {
        let noise = builder(own, random).build_responder();
        let mut noise = noise.expect("the pattern and its parameters are constants");
        let mut greeting = [0; Greeting::LEN];
        noise.read_message(message, &mut greeting)?;
        let key = noise.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(Unauthentic)?;
        Ok(Self {
            noise: Box::new(noise),
            key: PublicKey::from_bytes(key),
            greeting: Greeting::from_bytes(&greeting),
            ephemeral: *message.first_chunk().expect("the message starts with it"),
        })
    }

    /// Answers it: the session's keys and the Noise message to send.
    pub(super) fn answer(
        mut self,
        preshared: &PresharedKey,
        welcome: Welcome,
    ) -> Result<(Keys, [u8; RESPONSE_LEN]), Unauthentic> {
        self.noise.set_psk(PSK_PLACE.into(), preshared.as_bytes())?;
        let mut answer = [0; RESPONSE_LEN];
        // Fails for a degenerate ephemeral key, which no honest peer sends.
        self.noise.write_message(&welcome.to_bytes(), &mut answer)?;
        let (open, seal) = self.noise.dangerously_get_raw_split();
        Ok((Keys { seal, open }, answer))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key).finish_non_exhaustive()
    }
}

fn builder<'a>(own: &'a PrivateKey, random: &mut Random) -> Builder<'a> {
    let resolver = FallbackResolver::new(Box::new(Drawn(random.draw())), Box::new(DefaultResolver));
    Builder::with_resolver(PATTERN.parse().expect("the pattern is a constant"), Box::new(resolver))
        .prologue(PROLOGUE)
        .and_then(|builder| builder.local_private_key(own.as_bytes()))
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
