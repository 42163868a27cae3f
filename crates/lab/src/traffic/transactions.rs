//! Transactions (thesis section 3.3): many short connections, each with a request, a reply and an end, as browsing
//! makes them. The client's user opens the next after a pause, or at fixed times whatever became of the others.

use core::cmp::Reverse;
use core::net::SocketAddr;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use base::content::Content;
use base::{Duration, Instant, Rng};
use tcp::{ConnectionId, Event, Source, TcpConfig};

use super::latency::Latencies;
use super::{Progress, sending};

/// What client and server have agreed on: the contents of a request and of a reply.
#[derive(Clone, Debug)]
pub struct Exchange {
    content: Arc<Content>,
    request: Message,
    reply: Message,
}

/// All requests, or all replies: the first bytes of a stream.
#[derive(Clone, Debug)]
struct Message {
    number: u32,
    stream: Arc<dyn Source>,
    size: u64,
}

impl Exchange {
    /// Requests and replies of so many bytes, which carry the content of `stream` and of the one after it.
    #[must_use]
    pub fn new(content: &Arc<Content>, stream: u32, request: u64, reply: u64) -> Self {
        let message = |number, size| Message { number, stream: sending::stream(content, number), size };
        let (request, reply) = (message(stream, request), message(stream + 1, reply));
        Self { content: Arc::clone(content), request, reply }
    }

    /// Reads what has come of the message of `size` bytes of `stream`; whether it was the right bytes.
    fn read(
        &self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        message: &Message,
        received: &mut u64,
    ) -> bool {
        let mut intact = true;
        // Err is a connection that broke and has nothing left to read.
        let _ = host.read_with(now, id, |bytes| {
            intact &= *received + bytes.len() as u64 <= message.size;
            intact &= self.content.matches(message.number, *received, bytes);
            *received += bytes.len() as u64;
        });
        intact
    }
}

impl Message {
    /// Writes what TCP takes of the message from `written` on.
    fn write(&self, now: Instant, host: &mut tcp::Host, id: ConnectionId, written: &mut u64) {
        sending::write(now, host, id, &self.stream, self.size, written);
    }
}

/// When transactions start.
#[derive(Clone, Debug)]
pub struct Pace {
    /// When the first one starts.
    pub start: Duration,
    /// Time between consecutive starts, or after an end.
    pub pause: Duration,
    /// Whether `pause` counts from the start of the one before; if not, from its end.
    pub from_start: bool,
    /// Whether `pause` is the mean of an exponential distribution.
    pub exponential: bool,
    /// Transactions under way at once.
    pub most_at_once: u32,
    /// Transactions in all; `None` means until the run ends.
    pub count: Option<u64>,
}

/// A transaction under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    opened_at: Instant,
    written: u64,
    received: u64,
}

/// Opens connections, asks, and times the replies.
#[derive(Debug)]
pub struct Client {
    server: SocketAddr,
    config: Arc<TcpConfig>,
    exchange: Exchange,
    pace: Pace,
    rng: Rng,
    /// When transactions start next: one time a user, or one in all.
    due: BinaryHeap<Reverse<Instant>>,
    under_way: BTreeMap<ConnectionId, UnderWay>,
    started: u64,
    skipped: u64,
    failed: u64,
    times: Latencies,
    damaged: bool,
    opened_at: Option<Instant>,
    finished_at: Option<Instant>,
}

/// After a connection that could not even be opened, for want of a port, a user waits at least this long. Ours.
const RETRY: Duration = Duration::from_secs(1);

impl Client {
    /// A client of the server at this address; `rng` is for exponential pauses.
    #[must_use]
    pub fn new(server: SocketAddr, config: Arc<TcpConfig>, exchange: Exchange, pace: Pace, rng: Rng) -> Self {
        let first = Reverse(Instant::ZERO.saturating_add(pace.start));
        let users = if pace.from_start { 1 } else { pace.most_at_once as usize };
        Self {
            server,
            config,
            exchange,
            pace,
            rng,
            due: core::iter::repeat_n(first, users).collect(),
            under_way: BTreeMap::new(),
            started: 0,
            skipped: 0,
            failed: 0,
            times: Latencies::default(),
            damaged: false,
            opened_at: None,
            finished_at: None,
        }
    }

