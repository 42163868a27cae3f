//! Small rules that hosts and routers rely on: what a mark says, who is known, what waits, and whose turn it is.

use crate::chain::packets::{NOW, call, header, open, plain_syn, segment, sent};
use crate::chain::{CLIENT, SERVER, address};
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{Flags, Options, View};
use base::{Instant, Rng, SeqNum};
use longhaul_pep::{Acknowledgement, Answer, Config, Proxy, Side, Verdict};

const PORT: u16 = 4000;

fn proxy(config: Config) -> Proxy {
    Proxy::new(config, &mut Rng::named(1, "proxy"))
}

/// Answers only when the far end has.
fn reticent() -> Proxy {
    proxy(Config { answer: Answer::Never, ..Config::default() })
}

/// The packet with this code point.
fn marked(mut packet: Vec<u8>, dscp: u8) -> Vec<u8> {
    packet[1] = dscp << 2;
    packet[10..12].fill(0);
    let sum = base::wire::checksum::Sum::of(&packet[..20]).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn flags(packet: &[u8]) -> Flags {
    View::parse(&packet[20..]).unwrap().flags()
}

/// The client's next number is 1001, the server's 8.
fn from_server(asked: SeqNum, flags: Flags, data: &[u8]) -> Vec<u8> {
    segment((SERVER, CLIENT), &header((80, PORT), SeqNum(8), asked, flags), data)
}

fn from_client(answered: SeqNum, data: &[u8]) -> Vec<u8> {
    segment((CLIENT, SERVER), &header((PORT, 80), SeqNum(1001), answered, Flags::ACK), data)
}

/// The number that the proxy says it has come to towards the client.
fn said_to_client(proxy: &Proxy) -> SeqNum {
    let (_, connection) = proxy.host(Side::Lan).connections().next().unwrap();
    connection.sequence_number(1)
}

/// RFC 2474: data keep their mark. A bare acknowledgement says nothing of what its sender will send: hosts mark some of them otherwise.
#[test]
fn bare_acknowledgements_change_no_mark() {
    let mut proxy = reticent();
    let asked = open(&mut proxy, NOW, CLIENT, PORT).unwrap();
    let answered = said_to_client(&proxy);
    let mut bare = marked(from_client(answered, &[]), 46);
    assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut bare), Verdict::Taken);
    // What goes to the server for the client.
    for (at, mark) in [(0, 0), (1, 46)] {
        if mark > 0 {
            let mut words = marked(from_client(answered, b"words"), mark);
            assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut words), Verdict::Taken);
            let out = sent(&mut proxy, Side::Link).remove(0);
            assert_eq!(ip::View::parse(&out).unwrap().dscp(), mark);
        }
        let repr = header((80, PORT), SeqNum(8 + 2000 * at), asked, Flags::ACK);
        for part in 0..2 {
            let repr = base::wire::tcp::Repr { seq: repr.seq + 1000 * part, ..repr };
            let mut data = segment((SERVER, CLIENT), &repr, &[7; 1000]);
            assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut data), Verdict::Taken);
        }
        let out = sent(&mut proxy, Side::Link).remove(0);
        assert_eq!(ip::View::parse(&out).unwrap().dscp(), mark, "the acknowledgement of two segments");
    }
}

/// Servers on the LAN are not known: who calls them from there is answered when they are, for their refusals come at once.
#[test]
fn only_servers_beyond_the_link_are_known() {
    let mut proxy = proxy(Config::default());
    assert_eq!(call(&mut proxy, NOW, Side::Link, CLIENT, PORT), Verdict::Taken);
    let asked = View::parse(&sent(&mut proxy, Side::Lan)[0][20..]).unwrap().seq() + 1;
    let repr = header((80, PORT), SeqNum(7), asked, Flags::SYN | Flags::ACK);
    let mut answer = segment((SERVER, CLIENT), &repr, &[]);
    assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut answer), Verdict::Taken);
    assert_eq!(flags(&sent(&mut proxy, Side::Link)[0]), Flags::SYN | Flags::ACK);
    sent(&mut proxy, Side::Lan);
    assert_eq!(call(&mut proxy, NOW, Side::Lan, "10.0.0.3", 5000), Verdict::Taken);
    assert!(sent(&mut proxy, Side::Lan).is_empty(), "it waits for the server");
    assert_eq!(proxy.counters().answered_early, 0);
}

/// End to end nothing is promised that the server has not promised, not even to those who call a server that always answers.
#[test]
fn end_to_end_nobody_is_answered_early() {
    for (ack, answers) in [(Acknowledgement::Local, 1), (Acknowledgement::EndToEnd, 0)] {
        let mut proxy = proxy(Config { answer: Answer::Always, ack, ..Config::default() });
        assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, PORT), Verdict::Taken);
        assert_eq!(sent(&mut proxy, Side::Lan).len(), answers, "{ack:?}");
    }
}

