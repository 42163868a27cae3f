//! What routers say of packets that they could not forward, as far as a transport must hear it (RFC 792; RFC 1191, 4; RFC 4443, 3.1
//! and 3.2).

use core::net::IpAddr;

use super::checksum::Sum;
use super::ip::{self, Protocol};
use super::{Malformed, be16, be32, require};
use crate::seq::SeqNum;

/// What a router says of a packet that it could not forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// Why.
    pub cause: Cause,
    /// Who had sent the packet.
    pub src: IpAddr,
    /// Whom it was for.
    pub dst: IpAddr,
    /// What it carried.
    pub protocol: Protocol,
    /// Its length in bytes, header included.
    pub len: usize,
    /// The first bytes of what it carried, 8 or more.
    pub start: &'a [u8],
}

/// Why a packet could not be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was too big for the next link, which takes so many bytes; zero from a router that does not say (RFC 1191, 5).
    TooBig(u32),
    /// There was no way to whom it was for, or nobody there.
    Unreachable,
}

impl<'a> Report<'a> {
    /// Reads the message in this packet; none if it is another one.
    ///
    /// # Errors
    /// A message that is cut off, a checksum that does not match, or a quoted packet of another version.
    pub fn parse(packet: &ip::View<'a>) -> Result<Option<Self>, Malformed> {
        let bytes = packet.payload();
        require(bytes, HEADER_LEN)?;
        let sum = match packet {
            ip::View::V4(_) => Sum::of(bytes),
            ip::View::V6(_) => {
                Sum::pseudo_header(packet.src(), packet.dst(), Protocol::ICMPV6.0, bytes.len())
                    .and(Sum::of(bytes))
            }
        };
        if !sum.is_valid() {
            return Err(Malformed::Checksum);
        }
        let quoted = &bytes[HEADER_LEN..];
        match (packet, bytes[0], bytes[1]) {
            (ip::View::V4(_), UNREACHABLE, FRAGMENTATION_NEEDED) => {
                Self::quoting_v4(Cause::TooBig(u32::from(be16(bytes, 6))), quoted).map(Some)
            }
            (ip::View::V4(_), UNREACHABLE, _) => Self::quoting_v4(Cause::Unreachable, quoted).map(Some),
            (ip::View::V6(_), PACKET_TOO_BIG, _) => {
                Self::quoting_v6(Cause::TooBig(be32(bytes, 4)), quoted).map(Some)
            }
            (ip::View::V6(_), UNREACHABLE_V6, _) => Self::quoting_v6(Cause::Unreachable, quoted).map(Some),
            _ => Ok(None),
        }
    }

    fn quoting_v4(cause: Cause, quoted: &'a [u8]) -> Result<Self, Malformed> {
        require(quoted, 1)?;
        if quoted[0] >> 4 != 4 {
            return Err(Malformed::Version(quoted[0] >> 4));
        }
        let header_len = 4 * usize::from(quoted[0] & 15);
        require(quoted, header_len.max(20) + QUOTED_LEN)?;
        let address = |at: usize| IpAddr::from([quoted[at], quoted[at + 1], quoted[at + 2], quoted[at + 3]]);
        let (protocol, len) = (Protocol(quoted[9]), usize::from(be16(quoted, 2)));
        Ok(Self {
            cause,
            src: address(12),
            dst: address(16),
            protocol,
            len,
            start: &quoted[header_len.max(20)..],
        })
    }

    fn quoting_v6(cause: Cause, quoted: &'a [u8]) -> Result<Self, Malformed> {
        require(quoted, 40 + QUOTED_LEN)?;
        if quoted[0] >> 4 != 6 {
            return Err(Malformed::Version(quoted[0] >> 4));
        }
        let address = |at: usize| {
            let octets: [u8; 16] = core::array::from_fn(|byte| quoted[at + byte]);
            IpAddr::from(octets)
        };
        let len = 40 + usize::from(be16(quoted, 4));
        let (src, dst) = (address(8), address(24));
        Ok(Self { cause, src, dst, protocol: Protocol(quoted[6]), len, start: &quoted[40..] })
    }
}

