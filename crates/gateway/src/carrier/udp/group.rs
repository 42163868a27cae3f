//! Sockets of several workers at one port (`SO_REUSEPORT`), among which the kernel chooses by the index that a datagram names.
//!
//! It runs a program of ours on each datagram: a classic BPF program (socket(7), `SO_ATTACH_REUSEPORT_CBPF`), which reads the datagram from
//! its first byte on and returns the number of a socket, in the order in which they were bound. It tells what
//! [`WorkerId::of_datagram`](tunnel::WorkerId::of_datagram) does. Datagrams that the kernel received together (GRO) go to the socket of the
//! first, so now and then one comes to another worker than its own.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use tunnel::session::layout::{CHALLENGE, RECEIVER_AT, RESPONSE, RESPONSE_RECEIVER_AT, SEALED};

use super::{UdpCarrier, bound};

impl UdpCarrier {
    /// So many carriers that listen at `local` together. The first gets what names no session.
    ///
    /// # Errors
    /// An address that is taken, by another group too, or can be nobody's.
    pub fn bind_group(local: SocketAddr, count: u32) -> io::Result<Vec<Self>> {
        // By itself, which fails if anybody is there: a second gateway of the same user could join the group otherwise.
        let local = bound(local, false)?.local_addr()?;
        let sockets = (0..count).map(|_| bound(local, true)).collect::<io::Result<Vec<_>>>()?;
        if let Some(first) = sockets.first() {
            attach(first, &program(count))?;
        }
        sockets.into_iter().map(Self::around).collect()
    }
}

/// Has the kernel choose among the sockets of a group.
fn attach(socket: &UdpSocket, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program and its instructions are readable for their lengths during the call, which copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The number of the socket for a datagram. What is shorter than the program reads is the first socket's, as reading beyond the end is 0.
fn program(count: u32) -> [libc::sock_filter; 10] {
    const BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let instruction =
        |code: u32, (jt, jf): (u8, u8), k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    [
        instruction(BYTE, (0, 0), 0),
        // Jumps count the instructions that they leave out.
        instruction(IS, (3, 0), SEALED.into()),
        instruction(IS, (2, 0), CHALLENGE.into()),
        instruction(IS, (3, 0), RESPONSE.into()),
        instruction(libc::BPF_RET | libc::BPF_K, (0, 0), 0),
        instruction(BYTE, (0, 0), RECEIVER_AT as u32),
        instruction(libc::BPF_JMP | libc::BPF_JA, (0, 0), 1),
        instruction(BYTE, (0, 0), RESPONSE_RECEIVER_AT as u32),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, (0, 0), count),
        instruction(libc::BPF_RET | libc::BPF_A, (0, 0), 0),
    ]
}

#[cfg(test)]
mod tests {
    use base::Duration;
    use tunnel::WorkerId;
    use tunnel::worker::MOST_WORKERS;

    use super::*;
    use crate::readiness::{Interest, wait};
    use std::os::fd::AsFd as _;

    /// Where a datagram arrives: the number of the carrier.
    fn arrives(carriers: &mut [UdpCarrier], sender: &UdpSocket, datagram: &[u8]) -> usize {
        sender.send_to(datagram, carriers[0].local_addr().unwrap()).unwrap();
        // Over loopback it is there when the call returns; a look at each is enough, again and again if it is not.
        for _ in 0..1000 {
            for (number, carrier) in carriers.iter_mut().enumerate() {
                let mut got = None;
                carrier.receive(|_, _, _, bytes| got = Some(bytes.to_vec())).unwrap();
                if let Some(got) = got {
                    assert_eq!(got, datagram);
                    return number;
                }
            }
            wait([Interest::read(carriers[0].as_fd())], Some(Duration::from_millis(1))).unwrap();
        }
        panic!("{datagram:?} arrives nowhere");
    }

    /// Of each kind, and of none.
    fn datagram(kind: u8, len: usize, index: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|at| at as u8 ^ 0xa5).collect();
        bytes[0] = kind;
        let at = if kind == RESPONSE { RESPONSE_RECEIVER_AT } else { RECEIVER_AT };
        bytes[at..at + 4].copy_from_slice(&index.to_le_bytes());
        bytes
    }

    #[test]
    fn each_datagram_comes_to_the_worker_that_its_index_names() {
        for (local, from) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
            for count in [2, 3, MOST_WORKERS] {
                let mut carriers = UdpCarrier::bind_group(local.parse().unwrap(), count).unwrap();
                let first = WorkerId::all(count).next().unwrap();
                let sender = UdpSocket::bind(from).unwrap();
                let mut reached = vec![0; count as usize];
                for index in (0..40_u32).map(|n| n.wrapping_mul(0x9e37_79b9)) {
                    for (kind, len) in [(RESPONSE, 148), (CHALLENGE, 84), (SEALED, 33), (SEALED, 1400)] {
                        let datagram = datagram(kind, len, index);
                        let number = arrives(&mut carriers, &sender, &datagram);
                        assert_eq!(number as u32, (index % 256) % count, "kind {kind}, index {index:#x}");
                        assert_eq!(number as u32, first.of_datagram(&datagram));
                        reached[number] += 1;
                    }
                }
                assert!(reached.iter().all(|times| *times > 0), "{reached:?}");
                let initiation = datagram(1, 208, 0x0101_0101);
                for junk in [&initiation[..], &[SEALED], &[RESPONSE; 8], &[0xff; 99], b"", b"\0"] {
                    assert_eq!(arrives(&mut carriers, &sender, junk), 0, "{junk:?}");
                    assert_eq!(first.of_datagram(junk), 0);
                }
            }
        }
    }

    /// Another gateway on the same port is told so, as with one worker, and does not take half of the datagrams.
    #[test]
    fn a_port_is_one_group_s() {
        let group = UdpCarrier::bind_group("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let local = group[0].local_addr().unwrap();
        assert_eq!(group[1].local_addr().unwrap(), local);
        let taken = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::AddrInUse;
        assert!(taken(UdpCarrier::bind_group(local, 2).map(drop)));
        assert!(taken(UdpCarrier::bind(local).map(drop)));
    }
}
