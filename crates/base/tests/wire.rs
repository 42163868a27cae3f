//! Round trips of every wire format, and the parsers on bytes that nobody meant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use longhaul_base::SeqNum;
use longhaul_base::wire::ip::{self, Ecn, Protocol};
use longhaul_base::wire::tcp::{self, Flags, Options, SackBlock, SackBlocks, Timestamps};
use longhaul_base::wire::{Malformed, ipv4, ipv6, udp};
use proptest::prelude::*;

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    let v4 =
        (any::<u32>(), any::<u32>()).prop_map(|(s, d)| (Ipv4Addr::from(s).into(), Ipv4Addr::from(d).into()));
    let v6 = (any::<u128>(), any::<u128>())
        .prop_map(|(s, d)| (Ipv6Addr::from(s).into(), Ipv6Addr::from(d).into()));
    prop_oneof![v4, v6]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    (0_u8..4).prop_map(Ecn::from_bits)
}

fn options() -> impl Strategy<Value = Options> {
    let block =
        (any::<u32>(), any::<u32>()).prop_map(|(s, e)| SackBlock { start: SeqNum(s), end: SeqNum(e) });
    (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        proptest::option::of((any::<u32>(), any::<u32>())),
        proptest::collection::vec(block, 0..=4),
    )
        .prop_map(|(mss, window_scale, sack_permitted, stamps, blocks)| {
            let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
            let mut options = Options { mss, window_scale, sack_permitted, timestamps, ..Options::default() };
            for block in blocks {
                options.sack.push(block);
            }
            while options.len() > tcp::MAX_HEADER_LEN - tcp::HEADER_LEN {
                let fewer = options.sack.as_slice().len() - 1;
                options.sack.truncate(fewer);
            }
            options
        })
}

proptest! {
    #[test]
    fn ipv4_round_trips(
        src in any::<u32>(), dst in any::<u32>(), protocol in any::<u8>(), ttl in any::<u8>(), dscp in 0_u8..64, ecn in ecn(), ident in any::<u16>(),
        payload in proptest::collection::vec(any::<u8>(), 0..64), padding in 0_usize..8,
    ) {
        let repr = ipv4::Repr {
            src: src.into(), dst: dst.into(), protocol: Protocol(protocol), ttl, dscp, ecn, ident,
            payload_len: payload.len(),
        };
        let mut bytes = vec![0; repr.header_len()];
        repr.emit(&mut bytes);
        bytes.extend_from_slice(&payload);
        bytes.resize(bytes.len() + padding, 0xee);
        let view = ipv4::View::parse(&bytes).unwrap();
        prop_assert_eq!(ipv4::Repr::parse(&view), Ok(repr));
        prop_assert_eq!(view.payload(), &payload[..]);
        prop_assert!(bytes[6] & 0x40 != 0 && !view.is_fragment());
    }

    #[test]
    fn ipv6_round_trips(
        src in any::<u128>(), dst in any::<u128>(), protocol in any::<u8>(), hop_limit in any::<u8>(), dscp in 0_u8..64, ecn in ecn(),
        flow_label in 0_u32..1 << 20, payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let repr = ipv6::Repr {
            src: src.into(), dst: dst.into(), protocol: Protocol(protocol), hop_limit, dscp, ecn, flow_label,
            payload_len: payload.len(),
        };
        let mut bytes = vec![0; repr.header_len()];
        repr.emit(&mut bytes);
        bytes.extend_from_slice(&payload);
        let view = ipv6::View::parse(&bytes).unwrap();
        prop_assert_eq!(ipv6::Repr::parse(&view), repr);
        prop_assert_eq!(view.payload(), &payload[..]);
    }

    #[test]
    fn tcp_round_trips(
        (src, dst) in addresses(), src_port in any::<u16>(), dst_port in any::<u16>(), seq in any::<u32>(), ack in any::<u32>(), flags in any::<u8>(),
        window in any::<u16>(), urgent in any::<u16>(), options in options(), payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let repr = tcp::Repr {
            src_port, dst_port, seq: SeqNum(seq), ack: SeqNum(ack), flags: Flags(flags), window, urgent, options,
        };
        let mut bytes = vec![0; repr.header_len()];
        bytes.extend_from_slice(&payload);
        repr.emit(&mut bytes, src, dst);
        let view = tcp::View::parse(&bytes).unwrap();
        prop_assert_eq!(tcp::Repr::parse(&view, src, dst), Ok(repr));
        prop_assert_eq!(view.payload(), &payload[..]);
    }

    #[test]
    fn udp_round_trips(
        (src, dst) in addresses(), src_port in any::<u16>(), dst_port in any::<u16>(),
        payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let repr = udp::Repr { src_port, dst_port };
        let mut bytes = vec![0; repr.header_len()];
        bytes.extend_from_slice(&payload);
        repr.emit(&mut bytes, src, dst);
        let view = udp::View::parse(&bytes).unwrap();
        prop_assert_eq!(udp::Repr::parse(&view, src, dst), Ok(repr));
        prop_assert_eq!(view.payload(), &payload[..]);
    }

    /// One flipped bit never passes a checksum that covers it.
    #[test]
    fn a_flipped_bit_is_noticed((src, dst) in addresses(), bit in 0_usize..32 * 8) {
        let repr = tcp::Repr {
            src_port: 1, dst_port: 2, seq: SeqNum(3), ack: SeqNum(4), flags: Flags::ACK, window: 5, urgent: 0,
            options: Options::default(),
        };
        let mut bytes = vec![0x5a; 32];
        repr.emit(&mut bytes, src, dst);
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(view) = tcp::View::parse(&bytes) {
            prop_assert_eq!(tcp::Repr::parse(&view, src, dst), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), version in 0_u8..16) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0xf | version << 4;
        }
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        if let Ok(view) = ip::View::parse(&bytes) {
            let _ = (view.src(), view.dst(), view.ecn(), view.payload().len());
        }
        if let Ok(view) = tcp::View::parse(&bytes) {
            let _ = (tcp::Repr::parse(&view, here, here), view.payload().len());
        }
        if let Ok(view) = udp::View::parse(&bytes) {
            let _ = (udp::Repr::parse(&view, here, here), view.payload().len());
        }
        let _ = Options::parse(&bytes);
    }

    #[test]
    fn a_hop_and_a_mark_keep_the_header_valid((src, dst) in addresses(), payload_len in 0_usize..40) {
        let repr = ip::Repr::new(src, dst, Protocol::TCP, Ecn::Ect0, payload_len);
        let mut bytes = vec![0; repr.header_len() + payload_len];
        repr.emit(&mut bytes);
        prop_assert_eq!(ip::decrement_hops(&mut bytes), Ok(ip::DEFAULT_TTL - 1));
        prop_assert_eq!(ip::set_ecn(&mut bytes, Ecn::Ce), Ok(()));
        let view = ip::View::parse(&bytes).unwrap();
        prop_assert_eq!((view.src(), view.dst(), view.ecn()), (src, dst, Ecn::Ce));
        if let ip::View::V4(view) = view {
            prop_assert!(view.checksum_ok());
        }
    }
}

