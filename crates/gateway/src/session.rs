//! A secure session with one peer: handshakes, sealed datagrams, replay protection, silence.
//!
//! Sans-I/O: `now` is a parameter, datagrams go in with [`Session::handle_datagram`] and come out of
//! [`Session::seal`] and [`Session::poll_transmit`]. Drain order: after any `handle_*`, take
//! [`Session::poll_event`] and [`Session::poll_transmit`] until there are none, then read
//! [`Session::poll_timeout`] again.
//!
//! The shape is WireGuard's (Donenfeld 2017, sections 5 and 6): the initiator uses new keys at once, the
//! responder only when the first datagram under them has arrived, so a replayed initiation changes nothing.
//!
//! Deviations: one pre-shared key and no static identities; an *incarnation* number in the handshake tells
//! a peer that has restarted from one that renews its keys; a hint asks for a handshake after a restart;
//! an initiation's time stamp only ranks it among those that wait, so that a calendar that was put back locks
//! nobody out; repeated ones are recognised by their ephemeral key.

mod handshake;
mod replay;
mod transport;
mod wire;

use core::ops::Range;
use std::collections::VecDeque;
use std::net::SocketAddr;

use base::{Duration, Instant};

use crate::clock;
use crate::counters::Counter;
use crate::key::{PresharedKey, random_bytes};
use handshake::{Asked, EPHEMERAL_LEN, Hello, Initiation};
use transport::{Refused, Transport};
use wire::{Datagram, Sealed, Unreadable};

pub use wire::{DATA_HEADER_LEN, FIRST_DAEMON_KIND, OVERHEAD, TAG_LEN};

/// How a session behaves in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two initiations while there is no answer. Answers to the last sixteen count, so it may be
    /// shorter than the round trip.
    pub retry: Duration,
    /// After this long without an authentic datagram the initiator shakes hands again.
    pub silence: Duration,
    /// After this long without sending, an empty datagram says that we live.
    pub keepalive: Duration,
    /// After this long without an authentic datagram only keep-alives are worth sending.
    pub give_up: Duration,
    /// Age at which the initiator renews the keys. WireGuard's Rekey-After-Time.
    pub renew_after: Duration,
    /// Age at which keys are no longer used at all.
    pub expire_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            keepalive: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
            renew_after: Duration::from_secs(120),
            expire_after: Duration::from_secs(300),
        }
    }
}

impl Timing {
    /// For a link on which one frame takes `frame_time`: keep-alives are not to fill it.
    #[must_use]
    pub fn for_frames_of(frame_time: Duration) -> Self {
        let default = Self::default();
        let keepalive = default.keepalive.max(frame_time * 2);
        Self { keepalive, silence: default.silence.max(keepalive * 5), ..default }
    }
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// New keys are in use. If the peer is `restarted`, it has lost its link state since the last session.
    Established {
        /// Whether the peer's incarnation is another than in the session before.
        restarted: bool,
    },
    /// There are no keys any more.
    Lost,
}

/// An authentic datagram that is not the session's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// What it is.
    pub kind: Kind,
    /// Where in the datagram the opened payload is, without a control datagram's kind; empty for a keep-alive.
    pub payload: Range<usize>,
    /// Whether a datagram that was sent later has arrived before.
    pub late: bool,
}

/// What an authentic datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A frame of the link.
    Data,
    /// What one daemon tells the other: [`FIRST_DAEMON_KIND`] or above. Peers may speak different versions, so
    /// whoever does not know a kind ignores and counts it.
    Control(u8),
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Too short for what it claims to be.
    #[error("truncated")]
    Truncated,
    /// No datagram of ours.
    #[error("unknown type")]
    UnknownType,
    /// A session that does not exist.
    #[error("unknown session")]
    UnknownSession,
    /// Not made by a holder of the key.
    #[error("forged")]
    Forged,
    /// A handshake by somebody who holds another key, or none.
    #[error("handshake under another key")]
    ForgedHandshake,
    /// Our own handshake, sent back to us.
    #[error("reflected")]
    Reflected,
    /// A hint from elsewhere, or while the peer is heard.
    #[error("unexpected hint")]
    UnexpectedHint,
    /// Arrived before, or too old to tell.
    #[error("replayed")]
    Replayed,
    /// More handshakes than we answer.
    #[error("too many handshakes")]
    TooManyHandshakes,
    /// Authentic, but of a kind that this version does not know.
    #[error("unknown kind of control datagram")]
    UnknownControl,
    /// The peer holds the key but speaks another link protocol.
    #[error("peer runs another link protocol")]
    Disagreement,
}

