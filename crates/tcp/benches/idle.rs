//! Bytes of a connection that does nothing any more: `cargo bench -p longhaul-tcp --bench idle`.

mod memory;
mod pair;

use std::net::SocketAddr;

use base::{Duration, Instant};
use longhaul_tcp::{Connection, ConnectionId, Event, TcpConfig};
use pair::{SERVER, connect};

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

fn main() {
    idle("the default settings", &TcpConfig::default());
    idle("preset linux", &TcpConfig::preset("linux").expect("a preset"));
}
