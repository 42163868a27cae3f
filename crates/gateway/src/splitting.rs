//! The proxy's packets from and to a TUN device, with what the kernel leaves to be cut into segments.

use base::Instant;
use pep::{Proxy, Side, Verdict};

use crate::tun::offload::{self, Metadata};
use crate::tun::{Tun, Written};

/// Bytes of data in the longest packet of IPv4, with timestamps.
pub(crate) const MOST_PAYLOAD: u32 = 65_535 - 72;

/// Whether a packet from one side, perhaps behind a super-segment's metadata, was the proxy's.
pub(crate) fn takes(proxy: &mut Proxy, now: Instant, from: Side, packet: &mut [u8]) -> bool {
    // The kernel vouches for the checksum of what is still to be cut.
    let is_whole = matches!(packet.first().map(|first| first >> 4), Some(4 | 6));
    let packet = offload::ip_packet_mut(packet);
    let verdict = if is_whole {
        proxy.handle_packet(now, from, packet)
    } else {
        proxy.handle_verified_packet(now, from, packet)
    };
    verdict == Verdict::Taken
}

/// Writes what the proxy has for one side to `tun`, and tells of each packet what became of it.
pub(crate) fn write_trains(
    proxy: &mut Proxy,
    now: Instant,
    to: Side,
    tun: &mut Tun,
    mut note: impl FnMut(Written),
) {
    while let Some((packet, segment)) = proxy.poll_transmit_train(now, to, MOST_PAYLOAD) {
        note(match segment.and_then(|size| Metadata::of_train(&packet, size)) {
            Some(metadata) => tun.write_super_segment(metadata, &packet),
            None => tun.write(&packet),
        });
    }
}
