//! Where packets enter and leave the emulated channel.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use base::Packet;

use super::UdpPort;
use gateway::carrier::udp::{enlarge, overflows};
use gateway::readiness::Interest;
use gateway::tun::{Tun, Written};

#[derive(Debug)]
pub(super) enum Port {
    Udp { socket: UdpSocket, header_len: usize, peer: Option<SocketAddr>, learns: bool, buffer: Vec<u8> },
    Tun(Tun),
}

impl Port {
    pub(super) fn udp(port: UdpPort) -> io::Result<Self> {
        let socket = UdpSocket::bind(port.listen)?;
        socket.set_nonblocking(true)?;
        enlarge(&socket);
        let header_len = if port.listen.is_ipv4() { 20 + 8 } else { 40 + 8 };
        Ok(Self::Udp {
            socket,
            header_len,
            peer: port.peer,
            learns: port.peer.is_none(),
            buffer: vec![0; 65_536],
        })
    }

    pub(super) fn tun(name: &str) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("TUN device {name}: {error}{}", Tun::remedy(&error)))
        };
        Tun::open(name, false).map(Self::Tun).map_err(named)
    }

    pub(super) fn interest(&self) -> Interest<'_> {
        match self {
            Self::Udp { socket, .. } => Interest::read(socket.as_fd()),
            Self::Tun(tun) => Interest::read(tun.as_fd()),
        }
    }

    /// Packets that found the receive buffer full.
    pub(super) fn overflows(&self) -> u64 {
        match self {
            Self::Udp { socket, .. } => overflows(socket),
            Self::Tun(_) => 0,
        }
    }

    /// A packet, if there is one, and the bytes of line that it occupies.
    pub(super) fn read(&mut self) -> io::Result<Option<(Packet, usize)>> {
        match self {
            Self::Tun(tun) => Ok(tun.read()?.map(|packet| {
                let len = packet.len();
                (packet, len)
            })),
            Self::Udp { socket, header_len, peer, learns, buffer } => match socket.recv_from(buffer) {
                Ok((len, from)) => {
                    if *learns {
                        *peer = Some(from);
                    }
                    Ok(Some((Packet::from_slice(&buffer[..len]), len + *header_len)))
                }
                // A former packet met nobody, the gateway being away.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// Whether the packet went out.
    pub(super) fn write(&mut self, packet: &[u8]) -> bool {
        match self {
            Self::Tun(tun) => tun.write(packet) == Written::Yes,
            Self::Udp { socket, peer, .. } => peer.is_some_and(|peer| socket.send_to(packet, peer).is_ok()),
        }
    }
}
