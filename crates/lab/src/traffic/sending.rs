//! What applications that send have in common.

use base::Instant;
use base::content::Content;
use tcp::{ConnectionId, Statistics};

/// A sender's connection, and what its TCP counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    connection: Option<ConnectionId>,
    /// What its TCP had counted when the connection ended, which TCP itself forgets after a while.
    ended_with: Option<Statistics>,
}

impl Counted {
    /// None yet.
    pub(super) const fn new() -> Self {
        Self { connection: None, ended_with: None }
    }

    /// The connection, once there is one.
    pub(super) const fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }

    /// It has this connection.
    pub(super) const fn set(&mut self, id: ConnectionId) {
        self.connection = Some(id);
    }

    /// What its TCP counted, while it runs on `host` or since it ended.
    pub(super) fn statistics(&self, host: &tcp::Host) -> Statistics {
        let live =
            || self.connection.and_then(|id| host.connection(id)).map(|connection| *connection.statistics());
        self.ended_with.or_else(live).unwrap_or_default()
    }

    /// Keeps what its TCP has counted now that the connection ends.
    pub(super) fn end(&mut self, host: &tcp::Host) -> Statistics {
        *self.ended_with.insert(self.statistics(host))
    }
}

/// Writes what TCP takes of the first `size` bytes of `stream`, from `written` on.
pub(super) fn write(
    now: Instant,
    host: &mut tcp::Host,
    id: ConnectionId,
    content: &Content,
    (stream, size): (u32, u64),
    written: &mut u64,
) {
    while *written < size {
        let left = usize::try_from(size - *written).unwrap_or(usize::MAX);
        match host.write(now, id, content.slice(stream, *written, left)) {
            Ok(0) | Err(_) => return,
            Ok(taken) => *written += taken as u64,
        }
    }
}
