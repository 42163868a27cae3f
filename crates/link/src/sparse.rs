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
//! - A flow whose packets are on their way among those of others stays there until they have come, so that it does not overtake itself. A call
//!   always has some on their way: so a flow of datagrams that has kept to its share for a second is thin again nevertheless, and overtakes itself
//!   that once.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate};

use crate::flow;

/// Who has sent how much lately.
#[derive(Debug)]
pub(crate) struct SparseFlows {
    rate: Option<Rate>,
    /// By place; none before the first packet of any: a gateway may have thousands of these.
    flows: Vec<Flow>,
    /// Tells where flows are found, so that no sender can know whom to get in the way of.
    key: [u64; 2],
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
    /// When it last sent more than its share, or had to wait for other reasons.
    demoted_at: Option<Instant>,
}

/// How a flow has kept to its share of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// It sends more.
    Exceeded,
    /// It sends no more.
    Kept,
    /// It has not been demoted for [`PROBATION`].
    KeptForLong,
}

impl SparseFlows {
    /// Nobody has sent anything to a link of this rate, if it has one.
    pub(crate) fn new(rate: Option<Rate>, key: [u64; 2]) -> Self {
        Self { rate, flows: Vec::new(), key, clock: 0, served: VecDeque::new(), active: 0 }
    }

    /// The link has another rate from now on.
    pub(crate) const fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    fn place_of(&self, packet: &[u8]) -> u16 {
        (flow::keyed_hash(packet, self.key) % FLOWS as u64) as u16
    }

    fn flow_of(&mut self, packet: &[u8]) -> &mut Flow {
        let place = self.place_of(packet);
        self.flow_at(place)
    }

    fn flow_at(&mut self, place: u16) -> &mut Flow {
        if self.flows.is_empty() {
            let flow = Flow { credit: QUANTUM, at: Instant::ZERO, queued: 0, served: 0, demoted_at: None };
            self.flows.resize(FLOWS, flow);
        }
        &mut self.flows[usize::from(place)]
    }

    /// Takes note of a packet that comes; how its flow has kept to its share.
    pub(crate) fn share(&mut self, now: Instant, packet: &[u8]) -> Share {
        let rate = self.rate.unwrap_or(UNKNOWN_RATE);
        let sharing = self.active.max(1) + 1;
        let flow = self.flow_of(packet);
        let elapsed = now.saturating_since(flow.at).min(LONGEST);
        let earned = rate.bits_in(elapsed) / 8 / sharing;
        flow.credit = flow.credit.saturating_add_unsigned(earned).min(QUANTUM);
        flow.at = now;
        let is_kept = flow.credit > 0;
        flow.credit = (flow.credit - packet.len() as i64).max(-QUANTUM);
        if !is_kept {
            return Share::Exceeded;
        }
        let is_on_probation = flow.demoted_at.is_some_and(|then| now.saturating_since(then) < PROBATION);
        if is_on_probation { Share::Kept } else { Share::KeptForLong }
    }

    /// The flow of a packet that comes now is not thin.
    pub(crate) fn demote(&mut self, now: Instant, packet: &[u8]) {
        self.flow_of(packet).demoted_at = Some(now);
    }

    /// Whether packets of this one's flow wait among those of others.
    pub(crate) fn waits(&self, packet: &[u8]) -> bool {
        self.flows.get(usize::from(self.place_of(packet))).is_some_and(|flow| flow.queued > 0)
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
        let served = &mut self.flow_at(place).served;
        *served += 1;
        self.active += u64::from(*served == 1);
        while let Some((_, place)) = self.served.pop_front_if(|(clock, _)| *clock + LATELY < self.clock) {
            let served = &mut self.flow_at(place).served;
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

/// For so long a flow of datagrams keeps to its share before it may overtake what it sent before. Ours: video, whose pictures come in bursts, never
/// does, and a call is not disturbed for long.
const PROBATION: Duration = Duration::from_secs(1);

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

    fn is_thin(flows: &mut SparseFlows, micros: u64, packet: &[u8]) -> bool {
        let share = flows.share(at(micros), packet);
        if share == Share::Exceeded {
            flows.demote(at(micros), packet);
        }
        share != Share::Exceeded
    }

    /// How many of the packets that a flow sends every so many microseconds are thin, of a thousand.
    fn thin(flows: &mut SparseFlows, len: usize, micros: u64) -> usize {
        (0..1000).filter(|n| is_thin(flows, 1_000_000 + n * micros, &packet(1, len))).count()
    }

    fn of_rate(bps: u64) -> SparseFlows {
        SparseFlows::new(Some(Rate::from_bps(bps)), [5, 6])
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

    /// Goal: a burst of more than a quantum, and a flow that pays back what it sent are not thin.
    #[test]
    fn a_burst_is_not_thin() {
        let mut flows = of_rate(8_000_000);
        let thin = [0; 4].map(|_| is_thin(&mut flows, 1_000_000, &packet(1, 1000)));
        assert_eq!(thin, [true, true, false, false]);
        // It has a quantum to pay, at half a byte a microsecond.
        assert!(!is_thin(&mut flows, 1_003_000, &packet(1, 1000)));
        assert!(is_thin(&mut flows, 1_009_000, &packet(1, 1000)));
        assert!(is_thin(&mut flows, 1_009_000, &packet(2, 1000)), "another flow");
        flows.on_queued(&packet(3, 100));
        assert_eq!([1, 3].map(|flow| flows.waits(&packet(flow, 100))), [false, true]);
        flows.on_left(&packet(3, 100));
        assert!(!flows.waits(&packet(3, 100)));
    }

    #[test]
    fn a_second_without_a_burst_ends_the_probation() {
        let mut flows = of_rate(8_000_000);
        assert_eq!(flows.share(at(1_000_000), &packet(1, 100)), Share::KeptForLong);
        (0..4).for_each(|_| _ = is_thin(&mut flows, 1_000_000, &packet(1, 1000)));
        for (micros, share) in
            [(1_100_000, Share::Kept), (1_999_999, Share::Kept), (2_000_000, Share::KeptForLong)]
        {
            assert_eq!(flows.share(at(micros), &packet(1, 100)), share, "{micros}");
            assert_eq!(flows.share(at(micros), &packet(2, 100)), Share::KeptForLong, "another flow");
        }
    }
}
