//! Setting a network device up: addresses, MTU, sizes of super-segments, up.

use std::io;
use std::net::IpAddr;

use base::Prefix;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Netlink, index_of};

/// What a device is set to.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Its addresses.
    pub addresses: &'a [Prefix],
    /// Largest super-segment, in bytes; `None` leaves the kernel's.
    pub gso_max_size: Option<u32>,
}

impl Settings<'_> {
    /// Gives the device `name` its settings and brings it up.
    ///
    /// # Errors
    /// No such device or right, or a value that the kernel refuses.
    pub fn apply(&self, name: &str) -> io::Result<()> {
        let index = index_of(name)?;
        let kernel = Netlink::open()?;
        kernel.request(self.link(index), 0)?;
        for prefix in self.addresses {
            kernel.request(address(index, *prefix), NLM_F_CREATE | NLM_F_REPLACE)?;
        }
        Ok(())
    }

    fn link(&self, index: u32) -> RouteNetlinkMessage {
        let mut link = LinkMessage::default();
        link.header.index = index;
        (link.header.flags, link.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
        link.attributes.push(LinkAttribute::Mtu(self.mtu));
        link.attributes.extend(self.gso_max_size.map(LinkAttribute::GsoMaxSize));
        RouteNetlinkMessage::NewLink(link)
    }
}

fn address(index: u32, prefix: Prefix) -> RouteNetlinkMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(prefix.address);
    (message.header.prefix_len, message.header.index) = (prefix.len, index);
    // No duplicate detection: the link is point to point.
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes =
        vec![AddressAttribute::Local(prefix.address), AddressAttribute::Address(prefix.address)];
    RouteNetlinkMessage::NewAddress(message)
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
