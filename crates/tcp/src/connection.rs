//! One TCP connection: RFC 9293 with the extensions of RFC 7323 (window scale, timestamps, PAWS), RFC 2018 (SACK)
//! and RFC 5961 (blind attacks).
//!
//! A connection takes segments whose checksums were verified and gives out whole IP packets. [`crate::Host`]
//! finds the connection of a packet; whoever needs only one can drive it alone. Drain order: after each
//! `handle_*` or application command, [`Connection::poll_event`] and [`Connection::poll_transmit`] until they have
//! nothing more, then [`Connection::poll_timeout`].
//!
//! Deviations from RFC 9293:
//! - urgent data are delivered in band, and the urgent pointer is ignored (allowed by RFC 6093, 6);
//! - a RST in TIME-WAIT is ignored (RFC 1337);
//! - data on a SYN are not kept, the peer sends them again.

mod close;
mod coding;
mod ecn;
pub(crate) mod emit;
mod forerunners;
pub(crate) mod information;
mod keep_alive;
mod open;
mod proxied;
mod receive;
mod receiver;
pub(crate) mod sender;
pub mod statistics;
mod timers;
mod transmit;

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::{Duration, Rate, SeqNum};

use crate::buffer::send::Source;
use crate::config::TcpConfig;
use crate::recovery::Phase;
use ecn::Echo;
use emit::Reset;
use forerunners::Forerunners;
pub use open::Seeds;
pub use proxied::Offer;
use proxied::Proxied;
use receiver::Receiver;
use sender::Sender;
use statistics::{SenderStatistics, Statistics};
use timers::Timers;

/// The states of RFC 9293 (3.3.2); LISTEN is the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection any more.
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flow both ways.
    Established,
    /// This side has finished; its FIN is not acknowledged.
    FinWait1,
    /// This side has finished and the peer knows.
    FinWait2,
    /// The peer has finished.
    CloseWait,
    /// Both have finished at once.
    Closing,
    /// This side finished after the peer; its FIN is not acknowledged.
    LastAck,
    /// Both have finished; late segments die out.
    TimeWait,
}

/// What the application should know. Each kind is pending at most once; they come out in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection that this side opened is established.
    Connected,
    /// A connection to a listening port is established.
    Accepted {
        /// The port.
        local_port: u16,
    },
    /// New data can be read.
    Readable,
    /// A peer opens a connection to one that a [standing-in host](crate::Host::standing_in) stands in for, and waits for
    /// the word.
    Asked,
    /// Data can be written again after a write that took less than it was given.
    Writable,
    /// The peer has acknowledged more, where the owner [relays](Connection::relay_acknowledgements) acknowledgements.
    Acknowledged,
    /// The peer sends no more; what it sent before can still be read.
    PeerFinished,
    /// Both sides have finished and know it.
    Closed,
    /// The connection ended otherwise; nothing more is sent or received.
    Failed(Failure),
}

/// Why a connection ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The peer answered the SYN with a reset.
    #[error("connection refused")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by peer")]
    Reset,
    /// The peer did not answer for too long.
    #[error("connection timed out")]
    TimedOut,
    /// This side aborted.
    #[error("connection aborted")]
    Aborted,
}

/// Why a segment was of no use to its connection; an answer may be due all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Discard {
    /// Nothing of it lies in the receive window (RFC 9293, 3.10.7.4, first).
    #[error("sequence number {0} outside the window")]
    OutsideWindow(SeqNum),
    /// Its timestamp is older than the latest one (PAWS: RFC 7323, 5.3).
    #[error("old timestamp {0}")]
    OldTimestamp(u32),
    /// It lacks the timestamp that was negotiated (RFC 7323, 3.2).
    #[error("no timestamp")]
    NoTimestamp,
    /// It acknowledges what was never sent, or too long ago (RFC 5961, 5.2; RFC 9293, 3.10.7.3).
    #[error("unacceptable acknowledgement {0}")]
    BadAck(SeqNum),
    /// A reset that does not hit the next expected number (RFC 5961, 3.2).
    #[error("reset at {0} challenged")]
    ResetChallenged(SeqNum),
    /// A SYN on a synchronized connection (RFC 5961, 4.2).
    #[error("SYN challenged")]
    SynChallenged,
    /// It has neither ACK, SYN nor RST.
    #[error("no acknowledgement")]
    NoAck,
    /// A report that the segment from here on was too big, although none is outstanding that begins here, or it was no larger
    /// than is allowed, or left before segments were made smaller (RFC 5927, 7).
    #[error("report of {0} not believed")]
    NotBelieved(SeqNum),
    /// The connection has ended.
    #[error("connection closed")]
    Closed,
}

