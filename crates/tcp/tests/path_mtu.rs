//! Paths that take smaller packets than their ends: what routers say (RFC 1191, RFC 5927), black holes and the search
//! (RFC 4821).

use std::cell::RefCell;
use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use crate::pair::{Pair, Path};
use crate::script::*;
use base::wire::checksum::Sum;
use base::wire::ip::{Ecn, Protocol, Repr};
use base::wire::tcp;
use base::{Duration, Instant, Packet, SeqNum};
use longhaul_tcp::config::{ForwardRto, PathMtu};
use longhaul_tcp::connection::{Discard, Seeds};
use longhaul_tcp::host::Discard as HostDiscard;
use longhaul_tcp::{Connection, Recovery, TcpConfig};

/// What a router answers to this packet.
fn too_big(packet: &[u8], mtu: u16) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(&packet[..28]);
    let sum = Sum::of(&icmp).finish();
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let sender = [packet[12], packet[13], packet[14], packet[15]];
    let header = Repr::new([10, 9, 9, 9].into(), sender.into(), Protocol::ICMP, Ecn::NotEct, icmp.len());
    let mut answer = vec![0; header.header_len()];
    header.emit(&mut answer);
    answer.extend(icmp);
    answer
}

/// A packet of the host's with 1000 bytes from `seq` on.
fn packet(script: &Script, seq: SeqNum) -> Vec<u8> {
    packet_of(script, seq, 1000)
}

/// The first 28 bytes of a packet of the host's with `len` bytes from `seq` on.
fn packet_of(script: &Script, seq: SeqNum, len: usize) -> Vec<u8> {
    let connection = script.connection();
    let header = Repr::new(HOST, PEER, Protocol::TCP, Ecn::NotEct, 20 + len);
    let mut packet = vec![0; 28];
    header.emit(&mut packet);
    packet[20..22].copy_from_slice(&connection.local().port().to_be_bytes());
    packet[22..24].copy_from_slice(&PEER_PORT.to_be_bytes());
    packet[24..28].copy_from_slice(&seq.0.to_be_bytes());
    packet
}

/// RFC 1191 (6.4): what is outstanding is cut anew and sent again, and the window stays.
#[test]
fn a_report_cuts_what_is_outstanding() {
    for (mtu, size) in [(640, 600), (0, 966), (100, 512)] {
        let mut script = Script::flying(&plain(), 3);
        let report = too_big(&packet(&script, ISS + 1), mtu);
        script.inject_packet(&report).unwrap();
        assert_eq!(script.connection().mss(), size);
        let window = script.connection().cwnd();
        assert!(window >= 3000);
        let pieces: Vec<i64> = (1..3001).step_by(size as usize).collect();
        assert_eq!(script.sent(), pieces);
    }
}

/// RFC 5927 (7): a report that quotes nothing that is outstanding, or something smaller than it allows, is not believed; nor is
/// one that quotes the middle of a segment, or one that the peer has, whatever length it claims.
#[test]
fn a_forged_report_is_not_believed() {
    let mut script = Script::flying(&plain(), 4);
    script.inject(ack(1, 1).sack(&[(3001, 4001)]));
    for (seq, mtu, len) in [
        (ISS, 640, 1000),
        (ISS + 8001, 640, 1000),
        (ISS + 0x7000_0000, 640, 1000),
        (ISS + 1, 1040, 1000),
        (ISS + 1, 1500, 1000),
        (ISS + 501, 640, 1000),
        (ISS + 1, 1040, 9000),
        (ISS + 501, 0, 9000),
        (ISS + 3001, 640, 1000),
    ] {
        let report = too_big(&packet_of(&script, seq, len), mtu);
        let refused = Err(HostDiscard::Segment(Discard::NotBelieved(seq)));
        assert_eq!(script.inject_packet(&report), refused, "{mtu}");
    }
    let mut off = Script::flying(&plain().with(|it| it.path_mtu = PathMtu::Off), 3);
    let report = too_big(&packet(&off, ISS + 1), 640);
    assert!(off.inject_packet(&report).is_err());
    assert_eq!((script.connection().mss(), off.connection().mss()), (1000, 1000));
}

