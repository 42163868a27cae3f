//! Several transfers through one line with a drop-tail queue, each between two hosts of its own.
#![allow(missing_docs, unreachable_pub)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use base::{Duration, Instant, Packet, Rate, Rng, Serializer};
use longhaul_tcp::{ConnectionId, Event, Host, TcpConfig};

const PORT: u16 = 80;

/// A line that all senders share; acknowledgements take the latency alone.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub rate: Rate,
    /// Each way.
    pub latency: Duration,
    /// Packets that wait or are being sent.
    pub queue: usize,
    /// Part of the packets behind the queue that is lost.
    pub erasures: f64,
}

struct Flow {
    /// The sender, which opens, and the receiver.
    hosts: [Host; 2],
    ids: [Option<ConnectionId>; 2],
    begins: Instant,
    config: TcpConfig,
    received: u64,
}

pub struct Shared {
    pub now: Instant,
    line: Line,
    serializer: Serializer,
    queued: VecDeque<Instant>,
    flows: Vec<Flow>,
    wire: BinaryHeap<Reverse<(Instant, u64, usize, usize)>>,
    packets: std::collections::HashMap<u64, Packet>,
    count: u64,
    rng: Rng,
    pub dropped: u64,
}

impl Shared {
    pub fn new(line: Line, configs: &[&TcpConfig], seed: u64) -> Self {
        let mut rng = Rng::named(seed, "line");
        let flow = |(at, config): (usize, &&TcpConfig)| {
            let address = |end: u8| IpAddr::from([10, at as u8, 0, end]);
            let host = |end: u8| {
                Host::new(address(end), Rng::named(seed * 1000 + at as u64, &format!("host {end}")))
            };
            let mut hosts = [host(1), host(2)];
            hosts[1].listen(PORT, config).unwrap();
            let begins = Instant::ZERO + Duration::from_millis(rng.below(2000));
            Flow { hosts, ids: [None; 2], begins, config: (*config).clone(), received: 0 }
        };
        let flows = configs.iter().enumerate().map(flow).collect();
        Self {
            now: Instant::ZERO,
            line,
            serializer: Serializer::new(line.rate),
            queued: VecDeque::new(),
            flows,
            wire: BinaryHeap::new(),
            packets: std::collections::HashMap::new(),
            count: 0,
            rng: Rng::named(seed, "erasures"),
            dropped: 0,
        }
    }

    /// Bits per second that each flow's application got between two times, while time passes to the second.
    pub fn goodputs(&mut self, from: Duration, to: Duration) -> Vec<f64> {
        self.run(Instant::ZERO + from);
        let before: Vec<u64> = self.flows.iter().map(|flow| flow.received).collect();
        self.run(Instant::ZERO + to);
        let secs = to.saturating_sub(from).as_secs_f64();
        self.flows
            .iter()
            .zip(before)
            .map(|(flow, before)| (flow.received - before) as f64 * 8.0 / secs)
            .collect()
    }

    fn run(&mut self, end: Instant) {
        loop {
            let begins = self.flows.iter().filter(|flow| flow.ids[0].is_none()).map(|flow| flow.begins);
            let due = self.flows.iter().flat_map(|flow| flow.hosts.iter().filter_map(Host::poll_timeout));
            let arrives = self.wire.peek().map(|Reverse(it)| it.0);
            let next = begins.chain(due).chain(arrives).min().expect("flows never end");
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            self.begin_flows();
            while let Some(Reverse((at, number, flow, side))) = self.wire.peek().copied()
                && at <= self.now
            {
                self.wire.pop();
                let packet = self.packets.remove(&number).unwrap();
                let _ = self.flows[flow].hosts[side].handle_packet(self.now, &packet);
                self.drain(flow);
            }
            for at in 0..self.flows.len() {
                let is_due = |host: &Host| host.poll_timeout().is_some_and(|due| due <= self.now);
                if self.flows[at].hosts.iter().any(is_due) {
                    for side in 0..2 {
                        self.flows[at].hosts[side].handle_timeout(self.now);
                    }
                    self.drain(at);
                }
            }
        }
    }

    fn begin_flows(&mut self) {
        for at in 0..self.flows.len() {
            let flow = &mut self.flows[at];
            if flow.ids[0].is_none() && flow.begins <= self.now {
                let remote = SocketAddr::new(IpAddr::from([10, at as u8, 0, 2]), PORT);
                flow.ids[0] = Some(flow.hosts[0].connect(self.now, remote, &flow.config).unwrap());
                self.drain(at);
            }
        }
    }

    fn drain(&mut self, at: usize) {
        let now = self.now;
        let flow = &mut self.flows[at];
        while let Some((id, event)) = flow.hosts[1].poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                flow.ids[1] = Some(id);
            }
        }
        while flow.hosts[0].poll_event().is_some() {}
        if let Some(id) = flow.ids[1] {
            let received = &mut flow.received;
            let _ = flow.hosts[1].read_with(now, id, |bytes: &[u8]| *received += bytes.len() as u64);
        }
        if let Some(id) = flow.ids[0] {
            let _ = flow.hosts[0].write_with(now, id, 1 << 20, |bytes: &mut [u8]| bytes.fill(7));
        }
        for side in 0..2 {
            while let Some(packet) = self.flows[at].hosts[side].poll_transmit(now) {
                self.send(at, side, packet);
            }
        }
    }

    fn send(&mut self, flow: usize, side: usize, packet: Packet) {
        let mut leaves = self.now;
        if side == 0 {
            while self.queued.front().is_some_and(|&left| left <= self.now) {
                self.queued.pop_front();
            }
            if self.queued.len() >= self.line.queue {
                self.dropped += 1;
                return;
            }
            leaves = self.serializer.send(self.now, packet.len() as u64 * 8).end;
            self.queued.push_back(leaves);
            if self.rng.chance(self.line.erasures) {
                return;
            }
        }
        self.count += 1;
        self.packets.insert(self.count, packet);
        self.wire.push(Reverse((leaves + self.line.latency, self.count, flow, 1 - side)));
    }
}