    /// Transactions started so far.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// Starts that found too many under way, and were left out.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Transactions whose connection could not be opened, broke, or ended before the reply did.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.failed
    }

    /// Transactions under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// From the opening to the reply's last byte, of every transaction that completed.
    #[must_use]
    pub const fn times(&self) -> &Latencies {
        &self.times
    }

    /// Bytes of replies so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        let under_way: u64 = self.under_way.values().map(|one| one.received).sum();
        self.times.count() * self.exchange.reply.size + under_way
    }

    /// Whether every byte so far was the right one.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !self.damaged
    }

    /// When the first one started.
    #[must_use]
    pub const fn opened_at(&self) -> Option<Instant> {
        self.opened_at
    }

    /// When the last of a given number ended.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|&Reverse(due)| due).filter(|_| !self.all_started())
    }

    fn all_started(&self) -> bool {
        self.pace.count.is_some_and(|count| self.started + self.skipped >= count)
    }

    fn pause(&mut self) -> Duration {
        if self.pace.exponential { self.rng.exponential(self.pace.pause) } else { self.pace.pause }
    }

    /// Starts a transaction; its connection, if it has one.
    pub(super) fn handle_timeout(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        let Reverse(due) = self.due.pop()?;
        if self.pace.from_start {
            // A draw of nothing would let time stand still.
            let pause = self.pause().max(Duration::from_nanos(1));
            self.due.push(Reverse(due.saturating_add(pause)));
            if self.under_way.len() >= self.pace.most_at_once as usize {
                self.skipped += 1;
                return None;
            }
        }
        self.started += 1;
        self.opened_at.get_or_insert(now);
        let Ok(id) = host.connect(now, self.server, &self.config) else {
            self.failed += 1;
            if !self.pace.from_start {
                let pause = self.pause().max(RETRY);
                self.due.push(Reverse(now.saturating_add(pause)));
            }
            return None;
        };
        self.under_way.insert(id, UnderWay { opened_at: now, written: 0, received: 0 });
        Some(id)
    }

    pub(super) fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        let Some(one) = self.under_way.get_mut(&id) else { return Progress::Going };
        let exchange = &self.exchange;
        match event {
            Event::Connected | Event::Writable => {
                exchange.request.write(now, host, id, &mut one.written);
                return Progress::Going;
            }
            Event::Readable | Event::PeerFinished => {
                self.damaged |= !exchange.read(now, host, id, &exchange.reply, &mut one.received);
                if one.received >= exchange.reply.size {
                    let opened_at = one.opened_at;
                    let bytes = u32::try_from(exchange.reply.size).unwrap_or(u32::MAX);
                    self.times.sample(now, opened_at, bytes);
                } else if event == Event::PeerFinished {
                    self.failed += 1;
                } else {
                    return Progress::Going;
                }
                // Err is a connection that has ended already.
                let _ = host.finish(now, id);
            }
            Event::Closed | Event::Failed(_) => self.failed += 1,
            Event::Accepted { .. } | Event::Asked | Event::Acknowledged => return Progress::Going,
        }
        self.end(now, id)
    }

    fn end(&mut self, now: Instant, id: ConnectionId) -> Progress {
        self.under_way.remove(&id);
        if !self.pace.from_start {
            let pause = self.pause();
            self.due.push(Reverse(now.saturating_add(pause)));
        }
        if self.all_started() && self.under_way.is_empty() && self.finished_at.is_none() {
            self.finished_at = Some(now);
            return Progress::Finished;
        }
        Progress::Going
    }
}

/// Answers every request at its port with a reply, and finishes.
#[derive(Debug)]
pub struct Server {
    port: u16,
    exchange: Exchange,
    /// Bytes received and bytes written of each connection.
    open: BTreeMap<ConnectionId, (u64, u64)>,
    damaged: bool,
}

impl Server {
    /// A server at this port.
    #[must_use]
    pub const fn new(port: u16, exchange: Exchange) -> Self {
        Self { port, exchange, open: BTreeMap::new(), damaged: false }
    }

    /// The port that it waits at.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether every byte of a request was the right one.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !self.damaged
    }

    pub(super) fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        if matches!(event, Event::Closed | Event::Failed(_)) {
            self.open.remove(&id);
            return Progress::Going;
        }
        let exchange = &self.exchange;
        let (received, written) = self.open.entry(id).or_default();
        self.damaged |= !exchange.read(now, host, id, &exchange.request, received);
        if *received >= exchange.request.size && *written < exchange.reply.size {
            exchange.reply.write(now, host, id, written);
        }
        if *written >= exchange.reply.size || event == Event::PeerFinished {
            // Err is a connection that has ended already.
            let _ = host.finish(now, id);
        }
        Progress::Going
    }
}