/// Callers from the link have waited for it already, and are told by the server itself.
#[test]
fn callers_from_the_link_are_never_answered_early() {
    let mut proxy = proxy(Config { answer: Answer::Always, ..Config::default() });
    assert_eq!(call(&mut proxy, NOW, Side::Link, CLIENT, PORT), Verdict::Taken);
    assert!(sent(&mut proxy, Side::Link).is_empty());
    assert_eq!((sent(&mut proxy, Side::Lan).len(), proxy.counters().answered_early), (1, 0));
}

/// A caller that was answered early and has said its word has one call at the link, also when the time for first words is over; one that
/// has gone by then has none.
#[test]
fn an_early_caller_calls_once() {
    for says in [true, false] {
        let mut proxy = proxy(Config { answer: Answer::Always, ..Config::default() });
        assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, PORT), Verdict::Taken);
        let answered = View::parse(&sent(&mut proxy, Side::Lan)[0][20..]).unwrap().seq() + 1;
        assert!(sent(&mut proxy, Side::Link).is_empty(), "it waits for first words");
        if says {
            let mut words = from_client(answered, b"words");
            assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut words), Verdict::Taken);
            assert_eq!(sent(&mut proxy, Side::Link).len(), 1);
        } else {
            let reset = header((PORT, 80), SeqNum(1001), SeqNum(0), Flags::RST);
            let mut reset = segment((CLIENT, SERVER), &reset, &[]);
            let _ = proxy.handle_packet(NOW, Side::Lan, &mut reset);
        }
        let later = NOW + base::Duration::from_millis(20);
        proxy.handle_timeout(later);
        assert!(proxy.poll_transmit(later, Side::Link).is_none(), "said something: {says}");
        assert_eq!(proxy.host(Side::Link).len(), usize::from(says));
        assert!(
            proxy.poll_timeout().is_none_or(|due| due > later + base::Duration::from_millis(100)),
            "{says}"
        );
    }
}

/// A router's message of this kind, code 1, which quotes the header of a packet, as one of `protocol`, and 8 bytes.
fn icmp_report(kind: u8, protocol: u8, packet: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 1, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&packet[..28]);
    message[8 + 9] = protocol;
    let sum = base::wire::checksum::Sum::of(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let router = address("198.51.100.1");
    let header = ip::Repr::new(router, address(CLIENT), Protocol::ICMP, Ecn::NotEct, message.len());
    let mut report = vec![0; 20];
    header.emit(&mut report);
    report.extend(message);
    report
}

/// RFC 792: reports that nobody fetches are dropped beyond 64, as a router might.
#[test]
fn reports_that_wait_are_bounded() {
    let mut proxy = reticent();
    for port in 1..=70 {
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut plain_syn(port)), Verdict::Taken);
    }
    for out in sent(&mut proxy, Side::Link) {
        let mut report = icmp_report(3, 6, &out);
        assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut report), Verdict::Taken);
    }
    assert_eq!(sent(&mut proxy, Side::Lan).len(), 64);
}

/// A half-open connection of the largest crowd goes to who would still have fewer than that one: among equals nobody is given up.
#[test]
fn who_has_as_many_crowds_nobody_out() {
    let config: Config = base::config::parse("t", "half-open = 9\nanswer = \"never\"").unwrap();
    let mut proxy = proxy(config);
    let mut add = |from: &str, ports: core::ops::Range<u16>| {
        let taken = |port| usize::from(call(&mut proxy, NOW, Side::Lan, from, port) == Verdict::Taken);
        ports.map(taken).sum::<usize>()
    };
    assert_eq!((add(CLIENT, 1..6), add("10.0.0.3", 1..5)), (5, 4));
    // A fifth would leave the crowd with four, and have more itself.
    assert_eq!(add("10.0.0.3", 5..6), 0);
    assert_eq!(add("10.0.0.4", 1..3), 2);
    assert_eq!(proxy.counters().crowded_out, 2);
}

/// A connection that has data for the link, less than an initial window; the number that the server has come to.
fn busy() -> (Proxy, SeqNum) {
    let mut proxy = reticent();
    let asked = open(&mut proxy, NOW, CLIENT, PORT).unwrap();
    fill(&mut proxy, 0, 5);
    (proxy, asked)
}

/// The client sends segments of 1000 bytes, from this one on.
fn fill(proxy: &mut Proxy, from: u32, count: u32) {
    let answered = said_to_client(proxy);
    for number in from..from + count {
        let repr = header((PORT, 80), SeqNum(1001) + 1000 * number, answered, Flags::ACK);
        let mut data = segment((CLIENT, SERVER), &repr, &[7; 1000]);
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut data), Verdict::Taken);
    }
}

