//! UDP (RFC 768; over IPv6, RFC 8200 section 8.1).

use core::net::IpAddr;

use super::checksum::Sum;
use super::ip::Protocol;
use super::{Malformed, be16, put16, require};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// A checked UDP datagram: the length field fits the bytes. The checksum is not verified here.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks `bytes`, the payload of an IP packet.
    ///
    /// # Errors
    /// Fewer bytes than the header or the length field need, or a length below 8.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        require(bytes, HEADER_LEN)?;
        let len = usize::from(be16(bytes, 4));
        if len < HEADER_LEN {
            return Err(Malformed::Length(len));
        }
        require(bytes, len)?;
        Ok(Self(&bytes[..len]))
    }

    /// Source port.
    #[must_use]
    pub fn src_port(&self) -> u16 {
        be16(self.0, 0)
    }

    /// Destination port.
    #[must_use]
    pub fn dst_port(&self) -> u16 {
        be16(self.0, 2)
    }

    /// Whether the checksum holds; one of zero means "none" and is allowed over IPv4 only.
    #[must_use]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        if be16(self.0, 6) == 0 {
            return src.is_ipv4();
        }
        Sum::pseudo_header(src, dst, Protocol::UDP.0, self.0.len()).and(Sum::of(self.0)).is_valid()
    }

    /// What the datagram carries.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[HEADER_LEN..]
    }
}

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl Repr {
    /// Reads a header.
    ///
    /// # Errors
    /// A checksum that does not match.
    pub fn parse(view: &View<'_>, src: IpAddr, dst: IpAddr) -> Result<Self, Malformed> {
        if !view.checksum_ok(src, dst) {
            return Err(Malformed::Checksum);
        }
        Ok(Self { src_port: view.src_port(), dst_port: view.dst_port() })
    }

    /// Bytes of the header.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the first 8 bytes of `datagram`, whose rest is the payload, checksum included.
    pub fn emit(&self, datagram: &mut [u8], src: IpAddr, dst: IpAddr) {
        put16(datagram, 0, self.src_port);
        put16(datagram, 2, self.dst_port);
        put16(datagram, 4, datagram.len() as u16);
        put16(datagram, 6, 0);
        let sum = Sum::pseudo_header(src, dst, Protocol::UDP.0, datagram.len()).and(Sum::of(datagram));
        // Zero means "no checksum": RFC 768 sends all ones instead.
        let checksum = match sum.finish() {
            0 => 0xffff,
            checksum => checksum,
        };
        put16(datagram, 6, checksum);
    }
}
