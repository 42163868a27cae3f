//! A secure session with one peer: handshakes, sealed datagrams, replay protection, silence.
//!
//! Sans-I/O: `now` is a parameter, randomness is handed in, datagrams go in with [`Session::handle_datagram`] and come
//! out of [`Session::seal`] and [`Session::poll_transmit`]. Drain order: after any `handle_*`, take
//! [`Session::poll_event`] and [`Session::poll_transmit`] until there are none, then read
//! [`Session::poll_timeout`] again.
//!
//! The shape is WireGuard's (Donenfeld 2017, sections 5 and 6): the initiator uses new keys at once, the
//! responder only when the first datagram under them has arrived. Four parts share the work: `reception` (who may
//! shake hands, and at what cost, for all sessions of a gateway), `calls` (when this side calls, to begin or to renew keys), `keys` (handshakes,
//! transports, expiry) and `lines` (the ways to the
//! peer, and for each, in `paths`, where it is).
//!
//! Deviations: a *life* number in each handshake tells a peer that has restarted from one that renews its keys; cookies instead of time
//! stamps rank initiations, and are asked for always instead of under load; another address is used once it is proved; a side that was
//! restarted denies datagrams of its former life (`denial`).

mod activity;
mod calls;
mod cookies;
mod denial;
mod handshake;
mod indices;
mod keep_alive;
mod keys;
mod lines;
mod paths;
mod reception;
mod rejection;
mod replay;
mod seal;
mod seen;
mod standing;
mod strangers;
mod timing;
mod transport;
mod wire;

use core::ops::Range;
use std::collections::VecDeque;

use base::{Duration, Instant};
use link::LineId;

use crate::allowance::Allowance;
use crate::control::Kind;
use crate::counters::Counter;
use crate::due::Due;
use crate::key::PublicKey;
use crate::path::{Address, Path};
use crate::random::Random;
use activity::Activity;
use cookies::{Cookie, Cookies};
use handshake::Terms;
use keys::{Confirmed, Keyring, Opened};
use lines::Lines;
use seal::Seal;
use strangers::Buckets;
use wire::{Datagram, Message};

pub use handshake::Ends;
pub use indices::Indices;
pub(crate) use indices::MOST_PEERS;
pub use paths::Peer;
pub use reception::{Admitted, Call, Received, Reception, Reply};
pub use rejection::Rejection;
pub use standing::Standing;
pub use timing::{Idle, KEEP_ALIVE, Timing};
pub use wire::{HEADER_LEN, OVERHEAD, TAG_LEN, is_denial, layout};
pub(crate) use wire::{denied, initiates, receiver};

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
    /// The peer has said that it ends.
    Left,
    /// The peer has called several times and took up no answer: either none reaches it, or it has another pre-shared key.
    Unheeded,
}

/// An authentic datagram that is not the session's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The line that it came over.
    pub line: LineId,
    /// What it is.
    pub kind: Kind,
    /// Where in the datagram the opened payload is, without its kind; empty for a keep-alive.
    pub payload: Range<usize>,
    /// Whether a datagram that was sent later over this line has arrived before.
    pub late: bool,
    /// How many that were sent just before it over this line have not arrived.
    pub skipped: u64,
}

/// One side of a session.
#[derive(Debug)]
pub struct Session {
    terms: Terms,
    /// On handshakes that the peer answers.
    seal: Seal,
    timing: Timing,
    random: Random,
    keys: Keyring,
    lines: Lines,
    /// Prove where the peer is.
    cookies: Cookies,
    challenges: Buckets,
    /// What the peer's initiations may cost, and which are new.
    standing: Standing,
    /// Between the peer's keep-alives while nothing else passes.
    peer_keep_alive: Duration,
    /// Initiations so far.
    number: u64,
    /// Calls answered since the peer last took an answer up, [`u8::MAX`] once that was told; and when the first was.
    unheeded: (u8, Instant),
    last_heard: Instant,
    /// Whether the peer has said that it ends, and there is no other session yet.
    has_left: bool,
    last_sent: Instant,
    activity: Activity,
    /// When the next initiation may leave.
    initiate_at: Instant,
    /// Of the peer, to be believed.
    denials: Allowance,
    outbox: VecDeque<((Path, LineId), Vec<u8>)>,
    events: VecDeque<Event>,
    /// Handshakes completed, ours or theirs.
    pub established: Counter,
    /// Sealed datagrams that came after a later one.
    pub late: Counter,
}