/// RFC 1191 (6.4): reports of what left before a cut say nothing new: a flood of them, each a byte below the last, cuts once.
#[test]
fn reports_of_what_left_before_are_not_believed() {
    let mut script = Script::flying(&plain(), 20);
    // After a time-out one segment leaves, and the rest waits for its acknowledgement.
    script.at(400);
    script.take_count();
    let report = |script: &Script, start, mtu| too_big(&packet(script, ISS + start), mtu);
    script.inject_packet(&report(&script, 1, 1039)).unwrap();
    assert_eq!((script.sent(), script.connection().mss()), (vec![1], 999));
    for mtu in (600..1039).rev() {
        let refused = Err(HostDiscard::Segment(Discard::NotBelieved(ISS + 1000)));
        assert_eq!(script.inject_packet(&report(&script, 1000, mtu)), refused);
    }
    script.expect_nothing();
    // The first one left again, and another router may have refused it.
    script.inject_packet(&report(&script, 1, 900)).unwrap();
    assert_eq!((script.sent(), script.connection().mss()), (vec![1], 860));
}

/// RFC 5927 (7): who knows where every segment begins can ask for smaller ones again and again, but each report costs a window
/// of full pieces, not of ever more of them.
#[test]
fn every_report_costs_a_window_at_most() {
    let mut script = Script::flying(&plain(), 20);
    let mut now = 200;
    for mtu in (600..1039).rev() {
        now += 1;
        script.at(now);
        let report = too_big(&packet(&script, ISS + 1), mtu);
        script.inject_packet(&report).unwrap();
        let most = 20_000_usize.div_ceil(usize::from(mtu) - 40);
        let sent = script.take_count();
        assert!(sent <= most, "{sent} packets for {mtu}");
    }
}

/// RFC 4821 (7.7), RFC 1122 (4.2.3.5): three time-outs in a row are an outage like any other; at the next, segments get smaller.
#[test]
fn a_black_hole_takes_more_than_three_timeouts() {
    // 1024 bytes first, then ever smaller ones: a path may take less.
    for (mss, expected) in
        [(1000, vec![1000, 1000, 1000, 500, 256]), (1460, vec![1460, 1460, 1460, 1024, 512, 256])]
    {
        let config = plain().with(|it| (it.mss, it.path_mtu) = (Some(mss), PathMtu::Probe));
        let mut script = Script::connected(&config, 100, syn_ack().sack_permitted().mss(mss));
        script.write(40_000);
        let (mut sizes, mut thresholds) = (Vec::new(), Vec::new());
        for timeouts in 1..=expected.len() as u32 {
            while script.connection().sender_statistics().timeouts < timeouts {
                script.at(script.now.as_nanos() / 1_000_000 + 10);
            }
            sizes.push(script.connection().mss());
            thresholds.push(script.connection().ssthresh().expect("a threshold"));
        }
        assert_eq!(sizes, expected);
        // As many segments as before.
        let scaled = thresholds[0] * u64::from(sizes[3]) / u64::from(mss);
        assert_eq!((thresholds[2], thresholds[3]), (thresholds[0], scaled));
    }
}

/// RFC 4821 (7.7): also where marks alone are congestion.
#[test]
fn a_black_hole_is_found_where_losses_mean_nothing() {
    let config = plain().with(|it| (it.path_mtu, it.ecn) = (PathMtu::Probe, longhaul_tcp::EcnUse::Only));
    let mut script = Script::connecting(&config);
    script.take();
    script.at(100);
    script.inject(syn_ack().sack_permitted().and(tcp::Flags::ECE));
    script.take();
    script.write(3000);
    while script.connection().sender_statistics().timeouts < 4 {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    assert_eq!(script.connection().mss(), 500);
}

/// RFC 3522 (3.2, step 4): segments that were made smaller leave a time-out in doubt, which the first acknowledgement decides. If
/// it was not needed, what it was about had passed, and segments are full again.
#[test]
fn a_black_hole_leaves_a_timeout_in_doubt() {
    let config = plain().with(|it| {
        it.path_mtu = PathMtu::Probe;
        it.timestamps = true;
        it.recovery.eifel_detection = true;
        it.recovery.f_rto = ForwardRto::Off;
    });
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.expect("a timestamp").value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(9000, offset));
    script.take();
    script.write(1976);
    while script.connection().sender_statistics().timeouts < 4 {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    assert_eq!(script.connection().mss(), 494);
    script.inject(ack(1, 1977).ts(9100, offset + 100));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().mss(), 988);
}

