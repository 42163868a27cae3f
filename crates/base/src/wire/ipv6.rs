//! IPv6 (RFC 8200), with the ECN field of RFC 3168. Extension headers are not walked: a packet that has them
//! shows the first one as its protocol.

use core::net::Ipv6Addr;

use super::ip::{Ecn, Protocol};
use super::{Malformed, be16, be32, put16, put32, require};

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;

/// A checked IPv6 packet: the header and the payload length fit the bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks `bytes`; anything past the payload length is left out of the view.
    ///
    /// # Errors
    /// Another version, or fewer bytes than the header or the payload length need.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        require(bytes, HEADER_LEN)?;
        if bytes[0] >> 4 != 6 {
            return Err(Malformed::Version(bytes[0] >> 4));
        }
        let total_len = HEADER_LEN + usize::from(be16(bytes, 4));
        require(bytes, total_len)?;
        Ok(Self(&bytes[..total_len]))
    }

    /// Source address.
    #[must_use]
    pub fn src(&self) -> Ipv6Addr {
        address(self.0, 8)
    }

    /// Destination address.
    #[must_use]
    pub fn dst(&self) -> Ipv6Addr {
        address(self.0, 24)
    }

    /// The next header.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        Protocol(self.0[6])
    }

    /// Hop limit.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.0[7]
    }

    /// Differentiated services code point, 6 bits.
    #[must_use]
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// The ECN field.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class())
    }

    /// Flow label, 20 bits.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        be32(self.0, 0) & 0xf_ffff
    }

    /// What the header carries.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[HEADER_LEN..]
    }

    fn traffic_class(&self) -> u8 {
        (be16(self.0, 0) >> 4) as u8
    }
}

fn address(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    Ipv6Addr::from(octets)
}

/// An IPv6 header without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// The next header.
    pub protocol: Protocol,
    /// Hop limit.
    pub hop_limit: u8,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes after the header, at most 65,535.
    pub payload_len: usize,
}

impl Repr {
    /// Reads a header.
    #[must_use]
    pub fn parse(view: &View<'_>) -> Self {
        Self {
            src: view.src(),
            dst: view.dst(),
            protocol: view.protocol(),
            hop_limit: view.hop_limit(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            flow_label: view.flow_label(),
            payload_len: view.payload().len(),
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the first 40 bytes of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) {
        let header = &mut buffer[..HEADER_LEN];
        let traffic_class = u32::from(self.dscp << 2 | self.ecn.bits());
        put32(header, 0, 6 << 28 | traffic_class << 20 | self.flow_label & 0xf_ffff);
        put16(header, 4, self.payload_len as u16);
        header[6] = self.protocol.0;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.src.octets());
        header[24..40].copy_from_slice(&self.dst.octets());
    }
}

/// Takes one hop off a checked packet's hop limit; the new limit.
pub(super) fn decrement_hop_limit(packet: &mut [u8]) -> u8 {
    packet[7] = packet[7].saturating_sub(1);
    packet[7]
}

/// Sets a checked packet's ECN field.
pub(super) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    packet[1] = packet[1] & !0x30 | ecn.bits() << 4;
}
