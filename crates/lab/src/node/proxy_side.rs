//! What may split connections at the end of a wire or a link.

use base::{Instant, Packet};
use pep::{Proxy, Side, Verdict};

use super::named;
use crate::engine::{Context, Port};

/// Between the node at an end and the line: a split-connection proxy, or nothing.
#[derive(Debug, Default)]
pub(super) struct ProxySide(Option<Box<Proxy>>);

impl ProxySide {
    #[inline]
    pub(super) fn proxy(&self) -> Option<&Proxy> {
        self.0.as_deref()
    }

    /// Whether a packet from one side was the proxy's.
    #[inline]
    pub(super) fn takes(&mut self, now: Instant, from: Side, packet: &mut Packet) -> bool {
        self.0.as_mut().is_some_and(|proxy| proxy.handle_packet(now, from, packet) == Verdict::Taken)
    }

    /// Lets the proxy's time-outs happen, and sends what it has for the node at the end out at its port.
    pub(super) fn serve(&mut self, cx: &mut Context<'_>, port: Port) {
        if let Some(proxy) = &mut self.0 {
            serve(proxy, cx, port);
        }
    }

    /// The next packet for the queue in front of the line.
    pub(super) fn poll_queued(&mut self, now: Instant) -> Option<Packet> {
        self.0.as_mut()?.poll_queued(now)
    }

    /// The next packet that goes past the queue, if it is the proxy's turn.
    pub(super) fn poll_turn(&mut self, now: Instant, others_wait: bool) -> Option<Packet> {
        self.0.as_mut()?.poll_turn(now, others_wait)
    }

    /// Whether the proxy waits to be asked for a packet.
    #[inline]
    pub(super) fn waits_for_turn(&self) -> bool {
        self.proxy().is_some_and(|proxy| proxy.is_clocked() && proxy.may_transmit(Side::Link))
    }

    /// A packet of `len` bytes has left the queue.
    #[inline]
    pub(super) const fn note_passed(&mut self, len: usize) {
        if let Some(proxy) = &mut self.0 {
            proxy.note_passed(len);
        }
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.proxy()?.poll_timeout()
    }

    /// The proxy's counters by name.
    pub(super) fn report(&self) -> impl Iterator<Item = (String, u64)> + use<> {
        report(self.proxy())
    }
}

/// Lets a proxy's time-outs happen, and sends what it has for the LAN out at a port.
pub(super) fn serve(proxy: &mut Proxy, cx: &mut Context<'_>, port: Port) {
    let now = cx.now();
    if proxy.poll_timeout().is_some_and(|due| due <= now) {
        proxy.handle_timeout(now);
    }
    while let Some(packet) = proxy.poll_transmit(now, Side::Lan) {
        cx.send(port, packet);
    }
}

/// A proxy's counters by name.
pub(super) fn report(proxy: Option<&Proxy>) -> impl Iterator<Item = (String, u64)> + use<> {
    let counters = proxy.map(|proxy| named("pep-", &proxy.counters().named()));
    counters.into_iter().flatten()
}

impl From<Option<Proxy>> for ProxySide {
    fn from(proxy: Option<Proxy>) -> Self {
        Self(proxy.map(Box::new))
    }
}
