//! How an application comes by its connection: it waits at a port, or opens one, at a time or when others have ended.

use core::net::SocketAddr;
use std::sync::Arc;

use base::{Duration, Instant};
use tcp::{ConnectionId, TcpConfig};

/// How an application comes by its connection.
#[derive(Clone, Debug)]
pub enum Role {
    /// It waits at this port.
    Listens(u16),
    /// It opens one.
    Opens(Box<Opening>),
}

/// When an application opens a connection, and where to.
#[derive(Clone, Debug)]
pub struct Opening {
    remote: SocketAddr,
    config: Arc<TcpConfig>,
    /// After the start of the run, or after the last end that it waits for.
    delay: Duration,
    /// When it will open; `None` while it waits, and once it has opened.
    due: Option<Instant>,
    opened_at: Option<Instant>,
}

impl Opening {
    /// Opens a connection to `remote` with these settings `delay` after the start of the run.
    #[must_use]
    pub const fn new(remote: SocketAddr, config: Arc<TcpConfig>, delay: Duration) -> Self {
        let due = Some(Instant::ZERO.saturating_add(delay));
        Self { remote, config, delay, due, opened_at: None }
    }
}

impl Role {
    /// The port that it waits at.
    #[must_use]
    pub const fn listens_at(&self) -> Option<u16> {
        match self {
            Self::Listens(port) => Some(*port),
            Self::Opens(_) => None,
        }
    }

    /// When it will open its connection, if that is known.
    #[must_use]
    pub const fn opens_at(&self) -> Option<Instant> {
        match self {
            Self::Opens(opening) => opening.due,
            Self::Listens(_) => None,
        }
    }

    /// When it opened its connection.
    #[must_use]
    pub const fn opened_at(&self) -> Option<Instant> {
        match self {
            Self::Opens(opening) => opening.opened_at,
            Self::Listens(_) => None,
        }
    }

    /// Lets the opening wait until it is [released](Role::release).
    pub(super) fn hold(&mut self) {
        if let Self::Opens(opening) = self {
            opening.due = None;
        }
    }

    /// What the opening waited for has happened.
    pub(super) fn release(&mut self, now: Instant) {
        if let Self::Opens(opening) = self {
            opening.due = Some(now.saturating_add(opening.delay));
        }
    }

    pub(super) fn open(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        let Self::Opens(opening) = self else { return None };
        opening.due = None;
        opening.opened_at = Some(now);
        host.connect(now, opening.remote, &opening.config).ok()
    }
}