/// What both sides agreed on in their SYNs.
#[derive(Clone, Copy, Debug, Default)]
struct Negotiated {
    timestamps: bool,
    sack: bool,
    scaling: bool,
    /// Both ends are proxies of ours.
    paired: bool,
    /// Repairs of an erasure code are taken.
    coded: bool,
}

impl Negotiated {
    /// What this side offers.
    const fn offered(config: &TcpConfig) -> Self {
        let sack = config.recovery.scheme.uses_sack();
        Self {
            timestamps: config.timestamps,
            sack,
            scaling: config.window.scaling,
            paired: config.proxy_mss.is_some(),
            coded: config.fec.codes() && sack,
        }
    }
}

/// An address and a port: a `SocketAddr` without IPv6's flow label and scope, which take 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Address {
    ip: IpAddr,
    port: u16,
}

impl Address {
    const fn of(address: SocketAddr) -> Self {
        Self { ip: address.ip(), port: address.port() }
    }

    const fn socket(self) -> SocketAddr {
        SocketAddr::new(self.ip, self.port)
    }
}

/// One TCP connection: its two halves, and what belongs to neither.
///
/// What the halves share is handed from one to the other here: a segment's acknowledgement goes to the sender and its data to
/// the receiver, and what the sender sends takes the receiver's acknowledgement along.
#[derive(Debug)]
pub struct Connection {
    local: Address,
    remote: Address,
    state: State,
    /// Whether the peer opened it.
    passive: bool,
    sender: Sender,
    receiver: Receiver,
    timers: Timers,
    echo: Echo,
    /// What a proxy sent that came before its answer to our SYN.
    forerunners: Option<Box<Forerunners>>,
    /// What its owner, a proxy, has to do with it.
    proxied: Proxied,
    /// A SYN or SYN-ACK is to be sent.
    syn_due: bool,
    /// A RST is to be sent.
    reset_due: Option<Reset>,
    /// The application has closed it for good: nobody reads any more.
    orphaned: bool,
    events: Events,
    failure: Option<Failure>,
    statistics: Statistics,
}

