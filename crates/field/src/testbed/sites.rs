//! The testbed's addresses, devices, routes and configuration files.

use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base::Duration;
use link::{Edge, LineLimits};
use serde::Serialize;

use super::namespaces::{Namespace, Room, ip};
use super::{Options, PathUsage, Paths, TestbedError};
use tunnel::config::LinkRate;
use tunnel::key::PrivateKey;
use tunnel::session::OVERHEAD;

/// The gateways' and the emulator's UDP port.
pub const GATEWAY_PORT: u16 = 51_900;
/// The TUN device of a gateway.
const TUN: &str = "sat0";
/// MTU of an Ethernet, in bytes.
pub const ETHERNET_MTU: u32 = 1500;

/// The link between the two gateways.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// All but its rate.
    pub config: tunnel::config::Link,
    /// Rate of the terminal's gateway: the channel's up rate.
    pub up: LinkRate,
    /// Rate of the hub's gateway: the channel's down rate.
    pub down: LinkRate,
}

impl Link {
    /// What keeps the protocol from filling the faster direction at this round trip, if something does.
    #[must_use]
    pub fn edge(&self, round_trip: Duration) -> Option<Edge> {
        // As the gateways' carrier has it: headers of IPv4 and UDP, and the session's.
        let frame_limit = ETHERNET_MTU as usize - 28 - OVERHEAD;
        let line = LineLimits::new(frame_limit, self.up.fixed().max(self.down.fixed()));
        self.config.protocol.edge(&line, round_trip)
    }
}

/// A part of a gateway's configuration file.
#[derive(Serialize)]
struct Site<'a> {
    link: tunnel::config::Link,
    pep: &'a pep::Config,
}

/// Devices and addresses, all but the TUN devices.
pub(super) fn connect(options: &Options) -> Result<(), TestbedError> {
    let ns = |room| options.name.namespace(room);
    for (left, right, device, peer) in [
        (Room::Host1, Room::Gateway1, "eth0", "lan0"),
        (Room::Gateway1, Room::Satellite, "wan0", "gw1"),
        (Room::Satellite, Room::Gateway2, "gw2", "wan0"),
        (Room::Gateway2, Room::Host2, "lan0", "eth0"),
    ] {
        pair(&ns(left), &ns(right), device, peer)?;
    }
    for number in 1..=options.paths.further.len() {
        connect_path(options, number)?;
    }
    // Hosts know what the link carries from the start, as path MTU discovery would tell them.
    let lan = |name, net, host| device(name, net, host, options.mtu);
    let wan = |name, net, host| device(name, net, host, options.carrier_mtu);
    ns(Room::Host1).ip_batch(&lan("eth0", "1", 2))?;
    ns(Room::Gateway1).ip_batch(&(lan("lan0", "1", 1) + &wan("wan0", "10", 1)))?;
    ns(Room::Satellite).ip_batch(&(wan("gw1", "10", 2) + &wan("gw2", "20", 2)))?;
    ns(Room::Gateway2).ip_batch(&(wan("wan0", "20", 1) + &lan("lan0", "2", 1)))?;
    ns(Room::Host2).ip_batch(&lan("eth0", "2", 2))?;
    ns(Room::Gateway1).enable_forwarding()?;
    ns(Room::Gateway2).enable_forwarding()
}

/// Two devices, each of which receives what the other sends.
fn pair(left: &Namespace, right: &Namespace, device: &str, peer: &str) -> Result<(), TestbedError> {
    let (left, right) = (left.name(), right.name());
    let joined = ["-n", left, "link", "add", device, "type", "veth", "peer", "name", peer, "netns", right];
    ip(joined).map(drop)
}

/// Devices and addresses of a further path.
fn connect_path(options: &Options, number: usize) -> Result<(), TestbedError> {
    let [gateway1, satellite, gateway2] =
        [Room::Gateway1, Room::Satellite, Room::Gateway2].map(|room| options.name.namespace(room));
    let (wan, near, far) = (format!("wan{number}"), format!("gw1-{number}"), format!("gw2-{number}"));
    let [terminal, hub] = nets(number).map(|net| net.to_string());
    pair(&gateway1, &satellite, &wan, &near)?;
    pair(&satellite, &gateway2, &far, &wan)?;
    let mtu = options.carrier_mtu;
    gateway1.ip_batch(&device(&wan, &terminal, 1, mtu))?;
    satellite.ip_batch(&(device(&near, &terminal, 2, mtu) + &device(&far, &hub, 2, mtu)))?;
    gateway2.ip_batch(&device(&wan, &hub, 1, mtu))
}

