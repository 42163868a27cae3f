//! Setting a network device up through `rtnetlink(7)`: addresses, MTU, sizes of super-segments, up; and hearing when
//! somebody else takes it down and up.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use base::Prefix;

use super::check;

/// What a device is set to.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Its addresses.
    pub addresses: &'a [Prefix],
    /// Networks that it leads to.
    pub routes: &'a [Prefix],
    /// Largest super-segment, in bytes; `None` leaves the kernel's.
    pub gso_max_size: Option<u32>,
}

/// Gives the device `name` its settings and brings it up.
///
/// # Errors
/// No such device or right, or a value that the kernel refuses.
pub fn configure(name: &str, settings: &Settings<'_>) -> io::Result<()> {
    let index = index_of(name)?;
    let mut socket = Socket::open()?;
    socket.request(&link_message(index, settings))?;
    for prefix in settings.addresses {
        socket.request(&address_message(index, *prefix))?;
    }
    for network in settings.routes {
        socket.request(&route_message(index, *network))?;
    }
    Ok(())
}

/// Hears when a device comes up that was down: the kernel has dropped its routes meanwhile.
#[derive(Debug)]
pub struct Watch {
    socket: Socket,
    index: u32,
    is_up: bool,
}

impl Watch {
    /// Watches the device `name`, which is up.
    ///
    /// # Errors
    /// No such device, or what the kernel says.
    pub fn new(name: &str) -> io::Result<Self> {
        let (index, socket) = (index_of(name)?, Socket::open()?);
        // SAFETY: sockaddr_nl is plain old data, for which all zeros is a value.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is readable for its length during the call.
        check(unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(Self { socket, index, is_up: true })
    }

    /// Reads what has happened; whether the device has come up again, and still is.
    pub fn came_up(&mut self) -> bool {
        let (mut buffer, mut came_up) = ([0_u8; 8192], false);
        loop {
            let fd = self.socket.0.as_raw_fd();
            // SAFETY: the buffer is writable for its length during the call.
            let len = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
            match usize::try_from(len) {
                Ok(len) => came_up |= self.read(&buffer[..len]),
                // So much has happened that some of it was lost: as if it had been down.
                Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS) => {
                    (came_up, self.is_up) = (true, true);
                }
                Err(_) => return came_up && self.is_up,
            }
        }
    }

    /// Reads messages of the kernel.
    fn read(&mut self, mut messages: &[u8]) -> bool {
        let mut came_up = false;
        let word = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_ne_bytes)
        };
        while let Some(len) = word(messages, 0).filter(|len| *len as usize >= HEADER_LEN) {
            let (message, rest) = messages.split_at(messages.len().min((len as usize).next_multiple_of(4)));
            messages = rest;
            // struct ifinfomsg: family, pad, type, index, flags.
            let kind = message.get(4..6) == Some(&libc::RTM_NEWLINK.to_ne_bytes());
            if let (true, Some(index), Some(flags)) =
                (kind, word(message, HEADER_LEN + 4), word(message, HEADER_LEN + 8))
                && index == self.index
            {
                let was_up = std::mem::replace(&mut self.is_up, flags & libc::IFF_UP as u32 != 0);
                came_up |= self.is_up && !was_up;
            }
        }
        came_up
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.0.as_fd()
    }
}

/// Whether there is a device of this name in this network namespace.
#[must_use]
pub fn exists(name: &str) -> bool {
    index_of(name).is_ok()
}

