//! What an IP header says to the routers on its way: the DSCP (RFC 2474) and the ECN field (RFC 3168), in one octet.
//!
//! The outer header of a frame has the marks of what the frame carries: the DSCP for the carrier's queues (RFC 2983, 4), and
//! the ECN field in the normal mode of RFC 6040, 4.1, which copies all four codepoints. No protocol here puts two packets into a frame.
//!
//! Routers keep no order between packets of different DSCPs. So frames whose order matters, since losses are inferred from it or
//! since they are fragments, all have DSCP 0: "a single ordered aggregate" (RFC 2983, 4.1). Those of which each counts by itself have
//! their packet's: whole packets of `plain`, and what wide COTMLL sends once.
//!
//! Deviations: none.

use base::wire::ip::{self, Ecn};

use crate::flow;

/// The marks of a packet or a frame, as IPv4's type of service or IPv6's traffic class holds them. Those of a frame without
/// packets are the default: DSCP 0, not ECN-capable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// A DSCP of 6 bits and an ECN field.
    #[must_use]
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        Self(dscp << 2 | ecn.bits())
    }

    /// The marks of an IP packet, or of the one behind a super-segment's metadata; the default of anything else.
    #[must_use]
    pub fn of(packet: &[u8]) -> Self {
        Self(flow::traffic_class(flow::without_metadata(packet)).unwrap_or_default())
    }

    /// Differentiated services code point, 6 bits.
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The ECN field.
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        Ecn::from_bits(self.0)
    }

    /// Both in the octet that a header has for them.
    #[must_use]
    pub const fn traffic_class(self) -> u8 {
        self.0
    }

    /// These marks with DSCP 0; the ECN field stays.
    #[must_use]
    pub const fn without_dscp(self) -> Self {
        Self::new(0, self.ecn())
    }
}

/// Tells the transport of a packet, or of the one behind a super-segment's metadata, of congestion here, if it understands (RFC 3168, 5);
/// whether it does.
pub(crate) fn mark_congestion(packet: &mut [u8]) -> bool {
    match Marks::of(packet).ecn() {
        Ecn::NotEct => false,
        Ecn::Ce => true,
        Ecn::Ect0 | Ecn::Ect1 => ip::set_ecn(flow::without_metadata_mut(packet), Ecn::Ce).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ecn::{Ce, Ect0, Ect1, NotEct};

    const ALL: [Ecn; 4] = [NotEct, Ect1, Ect0, Ce];

    fn ipv4(dscp: u8, ecn: Ecn) -> Vec<u8> {
        let mut packet = vec![0x45, dscp << 2 | ecn.bits()];
        packet.resize(20, 0xff);
        packet
    }

    /// With a flow label that has all bits set, next to the traffic class.
    fn ipv6(dscp: u8, ecn: Ecn) -> Vec<u8> {
        let class = dscp << 2 | ecn.bits();
        let mut packet = vec![0x60 | class >> 4, class << 4 | 0x0f];
        packet.resize(40, 0xff);
        packet
    }

    #[test]
    fn any_marks_are_read_from_any_packet() {
        for dscp in 0..64 {
            for ecn in ALL {
                let marks = Marks::new(dscp, ecn);
                assert_eq!((marks.dscp(), marks.ecn()), (dscp, ecn));
                assert_eq!(marks.without_dscp(), Marks::new(0, ecn));
                for packet in [ipv4(dscp, ecn), ipv6(dscp, ecn)] {
                    assert_eq!(Marks::of(&packet), marks);
                    let super_segment = [&[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &*packet].concat();
                    assert_eq!(Marks::of(&super_segment), marks);
                    assert_eq!(marks.traffic_class(), dscp << 2 | ecn.bits());
                }
            }
        }
    }

    #[test]
    fn what_is_no_packet_has_no_marks() {
        for other in [&[][..], &[0x45], &[0x1f, 0xff, 0xff], &[0xff; 20], &[1; 8], &[1, 2, 3], &[0; 40]] {
            assert_eq!(Marks::of(other), Marks::default(), "{other:?}");
        }
        assert_eq!(Marks::default(), Marks::new(0, NotEct));
    }
}
