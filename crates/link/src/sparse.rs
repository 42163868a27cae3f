//! Which flows are thin, so that their packets need not wait behind those of others: the sparse flows of RFC 8290, 3.1, told in front of a
//! link's classes.
//!
//! A flow is thin while none of its packets waits or is on its way among those of others, and it sends less than its fair share of the
//! link: it earns bytes at that rate, a quantum at most, and pays for what it sends. Calls, games, DNS and keystrokes are thin; downloads
//! are not after a packet or two.
//!
//! Deviations:
//! - The RFC's scheduler serves each flow from a queue of its own, and a round takes as long as it takes. Here a fair share is the link's rate by
//!   the number of flows that have lately been served and this one, at most half.
//! - A flow whose packets are on their way among those of others stays there until they have come, so that it does not overtake itself.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate};

use crate::flow;

/// Who has sent how much lately.
#[derive(Debug)]
pub(crate) struct SparseFlows {
    rate: Option<Rate>,
    flows: Box<[Flow]>,
    /// Tells where flows are found, so that no sender can know whom to get in the way of.
    salt: u64,
    /// Bytes of packets of flows that are not thin which have left.
    clock: u64,
    /// The latest of these packets: when they left by that clock, and whose they were.
    served: VecDeque<(u64, u16)>,
    /// Flows that these are of.
    active: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    /// Bytes that it may send; below zero if it has sent more.
    credit: i64,
    /// When that was so.
    at: Instant,
    /// Its packets that wait among those of others.
    queued: u32,
    /// Its packets among the latest served.
    served: u32,
}

impl SparseFlows {
    /// Nobody has sent anything to a link of this rate, if it has one.
    pub(crate) fn new(rate: Option<Rate>, salt: u64) -> Self {
        let flow = Flow { credit: QUANTUM, at: Instant::ZERO, queued: 0, served: 0 };
        Self { rate, flows: vec![flow; FLOWS].into(), salt, clock: 0, served: VecDeque::new(), active: 0 }
    }

    /// The link has another rate from now on.
    pub(crate) const fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    fn place_of(&self, packet: &[u8]) -> u16 {
        (flow::mixed(flow::hash(packet) ^ self.salt) % FLOWS as u64) as u16
    }

    fn flow_of(&mut self, packet: &[u8]) -> &mut Flow {
        let place = self.place_of(packet);
        &mut self.flows[usize::from(place)]
    }

    /// Takes note of a packet that comes; whether its flow is thin as far as is known here.
    pub(crate) fn is_thin(&mut self, now: Instant, packet: &[u8]) -> bool {
        let rate = self.rate.unwrap_or(UNKNOWN_RATE);
        let sharing = self.active.max(1) + 1;
        let flow = self.flow_of(packet);
        let elapsed = now.saturating_since(flow.at).min(LONGEST);
        let earned = rate.bits_in(elapsed) / 8 / sharing;
        flow.credit = flow.credit.saturating_add_unsigned(earned).min(QUANTUM);
        flow.at = now;
        let is_thin = flow.credit > 0 && flow.queued == 0;
        flow.credit = (flow.credit - packet.len() as i64).max(-QUANTUM);
        is_thin
    }

    /// Flows that are not thin of which packets have lately been served.
    pub(crate) const fn active(&self) -> u64 {
        self.active
    }

    /// A packet waits among those of others.
    pub(crate) fn on_queued(&mut self, packet: &[u8]) {
        self.flow_of(packet).queued += 1;
    }

    /// A packet does so no longer.
    pub(crate) fn on_left(&mut self, packet: &[u8]) {
        let flow = self.flow_of(packet);
        flow.queued = flow.queued.saturating_sub(1);
    }

