//! All tunnels of a gateway: which one a packet or a datagram belongs to, who may begin one, and which sends next.
//!
//! Packets go by their destination, and come out only if their source is the peer's too (`prefixes`). Datagrams go by the index of their
//! session, which tells the peer ([`Indices`]). Initiations, which have none, go to the [`Reception`]. Of those tunnels that have something
//! to send, `share` says whose turn it is.
//!
//! Of a gateway with several workers each has a hub, which knows the other workers' peers as `neighbours`. What concerns all is said to all
//! hubs in the same order: [`Hub::enrol`] at the first, [`Hub::enrol_as`] at the others, [`Hub::settle`] at the one that has the tunnel.
//!
//! Drain order: after packets and datagrams have gone in, take [`Hub::poll_packet`] until there are none; send what
//! [`Hub::poll_transmit`] gives and say what became of it, until there is nothing; take [`Hub::poll_event`]; read [`Hub::poll_timeout`]
//! again. As with a tunnel, nothing breaks if a caller looks later.

mod enrolment;
mod inbound;
mod memory;
mod neighbours;
mod numbers;
mod outbound;
mod prefixes;
mod roster;
mod share;
mod status;
mod super_segments;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use base::{Deadlines, Duration, Instant, Prefix, Rate};

use crate::allowance::Allowance;
use crate::batch::Rooms;
use crate::config::Config;
use crate::counters::{Counter, Reasons};
use crate::due::Due;
use crate::key::{PresharedKey, PrivateKey, PublicKey};
use crate::path::{Carriers, Path};
use crate::random::Random;
use crate::session::{Indices, Peer, Reception};
use crate::tunnel::{Event, Tunnel};
use crate::worker::WorkerId;
pub use inbound::Taken;
pub use memory::MEMORY;
use memory::Memory;
pub use neighbours::Handover;
use neighbours::Neighbours;
use numbers::Numbers;
use prefixes::Prefixes;
use roster::Roster;
use share::Share;
use super_segments::SuperSegments;

/// Which of a hub's peers. A number is used again when its peer has been removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(u32);

/// A peer, and what it may do.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Who it is.
    pub key: PublicKey,
    /// What it shares with this gateway besides.
    pub preshared: PresharedKey,
    /// Where it is.
    pub place: Peer,
    /// Which destinations are behind it, and so which sources packets from there may have.
    pub allowed: Vec<Prefix>,
    /// Its part of what all send together, relative to those of the others; at least 1.
    pub weight: u32,
    /// How its tunnel works.
    pub config: Config,
}

/// Why somebody cannot become a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is a peer already.
    #[error("this public key is a peer's already")]
    Known(PeerId),
    /// It is this gateway.
    #[error("this public key is the gateway's own")]
    Own,
    /// A prefix that it asks for is, in whole or in part, another one's.
    #[error("{0} overlaps {2}, which is another peer's")]
    Overlap(Prefix, PeerId, Prefix),
    /// There are as many as can be told apart.
    #[error("there are too many peers")]
    Full,
}

/// All tunnels of a gateway.
#[derive(Debug)]
pub struct Hub {
    worker: WorkerId,
    own: Arc<PrivateKey>,
    public: PublicKey,
    reception: Reception,
    indices: Indices,
    randoms: Randoms,
    /// By number; those of other workers are none.
    members: Vec<Option<Box<Member>>>,
    /// Those of all workers, at the first.
    numbers: Numbers,
    neighbours: Neighbours,
    by_key: HashMap<PublicKey, PeerId>,
    prefixes: Prefixes,
    /// When each tunnel is to be looked at, if the hub is awake.
    deadlines: Deadlines,
    /// When the hub has to wake for each.
    wakes: Deadlines,
    /// Whose deadlines are to be read again.
    stale: Roster,
    /// Who may have packets for the LAN.
    delivering: Roster,
    /// Who may have something to tell.
    telling: Roster,
    share: Share,
    memory: Memory,
    super_segments: SuperSegments,
    /// Challenges to whoever wants a session, and denials to whoever uses one that is no more.
    replies: VecDeque<(Path, Vec<u8>)>,
    /// When it was used first.
    since: Option<Instant>,
    /// How many denials by others are looked at.
    denials: Allowance,
    offered: Option<Offered>,
    /// For the next batches, whosever they are.
    rooms: Rooms,
    /// Who has had the latest packet that may leave at once.
    fed: Option<PeerId>,
    /// How many carriers there are, those whose buffers are full, and who may have had something for them.
    carriers: usize,
    full: Carriers,
    held: Roster,
    /// The index that came last, and the number of its peer.
    latest: (u32, u32),
    rejected: Reasons,
    traffic: Traffic,
}

