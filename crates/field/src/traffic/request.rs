//! The request that opens every connection of test traffic, and the octet that answers it.
//!
//! 60 bytes, numbers big-endian: magic `LHTR`, version, model, direction, zero, rate (8 bytes, bits per
//! second), size (8 bytes), duration (8 bytes, nanoseconds), length of the request itself (8 bytes), stream
//! (4 bytes), and the name of a congestion control (16 bytes, padded with zeros). What a model does not use is
//! zero.

use base::wire::record;
use base::{Duration, Rate};

/// Bytes of a request.
pub const REQUEST_LEN: usize = 60;
const MAGIC: [u8; 4] = *b"LHTR";
const VERSION: u8 = 1;
/// Linux's `TCP_CA_NAME_MAX`, with the zero at the end.
const CONGESTION_LEN: usize = 16;
/// The longest stream, request or reply that a server takes part in, in bytes: 1 TB.
pub const LONGEST_TRANSFER: u64 = 1_000_000_000_000;
/// The longest record, in bytes: 16 MiB.
pub const LONGEST_RECORD: u32 = 16 << 20;
/// For how long a stream may go on.
pub const LONGEST_DURATION: Duration = Duration::from_secs(24 * 3600);
/// Between two records: half of what a peer's patience is, unless told otherwise.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The fastest rate-controlled stream: 100 Gbit/s.
pub const FASTEST: Rate = Rate::from_bps(100_000_000_000);

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the server to the client.
    #[default]
    Down,
    /// From the client to the server.
    Up,
}

/// When a bulk transfer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// After so many bytes, record headers among them.
    Size(u64),
    /// After so long, by the sender's clock.
    Duration(Duration),
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Records as fast as TCP takes them.
    Bulk {
        /// Which way.
        direction: Direction,
        /// For how long.
        extent: Extent,
    },
    /// A record whenever it is due.
    Rate {
        /// Which way.
        direction: Direction,
        /// Of whole records.
        rate: Rate,
        /// Bytes of each.
        record: u32,
        /// Records that are due later are not sent.
        duration: Duration,
    },
    /// A request, a reply, and the end of the connection.
    Transaction {
        /// Bytes from client to server, this header among them.
        request: u64,
        /// Bytes from server to client, the answering octet among them.
        reply: u64,
    },
    /// Readings of the server's clock.
    Clock,
}

/// A connection's opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the connection is for.
    pub model: Model,
    /// The stream of [`base::content::Content`]; a transaction's reply is of the stream `stream ^ 1`.
    pub stream: u32,
    /// What the server's kernel is to control congestion with.
    pub congestion: Option<Congestion>,
}

/// The name of a congestion control: 1 to 15 of a-z, 0-9, `-` and `_`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Congestion([u8; CONGESTION_LEN]);

/// A text that names no congestion control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not the name of a congestion control; allowed are 1 to 15 of a-z, 0-9, - and _")]
pub struct NotACongestion(String);

/// Why a request is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum RequestError {
    /// Something else speaks.
    #[error("it does not start like a request")]
    Magic,
    /// Another version.
    #[error("version {0}; allowed is {VERSION}")]
    Version(u8),
    /// A model that is not known.
    #[error("model {0}; allowed are 1 to 4")]
    Model(u8),
    /// Neither down nor up, or a byte that has to be zero.
    #[error("direction {0}; allowed are 0 and 1")]
    Direction(u8),
    /// A size that the model does not have.
    #[error("a size of {0} bytes")]
    Size(u64),
    /// A rate of zero, or beyond [`FASTEST`].
    #[error("a rate of {0} bit/s; allowed are 1 bit/s to 100 Gbit/s")]
    Rate(u64),
    /// No duration, or beyond [`LONGEST_DURATION`].
    #[error("a duration of {0} ns; allowed are 1 ns to 24 h")]
    Duration(u64),
    /// Records too far apart.
    #[error("a record every {0}; allowed are up to {LONGEST_PAUSE}")]
    Pause(Duration),
    /// A request shorter than its header.
    #[error("a request of {0} bytes; allowed are {REQUEST_LEN} B to 1 TB")]
    Request(u64),
    /// A name that no congestion control has.
    #[error("an invalid name of a congestion control")]
    Congestion,
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It does what was asked.
    Accepted,
    /// It serves as many as it may.
    Busy,
    /// It does not understand.
    Refused,
    /// Its kernel does not let it use the congestion control.
    NoSuchCongestion,
}

