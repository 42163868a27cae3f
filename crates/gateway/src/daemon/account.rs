//! What a worker says about itself and its peers: in parts, so that packets pass in between.

use base::Instant;
use serde::Serialize;
use serde_json::Value;
use tunnel::key::PublicKey;
use tunnel::{Hub, PeerId, Presence, Tunnel};

/// A part of an account.
#[derive(Debug)]
pub(super) struct Part {
    /// A JSON object of each peer, in the order of their numbers.
    pub(super) peers: Vec<(PeerId, String)>,
    /// Where the next part begins.
    pub(super) then: Then,
}

/// What follows a part.
#[derive(Debug)]
pub(super) enum Then {
    /// Another one, from the peer with this number on.
    From(u32),
    /// Nothing; this concerns no single peer.
    End(Value),
}

/// The status of a peer, but for its name.
#[derive(Serialize)]
struct PeerStatus<'a> {
    public_key: PublicKey,
    worker: u32,
    /// "never", "connected" or "silent".
    state: &'static str,
    /// For how long, if it was ever heard.
    state_seconds: Option<f64>,
    heard_seconds_ago: Option<f64>,
    #[serde(flatten)]
    tunnel: tunnel::Status<'a>,
}

/// Peers of a part: a millisecond or less.
const AT_ONCE: usize = 128;
/// Bytes of a peer's status, usually.
const USUAL_LEN: usize = 2048;

impl Part {
    /// That of a worker's peers from this number on; `whole` says what concerns no single one. Those that come or go meanwhile are told
    /// of or not. Several paths have names.
    pub(super) fn of(
        hub: &Hub,
        path_names: &[String],
        now: Instant,
        from: u32,
        whole: impl FnOnce() -> Value,
    ) -> Self {
        let mut left = hub.peers_from(from);
        let text = |(id, tunnel)| {
            let mut status = PeerStatus::of(hub, now, tunnel);
            status.tunnel.name_paths(path_names);
            (id, status.to_text())
        };
        let peers = left.by_ref().take(AT_ONCE).map(text).collect();
        let then = left.next().map_or_else(|| Then::End(whole()), |(id, _)| Then::From(id.number()));
        Self { peers, then }
    }
}

impl<'a> PeerStatus<'a> {
    fn of(hub: &Hub, now: Instant, tunnel: &'a Tunnel) -> Self {
        let session = tunnel.session();
        let (state, since) = match tunnel.presence(now) {
            Presence::Never => ("never", None),
            Presence::Connected { since } => ("connected", Some(since)),
            Presence::Silent { since } => ("silent", Some(since)),
        };
        let ago = |at: Instant| now.saturating_since(at).as_secs_f64();
        Self {
            public_key: session.peer_key(),
            worker: hub.worker().number(),
            state,
            state_seconds: since.map(ago),
            heard_seconds_ago: session.last_heard().map(ago),
            tunnel: tunnel.status(now),
        }
    }

    fn to_text(&self) -> String {
        let mut text = Vec::with_capacity(USUAL_LEN);
        serde_json::to_writer(&mut text, self).expect("its names are strings");
        String::from_utf8(text).expect("JSON is UTF-8")
    }
}