/// RFC 4821 (7.7): over IPv6 no packet is made smaller than the 1280 bytes that every path takes.
#[test]
fn segments_over_ipv6_stay_above_its_floor() {
    let config = Arc::new(plain().with(|it| (it.mss, it.path_mtu) = (None, PathMtu::Probe)));
    let local = SocketAddr::new(Ipv6Addr::from(1).into(), 50_000);
    let remote = SocketAddr::new(Ipv6Addr::from(2).into(), PORT);
    let seeds = Seeds { initial_sequence: ISS, timestamp_offset: 0 };
    let mut connection = Connection::connect(config, local, remote, seeds);
    let (mut now, mut packet) = (Instant::ZERO, Packet::default());
    while connection.poll_transmit(now, &mut packet) {}
    let answer = tcp::Repr {
        src_port: PORT,
        dst_port: 50_000,
        seq: IRS,
        ack: ISS + 1,
        flags: SYN | ACK,
        window: 60_000,
        urgent: 0,
        options: tcp::Options { mss: Some(1440), ..tcp::Options::default() },
    };
    connection.handle_segment(now, Ecn::NotEct, &answer, &[]).unwrap();
    connection.write(&[1; 10_000]).unwrap();
    while connection.poll_transmit(now, &mut packet) {}
    let mut sizes = vec![connection.mss()];
    while connection.sender_statistics().timeouts < 8 {
        now = connection.poll_timeout().expect("a time-out");
        connection.handle_timeout(now);
        while connection.poll_transmit(now, &mut packet) {}
        sizes.push(connection.mss());
    }
    sizes.dedup();
    assert_eq!(sizes, [1440, 1220]);
}

/// Segments of 600 bytes since a report ten minutes ago, and a window of ten larger ones: what leaves next tries 1000 bytes.
/// With the number of its first byte.
fn searching_soon() -> (Script, i64) {
    let mut script = Script::flying(&plain(), 10);
    let report = too_big(&packet(&script, ISS + 1), 640);
    script.inject_packet(&report).unwrap();
    script.take_count();
    script.at(300);
    script.inject(ack(1, 10_001));
    while script.connection().unacknowledged() > 0 {
        script.at(script.now.as_nanos() / 1_000_000 + 100);
        script.take_count();
        let end = 1 + script.connection().flight_size() as i64 + acked(&script);
        script.inject(ack(1, end));
    }
    let first = 1 + acked(&script);
    script.at(700_000);
    (script, first)
}

/// Segments of 600 bytes since a report ten minutes ago, a window of ten larger ones, and a segment that has left to
/// try 1000 bytes. With the number of its first byte.
fn searching() -> (Script, i64) {
    let (mut script, first) = searching_soon();
    script.write(10_000);
    let sent = script.sent();
    assert_eq!(sent[..3], [first, first + 1000, first + 1600]);
    (script, first)
}

/// Bytes that the peer has acknowledged.
fn acked(script: &Script) -> i64 {
    script.connection().sender_statistics().bytes_acked as i64
}

/// RFC 4821 (7.6.2): the loss of the segment that tries a size is no congestion if nothing else is lost; otherwise it is.
#[test]
fn a_lost_search_is_no_congestion_if_nothing_else_is_lost() {
    for (others, halved) in [(0, false), (1, true), (2, true)] {
        let (mut script, first) = searching();
        let window = script.connection().cwnd();
        script.at(700_100);
        let beyond = (first + 1000 + 600 * others) as u32;
        script.inject(ack(1, first).sack(&[(beyond, beyond + 3600)]));
        assert!(script.connection().recovering());
        assert_eq!(script.connection().cwnd() < window, halved, "{others}");
    }
}

/// RFC 4821 (7.6.2): after a size that did not pass, the next waits for as many round trips as the window has segments.
#[test]
fn a_failed_search_waits_before_the_next() {
    let (mut script, first) = searching();
    script.at(700_100);
    script.inject(ack(1, first).sack(&[(first as u32 + 1000, first as u32 + 4600)]));
    let rounds = script.connection().cwnd() / 600;
    assert!(rounds >= 10);
    let mut at = 700_100;
    // Always the next byte to send, and whether a segment was larger than usual.
    let mut longest = 0;
    let mut tried = None;
    while tried.is_none() && at < 800_000 {
        at += 100;
        script.at(at);
        let starts = script.sent();
        longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        if longest > 600 && at > 700_200 {
            tried = Some(at);
        }
        let end = 1 + acked(&script) + script.connection().flight_size() as i64;
        script.inject(ack(1, end));
        script.write(20_000);
    }
    let tried = tried.expect("another try");
    assert_eq!(longest, 800);
    assert!(tried - 700_100 >= 100 * rounds, "{tried} after {rounds} round trips");
}

