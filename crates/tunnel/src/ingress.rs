//! What stands in front of a link's endpoint: the queues and the split-connection proxy, and who of them is asked for the next packet.

use base::{Instant, Packet};
use link::queue::Refusal;
use link::{Endpoint, Full, IngressQueues, Treatment};
use pep::{Proxy, Side, Verdict};

use crate::super_segment;

/// Queues and, perhaps, a proxy.
#[derive(Debug)]
pub struct Ingress {
    /// Where packets wait.
    pub queues: IngressQueues,
    /// What splits connections, if anything does.
    pub proxy: Option<Box<Proxy>>,
    /// Whether what waits in the proxy is counted, as an endpoint with several lines needs it; else it is taken to be much.
    pub counts_waiting: bool,
}

/// Hears what becomes of packets in front of an endpoint.
pub trait Watch {
    /// A packet is about to wait in a queue.
    fn on_queued(&mut self, now: Instant, packet: &Packet);
    /// A queue has dropped a packet, and counted it.
    fn on_dropped(&mut self, now: Instant, packet: &Packet);
    /// The endpoint takes a packet.
    fn on_taken(&mut self, now: Instant, packet: &Packet);
    /// The queues are longer or shorter than before.
    fn on_length(&mut self, now: Instant, queues: &IngressQueues);
}

/// Nobody watches.
impl Watch for () {
    fn on_queued(&mut self, _: Instant, _: &Packet) {}
    fn on_dropped(&mut self, _: Instant, _: &Packet) {}
    fn on_taken(&mut self, _: Instant, _: &Packet) {}
    fn on_length(&mut self, _: Instant, _: &IngressQueues) {}
}

impl Ingress {
    /// Bytes of memory that packets and split connections take, as allocated.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.queues.memory() + self.proxy.as_ref().map_or(0, |proxy| proxy.memory())
    }

    /// These queues, without a proxy.
    #[must_use]
    pub const fn new(queues: IngressQueues) -> Self {
        Self { queues, proxy: None, counts_waiting: false }
    }

    /// Whether a packet from one side, perhaps behind a super-segment's metadata, was the proxy's.
    pub fn takes(&mut self, now: Instant, from: Side, packet: &mut [u8]) -> bool {
        self.proxy.as_mut().is_some_and(|proxy| is_taken(proxy, now, from, packet))
    }

    /// Takes a packet from the LAN: the proxy has it, or it waits in a queue.
    pub fn accept(
        &mut self,
        now: Instant,
        mut packet: Packet,
        endpoint: &dyn Endpoint,
        watch: &mut impl Watch,
    ) {
        if !self.takes(now, Side::Lan, &mut packet) {
            self.enqueue(now, packet, endpoint, watch);
        }
    }

    fn enqueue(&mut self, now: Instant, packet: Packet, endpoint: &dyn Endpoint, watch: &mut impl Watch) {
        watch.on_queued(now, &packet);
        self.queues.push(now, packet, endpoint, &mut |packet, _: Refusal| watch.on_dropped(now, &packet));
        watch.on_length(now, &self.queues);
    }

    /// Moves packets to `endpoint` while it has room, and tells it how much still waits.
    pub fn feed(&mut self, now: Instant, endpoint: &mut dyn Endpoint, watch: &mut impl Watch) {
        while let Some((packet, treatment)) = self.next(now, endpoint, watch) {
            watch.on_taken(now, &packet);
            if let Err(Full(_)) = endpoint.offer(now, packet, treatment) {
                unreachable!("the endpoint said that it has room");
            }
        }
        for treatment in Treatment::ALL {
            let split = if treatment == Treatment::Reliable { self.waiting_in_proxy() } else { 0 };
            endpoint.set_backlog(treatment, self.queues.bytes_for(treatment) + split);
        }
    }

    /// The next packet that `endpoint` has room for, from the proxy or from the queues.
    fn next(
        &mut self,
        now: Instant,
        endpoint: &dyn Endpoint,
        watch: &mut impl Watch,
    ) -> Option<(Packet, Treatment)> {
        while let Some(packet) = self.proxy.as_mut().and_then(|proxy| proxy.poll_queued(now)) {
            self.enqueue(now, packet, endpoint, watch);
        }
        // What is interactive waits for its class alone, so no more of it is asked for meanwhile.
        while endpoint.has_room(Treatment::Reliable)
            && self.queues.bytes_for(Treatment::Interactive) == 0
            && let Some(proxy) = &mut self.proxy
            && let Some(packet) = proxy.poll_turn(now, !self.queues.is_empty())
        {
            let treatment = self.queues.stream_treatment(now, &packet, endpoint);
            if endpoint.has_room(treatment) {
                return Some((packet, treatment));
            }
            self.queues.push_as(now, packet, treatment, &mut |packet, _| watch.on_dropped(now, &packet));
        }
        let dropped = &mut |packet: Packet, _| watch.on_dropped(now, &packet);
        let (packet, treatment) = self.queues.pop_for(now, endpoint, dropped)?;
        if let Some(proxy) = &mut self.proxy {
            proxy.note_passed(packet.len());
        }
        watch.on_length(now, &self.queues);
        Some((packet, treatment))
    }

    /// Bytes that wait for the link, as far as they are counted.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.queues.bytes() + self.waiting_in_proxy()
    }

    /// Bytes that wait in the proxy for the link, as far as they are counted.
    fn waiting_in_proxy(&self) -> u64 {
        match self.proxy.as_deref() {
            Some(proxy) if proxy.is_clocked() && proxy.may_transmit(Side::Link) => {
                if self.counts_waiting {
                    proxy.waiting(Side::Link)
                } else {
                    u64::from(u32::MAX)
                }
            }
            _ => 0,
        }
    }
}

/// Whether a packet from one side, perhaps behind a super-segment's metadata, was the proxy's.
pub fn is_taken(proxy: &mut Proxy, now: Instant, from: Side, packet: &mut [u8]) -> bool {
    // The kernel vouches for the checksum of what is still to be cut.
    let is_whole = matches!(packet.first().map(|first| first >> 4), Some(4 | 6));
    let packet = super_segment::ip_packet_mut(packet);
    let verdict = if is_whole {
        proxy.handle_packet(now, from, packet)
    } else {
        proxy.handle_verified_packet(now, from, packet)
    };
    verdict == Verdict::Taken
}
