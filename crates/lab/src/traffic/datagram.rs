//! A rate-controlled source over UDP: a datagram a record, sent when it is generated. What it loses, the path lost, and
//! what it is late by, the path took: the control that shows TCP's part in latency.
//!
//! A datagram is a record ([`base::wire::record`]) whose content begins with its number, 8 bytes big-endian.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::content::Content;
use base::wire::record::{self, Header};
use base::wire::{ip, udp};
use base::{Instant, Packet};

use super::latency::Latencies;
use super::progress::ProgressTrace;
use super::schedule::Schedule;

/// Bytes of a datagram before its content: the record's header and the number.
pub const HEADER_LEN: usize = record::HEADER_LEN + 8;

/// The longest record that an Ethernet packet from `address` carries.
#[must_use]
pub const fn longest(address: IpAddr) -> usize {
    1500 - ip::header_len_for(address) - udp::HEADER_LEN
}

/// Sends a datagram whenever a record is due.
#[derive(Debug)]
pub struct DatagramSender {
    local: SocketAddr,
    remote: SocketAddr,
    content: Arc<Content>,
    stream: u32,
    schedule: Schedule,
    dscp: u8,
    /// When the first record is due; `None` once it was.
    opens_at: Option<Instant>,
    opened_at: Option<Instant>,
}

impl DatagramSender {
    /// A sender of the records of `schedule` from `opens_at` on, which carry the content of `stream`.
    #[must_use]
    pub const fn new(
        [local, remote]: [SocketAddr; 2],
        content: Arc<Content>,
        stream: u32,
        schedule: Schedule,
        opens_at: Instant,
    ) -> Self {
        Self { local, remote, content, stream, schedule, dscp: 0, opens_at: Some(opens_at), opened_at: None }
    }

    /// This sender, with a differentiated services code point in its packets, below 64.
    #[must_use]
    pub fn with_dscp(self, dscp: u8) -> Self {
        Self { dscp, ..self }
    }

    /// Records generated, and sent, so far.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.schedule.generated()
    }

    /// When it sent the first.
    #[must_use]
    pub const fn opened_at(&self) -> Option<Instant> {
        self.opened_at
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.opens_at.or_else(|| self.schedule.due())
    }

    /// Adds the packets that are due to `out`.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Packet>) {
        if self.opens_at.take().is_some() {
            self.opened_at = Some(now);
            self.schedule.start(now);
        }
        loop {
            let number = self.schedule.generated();
            let Some(stamp) = self.schedule.take(now) else { return };
            out.push(self.packet(stamp, number));
        }
    }

    fn packet(&self, stamp: Instant, number: u64) -> Packet {
        let (src, dst) = (self.local.ip(), self.remote.ip());
        let header = Header { stamp, len: self.schedule.record() };
        let datagram_len = udp::HEADER_LEN + header.len as usize;
        let mut ip = ip::Repr::new(src, dst, ip::Protocol::UDP, ip::Ecn::NotEct, datagram_len);
        match &mut ip {
            ip::Repr::V4(header) => header.dscp = self.dscp,
            ip::Repr::V6(header) => header.dscp = self.dscp,
        }
        let mut packet = Packet::with_capacity(ip.header_len() + datagram_len);
        packet.resize(ip.header_len() + udp::HEADER_LEN);
        packet.extend_from_slice(&header.emit());
        packet.extend_from_slice(&number.to_be_bytes());
        // A datagram is far shorter than the longest run of content.
        let len = header.len as usize - HEADER_LEN;
        packet.extend_from_slice(self.content.slice(self.stream, number * len as u64, len));
        ip.emit(&mut packet);
        let udp = udp::Repr { src_port: self.local.port(), dst_port: self.remote.port() };
        udp.emit(&mut packet[ip.header_len()..], src, dst);
        packet
    }
}

/// Receives datagrams, checks them, and samples the latency of each the first time that it comes.
#[derive(Debug)]
pub struct DatagramReceiver {
    port: u16,
    content: Arc<Content>,
    stream: u32,
    /// Bytes of every record.
    record: u32,
    received: u64,
    latencies: Latencies,
    seen: Seen,
    duplicates: u64,
    late: u64,
    damaged: bool,
    progress: Option<ProgressTrace>,
}

impl DatagramReceiver {
    /// A receiver at `port` of records of `record` bytes that carry the content of `stream`.
    #[must_use]
    pub fn new(port: u16, content: Arc<Content>, stream: u32, record: u32) -> Self {
        Self {
            port,
            content,
            stream,
            record,
            received: 0,
            latencies: Latencies::default(),
            seen: Seen::default(),
            duplicates: 0,
            late: 0,
            damaged: false,
            progress: None,
        }
    }

    /// The port that it receives at.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Bytes of records received so far, each record once.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// The latency of every record that came.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Datagrams that had come before.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Records that came after one with a higher number.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
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

