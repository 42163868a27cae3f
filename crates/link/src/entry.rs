//! Where packets enter a link: those that are treated apart, as their marks say, wait apart from those that are sent until they have come.
//!
//! A voice packet that is repeated comes too late to be heard, and holds up those behind it. Its sender says so by its
//! DSCP: telephony is marked 46, expedited forwarding (RFC 3246; RFC 4594, 4.1). A protocol that sends frames again takes
//! such packets apart from the others ([`Treatment::Once`]). One with [classes](Capabilities::has_classes) also keeps what is interactive apart
//! ([`Treatment::Interactive`]).

use base::{Duration, Instant, Packet};

use crate::capabilities::Capabilities;
use crate::endpoint::{Endpoint, Obstacle};
use crate::queue::{self, Dropped, Queue};
use crate::treatment::{ByDscp, Treatment};

/// The queues in front of an endpoint.
#[derive(Debug)]
pub struct Entry {
    by_dscp: ByDscp,
    queue: Box<dyn Queue>,
    /// Where packets wait that are sent once; `None` if none are.
    once: Option<Box<dyn Queue>>,
    /// Where interactive packets wait; `None` if none are treated as such.
    interactive: Option<Box<dyn Queue>>,
    /// Since when the peer has been silent, if it is.
    silent_since: Option<Instant>,
    /// Since when the endpoint's window has been full and nothing has left.
    full_since: Option<Instant>,
}

impl Entry {
    /// Empty queues on `site`, each as `queue` says, in front of an endpoint with these capabilities; packets are treated as `by_dscp`
    /// says. A protocol that recovers no losses sends all packets once, so that there is one queue for all.
    #[must_use]
    pub fn new(
        queue: &queue::Config,
        site: &queue::Site<'_>,
        by_dscp: ByDscp,
        capabilities: Capabilities,
    ) -> Self {
        let once = capabilities.recovers_losses && !by_dscp.once.is_empty();
        let interactive = capabilities.has_classes && !by_dscp.interactive.is_empty();
        Self {
            by_dscp,
            queue: queue.build(site, QUEUE),
            once: once.then(|| queue.build(site, ONCE_QUEUE)),
            interactive: interactive.then(|| queue.build(site, INTERACTIVE_QUEUE)),
            silent_since: None,
            full_since: None,
        }
    }

    /// Takes over other limits and marks; what waits stays. Marks matter only if there were some at the start, or the
    /// protocol sends everything once anyway. Where the configuration is another kind of queue's, packets move to a new one, which
    /// counts from zero, and what it has no room for too.
    pub fn reconfigure(
        &mut self,
        now: Instant,
        config: &queue::Config,
        site: &queue::Site<'_>,
        by_dscp: ByDscp,
    ) {
        self.by_dscp = by_dscp;
        let queues = [
            (Some(&mut self.queue), QUEUE),
            (self.once.as_mut(), ONCE_QUEUE),
            (self.interactive.as_mut(), INTERACTIVE_QUEUE),
        ];
        for (queue, name) in queues.into_iter().filter_map(|(queue, name)| Some((queue?, name))) {
            if !queue.set_limits(config, site) {
                let packets = queue.drain();
                *queue = config.build(site, name);
                packets.into_iter().for_each(|packet| queue.push(now, packet, &mut |_, _| {}));
            }
        }
    }

    /// How a packet is treated, as far as there is a queue for that.
    #[must_use]
    pub fn treatment(&self, packet: &[u8]) -> Treatment {
        match self.by_dscp.treatment(packet) {
            Treatment::Once if self.once.is_some() => Treatment::Once,
            Treatment::Interactive if self.interactive.is_some() => Treatment::Interactive,
            _ => Treatment::Reliable,
        }
    }

    /// How a packet of a stream is treated that somebody here sends again until it has come: never as one that is sent once. The
    /// marks of telephony say at least that somebody waits for it; OpenSSH sets them for shells from version 10.1 on.
    #[must_use]
    pub fn stream_treatment(&self, packet: &[u8]) -> Treatment {
        match self.treatment(packet) {
            Treatment::Once if self.interactive.is_some() => Treatment::Interactive,
            Treatment::Once => Treatment::Reliable,
            other => other,
        }
    }

