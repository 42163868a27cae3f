//! What a proxy says of its memory, beside what is allocated.

#[path = "../../link/tests/allocations/mod.rs"]
mod allocations;
#[allow(dead_code, reason = "the chain has more to it than these tests ask for")]
mod chain;

use base::wire::tcp::{Flags, View};
use base::{Duration, Instant, Rng, SeqNum};
use chain::packets::{NOW, establish, header, open, segment};
use chain::{CLIENT, SERVER};
use longhaul_pep::{Config, Proxy, Side, Verdict};

/// Connections that carry nothing are counted as what is allocated for them, tables and all.
#[test]
fn memory_is_what_is_allocated() {
    let config: Config = base::config::parse("t", "answer = \"never\"").unwrap();
    let mut proxy = Proxy::new(config, &mut Rng::named(1, "proxy"));
    let before = allocations::live();
    for ports in [1..100, 100..1000, 1000..4000] {
        establish(&mut proxy, NOW, CLIENT, ports);
        let (told, held) = (proxy.memory() as f64, (allocations::live() - before) as f64);
        assert!((0.85..1.1).contains(&(told / held)), "told {told}, allocated {held}");
    }
}

/// A server sends to a client that has vanished. What the proxy has acknowledged is held until the client's user time-out, and no longer;
/// the server hears of it then.
#[test]
fn data_for_a_client_that_has_vanished_is_given_up() {
    for (text, seconds) in
        [("", 300), ("user-timeout = \"20 s\"", 20), ("lan.limits.user-timeout = \"40 s\"", 40)]
    {
        let config: Config = base::config::parse("t", &format!("answer = \"never\"\n{text}")).unwrap();
        let mut proxy = Proxy::new(config, &mut Rng::named(1, "proxy"));
        let expected = open(&mut proxy, NOW, CLIENT, 1).unwrap();
        let repr = header((80, 1), SeqNum(8), expected, Flags::ACK | Flags::PSH);
        let mut data = segment((SERVER, CLIENT), &repr, &[7; 1000]);
        assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut data), Verdict::Taken);
        let (mut told_at, mut now) = (None, NOW);
        while let Some(due) = proxy.poll_timeout().filter(|due| *due < NOW + Duration::from_secs(2000)) {
            now = due.max(now);
            proxy.handle_timeout(now);
            while proxy.poll_transmit(now, Side::Lan).is_some() {}
            while let Some(packet) = proxy.poll_transmit(now, Side::Link) {
                let is_reset = View::parse(&packet[20..]).unwrap().flags().has(Flags::RST);
                told_at = told_at.or(is_reset.then_some(now));
            }
        }
        let told_at = told_at.expect("the server is told").saturating_since(Instant::ZERO);
        let due = Duration::from_secs(seconds)..Duration::from_secs(seconds + 1);
        assert!(due.contains(&told_at), "{text}: {told_at:?}");
        assert_eq!((proxy.memory(), proxy.host(Side::Lan).len()), (0, 0), "{text}");
    }
}
