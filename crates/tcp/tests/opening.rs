//! Segment scripts: opening a connection.

use crate::script::*;
use base::units::Size;
use longhaul_tcp::host::Discard;
use longhaul_tcp::{Event, Failure, Recovery, State, TcpConfig};

/// RFC 9293, figure 6; RFC 7323 (2.2, 3.2); RFC 2018 (2); RFC 6691: what a SYN offers.
#[test]
fn an_active_open_offers_everything_and_settles_on_what_the_peer_has() {
    let config = plain().with(|it| {
        it.timestamps = true;
        it.window.receive_buffer = Size(256 * 1024);
    });
    let mut script = Script::connecting(&config);
    let syn_sent = script.take();
    assert_eq!((syn_sent.flags, syn_sent.seq, syn_sent.window), (SYN, ISS, 65_535));
    let options = syn_sent.options;
    assert_eq!((options.mss, options.window_scale, options.sack_permitted), (Some(1000), Some(3), true));
    let sent = options.timestamps.expect("timestamps are offered");
    assert_eq!(sent.echo, 0);
    script.at(100);
    script.inject(syn_ack().scale(7).sack_permitted().ts(500, sent.value));
    script.expect(ack(1, 1).ts(0, 500).window((262_144 / 8) as u16));
    script.expect_event(Event::Connected);
    let connection = script.connection();
    assert_eq!(connection.state(), State::Established);
    assert!(connection.uses_sack() && connection.uses_timestamps());
    // Timestamps take 12 bytes of each segment (RFC 6691).
    assert_eq!(connection.mss(), 988);
    assert_eq!(connection.srtt(), Some(base::Duration::from_millis(100)));
    // The window of a SYN is not scaled.
    assert_eq!(connection.peer_window(), 60_000);
    script.inject(ack(1, 1).window(1000).ts(501, sent.value));
    assert_eq!(script.connection().peer_window(), 128_000);
}

/// RFC 7323 (2.2, 3.2), RFC 2018 (2): a SYN-ACK answers only what was offered.
#[test]
fn a_passive_open_answers_only_what_was_offered() {
    let mut script = Script::listening(&TcpConfig { timestamps: true, ..plain() });
    script.inject(syn());
    let bare = script.take();
    assert_eq!((bare.flags, bare.seq, bare.ack), (SYN | ACK, ISS, IRS + 1));
    let options = bare.options;
    assert_eq!(
        (options.mss, options.window_scale, options.sack_permitted, options.timestamps),
        (Some(1000), None, false, None)
    );
    script.inject(ack(1, 1));
    script.expect_event(Event::Accepted { local_port: PORT });

    let mut script = Script::listening(&TcpConfig { timestamps: true, ..plain() });
    script.inject(syn().scale(2).sack_permitted().ts(77, 0));
    let full = script.take();
    assert_eq!((full.options.window_scale, full.options.sack_permitted), (Some(3), true));
    assert_eq!(full.options.timestamps.map(|t| t.echo), Some(77));
}

/// RFC 2018 (2): a peer without SACK is answered by NewReno; a host set to NewReno does not offer SACK.
#[test]
fn sack_is_used_only_if_both_want_it() {
    assert!(!Script::connected(&plain(), 10, syn_ack()).connection().uses_sack());
    assert!(Script::connected(&plain(), 10, syn_ack().sack_permitted()).connection().uses_sack());
    let config = plain().with(|it| it.recovery.scheme = Recovery::NewReno);
    let mut script = Script::connecting(&config);
    assert!(!script.take().options.sack_permitted);
}

/// RFC 9293, figure 8.
#[test]
fn both_sides_can_open_at_once() {
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.at(10);
    script.inject(syn());
    script.expect(Seg { flags: SYN | ACK, ack: Some(1), ..Seg::default() });
    assert_eq!(script.connection().state(), State::SynReceived);
    script.at(20);
    script.inject(syn_ack());
    script.expect_event(Event::Connected);
    assert_eq!(script.connection().state(), State::Established);
    script.write(10);
    script.expect(data(1, 10).ack(1));
}

/// RFC 9293 (3.8.1), RFC 6298 (5.5): a SYN is sent again after 1, 2, 4 s and then the attempt fails.
#[test]
fn a_syn_is_repeated_with_back_off_and_given_up() {
    let config = plain().with(|it| it.limits.syn_retries = 3);
    let mut script = Script::connecting(&config);
    script.expect(Seg { flags: SYN, ..Seg::default() });
    for (doublings, at) in [1000, 3000, 7000].into_iter().enumerate() {
        assert_eq!(script.connection().backoff(), doublings as u32);
        script.expect_at(at, Seg { flags: SYN, ..Seg::default() });
    }
    script.quiet_before(15_000);
    assert!(script.events.is_empty());
    script.at(15_000);
    script.expect_nothing();
    script.expect_event(Event::Failed(Failure::TimedOut));
    assert_eq!(script.connection().state(), State::Closed);
}

