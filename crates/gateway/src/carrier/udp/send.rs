//! Sending with `sendmsg`: several datagrams in one call, and what their IP headers say.
//!
//! `quinn-udp`, which receives, sends with DSCP 0. The whole octet of DSCP and ECN field needs control messages of our own.

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use link::Marks;
use socket2::SockAddr;

/// Datagrams for one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmit<'a> {
    pub(super) to: SocketAddr,
    /// Which of our addresses they come from; `None` leaves that to the kernel.
    pub(super) from: Option<IpAddr>,
    pub(super) marks: Marks,
    pub(super) bytes: &'a [u8],
    /// Bytes of each datagram but the last, which may be shorter. The kernel cuts at this length (GSO), if there is more.
    pub(super) segment: usize,
}

impl Transmit<'_> {
    /// Whether the kernel has to cut.
    pub(super) const fn is_segmented(&self) -> bool {
        self.bytes.len() > self.segment
    }

    /// Hands the datagrams to the kernel: all of them, or none.
    pub(super) fn send(&self, socket: &UdpSocket) -> io::Result<()> {
        let to = SockAddr::from(self.to);
        let control = self.control();
        let mut part =
            libc::iovec { iov_base: self.bytes.as_ptr().cast_mut().cast(), iov_len: self.bytes.len() };
        // SAFETY: msghdr is plain old data, for which all zeros is a value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_name = to.as_ptr().cast_mut().cast();
        message.msg_namelen = to.len();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.words.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len as _;
        loop {
            // SAFETY: name, part and control messages are readable memory of the given lengths that outlives the call; sendmsg
            // writes to none of them.
            let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn control(&self) -> Control {
        let mut control = Control::default();
        let octet = libc::c_int::from(self.marks.traffic_class());
        // A socket of IPv6 sends to an IPv4-mapped address with IPv4, which heeds no options of IPv6.
        if self.to.ip().to_canonical().is_ipv4() {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, octet);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, octet);
        }
        match self.from.map(|from| from.to_canonical()) {
            Some(IpAddr::V4(from)) => control.push(
                libc::IPPROTO_IP,
                libc::IP_PKTINFO,
                libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                },
            ),
            Some(IpAddr::V6(from)) => {
                control.push(
                    libc::IPPROTO_IPV6,
                    libc::IPV6_PKTINFO,
                    libc::in6_pktinfo {
                        ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
                        ipi6_ifindex: 0,
                    },
                );
            }
            None => {}
        }
        if self.is_segmented() {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, self.segment as u16);
        }
        control
    }
}

/// Control messages, one behind the other.
#[derive(Debug, Default)]
struct Control {
    /// Words, so that the headers are aligned.
    words: [u64; CONTROL_WORDS],
    /// Bytes in use.
    len: usize,
}

/// The three longest that go together need 88 bytes.
const CONTROL_WORDS: usize = 12;

impl Control {
    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        // SAFETY: both only calculate.
        let (len, space) = unsafe {
            (libc::CMSG_LEN(size_of::<T>() as libc::c_uint), libc::CMSG_SPACE(size_of::<T>() as libc::c_uint))
        };
        assert!(self.len + space as usize <= size_of_val(&self.words), "no room for a control message");
        // SAFETY: there is room for header and value, as was checked. The header is aligned because the words are and all
        // messages before take a multiple of a word.
        unsafe {
            let header = self.words.as_mut_ptr().cast::<u8>().add(self.len).cast::<libc::cmsghdr>();
            (*header).cmsg_len = len as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.len += space as usize;
    }
}

#[cfg(test)]
mod tests;
