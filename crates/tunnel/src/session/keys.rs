//! Keys: handshakes under way, the transports that they give, and how long these live.

use core::ops::Range;
use std::collections::VecDeque;

use base::{Duration, Instant};
use link::LineId;

use super::Rejection;
use super::handshake::{
    EPHEMERAL_LEN, Ends, Greeting, INITIATION_LEN, Initiation, Keys, RESPONSE_LEN, Terms, Welcome,
};
use super::indices::Indices;
use super::transport::{self, Transport};
use super::wire::SEAL_LEN;
use crate::control::Kind;
use crate::path::Path;
use crate::random::Random;

/// All keys that one side of a session has.
#[derive(Debug)]
pub(super) struct Keyring {
    ends: Ends,
    /// Where our indices come from, and the number of this peer among all.
    indices: (Indices, u32),
    current: Option<Transport>,
    /// Opens what was under way when the keys changed.
    previous: Option<Transport>,
    /// Answered initiations whose first sealed datagram is awaited, oldest first.
    unconfirmed: VecDeque<Unconfirmed>,
    /// Our unanswered initiations, oldest first.
    initiations: VecDeque<Initiation>,
    /// The peer's life at the last session's handshake.
    peer_life: Option<u64>,
}

/// Keys that are the peer's already, if the answer reached it.
#[derive(Debug)]
struct Unconfirmed {
    transport: Transport,
    /// The initiator's, which are proved with them.
    terms: Terms,
    /// Over which line it called, and where its cookie proves that it receives.
    path: (LineId, Path),
}

/// An authentic datagram.
#[derive(Debug)]
pub(super) struct Opened {
    /// The line that it came over.
    pub(super) line: LineId,
    /// Where its kind and its payload are.
    pub(super) payload: Range<usize>,
    /// Whether one that was sent later over this line has arrived before.
    pub(super) late: bool,
    /// How many that were sent just before it over this line have not arrived.
    pub(super) skipped: u64,
    /// If it is the first under its keys.
    pub(super) confirmed: Option<Confirmed>,
}

/// The peer uses keys that we have answered it with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmed {
    /// Where it is, over the line that it called over.
    pub(super) path: (LineId, Path),
    pub(super) terms: Terms,
    /// Whether it has restarted.
    pub(super) restarted: bool,
}

/// Unanswered initiations and unconfirmed answers kept at once.
const KEPT: usize = 16;
/// Challenges that are followed at once, one after the other: somebody on the path may have asked for the first ones from elsewhere, in our
/// name. After that the next initiation waits for its time.
const MOST_CHALLENGES: u8 = 4;

impl Keyring {
    pub(super) const fn new(ends: Ends, indices: (Indices, u32)) -> Self {
        Self {
            ends,
            indices,
            current: None,
            previous: None,
            unconfirmed: VecDeque::new(),
            initiations: VecDeque::new(),
            peer_life: None,
        }
    }

    /// What seals, if there is a session.
    pub(super) const fn current(&self) -> Option<&Transport> {
        self.current.as_ref()
    }

    /// Seals the payload that starts [`HEADER_LEN`](super::HEADER_LEN) bytes after `start`, in place. It leaves over `line`.
    pub(super) fn seal(&mut self, line: LineId, kind: Kind, buffer: &mut Vec<u8>, start: usize) {
        self.current.as_mut().expect("the session is established").seal(line, kind, buffer, start);
    }

    /// Opens a sealed datagram in place. The first one under new keys makes them ours too.
    pub(super) fn open(
        &mut self,
        bytes: &mut [u8],
        receiver: u32,
        counter: u64,
    ) -> Result<Opened, Rejection> {
        // Of others none is opened.
        let line = transport::line_of(counter).unwrap_or_default();
        if let Some(at) = self.unconfirmed.iter().position(|other| other.transport.local == receiver) {
            let (payload, _) = self.unconfirmed[at].transport.open(bytes, counter)?;
            // What is older than the confirmed one will not be used any more.
            let Unconfirmed { transport, terms, path } =
                self.unconfirmed.drain(..=at).next_back().expect("it was there");
            if self.peer_life == Some(terms.life)
                && self.current.as_ref().is_some_and(|current| current.since > transport.since)
            {
                // Both began, and our own handshake was complete first: younger keys stay in use.
                self.previous = Some(transport);
                return Ok(Opened { line, payload, late: false, skipped: 0, confirmed: None });
            }
            let restarted = self.establish(transport, terms.life);
            let confirmed = Some(Confirmed { path, terms, restarted });
            return Ok(Opened { line, payload, late: false, skipped: 0, confirmed });
        }
        let (transport, is_current) = match (&mut self.current, &mut self.previous) {
            (Some(current), _) if current.local == receiver => (current, true),
            (_, Some(previous)) if previous.local == receiver => (previous, false),
            _ => return Err(Rejection::UnknownSession),
        };
        let (payload, skipped) = transport.open(bytes, counter)?;
        let overtaken =
            !is_current && self.current.as_ref().is_some_and(|current| !current.is_unheard_over(line));
        let late = skipped.is_none() || overtaken;
        Ok(Opened { line, payload, late, skipped: skipped.filter(|_| !late).unwrap_or(0), confirmed: None })
    }

    /// Whether a datagram that was refused as a replay is a copy of one that came lately.
    pub(super) fn is_copy(&self, bytes: &mut [u8], receiver: u32, counter: u64) -> bool {
        let transport = self.transports().find(|transport| transport.local == receiver);
        transport.is_some_and(|transport| transport.is_copy(bytes, counter))
    }

