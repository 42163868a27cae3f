//! What arrives on the loopback device, read with `recvmsg`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use base::wire::ip::Ecn;

use super::super::{UdpCarrier, may_mean_no_segmentation, set_option};
use super::*;
use crate::carrier::Sent;

/// A datagram, and what its IP header said.
#[derive(Debug, PartialEq, Eq)]
struct Arrival {
    from: SocketAddr,
    traffic_class: u8,
    bytes: Vec<u8>,
}

/// A socket that is told the traffic class of what it receives.
fn receiver(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1).unwrap();
    if socket.local_addr().unwrap().is_ipv6() {
        set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1).unwrap();
    }
    socket
}

fn receive(socket: &UdpSocket) -> Arrival {
    let (mut bytes, mut control) = (vec![0_u8; 65_536], [0_u64; 16]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: both are plain old data, for which all zeros is a value.
    let (mut message, mut from): (libc::msghdr, libc::sockaddr_storage) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: name, part and control messages are writable memory of the given lengths that outlives the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    bytes.truncate(usize::try_from(len).expect("a datagram comes within seconds"));
    // SAFETY: the kernel wrote the address and its length.
    let from = unsafe {
        SockAddr::new(
            mem::transmute::<libc::sockaddr_storage, socket2::SockAddrStorage>(from),
            message.msg_namelen,
        )
    };
    // SAFETY: the kernel wrote one control message, of which the first byte of the value is there in any case: an octet for
    // IPv4, an integer for IPv6.
    let traffic_class = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        match ((*header).cmsg_level, (*header).cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_TOS) => *libc::CMSG_DATA(header),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned() as u8
            }
            other => panic!("control message {other:?}"),
        }
    };
    Arrival { from: from.as_socket().unwrap(), traffic_class, bytes }
}

/// Where a carrier that listens at the first address reaches a socket that listens at the second, by which name.
struct Way {
    carrier: &'static str,
    receiver: &'static str,
    /// What the carrier sends to, if it is not the receiver's own address.
    to: Option<IpAddr>,
    from: Option<IpAddr>,
    /// What the receiver sees.
    seen: IpAddr,
}

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn ways() -> Vec<Way> {
    let mapped = |ip| match ip {
        IpAddr::V4(ip) => IpAddr::V6(Ipv4Addr::to_ipv6_mapped(&ip)),
        IpAddr::V6(_) => ip,
    };
    let v4 = |from, seen| Way { carrier: "0.0.0.0:0", receiver: "127.0.0.1:0", to: None, from, seen };
    let v6 = |from| Way { carrier: "[::]:0", receiver: "[::1]:0", to: None, from, seen: V6 };
    let both = |from, seen| Way { carrier: "[::]:0", to: Some(mapped(V4)), ..v4(from, seen) };
    vec![
        v4(None, V4),
        v4(Some(OTHER_V4), OTHER_V4),
        v6(None),
        v6(Some(V6)),
        both(None, V4),
        both(Some(OTHER_V4), OTHER_V4),
        both(Some(mapped(OTHER_V4)), OTHER_V4),
    ]
}

/// A carrier, a receiver and the address that the receiver has for the carrier.
fn open(way: &Way) -> (UdpCarrier, UdpSocket, SocketAddr) {
    let (carrier, receiver) =
        (UdpCarrier::bind(way.carrier.parse().unwrap()).unwrap(), receiver(way.receiver));
    let mut to = receiver.local_addr().unwrap();
    to.set_ip(way.to.unwrap_or(to.ip()));
    (carrier, receiver, to)
}

#[test]
fn datagrams_have_their_length_source_and_marks() {
    let bytes: Vec<u8> = (0..2500_u32).map(|n| n as u8).collect();
    for way in ways() {
        let (carrier, receiver, to) = open(&way);
        let seen = SocketAddr::new(way.seen, carrier.local_addr().unwrap().port());
        for marks in
            [Marks::new(46, Ecn::Ect0), Marks::new(0, Ecn::Ect1), Marks::new(63, Ecn::Ce), Marks::default()]
        {
            assert_eq!(carrier.send(to, way.from, marks, &bytes, 1000), Sent::Yes);
            for part in bytes.chunks(1000) {
                let expected =
                    Arrival { from: seen, traffic_class: marks.traffic_class(), bytes: part.to_vec() };
                assert!(receive(&receiver) == expected, "{:?} from {:?}, {marks:?}", way.to, way.from);
            }
        }
        assert!(carrier.batch_limit() > 1, "the kernel cuts");
    }
}

/// More datagrams than the kernel cuts, which says `EINVAL` to that, as other kernels and devices do to any.
#[test]
fn where_the_kernel_cannot_cut_datagrams_leave_one_by_one() {
    let (carrier, receiver, to) = open(&ways()[0]);
    let limit = carrier.batch_limit();
    carrier.batch_limit.store(100_000, std::sync::atomic::Ordering::Relaxed);
    let bytes = vec![7; 3000];
    let transmit = Transmit { to, from: None, marks: Marks::default(), bytes: &bytes, segment: 1 };
    assert!(limit < 3000 && may_mean_no_segmentation(&transmit.send(&carrier.socket).unwrap_err()));
    assert_eq!(carrier.send(to, None, Marks::new(1, Ecn::Ect0), &bytes[..200], 1), Sent::Yes);
    for _ in 0..200 {
        let Arrival { traffic_class, bytes, .. } = receive(&receiver);
        assert_eq!((traffic_class, bytes), (6, vec![7]));
    }
    assert_eq!(carrier.batch_limit(), 1);
    // An error of a single datagram is its own.
    assert_eq!(carrier.send(to, None, Marks::default(), &vec![0; 70_000], 70_000), Sent::TooLong);
}

/// The kernel says the same to a source address that is ours no more, and can cut as before.
#[test]
fn a_source_that_is_gone_does_not_end_segmentation() {
    let (carrier, _receiver, to) = open(&ways()[0]);
    let limit = carrier.batch_limit();
    let gone = Some([192, 0, 2, 1].into());
    assert_eq!(carrier.send(to, gone, Marks::default(), &[7; 3000], 1000), Sent::Refused);
    assert_eq!(carrier.batch_limit(), limit);
}

#[test]
fn the_ecn_field_is_received() {
    for way in ways() {
        let mut carrier = UdpCarrier::bind(way.receiver.parse().unwrap()).unwrap();
        let (other, mut to) =
            (UdpCarrier::bind(way.carrier.parse().unwrap()).unwrap(), carrier.local_addr().unwrap());
        to.set_ip(way.to.unwrap_or(to.ip()));
        let sent = [Ecn::Ce, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for ecn in sent {
            assert_eq!(other.send(to, way.from, Marks::new(46, ecn), &[0; 200], 100), Sent::Yes);
        }
        let mut received = Vec::new();
        while received.len() < 10 {
            carrier.receive(|_, _, ecn, _| received.push(ecn)).unwrap();
        }
        assert_eq!(received, sent.map(|ecn| [ecn; 2]).concat(), "{} {:?}", way.receiver, way.to);
    }
}
