//! One direction of the emulated channel: a drop-tail queue, then the line.

use std::collections::VecDeque;

use base::{Instant, Packet};
use channel::path::Admission;
use channel::{Fate, Line};
use serde::Serialize;

use tunnel::counters::Counter;

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DirectionCounters {
    /// Came in.
    pub packets: Counter,
    /// What those occupy of the line.
    pub bytes: Counter,
    /// Arrived intact.
    pub delivered: Counter,
    /// Found the queue full.
    pub dropped_queue: Counter,
    /// Met errors on the air, or the silence between two delays.
    pub damaged: Counter,
    /// Of those, met the silence.
    pub silenced: u64,
    /// Longer than the path's largest packet; dropped in front of the queue, and nobody is told.
    pub too_long: u64,
    /// Exceeded the policer, in front of the queue.
    pub policed: u64,
    /// Held back by overtaking jitter.
    pub late: u64,
    /// Arrived, but the port would not take them.
    pub dropped_at_exit: Counter,
    /// Found the socket's receive buffer full, before the emulator saw them.
    pub dropped_at_entry: u64,
    /// How long after its time a packet was delivered at worst, in microseconds.
    pub greatest_lateness_us: u64,
    /// Sum over all delivered packets of how long after its time each was delivered, in microseconds.
    pub total_lateness_us: Counter,
}

/// A queue, a line, and what is under way on it.
#[derive(Debug)]
pub(super) struct Direction {
    line: Line,
    queue_limit: usize,
    /// When the packets that still wait will start to leave.
    starts: VecDeque<Instant>,
    /// In the order of their arrival.
    under_way: VecDeque<(Instant, Packet)>,
    pub(super) counters: DirectionCounters,
}

impl Direction {
    pub(super) fn new(line: Line, queue_limit: usize) -> Self {
        Self {
            line,
            queue_limit,
            starts: VecDeque::new(),
            under_way: VecDeque::new(),
            counters: DirectionCounters::default(),
        }
    }

