//! Paths: where the peer is, and how it comes to be elsewhere.
//!
//! Whoever is on the path can capture a datagram and be the first to deliver it, from an address of his own. So a
//! datagram from elsewhere moves nothing: it is answered with a cookie, as in QUIC (RFC 9000, section 9). Data follows
//! once the cookie is shown from there, unless the peer was heard on its old path in between: then it has not moved.
//!
//! Deviations: nothing is kept about challenges under way, the cookie says all; the old path is not challenged
//! too, since it counts by itself while anything comes from it.

use base::Instant;

use crate::path::{Address, Path};

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
    /// Where it has shown that it receives.
    proved: Option<Path>,
    /// When a datagram newer than all others came from there.
    heard: Instant,
}

impl Paths {
    pub(super) const fn new(peer: Peer) -> Self {
        Self { peer, proved: None, heard: Instant::ZERO }
    }

    /// Where handshakes are begun.
    pub(super) fn configured(&self) -> Option<Path> {
        self.peer.address.map(Path::from)
    }

    /// The peer is to be called at `address`. If it is nowhere else, what it has proved before counts no more.
    pub(super) fn configure(&mut self, address: Address) {
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
        self.peer.pinned && self.peer.address != Some(from.peer)
    }

    /// A datagram newer than all others came from `from`. Whether the peer may have moved there.
    pub(super) fn on_newest(&mut self, now: Instant, from: Path) -> bool {
        let here = self.current().is_some_and(|path| path.covers(from));
        if here {
            self.heard = now;
        }
        !here && !self.exclude(from)
    }

    /// A cookie that was issued at `issued` for `from` was shown from there, by a datagram newer than all others.
    pub(super) fn on_answer(&mut self, from: Path, issued: u64) {
        if issued > self.heard.as_nanos() && !self.exclude(from) {
            self.prove(from);
        }
    }

    /// The peer receives at `path`.
    pub(super) const fn prove(&mut self, path: Path) {
        self.proved = Some(path);
    }
}
