//! One host that opens as many connections as it can, beside others that open a few.

use crate::chain::packets::{NOW, call, establish, header, segment, sent};
use crate::chain::{CLIENT, SERVER, address};
use base::wire::tcp::{Flags, View};
use base::{Duration, Instant, SeqNum};
use longhaul_pep::{Config, Proxy, Side, Verdict};

const OTHER: &str = "10.0.0.3";

fn proxy(text: &str) -> Proxy {
    let config: Config = base::config::parse("t", text).unwrap();
    Proxy::new(config, &mut base::Rng::named(1, "proxy"))
}

/// Lets all time-outs before `until` happen and drops what is sent.
fn pass_time(proxy: &mut Proxy, until: Instant) {
    while let Some(due) = proxy.poll_timeout().filter(|due| *due < until) {
        proxy.handle_timeout(due);
        for side in Side::ALL {
            while proxy.poll_transmit(due, side).is_some() {}
        }
    }
}

/// 4096 half-open connections of one host keep its own from being split, and nobody else's. What it gives up is silent: its callers ask
/// again, and pass. Both sides are alike.
#[test]
fn half_open_connections_of_one_host_keep_only_its_own_from_being_split() {
    for side in Side::ALL {
        let mut proxy = proxy("");
        for port in 1..=5000 {
            let taken = call(&mut proxy, NOW, side, CLIENT, port) == Verdict::Taken;
            assert_eq!(taken, port <= 4096, "{port}");
        }
        sent(&mut proxy, side.other());
        // In turn, so that others meet a full table again and again.
        for port in 1..=1000 {
            assert_eq!(call(&mut proxy, NOW, side, OTHER, port), Verdict::Taken, "{port}");
            assert_eq!(call(&mut proxy, NOW, side, CLIENT, 10_000 + port), Verdict::Pass, "{port}");
        }
        assert_eq!(proxy.counters().crowded_out, 1000);
        assert!(sent(&mut proxy, side).is_empty(), "nobody was answered, so nobody is reset");
        assert_eq!(sent(&mut proxy, side.other()).len(), 1000, "a call each");
        // The oldest were given up: the first of the crowd begin anew, and pass as they are.
        assert_eq!(call(&mut proxy, NOW, side, CLIENT, 1), Verdict::Pass);
        assert_eq!(call(&mut proxy, NOW, side, CLIENT, 1001), Verdict::Taken, "sent again");
        // In time all places are free again.
        pass_time(&mut proxy, NOW + Duration::from_secs(1000));
        assert_eq!((proxy.memory(), proxy.host(Side::Lan).len(), proxy.host(Side::Link).len()), (0, 0, 0));
        for port in 1..=4096 {
            assert_eq!(call(&mut proxy, NOW + Duration::from_secs(1000), side, CLIENT, port), Verdict::Taken);
        }
    }
}

/// A few half-open connections of each host's are never given up: a flood of forged addresses breaks nothing of who is opening connections.
#[test]
fn a_few_half_open_connections_are_never_given_up() {
    let mut proxy = proxy("");
    for port in 1..=16 {
        assert_eq!(call(&mut proxy, NOW, Side::Lan, OTHER, port), Verdict::Taken);
    }
    for forged in 0..5000_u32 {
        let from = core::net::Ipv4Addr::from(0x0a01_0000 + forged).to_string();
        let taken = call(&mut proxy, NOW, Side::Lan, &from, 7) == Verdict::Taken;
        assert_eq!(taken, forged < 4080, "{forged}");
    }
    assert_eq!(proxy.counters().crowded_out, 0);
    for port in 1..=16 {
        assert_eq!(call(&mut proxy, NOW, Side::Lan, OTHER, port), Verdict::Taken, "it is still there");
    }
    assert_eq!(call(&mut proxy, NOW, Side::Lan, OTHER, 17), Verdict::Pass);
}

/// A caller that was answered early is told that it was given up.
#[test]
fn who_was_answered_is_reset_when_it_is_given_up() {
    let mut proxy = proxy("half-open = 20\nanswer = \"always\"");
    for port in 1..=20 {
        assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, port), Verdict::Taken);
    }
    assert_eq!(sent(&mut proxy, Side::Lan).len(), 20, "all are answered");
    assert_eq!(call(&mut proxy, NOW, Side::Lan, OTHER, 1), Verdict::Taken);
    let told = sent(&mut proxy, Side::Lan);
    let of = |packet: &[u8]| {
        let tcp = View::parse(&packet[20..]).unwrap();
        (tcp.dst_port(), tcp.flags().has(Flags::RST))
    };
    let told: Vec<_> = told.iter().map(|packet| of(packet)).collect();
    assert!(told.contains(&(1, true)) && told.len() == 2, "{told:?}");
}

