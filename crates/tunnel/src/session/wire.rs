//! The datagrams that two gateways exchange.
//!
//! | byte 0 | datagram | after it |
//! |---|---|---|
//! | 1 | initiation | sender index (4), cookie (44), Noise message (124), seal (32) |
//! | 2 | response | sender index (4), receiver index (4), Noise message (112), seal (32) |
//! | 3 | challenge | receiver index (4), cookie (44), seal (32) |
//! | 4 | sealed | receiver index (4), counter (8), encrypted kind (1) and payload, tag (16) |
//! | 5 | denial | receiver index (4) and counter (8) of a sealed datagram whose session is unknown, seal (32) |
//!
//! The highest byte of a counter is the number of the line that the datagram goes over.
//!
//! After byte 0 come 3 zero bytes. Numbers are little-endian, as in WireGuard, whose layout this follows. A seal covers all that is before
//! it, and that of a challenge the seal of the initiation, so that it challenges no other. The first 16 bytes of a sealed datagram are
//! authenticated with the rest. What [kind](crate::control::Kind) it is, is encrypted: whoever sees datagrams cannot drop those that keep a
//! session or a measurement alive and let the others pass. Nothing in clear is the same in two sessions.

use super::cookies::Cookie;
use super::handshake::{INITIATION_LEN, RESPONSE_LEN};
use super::seal::Seal;

/// Bytes of a sealed datagram that are not encrypted.
pub(super) const CLEAR_LEN: usize = 16;
/// Bytes before the payload of a sealed datagram, its encrypted kind among them.
pub const HEADER_LEN: usize = CLEAR_LEN + 1;
/// Bytes of the authentication tag after it.
pub const TAG_LEN: usize = 16;
/// Bytes that a session adds to a payload.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

const INITIATION: u8 = 1;
const DENIAL: u8 = 5;

/// Where datagrams name their receiver, for a kernel that is to tell them apart.
pub mod layout {
    /// First byte of a response.
    pub const RESPONSE: u8 = 2;
    /// First byte of a challenge.
    pub const CHALLENGE: u8 = 3;
    /// First byte of a sealed datagram.
    pub const SEALED: u8 = 4;
    /// Where the receiver's index begins, lowest byte first.
    pub const RECEIVER_AT: usize = 4;
    /// Where the receiver's index begins in a response, behind its sender's; lowest byte first.
    pub const RESPONSE_RECEIVER_AT: usize = 8;
}

use layout::{CHALLENGE, RECEIVER_AT, RESPONSE, RESPONSE_RECEIVER_AT, SEALED};

/// Bytes of a handshake datagram's seal.
pub(super) const SEAL_LEN: usize = 32;

/// A handshake datagram's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Initiation {
        sender: u32,
        cookie: &'a Cookie,
        noise: &'a [u8; INITIATION_LEN],
    },
    Response {
        sender: u32,
        receiver: u32,
        noise: &'a [u8; RESPONSE_LEN],
    },
    Challenge {
        receiver: u32,
        cookie: &'a Cookie,
    },
    /// Of a sealed datagram, which it names.
    Denial {
        receiver: u32,
        counter: u64,
    },
}

/// A datagram, told apart by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    /// `seal` is on `sealed`, if somebody made it who knows the responder.
    Handshake { message: Message<'a>, sealed: &'a [u8], seal: &'a [u8; SEAL_LEN] },
    /// Encrypted, under the keys of a session.
    Sealed { receiver: u32, counter: u64 },
}

/// Why bytes are no datagram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Truncated,
    Unknown,
}

impl<'a> Datagram<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader(bytes);
        let [kind, 0, 0, 0] = *reader.take()? else { return Err(Unreadable::Unknown) };
        match kind {
            INITIATION | RESPONSE | CHALLENGE | DENIAL => {
                let (sealed, seal) = bytes.split_last_chunk().ok_or(Unreadable::Truncated)?;
                let message = read_handshake(kind, &mut reader)?;
                // What is left is the seal, which must be where it was taken from.
                reader.take::<SEAL_LEN>()?;
                let whole = reader.0.is_empty();
                if whole { Ok(Self::Handshake { message, sealed, seal }) } else { Err(Unreadable::Unknown) }
            }
            SEALED if bytes.len() < OVERHEAD => Err(Unreadable::Truncated),
            SEALED => Ok(Self::Sealed { receiver: reader.u32()?, counter: reader.u64()? }),
            _ => Err(Unreadable::Unknown),
        }
    }
}

/// Whether a datagram wants to be an initiation.
pub(crate) fn initiates(datagram: &[u8]) -> bool {
    datagram.first() == Some(&INITIATION)
}

/// Whether a datagram wants to be a denial: its index is its sender's, so it may be for any of this gateway's workers.
#[must_use]
pub fn is_denial(datagram: &[u8]) -> bool {
    datagram.first() == Some(&DENIAL)
}

