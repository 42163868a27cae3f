//! Packets that wait to go up.

use std::collections::VecDeque;

use base::Packet;

/// A bounded queue. The owner of an endpoint drains it after every frame; if it does not, packets are counted away.
#[derive(Debug)]
pub(crate) struct Ready {
    packets: VecDeque<Packet>,
    limit: usize,
    dropped: u64,
}

impl Ready {
    /// An empty queue for `limit` packets: as many as one frame can complete.
    pub(crate) const fn holding(limit: usize) -> Self {
        Self { packets: VecDeque::new(), limit, dropped: 0 }
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        if self.packets.len() < self.limit {
            self.packets.push_back(packet);
        } else {
            self.dropped += 1;
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}
