//! A secure session with one peer: handshakes, sealed datagrams, replay protection, silence.
//!
//! Sans-I/O: `now` is a parameter, randomness is handed in, datagrams go in with [`Session::handle_datagram`] and come
//! out of [`Session::seal`] and [`Session::poll_transmit`]. Drain order: after any `handle_*`, take
//! [`Session::poll_event`] and [`Session::poll_transmit`] until there are none, then read
//! [`Session::poll_timeout`] again.
//!
//! The shape is WireGuard's (Donenfeld 2017, sections 5 and 6): the initiator uses new keys at once, the
//! responder only when the first datagram under them has arrived. Three parts share the work: `admission` (who may
//! shake hands, and at what cost), `keys` (handshakes, transports, renewal, expiry) and `paths` (where the peer is).
//!
//! Deviations: one pre-shared key and no static identities; a *life* number in each handshake datagram tells a peer
//! that has restarted from one that renews its keys; cookies instead of time stamps rank initiations, and are asked for
//! always instead of under load; another address is used once it is proved.

mod admission;
mod allowance;
mod cookies;
mod handshake;
mod keys;
mod paths;
mod rejection;
mod replay;
mod seen;
mod timing;
mod transport;
mod wire;

use core::ops::Range;
use std::collections::VecDeque;

use base::Instant;

use crate::control::Kind;
use crate::counters::Counter;
use crate::key::PresharedKey;
use crate::path::{Address, Path};
use crate::random::Random;
use admission::{Admission, Seal, Verdict};
use cookies::{COOKIE_LEN, Cookie};
use handshake::NOISE_LEN;
use keys::{Keyring, Opened};
use paths::Paths;
use wire::{Datagram, Head, Message, SEAL_LEN};

pub use paths::Peer;
pub use rejection::Rejection;
pub use timing::Timing;
pub use wire::{HEADER_LEN, OVERHEAD, TAG_LEN};

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// New keys are in use. If the peer is `restarted`, it has lost its link state since the last session.
    Established {
        /// Whether the peer's life is another than in the session before.
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
    /// Where in the datagram the opened payload is, without its kind; empty for a keep-alive.
    pub payload: Range<usize>,
    /// Whether a datagram that was sent later has arrived before.
    pub late: bool,
    /// How many that were sent just before it have not arrived.
    pub skipped: u64,
}

/// One side of a session.
#[derive(Debug)]
pub struct Session {
    head: Head,
    seal: Seal,
    timing: Timing,
    random: Random,
    admission: Admission,
    keys: Keyring,
    paths: Paths,
    /// The last cookie that the peer gave us; zeros before the first.
    cookie: Cookie,
    /// Initiations so far.
    number: u64,
    last_heard: Instant,
    last_sent: Instant,
    /// When the next initiation may leave.
    initiate_at: Instant,
    outbox: VecDeque<(Path, Vec<u8>)>,
    events: VecDeque<Event>,
    /// Handshakes completed, ours or theirs.
    pub established: Counter,
    /// Sealed datagrams that came after a later one.
    pub late: Counter,
}

/// What no side has issued.
const NO_COOKIE: Cookie = [0; COOKIE_LEN];
/// The session's own datagrams waiting to be sent.
const OUTBOX_LIMIT: usize = 16;

impl Session {
    /// A side without keys yet. A peer with an address makes it the initiator; `agreement` names what both ends must
    /// agree on.
    #[must_use]
    pub fn new(key: PresharedKey, peer: Peer, agreement: &str, timing: Timing, mut random: Random) -> Self {
        Self {
            head: Head {
                life: u64::from_le_bytes(random.draw()),
                agreement: base::random::fnv1a(agreement.as_bytes()),
            },
            seal: Seal::new(&key),
            timing,
            admission: Admission::new(&mut random),
            keys: Keyring::new(key),
            paths: Paths::new(peer),
            random,
            cookie: NO_COOKIE,
            number: 0,
            last_heard: Instant::ZERO,
            last_sent: Instant::ZERO,
            initiate_at: Instant::ZERO,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            established: Counter::default(),
            late: Counter::default(),
        }
    }