/// The IP packet by which the router with this address tells the source of `packet`, an IP packet, that it was too big for a link
/// that takes `mtu` bytes: "fragmentation needed" (RFC 1191, 4) or Packet Too Big (RFC 4443, 3.2).
///
/// None about what no error may be said of, so that errors do not breed: ICMP errors, fragments other than the first, and what is for
/// many or from nobody (RFC 1122, 3.2.2; RFC 4443, 2.4). None either if the packet is none or the router's address is of another
/// version.
#[must_use]
pub fn too_big(packet: &[u8], router: IpAddr, mtu: u16) -> Option<Vec<u8>> {
    let v4 = (UNREACHABLE, FRAGMENTATION_NEEDED);
    error(packet, router, v4, (PACKET_TOO_BIG, 0), u32::from(mtu))
}

/// The IP packet by which the router with this address tells the source of `packet`, an IP packet, that its
/// destination cannot be reached at present: "host unreachable" (RFC 792) or "address unreachable" (RFC 4443, 3.1).
/// None where [`too_big`] gives none.
#[must_use]
pub fn unreachable(packet: &[u8], router: IpAddr) -> Option<Vec<u8>> {
    error(packet, router, (UNREACHABLE, HOST), (UNREACHABLE_V6, ADDRESS_V6), 0)
}

/// An error about `packet`, of the kind and with the code that its version has, and with this word.
fn error(packet: &[u8], router: IpAddr, v4: (u8, u8), v6: (u8, u8), word: u32) -> Option<Vec<u8>> {
    let view = ip::View::parse(packet).ok()?;
    let (is_v4, kind) = (matches!(view, ip::View::V4(_)), view.payload().first().copied());
    if is_v4 != router.is_ipv4() || packet.len() < ip::header_len(&view) + QUOTED_LEN {
        return None;
    }
    let is_error = match view.protocol() {
        Protocol::ICMP => kind.is_none_or(|kind| !V4_QUERIES.contains(&kind)),
        Protocol::ICMPV6 => kind.is_none_or(|kind| kind < FIRST_INFORMATIONAL_V6),
        _ => false,
    };
    let is_fragment = is_v4 && be16(packet, 6) & FRAGMENT_OFFSET != 0;
    if is_error || is_fragment || !is_single(view.src()) || is_many(view.dst()) {
        return None;
    }
    let (protocol, (kind, code), most) = match is_v4 {
        true => (Protocol::ICMP, v4, LONGEST_V4),
        false => (Protocol::ICMPV6, v6, LONGEST_V6),
    };
    let header_len = ip::header_len_for(router);
    let quoted = packet.len().min(most - header_len - HEADER_LEN);
    let outer = ip::Repr::new(router, view.src(), protocol, ip::Ecn::NotEct, HEADER_LEN + quoted);
    let mut message = vec![0; header_len + HEADER_LEN];
    outer.emit(&mut message);
    (message[header_len], message[header_len + 1]) = (kind, code);
    message[header_len + 4..].copy_from_slice(&word.to_be_bytes());
    message.extend_from_slice(&packet[..quoted]);
    let icmp = &message[header_len..];
    let sum = match is_v4 {
        true => Sum::of(icmp),
        false => Sum::pseudo_header(router, view.src(), protocol.0, icmp.len()).and(Sum::of(icmp)),
    };
    message[header_len + 2..header_len + 4].copy_from_slice(&sum.finish().to_be_bytes());
    Some(message)
}

/// Whether there can be one host that has sent from this address.
fn is_single(address: IpAddr) -> bool {
    let is_loopback = address.is_ipv4() && address.is_loopback();
    !is_many(address) && !address.is_unspecified() && !is_loopback
}

fn is_many(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(core::net::Ipv4Addr::BROADCAST)
}