/// A SYN as Linux sends it: MSS 1460, SACK permitted, timestamps, window scale 7.
#[test]
fn options_are_laid_out_as_common_stacks_do() {
    let options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0x0102_0304, echo: 0 }),
        sack: SackBlocks::default(),
        ..Options::default()
    };
    assert_eq!(options.len(), 20);
    let repr = tcp::Repr {
        src_port: 0,
        dst_port: 0,
        seq: SeqNum(0),
        ack: SeqNum(0),
        flags: Flags::SYN,
        window: 0,
        urgent: 0,
        options,
    };
    let mut bytes = vec![0; repr.header_len()];
    repr.emit(&mut bytes, Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
    assert_eq!(bytes[20..], [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7]);
}

#[test]
fn wrong_lengths_are_named() {
    assert_eq!(ip::View::parse(&[]).unwrap_err(), Malformed::Truncated { have: 0, need: 20 });
    assert_eq!(ip::View::parse(&[0x55; 40]).unwrap_err(), Malformed::Version(5));
    let mut header = [0_u8; 20];
    header[0] = 0x44;
    assert_eq!(ipv4::View::parse(&header).unwrap_err(), Malformed::Length(16));
    header[0] = 0x45;
    header[3] = 10;
    assert_eq!(ipv4::View::parse(&header).unwrap_err(), Malformed::Length(10));
    header[3] = 30;
    assert_eq!(ipv4::View::parse(&header).unwrap_err(), Malformed::Truncated { have: 20, need: 30 });
    assert_eq!(udp::View::parse(&[0, 1, 0, 2, 0, 7, 0, 0]).unwrap_err(), Malformed::Length(7));
    let mut segment = [0_u8; 20];
    segment[12] = 0x40;
    assert_eq!(tcp::View::parse(&segment).unwrap_err(), Malformed::Length(16));
    segment[12] = 0xf0;
    assert_eq!(tcp::View::parse(&segment).unwrap_err(), Malformed::Truncated { have: 20, need: 60 });
}
