//! Where packets enter a link: those that are treated apart, as their marks say, wait apart from those that are sent until they have come.
//!
//! A voice packet that is repeated comes too late to be heard, and holds up those behind it. Its sender says so by its
//! DSCP: telephony is marked 46, expedited forwarding (RFC 3246; RFC 4594, 4.1). A protocol that sends frames again takes
//! such packets apart from the others ([`Treatment::Once`]). One with [classes](Capabilities::has_classes) also keeps what is interactive apart
//! ([`Treatment::Interactive`]).
//!
//! Most senders mark nothing. If told, thin flows without a mark count as interactive (`sparse`), and datagrams without a mark
//! that are treated apart get a time at which they are dropped, here or by the endpoint ([`crate::age`]).

use base::{Duration, Instant, Packet};

use crate::capabilities::Capabilities;
use crate::endpoint::{Endpoint, Obstacle};
use crate::flow;
use crate::queue::{self, Dropped, Queue, Refusal};
use crate::sparse::{self, SparseFlows};
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
    /// Whether the endpoint carries interactive packets apart.
    has_classes: bool,
    /// Tells thin flows, if these count as interactive.
    sparse: Option<SparseFlows>,
    /// The age beyond which datagrams are dropped that no mark treats apart.
    datagram_age: Option<Duration>,
    /// When the queues are looked through for those.
    purge_at: Instant,
    /// Packets dropped for their age, by their queue's place in [`Treatment::ALL`].
    expired: [u64; 3],
    /// Those of them whose turn had come, so that their queue takes them for passed.
    overdue: [u64; 3],
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
            has_classes: capabilities.has_classes,
            sparse: None,
            datagram_age: None,
            purge_at: Instant::ZERO,
            expired: [0; 3],
            overdue: [0; 3],
            silent_since: None,
            full_since: None,
        }
    }

    /// The same queues, and thin flows without a mark count as interactive where the protocol has classes. The queue for them, if there is none
    /// yet, is as `queue` says.
    #[must_use]
    pub fn with_sparse_flows(self, queue: &queue::Config, site: &queue::Site<'_>) -> Self {
        if !self.has_classes {
            return self;
        }
        let interactive = self.interactive.or_else(|| Some(queue.build(site, INTERACTIVE_QUEUE)));
        let sparse = Some(SparseFlows::new(site.rate, site.rng(SPARSE_FLOWS).bits()));
        Self { interactive, sparse, ..self }
    }

    /// From now on datagrams that come, and that no mark treats apart, are dropped beyond this age, if there is one.
    pub const fn set_datagram_age(&mut self, age: Option<Duration>) {
        self.datagram_age = age;
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
        let Self { queue, once, interactive, sparse, .. } = self;
        if let Some(sparse) = sparse {
            sparse.set_rate(site.rate);
        }
        let queues =
            [(Some(queue), QUEUE), (once.as_mut(), ONCE_QUEUE), (interactive.as_mut(), INTERACTIVE_QUEUE)];
        for (queue, name) in queues.into_iter().filter_map(|(queue, name)| Some((queue?, name))) {
            if !queue.set_limits(config, site) {
                let packets = queue.drain();
                *queue = config.build(site, name);
                let mut dropped = |packet: Packet, _| {
                    if let Some(sparse) = sparse.as_mut().filter(|_| name == QUEUE) {
                        sparse.on_left(&packet);
                    }
                };
                packets.into_iter().for_each(|packet| queue.push(now, packet, &mut dropped));
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

    /// How a packet that comes now is treated: as its mark says, and if that says nothing, by its flow.
    fn treatment_in_flow(&mut self, now: Instant, packet: &[u8], endpoint: &dyn Endpoint) -> Treatment {
        match self.treatment(packet) {
            Treatment::Reliable if self.is_thin(now, packet, endpoint) => Treatment::Interactive,
            other => other,
        }
    }

    /// Whether a packet goes before those of others because its flow is thin: not once so much waits there that the next would wait too.
    fn is_thin(&mut self, now: Instant, packet: &[u8], endpoint: &dyn Endpoint) -> bool {
        let (Some(sparse), Some(interactive)) = (&mut self.sparse, &self.interactive) else { return false };
        flow::dscp(packet) == Some(0)
            && sparse.is_thin(now, packet)
            && interactive.bytes() <= MOST_INTERACTIVE
            && !endpoint.carries_flow_of(packet)
    }

    /// How a packet of a stream is treated that somebody here sends again until it has come, and who sends it now: never as one that is sent
    /// once. The marks of telephony say at least that somebody waits for it; OpenSSH sets them for shells from version 10.1 on.
    #[must_use]
    pub fn stream_treatment(&mut self, now: Instant, packet: &Packet, endpoint: &dyn Endpoint) -> Treatment {
        let treatment = match self.treatment_in_flow(now, packet, endpoint) {
            Treatment::Once if self.interactive.is_some() => Treatment::Interactive,
            Treatment::Once => Treatment::Reliable,
            other => other,
        };
        if let Some(sparse) = self.sparse.as_mut().filter(|_| treatment == Treatment::Reliable) {
            sparse.on_served(packet);
        }
        treatment
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

    /// Appends a packet on its way to `endpoint` to the queue that its marks or its flow ask for. If that makes the queue drop packets, this
    /// one or some that waited, `dropped` hears of them.
    pub fn push(
        &mut self,
        now: Instant,
        mut packet: Packet,
        endpoint: &dyn Endpoint,
        dropped: &mut Dropped<'_>,
    ) {
        let is_unmarked = self.treatment(&packet) == Treatment::Reliable;
        let age = self.datagram_age.filter(|_| is_unmarked && flow::is_datagram(&packet));
        packet.set_expiry(age.map(|age| now.saturating_add(age)));
        self.purge(now, dropped);
        let treatment = self.treatment_in_flow(now, &packet, endpoint);
        self.push_as(now, packet, treatment, dropped);
    }

    /// Appends a packet that is treated so.
    pub fn push_as(&mut self, now: Instant, packet: Packet, treatment: Treatment, dropped: &mut Dropped<'_>) {
        let Self { queue, once, interactive, sparse, .. } = self;
        let apart = match treatment {
            Treatment::Reliable => None,
            Treatment::Interactive => interactive.as_mut(),
            Treatment::Once => once.as_mut(),
        };
        if let Some(queue) = apart {
            return queue.push(now, packet, dropped);
        }
        if let Some(sparse) = sparse {
            sparse.on_queued(&packet);
        }
        queue.push(now, packet, &mut noting(sparse, dropped));
    }

    /// Takes out what has expired, now and then: what waits for a link that takes nothing would otherwise keep what is new from its place.
    fn purge(&mut self, now: Instant, dropped: &mut Dropped<'_>) {
        let Some(age) = self.datagram_age.filter(|_| now >= self.purge_at) else { return };
        self.purge_at = now.saturating_add((age / PURGES).max(LEAST_PURGE));
        let Self { queue, interactive, sparse, expired, .. } = self;
        queue.take_expired(now, &mut |packet| {
            expired[RELIABLE] += 1;
            noting(sparse, dropped)(packet, Refusal::Expired);
        });
        if let Some(interactive) = interactive {
            interactive.take_expired(now, &mut |packet| {
                expired[INTERACTIVE] += 1;
                dropped(packet, Refusal::Expired);
            });
        }
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
    /// `dropped` hears of those that a queue drops instead, and of those that have expired.
    pub fn pop_for(
        &mut self,
        now: Instant,
        endpoint: &dyn Endpoint,
        dropped: &mut Dropped<'_>,
    ) -> Option<(Packet, Treatment)> {
        self.watch(now, endpoint);
        let Self { queue, once, interactive, sparse, overdue, .. } = self;
        for (apart, treatment) in [(once, Treatment::Once), (interactive, Treatment::Interactive)] {
            if let Some(queue) = apart
                && endpoint.has_room(treatment)
                && let Some(packet) = pop(&mut **queue, now, &mut overdue[place(treatment)], dropped)
            {
                return Some((packet, treatment));
            }
        }
        if !endpoint.has_room(Treatment::Reliable) {
            return None;
        }
        let packet = pop(&mut **queue, now, &mut overdue[RELIABLE], &mut noting(sparse, dropped))?;
        if let Some(sparse) = sparse {
            sparse.on_left(&packet);
            sparse.on_served(&packet);
        }
        Some((packet, Treatment::Reliable))
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
        self.counters_of(Treatment::Reliable, &*self.queue)
    }

    /// The same of the queue of packets that are sent once; `None` if there is none.
    #[must_use]
    pub fn once_counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.once.as_ref().map(|once| once.counters())
    }

    /// The same of the queue of interactive packets; `None` if there is none.
    #[must_use]
    pub fn interactive_counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.interactive.as_ref().map(|interactive| self.counters_of(Treatment::Interactive, &**interactive))
    }

    /// What a queue counted, and what was dropped for its age if datagrams are.
    fn counters_of(&self, treatment: Treatment, queue: &dyn Queue) -> Vec<(&'static str, u64)> {
        let mut counters = queue.counters();
        let (expired, overdue) = (self.expired[place(treatment)], self.overdue[place(treatment)]);
        if let Some((_, passed)) = counters.iter_mut().find(|(name, _)| *name == "passed") {
            // It counts from zero where the kind of queue was changed.
            *passed = passed.saturating_sub(overdue);
        }
        counters.extend(self.datagram_age.map(|_| ("expired", expired + overdue)));
        counters
    }
}

/// The packet whose turn it is in a queue and whose time is not up.
fn pop(queue: &mut dyn Queue, now: Instant, overdue: &mut u64, dropped: &mut Dropped<'_>) -> Option<Packet> {
    loop {
        let packet = queue.pop(now, dropped)?;
        if !queue::is_expired(&packet, now) {
            return Some(packet);
        }
        *overdue += 1;
        dropped(packet, Refusal::Expired);
    }
}

/// Hears of packets that the queue of all others drops: so they wait no longer.
fn noting(sparse: &mut Option<SparseFlows>, dropped: &mut Dropped<'_>) -> impl FnMut(Packet, Refusal) {
    move |packet, reason| {
        if let Some(sparse) = sparse {
            sparse.on_left(&packet);
        }
        dropped(packet, reason);
    }
}

/// Where a treatment stands in [`Treatment::ALL`].
const fn place(treatment: Treatment) -> usize {
    match treatment {
        Treatment::Once => 0,
        Treatment::Interactive => 1,
        Treatment::Reliable => 2,
    }
}

const INTERACTIVE: usize = place(Treatment::Interactive);
const RELIABLE: usize = place(Treatment::Reliable);

/// Bytes of interactive packets that wait while another flow is taken for thin. Ours: two quanta; with more, thin flows together send more than
/// their class carries.
const MOST_INTERACTIVE: u64 = 2 * sparse::QUANTUM as u64;

/// How often a queue is looked through in the time in which a datagram expires.
const PURGES: u64 = 4;

/// Between two looks at least.
const LEAST_PURGE: Duration = Duration::from_millis(10);

/// How long a window may be full without letting anything through before the link is taken to be blocked. Ours: longer than a round trip by any
/// satellite (0.6 s where it stands still: RFC 2488, 2), in which a window that is too small for its link lets a part of itself through.
const PATIENCE: Duration = Duration::from_secs(1);

/// The names of the queues, of which their random streams have theirs.
const QUEUE: &str = "queue";
const ONCE_QUEUE: &str = "once-queue";
const INTERACTIVE_QUEUE: &str = "interactive-queue";

/// The name of the thin flows' random stream.
const SPARSE_FLOWS: &str = "sparse-flows";

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
        entry.push(NOW, packet, &Stub::Free, &mut |_, reason| result = Err(reason));
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
        let mut entry = entry(&queue::Config::default(), by_dscp, &coded);
        let treatments = [0, 18, 46].map(|dscp| entry.stream_treatment(NOW, &ipv4(dscp), &Stub::Free));
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
                entry.push(now, ipv4(0).padded(1000), &stub, &mut |_, reason| panic!("{reason:?}"));
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

    /// A datagram of this flow and mark, or a packet of TCP.
    fn packet(protocol: u8, flow: u8, dscp: u8, len: usize) -> Packet {
        let mut packet = ipv4(dscp).padded(len);
        (packet[1], packet[9], packet[15]) = (dscp << 2, protocol, flow);
        packet
    }

    const UDP: u8 = 17;
    const TCP: u8 = 6;

    fn at(millis: u64) -> Instant {
        NOW + Duration::from_millis(millis)
    }

    fn coded() -> Protocol {
        Protocol::Coded(crate::coded::Config::default())
    }

    /// Goal: what is too old is dropped and counted, whatever the queue; what is marked, or is no datagram, waits for ever.
    #[test]
    fn datagrams_that_are_too_old_are_dropped() {
        let red = queue::Config::Red(base::config::parse("queue.toml", "").unwrap());
        for queue in [queue::Config::default(), fq_codel(""), red] {
            let by_dscp = ByDscp { once: dscps(&[46]), interactive: dscps(&[18]) };
            let mut entry = entry(&queue, by_dscp, &coded());
            entry.set_datagram_age(Some(Duration::from_millis(100)));
            for (protocol, dscp) in [(UDP, 0), (TCP, 0), (UDP, 10), (UDP, 18), (UDP, 46), (1, 0)] {
                entry.push(at(0), packet(protocol, protocol + dscp, dscp, 100), &Stub::Free, &mut no_drops);
            }
            let mut reasons = Vec::new();
            let mut left = Vec::new();
            while let Some((packet, _)) = entry.pop_for(at(100), &Stub::Free, &mut |_, why| reasons.push(why))
            {
                left.push((packet[9], packet[1] >> 2));
            }
            assert_eq!(left, [(UDP, 46), (UDP, 18), (TCP, 0)], "{queue:?}");
            assert_eq!(reasons, [Refusal::Expired; 3]);
            let count = |counters: Vec<(&str, u64)>, name: &str| {
                counters.iter().find(|(it, _)| *it == name).map(|(_, count)| *count)
            };
            assert_eq!(count(entry.counters(), "expired"), Some(3));
            assert_eq!(count(entry.counters(), "passed"), Some(1), "{queue:?}");
            assert_eq!(count(entry.interactive_counters().unwrap(), "expired"), Some(0));
            entry.set_datagram_age(None);
            entry.push(at(100), packet(UDP, 0, 0, 100), &Stub::Free, &mut no_drops);
            assert!(entry.pop_for(at(1 << 30), &Stub::Free, &mut no_drops).is_some());
            assert_eq!(count(entry.counters(), "expired"), None);
        }
    }

    /// Goal: what is too old leaves a link that takes nothing, before it keeps what is new from its place.
    #[test]
    fn what_is_too_old_takes_no_place() {
        for queue in [
            queue::Config::DropTail(queue::drop_tail::Config::packets(20.try_into().unwrap())),
            fq_codel("packets = 20"),
            queue::Config::Red(base::config::parse("queue.toml", "packets = 20").unwrap()),
        ] {
            let mut entry = entry(&queue, ByDscp::default(), &cotmll());
            entry.set_datagram_age(Some(Duration::from_millis(100)));
            let mut reasons = Vec::new();
            for milli in 0..1000 {
                if milli % 10 == 0 {
                    let packet = packet(UDP, 1, 0, 100);
                    entry.push(at(milli), packet, &Stub::Full(None), &mut |_, why| reasons.push(why));
                    assert!(entry.len() <= 14 && entry.bytes() == entry.len() as u64 * 100);
                }
            }
            assert!(reasons.len() >= 86 && reasons.iter().all(|why| *why == Refusal::Expired), "{reasons:?}");
            assert!(entry.pop_for(at(1050), &Stub::Free, &mut |_, _| ()).is_some());
            while entry.pop_for(at(1050), &Stub::Free, &mut |_, _| ()).is_some() {}
            assert_eq!((entry.len(), entry.bytes()), (0, 0));
        }
    }

    fn with_sparse_flows(protocol: &Protocol) -> Entry {
        let site = queue::Site { rate: Some(base::Rate::from_bps(8_000_000)), seed: 1, name: "l" };
        let queue = queue::Config::default();
        Entry::new(&queue, &site, ByDscp::default(), protocol.capabilities()).with_sparse_flows(&queue, &site)
    }

    fn waits(entry: &Entry) -> [u64; 2] {
        [Treatment::Interactive, Treatment::Reliable].map(|treatment| entry.bytes_for(treatment) / 100)
    }

    /// Goal: thin flows of DSCP 0 are interactive, of whatever protocol, where the link has classes.
    #[test]
    fn thin_flows_are_interactive() {
        let push = |entry: &mut Entry, packet| entry.push(at(1000), packet, &Stub::Free, &mut no_drops);
        let mut entry = with_sparse_flows(&coded());
        push(&mut entry, packet(UDP, 1, 0, 100));
        push(&mut entry, packet(TCP, 2, 0, 100));
        assert_eq!(waits(&entry), [2, 0]);
        // A mark that asks for nothing here asks for something elsewhere, perhaps for less.
        push(&mut entry, packet(UDP, 3, 8, 100));
        assert_eq!(waits(&entry), [2, 1]);
        let mut entry = with_sparse_flows(&cotmll());
        push(&mut entry, packet(UDP, 1, 0, 100));
        assert_eq!(waits(&entry), [0, 1]);
    }

    /// Goal: once a flow has sent too much it stays where its packets wait, until these have left; one that has sent little does not wait for it.
    #[test]
    fn a_flow_does_not_overtake_itself() {
        let mut entry = with_sparse_flows(&coded());
        let push = |entry: &mut Entry, millis, flow, len| {
            entry.push(at(millis), packet(TCP, flow, 0, len), &Stub::Full(None), &mut no_drops);
            waits(entry)
        };
        assert_eq!(push(&mut entry, 1000, 1, 1500), [15, 0]);
        assert_eq!(push(&mut entry, 1000, 1, 1500), [30, 0], "a quantum is not quite spent");
        assert_eq!(push(&mut entry, 1000, 1, 1500), [30, 15]);
        assert_eq!(push(&mut entry, 3000, 1, 100), [30, 16], "its packets wait");
        assert_eq!(push(&mut entry, 3000, 2, 100), [31, 16]);
        assert_eq!(push(&mut entry, 3000, 3, 100), [31, 17], "so much waits there that it is no gain");
        let mut order = Vec::new();
        while let Some((packet, treatment)) = entry.pop_for(at(3000), &Stub::Free, &mut no_drops) {
            order.push((packet[15], treatment));
        }
        use Treatment::{Interactive, Reliable};
        let expected = [
            (1, Interactive),
            (1, Interactive),
            (2, Interactive),
            (1, Reliable),
            (1, Reliable),
            (3, Reliable),
        ];
        assert_eq!(order, expected);
        assert_eq!(push(&mut entry, 5000, 1, 100), [1, 0], "they have left");
    }

    /// Goal: a flow stays where its packets are on their way over the link, as its endpoint knows.
    #[test]
    fn a_flow_waits_for_its_packets_on_the_link() {
        let line = LineLimits::new(1500, Some(base::Rate::from_bps(8_000_000)));
        let (mut near, mut far) = (coded().build(&line), coded().build(&line));
        let mut entry = with_sparse_flows(&coded());
        for (protocol, number) in [(TCP, 7), (UDP, 8)] {
            let mut sent = packet(protocol, number, 0, 100);
            if protocol == UDP {
                sent.set_expiry(Some(at(9000)));
            }
            near.offer(at(1000), sent, Treatment::Reliable).unwrap();
            let treatment = |entry: &mut Entry, millis, near: &dyn Endpoint| {
                entry.stream_treatment(at(millis), &packet(protocol, number, 0, 100), near)
            };
            assert_eq!(treatment(&mut entry, 1000, &*near), Treatment::Reliable, "not yet cut");
            let mut frame = Vec::new();
            near.poll_frame(at(1000), &mut frame).unwrap();
            assert_eq!(treatment(&mut entry, 2000, &*near), Treatment::Reliable, "on its way");
            let other = packet(protocol, 100 + number, 0, 100);
            assert_eq!(entry.stream_treatment(at(2000), &other, &*near), Treatment::Interactive);
            far.handle_frame(at(2000), &frame).unwrap();
            let mut report = Vec::new();
            far.handle_timeout(at(2010));
            far.poll_frame(at(2010), &mut report).unwrap();
            near.handle_frame(at(2020), &report).unwrap();
            assert_eq!(treatment(&mut entry, 3000, &*near), Treatment::Interactive, "it has come");
        }
    }
}
