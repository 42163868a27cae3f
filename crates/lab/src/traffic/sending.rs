//! What applications that send have in common.

use std::sync::Arc;

use base::Instant;
use base::content::Content;
use tcp::{ConnectionId, SenderStatistics, Source};

/// A sender's connection, and what its TCP counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    connection: Option<ConnectionId>,
    /// What its TCP had counted when the connection ended, which TCP itself forgets after a while.
    ended_with: Option<SenderStatistics>,
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
    pub(super) fn statistics(&self, host: &tcp::Host) -> SenderStatistics {
        let live = || {
            self.connection
                .and_then(|id| host.connection(id))
                .map(|connection| *connection.sender_statistics())
        };
        self.ended_with.or_else(live).unwrap_or_default()
    }

    /// Keeps what its TCP has counted now that the connection ends.
    pub(super) fn end(&mut self, host: &tcp::Host) -> SenderStatistics {
        *self.ended_with.insert(self.statistics(host))
    }
}

/// One of the streams of a run's content.
#[derive(Debug)]
struct Stream {
    content: Arc<Content>,
    number: u32,
}

impl Source for Stream {
    fn slice(&self, offset: u64, len: usize) -> &[u8] {
        self.content.slice(self.number, offset, len)
    }
}

/// The stream of `content` with this number, for TCP to have its bytes from.
pub(super) fn stream(content: &Arc<Content>, number: u32) -> Arc<dyn Source> {
    Arc::new(Stream { content: Arc::clone(content), number })
}

/// Writes what TCP takes of the first `size` bytes of `stream`, from `written` on.
pub(super) fn write(
    now: Instant,
    host: &mut tcp::Host,
    id: ConnectionId,
    stream: &Arc<dyn Source>,
    size: u64,
    written: &mut u64,
) {
    let left = usize::try_from(size - *written).unwrap_or(usize::MAX);
    if left > 0 {
        // Err is a connection that has ended already.
        *written += host.write_from(now, id, stream, *written, left).unwrap_or(0) as u64;
    }
}
