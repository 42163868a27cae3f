//! Hearing when somebody else takes a device down and up, or our rules away.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkFlags;

use crate::netlink::{Netlink, index_of};
use crate::routing;

/// Hears when what was set is gone: a device that was down has lost its routes, and some managers of networks remove all rules that
/// are not theirs.
#[derive(Debug)]
pub struct Watch {
    kernel: Netlink,
    index: u32,
    is_up: bool,
}

/// `RTMGRP_IPV6_RULE`, which has no name in the kernel's headers: `RTNLGRP_IPV6_RULE` is 19.
const RTMGRP_IPV6_RULE: u32 = 1 << 18;

impl Watch {
    /// Watches the device `name`, which is up.
    ///
    /// # Errors
    /// No such device, or what the kernel says.
    pub fn new(name: &str) -> io::Result<Self> {
        let groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_RULE) as u32 | RTMGRP_IPV6_RULE;
        Ok(Self { index: index_of(name)?, kernel: Netlink::listen(groups)?, is_up: true })
    }

    /// Reads what has happened; whether something that was set may be gone, and can be set again.
    pub fn lost_something(&mut self) -> bool {
        // So much has happened that some of it was lost: as if the device had been down.
        let Some(events) = self.kernel.poll_events() else {
            self.is_up = true;
            return true;
        };
        let lost = events.iter().fold(false, |lost, event| lost | self.takes(event));
        lost && self.is_up
    }

    /// Whether this means that something is gone, or can be set again.
    fn takes(&mut self, event: &RouteNetlinkMessage) -> bool {
        match event {
            RouteNetlinkMessage::NewLink(link) if link.header.index == self.index => {
                let was_up = std::mem::replace(&mut self.is_up, link.header.flags.contains(LinkFlags::Up));
                self.is_up && !was_up
            }
            RouteNetlinkMessage::DelRule(rule) => routing::is_ours(rule),
            _ => false,
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    #[test]
    fn a_device_comes_up_when_it_was_down() {
        let mut watch = Watch { kernel: Netlink::open().unwrap(), index: 7, is_up: true };
        let message = |index: u32, flags: LinkFlags| {
            let mut link = LinkMessage::default();
            (link.header.index, link.header.flags) = (index, flags);
            RouteNetlinkMessage::NewLink(link)
        };
        let (up, down) = (LinkFlags::Up, LinkFlags::empty());
        assert!(!watch.takes(&message(7, up)) && !watch.takes(&message(7, down)));
        assert!(watch.takes(&message(7, up | LinkFlags::Broadcast)) && !watch.takes(&message(7, up)));
        assert!(!watch.takes(&message(8, down)) && !watch.takes(&message(7, up)), "another device");
        let RouteNetlinkMessage::NewLink(gone) = message(7, down) else { unreachable!() };
        assert!(!watch.takes(&RouteNetlinkMessage::DelLink(gone)) && !watch.takes(&message(7, up)));
    }
}