    /// A packet of `ip_len` bytes that occupies `len` bytes of the line came in.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: Packet, ip_len: usize, len: usize) {
        self.counters.packets.increment();
        self.counters.bytes.add(len as u64);
        if self.line.admit(now, ip_len as u64) != Admission::Admitted {
            return;
        }
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.queue_limit {
            return self.counters.dropped_queue.increment();
        }
        let transit = self.line.send(now, len as u32 * 8);
        if transit.on_air.start > now {
            self.starts.push_back(transit.on_air.start);
        }
        match transit.fate {
            Fate::Intact => self.launch(transit.arrives_at, packet),
            Fate::Damaged(_) | Fate::Lost => self.counters.damaged.increment(),
        }
    }

    /// Puts a packet where it belongs in the order of arrival.
    fn launch(&mut self, arrives_at: Instant, packet: Packet) {
        if self.under_way.back().is_none_or(|(last, _)| *last <= arrives_at) {
            return self.under_way.push_back((arrives_at, packet));
        }
        let place = self.under_way.partition_point(|(at, _)| *at <= arrives_at);
        self.under_way.insert(place, (arrives_at, packet));
    }

    /// The counters so far, those of the line's path included.
    pub(super) fn counters(&self) -> DirectionCounters {
        let path = self.line.path_counters().unwrap_or_default();
        let channel::path::Counters { too_long, policed, silenced, late } = path;
        DirectionCounters { too_long, policed, silenced, late, ..self.counters }
    }

    /// When the next packet arrives.
    pub(super) fn next_delivery(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    /// A packet that has arrived by `now`.
    pub(super) fn poll_delivery(&mut self, now: Instant) -> Option<Packet> {
        let (at, packet) = self.under_way.pop_front_if(|(at, _)| *at <= now)?;
        let lateness = now.saturating_since(at).as_nanos() / 1000;
        self.counters.greatest_lateness_us = self.counters.greatest_lateness_us.max(lateness);
        self.counters.total_lateness_us.add(lateness);
        self.counters.delivered.increment();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Rate};
    use channel::duplex;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn packet(n: u8) -> Packet {
        Packet::from_slice(&[n])
    }

    #[test]
    fn packets_take_their_air_time_and_the_delay() {
        // 1000 bytes at 8 Mbit/s are 1 ms.
        let line = Line::error_free(Rate::from_bps(8_000_000), Duration::from_millis(20));
        let mut direction = Direction::new(line, 10);
        direction.handle_packet(at(0), packet(1), 1000, 1000);
        direction.handle_packet(at(100), packet(2), 500, 500);
        assert_eq!(direction.next_delivery(), Some(at(21_000)));
        assert_eq!(direction.poll_delivery(at(20_999)), None);
        assert_eq!(direction.poll_delivery(at(21_400)), Some(packet(1)));
        assert_eq!(direction.next_delivery(), Some(at(21_500)));
        assert_eq!(direction.poll_delivery(at(21_500)), Some(packet(2)));
        assert_eq!((direction.counters.delivered.get(), direction.counters.bytes.get()), (2, 1500));
        assert_eq!(direction.counters.greatest_lateness_us, 400);
        assert_eq!(direction.counters.total_lateness_us.get(), 400);
    }

    #[test]
    fn the_queue_drops_at_its_tail() {
        let line = Line::error_free(Rate::from_bps(8_000_000), Duration::ZERO);
        let mut direction = Direction::new(line, 2);
        for n in 0..5 {
            direction.handle_packet(at(0), packet(n), 1000, 1000);
        }
        // One on the air, two waiting; one more fits when the next has started.
        assert_eq!(direction.counters.dropped_queue.get(), 2);
        direction.handle_packet(at(1000), packet(9), 1000, 1000);
        assert_eq!(direction.counters.dropped_queue.get(), 2);
        let got: Vec<u8> = std::iter::from_fn(|| direction.poll_delivery(at(9999))).map(|p| p[0]).collect();
        assert_eq!(got, [0, 1, 2, 9]);
    }

    #[test]
    fn blockages_are_those_of_the_seed() {
        let text = "rate = \"1 Mbit/s\"\ndelay = \"250 ms\"\nerrors = { periodic = { open = \"1 s\", blocked = \"1 s\" } }";
        let channel: duplex::Config = base::config::parse("channel.toml", text).unwrap();
        let mut direction = Direction::new(channel.build(1, "sat").down, 10);
        for ms in [0, 500, 1100, 1500, 1900] {
            direction.handle_packet(at(ms * 1000), packet(0), 100, 100);
        }
        assert_eq!(direction.counters.damaged.get(), 2, "errors happen where packets arrive, 250 ms later");
    }

    fn direction(path: &str) -> Direction {
        let text = format!("rate = \"8 Mbit/s\"\ndelay = \"20 ms\"\n{path}");
        let channel: duplex::Config = base::config::parse("channel.toml", &text).unwrap();
        Direction::new(channel.build(1, "sat").down, 100)
    }

    #[test]
    fn packets_that_overtake_are_delivered_when_they_arrive() {
        let mut direction =
            direction("overtaking = true\ndelay-changes = [{ at = \"5 ms\", delay = \"5 ms\" }]");
        direction.handle_packet(at(1000), packet(1), 100, 100);
        direction.handle_packet(at(2000), packet(2), 100, 100);
        direction.handle_packet(at(6000), packet(3), 100, 100);
        assert_eq!(direction.next_delivery(), Some(at(11_100)));
        let got: Vec<u8> = std::iter::from_fn(|| direction.poll_delivery(at(99_999))).map(|p| p[0]).collect();
        assert_eq!(got, [3, 1, 2]);
    }

    /// The largest packet and the policer count the packet, the line counts its overhead too.
    #[test]
    fn what_a_path_refuses_is_counted_and_never_queued() {
        let mut direction = direction(
            "largest-packet = { bytes = 1000 }\npolicer = { rate = \"8 Mbit/s\", burst = \"2 kB\" }",
        );
        for (n, len) in [1001, 1000, 1000, 1000].into_iter().enumerate() {
            direction.handle_packet(at(0), packet(n as u8), len, len + 50);
        }
        let counters = direction.counters();
        assert_eq!((counters.too_long, counters.policed, counters.dropped_queue.get()), (1, 1, 0));
        assert_eq!(direction.next_delivery(), Some(at(21_050)));
        let got: Vec<u8> = std::iter::from_fn(|| direction.poll_delivery(at(99_999))).map(|p| p[0]).collect();
        assert_eq!(got, [1, 2]);
    }

    #[test]
    fn silence_and_late_packets_are_counted() {
        let mut direction = direction(
            "delay-slots = { every = \"1 s\", more = [\"0 s\"], gap = \"100 ms\" }\n\
             jitter = { overtaking = { probability = 1, from = \"5 ms\", to = \"5 ms\" } }",
        );
        direction.handle_packet(at(0), packet(1), 1000, 1000);
        direction.handle_packet(at(1_050_000), packet(2), 1000, 1000);
        let counters = direction.counters();
        assert_eq!((counters.silenced, counters.damaged.get(), counters.late), (1, 1, 2));
        assert_eq!(direction.next_delivery(), Some(at(26_000)));
    }
}
