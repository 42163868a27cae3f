//! A host: one address, its listening ports, and its connections.

mod budget;
mod callers;
mod commands;
mod cookies;
mod error;
mod icmp;
mod listener;
mod ports;
mod standing_in;
mod timers;
mod turns;

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::sync::Arc;

use base::wire::tcp::{self, Flags};
use base::wire::{Malformed, ip};
use base::{Instant, Packet, Rng, SeqNum};

use crate::config::TcpConfig;
use crate::connection::{Connection, Event, Seeds, State};
use crate::ensemble::Ensemble;
use budget::{Budget, Counted};
use callers::{Call, Callers};
pub use cookies::CookieStatistics;
use cookies::Cookies;
pub use error::{ConnectError, ConnectionError, Discard, ListenError};
use listener::Listener;
use ports::{Key, Ports, Secret};
use timers::Timers;
use turns::Turns;

/// One connection of a [`Host`]; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    generation: u32,
    slot: u32,
}

impl ConnectionId {
    /// Its place among the host's connections: small, and never that of two at the same time.
    #[must_use]
    pub const fn place(self) -> usize {
        self.slot as usize
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    key: Key,
    /// It stands in `eventful`.
    eventful: bool,
    /// It stands in the listener's backlog.
    half_open: bool,
    /// It was taken up in somebody's stead, and has not ended.
    call: Option<Call>,
    /// It has ended, and stays for questions.
    ended: bool,
    /// Memory that it is counted as.
    memory: Counted,
}

/// One address, its listening ports, and its connections.
#[derive(Debug)]
pub struct Host {
    /// None if it stands in for all addresses.
    address: Option<IpAddr>,
    /// Keys the initial sequence numbers (RFC 6528), and what else strangers must not foresee.
    secret: u64,
    rng: Rng,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Connections that have ended.
    ended: usize,
    ports: Ports,
    callers: Callers,
    timers: Timers,
    budget: Budget,
    cookies: Cookies,
    /// What its connections share.
    ensemble: Ensemble,
    /// The settings that were last connected or listened with: connections share them.
    config: Arc<TcpConfig>,
    /// Slots that may have something to send.
    turns: Turns,
    /// Slots with events.
    eventful: VecDeque<u32>,
    /// Resets and cookies for segments of no connection.
    answers: VecDeque<Packet>,
}

/// Connections whose waiting bytes are counted. Ours: where more wait, there is much.
const COUNTED: usize = 16;
/// Bytes that nobody counts.
const MANY: u64 = u32::MAX as u64;

impl Host {
    /// A host with this address; `rng` is for port numbers and initial sequence numbers.
    #[must_use]
    pub fn new(address: IpAddr, rng: Rng) -> Self {
        Self::at(Some(address), rng)
    }