/// RFC 2018 (8): what a peer takes back was not cut, for it had that; it goes again in smaller pieces, and says nothing of what
/// would pass.
#[test]
fn what_a_peer_takes_back_is_no_search() {
    let mut script = Script::flying(&plain(), 4);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    let report = too_big(&packet(&script, ISS + 1), 640);
    script.inject_packet(&report).unwrap();
    script.take_count();
    script.at(300);
    script.inject(ack(1, 1001));
    while script.connection().sender_statistics().timeouts == 0 {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    assert!(script.sent().contains(&1001));
    let mut largest = 0;
    while script.connection().unacknowledged() > 0 {
        script.at(script.now.as_nanos() / 1_000_000 + 100);
        let end = 1 + acked(&script) + script.connection().flight_size() as i64;
        script.inject(ack(1, end));
        let starts = script.sent();
        largest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0).max(largest);
    }
    assert_eq!(largest, 600);
}

/// When the path takes packets of how many bytes; whether its router tells.
type Widths = Vec<(Instant, usize)>;

/// A server that sends for so many seconds over a path of this rate and of these widths, whose router reports or not.
fn transfer(config: &TcpConfig, kbps: u64, widths: Widths, reports: bool, seconds: u64) -> Pair {
    let mut pair = Pair::new(1, Path::clean(50).through(kbps, 40), config);
    let clock = Rc::new(RefCell::new(Instant::ZERO));
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let (time, refused) = (Rc::clone(&clock), Rc::clone(&dropped));
    pair.drop_if = Box::new(move |_, packet, _| {
        let width = widths.iter().rev().find(|(from, _)| *from <= *time.borrow()).map_or(1500, |it| it.1);
        if packet.len() > width {
            refused.borrow_mut().push(too_big(packet, width as u16));
        }
        packet.len() > width
    });
    pair.connect(config);
    pair.ends[1].to_send = u64::MAX;
    pair.drain();
    while pair.now < Instant::ZERO + Duration::from_secs(seconds) && pair.step() {
        *clock.borrow_mut() = pair.now;
        for report in dropped.take().into_iter().filter(|_| reports) {
            let _ = pair.hosts[1].handle_packet(pair.now, &report);
        }
        pair.drain();
    }
    pair
}

fn with(path_mtu: PathMtu, scheme: Recovery) -> TcpConfig {
    TcpConfig::preset("linux").expect("a preset").with(|it| {
        it.path_mtu = path_mtu;
        it.recovery.scheme = scheme;
    })
}

/// Seconds at which the path grows narrow, and wide again.
fn narrow(from: u64, until: u64, width: usize) -> Widths {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    vec![(at(from), width), (at(until), 1500)]
}

const SCHEMES: [Recovery; 4] = [Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack];

/// Goal: a path that grows narrow under way costs a round trip where its router tells (RFC 1191): four fifths of what 2 Mbit/s
/// carry in 20 s arrive.
#[test]
fn a_router_that_tells_costs_a_round_trip() {
    for scheme in SCHEMES {
        let pair = transfer(&with(PathMtu::Icmp, scheme), 2000, narrow(5, 1000, 1400), true, 20);
        let connection = pair.connection(1);
        assert_eq!(connection.mss(), 1348, "{scheme:?}");
        // The window leaves again at once and overflows the queue: of the schemes only RACK sees what that costs.
        let most = u32::from(scheme != Recovery::Rack);
        assert!(connection.sender_statistics().timeouts <= most, "{scheme:?}");
        assert!(pair.ends[0].received > 8 * 5_000_000 / 10, "{scheme:?}: {}", pair.ends[0].received);
        assert!(!pair.ends[0].corrupt);
    }
}