/// The session's own datagrams waiting to be sent.
const OUTBOX_LIMIT: usize = 16;
/// Calls answered in vain before that is told, and for how long. Ours: on a bad link several may be lost, and on a slow one several leave before
/// the first is answered.
const UNHEEDED: (u8, Duration) = (3, Duration::from_secs(20));
/// Challenges to one address that claims to be the peer's; and for how many addresses there are allowances.
const CHALLENGES: (Allowance, usize) = (Allowance::new(4, Duration::from_millis(250)), 16);

impl Session {
    /// A side without keys yet. A `peer` with an address makes it the initiator; `agreement` names what both ends must agree on. Indices are
    /// those of the peer with the number that comes with them.
    #[must_use]
    pub fn new(
        ends: Ends,
        peer: Peer,
        agreement: &str,
        timing: Timing,
        indices: (Indices, u32),
        mut random: Random,
    ) -> Self {
        let (challenges, sources) = CHALLENGES;
        Self {
            terms: Terms {
                life: u64::from_le_bytes(random.draw()),
                agreement: base::random::fnv1a(agreement.as_bytes()),
                keep_alive: timing.idle.keepalive.as_millis() as u32,
            },
            seal: Seal::of(&ends.peer),
            timing,
            keys: Keyring::new(ends, indices),
            lines: Lines::new(peer),
            cookies: Cookies::new(&mut random),
            challenges: Buckets::new(challenges, sources, &mut random),
            random,
            standing: Standing::default(),
            peer_keep_alive: timing.idle.keepalive,
            number: 0,
            unheeded: (0, Instant::ZERO),
            last_heard: Instant::ZERO,
            has_left: false,
            last_sent: Instant::ZERO,
            activity: Activity::default(),
            initiate_at: Instant::ZERO,
            denials: denial::ALLOWANCE,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            established: Counter::default(),
            late: Counter::default(),
        }
    }

    /// Who the peer is.
    #[must_use]
    pub const fn peer_key(&self) -> PublicKey {
        self.keys.ends().peer
    }

    /// When the peer was heard last, if it ever was.
    #[must_use]
    pub fn last_heard(&self) -> Option<Instant> {
        (self.established.get() > 0).then_some(self.last_heard)
    }