/// A host that has opened as many connections as it can leaves some places to others: it gets four fifths of all, since a host may have four
/// times as many as are free.
#[test]
fn established_connections_of_one_host_leave_places_to_others() {
    let mut proxy = proxy("connections = 1000\nanswer = \"never\"");
    assert_eq!(establish(&mut proxy, NOW, CLIENT, 1..1100), 800);
    assert_eq!(proxy.counters().passed_for_share, 299);
    assert_eq!(establish(&mut proxy, NOW, OTHER, 1..1100), 160);
    assert_eq!(establish(&mut proxy, NOW, "10.0.0.4", 1..30), 29);
    assert_eq!(proxy.host(Side::Lan).live(), 989);
    // A host alone has few places where there are few, and all of them where there are fewer still.
    let alone = |most: u32| {
        establish(&mut self::proxy(&format!("connections = {most}\nanswer = \"never\"")), NOW, CLIENT, 1..99)
    };
    assert_eq!([1, 2, 4, 5, 10].map(alone), [1, 2, 4, 4, 8]);
}

/// A host ends its connection.
fn reset(proxy: &mut Proxy, now: Instant, from: &str, port: u16) {
    let mut reset = header((port, 80), SeqNum(1001), SeqNum(0), Flags::RST);
    reset.window = 0;
    assert_eq!(
        proxy.handle_packet(now, Side::Lan, &mut segment((from, SERVER), &reset, &[])),
        Verdict::Taken
    );
    for side in Side::ALL {
        while proxy.poll_transmit(now, side).is_some() {}
    }
}

/// What a caller had, and has no more, takes none of its places: a busy one is split for ever.
#[test]
fn connections_that_are_over_take_no_place() {
    let mut proxy = proxy("connections = 10\nanswer = \"never\"");
    for port in 1..=200 {
        assert_eq!(establish(&mut proxy, NOW, CLIENT, port..port + 1), 1, "connection {port} is not split");
        assert_eq!(proxy.host(Side::Lan).half_open_of(address(CLIENT)), 0);
        assert_eq!(
            proxy.host(Side::Lan).largest_crowd(),
            None,
            "who has acknowledged the answer is not crowded out"
        );
        reset(&mut proxy, NOW, CLIENT, port);
        let late = header((port, 80), SeqNum(1001), SeqNum(1), Flags::ACK);
        let late = proxy.handle_packet(NOW, Side::Lan, &mut segment((CLIENT, SERVER), &late, b"late"));
        assert_eq!(late, Verdict::Pass, "the real end is to answer");
    }
    assert_eq!(proxy.host(Side::Lan).live_of(address(CLIENT)), 0);
}

/// A SYN that comes again, or is forged, ends nothing, whether there is a place for another connection or not.
#[test]
fn a_repeated_syn_without_a_place_leaves_its_connection() {
    let mut proxy = proxy("connections = 1\nanswer = \"never\"");
    assert_eq!(establish(&mut proxy, NOW, CLIENT, 1..2), 1);
    assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, 1), Verdict::Taken);
    assert_eq!(proxy.host(Side::Lan).live(), 1, "a live connection is forgotten");
    reset(&mut proxy, NOW, CLIENT, 1);
}

/// Connections that are over are let go where there are many, so that a host that opens and ends them at speed takes no memory from others.
#[test]
fn connections_that_are_over_take_an_eighth_of_the_memory() {
    let mut proxy = proxy("memory = \"4 MiB\"\nanswer = \"never\"");
    let mut most = 0;
    for round in 0..200_u64 {
        // Each is reset by its caller as soon as it is open: 100 in a tenth of a second.
        let now = NOW + Duration::from_millis(round * 100);
        let from = if round % 2 == 0 { CLIENT } else { OTHER };
        assert_eq!(establish(&mut proxy, now, from, 1..101), 100, "round {round}");
        for port in 1..101 {
            reset(&mut proxy, now, from, port);
        }
        most = most.max(proxy.memory());
    }
    assert_eq!(proxy.host(Side::Lan).live(), 0);
    assert!(most < (4 << 20) / 8 + (1 << 19), "{most}");
    pass_time(&mut proxy, NOW + Duration::from_secs(1000));
    assert_eq!((proxy.memory(), proxy.host(Side::Lan).len(), proxy.host(Side::Link).len()), (0, 0, 0));
}
