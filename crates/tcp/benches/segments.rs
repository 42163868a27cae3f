//! Nanoseconds per operation of a host: `cargo bench -p longhaul-tcp`.
//!
//! One bulk transfer between two hosts over a perfect wire, in batches of what the window lets out; every kind of
//! operation is timed on its own. `idle` counts the bytes of established connections that do nothing any more;
//! `cargo bench -p longhaul-tcp -- idle` does that alone. `hostile` is what segments of strangers cost, alone in the same way.

#![allow(clippy::disallowed_methods)] // It measures real time.

mod hostile;
mod memory;

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration as Elapsed, Instant as Clock};

use base::units::Size;
use base::{Duration, Instant, Packet, Rng};
use longhaul_tcp::{Connection, ConnectionId, DelayedAcks, Event, Host, TcpConfig};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const ROUNDS: usize = 20_000;

#[derive(Default)]
struct Meter {
    time: Elapsed,
    count: u64,
}

impl Meter {
    fn measure<T>(&mut self, work: impl FnOnce() -> (T, u64)) -> T {
        let start = Clock::now();
        let (result, count) = work();
        self.time += start.elapsed();
        self.count += count;
        result
    }

    fn report(&self, what: &str) {
        println!(
            "{what:44} {:8.1} ns  ({} times)",
            self.time.as_nanos() as f64 / self.count as f64,
            self.count
        );
    }
}

fn drain(host: &mut Host, now: Instant, out: &mut Vec<Packet>) {
    while let Some(packet) = host.poll_transmit(now) {
        out.push(packet);
    }
}

fn connect(now: Instant, config: &TcpConfig) -> (Host, Host, ConnectionId, ConnectionId) {
    let mut client = Host::new(CLIENT, Rng::named(1, "client"));
    let mut server = Host::new(SERVER, Rng::named(1, "server"));
    server.listen(80, config).expect("the port is free");
    let from = client.connect(now, SocketAddr::new(SERVER, 80), config).expect("ports are free");
    let mut accepted = None;
    for _ in 0..3 {
        while let Some(packet) = client.poll_transmit(now) {
            server.handle_packet(now, &packet).expect("a segment of ours");
        }
        while let Some(packet) = server.poll_transmit(now) {
            client.handle_packet(now, &packet).expect("a segment of ours");
        }
        while let Some((id, event)) = server.poll_event() {
            accepted = accepted.or((event == Event::Accepted { local_port: 80 }).then_some(id));
        }
    }
    (client, server, from, accepted.expect("accepted"))
}

/// `drop_every`: this one of so many data packets is lost; zero loses none.
fn bulk(name: &str, mss: u16, drop_every: u64) {
    let config = TcpConfig::default().with(|it| {
        it.mss = Some(mss);
        it.window.receive_buffer = Size(64 * 1024);
    });
    let mut now = Instant::ZERO;
    let (mut client, mut server, from, to) = connect(now, &config);
    let (mut data, mut acks) = (Vec::new(), Vec::new());
    let [mut send, mut receive, mut ack, mut acked, mut write, mut read] = [(); 6].map(|()| Meter::default());
    let chunk = vec![7_u8; 64 * 1024];
    let mut sent = 0_u64;
    for round in 0..ROUNDS {
        now += Duration::from_millis(5);
        client.handle_timeout(now);
        server.handle_timeout(now);
        write.measure(|| {
            let taken = client.write(now, from, &chunk).expect("open");
            ((), taken.div_ceil(usize::from(mss)) as u64)
        });
        send.measure(|| {
            drain(&mut client, now, &mut data);
            ((), data.len() as u64)
        });
        now += Duration::from_millis(5);
        // Acknowledgements leave between arrivals, as on a wire.
        for packet in data.drain(..) {
            sent += 1;
            if drop_every > 0 && sent.is_multiple_of(drop_every) {
                continue;
            }
            acks.push(packet);
        }
        std::mem::swap(&mut data, &mut acks);
        for pair in data.chunks(2) {
            receive.measure(|| {
                for packet in pair {
                    let _ = black_box(server.handle_packet(now, packet));
                }
                ((), pair.len() as u64)
            });
            read.measure(|| {
                let read = server.read_with(now, to, |bytes| {
                    black_box(bytes);
                });
                black_box(read.is_ok());
                ((), pair.len() as u64)
            });
            ack.measure(|| {
                let before = acks.len();
                drain(&mut server, now, &mut acks);
                ((), (acks.len() - before) as u64)
            });
        }
        data.clear();
        while server.poll_event().is_some() {}
        if round % 2 == 0 {
            // An acknowledgement by itself.
            acked.measure(|| {
                for packet in &acks {
                    let _ = black_box(client.handle_packet(now, packet));
                }
                ((), acks.len() as u64)
            });
        } else {
            for packet in &acks {
                let _ = client.handle_packet(now, packet);
            }
        }
        acks.clear();
        while client.poll_event().is_some() {}
    }
    println!("{name}");
    write.report("  write, per segment");
    send.report("  poll_transmit of a data segment");
    receive.report("  handle_packet of a data segment");
    read.report("  read, per segment");
    ack.report("  poll_transmit of an acknowledgement");
    acked.report("  handle_packet of an acknowledgement");
    let statistics = client.connection(from).expect("alive").sender_statistics();
    println!(
        "  {} segments, {} retransmissions, {} timeouts, {} recoveries\n",
        statistics.data_segments_sent, statistics.retransmissions, statistics.timeouts, statistics.recoveries
    );
}

