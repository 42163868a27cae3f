//! The datagrams that two gateways exchange.
//!
//! | byte 0 | datagram | after it |
//! |---|---|---|
//! | 1 | initiation | 3 zero bytes, sender index (4), Noise message |
//! | 2 | response | 3 zero bytes, sender index (4), receiver index (4), Noise message |
//! | 3 | hint: "I do not know this index" | 3 zero bytes, the index (4) |
//! | 4 | data | 3 zero bytes, receiver index (4), counter (8), sealed payload, tag (16) |
//! | 5 | control | the same; its payload is a kind (1) and a body |
//!
//! Numbers are little-endian, as in WireGuard, whose layout this follows. The first 16 bytes of a sealed
//! datagram are authenticated with it, so data cannot pass for control. Kinds below 16 are the session's own.

/// Bytes before the payload of a sealed datagram.
pub const DATA_HEADER_LEN: usize = 16;
/// Bytes of the authentication tag after it.
pub const TAG_LEN: usize = 16;
/// Bytes that a session adds to a payload.
pub const OVERHEAD: usize = DATA_HEADER_LEN + TAG_LEN;

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const HINT: u8 = 3;
const DATA: u8 = 4;
const CONTROL: u8 = 5;

/// The first kind of control datagram that is the daemon's; those below are the session's own.
pub const FIRST_DAEMON_KIND: u8 = 16;

/// What a sealed datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    Data,
    Control,
}

/// A datagram, told apart by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    Initiation { sender: u32, noise: &'a [u8] },
    Response { sender: u32, receiver: u32, noise: &'a [u8] },
    Hint { index: u32 },
    Sealed { what: Sealed, receiver: u32, counter: u64 },
}

/// Why bytes are no datagram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Truncated,
    Unknown,
}

impl<'a> Datagram<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let Some(head) = bytes.first_chunk::<4>() else { return Err(Unreadable::Truncated) };
        if head[1..] != [0; 3] {
            return Err(Unreadable::Unknown);
        }
        let index = |at: usize| {
            let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or(Unreadable::Truncated)?;
            Ok(u32::from_le_bytes(*bytes))
        };
        match head[0] {
            INITIATION => Ok(Self::Initiation { sender: index(4)?, noise: &bytes[8..] }),
            RESPONSE => Ok(Self::Response { sender: index(4)?, receiver: index(8)?, noise: &bytes[12..] }),
            HINT if bytes.len() > 8 => Err(Unreadable::Unknown),
            HINT => Ok(Self::Hint { index: index(4)? }),
            DATA | CONTROL if bytes.len() < OVERHEAD => Err(Unreadable::Truncated),
            kind @ (DATA | CONTROL) => {
                let what = if kind == DATA { Sealed::Data } else { Sealed::Control };
                let counter = u64::from(index(8)?) | u64::from(index(12)?) << 32;
                Ok(Self::Sealed { what, receiver: index(4)?, counter })
            }
            _ => Err(Unreadable::Unknown),
        }
    }
}

pub(super) fn initiation(sender: u32, noise: &[u8]) -> Vec<u8> {
    [&[INITIATION, 0, 0, 0], &sender.to_le_bytes(), noise].concat()
}

pub(super) fn response(sender: u32, receiver: u32, noise: &[u8]) -> Vec<u8> {
    [&[RESPONSE, 0, 0, 0], &sender.to_le_bytes(), &receiver.to_le_bytes(), noise].concat()
}

pub(super) fn hint(index: u32) -> Vec<u8> {
    [[HINT, 0, 0, 0], index.to_le_bytes()].concat()
}

pub(super) fn sealed_header(what: Sealed, receiver: u32, counter: u64) -> [u8; DATA_HEADER_LEN] {
    let mut header = [0; DATA_HEADER_LEN];
    header[0] = if what == Sealed::Data { DATA } else { CONTROL };
    header[4..8].copy_from_slice(&receiver.to_le_bytes());
    header[8..].copy_from_slice(&counter.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            Datagram::parse(&initiation(7, b"noise")),
            Ok(Datagram::Initiation { sender: 7, noise: b"noise" })
        );
        assert_eq!(
            Datagram::parse(&response(7, 9, b"noise")),
            Ok(Datagram::Response { sender: 7, receiver: 9, noise: b"noise" })
        );
        assert_eq!(Datagram::parse(&hint(5)), Ok(Datagram::Hint { index: 5 }));
        for what in [Sealed::Data, Sealed::Control] {
            let mut datagram = sealed_header(what, 3, u64::MAX - 1).to_vec();
            assert_eq!(Datagram::parse(&datagram), Err(Unreadable::Truncated));
            datagram.resize(OVERHEAD, 0);
            let want = Datagram::Sealed { what, receiver: 3, counter: u64::MAX - 1 };
            assert_eq!(Datagram::parse(&datagram), Ok(want));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0_u8..6) {
            let _ = Datagram::parse(&bytes);
            let _ = Datagram::parse(&[&[kind, 0, 0, 0], &bytes[..]].concat());
        }
    }
}