/// Somebody with a tunnel.
#[derive(Debug)]
struct Member {
    tunnel: Tunnel,
    weight: u32,
    /// The longest super-segment that it takes, as `SuperSegments` counts it.
    super_segment: Option<u32>,
    /// What was due still after its timers had had their time.
    stuck: Option<Instant>,
    /// Whether it was at rest when all of it was looked at last.
    was_settled: bool,
}

impl Member {
    /// Whether nothing has changed but what its session says and waits for.
    fn is_settled(&self, now: Instant) -> bool {
        self.was_settled && self.tunnel.is_at_rest(now)
    }
}

/// Where the random numbers of each part come from.
struct Randoms(Box<dyn FnMut() -> Random + Send>);

impl core::fmt::Debug for Randoms {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Randoms")
    }
}

/// Who has what the caller is to send: an answer of the hub's own, or a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offered {
    Reply,
    Of(PeerId),
}

/// What did not pass.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Traffic {
    /// From the LAN, for an address that is behind no peer.
    packets_without_peer: Counter,
    /// Their tunnel holds more than its part of the memory.
    packets_without_memory: Counter,
    /// From a peer, with a source address that is not behind it.
    packets_from_elsewhere: Counter,
    challenges_sent: Counter,
    /// To whoever used a session of a former life.
    denials_sent: Counter,
    /// Admitted for another worker, with no room to wait for it: whoever called asks again.
    calls_without_room: Counter,
}

/// Before a tunnel that waits for its turn is looked at again because of what only that turn will bring. A thousand that wait are to cost
/// little.
const PAUSE: Duration = Duration::from_millis(100);
/// Challenges and denials that wait, at most: they are sent again to whoever asks again.
const MOST_REPLIES: usize = 256;
/// After its start a gateway denies sessions of a former life for so long: an idle peer misses an answer after 23 s.
const AFTERLIFE: Duration = Duration::from_secs(60);
/// Each takes a look at all peers.
const DENIALS: Allowance = Allowance::new(16, Duration::from_millis(50));

impl Hub {
    /// The gateway with the key `own`, without peers yet. All that it sends together is at most `rate`, if there is one, headers included.
    /// Each call of `randoms` gives a source of random numbers of its own.
    #[must_use]
    pub fn new(
        own: PrivateKey,
        rate: Option<Rate>,
        randoms: impl FnMut() -> Random + Send + 'static,
    ) -> Self {
        Self::of_worker(WorkerId::ONLY, own, rate, randoms)
    }