/// Goal: where it does not tell, nothing more arrives without probing; with it four time-outs make segments smaller, and single
/// larger ones find the largest that passes to within eight bytes (RFC 4821, 7.3 and 7.7).
#[test]
fn a_black_hole_is_found_and_searched() {
    for scheme in SCHEMES {
        let lost = transfer(&with(PathMtu::Icmp, scheme), 2000, narrow(5, 1000, 1400), false, 20);
        assert!(lost.ends[0].received < 1_500_000, "{scheme:?}: {}", lost.ends[0].received);
        let pair = transfer(&with(PathMtu::Probe, scheme), 2000, narrow(5, 1000, 1400), false, 80);
        let connection = pair.connection(1);
        assert!((1341..=1348).contains(&connection.mss()), "{scheme:?}: {}", connection.mss());
        // Where the window overflows the queue, NewReno mends it at a segment a round trip.
        let least = if scheme == Recovery::NewReno { 4 } else { 8 };
        assert!(pair.ends[0].received > least * 20_000_000 / 10, "{scheme:?}: {}", pair.ends[0].received);
        assert!(!pair.ends[0].corrupt);
    }
}

/// Goal: an outage that only looks like a black hole costs nothing that lasts: within a minute segments are full again, whether
/// timestamps tell that the time-outs were not needed (RFC 3522) or not; and with RACK within 5 % as much has arrived as without
/// probing.
#[test]
fn an_outage_leaves_segments_full() {
    for scheme in SCHEMES {
        for (until, timestamps) in [(14, true), (25, true), (40, true), (14, false), (25, false)] {
            let run = |path_mtu| {
                let config = with(path_mtu, scheme).with(|it| it.timestamps = timestamps);
                transfer(&config, 2000, narrow(10, until, 0), false, until + 60)
            };
            let (probing, not) = (run(PathMtu::Probe), run(PathMtu::Icmp));
            let full = not.connection(1).mss();
            assert_eq!(probing.connection(1).mss(), full, "{scheme:?} {until} {timestamps}");
            let (got, most) = (probing.ends[0].received, not.ends[0].received);
            let near = 100 * got > 95 * most;
            assert!(near || scheme != Recovery::Rack, "{scheme:?} {until} {timestamps}: {got} of {most}");
        }
    }
}

/// Goal: when the path is wide again, a larger segment is tried ten minutes after the report, and full ones follow (RFC 1191,
/// 6.3).
#[test]
fn a_path_that_grows_wide_is_used() {
    let config = with(PathMtu::Icmp, Recovery::Rack);
    let pair = transfer(&config, 200, narrow(5, 100, 600), true, 590);
    assert_eq!(pair.connection(1).mss(), 548);
    let pair = transfer(&config, 200, narrow(5, 100, 600), true, 620);
    assert_eq!(pair.connection(1).mss(), 1448);
}

/// RFC 4821 (7.3, 7.6): the search ends when nothing larger is left to try, and begins again after ten minutes.
#[test]
fn a_search_that_has_passed_is_over() {
    let (mut script, _) = searching();
    let mut at = 700_000;
    let mut largest = 0;
    for _ in 0..600 {
        at += 100;
        script.at(at);
        let end = 1 + acked(&script) + script.connection().flight_size() as i64;
        script.inject(ack(1, end));
        script.take_count();
        script.write(20_000);
        let starts = script.sent();
        let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        largest = largest.max(longest);
        assert!(script.connection().mss() <= 1000);
    }
    assert_eq!((script.connection().mss(), largest <= 1000), (1000, true));
    // Nothing is under trial: a loss is congestion again.
    let window = script.connection().cwnd();
    let una = 1 + acked(&script);
    script.inject(ack(1, una).sack(&[(una as u32 + 1000, una as u32 + 5000)]));
    assert!(script.connection().cwnd() < window, "a loss of a usual segment counts for nothing");
}

/// RFC 1191 (7.1): a router that does not say of what size packets pass means a smaller one than it refused, also where that was a plateau.
#[test]
fn a_packet_of_a_plateaus_size_is_too_big_too() {
    let config = plain().with(|it| it.mss = Some(1452));
    let mut script = Script::connected(&config, 100, syn_ack().sack_permitted().mss(1452));
    script.write(10_000);
    script.take_count();
    let report = too_big(&packet_of(&script, ISS + 1, 1452), 0);
    script.inject_packet(&report).unwrap();
    assert_eq!(script.connection().mss(), 966);
}

/// RFC 4821 (7.4): a size is tried only where enough follows to tell of its loss.
#[test]
fn nothing_is_tried_with_little_behind_it() {
    for (bytes, tries) in [(3000, false), (10_000, true)] {
        let (mut script, first) = searching_soon();
        script.write(bytes);
        assert_eq!(script.sent()[..2] == [first, first + 1000], tries, "{bytes} bytes");
    }
}