fn index_of(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the name is a string that ends with a zero byte and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// `IFLA_GSO_MAX_SIZE`.
const IFLA_GSO_MAX_SIZE: u16 = 41;

fn link_message(index: u32, settings: &Settings<'_>) -> Message {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    // struct ifinfomsg: family, pad, type, index, flags, change.
    message.bytes.extend_from_slice(&[0; 4]);
    message.bytes.extend_from_slice(&index.to_ne_bytes());
    message.bytes.extend_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    message.bytes.extend_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    message.attribute(libc::IFLA_MTU, &settings.mtu.to_ne_bytes());
    if let Some(size) = settings.gso_max_size {
        message.attribute(IFLA_GSO_MAX_SIZE, &size.to_ne_bytes());
    }
    message
}

fn address_message(index: u32, prefix: Prefix) -> Message {
    let family = if prefix.address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    // struct ifaddrmsg: family, prefix length, flags, scope, index. No duplicate detection: the link is point to point.
    message.bytes.extend_from_slice(&[family as u8, prefix.len, libc::IFA_F_NODAD as u8, 0]);
    message.bytes.extend_from_slice(&index.to_ne_bytes());
    match prefix.address {
        IpAddr::V4(address) => {
            message.attribute(libc::IFA_LOCAL, &address.octets());
            message.attribute(libc::IFA_ADDRESS, &address.octets());
        }
        IpAddr::V6(address) => message.attribute(libc::IFA_ADDRESS, &address.octets()),
    }
    message
}

fn route_message(index: u32, network: Prefix) -> Message {
    let family = if network.address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    // struct rtmsg: family, destination and source length, TOS, table, protocol, scope, type, flags.
    message.bytes.extend_from_slice(&[family as u8, network.len, 0, 0]);
    let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
    message.bytes.extend_from_slice(&[table, protocol, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
    message.bytes.extend_from_slice(&[0; 4]);
    match network.masked() {
        IpAddr::V4(address) => message.attribute(libc::RTA_DST, &address.octets()),
        IpAddr::V6(address) => message.attribute(libc::RTA_DST, &address.octets()),
    }
    message.attribute(libc::RTA_OIF, &index.to_ne_bytes());
    message
}

/// A request under construction.
struct Message {
    bytes: Vec<u8>,
}

/// Bytes of `struct nlmsghdr`.
const HEADER_LEN: usize = 16;

impl Message {
    fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self { bytes }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let len = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes
    }
}

#[derive(Debug)]
struct Socket(OwnedFd);

impl Socket {
    fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        check(fd)?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends the request and waits for the kernel's acknowledgement, which it gives at once.
    fn request(&mut self, message: &Message) -> io::Result<()> {
        let bytes = message.finish();
        // SAFETY: the buffer is readable for its length during the call.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = [0_u8; 4096];
        // SAFETY: the buffer is writable for its length during the call.
        let len = unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if len < HEADER_LEN + 4 || kind != libc::NLMSG_ERROR as u16 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no acknowledgement from the kernel"));
        }
        // struct nlmsgerr starts with a negative error number, or zero.
        match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_comes_up_when_it_was_down() {
        let mut watch = Watch { socket: Socket::open().unwrap(), index: 7, is_up: true };
        let message = |kind: u16, index: u32, flags: u32| {
            let mut message = Message::new(kind, 0);
            message.bytes.extend_from_slice(&[0; 4]);
            message.bytes.extend_from_slice(&index.to_ne_bytes());
            message.bytes.extend_from_slice(&flags.to_ne_bytes());
            message.finish()
        };
        let (new, up) = (libc::RTM_NEWLINK, libc::IFF_UP as u32);
        let down_and_up = [message(new, 7, 0), message(new, 7, up | 2)].concat();
        assert!(
            !watch.read(&message(new, 7, up))
                && watch.read(&down_and_up)
                && !watch.read(&message(new, 7, up))
        );
        assert!(!watch.read(&message(new, 8, 0)) && !watch.read(&message(new, 7, up)), "another device");
        assert!(!watch.read(&message(libc::RTM_DELLINK, 7, 0)) && !watch.read(&message(new, 7, up)));
        assert!(!watch.read(&message(new, 7, 0)) && watch.read(&message(new, 7, up)));
        for len in 0..down_and_up.len() {
            watch.read(&down_and_up[..len]);
        }
        let endless = [0; HEADER_LEN];
        assert!(!watch.read(&endless));
    }

    #[test]
    fn a_network_is_its_prefix_alone() {
        let masked = |text: &str| text.parse::<Prefix>().unwrap().masked().to_string();
        assert_eq!(masked("10.77.2.9/24"), "10.77.2.0");
        assert_eq!(masked("10.77.2.9/32"), "10.77.2.9");
        assert_eq!(masked("10.77.2.9/0"), "0.0.0.0");
        assert_eq!(masked("fd77:2::9/64"), "fd77:2::");
        assert_eq!(masked("fd77:2::9/0"), "::");
    }
}