    /// One of several workers of the gateway with the key `own`, without peers yet. All that this worker sends
    /// together is at most `rate`, if there is one, headers included. Each call of `randoms` gives a source of random
    /// numbers of its own.
    #[must_use]
    pub fn of_worker(
        worker: WorkerId,
        own: PrivateKey,
        rate: Option<Rate>,
        mut randoms: impl FnMut() -> Random + Send + 'static,
    ) -> Self {
        let own = Arc::new(own);
        Self {
            worker,
            public: own.public(),
            reception: Reception::new(Arc::clone(&own), randoms()),
            own,
            indices: Indices::of_worker(&mut randoms(), worker),
            randoms: Randoms(Box::new(randoms)),
            members: Vec::new(),
            numbers: Numbers::new(worker),
            neighbours: Neighbours::default(),
            by_key: HashMap::new(),
            prefixes: Prefixes::default(),
            deadlines: Deadlines::new(),
            wakes: Deadlines::new(),
            stale: Roster::default(),
            delivering: Roster::default(),
            telling: Roster::default(),
            share: Share::new(rate),
            memory: Memory::new(MEMORY),
            super_segments: SuperSegments::default(),
            replies: VecDeque::new(),
            since: None,
            denials: DENIALS,
            offered: None,
            rooms: Rooms::default(),
            fed: None,
            carriers: 1,
            full: Carriers::default(),
            held: Roster::default(),
            latest: (0, u32::MAX),
            rejected: Reasons::default(),
            traffic: Traffic::default(),
        }
    }

    /// Gives a peer other networks.
    ///
    /// # Errors
    /// If they overlap those of others; nothing has changed then.
    pub fn set_allowed(&mut self, id: PeerId, allowed: &[Prefix]) -> Result<(), Unfit> {
        self.prefixes.set(id, allowed)
    }

    /// Gives a peer another part of what all send together.
    pub fn set_weight(&mut self, id: PeerId, weight: u32) {
        if let Some(Some(member)) = self.members.get_mut(id.at()) {
            member.weight = weight.max(1);
        }
    }

