//! Denials: how a gateway that was restarted tells its peers so, which still use a session of its former life.
//!
//! In its first minute it answers sealed datagrams of sessions that it does not know, and the peer, if it is the one that calls, calls at once
//! instead of after a silence. A denial bears the seal that whoever knows the public key can make, and names a datagram, which only
//! somebody on the path has seen. All that it leads to is a call to where the peer is called anyway: the handshake shows what is true, and
//! until it is complete nothing has changed. In the meantime others get no answer, unless they hit upon that minute: then they learn that
//! somebody is there.
//!
//! It is a stateless reset (RFC 9000, section 10.3) that resets nothing.

use base::{Duration, Instant};

use super::{Rejection, Session};
use crate::allowance::Allowance;
use crate::path::Path;

/// Calls because of denials: the first may be lost, and who forges denials is not to have many.
pub(super) const ALLOWANCE: Allowance = Allowance::new(3, Duration::from_secs(5));

impl Session {
    /// Whether it is the one that a denial of this index is about: the index is the peer's in it, and this side calls.
    pub(crate) fn may_be_denied(&self, index: u32) -> bool {
        self.lines.call_anybody() && self.keys.current().is_some_and(|current| current.remote == index)
    }

    /// The peer at `from` says that it does not know the session of a datagram of ours.
    pub(super) fn handle_denial(
        &mut self,
        now: Instant,
        from: Path,
        (index, counter): (u32, u64),
    ) -> Result<(), Rejection> {
        let has_sent = self.keys.current().is_some_and(|current| current.has_sent(counter));
        if !self.may_be_denied(index) || !has_sent || !self.lines.lead_to(from.peer) {
            return Err(Rejection::UnknownSession);
        }
        if now >= self.initiate_at && self.denials.take(now) {
            self.initiate(now);
        }
        Ok(())
    }
}
