//! IPv4 (RFC 791), with the ECN field of RFC 3168.

use core::net::Ipv4Addr;

use super::checksum::{self, Sum};
use super::ip::{Ecn, Protocol};
use super::{Malformed, be16, put16, require};

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// A checked IPv4 packet: the header and the total length fit the bytes. The header checksum is not verified here.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks `bytes`; anything past the total length (link padding) is left out of the view.
    ///
    /// # Errors
    /// Another version, a header length below 20 or beyond the total length, or fewer bytes than the total length.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        require(bytes, HEADER_LEN)?;
        if bytes[0] >> 4 != 4 {
            return Err(Malformed::Version(bytes[0] >> 4));
        }
        let header_len = usize::from(bytes[0] & 0xf) * 4;
        let total_len = usize::from(be16(bytes, 2));
        if header_len < HEADER_LEN {
            return Err(Malformed::Length(header_len));
        }
        if total_len < header_len {
            return Err(Malformed::Length(total_len));
        }
        require(bytes, total_len)?;
        Ok(Self(&bytes[..total_len]))
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15])
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[16], self.0[17], self.0[18], self.0[19])
    }

    /// The payload's protocol.
    #[must_use]
    #[inline]
    pub fn protocol(&self) -> Protocol {
        Protocol(self.0[9])
    }

    /// Time to live, in hops.
    #[must_use]
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.0[8]
    }

    /// Differentiated services code point, 6 bits.
    #[must_use]
    pub fn dscp(&self) -> u8 {
        self.0[1] >> 2
    }

    /// The ECN field.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.0[1])
    }

    /// The identification field.
    #[must_use]
    pub fn ident(&self) -> u16 {
        be16(self.0, 4)
    }

    /// Whether this is a fragment of a larger packet.
    #[must_use]
    #[inline]
    pub fn is_fragment(&self) -> bool {
        be16(self.0, 6) & 0x3fff != 0
    }

    /// Bytes of the header, options included.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.0[0] & 0xf) * 4
    }

    /// Whether the header checksum holds.
    #[must_use]
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        Sum::of(&self.0[..self.header_len()]).is_valid()
    }

    /// What the header carries.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..]
    }
}

/// An IPv4 header without options or fragmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// The payload's protocol.
    pub protocol: Protocol,
    /// Time to live, in hops.
    pub ttl: u8,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// The identification field.
    pub ident: u16,
    /// Bytes after the header, at most 65,515.
    pub payload_len: usize,
}

impl Repr {
    /// Reads a header; options are skipped.
    ///
    /// # Errors
    /// A header checksum that does not match.
    pub fn parse(view: &View<'_>) -> Result<Self, Malformed> {
        if !view.checksum_ok() {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            src: view.src(),
            dst: view.dst(),
            protocol: view.protocol(),
            ttl: view.ttl(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            ident: view.ident(),
            payload_len: view.payload().len(),
        })
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header, checksum included, to the first 20 bytes of `buffer`; "don't fragment" is always set.
    pub fn emit(&self, buffer: &mut [u8]) {
        debug_assert!(HEADER_LEN + self.payload_len <= 0xffff, "a payload of {} bytes", self.payload_len);
        let header = &mut buffer[..HEADER_LEN];
        header[0] = 0x45;
        header[1] = self.dscp << 2 | self.ecn.bits();
        put16(header, 2, (HEADER_LEN + self.payload_len) as u16);
        put16(header, 4, self.ident);
        put16(header, 6, 0x4000);
        header[8] = self.ttl;
        header[9] = self.protocol.0;
        put16(header, 10, 0);
        header[12..16].copy_from_slice(&self.src.octets());
        header[16..20].copy_from_slice(&self.dst.octets());
        let checksum = Sum::of(header).finish();
        put16(header, 10, checksum);
    }
}

/// Takes one hop off a checked packet's TTL and mends the checksum; the new TTL.
#[inline]
pub(super) fn decrement_ttl(packet: &mut [u8]) -> u8 {
    let old = be16(packet, 8);
    packet[8] = packet[8].saturating_sub(1);
    mend_checksum(packet, old, be16(packet, 8));
    packet[8]
}

/// Sets a checked packet's ECN field and mends the checksum.
pub(super) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let old = be16(packet, 0);
    packet[1] = packet[1] & !3 | ecn.bits();
    mend_checksum(packet, old, be16(packet, 0));
}

#[inline]
fn mend_checksum(packet: &mut [u8], old: u16, new: u16) {
    let checksum = checksum::update(be16(packet, 10), old, new);
    put16(packet, 10, checksum);
}
