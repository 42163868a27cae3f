//! Why datagrams are dropped, and under which name that is counted.

use super::transport::Refused;
use super::wire::Unreadable;

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Too short for what it claims to be.
    #[error("truncated")]
    Truncated,
    /// No datagram of ours.
    #[error("unknown type")]
    UnknownType,
    /// A session that does not exist.
    #[error("unknown session")]
    UnknownSession,
    /// Not made by a holder of the key.
    #[error("forged")]
    Forged,
    /// A handshake by somebody who holds another key, or none.
    #[error("handshake under another key")]
    ForgedHandshake,
    /// Our own handshake, sent back to us.
    #[error("reflected")]
    Reflected,
    /// A handshake from elsewhere than where the peer is pinned to.
    #[error("not from the pinned peer")]
    Elsewhere,
    /// Arrived before, or too old to tell.
    #[error("replayed")]
    Replayed,
    /// More handshakes than we answer or challenge.
    #[error("too many handshakes")]
    TooManyHandshakes,
    /// Authentic, but of a kind that this version does not know.
    #[error("unknown type of control datagram")]
    UnknownControl,
    /// The peer holds the key but speaks another link protocol.
    #[error("peer runs another link protocol")]
    Disagreement,
}

impl Rejection {
    /// The name under which it is counted.
    #[must_use]
    pub const fn counter(self) -> &'static str {
        match self {
            Self::Truncated => "dropped_truncated",
            Self::UnknownType => "dropped_unknown_type",
            Self::UnknownSession => "dropped_unknown_session",
            Self::Forged => "dropped_forged",
            Self::ForgedHandshake => "dropped_forged_handshake",
            Self::Reflected => "dropped_reflected",
            Self::Elsewhere => "dropped_elsewhere",
            Self::Replayed => "dropped_replayed",
            Self::TooManyHandshakes => "dropped_too_many_handshakes",
            Self::UnknownControl => "dropped_unknown_control",
            Self::Disagreement => "dropped_disagreement",
        }
    }
}

impl From<Refused> for Rejection {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Replayed => Self::Replayed,
            Refused::Forged => Self::Forged,
        }
    }
}

impl From<Unreadable> for Rejection {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Truncated => Self::Truncated,
            Unreadable::Unknown => Self::UnknownType,
        }
    }
}