fn turn(proxy: &mut Proxy, others_wait: bool) -> Option<usize> {
    proxy.poll_turn(NOW, others_wait).map(|it| it.len())
}

/// What passes and what the proxy sends share the link by bytes, where both wait: after a packet of the proxy's it is others' turn until as
/// many bytes of theirs have gone.
#[test]
fn the_proxy_and_others_take_turns_by_bytes() {
    let (mut proxy, _) = busy();
    assert!(proxy.is_clocked());
    let len = turn(&mut proxy, true).expect("the first turn");
    assert_eq!(turn(&mut proxy, true), None);
    proxy.note_passed(len - 1);
    assert_eq!(turn(&mut proxy, true), None, "a byte is missing");
    // Twice as many as were missing: what others have had too much comes back.
    proxy.note_passed(1 + len);
    assert_eq!(turn(&mut proxy, true), Some(len));
    assert_eq!(turn(&mut proxy, true), Some(len));
    assert_eq!(turn(&mut proxy, true), None);
}

/// Nobody saves up turns: what the proxy sent while nobody else waited counts for nothing, and nor does what passed while it had nothing to
/// send.
#[test]
fn turns_are_not_saved_up() {
    let (mut proxy, mut acked) = busy();
    for _ in 0..4 {
        assert!(turn(&mut proxy, false).is_some(), "alone it has every turn");
    }
    proxy.note_passed(1500);
    assert!(turn(&mut proxy, true).is_some(), "more has passed than the last packet of its own");
    // Everything is sent and acknowledged; then others have the link for a while.
    for _ in 0..3 {
        while let Some(packet) = proxy.poll_turn(NOW, false) {
            let tcp = View::parse(&packet[20..]).unwrap();
            acked = tcp.seq() + tcp.payload().len() as u32;
        }
        let mut ack = from_server(acked, Flags::ACK, &[]);
        assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut ack), Verdict::Taken);
    }
    assert_eq!(turn(&mut proxy, true), None);
    proxy.note_passed(100_000);
    assert_eq!(turn(&mut proxy, true), None);
    fill(&mut proxy, 5, 3);
    assert!(turn(&mut proxy, true).is_some());
    assert_eq!(turn(&mut proxy, true), None, "one packet, not a hundred");
}

/// RFC 9293 (3.5.2): whoever is reset loses nothing of what was said before. Where memory kept the proxy from taking it across, the reset
/// waits for that.
#[test]
fn a_reset_waits_for_what_has_not_crossed() {
    let mut proxy = reticent();
    let asked = open(&mut proxy, NOW, CLIENT, PORT).unwrap();
    let answered = said_to_client(&proxy);
    proxy.limit_memory(0);
    let mut came = 0_u32;
    for number in 0..4 {
        let repr = header((80, PORT), SeqNum(8) + 1000 * number, asked, Flags::ACK);
        let mut data = segment((SERVER, CLIENT), &repr, &[7; 1000]);
        assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut data), Verdict::Taken);
        let (_, link) = proxy.host(Side::Link).connections().next().unwrap();
        came = link.statistics().bytes_received as u32;
    }
    let reset = header((80, PORT), SeqNum(8) + came, asked, Flags::RST);
    let _ = proxy.handle_packet(NOW, Side::Link, &mut segment((SERVER, CLIENT), &reset, &[]));
    let (mut got, mut was_reset, mut now): (u32, bool, Instant) = (0, false, NOW);
    for _ in 0..50 {
        while let Some(packet) = proxy.poll_transmit(now, Side::Lan) {
            let tcp = View::parse(&packet[20..]).unwrap();
            was_reset |= tcp.flags().has(Flags::RST);
            assert!(!was_reset || got == came, "reset after {got} of {came} bytes");
            let end = (tcp.seq() + tcp.payload().len() as u32).distance(answered);
            got = got.max(end.max(0) as u32);
        }
        now += base::Duration::from_millis(1);
        let _ = proxy.handle_packet(now, Side::Lan, &mut from_client(answered + got, &[]));
        while proxy.poll_transmit(now, Side::Link).is_some() {}
    }
    assert_eq!((got, was_reset), (came, true));
    assert!(came >= 1000);
}