impl Rejection {
    /// The name under which it is counted.
    #[must_use]
    pub const fn counter(self) -> &'static str {
        match self {
            Self::Truncated => "dropped_truncated",
            Self::UnknownType => "dropped_unknown_type",
            Self::UnknownSession => "dropped_unknown_session",
            Self::Forged => "dropped_forged",
            Self::ForgedHandshake => "dropped_forged_handshake",
            Self::Reflected => "dropped_reflected",
            Self::UnexpectedHint => "dropped_unexpected_hint",
            Self::Replayed => "dropped_replayed",
            Self::TooManyHandshakes => "dropped_too_many_handshakes",
            Self::UnknownControl => "dropped_unknown_control",
            Self::Disagreement => "dropped_disagreement",
        }
    }
}

/// One side of a session, with a peer whose place is an `A`.
#[derive(Debug)]
pub struct Session<A = SocketAddr> {
    key: PresharedKey,
    hello: Hello,
    timing: Timing,
    /// Where the configuration says that the peer is; who has such a place begins handshakes.
    configured: Option<A>,
    /// Where the newest authentic datagram came from.
    learnt: Option<A>,
    current: Option<Transport>,
    /// Opens what was under way when the keys changed.
    previous: Option<Transport>,
    /// Answered initiations whose first data datagram is awaited, by their stamp.
    unconfirmed: VecDeque<(Transport, Hello)>,
    /// Our unanswered initiations, oldest first.
    initiations: VecDeque<Initiation>,
    /// Ephemeral keys of initiations that were answered.
    answered: VecDeque<[u8; EPHEMERAL_LEN]>,
    /// What the peer said of itself at the last session's handshake.
    peer_hello: Option<Hello>,
    last_heard: Instant,
    last_sent: Instant,
    /// When the next initiation may leave.
    initiate_at: Instant,
    /// Whether something asks for a handshake although the session looks healthy.
    handshake_wanted: bool,
    handshakes: Allowance,
    hints: Allowance,
    outbox: VecDeque<(A, Vec<u8>)>,
    events: VecDeque<Event>,
    /// Handshakes completed, ours or theirs.
    pub established: Counter,
    /// Sealed datagrams that came after a later one.
    pub late: Counter,
}

/// Unanswered initiations, unconfirmed answers and sessions kept at once.
const KEPT: usize = 16;
/// Initiations remembered as answered.
const ANSWERED_KEPT: usize = 256;
/// The session's own datagrams waiting to be sent.
const OUTBOX_LIMIT: usize = 16;

impl<A: Copy + PartialEq> Session<A> {
    /// A side without keys yet. `peer` makes it the initiator; `agreement` names what both ends must agree on.
    #[must_use]
    pub fn new(key: PresharedKey, peer: Option<A>, agreement: &str, timing: Timing) -> Self {
        let hello = Hello {
            incarnation: u64::from_le_bytes(random_bytes()),
            agreement: base::random::fnv1a(agreement.as_bytes()),
            stamp: clock::calendar(),
        };
        Self {
            key,
            hello,
            timing,
            configured: peer,
            learnt: None,
            current: None,
            previous: None,
            unconfirmed: VecDeque::new(),
            initiations: VecDeque::new(),
            answered: VecDeque::new(),
            peer_hello: None,
            last_heard: Instant::ZERO,
            last_sent: Instant::ZERO,
            initiate_at: Instant::ZERO,
            handshake_wanted: peer.is_some(),
            handshakes: Allowance::new(20, Duration::from_millis(100)),
            hints: Allowance::new(2, Duration::from_millis(500)),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            established: Counter::default(),
            late: Counter::default(),
        }
    }

    /// Where data goes: to the place of the newest authentic datagram, or else the configured one.
    #[must_use]
    pub fn peer(&self) -> Option<A> {
        self.learnt.or(self.configured)
    }

    /// Whether [`Session::seal`] may be called.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// Whether the peer was heard lately, so that data is worth sending.
    #[must_use]
    pub fn is_heard(&self, now: Instant) -> bool {
        self.is_established() && now < self.last_heard + self.timing.give_up
    }

    /// Makes the bytes of `buffer` from `start` a data datagram: [`DATA_HEADER_LEN`] bytes of any value,
    /// then the payload, which is sealed in place; [`TAG_LEN`] bytes are appended.
    ///
    /// # Panics
    /// If the session is not established.
    pub fn seal(&mut self, now: Instant, buffer: &mut Vec<u8>, start: usize) {
        self.seal_as(Sealed::Data, now, buffer, start);
    }