    fn at(address: Option<IpAddr>, mut rng: Rng) -> Self {
        let secret = rng.bits();
        Self {
            address,
            secret,
            rng,
            slots: Vec::new(),
            free: Vec::new(),
            ended: 0,
            ports: Ports::new(Secret::named(secret, "connections")),
            callers: Callers::default(),
            timers: Timers::default(),
            budget: Budget::unlimited(),
            cookies: Cookies::new(Secret::named(secret, "cookies")),
            ensemble: Ensemble::default(),
            config: Arc::default(),
            turns: Turns::default(),
            eventful: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    fn owns(&self, address: IpAddr) -> bool {
        self.address.is_none_or(|own| own == address)
    }

    /// Lets its connections take at most `bytes` of memory together, but for the little that each needs to go on; by default as
    /// much as their buffers say. `docs/tcp.md` tells what happens at the limit.
    pub fn limit_memory(&mut self, bytes: usize) {
        let counted = self.budget.counts();
        self.budget.set_limit(bytes);
        if self.budget.counts() && !counted {
            for entry in &mut self.slots {
                if let Some(connection) = entry.connection.as_deref() {
                    entry.memory = self.budget.count(entry.memory, connection);
                }
            }
        }
    }

    /// Bytes of memory that its connections hold: themselves, buffers, and notes of what is in flight. For more of them there may be room
    /// for fewer than that leaves, since some is set aside for those that are there.
    #[must_use]
    pub fn memory(&self) -> usize {
        if self.budget.counts() {
            return self.budget.held();
        }
        self.connections().map(|(_, connection)| budget::held_by(connection)).sum()
    }

    /// Whether there is memory for one more connection.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.budget.has_room()
    }

    /// How many SYNs were answered without keeping state (RFC 4987, 3.6), and what came of them.
    #[must_use]
    pub const fn cookies(&self) -> CookieStatistics {
        self.cookies.statistics
    }

    /// Accepts connections to `port`, each with these settings.
    ///
    /// # Errors
    /// Somebody listens there already.
    pub fn listen(&mut self, port: u16, config: &TcpConfig) -> Result<(), ListenError> {
        let listener = Listener::new(self.shared(config));
        if self.ports.listen(port, listener) { Ok(()) } else { Err(ListenError::Taken(port)) }
    }

    /// Opens a connection to `remote` from an ephemeral port.
    ///
    /// # Errors
    /// The address is of the other family, or no port or no memory is free.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: &TcpConfig,
    ) -> Result<ConnectionId, ConnectError> {
        let address = self.address.filter(|address| address.is_ipv4() == remote.is_ipv4());
        let address = address.ok_or(ConnectError::Family(remote.ip()))?;
        if !self.budget.has_room() {
            return Err(ConnectError::Memory(remote));
        }
        let slots = &self.slots;
        let may_be_reopened =
            |slot| slots[slot as usize].connection.as_deref().is_none_or(|it| it.may_be_reopened(now));
        let port = self.ports.ephemeral(address, remote, &mut self.rng, may_be_reopened);
        let port = port.ok_or(ConnectError::PortsExhausted(remote))?;
        let local = SocketAddr::new(address, port);
        let seeds = self.seeds(now, local, remote);
        let mut connection = Connection::connect(self.shared(config), local, remote, seeds);
        connection.join(now, &mut self.ensemble);
        let slot = self.insert(connection);
        self.touch(slot);
        Ok(self.id(slot))
    }

    /// These settings; one copy for all that are the same one after the other.
    fn shared(&mut self, config: &TcpConfig) -> Arc<TcpConfig> {
        if *self.config != *config {
            self.config = Arc::new(config.clone());
        }
        Arc::clone(&self.config)
    }