    fn queue_for(&self, treatment: Treatment) -> Option<&dyn Queue> {
        match treatment {
            Treatment::Reliable => Some(&*self.queue),
            Treatment::Interactive => self.interactive.as_deref(),
            Treatment::Once => self.once.as_deref(),
        }
    }

    fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        Treatment::ALL.into_iter().filter_map(|treatment| self.queue_for(treatment))
    }

    /// Appends a packet to the queue that its marks ask for. If that makes the queue drop packets, this one or some that waited,
    /// `dropped` hears of them.
    pub fn push(&mut self, now: Instant, packet: Packet, dropped: &mut Dropped<'_>) {
        let treatment = self.treatment(&packet);
        self.push_as(now, packet, treatment, dropped);
    }

    /// The same for a packet that is treated so.
    pub fn push_as(&mut self, now: Instant, packet: Packet, treatment: Treatment, dropped: &mut Dropped<'_>) {
        let queue = match treatment {
            Treatment::Reliable => None,
            Treatment::Interactive => self.interactive.as_mut(),
            Treatment::Once => self.once.as_mut(),
        };
        queue.unwrap_or(&mut self.queue).push(now, packet, dropped);
    }

    /// Whether the peer is silent, so that nothing is sent to it. A link of which nobody knows that need not say.
    pub fn set_silent(&mut self, now: Instant, is_silent: bool) {
        self.silent_since = is_silent.then(|| self.silent_since.unwrap_or(now));
        for queue in [&mut self.once, &mut self.interactive].into_iter().flatten() {
            queue.set_blocked(now, self.silent_since);
        }
        if is_silent {
            self.queue.set_blocked(now, self.silent_since);
        }
    }

    /// Tells the queue whether the link is blocked: while its peer is silent; while the endpoint repeats what was lost; and when its window
    /// has been full for [`PATIENCE`] without letting anything through, since then.
    fn watch(&mut self, now: Instant, endpoint: &dyn Endpoint) {
        let obstacle = endpoint.obstacle();
        self.full_since = (obstacle == Some(Obstacle::Window)).then(|| self.full_since.unwrap_or(now));
        let blocked_since = match obstacle {
            _ if self.silent_since.is_some() => self.silent_since,
            Some(Obstacle::Repair) => Some(now),
            Some(Obstacle::Window) => {
                self.full_since.filter(|since| now.saturating_since(*since) >= PATIENCE)
            }
            None => None,
        };
        self.queue.set_blocked(now, blocked_since);
    }

    /// Takes the next packet that `endpoint` has room for, with its treatment: those that are sent once go first, then what is interactive.
    /// `dropped` hears of those that a queue drops instead.
    pub fn pop_for(
        &mut self,
        now: Instant,
        endpoint: &dyn Endpoint,
        dropped: &mut Dropped<'_>,
    ) -> Option<(Packet, Treatment)> {
        self.watch(now, endpoint);
        let Self { queue, once, interactive, .. } = self;
        let queues = [
            (once.as_mut(), Treatment::Once),
            (interactive.as_mut(), Treatment::Interactive),
            (Some(queue), Treatment::Reliable),
        ];
        for (queue, treatment) in queues {
            if let Some(queue) = queue
                && endpoint.has_room(treatment)
                && let Some(packet) = queue.pop(now, dropped)
            {
                return Some((packet, treatment));
            }
        }
        None
    }

    /// The average length in packets that the queue of packets that are sent until they have come goes by; `None` if it goes by
    /// none.
    #[must_use]
    pub fn average(&self) -> Option<f64> {
        self.queue.average()
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues().map(Queue::len).sum()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.queues().map(Queue::bytes).sum()
    }

    /// Bytes of packets with this treatment that wait.
    #[must_use]
    pub fn bytes_for(&self, treatment: Treatment) -> u64 {
        self.queue_for(treatment).map_or(0, Queue::bytes)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues().all(Queue::is_empty)
    }

    /// What the queue of packets that are sent until they have come counted, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.queue.counters()
    }

    /// The same of the queue of packets that are sent once; `None` if there is none.
    #[must_use]
    pub fn once_counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.once.as_ref().map(|once| once.counters())
    }

    /// The same of the queue of interactive packets; `None` if there is none.
    #[must_use]
    pub fn interactive_counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.interactive.as_ref().map(|interactive| interactive.counters())
    }
}