    /// A packet of a flow that is not thin leaves.
    pub(crate) fn on_served(&mut self, packet: &Packet) {
        let place = self.place_of(packet);
        self.clock += packet.len() as u64;
        self.served.push_back((self.clock, place));
        let served = &mut self.flows[usize::from(place)].served;
        *served += 1;
        self.active += u64::from(*served == 1);
        while let Some((_, place)) = self.served.pop_front_if(|(clock, _)| *clock + LATELY < self.clock) {
            let served = &mut self.flows[usize::from(place)].served;
            *served -= 1;
            self.active -= u64::from(*served == 0);
        }
    }
}

/// Bytes: RFC 8290, 5.2.4, an Ethernet's packet with its header.
pub(crate) const QUANTUM: i64 = 1514;

/// RFC 8290, 5.2.5. Two flows that share a place are taken for one.
const FLOWS: usize = 1024;

/// Bytes of other packets in which a flow counts as one that shares the link. Ours: so many quanta that a hundred flows are told.
const LATELY: u64 = 128 << 10;

/// Where nobody knows the rate. Ours: enough for a call.
const UNKNOWN_RATE: Rate = Rate::from_bps(1_000_000);

/// In which any flow earns a quantum, on the slowest line.
const LONGEST: Duration = Duration::from_secs(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of this flow.
    fn packet(flow: u8, len: usize) -> Packet {
        let mut bytes = vec![0; len];
        (bytes[0], bytes[9], bytes[15]) = (0x45, 17, flow);
        Packet::from_slice(&bytes)
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// How many of the packets that a flow sends every so many microseconds are thin, of a thousand.
    fn thin(flows: &mut SparseFlows, len: usize, micros: u64) -> usize {
        (0..1000).filter(|n| flows.is_thin(at(1_000_000 + n * micros), &packet(1, len))).count()
    }

    fn of_rate(bps: u64) -> SparseFlows {
        SparseFlows::new(Some(Rate::from_bps(bps)), 7)
    }

    /// Goal: on 8 Mbit/s, a byte a microsecond, half of the line is a flow's share while nobody or one other flow is served, a third beside two.
    #[test]
    fn a_flow_is_thin_up_to_its_fair_share() {
        for (others, micros) in [(0, 2000), (1, 2000), (2, 3000), (9, 10_000)] {
            let busy = || {
                let mut flows = of_rate(8_000_000);
                (0..others * 3).for_each(|n| flows.on_served(&packet(100 + n % others, 1000)));
                flows
            };
            assert_eq!(thin(&mut busy(), 1000, micros), 1000, "{others} others");
            let above = thin(&mut busy(), 1000, micros * 8 / 10);
            assert!(above < 900, "{others} others: {above} of what is a quarter too much");
        }
    }

    #[test]
    fn those_that_are_served_no_more_count_no_more() {
        let mut flows = of_rate(8_000_000);
        (0..50).for_each(|flow| flows.on_served(&packet(100 + flow, 1000)));
        assert_eq!(flows.active, 50);
        (0..200).for_each(|_| flows.on_served(&packet(99, 1000)));
        assert_eq!((flows.active, flows.served.len()), (1, 1 + LATELY as usize / 1000));
    }

    /// Goal: a burst of more than a quantum, a packet that waits, and a flow that pays back what it sent are not thin.
    #[test]
    fn a_burst_is_not_thin() {
        let mut flows = of_rate(8_000_000);
        let thin = [0; 4].map(|_| flows.is_thin(at(1_000_000), &packet(1, 1000)));
        assert_eq!(thin, [true, true, false, false]);
        // It has a quantum to pay, at half a byte a microsecond.
        assert!(!flows.is_thin(at(1_003_000), &packet(1, 1000)));
        assert!(flows.is_thin(at(1_009_000), &packet(1, 1000)));
        assert!(flows.is_thin(at(1_009_000), &packet(2, 1000)), "another flow");
        flows.on_queued(&packet(3, 100));
        assert!(!flows.is_thin(at(2_000_000), &packet(3, 100)));
        flows.on_left(&packet(3, 100));
        assert!(flows.is_thin(at(2_000_000), &packet(3, 100)));
    }
}
