//! The physical bound of a scenario: what the channel's capacity less the framing allows.
//!
//! For every direction of every link, the bytes that have to cross it need a certain time at that
//! direction's capacity. Blockages count as they fell in this very realisation: only open time carries. Bit errors and
//! erasures count by their long-run capacity, so that a short lucky run over such a channel may come out slightly
//! ahead of it. Nothing is taken off for handshakes, slow start or acknowledgements. Headers are those of full segments: the hosts' own,
//! or those of proxies at the ends of a link where these take less of it.

use std::collections::{BTreeMap, BTreeSet};

use ::tcp::TcpConfig;
use base::wire::{ip, tcp, udp};
use base::{Duration, Instant, Packet, Rate};
use link::{Demand, FrameInfo, FrameKind, LineLimits, Protocol, Treatment};

use crate::node::FrameCost;
use crate::scenario::topology::{Crossing, Stage, Topology};
use crate::scenario::{Bulk, Link, Network, Scenario, Traffic, Transport};

/// Application bits per second that all transfers of `scenario` together can reach with `seed`.
///
/// For a run that `completed` every transfer: all their bits over the least time in which the slowest link can
/// carry its share. For any other: the most bits that can arrive until the run's end, over that time.
#[must_use]
pub fn goodput_bps(scenario: &Scenario, seed: u64, completed: bool) -> f64 {
    let setting = Setting::new(scenario, seed);
    let flows: Vec<Flow<'_>> =
        scenario.traffic.values().map(|traffic| Flow::new(&setting, traffic)).collect();
    let first_start = flows.iter().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
    let total: Option<u64> = flows.iter().map(|flow| flow.bits.filter(|_| flow.ends)).sum();
    if let (true, Some(bits)) = (completed, total) {
        let done = slowest_share(&flows);
        return if done == Instant::MAX { 0.0 } else { bits as f64 / (done - first_start).as_secs_f64() };
    }
    let end = Instant::ZERO + scenario.duration;
    most_bits(&flows, end) / end.saturating_since(first_start).as_secs_f64()
}

/// The most application bytes that can have arrived by each of `instants`, over this realisation.
pub(crate) fn most_bytes(scenario: &Scenario, seed: u64, instants: &[Instant]) -> Vec<f64> {
    let setting = Setting::new(scenario, seed);
    let flows: Vec<Flow<'_>> =
        scenario.traffic.values().map(|traffic| Flow::new(&setting, traffic)).collect();
    instants.iter().map(|&at| most_bits(&flows, at) / 8.0).collect()
}

/// The least time in which all connections of the transfer called `name` can be carried if nothing else is, in seconds;
/// `None` without such a transfer, without a size, or over a dead link.
#[must_use]
pub fn transfer_seconds(scenario: &Scenario, seed: u64, name: &str) -> Option<f64> {
    let Traffic::Bulk(bulk) = scenario.traffic.get(name)? else { return None };
    let alone = Traffic::Bulk(Bulk { after: None, start: Duration::ZERO, ..bulk.clone() });
    let setting = Setting::new(scenario, seed);
    let flow = Flow::new(&setting, &alone);
    flow.bits?;
    Some(slowest_share(&[flow])).filter(|&done| done < Instant::MAX).map(Instant::as_secs_f64)
}

/// What the flows of a scenario have in common.
struct Setting<'a> {
    scenario: &'a Scenario,
    seed: u64,
    topology: Topology<'a>,
    /// Bytes of the packets that the scenario sends, and bytes of application data in them.
    packets: BTreeSet<(usize, usize)>,
}

impl<'a> Setting<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let packets = datagrams(scenario).chain([full_segment(&scenario.tcp, scenario.network)]).collect();
        Self { scenario, seed, topology: Topology::new(scenario), packets }
    }
}

/// All connections of one traffic: they share a path.
struct Flow<'a> {
    start: Instant,
    /// The earliest that its last bit can leave at, whatever the path.
    last_leaves: Instant,
    /// The most application bits that it has; `None` without a limit.
    bits: Option<u64>,
    /// Whether it can end before the run does.
    ends: bool,
    path: Vec<Ways<'a>>,
}

