//! What becomes of what routers made of the marks in outer headers: ECN (RFC 6040) and DSCP (RFC 2983).
//!
//! Going in, endpoints tell the marks of each frame ([`Marks`]). Going up, packets keep their DSCP: carriers change or erase
//! the outer one, and what hosts marked is for hosts (RFC 2983, 3.1: the pipe model; 5.1: one of the two is selected
//! statically). Congestion that routers marked goes up as [`Congestion`] says, after RFC 9599, 4.6.
//!
//! Deviations:
//! - Frames are not packets: one carries a piece of a packet, which may be complete much later. So what RFC 6040, 4.2, says of
//!   a packet's own outer header holds for octets: as many go up marked as came in marked frames.
//! - RFC 6040, 4.2, drops a packet that is not ECN-capable if its outer header is marked. Here it goes up as it is. The other end
//!   sends every frame with such a packet as not ECN-capable, so a router that marks it is broken or hostile; if this dropped
//!   packets, it would give that router nothing that it cannot do by itself.
//! - ECT(1) in the outer header does not go up: it is no sign of congestion but for PCN, which this does not support.

use base::wire::ip::{self, Ecn};
use link::{MAX_PACKET, Marks};

use crate::super_segment;

/// Congestion on the way here of which packets are still to tell.
#[derive(Debug, Default)]
pub(crate) struct Congestion {
    /// Octets that came in marked frames, less octets of marked packets that went up. Below zero after a packet that was longer
    /// than what was owed.
    owed: i64,
}

/// The most that is owed, either way. Ours: one largest packet, all of whose frames may be marked before it can go up. More would mark
/// packets for a congestion of long ago; a sender answers to one mark in a round trip as to many.
const OWED_LIMIT: i64 = MAX_PACKET as i64;

impl Congestion {
    /// A frame of `len` octets was of use to the endpoint, and its outer header has this ECN field. The protocol's own fields count
    /// too: about one octet in a hundred more than the packets have.
    ///
    /// A duplicate is of no use: none of its octets goes up.
    pub(crate) fn on_frame(&mut self, outer: Ecn, len: usize) {
        if outer == Ecn::Ce {
            self.owed = (self.owed + len as i64).min(OWED_LIMIT);
        }
    }

    /// Marks a packet that goes up, or a super-segment with its metadata, if something is owed and its transport understands;
    /// whether it was marked here.
    pub(crate) fn mark(&mut self, packet: &mut [u8]) -> bool {
        let packet = super_segment::ip_packet_mut(packet);
        let is_marked_here = match Marks::of(packet).ecn() {
            // It was marked before the link, and its frames were sent marked for that.
            Ecn::Ce => false,
            Ecn::Ect0 | Ecn::Ect1 if self.owed > 0 && ip::set_ecn(packet, Ecn::Ce).is_ok() => true,
            _ => return false,
        };
        self.owed = (self.owed - packet.len() as i64).max(-OWED_LIMIT);
        is_marked_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::super_segment::METADATA_LEN;
    use base::wire::ip::{Protocol, Repr, View};
    use base::wire::ipv4;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// Packets of `len` octets of both versions, whole and as super-segments; each with the length of what is before it.
    fn packets(ecn: Ecn, len: usize) -> Vec<(Vec<u8>, usize)> {
        let mut packets = Vec::new();
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            let header_len = ip::header_len_for(src);
            let mut packet = vec![0xaa; len];
            Repr::new(src, dst, Protocol::UDP, ecn, len - header_len).emit(&mut packet);
            packets.push(([&[1; METADATA_LEN], packet.as_slice()].concat(), METADATA_LEN));
            packets.push((packet, 0));
        }
        packets
    }

    fn owing(octets: usize) -> Congestion {
        let mut congestion = Congestion::default();
        congestion.on_frame(Ecn::Ce, octets);
        congestion
    }

