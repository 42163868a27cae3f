//! Paths: where the peer is, and how it comes to be elsewhere.
//!
//! Whoever is on the path can capture a datagram and deliver it first, from an address of his own. So a datagram from elsewhere moves nothing:
//! - Both paths get a cookie, as in QUIC (RFC 9000, section 9 and 9.3.3).
//! - Data follows once the new path has shown its cookie, unless the old one was heard in between: then the peer has not moved.
//! - A handshake from elsewhere counts as such a cookie and no more, since an attacker can pass cookies on in it.
//!
//! An attacker who passes everything on can have the peer moved while nothing comes from the old path. So the old path is preferred: as soon as
//! anything comes from there, even a copy of what the attacker delivered first, data goes there again, and for a minute moves only
//! once that path is silent. After a minute elsewhere the new path is the old one. A peer that nobody knows, or that was silent for a minute,
//! is where its handshake comes from.
//!
//! Deviation: nothing is kept about challenges under way, the cookie says all.

use base::{Duration, Instant};

use crate::path::{Address, CarrierId, Path};

/// Where the configuration says that the peer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Who has such a place begins handshakes.
    pub address: Option<Address>,
    /// Whether the peer is nowhere else.
    pub pinned: bool,
}

/// Where the peer is.
#[derive(Debug)]
pub(super) struct Paths {
    peer: Peer,
    /// The carrier that it is called over.
    via: CarrierId,
    /// Whether it is called elsewhere than over other carriers.
    apart: bool,
    /// Where it has shown that it receives.
    proved: Option<Path>,
    /// When it was heard there last, by a datagram newer than all others, an answer to a challenge, or a copy.
    heard: Instant,
    /// How long its last answer to a challenge took.
    answer_time: Duration,
    /// Where it is preferred: where the last handshake was, or where it has been for long since.
    home: Option<Path>,
    /// When it left that, if it is not there.
    left: Instant,
    /// When something came from elsewhere last.
    rivalled: Option<Instant>,
    /// Until when moves are doubted, since one was wrong.
    doubted_until: Instant,
}

/// How long the path before is preferred, and moves are doubted after a wrong one.
const MEMORY: Duration = Duration::from_secs(60);
/// Silence on the present path after which a doubted move is believed, at least.
const PATIENCE: Duration = Duration::from_secs(1);

impl Paths {
    pub(super) const fn new(peer: Peer, via: CarrierId) -> Self {
        Self {
            peer,
            via,
            apart: false,
            proved: None,
            heard: Instant::ZERO,
            answer_time: Duration::ZERO,
            home: None,
            left: Instant::ZERO,
            rivalled: None,
            doubted_until: Instant::ZERO,
        }
    }

    /// Where handshakes are begun.
    pub(super) fn configured(&self) -> Option<Path> {
        self.peer.address.map(|peer| Path { via: self.via, peer, local: None })
    }

    /// Over which carrier it is called, or has proved to be.
    pub(super) fn carrier(&self) -> CarrierId {
        self.proved.map_or(self.via, |path| path.via)
    }

    /// What it has proved counts no more.
    pub(super) const fn forget(&mut self) {
        (self.proved, self.home) = (None, None);
    }

    /// Where the peer is, as configured.
    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether it is called elsewhere than over other carriers, so that what these are told is not for this one.
    pub(super) const fn set_apart(&mut self, apart: bool) {
        self.apart = apart;
    }

    /// The peer is to be called at `address`. If it is nowhere else, what it has proved before counts no more.
    pub(super) fn configure(&mut self, address: Address) {
        if self.apart {
            return;
        }
        self.peer.address = Some(address);
        if self.peer.pinned {
            self.proved = None;
        }
    }

    /// Whether the peer is nowhere but where it is called.
    pub(super) const fn is_pinned(&self) -> bool {
        self.peer.pinned
    }

    /// Where data goes.
    pub(super) fn current(&self) -> Option<Path> {
        self.proved.or(self.configured())
    }

    /// Whether the peer is pinned to an address and `from` is another.
    pub(super) fn exclude(&self, from: Path) -> bool {
        self.peer.pinned && (self.peer.address != Some(from.peer) || self.via != from.via)
    }

    /// A datagram newer than all others came from `from`. Whether the peer may have moved there, so that both places are to be
    /// challenged.
    pub(super) fn on_newest(&mut self, now: Instant, from: Path) -> bool {
        if self.is_here(from) {
            self.heard = now;
            return false;
        }
        if self.exclude(from) || self.returns(now, from) {
            return false;
        }
        self.rivalled = Some(now);
        true
    }

    /// Whether it matters that something which arrived before comes from `from` now.
    pub(super) fn counts_copies(&self, now: Instant, from: Path) -> bool {
        self.rivalled.is_some_and(|at| now < at + MEMORY)
            && (self.is_here(from) || self.was_at_home(now, from))
    }

    /// A copy of an authentic datagram came from `from`, after the first one.
    pub(super) fn on_copy(&mut self, now: Instant, from: Path) {
        if self.is_here(from) {
            self.heard = now;
        } else {
            self.returns(now, from);
        }
    }

    /// A cookie that was issued at `issued` for `from` was shown from there, by a datagram newer than all others.
    pub(super) fn on_answer(&mut self, now: Instant, from: Path, issued: u64) {
        if self.is_here(from) {
            self.heard = now;
            self.answer_time = Duration::from_nanos(now.as_nanos().saturating_sub(issued));
        } else if !self.exclude(from)
            && !self.returns(now, from)
            && issued > self.heard.as_nanos()
            && (now >= self.doubted_until || now > self.heard + self.patience())
        {
            self.move_to(now, from);
        }
    }

    /// A handshake that the peer began shows that it receives at `from`, or that somebody passes on what comes there. It is believed as
    /// an answer to a challenge is: not while the peer is heard where it was, and only until it is heard there again. One that has
    /// `restarted` may be elsewhere at once.
    pub(super) fn on_handshake(&mut self, now: Instant, from: Path, restarted: bool) {
        let is_known = self.proved.is_some() && now < self.heard + MEMORY;
        if !is_known {
            self.prove(from);
        } else if !self.is_here(from) {
            self.rivalled = Some(now);
            if !restarted && now <= self.heard + self.patience() {
                return;
            }
            self.move_to(now, from);
        }
        self.heard = now;
    }

    fn move_to(&mut self, now: Instant, from: Path) {
        let is_home = self.home.is_some() && self.home == self.proved;
        if is_home || now >= self.left + MEMORY {
            self.home = self.current();
            self.left = now;
        }
        self.proved = Some(from);
        self.heard = now;
    }

    /// The peer receives at `path`, beyond doubt.
    pub(super) const fn prove(&mut self, path: Path) {
        self.proved = Some(path);
        self.home = Some(path);
    }

    fn patience(&self) -> Duration {
        PATIENCE.max(self.answer_time * 3)
    }

    pub(super) fn is_here(&self, from: Path) -> bool {
        self.current().is_some_and(|path| path.covers(from))
    }

    fn was_at_home(&self, now: Instant, from: Path) -> bool {
        now < self.left + MEMORY && self.home.is_some_and(|home| home.covers(from)) && !self.is_here(from)
    }

    /// If the peer is heard where it is preferred, it is there again.
    fn returns(&mut self, now: Instant, from: Path) -> bool {
        let returns = self.was_at_home(now, from);
        if returns {
            self.prove(from);
            self.heard = now;
            self.doubted_until = now + MEMORY;
        }
        returns
    }
}
