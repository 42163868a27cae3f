//! Super-segments: the kernel's virtio header, and the compact metadata that crosses the link instead.
//!
//! A packet on the link is plain IP (first nibble 4 or 6) or starts with eight bytes of metadata, whose
//! first nibble is 0:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind: 1 TCP/IPv4, 2 TCP/IPv6, 3 UDP; bit 3: the first segment has CWR set |
//! | 1 | offset of the checksum field from where its sum starts |
//! | 2-3 | payload of each segment (little-endian, as all here) |
//! | 4-5 | length of the headers that each segment repeats |
//! | 6-7 | where the checksum's sum starts |
//!
//! A super-segment's transport checksum is always partial (`NEEDS_CSUM`): the kernel that cuts it completes it.

use base::wire::checksum::Sum;

/// Bytes of metadata before a super-segment.
pub const METADATA_LEN: usize = 8;
/// Bytes of `struct virtio_net_hdr` (Virtio 1.2, 5.1.6), the kernel's form of it.
pub const VNET_HEADER_LEN: usize = 10;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`.
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// What a packet needs besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `VIRTIO_NET_HDR_GSO_*` without the ECN bit.
    gso_type: u8,
    ecn: bool,
    gso_size: u16,
    header_len: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

/// The IP packet behind a super-segment's metadata; any other packet as it is.
pub fn ip_packet_mut(packet: &mut [u8]) -> &mut [u8] {
    match packet.first().map(|first| first >> 4) {
        Some(0) => packet.get_mut(METADATA_LEN..).unwrap_or_default(),
        _ => packet,
    }
}

/// What the kernel handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// One packet; with metadata if its checksum is to be completed.
    Single(Option<Metadata>),
    /// Several segments in one.
    SuperSegment(Metadata),
    /// Its header contradicts itself or the packet.
    Unusable,
}

/// Tells what a packet of `len` bytes is that came with this header.
#[must_use]
pub fn read(header: &[u8; VNET_HEADER_LEN], len: usize) -> Read {
    match (header[0] & NEEDS_CSUM != 0, header[1] & !GSO_ECN) {
        (false, GSO_NONE) => Read::Single(None),
        // A super-segment's checksum is always partial.
        (false, _) => Read::Unusable,
        (true, kind) => match Metadata::from_vnet_header(header, len) {
            Some(metadata) if kind == GSO_NONE => Read::Single(Some(metadata)),
            Some(metadata) => Read::SuperSegment(metadata),
            None => Read::Unusable,
        },
    }
}

impl Metadata {
    /// The metadata of a packet of `len` bytes that the kernel handed over with this header; `None` if its
    /// checksum is not partial, or the header makes no sense.
    #[must_use]
    pub fn from_vnet_header(header: &[u8; VNET_HEADER_LEN], len: usize) -> Option<Self> {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        if header[0] & NEEDS_CSUM == 0 {
            return None;
        }
        let metadata = Self {
            gso_type: header[1] & !GSO_ECN,
            ecn: header[1] & GSO_ECN != 0,
            header_len: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        };
        metadata.fits(len).then_some(metadata)
    }

    /// The metadata of an IP packet with TCP segments of `size` bytes in a row, and a partial checksum; `None` if it is no such
    /// packet.
    #[must_use]
    pub fn of_train(packet: &[u8], size: u16) -> Option<Self> {
        let (gso_type, start) = match packet.first()? >> 4 {
            4 => (GSO_TCPV4, usize::from(packet[0] & 0xf) * 4),
            6 => (GSO_TCPV6, 40),
            _ => return None,
        };
        let metadata = Self {
            gso_type,
            ecn: false,
            gso_size: size,
            header_len: (start + usize::from(*packet.get(start + 12)? >> 4) * 4) as u16,
            checksum_start: start as u16,
            checksum_offset: 16,
        };
        metadata.fits(packet.len()).then_some(metadata)
    }

    /// The header that hands the packet to the kernel.
    #[must_use]
    pub fn to_vnet_header(self) -> [u8; VNET_HEADER_LEN] {
        let mut header = [0; VNET_HEADER_LEN];
        header[0] = NEEDS_CSUM;
        header[1] = self.gso_type | if self.ecn { GSO_ECN } else { 0 };
        let words = [self.header_len, self.gso_size, self.checksum_start, self.checksum_offset];
        for (to, word) in header[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        header
    }

    /// Writes a super-segment's metadata to the first [`METADATA_LEN`] bytes of `buffer`.
    pub fn emit(self, buffer: &mut [u8]) {
        let kind = match self.gso_type {
            GSO_TCPV4 => 1,
            GSO_TCPV6 => 2,
            _ => 3,
        };
        buffer[0] = kind | u8::from(self.ecn) << 3;
        buffer[1] = self.checksum_offset as u8;
        buffer[2..4].copy_from_slice(&self.gso_size.to_le_bytes());
        buffer[4..6].copy_from_slice(&self.header_len.to_le_bytes());
        buffer[6..8].copy_from_slice(&self.checksum_start.to_le_bytes());
    }

    /// The metadata and the IP bytes of a packet from the link; `None` if they contradict each other.
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (fields, body) = packet.split_first_chunk::<METADATA_LEN>()?;
        let word = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
        let (gso_type, version) = match fields[0] & !8 {
            1 => (GSO_TCPV4, 4),
            2 => (GSO_TCPV6, 6),
            3 => (GSO_UDP_L4, body.first()? >> 4),
            _ => return None,
        };
        let metadata = Self {
            gso_type,
            ecn: fields[0] & 8 != 0,
            gso_size: word(2),
            header_len: word(4),
            checksum_start: word(6),
            checksum_offset: u16::from(fields[1]),
        };
        let is_version = body.first()? >> 4 == version && matches!(version, 4 | 6);
        (is_version && metadata.fits(body.len())).then_some((metadata, body))
    }

    /// Completes the checksum of a single packet: its field holds the pseudo-header's sum.
    pub fn complete_checksum(self, packet: &mut [u8]) {
        let start = usize::from(self.checksum_start);
        let at = start + usize::from(self.checksum_offset);
        let sum = match Sum::of(&packet[start..]).finish() {
            // Zero means "no checksum" to UDP (RFC 768); its complement is as right for either protocol.
            0 => 0xffff,
            sum => sum,
        };
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Whether every place that the fields name lies inside a packet of `len` bytes.
    fn fits(self, len: usize) -> bool {
        let checksum_end = usize::from(self.checksum_start) + usize::from(self.checksum_offset) + 2;
        let gso = match self.gso_type {
            GSO_NONE => true,
            GSO_TCPV4 | GSO_TCPV6 | GSO_UDP_L4 => {
                self.gso_size > 0 && usize::from(self.header_len) < len && self.checksum_offset < 256
            }
            _ => false,
        };
        gso && checksum_end <= len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::wire::{ip, udp};
    use proptest::prelude::*;

    fn tcp4() -> Metadata {
        Metadata {
            gso_type: GSO_TCPV4,
            ecn: true,
            gso_size: 1348,
            header_len: 52,
            checksum_start: 20,
            checksum_offset: 16,
        }
    }

    #[test]
    fn a_super_segment_keeps_its_metadata_across_the_link() {
        let header = tcp4().to_vnet_header();
        assert_eq!(Metadata::from_vnet_header(&header, 60_000), Some(tcp4()));
        let mut packet = vec![0x45; METADATA_LEN + 4000];
        tcp4().emit(&mut packet);
        assert_eq!(packet[0] >> 4, 0, "told apart from IP by its first nibble");
        assert_eq!(Metadata::parse(&packet), Some((tcp4(), &packet[METADATA_LEN..])));
    }

    #[test]
    fn each_kind_of_super_segment_crosses_the_link() {
        for (gso_type, first) in
            [(GSO_TCPV4, 0x45), (GSO_TCPV6, 0x60), (GSO_UDP_L4, 0x45), (GSO_UDP_L4, 0x60)]
        {
            let metadata = Metadata { gso_type, ecn: false, ..tcp4() };
            let mut packet = vec![first; METADATA_LEN + 4000];
            metadata.emit(&mut packet);
            assert_eq!(Metadata::parse(&packet), Some((metadata, &packet[METADATA_LEN..])), "{first:x}");
        }
    }

    #[test]
    fn a_train_of_segments_is_described_by_its_headers() {
        let train = |first, start: u16, tcp_len| {
            let mut packet = vec![0x11; 3000];
            packet[0] = first;
            packet[usize::from(start) + 12] = tcp_len;
            let headers = start + u16::from(tcp_len >> 4) * 4;
            let described = Metadata::of_train(&packet, 1348);
            assert_eq!(Metadata::of_train(&packet[..headers.into()], 1348), None, "nothing but headers");
            described.map(|train| (train.gso_type, train.header_len, train.checksum_start))
        };
        // With options of IPv4, and of TCP; the low bits say something else.
        assert_eq!(train(0x46, 24, 0x81), Some((GSO_TCPV4, 56, 24)));
        assert_eq!(train(0x61, 40, 0x5f), Some((GSO_TCPV6, 60, 40)));
        assert_eq!(train(0x51, 40, 0x5f), None, "neither IPv4 nor IPv6");
        assert_eq!(Metadata::of_train(&[], 1348), None);
    }

    #[test]
    fn contradictions_are_refused() {
        let mut packet = vec![0x45; METADATA_LEN + 100];
        tcp4().emit(&mut packet);
        assert_eq!(Metadata::parse(&packet[..METADATA_LEN + 30]), None, "headers longer than the packet");
        assert_eq!(Metadata::parse(&packet[..5]), None);
        packet[METADATA_LEN] = 0x60;
        assert_eq!(Metadata::parse(&packet), None, "TCP/IPv4 metadata before IPv6");
    }

    /// A place outside of the packet is none, and neither is a super-segment without segments.
    #[test]
    fn what_lies_outside_of_the_packet_is_refused() {
        let fits =
            |metadata: Metadata, len| Metadata::from_vnet_header(&metadata.to_vnet_header(), len).is_some();
        assert_eq!([52, 53].map(|len| fits(tcp4(), len)), [false, true], "headers, and a byte");
        let checksum = Metadata { checksum_start: 300, checksum_offset: 250, ..tcp4() };
        assert_eq!([551, 552].map(|len| fits(checksum, len)), [false, true], "the checksum");
        assert!(!fits(Metadata { checksum_offset: 256, ..tcp4() }, 4000), "one byte tells it on the link");
        assert!(!fits(Metadata { gso_size: 0, ..tcp4() }, 4000));
        let single = Metadata { gso_type: GSO_NONE, gso_size: 0, ..tcp4() };
        assert!(fits(single, 38) && !fits(single, 37));
    }

    #[test]
    fn congestion_that_a_super_segment_tells_of_crosses_the_link() {
        for ecn in [false, true] {
            let metadata = Metadata { ecn, ..tcp4() };
            let header = metadata.to_vnet_header();
            assert_eq!(read(&header, 4000), Read::SuperSegment(metadata));
            let mut packet = vec![0x45; METADATA_LEN + 4000];
            metadata.emit(&mut packet);
            assert_eq!(Metadata::parse(&packet).map(|(metadata, _)| metadata.ecn), Some(ecn));
        }
    }

    #[test]
    fn a_super_segment_with_unusable_metadata_is_no_plain_packet() {
        let mut header = tcp4().to_vnet_header();
        assert_eq!(read(&header, 60_000), Read::SuperSegment(tcp4()));
        assert_eq!(read(&header, 30), Read::Unusable, "headers longer than the packet");
        header[0] = 0;
        assert_eq!(read(&header, 60_000), Read::Unusable, "complete checksum");
        header[..2].copy_from_slice(&[NEEDS_CSUM, 2]);
        assert_eq!(read(&header, 60_000), Read::Unusable, "a kind that nobody knows");
        assert_eq!(read(&[0; VNET_HEADER_LEN], 100), Read::Single(None));
        let mut partial = [0; VNET_HEADER_LEN];
        partial[0] = NEEDS_CSUM;
        assert!(matches!(read(&partial, 100), Read::Single(Some(_))));
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        let (src, dst) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let datagram = udp::HEADER_LEN + 5;
        let mut packet = vec![0; 20 + datagram];
        ip::Repr::new(src, dst, ip::Protocol::UDP, ip::Ecn::NotEct, datagram).emit(&mut packet);
        packet[20..26].copy_from_slice(&[0, 7, 0, 9, 0, datagram as u8]);
        packet[28..].copy_from_slice(b"hello");
        // What the kernel leaves in the field: the pseudo-header's sum, not complemented.
        let pseudo = !Sum::pseudo_header(src, dst, 17, datagram).finish();
        packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
        let metadata = Metadata {
            gso_type: GSO_NONE,
            ecn: false,
            gso_size: 0,
            header_len: 28,
            checksum_start: 20,
            checksum_offset: 6,
        };
        metadata.complete_checksum(&mut packet);
        let sum = Sum::pseudo_header(src, dst, 17, datagram).and(Sum::of(&packet[20..]));
        assert!(sum.is_valid());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some((metadata, body)) = Metadata::parse(&packet) {
                let header = metadata.to_vnet_header();
                prop_assert_eq!(Metadata::from_vnet_header(&header, body.len()), Some(metadata));
            }
        }
    }
}