    #[test]
    fn a_mark_changes_the_ecn_field_and_the_checksum_and_nothing_else() {
        for ecn in ALL {
            for (packet, start) in packets(ecn, 100) {
                let (mut congestion, mut marked) = (owing(1), packet.clone());
                let is_capable = matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
                assert_eq!(congestion.mark(&mut marked), is_capable, "{ecn:?}");
                let view = View::parse(&marked[start..]).unwrap();
                assert_eq!(view.ecn(), if is_capable { Ecn::Ce } else { ecn });
                if let View::V4(view) = view {
                    assert!(view.checksum_ok());
                    assert!(ipv4::Repr::parse(&view).is_ok());
                }
                // Taken back, it is the packet that it was.
                ip::set_ecn(&mut marked[start..], ecn).unwrap();
                assert_eq!(marked, packet);
                assert_eq!(
                    congestion.owed,
                    if ecn == Ecn::NotEct { 1 } else { 1 - 100 },
                    "metadata is no octet"
                );
            }
        }
    }

    #[test]
    fn only_marked_frames_are_owed_for() {
        let mut congestion = Congestion::default();
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0] {
            congestion.on_frame(ecn, 1000);
            for (mut packet, _) in packets(Ecn::Ect0, 100) {
                assert!(!congestion.mark(&mut packet));
            }
        }
        congestion.on_frame(Ecn::Ce, 1);
        assert!(congestion.mark(&mut packets(Ecn::Ect0, 100)[0].0));
    }

    #[test]
    fn as_many_octets_go_up_marked_as_came_marked() {
        // Packets of three frames and frames of a third of a packet, and either with lengths that do not fit.
        for (frame, packet, every) in [(500, 1500, 10), (1400, 300, 4), (487, 1400, 20), (1400, 60_000, 10)] {
            let (mut congestion, mut marked, mut up) = (Congestion::default(), 0, 0);
            let (mut came, mut came_marked) = (0, 0);
            for number in 0..20_000 {
                let ecn = if number % every == 0 { Ecn::Ce } else { Ecn::Ect0 };
                congestion.on_frame(ecn, frame);
                came += frame;
                came_marked += if ecn == Ecn::Ce { frame } else { 0 };
                while up + packet <= came {
                    up += packet;
                    marked += if congestion.mark(&mut packets(Ecn::Ect0, packet)[1].0) { packet } else { 0 };
                }
            }
            assert!(
                came_marked.abs_diff(marked) <= packet,
                "{frame} {packet}: {came_marked} came, {marked} up"
            );
        }
    }

    /// The first mark goes up with the next packet that can tell, however short the frame was.
    #[test]
    fn packets_that_cannot_tell_leave_it_to_those_that_can() {
        let mut congestion = owing(100);
        for (mut packet, _) in packets(Ecn::NotEct, 1400) {
            assert!(!congestion.mark(&mut packet));
        }
        assert!(congestion.mark(&mut packets(Ecn::Ect1, 1400)[0].0));
    }

    /// A packet that was marked before the link comes in frames that are marked for that.
    #[test]
    fn what_was_marked_before_marks_nothing_else() {
        let mut congestion = Congestion::default();
        for _ in 0..100 {
            for _ in 0..3 {
                congestion.on_frame(Ecn::Ce, 500);
            }
            assert!(!congestion.mark(&mut packets(Ecn::Ce, 1500)[1].0));
            assert!(!congestion.mark(&mut packets(Ecn::Ect0, 1500)[1].0));
        }
    }

    #[test]
    fn what_is_owed_is_bounded() {
        let mut congestion = Congestion::default();
        (0..1000).for_each(|_| congestion.on_frame(Ecn::Ce, 1400));
        let marked = (0..1000).filter(|_| congestion.mark(&mut packets(Ecn::Ect0, 1000)[1].0)).count();
        assert_eq!(marked, MAX_PACKET.div_ceil(1000));
        // And what was told too much as well.
        (0..1000).for_each(|_| _ = congestion.mark(&mut packets(Ecn::Ce, 1000)[1].0));
        congestion.on_frame(Ecn::Ce, MAX_PACKET);
        congestion.on_frame(Ecn::Ce, 1);
        assert!(congestion.mark(&mut packets(Ecn::Ect0, 1000)[1].0));
    }

    #[test]
    fn what_is_no_packet_stays_as_it_is() {
        for bytes in [&[][..], &[0x45], &[0x45, 2], &[0x60, 0x20], &[1; 8], &[1, 0x45, 2], &[0xff; 60]] {
            let (mut congestion, mut packet) = (owing(1000), bytes.to_vec());
            assert!(!congestion.mark(&mut packet));
            assert_eq!(packet, bytes);
        }
    }
}
