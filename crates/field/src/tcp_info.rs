//! What the kernel tells of a TCP connection: `TCP_INFO` of tcp(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// `struct tcp_info` as the kernel gave it; later kernels have more fields, at its end.
#[derive(Clone, Debug)]
pub struct TcpInfo(Vec<u8>);

/// Where `linux/tcp.h` has `tcpi_total_retrans`.
const TOTAL_RETRANS: usize = 100;
/// More than any kernel has.
const MOST: usize = 1024;

impl TcpInfo {
    /// That of a socket.
    ///
    /// # Errors
    /// The socket is no TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = vec![0; MOST];
        let mut len = MOST as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: the option writes at most `len` bytes to the buffer, which outlives the call.
        let result = unsafe {
            let info = bytes.as_mut_ptr().cast();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info, &raw mut len)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        bytes.truncate(len as usize);
        Ok(Self(bytes))
    }

    /// Segments sent again so far.
    #[must_use]
    pub fn total_retransmissions(&self) -> u64 {
        self.number(TOTAL_RETRANS, 4).unwrap_or(0)
    }

    /// The field of `len` bytes, 8 at most, at this offset of the structure; `None` if the kernel does not have it.
    #[must_use]
    pub fn number(&self, offset: usize, len: usize) -> Option<u64> {
        let field = self.0.get(offset..offset + len)?;
        let mut bytes = [0; 8];
        let start = if cfg!(target_endian = "big") { bytes.len().checked_sub(len)? } else { 0 };
        bytes.get_mut(start..start + len)?.copy_from_slice(field);
        Some(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};

    #[test]
    fn a_new_socket_is_closed() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let info = TcpInfo::of(&socket).unwrap();
        // TCP_CLOSE; nothing was sent.
        assert_eq!((info.number(0, 1), info.total_retransmissions()), (Some(7), 0));
        assert_eq!(info.number(MOST, 1), None);
        assert!(TcpInfo::of(Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap()).is_err());
    }
}
