//! Two hosts with a connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Instant, Rng};
use longhaul_tcp::{ConnectionId, Event, Host, TcpConfig};

pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Both hosts, and the connection as each of them has it.
pub(crate) fn connect(now: Instant, config: &TcpConfig) -> (Host, Host, ConnectionId, ConnectionId) {
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