/// The index that a denial says is unknown, if it is one.
pub(crate) fn denied(datagram: &[u8]) -> Option<u32> {
    let index = datagram.get(RECEIVER_AT..)?.first_chunk();
    index.filter(|_| datagram[0] == DENIAL).map(|bytes| u32::from_le_bytes(*bytes))
}

/// The index of the session that any other datagram is for, if it is long enough to have one.
pub(crate) fn receiver(datagram: &[u8]) -> Option<u32> {
    let at = match *datagram.first()? {
        RESPONSE => RESPONSE_RECEIVER_AT,
        CHALLENGE | SEALED => RECEIVER_AT,
        _ => return None,
    };
    datagram.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn read_handshake<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Message<'a>, Unreadable> {
    Ok(match kind {
        INITIATION => {
            Message::Initiation { sender: reader.u32()?, cookie: reader.take()?, noise: reader.take()? }
        }
        RESPONSE => {
            Message::Response { sender: reader.u32()?, receiver: reader.u32()?, noise: reader.take()? }
        }
        CHALLENGE => Message::Challenge { receiver: reader.u32()?, cookie: reader.take()? },
        _ => Message::Denial { receiver: reader.u32()?, counter: reader.u64()? },
    })
}

/// Takes fields from the front of a datagram.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Unreadable> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Unreadable::Truncated)?;
        self.0 = rest;
        Ok(field)
    }

    fn u32(&mut self) -> Result<u32, Unreadable> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Result<u64, Unreadable> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

impl Message<'_> {
    /// The datagram, sealed; a challenge as an answer to the initiation with the seal `answered`.
    pub(super) fn write(self, seal: &Seal, answered: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + 4 + 44 + INITIATION_LEN + SEAL_LEN);
        let mut put = |field: &[u8]| bytes.extend_from_slice(field);
        let kind = match self {
            Self::Initiation { .. } => INITIATION,
            Self::Response { .. } => RESPONSE,
            Self::Challenge { .. } => CHALLENGE,
            Self::Denial { .. } => DENIAL,
        };
        put(&[kind, 0, 0, 0]);
        match self {
            Self::Initiation { sender, cookie, noise } => {
                put(&sender.to_le_bytes());
                put(cookie);
                put(noise);
            }
            Self::Response { sender, receiver, noise } => {
                put(&sender.to_le_bytes());
                put(&receiver.to_le_bytes());
                put(noise);
            }
            Self::Challenge { receiver, cookie } => {
                put(&receiver.to_le_bytes());
                put(cookie);
            }
            Self::Denial { receiver, counter } => {
                put(&receiver.to_le_bytes());
                put(&counter.to_le_bytes());
            }
        }
        seal.append(&mut bytes, answered);
        bytes
    }
}

pub(super) fn sealed_header(receiver: u32, counter: u64) -> [u8; CLEAR_LEN] {
    let mut header = [0; CLEAR_LEN];
    header[0] = SEALED;
    header[4..8].copy_from_slice(&receiver.to_le_bytes());
    header[8..].copy_from_slice(&counter.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::super::cookies::COOKIE_LEN;
    use super::*;
    use crate::key::PublicKey;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let seal = Seal::of(&PublicKey::from_bytes([1; 32]));
        let cookie = &[5; COOKIE_LEN];
        for message in [
            Message::Initiation { sender: 7, cookie, noise: &[6; INITIATION_LEN] },
            Message::Response { sender: 7, receiver: 9, noise: &[6; RESPONSE_LEN] },
            Message::Challenge { receiver: 9, cookie },
            Message::Denial { receiver: 9, counter: u64::MAX - 1 },
        ] {
            let bytes = message.write(&seal, b"answered");
            let Ok(Datagram::Handshake { message: read, sealed, seal: tag }) = Datagram::parse(&bytes) else {
                panic!("{message:?}");
            };
            assert_eq!((read, seal.is_on(sealed, b"answered", tag)), (message, true));
            assert!(!seal.is_on(sealed, b"another", tag));
            assert!(!Seal::of(&PublicKey::from_bytes([2; 32])).is_on(sealed, b"answered", tag));
            for len in 0..bytes.len() {
                assert_eq!(
                    Datagram::parse(&bytes[..len]),
                    Err(Unreadable::Truncated),
                    "{message:?}, {len} bytes"
                );
            }
            assert_eq!(Datagram::parse(&[&bytes[..], &[0]].concat()), Err(Unreadable::Unknown));
        }
        let mut datagram = sealed_header(3, u64::MAX - 1).to_vec();
        assert_eq!(Datagram::parse(&datagram), Err(Unreadable::Truncated));
        datagram.resize(OVERHEAD, 0);
        let want = Datagram::Sealed { receiver: 3, counter: u64::MAX - 1 };
        assert_eq!(Datagram::parse(&datagram), Ok(want));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..6) {
            let _ = Datagram::parse(&bytes);
            let _ = Datagram::parse(&[&[kind, 0, 0, 0], &bytes[..]].concat());
        }
    }
}