impl<'a> Flow<'a> {
    fn new(setting: &Setting<'a>, traffic: &Traffic) -> Self {
        let scenario = setting.scenario;
        let [from, to] = traffic.hosts();
        let path = setting.topology.path(from, to).unwrap_or_default();
        let path = path.into_iter().map(|stage| Ways::new(setting, stage));
        let path = path.collect();
        match traffic {
            Traffic::Bulk(bulk) => {
                let start = earliest_start(scenario, bulk);
                let sizes = (0..bulk.connections).map(|number| bulk.size_of(number));
                let bits = sizes.sum::<Option<u64>>().map(|bytes| bytes.saturating_mul(8));
                Self { start, last_leaves: start, bits, ends: bits.is_some(), path }
            }
            Traffic::Rate(source) => {
                let start = Instant::ZERO.saturating_add(source.start);
                let rest = scenario.duration.saturating_sub(source.start);
                let span = source.duration.map_or(rest, |span| span.min(rest));
                let record = source.record.0.saturating_mul(8);
                // The first record is due at once.
                let each = source.rate.bits_in(span).saturating_add(record);
                let bits = each.saturating_mul(u64::from(source.connections));
                let ends = source.duration.is_some() && source.transport == Transport::Tcp;
                let last = span.saturating_sub(source.rate.time_for(record));
                Self { start, last_leaves: start.saturating_add(last), bits: Some(bits), ends, path }
            }
            Traffic::Transactions(transactions) => {
                let start = Instant::ZERO.saturating_add(transactions.start);
                let reply = transactions.reply.0.saturating_mul(8);
                let bits = transactions.count.map(|count| count.saturating_mul(reply));
                Self { start, last_leaves: start, bits, ends: bits.is_some(), path }
            }
        }
    }

    fn delay(&self) -> Duration {
        self.path.iter().fold(Duration::ZERO, |sum, direction| sum.saturating_add(direction.least_delay()))
    }

    /// The most bits that its own path lets through until `end`.
    fn most_bits(&self, end: Instant) -> f64 {
        let path = self.path.iter().map(|direction| direction.carried_bits(self.start, end));
        path.chain(self.bits.map(|bits| bits as f64)).fold(f64::INFINITY, f64::min)
    }
}

/// When the transfer starts at the earliest; how long what it waits for really takes is not counted.
fn earliest_start(scenario: &Scenario, bulk: &Bulk) -> Instant {
    let before = bulk.after.as_ref().and_then(|after| scenario.traffic.get(after));
    let before = match before {
        Some(Traffic::Bulk(before)) => earliest_start(scenario, before),
        _ => Instant::ZERO,
    };
    before.saturating_add(bulk.start)
}

/// What crosses one direction of a link, or of a tunnel of several paths.
struct Shared<'f, 'a> {
    direction: &'f Ways<'a>,
    /// The places of the flows that do, in order.
    flows: Vec<usize>,
}

/// Every direction that a flow crosses, with all that do.
fn crossings<'f, 'a>(flows: &'f [Flow<'a>]) -> Vec<Shared<'f, 'a>> {
    let mut all: BTreeMap<(bool, &str, bool), Shared<'f, 'a>> = BTreeMap::new();
    for (place, flow) in flows.iter().enumerate() {
        for direction in &flow.path {
            let crossing = all.entry((direction.is_tunnel, direction.name, direction.forward));
            crossing.or_insert_with(|| Shared { direction, flows: Vec::new() }).flows.push(place);
        }
    }
    all.into_values().collect()
}

