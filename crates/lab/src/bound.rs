//! The physical bound of a scenario: what the channel's capacity less the framing allows on one realisation.
//!
//! For every direction of every link, the bytes that have to cross it need a certain time at that
//! direction's capacity, counted on the very realisation that the schemes meet (open time only, where the
//! channel is blocked now and then). The slowest link decides. Nothing is taken off for handshakes, slow
//! start or acknowledgements: no scheme can beat this, whatever it does.

use std::collections::BTreeMap;

use base::wire::{ip, tcp};
use base::{Duration, Instant, Packet};
use link::{Class, FrameInfo, FrameKind, Protocol};

use crate::scenario::{Link, Scenario, Traffic};

/// What crosses one direction of a link.
struct Load {
    /// Connections that cross it.
    connections: u64,
    /// Their bytes.
    bytes: u64,
    /// When the first of them starts.
    start: Duration,
    /// Propagation delay of the rest of the longest path through it.
    elsewhere: Duration,
}

/// Application bits per second that all transfers of `scenario` together can reach with `seed`.
///
/// Transfers without a size are taken as equal in size.
#[must_use]
pub fn goodput_bps(scenario: &Scenario, seed: u64) -> f64 {
    let mut loads: BTreeMap<(&str, bool), Load> = BTreeMap::new();
    let (mut connections, mut bytes, mut sized) = (0, 0, true);
    let mut first_start = Duration::MAX;
    for traffic in scenario.traffic.values() {
        let Traffic::Bulk(bulk) = traffic;
        let path = scenario.path(&bulk.from, &bulk.to).unwrap_or_default();
        let delay = path.iter().fold(Duration::ZERO, |sum, (_, link, _)| sum + link.channel.delay);
        let count = u64::from(bulk.connections);
        let size = bulk.size.map_or(0, |size| size.0) * count;
        sized &= bulk.size.is_some();
        connections += count;
        bytes += size;
        first_start = first_start.min(bulk.start);
        for (name, link, forward) in path {
            let none = Load { connections: 0, bytes: 0, start: Duration::MAX, elsewhere: Duration::ZERO };
            let load = loads.entry((name, forward)).or_insert(none);
            load.connections += count;
            load.bytes += size;
            load.start = load.start.min(bulk.start);
            load.elsewhere = load.elsewhere.max(delay.saturating_sub(link.channel.delay));
        }
    }
    let end = Instant::ZERO + scenario.duration;
    let per_load = |((name, forward), load): (&(&str, bool), &Load)| {
        let line = Direction::new(scenario, name, *forward, seed);
        if sized {
            let done = line.time_to_carry(load.start, load.bytes) + load.elsewhere;
            bytes as f64 * 8.0 / done.saturating_since(Instant::ZERO + first_start).as_secs_f64()
        } else {
            let from = Instant::ZERO + load.start;
            let rate = line.carried_bits(from, end) / end.saturating_since(from).as_secs_f64();
            rate * connections as f64 / load.connections as f64
        }
    };
    loads.iter().map(per_load).fold(f64::INFINITY, f64::min)
}

/// One direction of a link, for one realisation.
struct Direction<'a> {
    link: &'a Link,
    line: channel::line::Config,
    streams: channel::Streams,
    /// Application bits per bit on the line.
    efficiency: f64,
}

impl<'a> Direction<'a> {
    fn new(scenario: &'a Scenario, name: &str, forward: bool, seed: u64) -> Self {
        let link = &scenario.link[name];
        let (line, direction) =
            if forward { (link.channel.down(), "down") } else { (link.channel.up(), "up") };
        let streams = link.channel.streams(seed, name, direction);
        let (packet, payload) = full_segment(scenario);
        let bits = link.protocol.as_ref().map_or(packet as u64 * 8, |protocol| frame_bits(protocol, packet));
        Self { link, line, streams, efficiency: payload as f64 * 8.0 / bits as f64 }
    }

    /// Application bits that arrive of what leaves from `from` until its last bit has arrived at `to`.
    fn carried_bits(&self, from: Instant, to: Instant) -> f64 {
        // Errors strike at one end: the window during which bits pass that end.
        let window = match self.line.errors_at {
            channel::End::Arrival => from + self.link.channel.delay..to,
            channel::End::Departure => from..to.saturating_sub(self.link.channel.delay),
        };
        let span = window.end.saturating_since(window.start).as_secs_f64();
        if span <= 0.0 {
            return 0.0;
        }
        let capacity = self.line.errors.capacity_in(&self.streams, window);
        self.line.rate.as_bps() as f64 * capacity * span * self.efficiency
    }

    /// When the last of `bytes` that start to leave at `start` can have arrived.
    fn time_to_carry(&self, start: Duration, bytes: u64) -> Instant {
        let from = Instant::ZERO + start;
        let bits = bytes as f64 * 8.0;
        let mut late = Duration::from_secs(1);
        while self.carried_bits(from, from + late) < bits {
            late = late * 2;
            // A channel that never opens again.
            if late > Duration::from_secs(1 << 30) {
                return Instant::MAX;
            }
        }
        let (mut early, mut late) = (Duration::ZERO, late);
        while (late - early).as_nanos() > 1_000 {
            let middle = early + (late - early) / 2;
            if self.carried_bits(from, from + middle) < bits {
                early = middle;
            } else {
                late = middle;
            }
        }
        from + late
    }
}

/// Bytes of the packet of a full data segment between the scenario's hosts, and bytes of data in it.
fn full_segment(scenario: &Scenario) -> (usize, usize) {
    let address = scenario.network.address(0);
    let mss = usize::from(scenario.tcp.mss_for(address));
    let options = if scenario.tcp.timestamps { TIMESTAMPS_LEN } else { 0 };
    (ip::header_len_for(address) + tcp::HEADER_LEN + mss, mss - options)
}

/// Bytes that the timestamps option takes from each segment's data, padding included (RFC 7323, appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// Bits on the line of the frames that first carry a packet of `len` bytes: what an endpoint that has nothing else makes of it.
fn frame_bits(protocol: &Protocol, len: usize) -> u64 {
    let mut endpoint = protocol.build();
    let mut packet = Packet::with_capacity(len);
    packet.resize(len);
    packet[0] = 0x45;
    let taken = endpoint.offer(Instant::ZERO, packet, Class::Reliable);
    debug_assert!(taken.is_ok(), "a fresh endpoint has room");
    let mut frame = Vec::new();
    let mut bits = 0;
    while let Some(FrameInfo { kind: FrameKind::New, .. }) =
        endpoint.poll_frame(Instant::ZERO, usize::MAX, &mut frame)
    {
        bits += frame.len() as u64 * 8 + u64::from(protocol.framing_bits());
        frame.clear();
    }
    bits
}
