//! What routers say of packets of ours.

use core::net::SocketAddr;

use base::wire::icmp::{Cause, Report};
use base::wire::ip;
use base::{Instant, SeqNum};

use super::ports::Key;
use super::{Discard, Host};

impl Host {
    /// Takes an IP packet with an ICMP message, which [`Host::handle_packet`] hands on too. Of these only the one that a
    /// packet was too big counts: others are hints that anybody could forge (RFC 5927, 3).
    ///
    /// # Errors
    /// [`Discard`] says why the message was of no use.
    pub fn handle_icmp(&mut self, now: Instant, packet: &ip::View<'_>) -> Result<(), Discard> {
        let other = Discard::NotTcp(packet.protocol().0);
        let message = Report::parse(packet)?.ok_or(other)?;
        let Cause::TooBig(mtu) = message.cause else { return Err(other) };
        if message.protocol != ip::Protocol::TCP || !self.owns(message.src) {
            return Err(other);
        }
        let port = |at: usize| u16::from_be_bytes([message.start[at], message.start[at + 1]]);
        let seq = SeqNum(u32::from_be_bytes([4, 5, 6, 7].map(|at| message.start[at])));
        let local = SocketAddr::new(message.src, port(0));
        let key = Key::new(local, SocketAddr::new(message.dst, port(2)));
        let slot = self.ports.find(key).ok_or(Discard::NoConnection(port(0)))?;
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else {
            unreachable!("a bound key has a connection")
        };
        let result = connection.handle_too_big(now, seq, mtu);
        self.touch(slot);
        Ok(result?)
    }
}
