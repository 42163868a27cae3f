//! A call to a peer, as its gateway would make it: whether anything answers, and whether both ends agree.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time;

use base::{Duration, Instant};
use rustix::net::sockopt;
use socket2::{Domain, Socket, Type};
use tunnel::path::{Address, Path};
use tunnel::session::{Ends, Event, Indices, Rejection, Session, Timing};

use super::Finding;
use crate::clock::Clock;
use crate::config::{Carrier, Config, Destination, InterfaceName, Peer, Udp};
use crate::random;

/// For an answer: several calls, over a slow path.
const PATIENCE: Duration = Duration::from_secs(8);
/// Headers of IP and UDP are counted in the path's largest packet.
const LARGEST: usize = 65_535;

/// Calls each peer that has an endpoint, over each path.
pub(super) fn examine(config: &Config) -> Vec<Finding> {
    config.peers.iter().flat_map(|peer| examine_peer(config, peer)).collect()
}

fn examine_peer(config: &Config, peer: &Peer) -> Vec<Finding> {
    let name = peer.name();
    let Some(endpoint) = &peer.endpoint else {
        return vec![Finding::Good(format!("peer {name}: it is to call; nothing can be tried from here"))];
    };
    let (mut found, carriers) = (Vec::new(), config.carriers());
    for (number, carrier) in carriers.iter().enumerate() {
        let who = match carriers.len() {
            1 => format!("peer {name}"),
            _ => format!("peer {name} over {}", config.path_name(number)),
        };
        let Carrier::Udp(udp) = carrier else {
            found.push(Finding::Good(format!(
                "{who}: a serial line has nobody to call before the gateway runs"
            )));
            continue;
        };
        let own = config.paths.get(number).and_then(|path| path.endpoint).map(Destination::Address);
        match reach(own.as_ref().unwrap_or(endpoint), udp) {
            Err(Unreached::Taken) => found.push(Finding::Advice(format!(
                "{who}: not called, since another program has the port of {}: a gateway under another name or without permission to ask it, \
                 perhaps, whose session a call would take away",
                udp.listen
            ))),
            Err(Unreached::Away(interface)) => found.push(Finding::Advice(format!(
                "{who}: not called, since there is no interface {} now; the gateway uses it as soon as there is",
                interface.as_str()
            ))),
            Ok((socket, to)) => {
                found.extend(mtu(&socket, to, udp.mtu.0));
                found.push(call(config, peer, &who, &socket, to));
            }
            Err(Unreached::Fault(reason)) => found.push(Finding::Fault(format!("{who}: {reason}"))),
        }
    }
    found
}

/// Why a peer cannot be called.
enum Unreached {
    /// Somebody has the gateway's port.
    Taken,
    /// There is no such interface.
    Away(InterfaceName),
    Fault(String),
}

impl From<String> for Unreached {
    fn from(reason: String) -> Self {
        Self::Fault(reason)
    }
}

/// A socket to the peer, from the gateway's port and over the only interface that it uses, if it is not to use any.
fn reach(endpoint: &Destination, udp: &Udp) -> Result<(UdpSocket, SocketAddr), Unreached> {
    let (listen, interface) = (udp.listen, udp.interface.as_ref());
    let to = match endpoint {
        Destination::Address(address) => *address,
        Destination::Name(name) => {
            let found = (name.name(), name.port()).to_socket_addrs();
            let found =
                found.map_err(|error| format!("the name {} cannot be found: {error}", name.name()))?;
            let family = |address: &SocketAddr| address.is_ipv4() == listen.is_ipv4();
            found.into_iter().find(family).ok_or_else(|| {
                format!(
                    "the name {} has no address of listen's family; allowed is one as {listen} has",
                    name.name()
                )
            })?
        }
    };
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = match (bound(listen, interface), interface) {
        (Err(error), _) if error.kind() == io::ErrorKind::AddrInUse => return Err(Unreached::Taken),
        (Err(error), Some(interface)) if error.raw_os_error() == Some(libc::ENODEV) => {
            return Err(Unreached::Away(interface.clone()));
        }
        // An address that is not there yet, or a port that takes a right.
        (socket, _) => socket.or_else(|_| bound((any, 0).into(), interface)),
    };
    let socket = socket.map_err(|error| format!("no UDP socket can be had: {error}"))?;
    socket.connect(to).map_err(|error| format!("there is no way to {to}: {error}; is the network up?"))?;
    Ok((socket, to))
}

/// A socket of that address, over this interface only.
fn bound(at: SocketAddr, interface: Option<&InterfaceName>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None)?;
    socket.bind_device(interface.map(|interface| interface.as_str().as_bytes()))?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

