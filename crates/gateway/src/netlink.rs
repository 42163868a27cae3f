//! The kernel's devices, routes and rules: told, asked and watched through `rtnetlink(7)`.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A connection to the kernel.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// One that asks and is answered.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Has the kernel list only what was asked for. Where it cannot, more is listed, and looked through.
        let _ = socket.set_netlink_get_strict_chk(true);
        Ok(Self { socket })
    }

    /// One that hears what happens in these groups (`RTMGRP_`).
    pub(crate) fn listen(groups: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, groups))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    /// Has the kernel do, or list, what `message` says, and returns what it answers.
    pub(crate) fn request(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            for payload in payloads(&self.socket.recv_from_full()?.0) {
                match payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    _ => {}
                }
            }
        }
    }

    /// What has happened since it was last asked: nothing, a few events, or so many that some were lost.
    pub(crate) fn poll_events(&self) -> Option<Vec<RouteNetlinkMessage>> {
        let mut events = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => events.extend(payloads(&bytes).filter_map(|payload| match payload {
                    NetlinkPayload::InnerMessage(event) => Some(event),
                    _ => None,
                })),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return None,
                Err(_) => return Some(events),
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The messages in `bytes`, without those that say what nobody here knows.
fn payloads(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkPayload<RouteNetlinkMessage>> {
    let next = move || {
        let len = NetlinkBuffer::new_checked(bytes).ok()?.length() as usize;
        let (message, rest) = bytes.split_at(bytes.len().min(len.next_multiple_of(4)));
        bytes = rest;
        Some(NetlinkMessage::deserialize(message).ok().map(|message| message.payload))
    };
    std::iter::from_fn(next).flatten()
}

/// The number of a device of this network namespace.
pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the name is a string that ends with a zero byte and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Whether there is a device of this name in this network namespace.
#[must_use]
pub fn exists(name: &str) -> bool {
    index_of(name).is_ok()
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    #[test]
    fn what_is_cut_off_or_unknown_is_passed_over() {
        let message = |index: u32| {
            let mut link = LinkMessage::default();
            link.header.index = index;
            let mut message: NetlinkMessage<_> = RouteNetlinkMessage::NewLink(link).into();
            message.finalize();
            let mut bytes = vec![0; message.buffer_len()];
            message.serialize(&mut bytes);
            bytes
        };
        let index = |payload| match payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => link.header.index,
            other => panic!("{other:?}"),
        };
        let mut unknown = message(8);
        unknown[4..6].copy_from_slice(&999_u16.to_ne_bytes());
        let three = [message(7), unknown, message(9)].concat();
        assert_eq!(payloads(&three).map(index).collect::<Vec<_>>(), [7, 9]);
        for len in 0..three.len() {
            assert!(payloads(&three[..len]).count() <= 1, "{len} bytes");
        }
        assert_eq!(payloads(&[0; 64]).count(), 0, "a length of zero would never end");
    }

    #[test]
    fn a_device_has_a_number() {
        assert!(exists("lo") && index_of("lo").is_ok_and(|index| index > 0));
        assert!(!exists("no-such-device"));
    }
}
