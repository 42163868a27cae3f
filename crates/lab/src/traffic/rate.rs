//! A rate-controlled source over TCP (thesis section 3.3): records at a fixed rate, each with the time at which it was
//! generated, so that the receiver knows the latency that the application sees, the wait before TCP takes it included.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Instant;
use base::content::Content;
use base::wire::record::{Header, Item, Reader};
use tcp::{ConnectionId, Event, SenderStatistics};

use super::latency::Latencies;
use super::progress::ProgressTrace;
use super::schedule::Schedule;
use super::sending::Counted;
use super::{Progress, Role};

/// Bytes of records that wait for TCP at most; what is generated beyond is dropped and counted.
/// Ours: half an hour of 256 kbit/s that no channel carries.
const BUFFER: u64 = 64 << 20;

/// Generates records at a fixed rate and writes them to its connection as TCP takes them.
///
/// The first record is due when the connection is established. A broken connection ends the source.
#[derive(Debug)]
pub struct RateSender {
    role: Role,
    content: Arc<Content>,
    stream: u32,
    schedule: Schedule,
    /// When each record that waits was generated.
    waiting: VecDeque<Instant>,
    /// The record that TCP is taking, and how much of it TCP has.
    current: Vec<u8>,
    taken: usize,
    /// Offset in the content of the first byte of the record after the current one.
    content_at: u64,
    dropped: u64,
    /// Nanoseconds: when all the records that were not dropped were generated.
    stamps: u128,
    counted: Counted,
    failed: bool,
}

impl RateSender {
    /// A sender of the records of `schedule`, which carry the content of `stream`.
    #[must_use]
    pub fn new(role: Role, content: Arc<Content>, stream: u32, schedule: Schedule) -> Self {
        Self {
            role,
            content,
            stream,
            schedule,
            waiting: VecDeque::new(),
            current: Vec::new(),
            taken: 0,
            content_at: 0,
            dropped: 0,
            stamps: 0,
            counted: Counted::new(),
            failed: false,
        }
    }

    /// How it comes by its connection.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Records generated so far.
    #[must_use]
    pub const fn generated(&self) -> u64 {
        self.schedule.generated()
    }

    /// Records that found no room in the application's buffer.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The times, in nanoseconds and added up, at which the records that were not dropped were generated.
    #[must_use]
    pub const fn stamps(&self) -> u128 {
        self.stamps
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

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.role.opens_at().or_else(|| self.schedule.due())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        if self.role.opens_at().is_some() {
            let connection = self.role.open(now, host);
            self.failed = connection.is_none();
            return connection;
        }
        self.work(now, host);
        None
    }

    pub(super) fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        self.counted.set(id);
        match event {
            Event::Closed | Event::Failed(_) => {
                self.counted.end(host);
                self.failed |= matches!(event, Event::Failed(_));
                self.schedule.stop();
                return Progress::Ended;
            }
            Event::Connected | Event::Accepted { .. } => {
                self.schedule.start(now);
                self.work(now, host);
            }
            Event::Writable => self.work(now, host),
            Event::Readable | Event::PeerFinished | Event::Asked | Event::Acknowledged => {}
        }
        Progress::Going
    }

    /// Generates what is due and writes what TCP takes.
    fn work(&mut self, now: Instant, host: &mut tcp::Host) {
        let record = u64::from(self.schedule.record());
        while let Some(stamp) = self.schedule.take(now) {
            if (self.waiting.len() as u64 + 1) * record > BUFFER {
                self.dropped += 1;
            } else {
                self.stamps += u128::from(stamp.as_nanos());
                self.waiting.push_back(stamp);
            }
        }
        let Some(id) = self.counted.connection() else { return };
        while self.taken < self.current.len() || self.next_record() {
            match host.write(now, id, &self.current[self.taken..]) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.taken += taken,
            }
        }
        if self.schedule.is_over() {
            // Err is a connection that has ended already.
            let _ = host.finish(now, id);
        }
    }

    /// Makes the first record that waits the current one; whether there is one.
    fn next_record(&mut self) -> bool {
        let Some(stamp) = self.waiting.pop_front() else { return false };
        let header = Header { stamp, len: self.schedule.record() };
        self.taken = 0;
        self.current.clear();
        self.current.extend_from_slice(&header.emit());
        let mut left = header.content_len() as usize;
        while left > 0 {
            let run = self.content.slice(self.stream, self.content_at, left);
            self.current.extend_from_slice(run);
            self.content_at += run.len() as u64;
            left -= run.len();
        }
        true
    }
}

/// Finds the records in the stream, checks them, and samples their latency.
#[derive(Debug)]
pub struct RateReceiver {
    role: Role,
    content: Arc<Content>,
    stream: u32,
    /// Bytes of every record.
    record: u32,
    reader: Reader,
    received: u64,
    content_at: u64,
    latencies: Latencies,
    /// Nanoseconds: the stamps of all records that came, added up.
    stamps: u128,
    damaged: bool,
    finished_at: Option<Instant>,
    failed: bool,
    progress: Option<ProgressTrace>,
}

impl RateReceiver {
    /// A receiver of records of `record` bytes that carry the content of `stream`.
    #[must_use]
    pub fn new(role: Role, content: Arc<Content>, stream: u32, record: u32) -> Self {
        Self {
            role,
            content,
            stream,
            record,
            reader: Reader::new(record),
            received: 0,
            content_at: 0,
            latencies: Latencies::default(),
            stamps: 0,
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

    /// Bytes received in order so far, headers of records included.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// The latency of every record that came whole.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The times, in nanoseconds and added up, at which the records that came were generated.
    #[must_use]
    pub const fn stamps(&self) -> u128 {
        self.stamps
    }

    /// Whether every byte so far was the right one.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        !self.damaged
    }

    /// When the source's end was reached.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    /// Whether the connection broke before the source's end.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    pub(super) fn watch_progress(&mut self) {
        self.progress.get_or_insert_default();
    }

    /// Bytes received over time, if they are watched.
    #[must_use]
    pub const fn progress(&self) -> Option<&ProgressTrace> {
        self.progress.as_ref()
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
                self.read(now, host, id);
                // Err is a connection that has ended already.
                let _ = host.finish(now, id);
                self.damaged |= !self.reader.is_between_records();
                self.finished_at = Some(now);
                return Progress::Finished;
            }
            Event::Failed(_) if self.finished_at.is_none() && !self.failed => {
                self.failed = true;
                return Progress::Finished;
            }
            _ => {}
        }
        Progress::Going
    }

    fn read(&mut self, now: Instant, host: &mut tcp::Host, id: ConnectionId) {
        // Err is a connection that broke and has nothing left to read.
        let _ = host.read_with(now, id, |bytes| {
            self.received += bytes.len() as u64;
            self.take_apart(now, bytes);
        });
        if let Some(progress) = &mut self.progress {
            progress.note(now, self.received);
        }
    }

    fn take_apart(&mut self, now: Instant, mut bytes: &[u8]) {
        // After an impossible length nothing can be told apart any more.
        while !self.damaged {
            match self.reader.next(&mut bytes) {
                Ok(Some(Item::Content(content))) => {
                    self.damaged |= !self.content.matches(self.stream, self.content_at, content);
                    self.content_at += content.len() as u64;
                }
                Ok(Some(Item::Complete(header))) => {
                    self.damaged |= header.len != self.record || header.stamp > now;
                    self.stamps += u128::from(header.stamp.as_nanos());
                    self.latencies.sample(now, header.stamp, header.len);
                }
                Ok(None) => return,
                Err(_) => self.damaged = true,
            }
        }
    }
}
