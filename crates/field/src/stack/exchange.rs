//! An application that sends some bytes over one connection and keeps what it receives.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::{Duration, Instant};
use tcp::{ConnectError, ConnectionError, ConnectionId, Event, Failure, ListenError, Statistics, TcpConfig};

use super::{Application, Hosts};

/// How an exchange goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it sends.
    pub outgoing: Arc<[u8]>,
    /// Closes its side of the connection behind that.
    pub finishes: bool,
    /// Most bytes that it takes; a peer that sends more is reset.
    pub limit: usize,
    /// Resets the connection once it has received so many bytes.
    pub abort_after: Option<usize>,
    /// Reads so many bytes every so often; as they come without it.
    pub pace: Option<(usize, Duration)>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides finished and know it.
    Closed,
    /// It was cut off.
    Failed(Failure),
}

/// One connection's exchange, on whichever host it was opened.
#[derive(Debug)]
pub struct Exchange {
    plan: Plan,
    written: usize,
    received: Vec<u8>,
    received_at: Option<Instant>,
    connection: Option<(IpAddr, ConnectionId)>,
    reads_at: Option<Instant>,
    peer_finished: bool,
    end: Option<End>,
    statistics: Statistics,
}

impl Exchange {
    /// An exchange over the first connection that the host at `address` accepts at `port`.
    ///
    /// # Errors
    /// The port is taken.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn listen(
        plan: Plan,
        hosts: &mut Hosts,
        address: IpAddr,
        port: u16,
        config: &TcpConfig,
    ) -> Result<Self, ListenError> {
        hosts.get_mut(address).expect("a host of this stack").listen(port, config)?;
        Ok(Self::new(plan, None))
    }

    /// An exchange over a connection that the host at `address` opens to `remote` now.
    ///
    /// # Errors
    /// It cannot be opened.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn connect(
        plan: Plan,
        hosts: &mut Hosts,
        address: IpAddr,
        now: Instant,
        remote: SocketAddr,
        config: &TcpConfig,
    ) -> Result<Self, ConnectError> {
        let id = hosts.get_mut(address).expect("a host of this stack").connect(now, remote, config)?;
        Ok(Self::new(plan, Some((address, id))))
    }

    fn new(plan: Plan, connection: Option<(IpAddr, ConnectionId)>) -> Self {
        Self {
            plan,
            written: 0,
            received: Vec::new(),
            received_at: None,
            connection,
            reads_at: None,
            peer_finished: false,
            end: None,
            statistics: Statistics::default(),
        }
    }

    /// What it has received.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// When the latest byte was read.
    #[must_use]
    pub const fn received_at(&self) -> Option<Instant> {
        self.received_at
    }

    /// Whether the peer has finished and all that it sent was read.
    #[must_use]
    pub const fn peer_finished(&self) -> bool {
        self.peer_finished
    }

    /// How the connection ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// What TCP had counted at the connection's end.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn write(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) {
        let most =
            self.plan.abort_after.map_or(usize::MAX, |limit| limit.saturating_sub(self.received.len()));
        let end = self.plan.outgoing.len().min(most);
        if self.written < end {
            // Err is a connection that has ended already, of which an event tells.
            self.written += host.write(now, id, &self.plan.outgoing[self.written..end]).unwrap_or(0);
        }
        if self.plan.finishes && self.written == self.plan.outgoing.len() {
            let _ = host.finish(now, id);
        }
    }

    fn abort_if_due(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) {
        let due = self.plan.abort_after.is_some_and(|limit| self.received.len() >= limit);
        if (due || self.received.len() > self.plan.limit) && host.abort(now, id).is_ok() {
            self.note_end(host, id, End::Failed(Failure::Aborted));
        }
    }

    fn read(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) {
        let before = self.received.len();
        let left = match self.plan.pace {
            None => host.read_with(now, id, |bytes| self.received.extend_from_slice(bytes)).map(|_| false),
            Some((most, every)) => {
                self.received.resize(before + most, 0);
                let read = host.read(now, id, &mut self.received[before..]);
                self.received.truncate(before + read.unwrap_or(0));
                let left = host.connection(id).is_some_and(|connection| connection.readable() > 0);
                self.reads_at = left.then(|| now.saturating_add(every));
                read.map(|_| left)
            }
        };
        if self.received.len() > before {
            self.received_at = Some(now);
        }
        let finished = host.connection(id).is_some_and(tcp::Connection::peer_finished);
        self.peer_finished |= finished && matches!(left, Ok(false) | Err(ConnectionError::Failed(_)));
        self.abort_if_due(now, host, id);
    }

    fn note_end(&mut self, host: &tcp::Host, id: ConnectionId, end: End) {
        if let Some(connection) = host.connection(id) {
            self.statistics = *connection.statistics();
        }
        self.end = Some(end);
        self.reads_at = None;
    }
}

impl Application for Exchange {
    fn on_event(&mut self, now: Instant, hosts: &mut Hosts, address: IpAddr, id: ConnectionId, event: Event) {
        let Some(host) = hosts.get_mut(address) else { return };
        if self.connection.get_or_insert((address, id)) != &(address, id) || self.end.is_some() {
            return;
        }
        match event {
            Event::Connected | Event::Accepted { .. } | Event::Writable => self.write(now, host, id),
            Event::Readable | Event::PeerFinished if self.reads_at.is_none() => self.read(now, host, id),
            Event::Readable | Event::PeerFinished | Event::Asked | Event::Acknowledged => {}
            Event::Closed | Event::Failed(_) => {
                // What came before the end is still there.
                self.plan.pace = None;
                self.read(now, host, id);
                let end = if let Event::Failed(failure) = event { End::Failed(failure) } else { End::Closed };
                if self.end.is_none() {
                    self.note_end(host, id, end);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.reads_at
    }

    fn handle_timeout(&mut self, now: Instant, hosts: &mut Hosts) {
        self.reads_at = None;
        if let Some((address, id)) = self.connection
            && let Some(host) = hosts.get_mut(address)
        {
            self.read(now, host, id);
        }
    }

    fn is_finished(&self) -> bool {
        self.end.is_some()
    }
}
