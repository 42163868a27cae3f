//! First in, first out; when an arriving packet does not fit, it is dropped, or a random one instead.
//!
//! "Random drop on full": RFC 2309, section 2; RFC 7567, section 2.1. It takes from each flow what that flow has in the queue, so that a
//! few cannot lock the others out.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use base::units::Size;
use base::{Duration, Instant, Packet, Rate, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::USUAL_PACKET;
use crate::slack;

use super::{Dropped, Queue, Refusal, Site};

/// Limits of a drop-tail queue. Without any of the first three keys it holds 100 packets; otherwise those that are there
/// limit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "DropTail")]
pub struct Config {
    /// Packets that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<NonZeroU32>,
    /// Bytes that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Longest time that the queue may take to drain at the link's rate, rounded up to whole bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Which packet to drop when the queue is full.
    #[serde(default, skip_serializing_if = "WhenFull::is_default")]
    pub when_full: WhenFull,
}

/// Which packet is dropped when an arriving one does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// The arriving one.
    #[default]
    DropArriving,
    /// Any with the same probability, the arriving one among them; that one also if the chosen one is too short to make room.
    DropRandom,
}

impl WhenFull {
    // Serde hands over references.
    #[expect(clippy::trivially_copy_pass_by_ref)]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Config {
    /// A limit in bytes alone.
    #[must_use]
    pub const fn bytes(limit: u64) -> Self {
        Self { packets: None, bytes: Some(Size(limit)), time: None, when_full: WhenFull::DropArriving }
    }

    /// Packets and bytes that may wait on a site.
    fn limits(&self, site: &Site<'_>) -> (usize, u64) {
        let bytes_in = |time| site.rate.map(|rate| rate.bits_in(time).div_ceil(8));
        let by_time = self.time.and_then(bytes_in);
        let bytes = self.bytes.map(|limit| limit.0).into_iter().chain(by_time).min();
        let packets = self.packets.or(if bytes.is_none() { Some(DEFAULT_PACKETS) } else { None });
        (packets.map_or(usize::MAX, |limit| limit.get() as usize), bytes.unwrap_or(u64::MAX))
    }

    /// How long what it holds at most takes to leave at this rate.
    pub(super) fn drain_time(&self, rate: Rate) -> Duration {
        let (packets, bytes) = self.limits(&Site { rate: Some(rate), seed: 0, name: "" });
        rate.time_for(bytes.min((packets as u64).saturating_mul(USUAL_PACKET as u64)).saturating_mul(8))
    }

    /// A limit in packets alone.
    #[must_use]
    pub const fn packets(limit: NonZeroU32) -> Self {
        Self { packets: Some(limit), bytes: None, time: None, when_full: WhenFull::DropArriving }
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
    /// Bytes that their buffers take.
    buffers: usize,
    max_packets: usize,
    max_bytes: u64,
    /// Chooses who goes; `None` if that is the arriving packet.
    rng: Option<Rng>,
    passed: u64,
    dropped_for_packets: u64,
    dropped_for_bytes: u64,
}

impl DropTail {
    /// The empty queue called `name` on a site.
    #[must_use]
    pub fn new(config: Config, site: &Site<'_>, name: &str) -> Self {
        let (max_packets, max_bytes) = config.limits(site);
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            buffers: 0,
            max_packets,
            max_bytes,
            rng: (config.when_full == WhenFull::DropRandom).then(|| site.rng(name)),
            passed: 0,
            dropped_for_packets: 0,
            dropped_for_bytes: 0,
        }
    }

    /// Takes out a random packet that makes room for `packet`, if it does and the choice is not `packet` itself.
    fn make_room(&mut self, packet: &Packet) -> Option<Packet> {
        let chosen = self.rng.as_mut()?.below(self.waiting.len() as u64 + 1) as usize;
        let leaves = self.waiting.get(chosen)?.len() as u64;
        if self.waiting.len() > self.max_packets || self.bytes - leaves + packet.len() as u64 > self.max_bytes
        {
            return None;
        }
        self.bytes -= leaves;
        let leaving = self.waiting.remove(chosen)?;
        self.buffers -= leaving.capacity();
        Some(leaving)
    }

