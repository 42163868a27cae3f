//! Which packets belong together, and how they are marked, as far as their headers tell.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A number that all packets of a flow have in common, in both directions: it is made of the addresses and, where there are
/// such, the ports, or the parameter index of ESP (RFC 4303, 2.1).
///
/// Fragments are known by their addresses alone, so that those of one packet stay together. A super-segment counts as the
/// packet behind its metadata. What is no IP packet all belongs to one flow.
///
/// Two flows share a number once in 2^64; peers need not agree about it.
#[must_use]
pub(crate) fn hash(packet: &[u8]) -> u64 {
    let Some(Ends { addresses, ports: [from, to] }) = Ends::of(packet) else { return mixed(0) };
    let (src, dst) = addresses.split_at(addresses.len() / 2);
    // A sum knows no direction.
    mixed(end(src, from).wrapping_add(end(dst, to)))
}

/// As [`hash`], for tables where strangers must not choose who meets whom: without the key nobody can compute with it (SipHash-1-3, Aumasson
/// and Bernstein 2012).
#[must_use]
pub(crate) fn keyed_hash(packet: &[u8], [low, high]: [u64; 2]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(low, high);
    if let Some(Ends { addresses, ports: [from, to] }) = Ends::of(packet) {
        let (src, dst) = addresses.split_at(addresses.len() / 2);
        // The lesser end first, whichever way the packet goes.
        let mut ends = [(src, from), (dst, to)];
        ends.sort_unstable();
        for (address, port) in ends {
            hasher.write(address);
            hasher.write(&port.to_be_bytes());
        }
    }
    hasher.finish()
}

/// Whether this is a single IP packet that its sender does not repeat: one of UDP, UDP-Lite, ICMP or `ICMPv6`, or a fragment of one.
#[must_use]
pub fn is_datagram(packet: &[u8]) -> bool {
    let protocol = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(9).copied(),
        Some(6) => protocol_of_ipv6(packet),
        _ => None,
    };
    matches!(protocol, Some(1 | 17 | 58 | 136))
}

/// What is behind the extension headers of an IPv6 packet, those of a fragment among them; `None` if they are cut off.
fn protocol_of_ipv6(packet: &[u8]) -> Option<u8> {
    let (mut next, mut rest) = (*packet.get(6)?, packet.get(40..)?);
    while let 0 | 43 | 44 | 60 = next {
        let &[following, len, ..] = rest else { return None };
        // A fragment header has no length: it is 8 bytes (RFC 8200, 4.5).
        let len = if next == 44 { 8 } else { usize::from(len) * 8 + 8 };
        (next, rest) = (following, rest.get(len..).unwrap_or_default());
    }
    Some(next)
}

/// The DSCP of a single IP packet (RFC 2474, 3); `None` of a super-segment, and of what is no IP packet.
#[must_use]
pub fn dscp(packet: &[u8]) -> Option<u8> {
    traffic_class(packet).map(|octet| octet >> 2)
}