    /// RFC 6528: a clock of 4 microseconds plus a keyed function of the addresses; so for timestamps (RFC 7323, 5.4).
    fn seeds(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Seeds {
        let mut keyed = Rng::named(self.secret, &format!("{local} {remote}"));
        let clock = (now.as_nanos() / 4_000) as u32;
        Seeds {
            initial_sequence: SeqNum(clock.wrapping_add(keyed.bits() as u32)),
            timestamp_offset: keyed.bits() as u32,
        }
    }

    fn insert(&mut self, mut connection: Connection) -> u32 {
        let key = Key::new(connection.local(), connection.remote());
        connection.set_allowance(self.budget.first_allowance());
        let connection = Some(Box::new(connection));
        let slot = match self.free.pop() {
            Some(slot) => {
                let entry = &mut self.slots[slot as usize];
                entry.connection = connection;
                entry.key = key;
                slot
            }
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    connection,
                    key,
                    eventful: false,
                    half_open: false,
                    call: None,
                    ended: false,
                    memory: Counted::default(),
                });
                self.slots.len() as u32 - 1
            }
        };
        self.ports.bind(key, slot);
        slot
    }

    fn id(&self, slot: u32) -> ConnectionId {
        ConnectionId { generation: self.slots[slot as usize].generation, slot }
    }

    fn known(&self, id: ConnectionId) -> Result<&Connection, ConnectionError> {
        self.connection(id).ok_or(ConnectionError::Unknown(id))
    }

    fn live_mut(&mut self, id: ConnectionId) -> Result<&mut Connection, ConnectionError> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation);
        let slot = slot.ok_or(ConnectionError::Unknown(id))?;
        let connection = slot.connection.as_deref_mut().ok_or(ConnectionError::Unknown(id))?;
        connection.set_allowance(self.budget.allowance(slot.memory));
        Ok(connection)
    }

    /// The connection, for its getters; until `time_wait` after its end.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    /// Connections, those that have ended and can still be asked included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Those of them that have not ended.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.len() - self.ended
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`Host::poll_transmit`] may have something.
    #[must_use]
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || self.turns.is_someones()
    }

    /// Bytes that wait to be sent; [`u32::MAX`] where it is not worth counting: many connections wait, or the buffer of one is more than half full,
    /// whose application is asked for more only after that.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        let (mut bytes, mut waiting) = (0, self.turns.waiting());
        for slot in waiting.by_ref().take(COUNTED) {
            let entry = self.slots.get(slot as usize);
            let Some(connection) = entry.and_then(|entry| entry.connection.as_deref()) else { continue };
            let unsent = connection.unsent();
            if !connection.has_finished() && unsent > connection.writable() {
                return MANY;
            }
            bytes += unsent as u64;
        }
        if waiting.next().is_some() { MANY } else { bytes }
    }

    /// All connections, in the order of their slots.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| {
            let id = ConnectionId { generation: entry.generation, slot: slot as u32 };
            entry.connection.as_deref().map(|connection| (id, connection))
        })
    }

    /// What its connections share.
    #[must_use]
    pub const fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// Takes a whole IP packet.
    ///
    /// # Errors
    /// [`Discard`] says why the packet was of no use; an answer to it may be due all the same.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), Discard> {
        self.handle(now, packet, tcp::Repr::parse)
    }

    /// Takes a whole IP packet whose TCP checksum somebody else has verified, or vouches for.
    ///
    /// # Errors
    /// As [`Host::handle_packet`].
    pub fn handle_verified_packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), Discard> {
        self.handle(now, packet, |view, _, _| Ok(tcp::Repr::parse_verified(view)))
    }

    fn handle(
        &mut self,
        now: Instant,
        packet: &[u8],
        parse: impl Fn(&tcp::View<'_>, IpAddr, IpAddr) -> Result<tcp::Repr, Malformed>,
    ) -> Result<(), Discard> {
        let view = ip::View::parse(packet)?;
        if let ip::View::V4(v4) = &view {
            if v4.is_fragment() {
                return Err(Discard::Fragment);
            }
            if !v4.checksum_ok() {
                return Err(Malformed::Checksum.into());
            }
        }
        let (src, dst) = (view.src(), view.dst());
        if !self.owns(dst) {
            return Err(Discard::NotForUs(dst));
        }
        match view.protocol() {
            ip::Protocol::TCP => {}
            ip::Protocol::ICMP | ip::Protocol::ICMPV6 => return self.handle_icmp(now, &view),
            other => return Err(Discard::NotTcp(other.0)),
        }
        let tcp_view = tcp::View::parse(view.payload())?;
        let segment = parse(&tcp_view, src, dst)?;
        let remote = SocketAddr::new(src, segment.src_port);
        let local = SocketAddr::new(dst, segment.dst_port);
        let key = Key::new(local, remote);
        let slot = self.ports.find(key).filter(|&slot| !self.gives_way(now, slot, &segment));
        let Some(slot) = slot else {
            return self.handle_stranger(now, view.ecn(), (local, remote), &segment, tcp_view.payload());
        };
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = entry.connection.as_deref_mut() else {
            unreachable!("a bound key has a connection")
        };
        if self.budget.counts() {
            connection.set_allowance(self.budget.allowance(entry.memory));
        }
        if entry.half_open && connection.is_answered_by(&segment) {
            // Not sooner: a SYN may come from anybody.
            connection.join(now, &mut self.ensemble);
        }
        let result = connection.handle_segment(now, view.ecn(), &segment, tcp_view.payload());
        self.touch(slot);
        Ok(result?)
    }

    /// Whether a segment for this connection counts as one for none: the connection has ended, or is in TIME-WAIT and
    /// `segment` may open a new one (RFC 6191), be it a SYN or the acknowledgement of the cookie that one was answered with.
    /// The old one stays for the application's questions and for unread data.
    fn gives_way(&mut self, now: Instant, slot: u32, segment: &tcp::Repr) -> bool {
        let Some(connection) = self.slots[slot as usize].connection.as_deref() else { return true };
        match connection.state() {
            State::Closed => true,
            State::TimeWait => {
                let ends = (connection.local(), connection.remote());
                let syn = match segment.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST).0 {
                    kind if kind == Flags::ACK.0 => {
                        self.recall_syn(now, ends, segment).and_then(|(_, syn)| syn)
                    }
                    _ => self.ports.listener(segment.dst_port).map(|_| *segment),
                };
                let connection = self.slots[slot as usize].connection.as_deref();
                syn.zip(connection).is_some_and(|(syn, old)| old.may_be_replaced(now, &syn))
            }
            _ => false,
        }
    }

    /// After anything happened to a connection: what it may now want from the host.
    fn touch(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = entry.connection.as_deref() else { return };
        self.turns.join(slot);
        if !entry.eventful && connection.has_event() {
            entry.eventful = true;
            self.eventful.push_back(slot);
        }
        let caller = connection.remote().ip();
        if entry.half_open && !connection.is_half_open() {
            entry.half_open = false;
            self.ports.discharge(connection.local().port());
            if let Some(call) = entry.call {
                self.callers.settle(caller, call);
            }
        }
        let ends = !entry.ended && matches!(connection.state(), State::Closed | State::TimeWait);
        if ends {
            entry.ended = true;
            self.ended += 1;
            if entry.call.take().is_some() {
                self.callers.end(caller);
            }
        }
        if self.budget.counts() {
            entry.memory = self.budget.count(entry.memory, connection);
        }
        self.timers.schedule(slot, connection.next_deadline());
        if ends {
            self.note_ended(slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = entry.connection.take() else { return };
        if entry.half_open {
            entry.half_open = false;
            self.ports.discharge(connection.local().port());
        }
        if let Some(call) = entry.call.take() {
            let caller = connection.remote().ip();
            self.callers.settle(caller, call);
            self.callers.end(caller);
        }
        self.ended -= usize::from(core::mem::take(&mut entry.ended));
        self.budget.give_back(core::mem::take(&mut entry.memory));
        entry.generation = entry.generation.wrapping_add(1);
        self.ports.unbind(entry.key, slot);
        self.timers.cancel(slot);
        self.free.push(slot);
    }

    /// Lets time-outs due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(slot) = self.timers.pop_due(now) {
            if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
                connection.handle_timeout(now);
                // Nobody may ever ask for what it would have sent.
                if connection.is_gone() && !connection.has_event() {
                    self.remove(slot);
                } else {
                    self.touch(slot);
                }
            }
        }
    }

    /// When [`Host::handle_timeout`] wants to be called; it may turn out that nothing was due.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    /// The next packet to send. Connections take turns.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.poll_transmit_train(now, 0).map(|(packet, _)| packet)
    }

    /// The next packet to send. Connections take turns. Full segments in a row may come in one packet of up to `most`
    /// bytes of data, as [`Connection::poll_transmit_train`] has it; the number with such a packet is the bytes of
    /// each segment.
    pub fn poll_transmit_train(&mut self, now: Instant, most: u32) -> Option<(Packet, Option<u16>)> {
        if let Some(answer) = self.answers.pop_front() {
            return Some((answer, None));
        }
        while let Some(slot) = self.turns.current() {
            let entry = &mut self.slots[slot as usize];
            if let Some(connection) = entry.connection.as_deref_mut() {
                if connection.wants_transmit() {
                    // Whoever has nothing to put into it needs no buffer either.
                    let mut packet = Packet::empty();
                    let is_limited = self.budget.is_limited();
                    if is_limited {
                        connection.set_allowance(self.budget.allowance(entry.memory));
                    }
                    let segments = connection.poll_transmit_train(now, &mut packet, most);
                    self.timers.schedule(slot, connection.next_deadline());
                    if segments > 0 {
                        let segment = (segments > 1).then(|| connection.mss() as u16);
                        if is_limited {
                            // What is in flight is noted.
                            entry.memory = self.budget.count(entry.memory, connection);
                        }
                        self.turns.note_sent(packet.len());
                        if !entry.eventful && connection.has_event() {
                            entry.eventful = true;
                            self.eventful.push_back(slot);
                        }
                        return Some((packet, segment));
                    }
                }
                if connection.is_gone() && !connection.has_event() {
                    self.remove(slot);
                }
            }
            self.turns.leave();
        }
        None
    }

    /// What an application should know next. A connection is known to it from `connect` on, or from
    /// [`Event::Accepted`] on.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        while let Some(&slot) = self.eventful.front() {
            let id = self.id(slot);
            if let Some(event) =
                self.slots[slot as usize].connection.as_deref_mut().and_then(Connection::poll_event)
            {
                return Some((id, event));
            }
            let entry = &mut self.slots[slot as usize];
            entry.eventful = false;
            self.eventful.pop_front();
            if entry.connection.as_deref().is_some_and(Connection::is_gone) {
                self.remove(slot);
            }
        }
        None
    }
}