/// When the last bit can have arrived if every link has to carry what crosses it.
fn slowest_share(flows: &[Flow<'_>]) -> Instant {
    let mut done = Instant::ZERO;
    for Shared { direction, flows: places } in crossings(flows) {
        let crossing = || places.iter().map(|&place| &flows[place]);
        let bits: u64 = crossing().filter_map(|flow| flow.bits).sum();
        let start = crossing().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
        // The rest of the shortest path that leads over it; a bit that is late here is later there.
        let elsewhere = crossing().map(|flow| flow.delay().saturating_sub(direction.least_delay())).min();
        let here = direction.time_to_carry(start, bits as f64);
        done = done.max(here.saturating_add(elsewhere.unwrap_or(Duration::ZERO)));
    }
    flows.iter().map(|flow| flow.last_leaves.saturating_add(flow.delay())).fold(done, Instant::max)
}

/// The most bits that can arrive until `end`: for each link, what it carries and what passes it by.
fn most_bits(flows: &[Flow<'_>], end: Instant) -> f64 {
    let own: Vec<f64> = flows.iter().map(|flow| flow.most_bits(end)).collect();
    let all: f64 = own.iter().sum();
    let over = |Shared { direction, flows: places }: Shared<'_, '_>| {
        let crossing: f64 = places.iter().map(|&place| own[place]).sum();
        let start = places.iter().map(|&place| flows[place].start).min();
        direction.carried_bits(start.unwrap_or(Instant::ZERO), end).min(crossing) + (all - crossing)
    };
    crossings(flows).into_iter().map(over).fold(all, f64::min)
}

/// A link in one direction, or the ways below a tunnel of several paths, for one realisation. What such ways share with others counts for each.
struct Ways<'a> {
    is_tunnel: bool,
    name: &'a str,
    forward: bool,
    /// Links one after the other.
    ways: Vec<Vec<Direction<'a>>>,
}

impl<'a> Ways<'a> {
    fn new(setting: &Setting<'a>, stage: Stage<'a>) -> Self {
        let way = |way: Vec<Crossing<'a>>| -> Vec<_> {
            way.into_iter().map(|crossing| Direction::new(setting, crossing)).collect()
        };
        let Stage { name, forward, is_tunnel, ways } = stage;
        Self { is_tunnel, name, forward, ways: ways.into_iter().map(way).collect() }
    }

    /// Of the nearest way.
    fn least_delay(&self) -> Duration {
        let delay = |way: &Vec<Direction<'_>>| {
            way.iter().fold(Duration::ZERO, |sum, at| sum.saturating_add(at.link.least_delay()))
        };
        self.ways.iter().map(delay).min().unwrap_or(Duration::ZERO)
    }

    /// Application bits that arrive of what leaves from `from` until its last bit has arrived at `to`.
    fn carried_bits(&self, from: Instant, to: Instant) -> f64 {
        let least = |way: &Vec<Direction<'_>>| {
            way.iter().map(|direction| direction.carried_bits(from, to)).fold(f64::INFINITY, f64::min)
        };
        self.ways.iter().map(least).sum()
    }

    /// When the last of `bits` that start to leave at `from` can have arrived; [`Instant::MAX`] if that takes over 30 years.
    fn time_to_carry(&self, from: Instant, bits: f64) -> Instant {
        let mut late = Duration::from_secs(1);
        while self.carried_bits(from, from.saturating_add(late)) < bits {
            late = late * 2;
            if late > Duration::from_secs(1 << 30) {
                return Instant::MAX;
            }
        }
        let mut early = Duration::ZERO;
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

/// One direction of a link, for one realisation.
struct Direction<'a> {
    link: &'a Link,
    lines: Vec<DirectedLine<'a>>,
    /// Application bits per bit on the line.
    efficiency: f64,
}

impl<'a> Direction<'a> {
    fn new(setting: &Setting<'a>, crossing: Crossing<'a>) -> Self {
        let Crossing { name, link, forward, tunnel } = crossing;
        let direction = if forward { "down" } else { "up" };
        let lines = link.ways(name).map(|way| DirectedLine {
            channel: way.channel,
            line: setting.scenario.line(link, way.channel, forward),
            streams: way.streams(setting.seed, direction),
        });
        let efficiency = |(packet, payload): (usize, usize)| {
            if let Some(tunnel) = tunnel {
                let limit = tunnel.carrier_mtu.0 as usize;
                let bits = link.protocol.as_ref().map_or(limit as u64 * 8, |protocol| {
                    frame_bits(protocol, link.frame_cost(forward), limit)
                });
                let inside = tunnel.efficiency(setting.scenario.network, packet, payload);
                return inside * limit as f64 * 8.0 / bits as f64;
            }
            let bits = link
                .protocol
                .as_ref()
                .map_or(packet as u64 * 8, |protocol| frame_bits(protocol, link.frame_cost(forward), packet));
            payload as f64 * 8.0 / bits as f64
        };
        // Of all that is sent here, the packets that pay least for their headers: a bound must hold for any mix.
        let proxies = link.pep(true).or(link.pep(false));
        let theirs = proxies.map(|pep| full_segment(&pep.link, setting.scenario.network));
        let efficiency = setting.packets.iter().copied().chain(theirs).map(efficiency).fold(0.0, f64::max);
        Self { link, lines: lines.collect(), efficiency }
    }

    /// Application bits that arrive of what leaves from `from` until its last bit has arrived at `to`.
    fn carried_bits(&self, from: Instant, to: Instant) -> f64 {
        self.lines.iter().map(|line| line.carried_bits(from, to)).sum::<f64>() * self.efficiency
    }
}