    /// Waits otherwise from now on.
    pub const fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
        self.terms.keep_alive = timing.idle.keepalive.as_millis() as u32;
    }

    /// Where data goes: where the peer has proved to be, or else the configured address. Of several lines the first that leads anywhere.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        self.lines.shown()
    }

    /// Where the peer is.
    #[must_use]
    pub fn peer(&self) -> Option<Address> {
        self.path().map(|path| path.peer)
    }

    /// Where handshakes are begun, if this side begins them.
    #[must_use]
    pub fn called(&self) -> Option<Address> {
        self.lines.first().paths.configured().map(|path| path.peer)
    }

    /// Has handshakes begin at `address` from now on, the first one at once unless the peer is heard. Data still goes where
    /// the peer has proved to be, until a handshake completes; but a session with a pinned peer ends, since that is
    /// nowhere else any more.
    pub fn call_at(&mut self, address: Address) {
        if self.called() == Some(address) {
            return;
        }
        self.lines.configure(address);
        // An answer stands for the address that its initiation went to.
        self.keys.forget_initiations();
        self.initiate_at = Instant::ZERO;
        if self.lines.first().paths.is_pinned() && self.keys.clear() {
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
        let due = self.activity.due(self.last_heard, self.timing.give_up, self.idle().give_up);
        self.is_established() && !self.has_left && now < due
    }

    /// Whether the peer has said that it ends, and was not heard since.
    #[must_use]
    pub const fn has_left(&self) -> bool {
        self.has_left
    }

    /// Tells the peer that this end ends, twice over each line: one may be lost.
    pub fn say_farewell(&mut self) {
        let lines = self.lines.all().filter_map(|(id, line)| Some((line.paths.current()?, id)));
        for to in lines.collect::<Vec<_>>() {
            (0..2).for_each(|_| _ = self.control_to(to, Kind::Farewell, &[]));
        }
    }

    /// Makes the bytes of `buffer` from `start` a datagram that holds a payload of this kind: [`HEADER_LEN`] bytes of any value,
    /// then the payload, which is sealed in place; [`TAG_LEN`] bytes are appended. It leaves over `line`.
    ///
    /// # Panics
    /// If the session is not established.
    pub fn seal(&mut self, now: Instant, line: LineId, kind: Kind, buffer: &mut Vec<u8>, start: usize) {
        self.keys.seal(line, kind, buffer, start);
        self.note_sent(now, line);
        if kind.is_traffic() {
            self.activity.on_traffic(now);
        }
    }

    /// Queues a control datagram that leaves over `line` for the peer; [`Session::poll_transmit`] gives it. False without a session, or
    /// while too many wait.
    pub fn send_control(&mut self, now: Instant, line: LineId, kind: Kind, body: &[u8]) -> bool {
        let Some(to) = self.path_over(line) else { return false };
        let is_queued = self.control_to((to, line), kind, body);
        if is_queued {
            self.note_sent(now, line);
        }
        is_queued
    }

    fn note_sent(&mut self, now: Instant, line: LineId) {
        self.last_sent = now;
        if let Some(line) = self.lines.get_mut(line) {
            line.last_sent = now;
        }
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
                    && let Some(line) = transport::line_of(counter).and_then(|id| self.lines.get_mut(id))
                    && line.paths.counts_copies(now, from)
                    && self.keys.is_copy(bytes, receiver, counter)
                {
                    line.paths.on_copy(now, from);
                }
                self.handle_sealed(now, from, bytes, opened?)
            }
            Datagram::Handshake { message: Message::Initiation { .. }, .. } => Err(Rejection::UnknownType),
            Datagram::Handshake { message, sealed, seal } => {
                if self.lines.exclude(from) {
                    return Err(Rejection::Elsewhere);
                }
                let answered: &[u8] = match message {
                    Message::Challenge { receiver, .. } => {
                        self.keys.seal_of(receiver).ok_or(Rejection::UnknownSession)?
                    }
                    _ => &[],
                };
                if !self.seal.is_on(sealed, answered, seal) {
                    return Err(Rejection::ForgedHandshake);
                }
                self.handle_handshake(now, from, message).map(|()| None)
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
        if self.lines_due().is_some_and(|due| due <= now) {
            self.tend_lines(now);
        }
    }

    /// A datagram of the session's own, and where it goes.
    pub fn poll_transmit(&mut self) -> Option<(Path, Vec<u8>)> {
        self.outbox.pop_front().map(|((to, _), datagram)| (to, datagram))
    }

    /// The line that it leaves over.
    #[must_use]
    pub fn transmits_over(&self) -> Option<LineId> {
        self.outbox.front().map(|((_, line), _)| *line)
    }

    /// Whether [`Session::poll_transmit`] has one.
    #[must_use]
    pub fn has_datagrams(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due().map(|due| due.from)
    }

    /// When [`Session::handle_timeout`] wants to be called, and how late it may be.
    pub(crate) fn due(&self) -> Option<Due> {
        let expiry = self.keys.expiry(self.timing.expire_after);
        Due::first([
            self.initiation_due().map(Due::at),
            self.keepalive_due().map(Due::about),
            self.lines_due().map(Due::at),
            expiry.map(Due::at),
        ])
    }

    /// Takes what was `opened` in `bytes`.
    fn handle_sealed(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &[u8],
        opened: Opened,
    ) -> Result<Option<Arrival>, Rejection> {
        let (id, late, confirmed) = (opened.line, opened.late, opened.confirmed);
        // One that this side cannot have is whatever its peer makes of it.
        self.lines.used(id, from.via).ok_or(Rejection::UnknownControl)?;
        self.last_heard = now;
        if let Some(Confirmed { path: (called, path), terms, restarted }) = confirmed {
            self.expect_every(terms.keep_alive);
            if restarted {
                self.lines.on_restarted(now, called);
            }
            if let Some(line) = self.lines.used(called, path.via) {
                line.paths.on_handshake(now, path, restarted);
                line.note_heard(now, path);
            }
            self.on_established(now, restarted);
        }
        let arrival = self.handle_content(now, from, bytes, opened);
        let Some(line) = self.lines.get_mut(id).filter(|_| !late) else {
            self.late.increment();
            return arrival;
        };
        let may_have_moved = line.paths.on_newest(now, from);
        line.note_heard(now, from);
        let here = line.paths.current();
        if may_have_moved && self.challenges.of(&Path { local: None, ..from }.to_bytes()).take(now) {
            self.challenge(now, id, from);
            here.into_iter().for_each(|here| self.challenge(now, id, here));
        }
        arrival
    }

    /// Asks the peer to show that it receives at `to`.
    fn challenge(&mut self, now: Instant, line: LineId, to: Path) {
        let cookie = self.cookies.issue(now, to, None);
        self.control_to((to, line), Kind::PathChallenge, &cookie);
    }

    fn handle_content(
        &mut self,
        now: Instant,
        from: Path,
        bytes: &[u8],
        opened: Opened,
    ) -> Result<Option<Arrival>, Rejection> {
        let Opened { line, payload, late, skipped, .. } = opened;
        let (&kind, body) = bytes[payload.clone()].split_first().ok_or(Rejection::UnknownControl)?;
        match (Kind::of(kind).ok_or(Rejection::UnknownControl)?, Cookie::try_from(body)) {
            (Kind::PathChallenge, Ok(_)) => {
                self.control_to((from, line), Kind::PathResponse, body);
            }
            (Kind::PathResponse, Ok(cookie)) if !late => {
                if let Some(issued) = self.cookies.issued(now, from, &cookie)
                    && let Some(line) = self.lines.get_mut(line)
                {
                    line.paths.on_answer(now, from, issued.at);
                }
            }
            (Kind::PathResponse, Ok(_)) => {}
            // Keys of a former life are gone once there is another, so it is this one's that ends, in whatever order this comes.
            (Kind::Farewell, _) => {
                if !self.has_left {
                    self.has_left = true;
                    self.events.push_back(Event::Left);
                }
            }
            (Kind::PathChallenge | Kind::PathResponse, Err(_)) => return Err(Rejection::UnknownControl),
            (kind, _) => {
                if kind.is_traffic() {
                    if body.is_empty() {
                        self.answer_keepalive(now);
                    } else {
                        self.activity.on_traffic(now);
                    }
                }
                return Ok(Some(Arrival {
                    line,
                    kind,
                    payload: payload.start + 1..payload.end,
                    late,
                    skipped,
                }));
            }
        }
        Ok(None)
    }

    /// Sends a control datagram on any path of a line, if there are keys: what arrived may have come under former ones. One that checks
    /// another path does not stand in for a keep-alive.
    fn control_to(&mut self, to: (Path, LineId), kind: Kind, body: &[u8]) -> bool {
        if !self.is_established() {
            return false;
        }
        let mut datagram = Vec::with_capacity(OVERHEAD + body.len());
        datagram.extend_from_slice(&[0; HEADER_LEN]);
        datagram.extend_from_slice(body);
        self.keys.seal(to.1, kind, &mut datagram, 0);
        self.send(to, datagram)
    }

    /// Whether there was room. It is full only while nobody drains it, and the session's own messages are sent again.
    fn send(&mut self, to: (Path, LineId), datagram: Vec<u8>) -> bool {
        let has_room = self.outbox.len() < OUTBOX_LIMIT;
        if has_room {
            self.outbox.push_back((to, datagram));
        }
        has_room
    }
}

#[cfg(test)]
mod tests;
