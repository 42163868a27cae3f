//! Packets that wait to go up.

use std::collections::VecDeque;

use base::Packet;

use crate::slack;

/// A bounded queue. The owner of an endpoint drains it after every frame; if it does not, packets are counted away.
///
/// Packets that one frame completes take a quarter more memory than their bytes at most, or a small buffer each, beyond the first
/// [`ROOMY`] bytes.
#[derive(Debug)]
pub(crate) struct Ready {
    packets: VecDeque<Packet>,
    /// Bytes that their buffers take.
    bytes: usize,
    limit: usize,
    dropped: u64,
}

/// Bytes of memory from which on packets get buffers of their length: a long one of a packet that is short may be many times as long.
const ROOMY: usize = 8 << 20;

impl Ready {
    /// An empty queue for `limit` packets: as many as one frame can complete.
    pub(crate) const fn holding(limit: usize) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, limit, dropped: 0 }
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        if self.packets.len() < self.limit {
            let packet = if self.bytes > ROOMY { packet.fitted() } else { packet };
            self.bytes += packet.capacity();
            self.packets.push_back(packet);
        } else {
            self.dropped += 1;
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.capacity();
        if self.packets.is_empty() {
            slack::give_back(&mut self.packets);
        }
        Some(packet)
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.bytes + slack::room(&self.packets)
    }

    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}