/// One of a direction's lines.
struct DirectedLine<'a> {
    channel: &'a channel::duplex::Config,
    line: channel::line::Config,
    streams: channel::Streams,
}

impl DirectedLine<'_> {
    /// Bits that arrive of what leaves from `from` until its last bit has arrived at `to`.
    fn carried_bits(&self, from: Instant, to: Instant) -> f64 {
        let leaves_until = to.saturating_sub(self.channel.least_delay());
        let (mut from, mut rate, mut bits) = (from, self.line.rate, 0.0);
        for change in self.line.rate_changes.iter().filter(|change| change.at < leaves_until) {
            if change.at > from {
                bits += self.carried_at(rate, from, change.at);
                from = change.at;
            }
            rate = change.rate;
        }
        bits + self.carried_at(rate, from, leaves_until)
    }

    /// Those of what leaves from `from` to `to`, at this rate.
    fn carried_at(&self, rate: Rate, from: Instant, to: Instant) -> f64 {
        // Errors strike at one end: the window during which bits pass that end.
        let delay = self.channel.delay;
        let window = match self.line.errors_at {
            channel::End::Arrival => from.saturating_add(delay)..to.saturating_add(delay),
            channel::End::Departure => from..to,
        };
        let span = window.end.saturating_since(window.start).as_secs_f64();
        if span <= 0.0 {
            return 0.0;
        }
        let capacity = self.line.errors.capacity_in(&self.streams, window);
        rate.as_bps() as f64 * capacity * span
    }
}

/// Bytes of the packet of a full data segment of such an end, and bytes of data in it.
fn full_segment(tcp: &TcpConfig, network: Network) -> (usize, usize) {
    let address = network.address(0);
    let mss = usize::from(tcp.mss_for(address));
    let options = if tcp.timestamps { TIMESTAMPS_LEN } else { 0 };
    (ip::header_len_for(address) + tcp::HEADER_LEN + mss, mss - options)
}

/// Bytes of the packets that carry the scenario's datagrams, and bytes of records in them.
fn datagrams(scenario: &Scenario) -> impl Iterator<Item = (usize, usize)> {
    let headers = ip::header_len_for(scenario.network.address(0)) + udp::HEADER_LEN;
    scenario.traffic.values().filter_map(move |traffic| match traffic {
        Traffic::Rate(source) if source.transport == Transport::Udp => {
            let record = source.record.0 as usize;
            Some((headers + record, record))
        }
        _ => None,
    })
}