impl Request {
    /// The bytes of the request.
    #[must_use]
    pub fn emit(&self) -> [u8; REQUEST_LEN] {
        let (model, direction, [rate, size, duration, request]) = match self.model {
            Model::Bulk { direction, extent: Extent::Size(size) } => (1, direction, [0, size, 0, 0]),
            Model::Bulk { direction, extent: Extent::Duration(duration) } => {
                (1, direction, [0, 0, duration.as_nanos(), 0])
            }
            Model::Rate { direction, rate, record, duration } => {
                (2, direction, [rate.as_bps(), record.into(), duration.as_nanos(), 0])
            }
            Model::Transaction { request, reply } => (3, Direction::Down, [0, reply, 0, request]),
            Model::Clock => (4, Direction::Down, [0; 4]),
        };
        let mut bytes = [0; REQUEST_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..7].copy_from_slice(&[VERSION, model, u8::from(direction == Direction::Up)]);
        for (place, number) in bytes[8..40].chunks_exact_mut(8).zip([rate, size, duration, request]) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes[40..44].copy_from_slice(&self.stream.to_be_bytes());
        if let Some(congestion) = self.congestion {
            bytes[44..].copy_from_slice(&congestion.0);
        }
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// What no client of this version asks for.
    pub fn parse(bytes: &[u8; REQUEST_LEN]) -> Result<Self, RequestError> {
        if bytes[..4] != MAGIC {
            return Err(RequestError::Magic);
        }
        if bytes[4] != VERSION {
            return Err(RequestError::Version(bytes[4]));
        }
        let direction = match (bytes[6], bytes[7]) {
            (0, 0) => Direction::Down,
            (1, 0) => Direction::Up,
            (other, 0) | (_, other) => return Err(RequestError::Direction(other)),
        };
        let number = |at: usize| bytes[at..at + 8].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let (rate, size, duration, request) = (number(8), number(16), number(24), number(32));
        let model = match bytes[5] {
            1 if duration == 0 => Model::Bulk { direction, extent: Extent::Size(size) },
            1 if size == 0 => {
                Model::Bulk { direction, extent: Extent::Duration(Duration::from_nanos(duration)) }
            }
            1 => return Err(RequestError::Duration(duration)),
            2 => Model::Rate {
                direction,
                rate: Rate::from_bps(rate),
                record: u32::try_from(size).map_err(|_| RequestError::Size(size))?,
                duration: Duration::from_nanos(duration),
            },
            3 => Model::Transaction { request, reply: size },
            4 => Model::Clock,
            other => return Err(RequestError::Model(other)),
        };
        model.check()?;
        let stream = u32::from_be_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]);
        Ok(Self { model, stream, congestion: Congestion::parse(&bytes[44..])? })
    }
}

impl Model {
    /// Whether its numbers are within what is allowed.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), RequestError> {
        // A record without content is the end of a stream.
        let shortest = record::HEADER_LEN as u64 + 1;
        let check_duration = |duration: Duration| {
            let allowed = !duration.is_zero() && duration <= LONGEST_DURATION;
            allowed.then_some(()).ok_or(RequestError::Duration(duration.as_nanos()))
        };
        match *self {
            Self::Bulk { extent: Extent::Size(size), .. }
                if !(shortest..=LONGEST_TRANSFER).contains(&size) =>
            {
                Err(RequestError::Size(size))
            }
            Self::Bulk { extent: Extent::Duration(duration), .. } => check_duration(duration),
            Self::Rate { rate, .. } if rate.as_bps() == 0 || rate > FASTEST => {
                Err(RequestError::Rate(rate.as_bps()))
            }
            Self::Rate { record, .. } if u64::from(record) < shortest || record > LONGEST_RECORD => {
                Err(RequestError::Size(record.into()))
            }
            Self::Rate { rate, record, .. } if rate.time_for(u64::from(record) * 8) > LONGEST_PAUSE => {
                Err(RequestError::Pause(rate.time_for(u64::from(record) * 8)))
            }
            Self::Rate { duration, .. } => check_duration(duration),
            Self::Transaction { request, .. }
                if request < REQUEST_LEN as u64 || request > LONGEST_TRANSFER =>
            {
                Err(RequestError::Request(request))
            }
            Self::Transaction { reply, .. } if !(1..=LONGEST_TRANSFER).contains(&reply) => {
                Err(RequestError::Size(reply))
            }
            _ => Ok(()),
        }
    }
}