    fn append(&mut self, packet: Packet) {
        self.bytes += packet.len() as u64;
        self.buffers += packet.capacity();
        self.waiting.push_back(packet);
    }

    fn refusal(&self, packet: &Packet) -> Option<Refusal> {
        if self.waiting.len() >= self.max_packets {
            return Some(Refusal::Packets);
        }
        // One has to fit, or a limit that is short for a slow line would let none pass, ever.
        let is_full = self.bytes > 0 && self.bytes + packet.len() as u64 > self.max_bytes;
        is_full.then_some(Refusal::Bytes)
    }
}

impl Queue for DropTail {
    fn push(&mut self, _now: Instant, packet: Packet, dropped: &mut Dropped<'_>) {
        let Some(reason) = self.refusal(&packet) else { return self.append(packet) };
        match reason {
            Refusal::Bytes => self.dropped_for_bytes += 1,
            _ => self.dropped_for_packets += 1,
        }
        match self.make_room(&packet) {
            None => dropped(packet, reason),
            Some(victim) => {
                self.append(packet);
                dropped(victim, reason);
            }
        }
    }

    fn pop(&mut self, _now: Instant, _dropped: &mut Dropped<'_>) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.len() as u64;
        self.buffers -= packet.capacity();
        slack::give_back(&mut self.waiting);
        self.passed += 1;
        Some(packet)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn memory(&self) -> usize {
        self.buffers + slack::room(&self.waiting)
    }

    fn set_limits(&mut self, config: &super::Config, site: &Site<'_>) -> bool {
        let super::Config::DropTail(config) = config else { return false };
        (self.max_packets, self.max_bytes) = config.limits(site);
        self.rng = (config.when_full == WhenFull::DropRandom)
            .then(|| self.rng.take().unwrap_or_else(|| site.rng("queue")));
        true
    }

    fn take_expired(&mut self, now: Instant, expired: &mut dyn FnMut(Packet)) {
        let (bytes, buffers) = super::take_expired(&mut self.waiting, now, expired);
        self.bytes -= bytes;
        self.buffers -= buffers;
    }

    fn drain(&mut self) -> Vec<Packet> {
        (self.bytes, self.buffers) = (0, 0);
        core::mem::take(&mut self.waiting).into()
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

    /// On a link of 80 kbit/s.
    fn queue(text: &str) -> DropTail {
        queue_of_run(text, 1)
    }

    fn queue_of_run(text: &str, seed: u64) -> DropTail {
        let site = Site { rate: Some(Rate::from_bps(80_000)), seed, name: "sat/down" };
        DropTail::new(base::config::parse("queue.toml", text).unwrap(), &site, "queue")
    }

    fn fill(queue: &mut DropTail, lens: &[usize]) -> Vec<Option<Refusal>> {
        let push = |&len: &usize| {
            let mut why = None;
            queue.push(Instant::ZERO, Packet::from_slice(&vec![len as u8; len]), &mut |packet, reason| {
                assert_eq!(packet.len(), len, "the packet is handed back");
                assert_eq!(why.replace(reason), None);
            });
            why
        };
        lens.iter().map(push).collect()
    }

    fn pop(queue: &mut DropTail) -> Option<Packet> {
        queue.pop(Instant::ZERO, &mut |packet, _| panic!("dropped {packet:?}"))
    }

    /// 50 ms of 80 kbit/s are 500 bytes: a packet that is longer passes if none waits, and no second one.
    #[test]
    fn one_packet_always_fits() {
        for text in ["time = \"50 ms\"", "bytes = \"500 B\""] {
            let mut queue = queue(text);
            assert_eq!(fill(&mut queue, &[1500, 40]), [None, Some(Refusal::Bytes)], "{text}");
            assert_eq!(pop(&mut queue).unwrap().len(), 1500);
            assert_eq!(fill(&mut queue, &[400, 400]), [None, Some(Refusal::Bytes)], "{text}");
        }
    }

    #[test]
    fn packets_leave_in_order_and_are_counted() {
        let mut queue = queue("packets = 2");
        assert_eq!(fill(&mut queue, &[10, 20, 30]), [None, None, Some(Refusal::Packets)]);
        assert_eq!((queue.len(), queue.bytes()), (2, 30));
        assert_eq!(pop(&mut queue).unwrap().len(), 10);
        assert_eq!(fill(&mut queue, &[40]), [None]);
        let lens = core::iter::from_fn(|| pop(&mut queue)).map(|p| p.len()).collect::<Vec<_>>();
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

    /// 10 ms at 80 kbit/s are 100 bytes.
    #[test]
    fn the_links_rate_turns_time_into_bytes() {
        let refused = [None, Some(Refusal::Bytes), None, Some(Refusal::Bytes)];
        assert_eq!(fill(&mut queue("time = \"10 ms\""), &[60, 41, 40, 1]), refused);
        assert_eq!(
            fill(&mut queue("time = \"10 ms\"\nbytes = \"50 B\""), &[1, 50, 49]),
            [None, Some(Refusal::Bytes), None]
        );
        // Where there is no rate, the number of packets is the limit.
        let site = Site { rate: None, seed: 1, name: "l" };
        let config = base::config::parse("queue.toml", "time = \"10 ms\"").unwrap();
        assert_eq!(fill(&mut DropTail::new(config, &site, "queue"), &[1000; 100]), [None; 100]);
        assert!(super::super::Config::DropTail(config).needs_rate());
    }

    /// What a queue for three packets drops of a hundred, each as long as its number.
    fn dropped_at_random(seed: u64) -> Vec<usize> {
        let mut queue = queue_of_run("packets = 3\nwhen-full = \"drop-random\"", seed);
        let mut dropped = Vec::new();
        for len in 1..=100 {
            queue.push(Instant::ZERO, Packet::from_slice(&vec![0; len]), &mut |packet, reason| {
                assert_eq!(reason, Refusal::Packets);
                dropped.push(packet.len());
            });
        }
        let left = core::iter::from_fn(|| pop(&mut queue)).map(|packet| packet.len());
        let left: Vec<_> = left.collect();
        assert!(left.len() == 3 && left.is_sorted() && left.iter().all(|len| !dropped.contains(len)));
        assert_eq!((dropped.len(), queue.bytes()), (97, 0));
        dropped
    }

    #[test]
    fn a_random_packet_may_go_in_place_of_the_arriving_one() {
        let dropped = dropped_at_random(1);
        // Each arrival finds four to choose from.
        let arriving = dropped.iter().zip(4..).filter(|(dropped, len)| *dropped == len).count();
        assert!((10..=40).contains(&arriving), "{arriving} of 97");
        assert_eq!(dropped, dropped_at_random(1));
        assert_ne!(dropped, dropped_at_random(2));
    }

    #[test]
    fn who_is_too_short_to_make_room_stays() {
        let mut queue = queue("bytes = \"100 B\"\nwhen-full = \"drop-random\"");
        assert_eq!(fill(&mut queue, &[100]), [None]);
        for _ in 0..20 {
            assert_eq!(fill(&mut queue, &[101]), [Some(Refusal::Bytes)]);
        }
    }

    #[test]
    fn other_limits_hold_for_what_arrives_and_what_waits_stays() {
        let mut queue = queue("packets = 4");
        assert_eq!(fill(&mut queue, &[10, 10, 10]), [None; 3]);
        let tighter = super::super::Config::DropTail(Config::bytes(20));
        assert!(queue.set_limits(&tighter, &Site { rate: None, seed: 1, name: "l" }));
        assert_eq!((queue.len(), fill(&mut queue, &[1])), (3, vec![Some(Refusal::Bytes)]));
        let timed =
            super::super::Config::DropTail(base::config::parse("q.toml", "time = \"10 ms\"").unwrap());
        assert!(queue.set_limits(&timed, &Site { rate: Some(Rate::from_bps(80_000)), seed: 1, name: "l" }));
        assert_eq!(fill(&mut queue, &[70, 1]), [None, Some(Refusal::Bytes)]);
    }

    #[test]
    fn without_limits_it_holds_a_hundred() {
        let mut queue = queue("");
        let refused = fill(&mut queue, &[1; 101]);
        assert_eq!(refused.iter().position(Option::is_some), Some(100));
    }
}