/// How long a window may be full without letting anything through before the link is taken to be blocked. Ours: longer than a round trip by any
/// satellite (0.6 s where it stands still: RFC 2488, 2), in which a window that is too small for its link lets a part of itself through.
const PATIENCE: Duration = Duration::from_secs(1);

/// The names of the queues, of which their random streams have theirs.
const QUEUE: &str = "queue";
const ONCE_QUEUE: &str = "once-queue";
const INTERACTIVE_QUEUE: &str = "interactive-queue";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dscp::DscpSet;
    use crate::endpoint::{Demand, Discard, FrameInfo, Full};
    use crate::line::LineLimits;
    use crate::protocol::Protocol;
    use crate::queue::Refusal;

    const NOW: Instant = Instant::ZERO;

    fn dscps(marks: &[u32]) -> DscpSet {
        marks.to_vec().try_into().unwrap()
    }

    /// Packets with these marks are sent once.
    fn marks(marks: &[u32]) -> ByDscp {
        ByDscp { once: dscps(marks), ..ByDscp::default() }
    }

    fn ipv4(dscp: u8) -> Packet {
        Packet::from_slice(&[&[0x45, dscp << 2 | 1], [0; 18].as_slice()].concat())
    }

    fn cotmll() -> Protocol {
        Protocol::Cotmll(crate::cotmll::Config::default())
    }

    fn entry(queue: &queue::Config, marks: ByDscp, protocol: &Protocol) -> Entry {
        let site = queue::Site { rate: None, seed: 1, name: "l" };
        Entry::new(queue, &site, marks, protocol.capabilities())
    }

    fn push(entry: &mut Entry, packet: Packet) -> Result<(), Refusal> {
        let mut result = Ok(());
        entry.push(NOW, packet, &mut |_, reason| result = Err(reason));
        result
    }

    fn no_drops(_: Packet, reason: Refusal) {
        panic!("dropped: {reason:?}");
    }

    fn build(protocol: &Protocol) -> Box<dyn Endpoint> {
        protocol.build(&LineLimits::default())
    }

    #[test]
    fn what_is_sent_once_does_not_wait_behind_the_rest() {
        let (mut entry, mut endpoint) =
            (entry(&queue::Config::default(), marks(&[46]), &cotmll()), build(&cotmll()));
        for dscp in [0, 0, 46, 46] {
            push(&mut entry, ipv4(dscp)).unwrap();
        }
        let mut taken = Vec::new();
        while let Some((packet, treatment)) = entry.pop_for(NOW, &*endpoint, &mut no_drops) {
            taken.push((packet[1] >> 2, treatment));
            let Ok(()) = endpoint.offer(NOW, packet, treatment) else { panic!("no room for {treatment:?}") };
        }
        // One of each, for which the endpoint has room.
        assert_eq!(taken, [(46, Treatment::Once), (0, Treatment::Reliable)]);
        assert!((entry.len(), entry.is_empty()) == (2, false) && entry.once_counters().is_some());
        let refused = endpoint.offer(NOW, ipv4(46), Treatment::Once);
        assert!(matches!(refused, Err(Full(_))));
    }

    #[test]
    fn what_is_interactive_has_a_queue_where_there_are_classes() {
        let by_dscp = ByDscp { once: dscps(&[46]), interactive: dscps(&[18]) };
        let coded = Protocol::Coded(crate::coded::Config::default());
        let order = |protocol: &Protocol| {
            let (mut entry, endpoint) =
                (entry(&queue::Config::default(), by_dscp, protocol), build(protocol));
            for dscp in [0, 18, 46] {
                push(&mut entry, ipv4(dscp)).unwrap();
            }
            let waits = Treatment::ALL.map(|treatment| entry.bytes_for(treatment));
            let order = [0; 3].map(|_| entry.pop_for(NOW, &*endpoint, &mut no_drops).unwrap());
            (waits, order.map(|(packet, treatment)| (packet[1] >> 2, treatment)))
        };
        let (waits, taken) = order(&coded);
        assert_eq!(waits, [20; 3]);
        assert_eq!(taken, [(46, Treatment::Once), (18, Treatment::Interactive), (0, Treatment::Reliable)]);
        let (waits, taken) = order(&cotmll());
        assert_eq!(waits, [20, 0, 40]);
        assert_eq!(taken.map(|(dscp, _)| dscp), [46, 0, 18]);
        // Whoever sends a packet again until it has come does not ask the link to send it once.
        let entry = entry(&queue::Config::default(), by_dscp, &coded);
        let treatments = [0, 18, 46].map(|dscp| entry.stream_treatment(&ipv4(dscp)));
        assert_eq!(treatments, [Treatment::Reliable, Treatment::Interactive, Treatment::Interactive]);
    }

    /// Packets keep their order where each is sent once anyway.
    #[test]
    fn without_marks_or_repetitions_there_is_one_queue() {
        for (marks, protocol) in [(marks(&[46]), Protocol::default()), (ByDscp::default(), cotmll())] {
            let (mut entry, endpoint) =
                (entry(&queue::Config::default(), marks, &protocol), build(&protocol));
            push(&mut entry, ipv4(0)).unwrap();
            push(&mut entry, ipv4(46)).unwrap();
            let order = [0, 1].map(|_| entry.pop_for(NOW, &*endpoint, &mut no_drops).unwrap());
            assert_eq!(
                order.map(|(packet, treatment)| (packet[1] >> 2, treatment)),
                [(0, Treatment::Reliable), (46, Treatment::Reliable)]
            );
            assert!(entry.is_empty() && entry.once_counters().is_none());
        }
    }

    #[test]
    fn each_queue_has_its_own_limit() {
        let one = queue::Config::DropTail(queue::drop_tail::Config::packets(core::num::NonZeroU32::MIN));
        let mut entry = entry(&one, marks(&[46]), &cotmll());
        for dscp in [46, 0] {
            push(&mut entry, ipv4(dscp)).unwrap();
            assert_eq!(push(&mut entry, ipv4(dscp)), Err(Refusal::Packets));
        }
        assert_eq!(entry.len(), 2);
        assert!(push(&mut entry, ipv4(0)).is_err());
        let dropped = |counters: Vec<(&str, u64)>| counters.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!([Some(entry.counters()), entry.once_counters()].map(|of| dropped(of.unwrap())), [2, 1]);
    }

    /// An endpoint that takes any packet, or has no room, perhaps because of an obstacle.
    #[derive(Debug)]
    enum Stub {
        Free,
        Full(Option<Obstacle>),
    }

    impl Endpoint for Stub {
        fn capabilities(&self) -> Capabilities {
            cotmll().capabilities()
        }
        fn offer(&mut self, _: Instant, _: Packet, _: Treatment) -> Result<(), Full> {
            Ok(())
        }
        fn has_room(&self, _: Treatment) -> bool {
            matches!(self, Self::Free)
        }
        fn obstacle(&self) -> Option<Obstacle> {
            if let Self::Full(obstacle) = self { *obstacle } else { None }
        }
        fn handle_frame(&mut self, _: Instant, _: &[u8]) -> Result<(), Discard> {
            Ok(())
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_frame(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<FrameInfo> {
            None
        }
        fn poll_packet(&mut self) -> Option<Packet> {
            None
        }
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn demand(&self, _: Instant) -> Demand {
            Demand::Nothing
        }
        fn reset(&mut self) {}
        fn counters(&self) -> Vec<(&'static str, u64)> {
            Vec::new()
        }
    }

    fn fq_codel(text: &str) -> queue::Config {
        queue::Config::FqCodel(base::config::parse("queue.toml", text).unwrap())
    }

    /// What a queue of which a packet leaves each millisecond drops at each, `endpoint` saying in what state that is.
    fn drops(text: &str, millis: u64, mut endpoint: impl FnMut(u64, &mut Entry) -> Stub) -> Vec<u32> {
        let mut entry = entry(&fq_codel(text), ByDscp::default(), &cotmll());
        (0..500).for_each(|_| push(&mut entry, ipv4(0).padded(1000)).unwrap());
        let step = |milli| {
            let stub = endpoint(milli, &mut entry);
            let (now, mut dropped) = (NOW + Duration::from_millis(milli), 0);
            if entry.pop_for(now, &stub, &mut |_, _| dropped += 1).is_some() {
                entry.push(now, ipv4(0).padded(1000), &mut |_, reason| panic!("{reason:?}"));
            }
            dropped
        };
        (0..millis).map(step).collect()
    }

    fn full_if(is_full: bool, obstacle: Option<Obstacle>) -> Stub {
        if is_full { Stub::Full(obstacle) } else { Stub::Free }
    }

    trait Padded {
        fn padded(self, len: usize) -> Packet;
    }

    impl Padded for Packet {
        fn padded(mut self, len: usize) -> Packet {
            self.resize(len);
            self
        }
    }

    fn most(drops: &[u32]) -> u32 {
        *drops.iter().max().unwrap()
    }

    /// Goal: what waits because the link repeats, or takes nothing for a second, or has nobody at its other end, is not dropped for that; where
    /// the queue does not pause, dozens are.
    #[test]
    fn a_blocked_link_stops_the_queues_clock() {
        let during = |milli: u64, length: u64| (300..300 + length).contains(&milli);
        for (name, obstacle) in [("repair", Obstacle::Repair), ("window", Obstacle::Window)] {
            let blocked = |milli, _: &mut Entry| full_if(during(milli, 1500), Some(obstacle));
            assert_eq!(most(&drops("", 2500, blocked)), 1, "{name}");
            assert!(most(&drops("pause-when-blocked = false", 2500, blocked)) > 30, "{name}");
        }
        let silent = |milli, entry: &mut Entry| {
            entry.set_silent(NOW + Duration::from_millis(milli), during(milli, 1500));
            // Nobody asks it for frames, so it has no room, and nothing is in the way.
            full_if(during(milli, 1500), None)
        };
        let (alone, together) = (drops("", 2500, silent), drops("", 1000, |_, _| Stub::Free));
        assert_eq!(most(&alone), 1);
        // It goes on where it stopped.
        assert_eq!(alone.iter().sum::<u32>(), together.iter().sum::<u32>());
        // A pause of less than a second may be a window that is too small.
        let short = |milli, _: &mut Entry| full_if(during(milli, 999), Some(Obstacle::Window));
        assert!(most(&drops("", 2500, short)) > 10);
    }

    /// Goal: where a window that is too small for its link lets packets through in bursts, once a round trip, the queue is managed all the same.
    #[test]
    fn a_small_window_does_not_stop_the_clock() {
        let bursts = |milli: u64, _: &mut Entry| full_if(milli % 700 >= 100, Some(Obstacle::Window));
        let dropped = |text| drops(text, 10_000, bursts).iter().sum::<u32>();
        let (paused, running) = (dropped(""), dropped("pause-when-blocked = false"));
        assert!(running > 100 && paused == running, "{paused} against {running}");
    }

    #[test]
    fn another_kind_of_queue_takes_over_what_waits() {
        let site = queue::Site { rate: None, seed: 1, name: "l" };
        let mut entry = entry(&queue::Config::default(), marks(&[46]), &cotmll());
        for dscp in [0, 46, 0, 0] {
            push(&mut entry, ipv4(dscp)).unwrap();
        }
        entry.reconfigure(NOW, &fq_codel(""), &site, marks(&[46]));
        assert_eq!((entry.len(), entry.bytes()), (4, 80));
        let delayed =
            |counters: Vec<(&str, u64)>| counters.iter().any(|(name, _)| *name == "dropped-for-delay");
        assert!(delayed(entry.counters()) && delayed(entry.once_counters().unwrap()));
        let red = queue::Config::Red(base::config::parse("queue.toml", "packets = 2").unwrap());
        entry.reconfigure(NOW, &red, &site, marks(&[46]));
        assert_eq!(entry.len(), 3);
        assert_eq!(entry.counters().last(), Some(&("dropped-for-packets", 1)));
        assert_eq!(entry.average(), Some(0.002 * 1.0 + 0.002 * (2.0 - 0.002)));
    }
}