/// Bytes of an established connection that does nothing after it has sent or received 1 MiB: all that the heap gets back
/// when it goes, and its part of what then remains, the hosts' tables. Its data buffers are empty by then and hold nothing, for the last
/// write and the last read were of more than their smallest size; one that only small data pass keeps 4 KiB a direction.
fn idle(name: &str, config: &TcpConfig) {
    let mut now = Instant::ZERO;
    let (mut client, mut server, ..) = connect(now, config);
    let chunk = vec![7_u8; TRANSFER];
    let before = memory::held();
    for _ in 0..IDLE {
        let from = client.connect(now, SocketAddr::new(SERVER, 80), config).expect("ports are free");
        let (mut sent, mut received, mut to) = (0, 0, None);
        while received < TRANSFER {
            now += Duration::from_millis(5);
            client.handle_timeout(now);
            server.handle_timeout(now);
            sent += client.write(now, from, &chunk[sent..]).expect("open");
            while let Some(packet) = client.poll_transmit(now) {
                let _ = server.handle_packet(now, &packet);
            }
            while let Some((id, event)) = server.poll_event() {
                to = to.or((event == Event::Accepted { local_port: 80 }).then_some(id));
            }
            if let Some(to) = to {
                let arrived = received + server.connection(to).expect("open").readable();
                // The last read is a large one.
                if arrived == TRANSFER || arrived < TRANSFER - LAST_READ {
                    received += server.read_with(now, to, |_| {}).expect("open");
                }
            }
            while let Some(packet) = server.poll_transmit(now) {
                let _ = client.handle_packet(now, &packet);
            }
            while client.poll_event().is_some() {}
        }
    }
    for _ in 0..100 {
        now += Duration::from_millis(100);
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let Some(packet) = server.poll_transmit(now) {
            let _ = client.handle_packet(now, &packet);
        }
    }
    let busy = client.connections().filter(|(_, connection)| connection.flight_size() > 0).count();
    assert_eq!((busy, client.poll_timeout(), server.poll_timeout()), (0, None, None));
    let (alive, count) = (memory::held(), client.connections().count() + server.connections().count());
    for host in [&mut client, &mut server] {
        let ids: Vec<ConnectionId> = host.connections().map(|(id, _)| id).collect();
        for id in ids {
            let _ = host.abort(now, id);
        }
    }
    // Everything but the tables goes once they may no longer be asked for statistics.
    for _ in 0..2 {
        while client.poll_transmit(now).is_some() || server.poll_transmit(now).is_some() {}
        while client.poll_event().is_some() || server.poll_event().is_some() {}
        now += Duration::from_secs(600);
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    assert_eq!(client.connections().count() + server.connections().count(), 0);
    println!(
        "an idle connection, {name}: {} bytes, {} of them in place; and {} in its host's tables",
        (alive - memory::held()) / count,
        size_of::<Connection>(),
        (memory::held() - before) / count
    );
}

/// Connections of two hosts that are idle.
const IDLE: usize = 1000;
/// Bytes that each client sent.
const TRANSFER: usize = 1 << 20;
/// Bytes of these that the server takes at once.
const LAST_READ: usize = 128 << 10;

/// What a host with many connections costs per segment.
fn many(connections: usize) {
    let config = TcpConfig::default().with(|it| it.acknowledgements.delay = DelayedAcks::Off);
    let mut now = Instant::ZERO;
    let mut client = Host::new(CLIENT, Rng::named(1, "client"));
    let mut server = Host::new(SERVER, Rng::named(1, "server"));
    for port in 0..8 {
        server.listen(80 + port, &config).expect("the port is free");
    }
    let mut ids = Vec::new();
    let exchange = |client: &mut Host, server: &mut Host, now| {
        let mut packets = 0;
        loop {
            let mut moved = 0;
            while let Some(packet) = client.poll_transmit(now) {
                let _ = server.handle_packet(now, &packet);
                moved += 1;
            }
            while let Some(packet) = server.poll_transmit(now) {
                let _ = client.handle_packet(now, &packet);
                moved += 1;
            }
            packets += moved;
            if moved == 0 {
                return packets;
            }
        }
    };
    for at in 0..connections {
        let remote = SocketAddr::new(SERVER, 80 + (at % 8) as u16);
        ids.push(client.connect(now, remote, &config).expect("ports are free"));
        exchange(&mut client, &mut server, now);
    }
    while server.poll_event().is_some() {}
    let mut meter = Meter::default();
    for _ in 0..(400_000 / connections).max(1) {
        for id in &ids {
            now += Duration::from_micros(3);
            client.handle_timeout(now);
            server.handle_timeout(now);
            meter.measure(|| {
                let _ = client.write(now, *id, &[1; 100]);
                ((), exchange(&mut client, &mut server, now))
            });
        }
        while let Some((id, _)) = server.poll_event() {
            let _ = server.read_with(now, id, |bytes| {
                black_box(bytes);
            });
        }
    }
    meter.report(&format!("{connections} connections in turn, per packet both ways"));
}

fn main() {
    let alone = |name: &str| std::env::args().any(|argument| argument == name);
    let (only_idle, only_hostile) = (alone("idle"), alone("hostile"));
    if !only_idle && !only_hostile {
        bulk("500-byte MSS, no loss", 512, 0);
        bulk("1460-byte MSS, no loss", 1460, 0);
        bulk("500-byte MSS, every 100th lost", 512, 100);
        many(10);
        many(10_000);
    }
    if !only_idle {
        hostile::run();
    }
    if !only_hostile {
        idle("the default settings", &TcpConfig::default());
        idle("preset linux", &TcpConfig::preset("linux").expect("a preset"));
    }
}