/// What the kernel knows of the path's largest packet.
fn mtu(socket: &UdpSocket, to: SocketAddr, configured: u32) -> Option<Finding> {
    let known = if to.is_ipv4() { sockopt::ip_mtu(socket) } else { sockopt::ipv6_mtu(socket) };
    let known = known.ok().filter(|known| *known > 0)?;
    (known < configured).then(|| {
        Finding::Advice(format!(
            "the way to {} carries {known} bytes at most, and [carrier.udp] mtu is {configured}: the gateway finds that out by itself, \
             a little later than with mtu = {known}",
            to.ip()
        ))
    })
}

/// Shakes hands, and says farewell.
fn call(config: &Config, peer: &Peer, who: &str, socket: &UdpSocket, to: SocketAddr) -> Finding {
    let keys = config.identity.load().and_then(|own| Ok((own, peer.load_preshared()?)));
    let (own, preshared) = match keys {
        Ok(keys) => keys,
        Err(error) => return Finding::Fault(error.to_string()),
    };
    let public = own.public();
    let ends = Ends { own: Arc::new(own), peer: peer.public_key, preshared };
    let place = tunnel::session::Peer { address: Some(Address::Udp(to)), pinned: false };
    let mut random = random::system();
    let indices = (Indices::new(&mut random), 0);
    let agreement = peer.link.protocol.agreement();
    let mut session = Session::new(ends, place, &agreement, Timing::default(), indices, random);
    match shake_hands(&mut session, socket, to) {
        Ok(after) => Finding::Good(format!(
            "{who} at {to}: it answers, after {} ms; keys and protocol agree",
            after.as_millis()
        )),
        Err(Trouble::Disagreement) => Finding::Fault(format!(
            "{who} at {to}: it runs another link protocol than {}; both ends need the same [link] protocol",
            peer.link.protocol.name()
        )),
        Err(Trouble::Secret) => Finding::Fault(format!(
            "{who} at {to}: its answer does not fit the keys; both ends need the same preshared-key, or none"
        )),
        Err(Trouble::Closed) => Finding::Fault(format!(
            "{who} at {to}: that port is refused: nothing listens there, or a firewall rejects it; is the gateway there running, and is this its port?"
        )),
        Err(Trouble::Silent) => Finding::Fault(format!(
            "{who} at {to}: no answer for {} s. Either the path is down, or a firewall drops UDP to port {}, or the gateway there \
             does not run, or it knows us by another key: its log then names this one, {public}; or it has another one itself than {}",
            PATIENCE.as_secs_f64(),
            to.port(),
            peer.public_key
        )),
        Err(Trouble::System(error)) => Finding::Fault(format!("{who} at {to}: {error}")),
    }
}

enum Trouble {
    Silent,
    Closed,
    Disagreement,
    Secret,
    System(io::Error),
}

/// Until there is a session: how long that took.
fn shake_hands(session: &mut Session, socket: &UdpSocket, to: SocketAddr) -> Result<Duration, Trouble> {
    let clock = Clock::start();
    let path = Path::from(Address::Udp(to));
    let mut buffer = vec![0; LARGEST];
    let mut refused = 0;
    while clock.now() < Instant::ZERO + PATIENCE {
        session.handle_timeout(clock.now());
        send(session, socket);
        let until = session.poll_timeout().unwrap_or(Instant::MAX).min(Instant::ZERO + PATIENCE);
        let wait = until.saturating_since(clock.now()).max(Duration::from_millis(1));
        let wait = Some(time::Duration::from_nanos(wait.as_nanos()));
        socket.set_read_timeout(wait).map_err(Trouble::System)?;
        match socket.recv(&mut buffer) {
            Ok(len) => match session.handle_datagram(clock.now(), path, &mut buffer[..len]) {
                Err(Rejection::Disagreement(_)) => return Err(Trouble::Disagreement),
                Err(Rejection::ForgedHandshake) => return Err(Trouble::Secret),
                _ => {}
            },
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                refused += 1;
                // Twice is no chance.
                if refused > 1 {
                    return Err(Trouble::Closed);
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(Trouble::System(error)),
        }
        while let Some(event) = session.poll_event() {
            if matches!(event, Event::Established { .. }) {
                session.say_farewell();
                send(session, socket);
                return Ok(clock.now().saturating_since(Instant::ZERO));
            }
        }
    }
    Err(if refused > 0 { Trouble::Closed } else { Trouble::Silent })
}

fn send(session: &mut Session, socket: &UdpSocket) {
    while let Some((_, datagram)) = session.poll_transmit() {
        // What does not get away is sent again, and what is wrong is heard when receiving.
        let _ = socket.send(&datagram);
    }
}