    /// Limits what all send together otherwise.
    pub fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        self.share.set_rate(now, rate);
    }

    /// There are so many carriers, one of which may take more while another does not.
    #[must_use]
    pub const fn with_carriers(mut self, count: usize) -> Self {
        self.carriers = count;
        self
    }

    /// All tunnels together may take so many bytes of memory from now on.
    pub const fn set_memory(&mut self, bytes: usize) {
        self.memory.set_limit(bytes);
    }

    /// Bytes of the largest super-segment that may come from the LAN, whoever it is for; `None` if packets are to come one by one.
    #[must_use]
    pub fn super_segment(&self) -> Option<u32> {
        self.super_segments.least()
    }

    /// Which worker's it is.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.worker
    }

    /// This gateway's public key.
    #[must_use]
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// This worker's peers, by their numbers.
    pub fn peers(&self) -> impl Iterator<Item = (PeerId, &Tunnel)> {
        self.peers_from(0)
    }

    /// Those of them with this number or a higher one.
    pub fn peers_from(&self, number: u32) -> impl Iterator<Item = (PeerId, &Tunnel)> {
        let members = self.members.get(number as usize..).unwrap_or_default();
        let numbered = (number..).map(PeerId).zip(members);
        numbered.filter_map(|(id, member)| Some((id, &member.as_ref()?.tunnel)))
    }

    /// How many peers there are, those of other workers among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The tunnel to a peer of this worker's.
    #[must_use]
    pub fn tunnel(&self, id: PeerId) -> Option<&Tunnel> {
        self.members.get(id.at())?.as_ref().map(|member| &member.tunnel)
    }

    /// The tunnel to a peer, to tell it something. What follows from that is looked after.
    pub fn tunnel_mut(&mut self, id: PeerId) -> Option<&mut Tunnel> {
        self.tunnel(id)?;
        self.touch(id);
        self.members[id.at()].as_mut().map(|member| &mut member.tunnel)
    }

    /// The peer with this key, if it is one.
    #[must_use]
    pub fn find(&self, key: &PublicKey) -> Option<PeerId> {
        self.by_key.get(key).copied()
    }

    /// What a tunnel has to tell.
    pub fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        while let Some(number) = self.telling.first() {
            let member = self.members[number as usize].as_mut();
            if let Some(event) = member.and_then(|member| member.tunnel.poll_event()) {
                return Some((PeerId(number), event));
            }
            self.telling.pop();
        }
        None
    }

    /// Lets happen what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.read_deadlines(now);
        while let Some((due, number)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.set(number, None);
            let Some(member) = &mut self.members[number as usize] else { continue };
            member.tunnel.handle_timeout(now);
            member.stuck = member.tunnel.timers(now).map(|due| due.from).filter(|due| *due <= now);
            self.follow(now, PeerId(number));
        }
    }

    /// When something is due that does not wait for other work, if nothing comes in before. Both [`Hub::handle_timeout`] and [`Hub::poll_transmit`] are to be called then.
    #[must_use]
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        self.read_deadlines(now);
        let due = self.wakes.first().map(|(due, _)| due);
        let waits = !self.is_blocked() && (self.share.is_waiting() || !self.replies.is_empty());
        let turn = if waits { self.share.poll_timeout() } else { None };
        [due, turn].into_iter().flatten().min()
    }

    fn read_deadlines(&mut self, now: Instant) {
        // Who rests hears by this that there is less for everybody.
        if let Some(id) = self.memory.poll_excess() {
            if let Some(member) = self.members[id.at()].as_deref_mut() {
                member.was_settled = false;
            }
            self.stale.push(id.0);
        }
        while let Some(number) = self.stale.pop() {
            let id = PeerId(number);
            let Some(member) = self.members[id.at()].as_deref_mut() else { continue };
            if !member.is_settled(now) {
                let former = core::mem::replace(&mut member.super_segment, member.tunnel.super_segment());
                if former != member.super_segment {
                    self.super_segments.remove(former);
                    self.super_segments.add(member.super_segment);
                }
                member.was_settled = member.tunnel.is_at_rest(now);
                if member.was_settled || self.memory.is_due(id) {
                    count(&mut self.memory, id, &mut member.tunnel);
                }
            }
            // Whoever waits for its turn has it as soon as that can be.
            let due = if self.share.is_awake(id) {
                let again = |due: Due| match member.stuck == Some(due.from) {
                    true => Due::at(now + PAUSE),
                    false => due.not_before(now),
                };
                member.tunnel.timers(now).map(again)
            } else {
                // What has come just now may be late to be answered: a line that is heard again had nothing to say for long.
                member.tunnel.next_due(now).map(|due| due.not_before(now))
            };
            self.deadlines.set(number, due.map(|due| due.from));
            self.wakes.set(number, due.map(|due| due.by));
        }
    }

    /// Has that looked at which may have changed in a tunnel, and in one that has settled its session only.
    fn follow(&mut self, now: Instant, id: PeerId) {
        let Some(Some(member)) = self.members.get(id.at()) else { return };
        if !member.is_settled(now) {
            return self.touch(id);
        }
        self.stale.push(id.0);
        if member.tunnel.has_control() {
            self.share.wake(id);
        }
    }

    /// The gateway ends: its peers are told, and so are the hosts whose connections break with that. What there is to say then goes as
    /// always. How many connections were split.
    pub fn close(&mut self, now: Instant) -> usize {
        let all: Vec<PeerId> = self.peers().map(|(id, _)| id).collect();
        let close = |id: PeerId| {
            let split = self.members[id.at()].as_mut().map_or(0, |member| member.tunnel.close(now));
            self.touch(id);
            split
        };
        all.into_iter().map(close).sum()
    }

    /// Has all looked at that may have changed in a tunnel.
    fn touch(&mut self, id: PeerId) {
        if let Some(Some(member)) = self.members.get_mut(id.at()) {
            member.was_settled = false;
        }
        self.stale.push(id.0);
        self.delivering.push(id.0);
        self.telling.push(id.0);
        self.share.wake(id);
    }
}

/// Counts what a tunnel holds, and tells it what it may if that has changed.
fn count(memory: &mut Memory, id: PeerId, tunnel: &mut Tunnel) {
    if let Some(allowed) = memory.count(id, tunnel.memory()) {
        tunnel.limit_memory(allowed);
        // What it has dropped for that is there for others.
        memory.note(id, tunnel.memory());
    }
}

impl PeerId {
    const fn at(self) -> usize {
        self.0 as usize
    }

    /// A number that no two peers share, whichever worker's they are.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}