/// Bytes that the timestamps option takes from each segment's data, padding included (RFC 7323, appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// Bits on the line of the frames that first carry a packet of `len` bytes: what an endpoint that has nothing else makes of it.
fn frame_bits(protocol: &Protocol, cost: FrameCost, len: usize) -> u64 {
    let mut endpoint = protocol.build(&LineLimits::default());
    let mut packet = Packet::with_capacity(len);
    packet.resize(len);
    packet[0] = 0x45;
    let taken = endpoint.offer(Instant::ZERO, packet, Treatment::Reliable);
    debug_assert!(taken.is_ok(), "a fresh endpoint has room");
    let mut frame = Vec::new();
    let mut bits = 0;
    while endpoint.demand(Instant::ZERO) == Demand::Fresh
        && let Some(FrameInfo { kind, .. }) = endpoint.poll_frame(Instant::ZERO, &mut frame)
    {
        if kind == FrameKind::New {
            bits += u64::from(cost.bits(frame.len()));
        }
        frame.clear();
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Suite;
    use std::path::Path;

    fn suite(links: &str, traffic: &str) -> Suite {
        let text = format!("name = \"t\"\nduration = \"40 s\"\ntcp.timestamps = false\n{links}\n{traffic}");
        Suite::parse("t.toml", &text, Path::new(""), &[]).unwrap()
    }

    fn bound(links: &str, traffic: &str, completed: bool) -> f64 {
        goodput_bps(&suite(links, traffic).scenario, 1, completed)
    }

    fn close(ours: f64, expected: f64) {
        assert!((ours / expected - 1.0).abs() < 1e-3, "{ours} instead of {expected}");
    }

    /// What headers leave of a wire's rate.
    const HEADERS: f64 = 1460.0 / 1500.0;

    #[test]
    fn a_transfer_needs_its_bytes_and_the_delay() {
        let link =
            "link.l = { ends = [\"a\", \"b\"], channel = { rate = \"1 Mbit/s\", delay = \"250 ms\" } }";
        let traffic = "traffic.t.bulk = { from = \"a\", to = \"b\", size = \"146 kB\" }";
        close(bound(link, traffic, true), 146e3 * 8.0 / (1.2 + 0.25));
        let suite = suite(link, traffic);
        close(transfer_seconds(&suite.scenario, 1, "t").unwrap(), 1.2 + 0.25);
        assert_eq!(transfer_seconds(&suite.scenario, 1, "u"), None);
        // A run that was cut off could have carried its 40 s, had there been more to carry.
        close(bound(link, traffic, false), 146e3 * 8.0 / 40.0);
        let endless = "traffic.t.bulk = { from = \"a\", to = \"b\" }";
        close(bound(link, endless, true), 1e6 * HEADERS * 39.75 / 40.0);
    }

    #[test]
    fn blocked_time_carries_nothing() {
        let link = "link.l = { ends = [\"a\", \"b\"], channel = { rate = \"1 Mbit/s\", delay = \"0 s\", \
                    errors = { periodic = { open = \"1 h\", blocked = \"1 h\", first = \"30 s\" } } } }";
        close(
            bound(link, "traffic.t.bulk = { from = \"a\", to = \"b\" }", true),
            1e6 * HEADERS * 30.0 / 40.0,
        );
    }

    #[test]
    fn paths_that_share_nothing_add_up_and_a_shared_link_does_not() {
        let wire = |name, a, b, rate| {
            format!(
                "link.{name} = {{ ends = [\"{a}\", \"{b}\"], channel = {{ rate = \"{rate}\", delay = \"0 s\" }} }}\n"
            )
        };
        let flow = |name, from, to| format!("traffic.{name}.bulk = {{ from = \"{from}\", to = \"{to}\" }}\n");
        let apart = wire("fast", "a", "b", "10 Mbit/s") + &wire("slow", "c", "d", "100 kbit/s");
        close(bound(&apart, &(flow("f", "a", "b") + &flow("s", "c", "d")), true), 10.1e6 * HEADERS);
        let shared = wire("in1", "a", "r", "10 Mbit/s")
            + &wire("in2", "c", "r", "100 kbit/s")
            + &wire("middle", "r", "q", "1 Mbit/s")
            + &wire("out1", "q", "b", "10 Mbit/s")
            + &wire("out2", "q", "d", "10 Mbit/s");
        close(bound(&shared, &(flow("f", "a", "b") + &flow("s", "c", "d")), true), 1e6 * HEADERS);
    }

    #[test]
    fn paths_of_a_tunnel_add_up_and_links_in_a_row_do_not() {
        let wire = |name: &str, a: &str, b: &str, mbps: u32| {
            format!(
                "link.{name} = {{ ends = [\"{a}\", \"{b}\"], channel = {{ rate = \"{mbps} Mbit/s\", delay = \"1 ms\" }} }}\n"
            )
        };
        let links = wire("in", "a", "g", 1000)
            + &wire("one", "g", "h", 1)
            + &wire("two", "g", "r", 5)
            + &wire("three", "r", "h", 2)
            + &wire("out", "h", "b", 1000);
        let traffic = "traffic.t.bulk = { from = \"a\", to = \"b\" }";
        let over = |paths: &[&str]| {
            // Called like a link, which is another thing.
            let paths: Vec<_> = paths.iter().map(|path| format!("{path} = {{}}")).collect();
            let tunnel =
                format!("tunnel.one = {{ ends = [\"g\", \"h\"], path = {{ {} }} }}\n", paths.join(", "));
            bound(&(links.clone() + &tunnel), traffic, true)
        };
        close(over(&["two"]), 2.0 * over(&["one"]));
        close(over(&["one", "two"]), 3.0 * over(&["one"]));
    }

    #[test]
    fn a_dead_link_carries_nothing() {
        let link = "link.l = { ends = [\"a\", \"b\"], channel = { rate = \"1 bit/s\", delay = \"1 s\", \
            rate-changes = [{ at = \"1 ns\", rate = \"0 bit/s\" }] } }";
        // It is open for a nanosecond: a part of a bit.
        let nothing = |traffic: &str| assert!(bound(link, traffic, true) < 1e-9);
        nothing("traffic.t.bulk = { from = \"a\", to = \"b\", size = \"1 kB\" }");
        nothing("traffic.t.bulk = { from = \"a\", to = \"b\" }");
    }
}
