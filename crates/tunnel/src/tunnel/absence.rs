//! A peer that is not heard any more: whoever wants to reach somebody behind it is told so, instead of waiting for nothing.
//!
//! Messages come from the address that could not be reached. A tunnel has none of its own, and a filter that looks whether an
//! address would be answered the same way takes no offence.

use base::wire::icmp;
use base::wire::ip::{self, Protocol};
use base::wire::tcp::{self, Flags};
use base::{Duration, Instant, Packet};

use super::Tunnel;
use crate::allowance::Allowance;
use crate::proxy_side::Delivery;

/// A handshake may take so long on a bad link: until then packets wait. Ours.
const GRACE: Duration = Duration::from_secs(10);

/// And a gateway that was ended on purpose may be starting again, for so long. Ours.
const RESTART: Duration = Duration::from_secs(3);

/// Messages to whoever sends; no more tell it anything new. Linux allows a thousand a second for all (`icmp_msgs_per_sec`). Ours.
pub(super) const MESSAGES: Allowance = Allowance::new(50, Duration::from_millis(10));

impl Tunnel {
    /// Whether it is no use to wait for the peer.
    fn is_alone(&self, now: Instant) -> bool {
        let grace = if self.session.has_left() { RESTART } else { GRACE };
        !self.session.is_heard(now) && now.saturating_since(self.silence.since) >= grace
    }

    /// Whether a packet from the LAN is refused, since the peer is not heard. Connections that the proxy has go on: what they hold waits,
    /// and the proxy gives them up by itself.
    pub(super) fn turns_away(&mut self, now: Instant, packet: &[u8]) -> bool {
        if !self.is_alone(now) {
            return false;
        }
        let packet = link::flow::without_metadata(packet);
        let Ok(view) = ip::View::parse(packet) else { return false };
        if self.ingress.proxy.is_some() && is_under_way(&view) {
            return false;
        }
        self.traffic.packets_turned_away.increment();
        if self.messages.take(now)
            && let Some(message) = icmp::unreachable(packet, view.dst())
        {
            self.lan.push_back(Delivery { packet: Packet::from_slice(&message), train: None });
        }
        true
    }
}

/// Whether it belongs to a connection that has begun.
fn is_under_way(packet: &ip::View<'_>) -> bool {
    let flags = || tcp::View::parse(packet.payload()).map(|segment| segment.flags());
    packet.protocol() == Protocol::TCP
        && flags().is_ok_and(|flags| !flags.has(Flags::SYN) || flags.has(Flags::ACK))
}
