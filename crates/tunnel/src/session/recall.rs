//! Recalls: how a gateway that was restarted, and is not told where its peers are, finds them again.
//!
//! A peer that has not noticed goes on sending datagrams of a session that is no more. Their indices still say who it is
//! ([`Indices`](super::Indices)), so it is called where they come from, and hears of the restart after a round trip of its own instead of
//! by silence. Anybody may have sent such a datagram, so what it causes is no more than a call: the handshake proves the rest, and until it
//! is complete nothing has changed. Who does not know an index of ours gets nothing, as before.
//!
//! It is RFC 9000's stateless reset (section 10.3) turned round: this end asks for a session instead of saying that it has none, so there is
//! nothing to forge.

use base::Instant;

use super::{Datagram, Session};
use crate::path::Path;

impl Session {
    /// Whether `datagram`, which was refused as one of an unknown session, is reason to call whoever sent it, at `from`: there are no
    /// keys, none are on their way, and it is not called anyway.
    pub(crate) fn wants_recall(&self, now: Instant, from: Path, datagram: &[u8]) -> bool {
        matches!(Datagram::parse(datagram), Ok(Datagram::Sealed { .. }))
            && self.paths.configured().is_none()
            && !self.paths.exclude(from)
            && self.keys.is_empty()
            && now >= self.initiate_at
    }

    /// Calls the peer at `from`, once: if that is lost, the next of its datagrams is reason to call it again.
    pub(crate) fn recall(&mut self, now: Instant, from: Path) {
        self.recalled = Some(from);
        self.initiate(now, 0);
    }

    /// Where handshakes are begun: where the peer is said to be, or where it was found.
    pub(super) fn called_at(&self) -> Option<Path> {
        self.paths.configured().or(self.recalled)
    }
}