/// The networks of a path: between the terminal's gateway and the emulator, and between that and the hub's.
fn nets(number: usize) -> [usize; 2] {
    [10 + number, 20 + number]
}

fn device(device: &str, net: &str, host: u8, mtu: u32) -> String {
    format!(
        "address add 10.77.{net}.{host}/24 dev {device}\n\
         address add fd77:{net}::{host}/64 dev {device} nodad\n\
         link set {device} mtu {mtu} up\n"
    )
}

/// Where the hub's gateway listens, as the emulator's room reaches it.
pub(crate) fn hub() -> String {
    format!("10.77.20.1:{GATEWAY_PORT}")
}

pub(super) fn emulator_arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec!["emulate".to_owned()];
    match &options.link {
        Some(_) => arguments.extend(path_ports(0)),
        None => arguments.extend(tun_ports(0)),
    }
    arguments.extend(options.channel.iter().cloned());
    arguments
}

/// Those of a further path.
pub(super) fn path_arguments(options: &Options, number: usize) -> Vec<String> {
    let mut arguments = vec!["emulate".to_owned()];
    match &options.link {
        Some(_) => arguments.extend(path_ports(number)),
        None => arguments.extend(tun_ports(number)),
    }
    arguments.extend(options.paths.further[number - 1].channel.iter().cloned());
    arguments
}

/// The arguments that name an emulator's ports between gateways: A is the hub's side, B the terminal's.
fn path_ports(number: usize) -> impl Iterator<Item = String> {
    let [terminal, hub] = nets(number);
    let ports =
        [("--udp-a", hub, 2), ("--peer-a", hub, 1), ("--udp-b", terminal, 2), ("--peer-b", terminal, 1)];
    ports.into_iter().flat_map(|(name, net, host)| [name.to_owned(), at(net, host)])
}

/// The TUN devices of a path without gateways, the terminal's and the hub's; the hub's has the other's name, once it is there.
pub(crate) fn tuns(number: usize) -> [String; 2] {
    match number {
        0 => [TUN.to_owned(), "sat1".to_owned()],
        number => ["", "-hub"].map(|side| format!("path{number}{side}")),
    }
}

/// The arguments that name an emulator's TUN devices: A is the hub's side, B the terminal's.
fn tun_ports(number: usize) -> impl Iterator<Item = String> {
    let [terminal, hub] = tuns(number);
    [("--tun-a", hub), ("--tun-b", terminal)].into_iter().flat_map(|(name, tun)| [name.to_owned(), tun])
}

/// Where a gateway or an emulator listens.
fn at(net: usize, host: u8) -> String {
    format!("10.77.{net}.{host}:{GATEWAY_PORT}")
}

/// The terminal's paths, where there are several: each over its own interface, to the emulator behind it.
fn paths(options: &Options, first: LinkRate) -> String {
    let Paths { usage, further } = &options.paths;
    let usages = core::iter::once((first, usage)).chain(further.iter().map(|path| (path.rate, &path.usage)));
    let path = |(number, (rate, usage)): (usize, (LinkRate, &PathUsage))| {
        let usage = toml::to_string(usage).unwrap_or_default();
        format!(
            "[[path]]\ninterface = \"wan{number}\"\nendpoint = \"{}\"\nrate = \"{rate}\"\n{usage}\n",
            at(nets(number)[0], 2)
        )
    };
    if options.paths.further.is_empty() { String::new() } else { usages.enumerate().map(path).collect() }
}

pub(super) fn gateway_arguments(directory: &Path, room: Room) -> Vec<String> {
    let config = directory.join(format!("{}.toml", room.name()));
    vec!["gateway".to_owned(), "--config".to_owned(), config.display().to_string()]
}

