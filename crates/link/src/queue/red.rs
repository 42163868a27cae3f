//! Random early detection: marks or drops packets at random before the queue is full, by its average length.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4),
//! 1993; Floyd, "Recommendation on using the `gentle_` variant of RED", 2000; RFC 2309, 3, and RFC 7567. Where these leave
//! something open, it is as in ns-2 (`queue/red.cc`, with `bytes_` off).
//!
//! Deviations, of which the first three are those of ns-2 too:
//! - A packet that finds fewer than two others is never marked or dropped early, whatever the average.
//! - The packet with which the average comes above `min` is not marked; it is the first that counts.
//! - A forced drop restarts the count.
//! - A packet that is not to be dropped but marked is marked up to the end of the gentle region; ns-2's `mark_p_` (drops where the
//!   probability is above it) is absent.
//! - The queue does not know when the line has sent its last packet. It takes it to be idle a transmission time after that one left.

use std::collections::VecDeque;

use base::units::Size;
use base::{Duration, Instant, Packet, Rate, Rng};

use super::{Dropped, Queue, Refusal, Site};
use crate::marks::mark_congestion;
use crate::slack;

pub use config::{Config, NotRed};

mod config;

/// A queue with random early detection.
#[derive(Debug)]
pub struct Red {
    config: Config,
    rate: Option<Rate>,
    waiting: VecDeque<Packet>,
    bytes: u64,
    /// Bytes that their buffers take.
    buffers: usize,
    /// Exponentially weighted, in packets.
    average: f64,
    /// Packets since one was marked or dropped, while the average is in the region for that.
    count: u64,
    /// Whether the packet before found the average in that region.
    was_above: bool,
    /// When the line became free, if the queue is empty.
    idle_since: Option<Instant>,
    rng: Rng,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    passed: u64,
    marked: u64,
    dropped_early: u64,
    dropped_for_packets: u64,
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It waits.
    Take,
    /// Its sender is to hear of congestion.
    Signal,
    /// There is no room, or the average is beyond all bounds.
    Refuse,
}

impl Red {
    /// The empty queue called `name` on a site.
    #[must_use]
    pub fn new(config: Config, site: &Site<'_>, name: &str) -> Self {
        Self {
            config,
            rate: site.rate,
            waiting: VecDeque::new(),
            bytes: 0,
            buffers: 0,
            average: 0.0,
            count: 0,
            was_above: false,
            idle_since: Some(Instant::ZERO),
            rng: site.rng(name),
            counters: Counters::default(),
        }
    }

    /// Brings the average up to date for a packet that arrives: it decays for each packet that could have left while the line
    /// was idle (Floyd and Jacobson, section 4).
    fn estimate(&mut self, now: Instant) {
        let weight = self.config.weight();
        if let Some(since) = self.idle_since {
            self.average *= libm::pow(1.0 - weight, self.packets_in(now.saturating_since(since)) as f64);
        }
        self.average += weight * (self.waiting.len() as f64 - self.average);
    }

    /// Whole packets of the configured mean length that the line carries in a time; none where nobody knows its rate.
    fn packets_in(&self, span: Duration) -> u64 {
        let Size(mean) = self.config.mean_packet();
        self.rate.map_or(0, |rate| rate.bits_in(span) / (mean * 8))
    }

    /// What is to become of a packet that arrives, once the average is up to date.
    fn judge(&mut self) -> Verdict {
        self.count += 1;
        let mut verdict = Verdict::Take;
        if self.average >= self.config.min() && self.waiting.len() > 1 {
            if self.average >= self.config.end() {
                verdict = Verdict::Refuse;
            } else if !self.was_above {
                self.was_above = true;
                self.count = 1;
            } else if self.rng.chance(self.probability()) {
                verdict = Verdict::Signal;
            }
        } else {
            self.was_above = false;
        }
        if self.waiting.len() >= self.config.packets().get() as usize {
            verdict = Verdict::Refuse;
        }
        if verdict != Verdict::Take {
            self.count = 0;
        }
        verdict
    }

    /// The probability for this packet, which spreads marks evenly: from one to the next it is uniform (section 7).
    fn probability(&self) -> f64 {
        let base = self.config.base_probability(self.average);
        let spread = self.count as f64 * base;
        let probability = match self.config.wait() {
            true if spread < 1.0 => 0.0,
            true if spread < 2.0 => base / (2.0 - spread),
            false if spread < 1.0 => base / (1.0 - spread),
            _ => 1.0,
        };
        probability.min(1.0)
    }

    /// The line is busy with a packet of `len` bytes, and nothing waits.
    fn idle_after(&self, now: Instant, len: usize) -> Instant {
        now.saturating_add(self.rate.map_or(Duration::ZERO, |rate| rate.time_for(len as u64 * 8)))
    }
}

impl Queue for Red {
    fn push(&mut self, now: Instant, mut packet: Packet, dropped: &mut Dropped<'_>) {
        self.estimate(now);
        match self.judge() {
            Verdict::Refuse => {
                self.counters.dropped_for_packets += 1;
                return dropped(packet, Refusal::Packets);
            }
            Verdict::Signal if self.config.ecn() && mark_congestion(&mut packet) => self.counters.marked += 1,
            Verdict::Signal => {
                self.counters.dropped_early += 1;
                return dropped(packet, Refusal::Early);
            }
            Verdict::Take => {}
        }
        self.idle_since = None;
        self.bytes += packet.len() as u64;
        self.buffers += packet.capacity();
        self.waiting.push_back(packet);
    }

    fn pop(&mut self, now: Instant, _dropped: &mut Dropped<'_>) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.len() as u64;
        self.buffers -= packet.capacity();
        slack::give_back(&mut self.waiting);
        self.counters.passed += 1;
        if self.waiting.is_empty() {
            self.idle_since = Some(self.idle_after(now, packet.len()));
        }
        Some(packet)
    }

    fn pass_by(&mut self, now: Instant, len: usize) {
        self.estimate(now);
        self.count += 1;
        self.was_above = false;
        self.idle_since = Some(self.idle_after(now, len));
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

    fn average(&self) -> Option<f64> {
        Some(self.average)
    }

    fn set_limits(&mut self, config: &super::Config, site: &Site<'_>) -> bool {
        let super::Config::Red(config) = config else { return false };
        (self.config, self.rate) = (*config, site.rate);
        true
    }

    fn take_expired(&mut self, now: Instant, expired: &mut dyn FnMut(Packet)) {
        let had_some = !self.waiting.is_empty();
        let (bytes, buffers) = super::take_expired(&mut self.waiting, now, expired);
        self.bytes -= bytes;
        self.buffers -= buffers;
        if had_some && self.waiting.is_empty() {
            self.idle_since = Some(now);
        }
    }

    fn drain(&mut self) -> Vec<Packet> {
        (self.bytes, self.buffers) = (0, 0);
        core::mem::take(&mut self.waiting).into()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { passed, marked, dropped_early, dropped_for_packets } = self.counters;
        vec![
            ("passed", passed),
            ("marked", marked),
            ("dropped-early", dropped_early),
            ("dropped-for-packets", dropped_for_packets),
        ]
    }
}

#[cfg(test)]
mod tests;
