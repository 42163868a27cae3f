//! A bulk transfer (thesis section 3.3): as much as TCP accepts, in one direction, checked byte for byte.

use std::sync::Arc;

use base::Instant;
use tcp::{ConnectionId, Event, Source, Statistics};

use super::progress::ProgressTrace;
use super::sending::{self, Counted};
use super::{Progress, Role};
use base::content::Content;

/// Sends `size` bytes of a stream, then closes its direction.
#[derive(Debug)]
pub struct BulkSender {
    role: Role,
    stream: Arc<dyn Source>,
    size: u64,
    written: u64,
    counted: Counted,
    failed: bool,
}

impl BulkSender {
    /// A sender of the first `size` bytes of `stream`.
    #[must_use]
    pub fn new(role: Role, content: &Arc<Content>, stream: u32, size: u64) -> Self {
        let stream = sending::stream(content, stream);
        Self { role, stream, size, written: 0, counted: Counted::new(), failed: false }
    }

    /// How it comes by its connection.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    pub(super) const fn role_mut(&mut self) -> &mut Role {
        &mut self.role
    }

    /// Its connection, once it has one.
    #[must_use]
    pub const fn connection(&self) -> Option<ConnectionId> {
        self.counted.connection()
    }

    /// What its TCP counted, while it runs on `host` or since it ended.
    #[must_use]
    pub fn statistics(&self, host: &tcp::Host) -> Statistics {
        self.counted.statistics(host)
    }

    /// Whether its connection could not be opened, or broke.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Bytes handed to TCP so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        let connection = self.role.open(now, host);
        self.failed = connection.is_none();
        connection
    }

    pub(super) fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        self.counted.set(id);
        if matches!(event, Event::Closed | Event::Failed(_)) {
            let counted = self.counted.end(host);
            // A failure after the last byte was acknowledged cost the receiver nothing.
            self.failed |= matches!(event, Event::Failed(_)) && counted.bytes_acked < self.size;
            return Progress::Ended;
        }
        if matches!(event, Event::Connected | Event::Accepted { .. } | Event::Writable) {
            self.write(now, host, id);
        }
        Progress::Going
    }

    fn write(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) {
        if self.written == self.size {
            return;
        }
        sending::write(now, host, id, &self.stream, self.size, &mut self.written);
        if self.written == self.size {
            // Err is a connection that has ended already.
            let _ = host.finish(now, id);
        }
    }
}

/// Receives a stream, checks it, and notes when its last byte came.
#[derive(Debug)]
pub struct BulkReceiver {
    role: Role,
    content: Arc<Content>,
    stream: u32,
    size: u64,
    received: u64,
    damaged: bool,
    finished_at: Option<Instant>,
    failed: bool,
    progress: Option<ProgressTrace>,
}

impl BulkReceiver {
    /// A receiver that expects the first `size` bytes of `stream`.
    #[must_use]
    pub const fn new(role: Role, content: Arc<Content>, stream: u32, size: u64) -> Self {
        Self {
            role,
            content,
            stream,
            size,
            received: 0,
            damaged: false,
            finished_at: None,
            failed: false,
            progress: None,
        }
    }

    /// How it comes by its connection.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    pub(super) const fn role_mut(&mut self) -> &mut Role {
        &mut self.role
    }

    /// Bytes received in order so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Whether every byte so far was the right one.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !self.damaged
    }

    pub(super) fn watch_progress(&mut self) {
        self.progress.get_or_insert_default();
    }

    /// Bytes received over time, if they are watched.
    #[must_use]
    pub const fn progress(&self) -> Option<&ProgressTrace> {
        self.progress.as_ref()
    }

    /// When the last byte came.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    /// Whether the connection broke before the last byte.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        let connection = self.role.open(now, host);
        self.failed = connection.is_none();
        connection
    }

    pub(super) fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        match event {
            Event::Readable => self.read(now, host, id),
            Event::PeerFinished => {
                let progress = self.read(now, host, id);
                // Err is a connection that has ended already.
                let _ = host.finish(now, id);
                progress
            }
            Event::Failed(_) if self.finished_at.is_none() && !self.failed => {
                self.failed = true;
                Progress::Finished
            }
            _ => Progress::Going,
        }
    }

    fn read(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) -> Progress {
        // Err is a connection that broke and has nothing left to read.
        let _ = host.read_with(now, id, |bytes| {
            let expected = self.received + bytes.len() as u64 <= self.size;
            self.damaged |= !expected || !self.content.matches(self.stream, self.received, bytes);
            self.received += bytes.len() as u64;
        });
        if let Some(progress) = &mut self.progress {
            progress.note(now, self.received);
        }
        if self.received >= self.size && self.finished_at.is_none() {
            self.finished_at = Some(now);
            return Progress::Finished;
        }
        Progress::Going
    }
}