impl Connection {
    /// The local address and port.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local.socket()
    }

    /// The peer's address and port.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote.socket()
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why it ended early, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// What it counted, but for its sending half.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What its sending half counted.
    #[must_use]
    pub const fn sender_statistics(&self) -> &SenderStatistics {
        &self.sender.statistics
    }

    /// Congestion window in bytes, without a recovery scheme's temporary inflation.
    #[must_use]
    pub fn cwnd(&self) -> u64 {
        self.sender.controller.window()
    }

    /// Slow start threshold in bytes; `None` before the first reduction, and for a controller without one.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        self.sender.controller.ssthresh().filter(|threshold| *threshold != u64::MAX)
    }

    /// Smoothed round-trip time, once there is a sample.
    #[must_use]
    pub const fn srtt(&self) -> Option<Duration> {
        self.sender.rtt.srtt()
    }

    /// Round-trip time variation (RFC 6298); zero before the first sample.
    #[must_use]
    pub const fn rttvar(&self) -> Duration {
        self.sender.rtt.rttvar()
    }

    /// Least round-trip time seen, once there is a sample.
    #[must_use]
    pub fn rtt_min(&self) -> Option<Duration> {
        Some(self.sender.rtt.min()).filter(|&min| min < Duration::MAX)
    }

    /// Retransmission time-out, back-off included.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.sender.rto()
    }

    /// How often the retransmission time-out is doubled.
    #[must_use]
    pub const fn backoff(&self) -> u32 {
        self.sender.timers.backoff as u32
    }

    /// Bytes sent and not cumulatively acknowledged (RFC 5681, 2).
    #[must_use]
    pub const fn flight_size(&self) -> u64 {
        self.sender.nxt - self.sender.una
    }

    /// Bytes estimated to be in the network: `pipe` of RFC 6675.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.pipe()
    }

    /// The rate that data leave at; none if they go as the window allows.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.sender.pacing_rate()
    }

    /// Whether fast recovery is in progress.
    #[must_use]
    pub fn recovering(&self) -> bool {
        self.sender.recovery.phase() == Phase::FastRecovery
    }

    /// Payload bytes of a full segment to the peer.
    #[must_use]
    pub const fn mss(&self) -> u32 {
        self.sender.mss
    }

    /// The window that the peer last advertised, in bytes.
    #[must_use]
    pub const fn peer_window(&self) -> u64 {
        self.sender.window as u64
    }

    /// Whether selective acknowledgements are in use.
    #[must_use]
    pub const fn uses_sack(&self) -> bool {
        self.sender.negotiated.sack
    }

    /// Whether timestamps are in use.
    #[must_use]
    pub const fn uses_timestamps(&self) -> bool {
        self.sender.negotiated.timestamps
    }

    /// Whether new data are sent as ECN-capable, and echoes of marks are heeded.
    #[must_use]
    pub const fn uses_ecn(&self) -> bool {
        self.sender.marking.sends()
    }

    /// Bytes that can be read.
    #[must_use]
    pub const fn readable(&self) -> usize {
        self.receiver.reassembly.unread()
    }

    /// Bytes that a write would take.
    #[must_use]
    pub fn writable(&self) -> usize {
        if self.accepts_data() { self.sender.room() } else { 0 }
    }

    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub const fn unacknowledged(&self) -> usize {
        self.sender.buffer.len()
    }

    /// Bytes of memory that it takes: itself, its buffers, its notes of what is in flight and of gaps, and
    /// what it keeps to compute lost segments from. What it notes for a round trip or two, some dozens of bytes, is not in it.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.receiver.memory() + self.sender.memory() + self.forerunners_memory()
    }

    /// The host has so many bytes of memory left for it. Until this is called, it may take what its buffers say.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        self.receiver.set_allowance(bytes);
        self.sender.set_allowance(bytes);
    }

    /// Whether this side has finished.
    #[must_use]
    pub const fn has_finished(&self) -> bool {
        self.sender.fin_queued
    }

    /// Whether the peer has finished and everything that it sent was received in order.
    #[must_use]
    pub const fn peer_finished(&self) -> bool {
        self.receiver.finished
    }

    /// The number of a byte of ours on the wire: 0 is the SYN, 1 the first byte.
    #[must_use]
    pub fn sequence_number(&self, position: u64) -> SeqNum {
        self.sender.space.number(position)
    }

    const fn accepts_data(&self) -> bool {
        !self.sender.fin_queued
            && matches!(
                self.state,
                State::SynSent | State::SynReceived | State::Established | State::CloseWait
            )
    }

    /// Takes bytes to send; fewer than given if the buffer is full, and then [`Event::Writable`] follows.
    ///
    /// # Errors
    /// The connection failed, or this side has finished.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check_writable()?;
        let taken = self.sender.buffer.write(&data[..data.len().min(self.sender.room())]);
        if taken < data.len() {
            self.sender.note_short_write();
        }
        Ok(taken)
    }

    /// Like [`Connection::write`] for up to `len` bytes that `fill` puts in place, in one or two pieces.
    ///
    /// # Errors
    /// The connection failed, or this side has finished.
    pub fn write_with(&mut self, len: usize, fill: impl FnMut(&mut [u8])) -> Result<usize, WriteError> {
        self.check_writable()?;
        let taken = self.sender.buffer.write_with(len.min(self.sender.room()), fill);
        if taken < len {
            self.sender.note_short_write();
        }
        Ok(taken)
    }

    /// Like [`Connection::write`] for up to `len` bytes of `source` from `offset` on, which it does not keep: it has them
    /// again from the source when they are sent.
    ///
    /// # Errors
    /// The connection failed, or this side has finished.
    pub fn write_from(
        &mut self,
        source: &Arc<dyn Source>,
        offset: u64,
        len: usize,
    ) -> Result<usize, WriteError> {
        self.check_writable()?;
        let taken = self.sender.buffer.write_from(source, offset, len.min(self.sender.room()));
        if taken < len {
            self.sender.note_short_write();
        }
        Ok(taken)
    }

    fn check_writable(&self) -> Result<(), WriteError> {
        match self.failure {
            Some(failure) => Err(WriteError::Failed(failure)),
            None if !self.accepts_data() => Err(WriteError::Finished),
            None => Ok(()),
        }
    }

    /// Copies received bytes to `out`; the number copied, zero if there are none.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.readable());
        let (first, second) = self.peek();
        let from_first = first.len().min(count);
        out[..from_first].copy_from_slice(&first[..from_first]);
        out[from_first..count].copy_from_slice(&second[..count - from_first]);
        self.consume(count);
        count
    }

    /// The bytes that can be read, in two pieces where the buffer wraps.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> (&[u8], &[u8]) {
        self.receiver.reassembly.readable()
    }

    /// Drops `count` bytes that were read in place; at most [`Connection::readable`].
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.readable());
        self.receiver.reassembly.consume(count);
        self.release_if_read();
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.receiver.on_read();
            if count > 0 && self.receiver.reassembly.unread() == 0 {
                self.receiver.on_all_read();
            }
        }
    }

    /// What the application should know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.take()?;
        Some(match event {
            Events::CONNECTED if self.passive => Event::Accepted { local_port: self.local.port },
            Events::CONNECTED => Event::Connected,
            Events::ASKED => Event::Asked,
            Events::READABLE => Event::Readable,
            Events::WRITABLE => Event::Writable,
            Events::ACKNOWLEDGED => Event::Acknowledged,
            Events::PEER_FINISHED => Event::PeerFinished,
            Events::CLOSED => Event::Closed,
            _ => Event::Failed(self.failure.unwrap_or(Failure::Aborted)),
        })
    }

    /// Whether [`Connection::poll_event`] has something.
    pub(crate) const fn has_event(&self) -> bool {
        self.events.0 != 0
    }

    /// Whether the host can let it go.
    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self.state, State::Closed)
            && !self.timers.is_lingering()
            && self.reset_due.is_none()
            && !self.keeps_unread()
    }
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// This side has finished, or the connection is closed.
    #[error("already finished")]
    Finished,
    /// The connection ended early.
    #[error(transparent)]
    Failed(Failure),
}