    /// Who the two ends are.
    pub(super) const fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Begins a handshake over the line of its greeting, which shows a cookie or none, after so many challenges in a row: our index, and the Noise
    /// message to send.
    pub(super) fn initiate(
        &mut self,
        random: &mut Random,
        greeting: Greeting,
        has_cookie: bool,
        follows: u8,
    ) -> (u32, [u8; INITIATION_LEN]) {
        let local = self.fresh_index(random);
        let (mut initiation, noise) = Initiation::new(&self.ends, random, local, greeting);
        (initiation.has_cookie, initiation.follows) = (has_cookie, follows);
        if self.initiations.len() == KEPT {
            self.initiations.pop_front();
        }
        self.initiations.push_back(initiation);
        (local, noise)
    }

    /// Whether the initiation with our index `local` has no answer yet.
    pub(super) fn awaits(&self, local: u32) -> bool {
        self.initiations.iter().any(|initiation| initiation.local == local)
    }

    /// The initiation with our index `local` left with this seal.
    pub(super) fn on_sealed(&mut self, local: u32, datagram: &[u8]) {
        let initiation = self.initiations.iter_mut().find(|initiation| initiation.local == local);
        if let (Some(initiation), Some(seal)) = (initiation, datagram.last_chunk()) {
            initiation.seal = *seal;
        }
    }

    /// The seal of the initiation with our index `local`, if it has no answer yet.
    pub(super) fn seal_of(&self, local: u32) -> Option<&[u8; SEAL_LEN]> {
        let initiation = self.initiations.iter().find(|initiation| initiation.local == local);
        initiation.map(|initiation| &initiation.seal)
    }

    /// The initiation with our index `local` was challenged: its line, and how many challenges in a row it is, if the next initiation is to follow at once.
    /// Its answer still counts: whoever knows the peer can make a challenge.
    pub(super) fn challenge(&mut self, local: u32) -> Result<Option<(LineId, u8)>, Rejection> {
        let initiation = self.initiations.iter_mut().find(|initiation| initiation.local == local);
        let initiation = initiation.ok_or(Rejection::UnknownSession)?;
        match core::mem::replace(&mut initiation.follows, Initiation::CHALLENGED) {
            Initiation::CHALLENGED => Err(Rejection::Replayed),
            follows if follows < MOST_CHALLENGES => Ok(Some((initiation.line, follows + 1))),
            _ => Ok(None),
        }
    }

    /// Gives all our unanswered initiations up.
    pub(super) fn forget_initiations(&mut self) {
        self.initiations.clear();
    }

    /// Gives all keys up; whether some were in use. The peer's life is still known.
    pub(super) fn clear(&mut self) -> bool {
        self.initiations.clear();
        self.unconfirmed.clear();
        self.previous = None;
        self.current.take().is_some()
    }

    /// Whether an initiation loses against our own: both sides may begin at once, then the larger ephemeral key wins
    /// and the other side answers it. One that shows no cookie wins nothing, since it will get no answer.
    pub(super) fn prefer_ours(&self, theirs: &[u8; EPHEMERAL_LEN]) -> bool {
        self.initiations.back().is_some_and(|own| own.has_cookie && own.ephemeral > *theirs)
    }

    /// Keeps what an initiation has been answered with, until a datagram comes under it.
    pub(super) fn await_first(&mut self, transport: Transport, terms: Terms, path: (LineId, Path)) {
        if self.unconfirmed.len() == KEPT {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back(Unconfirmed { transport, terms, path });
    }

    /// Reads the peer's answer to our initiation `local`, and says over which line that left.
    pub(super) fn finish(
        &mut self,
        local: u32,
        noise: &[u8; RESPONSE_LEN],
    ) -> Result<(LineId, Keys, Welcome), Rejection> {
        let pending = self.initiations.iter_mut().find(|initiation| initiation.local == local);
        let pending = pending.ok_or(Rejection::UnknownSession)?;
        let (keys, welcome) = pending.finish(noise).map_err(|_| Rejection::ForgedHandshake)?;
        Ok((pending.line, keys, welcome))
    }

    /// Uses `transport` from now on; whether the peer has restarted since the one before.
    pub(super) fn establish(&mut self, transport: Transport, life: u64) -> bool {
        let restarted = self.peer_life.replace(life).is_some_and(|known| known != life);
        self.initiations.clear();
        let old = self.current.replace(transport);
        if restarted {
            // A former life's frames must not meet the new state.
            self.previous = None;
        } else if self.previous.is_none() || old.as_ref().is_some_and(|old| !old.is_unheard()) {
            // Keys that nothing came under yet need not be kept: the peer may still use those before them.
            self.previous = old;
        }
        restarted
    }

    /// Drops keys older than `age` or used up; whether those in use were among them.
    pub(super) fn expire(&mut self, now: Instant, age: Duration) -> bool {
        let expired = |transport: &Transport| transport.since + age <= now || transport.is_spent();
        self.previous.take_if(|transport| expired(transport));
        self.unconfirmed.retain(|other| !expired(&other.transport));
        self.current.take_if(|transport| expired(transport)).is_some()
    }

    /// When the next keys reach `age`.
    pub(super) fn expiry(&self, age: Duration) -> Option<Instant> {
        self.transports().map(|transport| transport.since + age).min()
    }

    fn transports(&self) -> impl Iterator<Item = &Transport> {
        let unconfirmed = self.unconfirmed.iter().map(|other| &other.transport);
        self.current.iter().chain(&self.previous).chain(unconfirmed)
    }

    /// An index that nothing of ours has.
    pub(super) fn fresh_index(&self, random: &mut Random) -> u32 {
        loop {
            let (indices, peer) = self.indices;
            let index = indices.draw(peer, random);
            if !self.awaits(index) && !self.transports().any(|transport| transport.local == index) {
                return index;
            }
        }
    }
}