impl Congestion {
    fn parse(bytes: &[u8]) -> Result<Option<Self>, RequestError> {
        let len = bytes.iter().position(|&byte| byte == 0).ok_or(RequestError::Congestion)?;
        if len == 0 && bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let name = core::str::from_utf8(&bytes[..len]).map_err(|_| RequestError::Congestion)?;
        let parsed = name.parse().map_err(|_| RequestError::Congestion)?;
        // Nothing hides behind the name.
        if bytes[len..].iter().all(|&byte| byte == 0) {
            Ok(Some(parsed))
        } else {
            Err(RequestError::Congestion)
        }
    }

    /// The name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(CONGESTION_LEN);
        &self.0[..len]
    }
}

impl core::str::FromStr for Congestion {
    type Err = NotACongestion;
    fn from_str(text: &str) -> Result<Self, NotACongestion> {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        if text.is_empty() || text.len() >= CONGESTION_LEN || !text.bytes().all(allowed) {
            return Err(NotACongestion(text.to_owned()));
        }
        let mut name = [0; CONGESTION_LEN];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

impl core::fmt::Display for Congestion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl core::fmt::Debug for Congestion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl Answer {
    /// The octet on the wire.
    #[must_use]
    pub const fn octet(self) -> u8 {
        match self {
            Self::Accepted => b'+',
            Self::Busy => b'b',
            Self::Refused => b'-',
            Self::NoSuchCongestion => b'c',
        }
    }

    /// What the octet says, if anything.
    #[must_use]
    pub const fn of(octet: u8) -> Option<Self> {
        match octet {
            b'+' => Some(Self::Accepted),
            b'b' => Some(Self::Busy),
            b'-' => Some(Self::Refused),
            b'c' => Some(Self::NoSuchCongestion),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bulk(size: u64) -> Request {
        let model = Model::Bulk { direction: Direction::Up, extent: Extent::Size(size) };
        Request { model, stream: 7, congestion: Some("cubic".parse().unwrap()) }
    }

    #[test]
    fn what_is_asked_is_understood() {
        let rate = Model::Rate {
            direction: Direction::Down,
            rate: Rate::from_bps(50_000),
            record: 1000,
            duration: Duration::from_secs(60),
        };
        let extent = Extent::Duration(Duration::from_secs(1));
        let timed = Model::Bulk { direction: Direction::Down, extent };
        for model in [bulk(13).model, timed, rate, Model::Transaction { request: 60, reply: 1 }, Model::Clock]
        {
            for congestion in [None, Some("a-name_of15byte".parse().unwrap())] {
                let request = Request { model, stream: 1 << 30, congestion };
                assert_eq!(Request::parse(&request.emit()), Ok(request));
            }
        }
    }

    #[test]
    fn what_no_client_asks_for_is_named() {
        let with = |at: usize, byte: u8| {
            let mut bytes = bulk(1000).emit();
            bytes[at] = byte;
            Request::parse(&bytes).unwrap_err()
        };
        assert_eq!(with(0, b'G'), RequestError::Magic);
        assert_eq!(with(4, 2), RequestError::Version(2));
        assert_eq!(with(5, 0), RequestError::Model(0));
        assert_eq!(with(6, 2), RequestError::Direction(2));
        assert_eq!(with(7, 9), RequestError::Direction(9));
        assert_eq!(with(24, 1), RequestError::Duration(1 << 56));
        assert_eq!(with(44, b'/'), RequestError::Congestion);
        assert_eq!(with(44, 0), RequestError::Congestion);
        assert_eq!(with(59, b'x'), RequestError::Congestion);
        assert_eq!(Request::parse(&bulk(12).emit()), Err(RequestError::Size(12)));
        let model = Model::Transaction { request: 59, reply: 1 };
        let request = Request { model, stream: 0, congestion: None };
        assert_eq!(Request::parse(&request.emit()), Err(RequestError::Request(59)));
    }

    proptest! {
        #[test]
        fn what_is_taken_is_said_the_same_way(mut bytes in prop::array::uniform32(any::<u8>()), zeros in any::<u32>()) {
            let mut request = bulk(1000).emit();
            // Most of the flips hit fields whose every value is allowed, or take a byte back to zero.
            for (at, byte) in bytes.iter_mut().enumerate() {
                request[at + 5] = if zeros >> at & 1 == 1 { 0 } else { *byte };
            }
            request[5] %= 5;
            request[6] %= 2;
            request[7] = 0;
            if let Ok(parsed) = Request::parse(&request) {
                prop_assert_eq!(Request::parse(&parsed.emit()), Ok(parsed));
            }
        }
    }
}
