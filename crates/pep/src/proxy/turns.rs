//! Turns at the link between the proxy's packets and those that pass as they are.
//!
//! Under `congestion = "link"` the proxy is asked for a packet when the link has room: what waits does so in the windows of
//! its senders, and in no queue. What passes has its queue, and the two take turns by bytes. Any other controller is made to
//! meet a queue, and gets the one that is there. Towards an end that is no proxy's `link` stands for CUBIC, whose packets wait for the
//! link as all others of the proxy do.

use base::{Instant, Packet};
use tcp::Congestion;

use super::{Proxy, Side};

impl Proxy {
    /// Whether packets for the link are to be asked for when it has room; else they belong in its queue as soon as there are any.
    #[must_use]
    pub const fn is_clocked(&self) -> bool {
        matches!(self.config.link.congestion, Congestion::Link)
    }

    /// The next packet for a link that has room, if it is the proxy's turn; `others_wait` says whether a packet waits that passes
    /// as it is.
    pub fn poll_turn(&mut self, now: Instant, others_wait: bool) -> Option<Packet> {
        if !others_wait || !self.may_transmit(Side::Link) {
            self.lead = 0;
        }
        if !self.is_clocked() || (self.lead > 0 && others_wait) {
            return None;
        }
        let packet = self.poll_transmit(now, Side::Link)?;
        self.lead += packet.len() as i64;
        Some(packet)
    }

    /// A packet of `len` bytes that passes as it is has gone to the link.
    pub const fn note_passed(&mut self, len: usize) {
        self.lead -= len as i64;
    }

    /// The next packet for the queue of a link, where packets belong there.
    pub fn poll_queued(&mut self, now: Instant) -> Option<Packet> {
        if self.is_clocked() { None } else { self.poll_transmit(now, Side::Link) }
    }
}