/// The pending events, a bit each; the lowest comes out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Events(u8);

impl Events {
    const CONNECTED: Self = Self(1);
    const ASKED: Self = Self(2);
    const READABLE: Self = Self(4);
    const WRITABLE: Self = Self(8);
    const ACKNOWLEDGED: Self = Self(16);
    const PEER_FINISHED: Self = Self(32);
    const CLOSED: Self = Self(64);
    const FAILED: Self = Self(128);

    const fn raise(&mut self, event: Self) {
        self.0 |= event.0;
    }

    const fn take(&mut self) -> Option<Self> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.0 & self.0.wrapping_neg();
        self.0 &= !lowest;
        Some(Self(lowest))
    }
}

/// Bytes of a part that only some connections have.
fn boxed<T>(part: &Option<Box<T>>) -> usize {
    if part.is_some() { size_of::<T>() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Reno;
    use crate::recovery::Rack;

    /// An idle established connection has nothing on the heap but its controller, what it knows of times if it recovers
    /// by them, and perhaps a record: 1 KiB at most together with Reno. The benchmark counts what the heap really holds,
    /// for other settings too.
    #[test]
    fn an_idle_connection_is_small() {
        let size = size_of::<Connection>() + size_of::<Reno>() + size_of::<Rack>();
        assert!(size <= 1024, "{size} bytes");
    }
}
