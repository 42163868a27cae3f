//! A bulk transfer (thesis section 3.3): as much as TCP accepts, in one direction, checked byte for byte.

use std::sync::Arc;

use base::Instant;
use tcp::{ConnectionId, Event, SenderStatistics, Source};

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
    pub fn statistics(&self, host: &tcp::Host) -> SenderStatistics {
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
        if self.counted.connection() != Some(id) {
            if self.counted.connection().is_some()
                && !matches!(event, Event::Accepted { .. } | Event::Connected)
            {
                return Progress::Going;
            }
            // Who calls again, as a proxy does whose first call ended in a reset, gets all of it.
            (self.counted, self.written, self.failed) = (Counted::new(), 0, false);
            self.counted.set(id);
        }
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
    /// The last one, once it has one.
    connection: Option<ConnectionId>,
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
            connection: None,
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
        if self.connection != Some(id) && self.finished_at.is_none() {
            if self.connection.is_some() && !matches!(event, Event::Accepted { .. } | Event::Connected) {
                return Progress::Going;
            }
            (self.connection, self.received) = (Some(id), 0);
        }
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

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use base::Rng;
    use tcp::{Host, TcpConfig};

    use super::*;

    const PORT: u16 = 80;
    const SIZE: u64 = 100_000;

    fn hosts() -> [Host; 2] {
        ["10.0.0.1", "10.0.0.2"].map(|address| Host::new(address.parse().unwrap(), Rng::named(1, address)))
    }

    /// Lets packets pass for up to `rounds` and gives both ends what happened to them.
    fn run(
        [client, server]: &mut [Host; 2],
        rounds: usize,
        mut at_client: impl FnMut(&mut Host, ConnectionId, Event),
        mut at_server: impl FnMut(&mut Host, ConnectionId, Event),
    ) {
        let now = Instant::ZERO;
        for _ in 0..rounds {
            while let Some(packet) = client.poll_transmit(now) {
                let _ = server.handle_packet(now, &packet);
            }
            while let Some((id, event)) = server.poll_event() {
                at_server(server, id, event);
            }
            while let Some(packet) = server.poll_transmit(now) {
                let _ = client.handle_packet(now, &packet);
            }
            while let Some((id, event)) = client.poll_event() {
                at_client(client, id, event);
            }
        }
    }

    /// A connection breaks in the middle, and the client opens another: each way the second has the stream from its first byte on.
    #[test]
    fn a_second_connection_begins_anew() {
        let now = Instant::ZERO;
        let config = TcpConfig::default();
        let content = Arc::new(Content::new(1));
        for sends in [true, false] {
            let mut hosts = hosts();
            hosts[1].listen(PORT, &config).unwrap();
            let to = SocketAddr::new("10.0.0.2".parse().unwrap(), PORT);
            let role = Role::Listens(PORT);
            let mut sender = BulkSender::new(role.clone(), &content, 3, SIZE);
            let mut receiver = BulkReceiver::new(role.clone(), Arc::clone(&content), 3, SIZE);
            for rounds in [4, 200] {
                let id = hosts[0].connect(now, to, &config).unwrap();
                // What stands at the client: the other of the two, with a connection of its own.
                let mut near_sender = BulkSender::new(role.clone(), &content, 3, SIZE);
                let mut near_receiver = BulkReceiver::new(role.clone(), Arc::clone(&content), 3, SIZE);
                let at_client = |host: &mut Host, id, event| {
                    match sends {
                        true => near_receiver.on_event(now, host, id, event),
                        false => near_sender.on_event(now, host, id, event),
                    };
                };
                let at_server = |host: &mut Host, id, event| {
                    match sends {
                        true => sender.on_event(now, host, id, event),
                        false => receiver.on_event(now, host, id, event),
                    };
                };
                run(&mut hosts, rounds, at_client, at_server);
                let at_end = if sends { &near_receiver } else { &receiver };
                assert!(at_end.is_intact(), "sends {sends}");
                match rounds {
                    4 => assert!(at_end.received() > 0 && at_end.received() < SIZE, "{}", at_end.received()),
                    _ => assert_eq!((at_end.received(), at_end.finished_at()), (SIZE, Some(now))),
                }
                let _ = hosts[0].abort(now, id);
            }
        }
    }
}
