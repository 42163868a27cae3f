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
use crate::sparse::{self, Share, SparseFlows};
use crate::treatment::{ByDscp, Treatment};

/// The queues in front of an endpoint.
#[derive(Debug)]
pub struct IngressQueues {
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

impl IngressQueues {
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

    /// These queues, where thin flows without a mark count as interactive if the protocol has classes. The queue for
    /// them, if there is none yet, is as `queue` says.
    #[must_use]
    pub fn with_sparse_flows(self, queue: &queue::Config, site: &queue::Site<'_>) -> Self {
        if !self.has_classes {
            return self;
        }
        let interactive = self.interactive.or_else(|| Some(queue.build(site, INTERACTIVE_QUEUE)));
        let mut rng = site.rng(SPARSE_FLOWS);
        let sparse = Some(SparseFlows::new(site.rate, [rng.bits(), rng.bits()]));
        Self { interactive, sparse, ..self }
    }

    /// From now on datagrams that come, and that no mark treats apart, are dropped beyond this age, if there is one.
    pub const fn set_datagram_age(&mut self, age: Option<Duration>) {
        self.datagram_age = age;
    }

    /// Takes over other limits and marks; what waits stays. Marks matter only if there were some at the start, or the
    /// protocol sends everything once anyway. Where the configuration has another kind of queue, packets move to a new one, which counts from
    /// zero, and as dropped what it has no room for.
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

    /// Whether a packet goes before those of others because its flow is thin: not once so much waits there that the next would wait too, nor while
    /// packets of its flow are among those of others, unless they are datagrams of one that has been thin for long.
    fn is_thin(&mut self, now: Instant, packet: &[u8], endpoint: &dyn Endpoint) -> bool {
        let (Some(sparse), Some(interactive)) = (&mut self.sparse, &self.interactive) else { return false };
        if flow::dscp(packet) != Some(0) {
            return false;
        }
        let share = sparse.share(now, packet);
        if share == Share::Exceeded || interactive.bytes() > MOST_INTERACTIVE {
            sparse.demote(now, packet);
            return false;
        }
        let may_overtake = share == Share::KeptForLong && flow::is_datagram(packet);
        may_overtake || !(sparse.waits(packet) || endpoint.carries_flow_of(packet))
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

    /// Flows that have lately been served and are not thin; one where thin flows are not told apart.
    #[must_use]
    pub fn busy_flows(&self) -> u64 {
        self.sparse.as_ref().map_or(1, SparseFlows::active)
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

    /// Bytes of memory that the packets take that wait, as allocated.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.queues().map(Queue::memory).sum()
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

    /// What the queue of packets that are sent once counted, by name; `None` if there is none.
    #[must_use]
    pub fn once_counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.once.as_ref().map(|once| once.counters())
    }

    /// What the queue of interactive packets counted, by name; `None` if there is none.
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
mod tests;
