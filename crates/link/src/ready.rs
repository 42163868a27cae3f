//! Packets that wait to go up.

use std::collections::VecDeque;

use base::Packet;

/// A bounded queue. The owner of an endpoint drains it after every frame; if it does not, packets are counted away.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    packets: VecDeque<Packet>,
    dropped: u64,
}

impl Ready {
    pub(crate) fn push(&mut self, packet: Packet) {
        if self.packets.len() < LIMIT {
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

/// Packets. Ours: one frame can complete as many packets as the widest window holds frames, 512.
const LIMIT: usize = 1024;
