//! The UDP carrier: datagrams in batches, with segmentation (GSO) and coalescing (GRO) by the kernel.

mod device;
mod group;
mod send;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use base::wire::ip::Ecn;
use link::Marks;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, SockRef, Socket, Type};

use tunnel::Sent;

use device::Device;
use send::Transmit;

/// A bound UDP socket and its receive buffers.
#[derive(Debug)]
pub struct UdpCarrier {
    socket: UdpSocket,
    state: UdpSocketState,
    /// The only interface that it uses, if it is not to use any.
    device: Option<Device>,
    /// Datagrams that the kernel takes in one call; 1 if it cannot cut.
    batch_limit: AtomicUsize,
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; RECEIVE_BUFFERS],
}

/// Buffers that one call fills, each with up to 64 KiB of coalesced datagrams. More would leave the cache.
const RECEIVE_BUFFERS: usize = 4;
const BUFFER_LEN: usize = 65_536;
/// Socket buffers: what arrives in 5 ms at 10 Gbit/s. The kernel may allow less.
pub(crate) const SOCKET_BUFFER: usize = 8 << 20;

impl UdpCarrier {
    /// A carrier that listens at `local`. If no device has that address yet, it hears once one has.
    ///
    /// # Errors
    /// An address that is taken, or can be nobody's.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        Self::around(bound(local, false)?)
    }

    fn around(socket: UdpSocket) -> io::Result<Self> {
        let state = prepared(&socket)?;
        Ok(Self {
            device: None,
            batch_limit: state.max_gso_segments().into(),
            socket,
            state,
            buffers: vec![vec![0; BUFFER_LEN]; RECEIVE_BUFFERS],
            metas: [RecvMeta::default(); RECEIVE_BUFFERS],
        })
    }

    /// Where the carrier listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that one [`UdpCarrier::send`] takes.
    #[must_use]
    pub fn batch_limit(&self) -> usize {
        self.batch_limit.load(Ordering::Relaxed)
    }

    /// Sends `bytes` as datagrams of `segment` bytes, the last one perhaps shorter, with these marks and from our address `from`;
    /// `None` leaves that to the kernel.
    pub fn send(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        marks: Marks,
        bytes: &[u8],
        segment: usize,
    ) -> Sent {
        if self.is_away() {
            return Sent::Refused;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            // Segmentation may have been turned off since the batch was begun.
            let len = rest.len().min(segment * self.batch_limit());
            let (bytes, later) = rest.split_at(len);
            let transmit = Transmit { to, from, marks, bytes, segment };
            match transmit.send(&self.socket) {
                Ok(()) => rest = later,
                Err(error) if transmit.is_segmented() && may_mean_no_segmentation(&error) => {
                    // It says so if one datagram by itself is taken.
                    let single = Transmit { bytes: &bytes[..segment], ..transmit };
                    if single.send(&self.socket).is_err() {
                        return outcome(&error);
                    }
                    self.batch_limit.store(1, Ordering::Relaxed);
                    rest = &rest[segment..];
                }
                Err(error) => return outcome(&error),
            }
        }
        Sent::Yes
    }

    /// Receives a batch and hands each datagram to `handle`, with where it comes from, which of our addresses it was sent to
    /// and its ECN field; whether there may be more.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn receive(
        &mut self,
        mut handle: impl FnMut(SocketAddr, Option<IpAddr>, Ecn, &mut [u8]),
    ) -> io::Result<bool> {
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] = {
            let mut buffers = self.buffers.iter_mut();
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().expect("as many as slices")))
        };
        let filled = match self.state.recv((&self.socket).into(), &mut slices, &mut self.metas) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // A former datagram met nobody, the peer being away: not this socket's trouble.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(true),
            Err(error) => return Err(error),
        };
        for (buffer, meta) in self.buffers.iter_mut().zip(&self.metas).take(filled) {
            let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
            if meta.len == 0 {
                handle(meta.addr, meta.dst_ip, ecn, &mut []);
            }
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                handle(meta.addr, meta.dst_ip, ecn, datagram);
            }
        }
        Ok(filled == RECEIVE_BUFFERS)
    }
}

/// Makes a socket ready for batches.
fn prepared(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    // `quinn-udp` 0.6 asks for time stamps, which nobody reads here, and has room for 96 bytes of control messages: with time
    // stamps the ECN field of coalesced datagrams, which comes last, would be cut off.
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0)?;
    enlarge(socket);
    Ok(state)
}

/// A socket at `local`, which others may share if they all say so.
fn bound(local: SocketAddr, is_shared: bool) -> io::Result<UdpSocket> {
    bound_to(local, None, is_shared)
}

/// As [`bound`], at this device only.
fn bound_to(local: SocketAddr, device: Option<&str>, is_shared: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if is_shared {
        set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    match local {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// Whether a device has this address, or it is none in particular.
#[must_use]
pub fn is_here(address: IpAddr) -> bool {
    // By a socket that insists on it.
    !UdpSocket::bind((address, 0)).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

impl AsFd for UdpCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a device or kernel might say that it cannot cut; a source address that is ours no more gives the same.
fn may_mean_no_segmentation(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

fn outcome(error: &io::Error) -> Sent {
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::WouldBlock => Sent::Full,
        Some(libc::ENOBUFS) => Sent::Busy,
        Some(libc::EMSGSIZE) => Sent::TooLong,
        _ => Sent::Refused,
    }
}

fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the value is an integer of the given length that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for large socket buffers; the kernel may allow less.
pub fn enlarge(socket: &UdpSocket) {
    let socket = SockRef::from(socket);
    // Smaller buffers only mean earlier drops, which the link counts.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
}

/// Datagrams that found the receive buffer full, as far as the kernel tells.
#[must_use]
pub fn overflows(socket: &UdpSocket) -> u64 {
    let mut info = [0_u32; MEMINFO_DROPS + 1];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the value is writable memory of the given length, and both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result == 0 { info[MEMINFO_DROPS].into() } else { 0 }
}

/// `SK_MEMINFO_DROPS`: the last of the numbers that `SO_MEMINFO` gives.
const MEMINFO_DROPS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_found_no_room_are_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        SockRef::from(&socket).set_recv_buffer_size(4096).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(overflows(&socket), 0);
        for _ in 0..100 {
            other.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        }
        assert!((50..100).contains(&overflows(&socket)), "{}", overflows(&socket));
    }

    #[test]
    fn what_the_kernel_says_tells_what_to_do() {
        for (errno, sent) in [
            (libc::EAGAIN, Sent::Full),
            (libc::ENOBUFS, Sent::Busy),
            (libc::EMSGSIZE, Sent::TooLong),
            (libc::ENETUNREACH, Sent::Refused),
        ] {
            assert_eq!(outcome(&io::Error::from_raw_os_error(errno)), sent);
        }
    }

    #[test]
    fn an_empty_datagram_is_one_too() {
        let mut carrier = UdpCarrier::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = carrier.local_addr().unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&[], to).unwrap();
        other.send_to(b"x", to).unwrap();
        let mut lens = Vec::new();
        while lens.len() < 2 {
            carrier.receive(|_, _, _, datagram| lens.push(datagram.len())).unwrap();
        }
        assert_eq!(lens, [0, 1]);
    }
}