/// RFC 6298 (5.7) and RFC 5681 (3.1): after a lost SYN, data start with one segment and a time-out of 3 s.
#[test]
fn a_lost_syn_makes_the_start_careful() {
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.expect_at(1000, Seg { flags: SYN, ..Seg::default() });
    script.at(1100);
    script.inject(syn_ack());
    script.expect(ack(1, 1));
    script.write(5000);
    script.expect(data(1, 1000));
    script.expect_at(4100, data(1, 1000));
}

/// RFC 9293 (3.10.7.3, first): a SYN-ACK for another connection is reset, and the attempt goes on (figure 9).
#[test]
fn a_wrong_acknowledgement_of_the_syn_is_reset() {
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.inject(syn().ack(91));
    script.expect(rst(91));
    assert_eq!(script.connection().state(), State::SynSent);
    script.inject(rst(0).ack(91));
    script.expect_nothing();
    script.inject(syn_ack());
    script.expect(ack(1, 1));
}

/// RFC 9293 (3.10.7.3, second).
#[test]
fn a_reset_of_the_syn_refuses_the_connection() {
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.inject(rst(0));
    assert_eq!(script.connection().state(), State::SynSent, "a reset without ACK may be forged");
    script.inject(rst(0).ack(1));
    script.expect_event(Event::Failed(Failure::Refused));
    script.expect_nothing();
}

/// RFC 9293 (3.10.7.1): both forms of reset.
#[test]
fn a_closed_port_answers_with_a_reset() {
    let mut script = Script::listening(&plain());
    let mut closed = script.packet(&Seg { len: 5, ..syn() });
    closed[22..24].copy_from_slice(&81_u16.to_be_bytes());
    assert!(script.inject_packet(&closed).is_err(), "the checksum no longer holds");
    script.expect_nothing();

    // Nobody listens at a port that a connection used.
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.inject(rst(0).ack(1));
    for at in [0, 61_000] {
        script.at(at);
        assert!(matches!(script.try_inject(Seg { len: 5, ..syn() }), Err(Discard::NoConnection(_))));
        let answer = script.take();
        assert_eq!((answer.flags, answer.seq.0, answer.ack), (RST | ACK, 0, IRS + 6));
    }
    script.inject(ack(10, 20));
    script.expect(rst(20));
    script.inject(rst(0));
    script.expect_nothing();
}

/// RFC 9293 (3.10.7.4, third): a wrong acknowledgement in SYN-RECEIVED is reset.
#[test]
fn a_half_open_connection_resets_a_wrong_acknowledgement() {
    let mut script = Script::listening(&plain());
    script.inject(syn());
    script.expect(Seg { flags: SYN | ACK, ack: Some(1), ..Seg::default() });
    script.inject(ack(1, 2));
    script.expect(rst(2));
    script.inject(ack(1, 1));
    script.expect_event(Event::Accepted { local_port: PORT });
}

/// RFC 9293 (3.8.1): a SYN-ACK is sent again by its timer, and when the peer repeats its SYN.
#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut script = Script::listening(&plain());
    let answer = Seg { flags: SYN | ACK, ack: Some(1), ..Seg::default() };
    script.inject(syn());
    script.expect(answer.clone());
    script.at(300);
    script.inject(syn());
    script.expect(answer.clone());
    script.expect_at(1300, answer);
    script.at(1400);
    script.inject(ack(1, 1));
    script.expect_event(Event::Accepted { local_port: PORT });
}

/// RFC 9293 (3.10.7.4, second): a reset of a half-open connection leaves no trace and frees its place.
#[test]
fn a_reset_half_open_connection_is_forgotten() {
    let mut script = Script::listening(&plain().with(|it| it.limits.backlog = 1));
    let answer = Seg { flags: SYN | ACK, ack: Some(1), ..Seg::default() };
    script.inject(syn());
    script.expect(answer.clone());
    script.inject(rst(1));
    assert!(script.events.is_empty());
    assert_eq!(script.host.connections().count(), 0);
    script.inject(syn());
    script.expect(answer);
}