/// A single IP packet's octet of DSCP and ECN field; `None` of a super-segment, and of what is no IP packet.
pub(crate) fn traffic_class(packet: &[u8]) -> Option<u8> {
    match *packet {
        [first, second, ..] if first >> 4 == 4 => Some(second),
        [first, second, ..] if first >> 4 == 6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// The packet behind a super-segment's metadata; any other as it is.
#[must_use]
pub fn without_metadata(packet: &[u8]) -> &[u8] {
    match packet.first().map(|first| first >> 4) {
        Some(0) => packet.get(SUPER_SEGMENT_METADATA..).unwrap_or_default(),
        _ => packet,
    }
}

/// The packet behind a super-segment's metadata, to be written to; any other as it is.
pub(crate) fn without_metadata_mut(packet: &mut [u8]) -> &mut [u8] {
    match packet.first().map(|first| first >> 4) {
        Some(0) => packet.get_mut(SUPER_SEGMENT_METADATA..).unwrap_or_default(),
        _ => packet,
    }
}

/// What tells a flow from another.
struct Ends<'a> {
    /// Source and destination, one behind the other.
    addresses: &'a [u8],
    /// Ports of source and destination; ESP's index twice, since both ends share it; zero where there are none.
    ports: [u32; 2],
}

impl<'a> Ends<'a> {
    /// Those of a packet or a super-segment; `None` of what is no IP packet.
    fn of(packet: &'a [u8]) -> Option<Self> {
        let packet = without_metadata(packet);
        match packet.first().map(|first| first >> 4) {
            Some(4) => Self::of_ipv4(packet),
            Some(6) => Self::of_ipv6(packet),
            _ => None,
        }
    }

    fn of_ipv4(packet: &'a [u8]) -> Option<Self> {
        let addresses = packet.get(12..20)?;
        let header_len = usize::from(packet[0] & 0x0f) * 4;
        // More fragments, or an offset: RFC 791, 3.1.
        let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
        let transport = if is_fragment { None } else { packet.get(header_len..) };
        Some(Self { addresses, ports: ports(packet[9], transport) })
    }

    fn of_ipv6(packet: &'a [u8]) -> Option<Self> {
        let addresses = packet.get(8..40)?;
        let (mut next, mut rest) = (packet[6], &packet[40..]);
        // Extension headers: RFC 8200, 4.3, 4.4 and 4.6. A fragment header is none of these, nor has it ports.
        while let (0 | 43 | 60, [following, len, ..]) = (next, rest) {
            next = *following;
            rest = rest.get(usize::from(*len) * 8 + 8..).unwrap_or_default();
        }
        Some(Self { addresses, ports: ports(next, Some(rest)) })
    }
}

/// The ports in a transport header, if the protocol has some and the header is there.
fn ports(protocol: u8, transport: Option<&[u8]>) -> [u32; 2] {
    let Some((&[a, b, c, d], _)) = transport.and_then(<[u8]>::split_first_chunk) else { return [0; 2] };
    match protocol {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        6 | 17 | 33 | 132 | 136 => [u16::from_be_bytes([a, b]).into(), u16::from_be_bytes([c, d]).into()],
        // ESP.
        50 => [u32::from_be_bytes([a, b, c, d]); 2],
        _ => [0; 2],
    }
}

fn end(address: &[u8], port: u32) -> u64 {
    let words = address.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word));
    words.fold(mixed(port.into()), |hash, word| mixed(hash ^ u64::from(word)))
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood 2014), which spreads every bit over all.
pub(crate) const fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Bytes in front of a super-segment's packet, the first of them below 16.
const SUPER_SEGMENT_METADATA: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A datagram from 10.0.0.`src`:`port` to 10.0.0.2:53.
    fn ipv4(src: u8, port: u16, fragment: u16, protocol: u8) -> Vec<u8> {
        let [flags, offset] = fragment.to_be_bytes();
        let mut packet =
            vec![0x45, 0, 0, 30, 0, 0, flags, offset, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, 2];
        packet.extend(port.to_be_bytes());
        packet.extend([0, 53, 1, 2, 3, 4, 5, 6]);
        packet
    }

    fn ipv6(port: u16, extensions: &[(u8, usize)]) -> Vec<u8> {
        let kinds: Vec<u8> = extensions.iter().map(|(kind, _)| *kind).chain([17]).collect();
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, kinds[0], 64];
        packet.extend([1; 16]);
        packet.extend([2; 16]);
        for (index, (_, len)) in extensions.iter().enumerate() {
            packet.extend([kinds[index + 1], (len / 8 - 1) as u8]);
            packet.resize(packet.len() + len - 2, 7);
        }
        packet.extend(port.to_be_bytes());
        packet.extend([0, 53, 1, 2]);
        packet
    }

    #[test]
    fn a_flow_is_its_addresses_and_ports() {
        let flow = hash(&ipv4(1, 1000, 0x4000, 17));
        let mut longer = ipv4(1, 1000, 0, 17);
        longer.extend([9; 100]);
        assert_eq!(hash(&longer), flow, "neither the rest nor \"don't fragment\" matter");
        assert_eq!(hash(&[&[0, 1, 2, 3, 4, 5, 6, 7], longer.as_slice()].concat()), flow, "a super-segment");
        assert_ne!(hash(&ipv4(1, 1001, 0, 17)), flow);
        assert_ne!(hash(&ipv4(3, 1000, 0, 17)), flow);
        assert_ne!(hash(&ipv6(1000, &[])), hash(&ipv6(1001, &[])));
        assert_eq!(hash(&ipv6(1000, &[])), hash(&ipv6(1000, &[(0, 8), (60, 24), (43, 16)])));
    }

    #[test]
    fn both_directions_are_one_flow() {
        let there = ipv4(1, 1000, 0, 6);
        let mut back = there.clone();
        back[12..16].copy_from_slice(&there[16..20]);
        back[16..20].copy_from_slice(&there[12..16]);
        back[20..22].copy_from_slice(&there[22..24]);
        back[22..24].copy_from_slice(&there[20..22]);
        assert_eq!(hash(&there), hash(&back));
        assert_eq!(keyed_hash(&there, [1, 2]), keyed_hash(&back, [1, 2]));
        // But ports belong to their addresses.
        back[20..24].copy_from_slice(&there[20..24]);
        assert_ne!(hash(&there), hash(&back));
        assert_ne!(keyed_hash(&there, [1, 2]), keyed_hash(&back, [1, 2]));
    }

    #[test]
    fn a_key_is_all_that_tells_how_flows_spread() {
        let flows: Vec<Vec<u8>> = (0..8000).map(|port| ipv4(1, port, 0, 17)).collect();
        let of = |key| flows.iter().map(|flow| keyed_hash(flow, key)).collect::<BTreeSet<_>>();
        assert_eq!((of([1, 2]).len(), of([1, 2])), (8000, of([1, 2])));
        assert!(of([1, 2]).is_disjoint(&of([1, 3])) && of([1, 2]).is_disjoint(&of([0, 2])));
        let low = of([1, 2]).iter().filter(|hash| *hash % 8 == 3).count();
        assert!((850..1150).contains(&low), "{low}");
    }

    /// Only the first fragment has ports.
    #[test]
    fn fragments_stay_together() {
        let fragments = [ipv4(1, 1000, 0x2000, 17), ipv4(1, 0xabcd, 0x2005, 17), ipv4(1, 7, 0x000a, 17)];
        assert!(fragments.iter().all(|fragment| hash(fragment) == hash(&fragments[0])));
        assert_eq!(hash(&ipv6(1000, &[(44, 8)])), hash(&ipv6(1001, &[(0, 8), (44, 8)])));
    }

    #[test]
    fn other_protocols_have_no_ports_but_esp_an_index() {
        assert_eq!(hash(&ipv4(1, 1000, 0, 1)), hash(&ipv4(1, 1001, 0, 1)));
        assert_ne!(hash(&ipv4(1, 1000, 0, 50)), hash(&ipv4(1, 1001, 0, 50)));
    }

    #[test]
    fn datagrams_are_told_by_their_protocol() {
        for (protocol, is_one) in
            [(17, true), (1, true), (58, true), (136, true), (6, false), (50, false), (132, false)]
        {
            assert_eq!(is_datagram(&ipv4(1, 1000, 0, protocol)), is_one, "{protocol}");
            // A fragment is none the less one.
            assert_eq!(is_datagram(&ipv4(1, 1000, 0x2005, protocol)), is_one, "{protocol}");
            for extensions in [&[][..], &[(0, 8)], &[(44, 8)], &[(0, 16), (43, 24), (44, 8), (60, 8)]] {
                let mut packet = ipv6(1000, extensions);
                let next = match extensions.len() {
                    0 => 6,
                    _ => packet.len() - 6 - extensions.last().unwrap().1,
                };
                packet[next] = protocol;
                assert_eq!(is_datagram(&packet), is_one, "{protocol} behind {extensions:?}");
            }
        }
        let udp = ipv6(1000, &[(0, 8)]);
        let super_segment = [&[0, 1, 2, 3, 4, 5, 6, 7], ipv4(1, 1, 0, 17).as_slice()].concat();
        for other in [&udp[..39], &udp[..41], &super_segment, &[], &[0x45], &[0x60]] {
            assert!(!is_datagram(other), "{other:?}");
        }
    }

    #[test]
    fn anything_has_a_flow() {
        for packet in [ipv4(1, 1000, 0, 17), ipv6(1000, &[(0, 8), (43, 16)])] {
            (0..packet.len()).for_each(|len| _ = hash(&packet[..len]));
            for first in 0..=255 {
                _ = hash(&[&[first], &packet[1..]].concat());
            }
        }
        assert_eq!(hash(&[]), hash(b"\x99 and so on"));
    }

    #[test]
    fn flows_spread() {
        let low = |port| hash(&ipv4(1, port, 0, 17)) % 8;
        let mut counts = [0_u32; 8];
        (0..8000).for_each(|port| counts[low(port) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let whole: BTreeSet<u64> = (0..8000).map(|port| hash(&ipv4(1, port, 0, 17))).collect();
        assert_eq!(whole.len(), 8000);
        let hosts: BTreeSet<u64> = (0..=255).map(|host| hash(&ipv4(host, 7, 0, 17))).collect();
        assert_eq!(hosts.len(), 256);
    }
}