    /// Waits otherwise from now on.
    pub const fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// Where data goes: where the peer has proved to be, or else the configured address.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        self.paths.current()
    }

    /// Where the peer is.
    #[must_use]
    pub fn peer(&self) -> Option<Address> {
        self.path().map(|path| path.peer)
    }

    /// Where handshakes are begun, if this side begins them.
    #[must_use]
    pub fn called(&self) -> Option<Address> {
        self.paths.configured().map(|path| path.peer)
    }

    /// Has handshakes begin at `address` from now on, the first one at once unless the peer is heard. Data still goes where
    /// the peer has proved to be, until a handshake completes; but a session with a pinned peer ends, since that is
    /// nowhere else any more.
    pub fn call_at(&mut self, address: Address) {
        if self.called() == Some(address) {
            return;
        }
        self.paths.configure(address);
        // An answer stands for the address that its initiation went to.
        self.keys.forget_initiations();
        self.initiate_at = Instant::ZERO;
        if self.paths.is_pinned() && self.keys.clear() {
            self.events.push_back(Event::Lost);
        }
    }

    /// Whether [`Session::seal`] may be called.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.keys.current().is_some()
    }

    /// Whether the peer was heard lately, so that data is worth sending.
    #[must_use]
    pub fn is_heard(&self, now: Instant) -> bool {
        self.is_established() && now < self.last_heard + self.timing.give_up
    }

    /// Makes the bytes of `buffer` from `start` a datagram that holds a frame: [`HEADER_LEN`] bytes of any value,
    /// then the frame, which is sealed in place; [`TAG_LEN`] bytes are appended.
    ///
    /// # Panics
    /// If the session is not established.
    pub fn seal(&mut self, now: Instant, buffer: &mut Vec<u8>, start: usize) {
        self.seal_as(now, Kind::Frame, buffer, start);
    }

    /// As [`Session::seal`], for a payload of this kind.
    ///
    /// # Panics
    /// If the session is not established.
    pub fn seal_as(&mut self, now: Instant, kind: Kind, buffer: &mut Vec<u8>, start: usize) {
        self.keys.seal(kind, buffer, start);
        self.last_sent = now;
    }

    /// Queues a control datagram for the peer; [`Session::poll_transmit`] gives it. False without a session, or
    /// while too many wait.
    pub fn send_control(&mut self, now: Instant, kind: Kind, body: &[u8]) -> bool {
        let Some(to) = self.path() else { return false };
        let is_queued = self.control_to(to, kind, body);
        if is_queued {
            self.last_sent = now;
        }
        is_queued
    }

    /// Takes a datagram that came from `from`. It is opened in place; what is the session's own gives `None`.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &mut [u8],
    ) -> Result<Option<Arrival>, Rejection> {
        match Datagram::parse(bytes)? {
            Datagram::Sealed { receiver, counter } => {
                let opened = self.keys.open(bytes, receiver, counter);
                if opened.as_ref().is_err_and(|rejection| *rejection == Rejection::Replayed)
                    && self.paths.counts_copies(now, from)
                    && self.keys.is_copy(bytes, receiver, counter)
                {
                    self.paths.on_copy(now, from);
                }
                self.handle_sealed(now, from, bytes, opened?)
            }
            Datagram::Handshake { head, message, sealed, seal } => {
                if self.paths.exclude(from) {
                    return Err(Rejection::Elsewhere);
                }
                if !self.seal.is_on(sealed, seal) {
                    return Err(Rejection::ForgedHandshake);
                }
                self.handle_handshake(now, from, head, message, seal).map(|()| None)
            }
        }
    }

    /// Lets what is due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.keys.expire(now, self.timing.expire_after) {
            self.events.push_back(Event::Lost);
        }
        if self.initiation_due().is_some_and(|due| due <= now) {
            self.initiate(now);
        }
        if self.keepalive_due().is_some_and(|due| due <= now) {
            self.send_keepalive(now);
        }
    }

    /// A datagram of the session's own, and where it goes.
    pub fn poll_transmit(&mut self) -> Option<(Path, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.keys.expiry(self.timing.expire_after);
        [self.initiation_due(), self.keepalive_due(), expiry].into_iter().flatten().min()
    }

    /// Takes what was `opened` in `bytes`.
    fn handle_sealed(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &[u8],
        opened: Opened,
    ) -> Result<Option<Arrival>, Rejection> {
        let (late, confirmed) = (opened.late, opened.confirmed);
        self.last_heard = now;
        if let Some((path, restarted)) = confirmed {
            self.on_established(now, path, restarted);
        }
        let arrival = self.handle_content(now, from, bytes, opened);
        if late {
            self.late.increment();
        } else if self.paths.on_newest(now, from)
            && let Some(cookie) = self.admission.cookies.offer(now, from)
        {
            self.control_to(from, Kind::PathChallenge, &cookie);
            if let Some(here) = self.paths.current() {
                let cookie = self.admission.cookies.issue(now, here);
                self.control_to(here, Kind::PathChallenge, &cookie);
            }
        }
        arrival
    }

    fn handle_content(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &[u8],
        opened: Opened,
    ) -> Result<Option<Arrival>, Rejection> {
        let Opened { payload, late, skipped, .. } = opened;
        let (&kind, body) = bytes[payload.clone()].split_first().ok_or(Rejection::UnknownControl)?;
        match (Kind::of(kind).ok_or(Rejection::UnknownControl)?, Cookie::try_from(body)) {
            (Kind::PathChallenge, Ok(_)) => {
                self.control_to(from, Kind::PathResponse, body);
            }
            (Kind::PathResponse, Ok(cookie)) if !late => {
                if let Some(issued) = self.admission.cookies.issued(now, from, &cookie) {
                    self.paths.on_answer(now, from, issued);
                }
            }
            (Kind::PathResponse, Ok(_)) => {}
            (Kind::PathChallenge | Kind::PathResponse, Err(_)) => return Err(Rejection::UnknownControl),
            (kind, _) => {
                return Ok(Some(Arrival { kind, payload: payload.start + 1..payload.end, late, skipped }));
            }
        }
        Ok(None)
    }

    /// Takes a handshake datagram by a holder of the key.
    fn handle_handshake(
        &mut self,
        now: Instant,
        from: Path,
        head: Head,
        message: Message<'_>,
        seal: &[u8; SEAL_LEN],
    ) -> Result<(), Rejection> {
        if head.life == self.head.life {
            return Err(Rejection::Reflected);
        }
        let agreed = head.agreement == self.head.agreement;
        match message {
            Message::Initiation { sender, number, cookie, noise } => {
                // One that disagrees gets no more than a challenge, which tells whoever runs it.
                let cookie = if agreed { cookie } else { &NO_COOKIE };
                match self.admission.admit(now, from, seal, cookie, number)? {
                    Verdict::Challenge(cookie) => {
                        self.send_handshake(from, Message::Challenge { receiver: sender, cookie: &cookie });
                    }
                    Verdict::Answer => self.answer(now, from, head.life, sender, noise)?,
                }
            }
            Message::Response { receiver, .. } | Message::Challenge { receiver, .. }
                if !self.keys.awaits(receiver) =>
            {
                return Err(Rejection::UnknownSession);
            }
            _ if !agreed => {}
            Message::Response { sender, receiver, cookie, noise } => {
                let restarted = self.keys.finish(now, receiver, sender, noise, head.life)?;
                self.cookie = *cookie;
                // What reached the configured address was answered, wherever the answer comes from.
                self.on_established(now, self.paths.configured().unwrap_or(from), restarted);
                // The responder waits for a first datagram before it uses the keys.
                self.send_keepalive(now);
            }
            Message::Challenge { receiver, cookie } => {
                self.keys.forget(receiver);
                self.cookie = *cookie;
                self.initiate(now);
            }
        }
        if agreed { Ok(()) } else { Err(Rejection::Disagreement) }
    }

    fn answer(
        &mut self,
        now: Instant,
        from: Path,
        life: u64,
        sender: u32,
        noise: &[u8; NOISE_LEN],
    ) -> Result<(), Rejection> {
        if self.keys.prefer_ours(noise) {
            return Ok(());
        }
        let (local, answer) = self.keys.answer(now, &mut self.random, from, life, sender, noise)?;
        let cookie = self.admission.cookies.issue(now, from);
        let message = Message::Response { sender: local, receiver: sender, cookie: &cookie, noise: &answer };
        self.send_handshake(from, message);
        Ok(())
    }

    fn on_established(&mut self, now: Instant, path: Path, restarted: bool) {
        self.paths.prove(path);
        self.last_heard = now;
        self.established.increment();
        self.events.push_back(Event::Established { restarted });
    }

    fn initiate(&mut self, now: Instant) {
        let Some(to) = self.paths.configured() else { return };
        let (sender, noise) = self.keys.initiate(&mut self.random, self.cookie != NO_COOKIE);
        self.number += 1;
        self.initiate_at = now + self.timing.retry;
        let cookie = self.cookie;
        self.send_handshake(
            to,
            Message::Initiation { sender, number: self.number, cookie: &cookie, noise: &noise },
        );
    }

    /// When the next initiation is due, if this side begins handshakes.
    fn initiation_due(&self) -> Option<Instant> {
        self.paths.configured()?;
        let reason = self.keys.current().map_or(Instant::ZERO, |current| {
            let silence = self.last_heard + self.timing.silence;
            if current.initiated { silence.min(current.since + self.timing.renew_after) } else { silence }
        });
        Some(reason.max(self.initiate_at))
    }

    fn keepalive_due(&self) -> Option<Instant> {
        self.keys.current().map(|_| self.last_sent + self.timing.keepalive)
    }

    fn send_keepalive(&mut self, now: Instant) {
        let Some(to) = self.path() else { return };
        let mut datagram = vec![0; HEADER_LEN];
        self.seal(now, &mut datagram, 0);
        self.send(to, datagram);
    }

    /// Sends a control datagram on any path, if there are keys: what arrived may have come under former ones. One that checks
    /// another path does not stand in for a keep-alive.
    fn control_to(&mut self, to: Path, kind: Kind, body: &[u8]) -> bool {
        if !self.is_established() {
            return false;
        }
        let mut datagram = [&[0; HEADER_LEN], body].concat();
        self.keys.seal(kind, &mut datagram, 0);
        self.send(to, datagram)
    }

    fn send_handshake(&mut self, to: Path, message: Message<'_>) {
        let datagram = message.write(self.head, &self.seal);
        self.send(to, datagram);
    }

    /// Whether there was room. It is full only while nobody drains it, and the session's own messages are sent again.
    fn send(&mut self, to: Path, datagram: Vec<u8>) -> bool {
        let has_room = self.outbox.len() < OUTBOX_LIMIT;
        if has_room {
            self.outbox.push_back((to, datagram));
        }
        has_room
    }
}

#[cfg(test)]
mod tests;
