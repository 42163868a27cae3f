//! What a host takes for a segment: `cargo bench -p longhaul-tcp --bench segments`. Items are packets, acknowledgements among them.

mod hostile;
mod pair;

use std::hint::black_box;
use std::net::SocketAddr;

use base::units::Size;
use base::{Duration, Instant, Rng};
use divan::Bencher;
use divan::counter::ItemsCount;
use longhaul_tcp::{ConnectionId, DelayedAcks, Host, TcpConfig};
use pair::{CLIENT, SERVER, connect};

fn main() {
    divan::main();
}

/// A bulk transfer over a perfect wire, in batches of what the window lets out.
struct Transfer {
    now: Instant,
    client: Host,
    server: Host,
    from: ConnectionId,
    to: ConnectionId,
    /// This one of so many data segments is lost; none at zero.
    drop_every: u64,
    sent: u64,
}

impl Transfer {
    fn new(mss: u16, drop_every: u64) -> Self {
        let config = TcpConfig::default().with(|it| {
            it.mss = Some(mss);
            it.window.receive_buffer = Size(64 * 1024);
        });
        let now = Instant::ZERO;
        let (client, server, from, to) = connect(now, &config);
        Self { now, client, server, from, to, drop_every, sent: 0 }
    }

    /// Sends so many windows; packets that left, both ways.
    fn run(mut self, windows: usize) -> u64 {
        let (chunk, mut acknowledgements) = (vec![7; 64 * 1024], 0);
        for _ in 0..windows {
            self.now += Duration::from_millis(10);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.client.write(self.now, self.from, &chunk).expect("open");
            while let Some(packet) = self.client.poll_transmit(self.now) {
                self.sent += 1;
                if self.drop_every == 0 || !self.sent.is_multiple_of(self.drop_every) {
                    let _ = black_box(self.server.handle_packet(self.now, &packet));
                }
                let _ = black_box(self.server.read_with(self.now, self.to, |bytes| {
                    black_box(bytes);
                }));
            }
            while let Some(packet) = self.server.poll_transmit(self.now) {
                acknowledgements += 1;
                let _ = black_box(self.client.handle_packet(self.now, &packet));
            }
            while self.server.poll_event().is_some() || self.client.poll_event().is_some() {}
        }
        self.sent + acknowledgements
    }
}

/// Windows of a transfer.
const WINDOWS: usize = 1000;

#[divan::bench(args = [(512, 0), (1460, 0), (512, 100)], sample_count = 20)]
fn bulk(bencher: Bencher<'_, '_>, (mss, drop_every): (u16, u64)) {
    let segments = Transfer::new(mss, drop_every).run(WINDOWS);
    bencher
        .counter(ItemsCount::new(segments))
        .with_inputs(|| Transfer::new(mss, drop_every))
        .bench_local_values(|transfer| transfer.run(WINDOWS));
}

/// Hosts with many connections, and what moves when one of them has something to say.
struct Crowd {
    now: Instant,
    client: Host,
    server: Host,
    ids: Vec<ConnectionId>,
}

impl Crowd {
    fn new(connections: usize) -> Self {
        let config = TcpConfig::default().with(|it| it.acknowledgements.delay = DelayedAcks::Off);
        let mut crowd = Self {
            now: Instant::ZERO,
            client: Host::new(CLIENT, Rng::named(1, "client")),
            server: Host::new(SERVER, Rng::named(1, "server")),
            ids: Vec::new(),
        };
        for port in 0..8 {
            crowd.server.listen(80 + port, &config).expect("the port is free");
        }
        for at in 0..connections {
            let remote = SocketAddr::new(SERVER, 80 + (at % 8) as u16);
            crowd.ids.push(crowd.client.connect(crowd.now, remote, &config).expect("ports are free"));
            crowd.exchange();
        }
        while crowd.server.poll_event().is_some() {}
        crowd
    }

    /// Hands over packets until there are none; how many.
    fn exchange(&mut self) -> u64 {
        let (mut packets, mut before) = (0, u64::MAX);
        while before != packets {
            before = packets;
            while let Some(packet) = self.client.poll_transmit(self.now) {
                let _ = self.server.handle_packet(self.now, &packet);
                packets += 1;
            }
            while let Some(packet) = self.server.poll_transmit(self.now) {
                let _ = self.client.handle_packet(self.now, &packet);
                packets += 1;
            }
        }
        packets
    }

    /// Each connection sends a little; packets both ways.
    fn turn(&mut self) -> u64 {
        let mut packets = 0;
        for at in 0..self.ids.len() {
            self.now += Duration::from_micros(3);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            let _ = self.client.write(self.now, self.ids[at], &[1; 100]);
            packets += self.exchange();
        }
        while let Some((id, _)) = self.server.poll_event() {
            let _ = self.server.read_with(self.now, id, |bytes| {
                black_box(bytes);
            });
        }
        packets
    }
}

#[divan::bench(args = [10, 10_000])]
fn connections_in_turn(bencher: Bencher<'_, '_>, connections: usize) {
    let mut crowd = Crowd::new(connections);
    let packets = crowd.turn();
    bencher.counter(ItemsCount::new(packets)).bench_local(|| crowd.turn());
}