    fn seal_as(&mut self, what: Sealed, now: Instant, buffer: &mut Vec<u8>, start: usize) {
        self.current.as_mut().expect("the session is established").seal(what, buffer, start);
        self.last_sent = now;
    }

    /// Queues a control datagram for the peer; [`Session::poll_transmit`] gives it. False without a session, or
    /// while too many wait.
    pub fn send_control(&mut self, now: Instant, kind: u8, body: &[u8]) -> bool {
        let (Some(to), true) = (self.peer(), self.is_established()) else { return false };
        self.control_to(now, to, kind, body)
    }

    fn control_to(&mut self, now: Instant, to: A, kind: u8, body: &[u8]) -> bool {
        let mut datagram = [&[0; DATA_HEADER_LEN], &[kind][..], body].concat();
        self.seal_as(Sealed::Control, now, &mut datagram, 0);
        self.send(to, datagram)
    }

    /// Takes a datagram that came from `from`. Data and the daemon's control datagrams are opened in place; what is the
    /// session's own gives `None`.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: A,
        bytes: &mut [u8],
    ) -> Result<Option<Arrival>, Rejection> {
        match Datagram::parse(bytes) {
            Ok(Datagram::Sealed { what, receiver, counter }) => {
                let (payload, late) = self.handle_sealed(now, from, bytes, receiver, counter)?;
                return match what {
                    Sealed::Data => Ok(Some(Arrival { kind: Kind::Data, payload, late })),
                    Sealed::Control => self.handle_control(bytes, payload, late),
                };
            }
            Ok(Datagram::Initiation { sender, noise }) => self.handle_initiation(now, from, sender, noise)?,
            Ok(Datagram::Response { sender, receiver, noise }) => {
                self.handle_response(now, from, sender, receiver, noise)?;
            }
            Ok(Datagram::Hint { index }) => self.handle_hint(now, from, index)?,
            Err(Unreadable::Truncated) => return Err(Rejection::Truncated),
            Err(Unreadable::Unknown) => return Err(Rejection::UnknownType),
        }
        Ok(None)
    }

    /// Lets what is due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        let expired = |t: &Transport| t.since + self.timing.expire_after <= now || t.is_spent();
        if self.current.as_ref().is_some_and(expired) {
            self.current = None;
            self.handshake_wanted |= self.configured.is_some();
            self.events.push_back(Event::Lost);
        }
        self.previous.take_if(|t| expired(t));
        self.unconfirmed.retain(|(t, _)| !expired(t));
        if self.initiation_due().is_some_and(|due| due <= now) {
            self.initiate(now);
        }
        if self.keepalive_due().is_some_and(|due| due <= now) {
            self.send_keepalive(now);
        }
    }

    /// A datagram of the session's own, and where it goes.
    pub fn poll_transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = |t: &Transport| t.since + self.timing.expire_after;
        [
            self.initiation_due(),
            self.keepalive_due(),
            self.current.as_ref().map(expiry),
            self.previous.as_ref().map(expiry),
            self.unconfirmed.iter().map(|(t, _)| expiry(t)).min(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle_control(
        &mut self,
        bytes: &[u8],
        payload: Range<usize>,
        late: bool,
    ) -> Result<Option<Arrival>, Rejection> {
        match bytes[payload.clone()].first() {
            Some(&kind) if kind >= FIRST_DAEMON_KIND => {
                let payload = payload.start + 1..payload.end;
                Ok(Some(Arrival { kind: Kind::Control(kind), payload, late }))
            }
            _ => Err(Rejection::UnknownControl),
        }
    }

    /// Opens a sealed datagram: where its payload is, and whether it is late.
    fn handle_sealed(
        &mut self,
        now: Instant,
        from: A,
        bytes: &mut [u8],
        receiver: u32,
        counter: u64,
    ) -> Result<(Range<usize>, bool), Rejection> {
        if self.unconfirmed.iter().any(|(t, _)| t.local == receiver) {
            return self.confirm(now, from, bytes, receiver, counter);
        }
        let (transport, is_current) = match (&mut self.current, &mut self.previous) {
            (Some(current), _) if current.local == receiver => (current, true),
            (_, Some(previous)) if previous.local == receiver => (previous, false),
            _ => {
                if self.hints.take(now) {
                    self.send(from, wire::hint(receiver));
                }
                return Err(Rejection::UnknownSession);
            }
        };
        let (payload, newest) = transport.open(bytes, counter)?;
        self.last_heard = now;
        let overtaken = !is_current && self.current.as_ref().is_some_and(|t| !t.is_unheard());
        let late = !newest || overtaken;
        if late {
            self.late.increment();
        } else {
            self.learnt = Some(from);
        }
        Ok((payload, late))
    }

    /// The first authentic datagram under new keys: from now on they are ours too.
    fn confirm(
        &mut self,
        now: Instant,
        from: A,
        bytes: &mut [u8],
        receiver: u32,
        counter: u64,
    ) -> Result<(Range<usize>, bool), Rejection> {
        let at = self.unconfirmed.iter().position(|(t, _)| t.local == receiver).expect("the caller found it");
        let (payload, _) = self.unconfirmed[at].0.open(bytes, counter)?;
        let (transport, hello) = self.unconfirmed.remove(at).expect("it was there");
        // What is older than the confirmed one will not be used any more.
        self.unconfirmed.drain(..at);
        self.learnt = Some(from);
        self.establish(now, transport, hello);
        Ok((payload, false))
    }

    fn handle_initiation(
        &mut self,
        now: Instant,
        from: A,
        sender: u32,
        noise: &[u8],
    ) -> Result<(), Rejection> {
        let ephemeral: [u8; EPHEMERAL_LEN] = *noise.first_chunk().ok_or(Rejection::Truncated)?;
        if self.answered.contains(&ephemeral) {
            return Err(Rejection::Replayed);
        }
        let asked = Asked::read(&self.key, noise).map_err(|_| Rejection::ForgedHandshake)?;
        let hello = asked.hello;
        if hello.incarnation == self.hello.incarnation {
            return Err(Rejection::Reflected);
        }
        if self.is_outdated(hello) {
            return Err(Rejection::Replayed);
        }
        // Only now: who holds no key cannot use the allowance up.
        if !self.handshakes.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        self.answered.truncate(ANSWERED_KEPT - 1);
        self.answered.push_front(ephemeral);
        let agreed = hello.agreement == self.hello.agreement;
        // Both sides may begin at once: the larger ephemeral key wins, the other side answers it.
        if agreed && self.initiations.back().is_some_and(|own| own.ephemeral > ephemeral) {
            return Ok(());
        }
        let local = self.fresh_index();
        let (keys, answer) = asked.answer(self.hello_at(now)).map_err(|_| Rejection::ForgedHandshake)?;
        // A peer that disagrees is told too, for whoever runs it.
        self.send(from, wire::response(local, sender, &answer));
        if !agreed {
            return Err(Rejection::Disagreement);
        }
        let transport = Transport::new(&keys, local, sender, now, false);
        if self.unconfirmed.len() == KEPT {
            self.unconfirmed.pop_front();
        }
        let at = self.unconfirmed.partition_point(|(_, other)| other.stamp <= hello.stamp);
        self.unconfirmed.insert(at, (transport, hello));
        Ok(())
    }

    /// Whether a later initiation of the same life was confirmed, or nothing but later ones wait for that.
    fn is_outdated(&self, hello: Hello) -> bool {
        let confirmed = self
            .peer_hello
            .is_some_and(|last| last.incarnation == hello.incarnation && hello.stamp <= last.stamp);
        let lowest = self.unconfirmed.front().filter(|_| self.unconfirmed.len() == KEPT);
        confirmed || lowest.is_some_and(|(_, lowest)| hello.stamp <= lowest.stamp)
    }

    fn handle_response(
        &mut self,
        now: Instant,
        from: A,
        sender: u32,
        receiver: u32,
        noise: &[u8],
    ) -> Result<(), Rejection> {
        let at = self.initiations.iter().position(|initiation| initiation.local == receiver);
        let at = at.ok_or(Rejection::UnknownSession)?;
        let (keys, hello) = self.initiations[at].finish(noise).map_err(|_| Rejection::ForgedHandshake)?;
        if hello.agreement != self.hello.agreement {
            self.initiations.remove(at);
            return Err(Rejection::Disagreement);
        }
        self.learnt = Some(from);
        self.establish(now, Transport::new(&keys, receiver, sender, now, true), hello);
        // The responder waits for a first datagram before it uses the keys.
        self.send_keepalive(now);
        Ok(())
    }

    /// A hint is not authentic: it counts only from where the peer is, and when the peer has fallen silent.
    fn handle_hint(&mut self, now: Instant, from: A, index: u32) -> Result<(), Rejection> {
        if self.current.as_ref().is_none_or(|current| current.remote != index) {
            return Err(Rejection::UnknownSession);
        }
        if self.peer() != Some(from) || now < self.last_heard + self.timing.keepalive * 2 {
            return Err(Rejection::UnexpectedHint);
        }
        self.handshake_wanted |= self.configured.is_some();
        Ok(())
    }

    fn establish(&mut self, now: Instant, transport: Transport, hello: Hello) {
        let restarted = self.peer_hello.is_some_and(|known| known.incarnation != hello.incarnation);
        // Our own initiations' answers carry the peer's stamps, which need not rise.
        let stamp = match self.peer_hello {
            Some(known) if !restarted => known.stamp.max(hello.stamp),
            _ => hello.stamp,
        };
        self.peer_hello = Some(Hello { stamp, ..hello });
        self.initiations.clear();
        let old = self.current.replace(transport);
        if restarted {
            // A former life's frames must not meet the new state.
            self.previous = None;
        } else if self.previous.is_none() || old.as_ref().is_some_and(|old| !old.is_unheard()) {
            // Keys that nothing came under yet need not be kept: the peer may still use those before them.
            self.previous = old;
        }
        self.last_heard = now;
        self.handshake_wanted = false;
        self.established.increment();
        self.events.push_back(Event::Established { restarted });
    }

    fn initiate(&mut self, now: Instant) {
        let Some(to) = self.configured else { return };
        let (initiation, message) = Initiation::new(&self.key, self.fresh_index(), self.hello_at(now));
        let datagram = wire::initiation(initiation.local, &message);
        if self.initiations.len() == KEPT {
            self.initiations.pop_front();
        }
        self.initiations.push_back(initiation);
        self.initiate_at = now + self.timing.retry;
        self.send(to, datagram);
    }

    fn hello_at(&self, now: Instant) -> Hello {
        Hello { stamp: self.hello.stamp.saturating_add(now.as_nanos()), ..self.hello }
    }

    /// When the next initiation is due, if this side begins handshakes.
    fn initiation_due(&self) -> Option<Instant> {
        self.configured?;
        let reason = match &self.current {
            _ if self.handshake_wanted => Instant::ZERO,
            None => Instant::ZERO,
            Some(current) => {
                let silence = self.last_heard + self.timing.silence;
                if current.initiated { silence.min(current.since + self.timing.renew_after) } else { silence }
            }
        };
        Some(reason.max(self.initiate_at))
    }

    fn keepalive_due(&self) -> Option<Instant> {
        self.current.as_ref().map(|_| self.last_sent + self.timing.keepalive)
    }

    fn send_keepalive(&mut self, now: Instant) {
        let Some(to) = self.peer() else { return };
        let mut datagram = vec![0; DATA_HEADER_LEN];
        self.seal(now, &mut datagram, 0);
        self.send(to, datagram);
    }

    /// Whether there was room. It is full only while nobody drains it, and the session's own messages are sent again.
    fn send(&mut self, to: A, datagram: Vec<u8>) -> bool {
        let has_room = self.outbox.len() < OUTBOX_LIMIT;
        if has_room {
            self.outbox.push_back((to, datagram));
        }
        has_room
    }

    /// A random index that none of our sessions has.
    fn fresh_index(&self) -> u32 {
        loop {
            let index = u32::from_le_bytes(random_bytes());
            let transports = self.current.iter().chain(&self.previous);
            let mut used = transports.chain(self.unconfirmed.iter().map(|(t, _)| t)).map(|t| t.local);
            if !used.any(|u| u == index) && !self.initiations.iter().any(|i| i.local == index) {
                return index;
            }
        }
    }
}

impl From<Refused> for Rejection {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Replayed => Self::Replayed,
            Refused::Forged => Self::Forged,
        }
    }
}

/// A token bucket: at most `burst` at once, one more each `interval`.
#[derive(Debug)]
struct Allowance {
    burst: u64,
    interval: Duration,
    /// The bucket is full at this instant or later.
    full_at: Instant,
}

impl Allowance {
    const fn new(burst: u64, interval: Duration) -> Self {
        Self { burst, interval, full_at: Instant::ZERO }
    }

    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let allowed = full_at <= now + self.interval * self.burst;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}

#[cfg(test)]
mod tests;
