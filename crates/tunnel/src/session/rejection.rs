//! Why datagrams are dropped, and under which name that is counted.

use super::transport::Refused;
use super::wire::Unreadable;
use crate::key::PublicKey;

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
    /// A handshake for somebody else, or by somebody who has not the keys that it takes.
    #[error("handshake that does not fit the keys")]
    ForgedHandshake,
    /// A handshake by a gateway that is no peer of ours.
    #[error("no peer has the public key {0}")]
    UnknownPeer(PublicKey),
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
    /// The peer is who it should be but speaks another link protocol.
    #[error("peer runs another link protocol")]
    Disagreement(PublicKey),
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
            Self::UnknownPeer(_) => "dropped_unknown_peer",
            Self::Elsewhere => "dropped_elsewhere",
            Self::Replayed => "dropped_replayed",
            Self::TooManyHandshakes => "dropped_too_many_handshakes",
            Self::UnknownControl => "dropped_unknown_control",
            Self::Disagreement(_) => "dropped_disagreement",
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