/// RFC 9293 (3.10.7.4, eighth): a FIN that comes again is answered by the one that has acknowledged it: the real end would reset.
#[test]
fn a_fin_that_comes_again_is_taken() {
    let mut proxy = reticent();
    let asked = open(&mut proxy, NOW, CLIENT, PORT).unwrap();
    let answered = said_to_client(&proxy);
    let mut from_server =
        segment((SERVER, CLIENT), &header((80, PORT), SeqNum(8), asked, Flags::FIN | Flags::ACK), &[]);
    assert_eq!(proxy.handle_packet(NOW, Side::Link, &mut from_server), Verdict::Taken);
    assert!(flags(sent(&mut proxy, Side::Lan).last().unwrap()).has(Flags::FIN));
    for again in [false, true] {
        let fin = header((PORT, 80), SeqNum(1001), answered + 1, Flags::FIN | Flags::ACK);
        let verdict = proxy.handle_packet(NOW, Side::Lan, &mut segment((CLIENT, SERVER), &fin, &[]));
        assert_eq!(verdict, Verdict::Taken, "again: {again}");
        assert_eq!(flags(&sent(&mut proxy, Side::Lan)[0]), Flags::ACK);
    }
}

/// Where another controller than `link` meets a queue, packets go into that at once.
#[test]
fn other_controllers_fill_the_links_queue() {
    let config: Config = base::config::parse("t", "answer = \"never\"\nlink.congestion = \"cubic\"").unwrap();
    let mut proxy = proxy(config);
    assert!(!proxy.is_clocked());
    assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, PORT), Verdict::Taken);
    assert!(proxy.poll_turn(NOW, false).is_none());
    assert_eq!(proxy.poll_queued(NOW).map(|packet| flags(&packet)), Some(Flags::SYN));
    assert!(proxy.poll_queued(NOW).is_none());
    let mut clocked = reticent();
    assert_eq!(call(&mut clocked, NOW, Side::Lan, CLIENT, PORT), Verdict::Taken);
    assert!(clocked.poll_queued(NOW).is_none());
}

/// RFC 792: only what says that there is no way is a caller's to hear, and only of its TCP.
#[test]
fn other_reports_pass() {
    let mut proxy = reticent();
    assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut plain_syn(PORT)), Verdict::Taken);
    let out = sent(&mut proxy, Side::Link).remove(0);
    // Unreachable; time exceeded; unreachable, of UDP with the same ports and number.
    for (kind, protocol, expected) in [(11, 6, Verdict::Pass), (3, 17, Verdict::Pass), (3, 6, Verdict::Taken)]
    {
        let mut report = icmp_report(kind, protocol, &out);
        let verdict = proxy.handle_packet(NOW, Side::Link, &mut report);
        assert_eq!(verdict, expected, "type {kind}, protocol {protocol}");
    }
}

/// RFC 9293 (3.8.4): a keep-alive may have a byte; with one, as without, the other end is asked as well.
#[test]
fn a_keep_alive_may_have_a_byte() {
    for len in [0, 1] {
        let mut proxy = reticent();
        open(&mut proxy, NOW, CLIENT, PORT).unwrap();
        let answered = said_to_client(&proxy);
        let repr = header((PORT, 80), SeqNum(1000), answered, Flags::ACK);
        let mut asks = segment((CLIENT, SERVER), &repr, &[0, 0][..len]);
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut asks), Verdict::Taken);
        assert_eq!(sent(&mut proxy, Side::Link).len(), 1, "{len} bytes: the other end is not asked");
    }
}

/// RFC 7323 (2.2), RFC 2018 (2): end to end nothing is agreed on with one end that the other has not.
#[test]
fn end_to_end_only_what_both_ends_have_is_agreed_on() {
    for caller_has in [false, true] {
        let mut proxy = proxy(Config { ack: Acknowledgement::EndToEnd, ..Config::default() });
        let options = |has: bool| Options {
            mss: Some(1460),
            sack_permitted: has,
            window_scale: has.then_some(7),
            ..Options::default()
        };
        let mut syn = crate::chain::packets::syn(CLIENT, PORT, options(caller_has));
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut syn), Verdict::Taken);
        let of = |packet: &[u8]| {
            let options = View::parse(&packet[20..]).unwrap().options();
            (options.sack_permitted, options.window_scale.is_some())
        };
        let call = sent(&mut proxy, Side::Link).remove(0);
        assert_eq!(of(&call), (caller_has, caller_has), "offered for the caller");
        let coding = View::parse(&call[20..]).unwrap().options().coding;
        assert!(!coding.offered, "nobody has configured a code");
        let asked = View::parse(&call[20..]).unwrap().seq() + 1;
        let repr = header((80, PORT), SeqNum(7), asked, Flags::SYN | Flags::ACK);
        let repr = base::wire::tcp::Repr { options: options(!caller_has), ..repr };
        assert_eq!(
            proxy.handle_packet(NOW, Side::Link, &mut segment((SERVER, CLIENT), &repr, &[])),
            Verdict::Taken
        );
        assert_eq!(of(&sent(&mut proxy, Side::Lan)[0]), (false, false), "agreed on with the caller");
    }
}