/// RFC 792, RFC 950: echo, timestamps, information and address masks, with their replies; all else is an error.
const V4_QUERIES: [u8; 8] = [0, 8, 13, 14, 15, 16, 17, 18];
/// RFC 4443 (2.1).
const FIRST_INFORMATIONAL_V6: u8 = 128;
/// The field of an IPv4 header that is zero in the first fragment.
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// Bytes of the message with its header: RFC 1812 (4.3.2.3).
const LONGEST_V4: usize = 576;
/// Likewise: RFC 4443 (2.4 c).
const LONGEST_V6: usize = 1280;
/// Bytes of the header.
const HEADER_LEN: usize = 8;
/// Bytes of the quoted packet's payload that are there at least (RFC 792).
const QUOTED_LEN: usize = 8;
/// RFC 792: destination unreachable.
const UNREACHABLE: u8 = 3;
/// RFC 792: fragmentation needed and "don't fragment" set.
const FRAGMENTATION_NEEDED: u8 = 4;
/// RFC 792: host unreachable.
const HOST: u8 = 1;
/// RFC 4443 (3.1): address unreachable.
const ADDRESS_V6: u8 = 3;
/// RFC 4443 (3.2).
const PACKET_TOO_BIG: u8 = 2;
/// RFC 4443 (3.1).
const UNREACHABLE_V6: u8 = 1;

/// Gives the TCP segment that is quoted in the ICMP message of a whole IP packet another sequence number, and the message its
/// checksum; false if there is none.
pub fn renumber_quoted(packet: &mut [u8], seq: SeqNum) -> bool {
    let Ok(view) = ip::View::parse(packet) else { return false };
    let Ok(Some(Report { start, protocol: Protocol::TCP, .. })) = Report::parse(&view) else { return false };
    let (src, dst, protocol) = (view.src(), view.dst(), view.protocol());
    let (payload, quoted) = (view.payload().len(), start.len());
    // Anything behind the packet is no part of it.
    let header = ip::header_len(&view);
    let message = &mut packet[header..header + payload];
    let at = payload - quoted + SEQUENCE_AT;
    message[at..at + 4].copy_from_slice(&seq.0.to_be_bytes());
    message[2..4].fill(0);
    let sum = match protocol {
        Protocol::ICMPV6 => Sum::pseudo_header(src, dst, protocol.0, payload).and(Sum::of(message)),
        _ => Sum::of(message),
    };
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    true
}

