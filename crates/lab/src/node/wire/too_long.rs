//! What a wire says of packets that are too long for it.
//!
//! A wire is no node and has no address. It speaks as a device that forwards without one.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Packet;
use base::wire::{icmp, ip};

/// RFC 7600, 4.8: the dummy address of ICMP errors by who has no IPv4 address.
const ROUTER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));
/// IPv6 has no such address. Ours: one that no host of a scenario has.
const ROUTER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0xffff, 0, 0, 0, 1));

/// The message to the source of `packet` that `mtu` bytes would pass, if it may be sent one.
pub(super) fn message(packet: &[u8], mtu: u16) -> Option<Packet> {
    let router = match ip::View::parse(packet).ok()? {
        ip::View::V4(_) => ROUTER_V4,
        ip::View::V6(_) => ROUTER_V6,
    };
    icmp::too_big(packet, router, mtu).map(|message| Packet::from_slice(&message))
}