    /// Takes what a datagram carried.
    pub fn on_datagram(&mut self, now: Instant, payload: &[u8]) {
        let Some((header, number, content)) = self.parse(payload) else {
            self.damaged = true;
            return;
        };
        let intact = self.content.matches(self.stream, number * content.len() as u64, content);
        if !intact || header.stamp > now {
            self.damaged = true;
            return;
        }
        match self.seen.note(number) {
            Arrival::Again => self.duplicates += 1,
            arrival => {
                self.late += u64::from(arrival == Arrival::Late);
                self.received += u64::from(header.len);
                self.latencies.sample(now, header.stamp, header.len);
                if let Some(progress) = &mut self.progress {
                    progress.note(now, self.received);
                }
            }
        }
    }

    fn parse<'a>(&self, payload: &'a [u8]) -> Option<(Header, u64, &'a [u8])> {
        let (header, rest) = payload.split_first_chunk()?;
        let (number, content) = rest.split_first_chunk()?;
        let (header, number) = (Header::parse(header, self.record).ok()?, u64::from_be_bytes(*number));
        let whole = payload.len() == self.record as usize && header.len == self.record;
        (whole && number < NUMBERS).then_some((header, number, content))
    }
}

/// More records than any run generates.
const NUMBERS: u64 = 1 << 48;
/// Numbers that are told apart behind the highest that came; whatever is older counts as having come.
/// Ours: more than any queue or link of the lab can hold.
const WINDOW: u64 = 1 << 16;

/// How a datagram's number stands to those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The highest so far.
    New,
    /// Lower, and for the first time.
    Late,
    /// It had come before, or is too old to tell.
    Again,
}

/// Which of the last [`WINDOW`] numbers have come, in the manner of RFC 6479.
#[derive(Clone, Debug)]
struct Seen {
    /// One bit a number, by its remainder.
    bits: Box<[u64]>,
    /// One more than the highest number.
    next: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { bits: vec![0; (WINDOW / 64) as usize].into(), next: 0 }
    }
}

impl Seen {
    fn note(&mut self, number: u64) -> Arrival {
        let arrival = if number >= self.next { Arrival::New } else { Arrival::Late };
        if arrival == Arrival::New {
            // Those skipped have not come.
            let skipped = (number - self.next).min(WINDOW);
            (number - skipped..=number).for_each(|skipped| self.set(skipped, false));
            self.next = number.saturating_add(1);
        } else if self.next - number > WINDOW || self.has(number) {
            return Arrival::Again;
        }
        self.set(number, true);
        arrival
    }

    fn place(number: u64) -> (usize, u64) {
        let bit = number % WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.bits[word] & bit != 0
    }

    fn set(&mut self, number: u64, has: bool) {
        let (word, bit) = Self::place(number);
        if has {
            self.bits[word] |= bit;
        } else {
            self.bits[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Rate};

    fn pair() -> (DatagramSender, DatagramReceiver) {
        let content = Arc::new(Content::new(1));
        let schedule = Schedule::new(Rate::from_bps(8_000), 100, None);
        let ends = ["10.0.0.1:5001".parse().unwrap(), "10.0.0.2:5001".parse().unwrap()];
        let receiver = DatagramReceiver::new(5001, Arc::clone(&content), 3, 100);
        (DatagramSender::new(ends, content, 3, schedule, Instant::ZERO), receiver)
    }

    fn payload(packet: &Packet) -> Vec<u8> {
        let packet = ip::View::parse(packet).unwrap();
        let view = udp::View::parse(packet.payload()).unwrap();
        udp::Repr::parse(&view, packet.src(), packet.dst()).unwrap();
        view.payload().to_vec()
    }

    /// Goal: each record counts once, in whatever order and however often it comes.
    #[test]
    fn late_and_doubled_datagrams_are_told_apart() {
        let (mut sender, mut receiver) = pair();
        let mut packets = Vec::new();
        sender.handle_timeout(Instant::ZERO, &mut packets);
        sender.handle_timeout(Instant::ZERO + Duration::from_millis(500), &mut packets);
        assert_eq!((packets.len(), sender.sent()), (6, 6));
        let now = Instant::ZERO + Duration::from_secs(1);
        for number in [0, 2, 2, 1, 5, 0] {
            receiver.on_datagram(now, &payload(&packets[number]));
        }
        assert_eq!((receiver.latencies().count(), receiver.duplicates(), receiver.late()), (4, 2, 1));
        assert_eq!((receiver.received(), receiver.is_intact()), (400, true));
        let latencies: Vec<u64> =
            receiver.latencies().samples().iter().map(|sample| sample.latency.as_millis()).collect();
        assert_eq!(latencies, [1000, 800, 900, 500]);
        let mut damaged = payload(&packets[3]);
        damaged[50] ^= 1;
        receiver.on_datagram(now, &damaged);
        assert!(!receiver.is_intact() && receiver.latencies().count() == 4);
    }

    #[test]
    fn numbers_are_remembered_for_a_window() {
        let mut seen = Seen::default();
        assert_eq!(
            [0, 10, 3, 3].map(|n| seen.note(n)),
            [Arrival::New, Arrival::New, Arrival::Late, Arrival::Again]
        );
        assert_eq!(seen.note(10 + WINDOW), Arrival::New);
        assert_eq!([10, 11, 11].map(|n| seen.note(n)), [Arrival::Again, Arrival::Late, Arrival::Again]);
        assert_eq!(seen.note(NUMBERS - 1), Arrival::New);
        assert_eq!(seen.note(NUMBERS - 2), Arrival::Late);
    }
}
