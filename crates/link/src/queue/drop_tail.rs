//! First in, first out; an arriving packet that does not fit is dropped.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use base::units::Size;
use base::{Instant, Packet};
use serde::{Deserialize, Serialize};

use super::{Queue, Refusal};

/// Limits of a drop-tail queue. Without either key it holds 100 packets, with only one of them that one limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Packets that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<NonZeroU32>,
    /// Bytes that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
}

impl Config {
    /// A limit in packets alone.
    #[must_use]
    pub const fn packets(limit: NonZeroU32) -> Self {
        Self { packets: Some(limit), bytes: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::packets(DEFAULT_PACKETS)
    }
}

/// A drop-tail queue of packets.
#[derive(Debug)]
pub struct DropTail {
    waiting: VecDeque<Packet>,
    bytes: u64,
    max_packets: usize,
    max_bytes: u64,
    passed: u64,
    dropped_for_packets: u64,
    dropped_for_bytes: u64,
}

impl DropTail {
    /// An empty queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let packets = match (config.packets, config.bytes) {
            (None, None) => Some(DEFAULT_PACKETS),
            (packets, _) => packets,
        };
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            max_packets: packets.map_or(usize::MAX, |limit| limit.get() as usize),
            max_bytes: config.bytes.map_or(u64::MAX, |limit| limit.0),
            passed: 0,
            dropped_for_packets: 0,
            dropped_for_bytes: 0,
        }
    }

    fn refusal(&self, packet: &Packet) -> Option<Refusal> {
        if self.waiting.len() >= self.max_packets {
            return Some(Refusal::Packets);
        }
        (self.bytes + packet.len() as u64 > self.max_bytes).then_some(Refusal::Bytes)
    }
}

impl Queue for DropTail {
    fn push(&mut self, _now: Instant, packet: Packet) -> Result<(), (Packet, Refusal)> {
        match self.refusal(&packet) {
            None => {
                self.bytes += packet.len() as u64;
                self.waiting.push_back(packet);
                Ok(())
            }
            Some(reason) => {
                match reason {
                    Refusal::Packets => self.dropped_for_packets += 1,
                    Refusal::Bytes => self.dropped_for_bytes += 1,
                }
                Err((packet, reason))
            }
        }
    }

    fn pop(&mut self, _now: Instant) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.len() as u64;
        self.passed += 1;
        Some(packet)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("passed", self.passed),
            ("dropped-for-packets", self.dropped_for_packets),
            ("dropped-for-bytes", self.dropped_for_bytes),
        ]
    }
}

/// Packets: the default of Linux devices in 2004, which the thesis leaves unsaid.
const DEFAULT_PACKETS: NonZeroU32 = NonZeroU32::new(100).unwrap();

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(text: &str) -> DropTail {
        DropTail::new(base::config::parse("queue.toml", text).unwrap())
    }

    fn fill(queue: &mut DropTail, lens: &[usize]) -> Vec<Option<Refusal>> {
        let push = |&len: &usize| {
            let result = queue.push(Instant::ZERO, Packet::from_slice(&vec![len as u8; len]));
            result.err().map(|(packet, reason)| {
                assert_eq!(packet.len(), len, "the packet is handed back");
                reason
            })
        };
        lens.iter().map(push).collect()
    }

    #[test]
    fn packets_leave_in_order_and_are_counted() {
        let mut queue = queue("packets = 2");
        assert_eq!(fill(&mut queue, &[10, 20, 30]), [None, None, Some(Refusal::Packets)]);
        assert_eq!((queue.len(), queue.bytes()), (2, 30));
        assert_eq!(queue.pop(Instant::ZERO).unwrap().len(), 10);
        assert_eq!(fill(&mut queue, &[40]), [None]);
        let lens = core::iter::from_fn(|| queue.pop(Instant::ZERO)).map(|p| p.len()).collect::<Vec<_>>();
        assert_eq!(lens, [20, 40]);
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
        assert_eq!(queue.counters(), [("passed", 3), ("dropped-for-packets", 1), ("dropped-for-bytes", 0)]);
    }

    #[test]
    fn bytes_limit_too() {
        let mut queue = queue("bytes = \"50 B\"");
        assert_eq!(
            fill(&mut queue, &[30, 21, 20, 1]),
            [None, Some(Refusal::Bytes), None, Some(Refusal::Bytes)]
        );
    }

    #[test]
    fn without_limits_it_holds_a_hundred() {
        let mut queue = queue("");
        let refused = fill(&mut queue, &[1; 101]);
        assert_eq!(refused.iter().position(Option::is_some), Some(100));
    }
}