pub(super) fn write_configurations(
    options: &Options,
    link: &Link,
    directory: &Path,
) -> Result<(), TestbedError> {
    let mut random = gateway::random::system();
    let keys = [(); 2].map(|()| PrivateKey::generate(&mut random));
    for (room, host, net, rate) in [(Room::Gateway1, 1, 10, link.up), (Room::Gateway2, 2, 20, link.down)] {
        // The terminal calls the hub.
        let endpoint =
            if host == 1 { format!("endpoint = \"10.77.10.2:{GATEWAY_PORT}\"\n") } else { String::new() };
        // Of several paths the hub knows nothing.
        let has_several = !options.paths.further.is_empty();
        let (paths, rate) = match (has_several, host) {
            (true, 1) => (paths(options, rate), LinkRate::Auto),
            (true, _) => (String::new(), LinkRate::Auto),
            (false, _) => (String::new(), rate),
        };
        let listen = if has_several { format!("0.0.0.0:{GATEWAY_PORT}") } else { at(net, 1) };
        let link = tunnel::config::Link { rate, ..link.config };
        let no_pep = pep::Config { enabled: false, ..pep::Config::default() };
        let site = Site { link, pep: options.pep.as_ref().unwrap_or(&no_pep) };
        let site = toml::to_string(&site).map_err(io::Error::other)?;
        let status = directory.join(format!("{}.status", room.name()));
        let text = format!(
            "[tun]\nname = \"{TUN}\"\naddresses = [\"10.77.30.{host}/30\", \"fd77:30::{host}/64\"]\n\
             routes = [\"10.77.{far}.0/24\", \"fd77:{far}::/64\"]\nmtu = {mtu}\n\n\
             [carrier.udp]\nlisten = \"{listen}\"\nmtu = {carrier_mtu}\n\n\
             {paths}{site}\n[identity]\nprivate-key = \"{key}\"\n\n\
             [[peer]]\npublic-key = \"{public_key}\"\n{endpoint}\n\
             [status]\nfile = {status:?}\ninterval = \"100 ms\"\n",
            far = 3 - host,
            key = *keys[host - 1].to_base64(),
            public_key = keys[2 - host].public(),
            mtu = options.mtu,
            carrier_mtu = options.carrier_mtu,
        );
        let path = directory.join(format!("{}.toml", room.name()));
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?
            .write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Moves the emulator's TUN devices to the gateways' namespaces and sets them up there.
pub(super) fn adopt_devices(options: &Options) -> Result<(), TestbedError> {
    (0..=options.paths.further.len()).try_for_each(|number| adopt(options, number))
}

fn adopt(options: &Options, number: usize) -> Result<(), TestbedError> {
    let satellite = options.name.namespace(Room::Satellite);
    let [tun, hub] = tuns(number);
    let (net, mtu) = (30 + number, options.mtu);
    for (room, from, host) in [(Room::Gateway1, &tun, 1), (Room::Gateway2, &hub, 2)] {
        let namespace = options.name.namespace(room);
        satellite.ip_batch(&format!("link set {from} netns {}\n", namespace.name()))?;
        let rename = if *from == tun { String::new() } else { format!("link set {from} name {tun}\n") };
        namespace.ip_batch(&format!(
            "{rename}link set {tun} mtu {mtu} up\n\
             address add 10.77.{net}.{host}/30 dev {tun}\n\
             address add fd77:{net}::{host}/64 dev {tun} nodad\n",
        ))?;
    }
    Ok(())
}

/// Where a path without gateways has its ends, the terminal's and the hub's.
pub(crate) fn ends(number: usize) -> [Ipv4Addr; 2] {
    [1, 2].map(|host| Ipv4Addr::new(10, 77, 30 + number as u8, host))
}

/// Routes from each host to its gateway and, where no daemon sets them, on to the other side.
pub(super) fn route(options: &Options) -> Result<(), TestbedError> {
    for (host, gateway, near, far) in
        [(Room::Host1, Room::Gateway1, 1, 2), (Room::Host2, Room::Gateway2, 2, 1)]
    {
        options.name.namespace(host).ip_batch(&format!(
            "route add default via 10.77.{near}.1\nroute add default via fd77:{near}::1\n"
        ))?;
        if options.link.is_none() {
            options.name.namespace(gateway).ip_batch(&format!(
                "route add 10.77.{far}.0/24 dev {TUN}\nroute add fd77:{far}::/64 dev {TUN}\n"
            ))?;
        }
    }
    Ok(())
}
