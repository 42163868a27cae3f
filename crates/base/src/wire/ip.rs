//! Either version of IP behind one view and one representation.

use core::net::IpAddr;

use super::{Malformed, ipv4, ipv6};

/// An IP protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

impl Protocol {
    /// Internet Control Message Protocol.
    pub const ICMP: Self = Self(1);
    /// Internet Control Message Protocol for IPv6.
    pub const ICMPV6: Self = Self(58);
    /// Transmission Control Protocol.
    pub const TCP: Self = Self(6);
    /// User Datagram Protocol.
    pub const UDP: Self = Self(17);
}

/// The ECN field (RFC 3168, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 01.
    Ect1,
    /// ECN-capable, codepoint 10.
    Ect0,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// From the lowest two bits of a traffic class octet.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// Whether a queue may mark instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A checked IP packet of either version.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Version 4.
    V4(ipv4::View<'a>),
    /// Version 6.
    V6(ipv6::View<'a>),
}

impl<'a> View<'a> {
    /// Checks `bytes` as the version that they claim.
    ///
    /// # Errors
    /// No bytes, an unknown version, or what that version's view refuses.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => ipv4::View::parse(bytes).map(Self::V4),
            Some(6) => ipv6::View::parse(bytes).map(Self::V6),
            Some(version) => Err(Malformed::Version(version)),
            None => Err(Malformed::Truncated { have: 0, need: ipv4::HEADER_LEN }),
        }
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub fn src(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.src().into(),
            Self::V6(view) => view.src().into(),
        }
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub fn dst(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.dst().into(),
            Self::V6(view) => view.dst().into(),
        }
    }

    /// The payload's protocol.
    #[must_use]
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::V4(view) => view.protocol(),
            Self::V6(view) => view.protocol(),
        }
    }

    /// Differentiated services code point, 6 bits.
    #[must_use]
    pub fn dscp(&self) -> u8 {
        match self {
            Self::V4(view) => view.dscp(),
            Self::V6(view) => view.dscp(),
        }
    }

    /// The ECN field.
    #[must_use]
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::V4(view) => view.ecn(),
            Self::V6(view) => view.ecn(),
        }
    }

    /// What the IP header carries.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::V4(view) => view.payload(),
            Self::V6(view) => view.payload(),
        }
    }
}

/// An IP header of the version of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Version 4.
    V4(ipv4::Repr),
    /// Version 6.
    V6(ipv6::Repr),
}

/// Hops that a packet of ours may take; RFC 1700's recommended default.
pub const DEFAULT_TTL: u8 = 64;

impl Repr {
    /// A header from `src` to `dst`, which are of one family.
    ///
    /// # Panics
    /// If one address is IPv4 and the other IPv6.
    #[must_use]
    #[inline]
    pub fn new(src: IpAddr, dst: IpAddr, protocol: Protocol, ecn: Ecn, payload_len: usize) -> Self {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Self::V4(ipv4::Repr {
                src,
                dst,
                protocol,
                ttl: DEFAULT_TTL,
                dscp: 0,
                ecn,
                ident: 0,
                payload_len,
            }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Self::V6(ipv6::Repr {
                src,
                dst,
                protocol,
                hop_limit: DEFAULT_TTL,
                dscp: 0,
                ecn,
                flow_label: 0,
                payload_len,
            }),
            _ => unreachable!("the addresses of one packet are of one family"),
        }
    }

    /// This header with `code` as its differentiated services code point, 6 bits.
    #[must_use]
    pub const fn with_dscp(mut self, code: u8) -> Self {
        match &mut self {
            Self::V4(ipv4::Repr { dscp, .. }) | Self::V6(ipv6::Repr { dscp, .. }) => *dscp = code,
        }
        self
    }

    /// Bytes of the header.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4(repr) => repr.header_len(),
            Self::V6(repr) => repr.header_len(),
        }
    }

    /// Writes the header to the start of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) {
        match self {
            Self::V4(repr) => repr.emit(buffer),
            Self::V6(repr) => repr.emit(buffer),
        }
    }
}

/// Bytes of the IP header of a packet, options included.
#[must_use]
pub fn header_len(packet: &View<'_>) -> usize {
    match packet {
        View::V4(view) => view.header_len(),
        View::V6(_) => ipv6::HEADER_LEN,
    }
}

/// Bytes of the IP header that a packet to `address` has.
#[must_use]
pub const fn header_len_for(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => ipv4::HEADER_LEN,
        IpAddr::V6(_) => ipv6::HEADER_LEN,
    }
}

/// Takes one hop off the packet, as a router does; the hops that are left.
///
/// # Errors
/// Bytes that are not an IP packet.
#[inline]
pub fn decrement_hops(packet: &mut [u8]) -> Result<u8, Malformed> {
    Ok(match View::parse(packet)? {
        View::V4(_) => ipv4::decrement_ttl(packet),
        View::V6(_) => ipv6::decrement_hop_limit(packet),
    })
}

/// Sets the packet's ECN field, as a marking queue does.
///
/// # Errors
/// Bytes that are not an IP packet.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Result<(), Malformed> {
    match View::parse(packet)? {
        View::V4(_) => ipv4::set_ecn(packet, ecn),
        View::V6(_) => ipv6::set_ecn(packet, ecn),
    }
    Ok(())
}
