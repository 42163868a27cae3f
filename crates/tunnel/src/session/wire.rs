//! The datagrams that two gateways exchange.
//!
//! | byte 0 | datagram | after it |
//! |---|---|---|
//! | 1 | initiation | head, sender index (4), number (8), cookie (40), Noise message (48), seal (32) |
//! | 2 | response | head, sender index (4), receiver index (4), cookie (40), Noise message (48), seal (32) |
//! | 3 | challenge | head, receiver index (4), cookie (40), seal (32) |
//! | 4 | sealed | 3 zero bytes, receiver index (4), counter (8), encrypted kind (1) and payload, tag (16) |
//!
//! The head is 3 zero bytes, the sender's life (8) and what it wants to agree on (8). Numbers are little-endian, as in
//! WireGuard, whose layout this follows. A seal covers all that is before it. The first 16 bytes of a sealed
//! datagram are authenticated with the rest. What [kind](Kind) it is, is encrypted: whoever sees datagrams cannot drop those that keep a
//! session or a measurement alive and let the others pass.

use super::admission::Seal;
use super::cookies::Cookie;
use super::handshake::NOISE_LEN;

/// Bytes of a sealed datagram that are not encrypted.
pub(super) const CLEAR_LEN: usize = 16;
/// Bytes before the payload of a sealed datagram, its encrypted kind among them.
pub const HEADER_LEN: usize = CLEAR_LEN + 1;
/// Bytes of the authentication tag after it.
pub const TAG_LEN: usize = 16;
/// Bytes that a session adds to a payload.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const CHALLENGE: u8 = 3;
const SEALED: u8 = 4;
/// Bytes of a handshake datagram's seal.
pub(super) const SEAL_LEN: usize = 32;

/// What each handshake datagram says about its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Random, drawn when the daemon starts: another number is another life, without the link's old state.
    pub(super) life: u64,
    /// A hash of what both ends must agree on, the link protocol among it.
    pub(super) agreement: u64,
}

/// A handshake datagram's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Initiation { sender: u32, number: u64, cookie: &'a Cookie, noise: &'a [u8; NOISE_LEN] },
    Response { sender: u32, receiver: u32, cookie: &'a Cookie, noise: &'a [u8; NOISE_LEN] },
    Challenge { receiver: u32, cookie: &'a Cookie },
}

/// A datagram, told apart by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    /// `seal` is on `sealed`, if a holder of the key made it.
    Handshake { head: Head, message: Message<'a>, sealed: &'a [u8], seal: &'a [u8; SEAL_LEN] },
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
            INITIATION | RESPONSE | CHALLENGE => {
                let (sealed, seal) = bytes.split_last_chunk().ok_or(Unreadable::Truncated)?;
                let (head, message) = read_handshake(kind, &mut reader)?;
                // What is left is the seal, which must be where it was taken from.
                reader.take::<SEAL_LEN>()?;
                let whole = reader.0.is_empty();
                if whole {
                    Ok(Self::Handshake { head, message, sealed, seal })
                } else {
                    Err(Unreadable::Unknown)
                }
            }
            SEALED if bytes.len() < OVERHEAD => Err(Unreadable::Truncated),
            SEALED => Ok(Self::Sealed { receiver: reader.u32()?, counter: reader.u64()? }),
            _ => Err(Unreadable::Unknown),
        }
    }
}

fn read_handshake<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<(Head, Message<'a>), Unreadable> {
    let head = Head { life: reader.u64()?, agreement: reader.u64()? };
    let message = match kind {
        INITIATION => Message::Initiation {
            sender: reader.u32()?,
            number: reader.u64()?,
            cookie: reader.take()?,
            noise: reader.take()?,
        },
        RESPONSE => Message::Response {
            sender: reader.u32()?,
            receiver: reader.u32()?,
            cookie: reader.take()?,
            noise: reader.take()?,
        },
        _ => Message::Challenge { receiver: reader.u32()?, cookie: reader.take()? },
    };
    Ok((head, message))
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
    /// The datagram, sealed.
    pub(super) fn write(self, head: Head, seal: &Seal) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(160);
        let mut put = |field: &[u8]| bytes.extend_from_slice(field);
        let kind = match self {
            Self::Initiation { .. } => INITIATION,
            Self::Response { .. } => RESPONSE,
            Self::Challenge { .. } => CHALLENGE,
        };
        put(&[kind, 0, 0, 0]);
        put(&head.life.to_le_bytes());
        put(&head.agreement.to_le_bytes());
        match self {
            Self::Initiation { sender, number, cookie, noise } => {
                put(&sender.to_le_bytes());
                put(&number.to_le_bytes());
                put(cookie);
                put(noise);
            }
            Self::Response { sender, receiver, cookie, noise } => {
                put(&sender.to_le_bytes());
                put(&receiver.to_le_bytes());
                put(cookie);
                put(noise);
            }
            Self::Challenge { receiver, cookie } => {
                put(&receiver.to_le_bytes());
                put(cookie);
            }
        }
        seal.append(&mut bytes);
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
    use crate::key::PresharedKey;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let seal = Seal::new(&PresharedKey::from_bytes([1; 32]));
        let head = Head { life: 3, agreement: 4 };
        let (cookie, noise) = (&[5; COOKIE_LEN], &[6; NOISE_LEN]);
        for message in [
            Message::Initiation { sender: 7, number: 8, cookie, noise },
            Message::Response { sender: 7, receiver: 9, cookie, noise },
            Message::Challenge { receiver: 9, cookie },
        ] {
            let bytes = message.write(head, &seal);
            let Ok(Datagram::Handshake { head: got, message: read, sealed, seal: tag }) =
                Datagram::parse(&bytes)
            else {
                panic!("{message:?}");
            };
            assert_eq!((got, read, seal.is_on(sealed, tag)), (head, message, true));
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