/// RFC 9293 (3.10.7.4, second): who has called is told, also if his peer called at the same time.
#[test]
fn a_reset_of_a_simultaneous_open_refuses_it() {
    let mut script = Script::connecting(&plain());
    script.take_count();
    script.inject(syn());
    assert_eq!(script.connection().state(), State::SynReceived);
    script.take_count();
    script.inject(rst(1));
    script.expect_event(Event::Failed(Failure::Refused));
    script.expect_nothing();
}

/// RFC 7323 (2.3): a scale above 14 counts as 14, and is noticed; in either direction.
#[test]
fn a_window_scale_above_14_counts_as_14() {
    for (scale, used, noticed) in [(13, 13, 0), (14, 14, 0), (15, 14, 1), (255, 14, 1)] {
        let mut active = Script::connected(&plain(), 10, syn_ack().scale(scale));
        let mut passive = Script::listening(&plain());
        passive.inject(syn().scale(scale));
        for script in [&mut active, &mut passive] {
            script.inject(ack(1, 1).window(40_000));
            assert_eq!(script.connection().peer_window(), 40_000 << used);
            assert_eq!(script.connection().statistics().excessive_scales, noticed);
        }
    }
}

/// RFC 9293 (3.7.1): without the option the MSS is 536.
#[test]
fn a_peer_without_mss_option_gets_536_bytes() {
    let answer = Seg { mss: None, ..syn_ack() };
    let mut script = Script::connected(&plain(), 10, answer);
    script.write(600);
    script.expect(data(1, 536));
}

/// RFC 9293 (3.10.2): data written before the handshake is done follow it.
#[test]
fn early_data_wait_for_the_handshake() {
    let mut script = Script::connecting(&plain());
    script.expect(Seg { flags: SYN, ..Seg::default() });
    script.write(700);
    script.finish();
    script.expect_nothing();
    script.inject(syn_ack());
    script.expect(Seg { len: 700, ..fin(1) });
}

/// RFC 6528: numbers depend on the peer and grow with time.
#[test]
fn initial_sequence_numbers_are_keyed_and_move_with_time() {
    let config = TcpConfig { initial_sequence: None, ..plain() };
    let number = |seed, port: u16, at: u64| {
        let mut host = longhaul_tcp::Host::new(HOST, base::Rng::named(seed, "host"));
        let remote = std::net::SocketAddr::new(PEER, port);
        let id = host.connect(ms(at), remote, &config).unwrap();
        host.connection(id).unwrap().sequence_number(1 << 32).0
    };
    assert_eq!(number(1, 80, 1000).wrapping_sub(number(1, 80, 0)), 250_000);
    assert_ne!(number(1, 80, 0), number(1, 81, 0));
    assert_ne!(number(1, 80, 0), number(2, 80, 0));
}

/// RFC 9293 (3.7.1): the same over IPv6, with its own default MSS.
#[test]
fn ipv6_works_alike() {
    let addresses: [std::net::IpAddr; 2] = ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()];
    let mut client = longhaul_tcp::Host::new(addresses[0], base::Rng::named(1, "c"));
    let mut server = longhaul_tcp::Host::new(addresses[1], base::Rng::named(1, "s"));
    let config = TcpConfig::default();
    server.listen(80, &config).unwrap();
    assert!(client.connect(ms(0), "10.0.0.1:80".parse().unwrap(), &config).is_err());
    let id = client.connect(ms(0), std::net::SocketAddr::new(addresses[1], 80), &config).unwrap();
    client.write(ms(0), id, &[5; 3000]).unwrap();
    let mut got = 0;
    let mut longest = 0;
    for round in 0..20 {
        while let Some(packet) = client.poll_transmit(ms(round)) {
            longest = longest.max(packet.len());
            server.handle_packet(ms(round), &packet).unwrap();
        }
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Readable {
                got += server.read_with(ms(round), id, |_| {}).unwrap();
            }
        }
        while let Some(packet) = server.poll_transmit(ms(round)) {
            client.handle_packet(ms(round), &packet).unwrap();
        }
    }
    assert_eq!((got, longest), (3000, 1500));
}

/// Linux, `CHECKSUM_UNNECESSARY`: where a device has verified the checksum, or none was needed, a packet counts whatever that says.
#[test]
fn a_verified_packet_needs_no_checksum() {
    let mut script = Script::listening(&plain());
    let mut packet = script.packet(&syn());
    packet[36] ^= 1;
    assert!(script.host.handle_packet(script.now, &packet).is_err());
    script.host.handle_verified_packet(script.now, &packet).unwrap();
    assert!(script.host.poll_transmit(script.now).is_some(), "verified packets are swallowed");
}