/// Where a TCP header has its sequence number.
const SEQUENCE_AT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ip::{Ecn, Repr};

    /// A packet of this host's that carries a TCP segment of 1440 bytes, and the message about it.
    fn message(v6: bool, mtu: u16) -> Vec<u8> {
        let (host, peer, router): (IpAddr, IpAddr, IpAddr) = match v6 {
            false => ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), [10, 0, 9, 9].into()),
            true => ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), "fd00::9".parse().unwrap()),
        };
        let protocol = if v6 { Protocol::ICMPV6 } else { Protocol::ICMP };
        let header = Repr::new(host, peer, Protocol::TCP, Ecn::NotEct, 1440);
        let mut quoted = vec![7; header.header_len() + 8];
        header.emit(&mut quoted);
        let mut icmp = if v6 { vec![2, 0, 0, 0, 0, 0, 0, 0] } else { vec![3, 4, 0, 0, 0, 0, 0, 0] };
        icmp[6..8].copy_from_slice(&mtu.to_be_bytes());
        icmp.extend(quoted);
        let sum = if v6 {
            Sum::pseudo_header(router, host, protocol.0, icmp.len()).and(Sum::of(&icmp))
        } else {
            Sum::of(&icmp)
        };
        icmp[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        let outer = Repr::new(router, host, protocol, Ecn::NotEct, icmp.len());
        let mut packet = vec![0; outer.header_len()];
        outer.emit(&mut packet);
        packet.extend(icmp);
        packet
    }

    #[test]
    fn both_versions_are_read() {
        for (v6, len) in [(false, 1460), (true, 1480)] {
            let packet = message(v6, 1280);
            let view = ip::View::parse(&packet).unwrap();
            let message = Report::parse(&view).unwrap().unwrap();
            assert_eq!(
                (message.cause, message.len, message.protocol),
                (Cause::TooBig(1280), len, Protocol::TCP)
            );
            assert_eq!((message.src, message.start), (view.dst(), &[7; 8][..]));
        }
    }

    #[test]
    fn a_quoted_segment_can_be_renumbered() {
        for v6 in [false, true] {
            let mut packet = message(v6, 1280);
            assert!(renumber_quoted(&mut packet, SeqNum(0x0102_0304)));
            let view = ip::View::parse(&packet).unwrap();
            let report = Report::parse(&view).unwrap().unwrap();
            assert_eq!(report.start, [7, 7, 7, 7, 1, 2, 3, 4]);
        }
        assert!(!renumber_quoted(&mut [0x45; 60], SeqNum(1)));
    }

    #[test]
    fn a_router_says_what_is_too_big() {
        for (v6, len) in [(false, 1460), (true, 1480)] {
            let about = message(v6, 9);
            let (router, host) = ip::View::parse(&about).map(|view| (view.src(), view.dst())).unwrap();
            let peer = router;
            let header = Repr::new(host, peer, Protocol::TCP, Ecn::NotEct, 1440);
            let mut packet = vec![7; header.header_len() + 1440];
            header.emit(&mut packet);
            let said = too_big(&packet, router, 1280).unwrap();
            let view = ip::View::parse(&said).unwrap();
            assert_eq!((view.src(), view.dst()), (router, host));
            assert_eq!(said.len(), if v6 { 1280 } else { 576 });
            let report = Report::parse(&view).unwrap().unwrap();
            assert_eq!(
                (report.cause, report.len, report.protocol, report.src, report.dst),
                (Cause::TooBig(1280), len, Protocol::TCP, host, peer)
            );
            // Nothing about errors, about the rest of a packet, or by a router of another kind.
            assert_eq!(too_big(&said, router, 1280), None);
            let other: IpAddr = if v6 { [192, 0, 0, 8].into() } else { "fd00::9".parse().unwrap() };
            assert_eq!(too_big(&packet, other, 1280), None);
            if !v6 {
                let mut echo = packet.clone();
                echo[7] = 5;
                assert_eq!(too_big(&echo, router, 1280), None, "a later fragment");
            }
        }
    }

    #[test]
    fn a_router_says_that_there_is_no_way() {
        for (from, to, router, is_said) in [
            ("10.0.0.1", "10.9.0.1", "10.9.0.1", true),
            ("fd00::1", "fd09::1", "fd09::1", true),
            ("10.0.0.1", "224.0.0.5", "10.0.0.9", false),
            ("10.0.0.1", "255.255.255.255", "10.0.0.9", false),
            ("0.0.0.0", "10.9.0.1", "10.9.0.1", false),
            ("127.0.0.1", "10.9.0.1", "10.9.0.1", false),
            ("224.0.0.5", "10.9.0.1", "10.9.0.1", false),
            ("fd00::1", "ff02::1", "fd09::1", false),
            ("::", "fd09::1", "fd09::1", false),
        ] {
            let [from, to, router] = [from, to, router].map(|it| it.parse::<IpAddr>().unwrap());
            let header = Repr::new(from, to, Protocol::UDP, Ecn::NotEct, 30);
            let mut packet = vec![7; header.header_len() + 30];
            header.emit(&mut packet);
            let said = unreachable(&packet, router);
            assert_eq!(said.is_some(), is_said, "{from} to {to}");
            let Some(said) = said else { continue };
            let view = ip::View::parse(&said).unwrap();
            let report = Report::parse(&view).unwrap().unwrap();
            assert_eq!((report.cause, report.src, report.dst), (Cause::Unreachable, from, to));
            assert_eq!(view.payload()[..2], if from.is_ipv4() { [3, 1] } else { [1, 3] });
            assert_eq!(view.payload()[4..8], [0; 4]);
        }
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_refused() {
        for v6 in [false, true] {
            let packet = message(v6, 1280);
            let mut damaged = packet.clone();
            *damaged.last_mut().unwrap() ^= 1;
            let view = ip::View::parse(&damaged).unwrap();
            assert_eq!(Report::parse(&view), Err(Malformed::Checksum));
        }
    }
}
