//! Whom a proxy takes for a proxy.

use std::collections::BTreeMap;

use crate::chain::packets::{NOW, header, plain_syn, segment, sent, syn};
use crate::chain::{CLIENT, SERVER};
use base::wire::ip;
use base::wire::tcp::coding::Coding;
use base::wire::tcp::{Flags, Options, Repr, View};
use base::{Duration, Rng, SeqNum};
use longhaul_pep::{Acknowledgement, Config, ETHERNET_MSS, Peer, Proxy, Side, Verdict};
use tcp::TcpConfig;

fn proxy(config: Config, peer: Peer) -> Proxy {
    let mut proxy = Proxy::new(config, &mut Rng::named(1, "proxy"));
    proxy.set_peer(peer, ETHERNET_MSS);
    proxy
}

/// The options of a SYN that says to be a proxy's.
fn masked() -> Options {
    Options {
        mss: Some(1460),
        window_scale: Some(7),
        proxy_mss: Some(9000),
        sack_permitted: true,
        ..Options::default()
    }
}

fn options(packet: &[u8]) -> Options {
    let view = ip::View::parse(packet).unwrap();
    let tcp = View::parse(view.payload()).unwrap();
    assert!(tcp.checksum_ok(view.src(), view.dst()));
    tcp.options()
}

/// A SYN with data over the link: its data count before the handshake is over if it is a proxy's, and not if a stranger's.
#[test]
fn only_a_known_proxy_is_believed() {
    for (peer, believed) in [(Peer::Nobody, false), (Peer::Possible, false), (Peer::Known, true)] {
        let mut far = proxy(Config::default(), peer);
        let repr = Repr { options: masked(), ..header((4000, 80), SeqNum(9), SeqNum(0), Flags::SYN) };
        let mut call = segment((CLIENT, SERVER), &repr, b"words");
        assert_eq!(far.handle_packet(NOW, Side::Link, &mut call), Verdict::Taken);
        let (_, caller) = far.host(Side::Link).connections().next().unwrap();
        assert_eq!(caller.is_paired(), believed, "{peer:?}");
        assert_eq!(caller.statistics().bytes_received, if believed { 5 } else { 0 }, "{peer:?}");
        assert_eq!(options(&sent(&mut far, Side::Lan)[0]).proxy_mss, None, "no host is told of proxies");
    }
}

/// A proxy that does not know says what it is; the answer counts once it knows.
#[test]
fn an_answer_is_believed_of_a_known_proxy() {
    for (before, by_then, says, believed) in [
        (Peer::Nobody, Peer::Nobody, false, false),
        (Peer::Possible, Peer::Possible, true, false),
        (Peer::Possible, Peer::Known, true, true),
        (Peer::Known, Peer::Nobody, true, false),
    ] {
        let mut near = proxy(Config::default(), before);
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
        let call = sent(&mut near, Side::Link).remove(0);
        assert_eq!(options(&call).proxy_mss.is_some(), says, "{before:?}");
        near.set_peer(by_then, ETHERNET_MSS);
        let called = View::parse(&call[20..]).unwrap().seq();
        let repr =
            Repr { options: masked(), ..header((80, 4000), SeqNum(77), called + 1, Flags::SYN | Flags::ACK) };
        let mut answer = segment((SERVER, CLIENT), &repr, &[]);
        assert_eq!(near.handle_packet(NOW, Side::Link, &mut answer), Verdict::Taken);
        let (_, called) = near.host(Side::Link).connections().next().unwrap();
        assert_eq!(called.is_paired(), believed, "{before:?}, then {by_then:?}");
    }
}

/// What passes from the LAN would be believed at the other end.
#[test]
fn hosts_of_the_lan_cannot_pass_for_a_proxy() {
    let rule = "[[rule]]\naction = \"pass\"\nports = [80, 4000]";
    for peer in [Peer::Nobody, Peer::Possible, Peer::Known] {
        let mut near = proxy(base::config::parse("t", rule).unwrap(), peer);
        for (flags, from) in [(Flags::SYN, CLIENT), (Flags::SYN | Flags::ACK, "2001:db8::9")] {
            let to = if from == CLIENT { SERVER } else { "2001:db8::7" };
            let repr = Repr { options: masked(), ..header((4000, 80), SeqNum(1), SeqNum(2), flags) };
            let mut packet = segment((from, to), &repr, b"words");
            assert_eq!(options(&packet), masked());
            assert_eq!(near.handle_packet(NOW, Side::Lan, &mut packet), Verdict::Pass);
            assert_eq!(options(&packet), Options { proxy_mss: None, ..masked() });
        }
    }
}

/// What only looks like a SYN, in a datagram of UDP, goes on unchanged.
#[test]
fn nothing_else_is_touched() {
    let mut near = proxy(Config::default(), Peer::Nobody);
    let mut datagram = syn(CLIENT, 4000, masked());
    datagram[9] = ip::Protocol::UDP.0;
    let sum = base::wire::checksum::update(u16::from_be_bytes([datagram[10], datagram[11]]), 6, 17);
    datagram[10..12].copy_from_slice(&sum.to_be_bytes());
    let before = datagram.clone();
    assert_eq!(near.handle_packet(NOW, Side::Lan, &mut datagram), Verdict::Pass);
    assert_eq!(datagram, before);
    // Nor is a segment that is no SYN.
    let repr = Repr { options: masked(), ..header((4000, 80), SeqNum(1), SeqNum(2), Flags::ACK) };
    let before = segment((CLIENT, SERVER), &repr, &[]);
    let mut later = before.clone();
    assert_eq!(near.handle_packet(NOW, Side::Lan, &mut later), Verdict::Pass);
    assert_eq!(later, before);
}

/// A server may drop SYNs with options that it does not know, so the third says nothing of proxies. Where one is known to be there they all do:
/// they were lost, and without it the connection would take losses for congestion for as long as it lasts.
#[test]
fn the_third_syn_says_nothing_of_a_proxy_that_may_not_be_there() {
    for (peer, all) in [(Peer::Possible, false), (Peer::Known, true)] {
        let mut near = proxy(Config::default(), peer);
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
        let (mut said, mut now) = (Vec::new(), NOW);
        while said.len() < 4 {
            near.handle_timeout(now);
            while let Some(packet) = near.poll_transmit(now, Side::Link) {
                said.push(options(&packet).proxy_mss.is_some());
            }
            now = near.poll_timeout().unwrap();
            assert!(now < NOW + Duration::from_secs(100));
        }
        assert_eq!(said, [true, true, all, all]);
    }
}

/// Nor does a SYN that the far proxy lets pass: the server is no proxy.
#[test]
fn who_passes_the_far_proxy_says_nothing_of_proxies() {
    let full = Config { half_open: 1, ..Config::default() };
    let mut far = proxy(full, Peer::Known);
    let mut call = |port| {
        let mut packet = syn(CLIENT, port, masked());
        (far.handle_packet(NOW, Side::Link, &mut packet), options(&packet).proxy_mss)
    };
    assert_eq!(call(1), (Verdict::Taken, Some(9000)));
    assert_eq!(call(2), (Verdict::Pass, None));
}

/// Goal: a pair that the link clocks asks a blocked link again soon if it repairs nothing, and gives up no sooner than others do. Anybody else backs off (RFC 6298, 5.5):
/// who shares a line with strangers does not know that it is blocked.
#[test]
fn a_pair_asks_a_blocked_link_again_soon() {
    let waits_over = |repairs: bool, config: &Config, peer: Peer| {
        let mut near = proxy(Config { link_repairs: repairs, ..config.clone() }, peer);
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
        let (mut asked, mut now) = (Vec::new(), NOW);
        while near.counters().unanswered == 0 && asked.len() < 100 {
            near.handle_timeout(now);
            while near.poll_transmit(now, Side::Lan).is_some() {}
            if near.poll_transmit(now, Side::Link).is_some_and(|packet| flags(&packet) == Flags::SYN) {
                asked.push(now.saturating_since(NOW).as_millis() / 1000);
            }
            let Some(due) = near.poll_timeout() else { break };
            now = due;
        }
        asked
    };
    let waits = |config: &Config, peer: Peer| waits_over(false, config, peer);
    let mut bbr = Config::default();
    bbr.link.congestion = tcp::Congestion::Bbr;
    let mut patient = Config::default();
    patient.link.rto.max_backoff = core::num::NonZeroU32::new(2);
    let doubling = [0, 3, 9, 21, 45, 93, 189];
    assert_eq!(waits(&Config::default(), Peer::Nobody), doubling);
    assert_eq!(waits(&Config::default(), Peer::Possible), doubling);
    assert_eq!(waits(&bbr, Peer::Known), doubling);
    assert_eq!(waits_over(true, &Config::default(), Peer::Known), doubling, "late, not lost");
    let pair = waits(&Config::default(), Peer::Known);
    assert_eq!((&pair[..5], pair.len()), (&[0, 3, 9, 21, 33][..], 33));
    assert!((360..400).contains(&pair[32]), "{pair:?}");
    assert_eq!(waits(&patient, Peer::Known), [0, 3, 9, 15, 21, 27, 33], "the user's");
}

/// Goal: only a pair asks soon. A call that the far proxy lets pass has reached a stranger, whom a known proxy between says nothing of: from its
/// answer on, data that are lost wait twice as long each time, and are given up after fifteen time-outs.
#[test]
fn a_call_that_the_far_proxy_lets_pass_backs_off_as_any_other() {
    let pauses = |answer: Options| {
        let mut near = proxy(Config::default(), Peer::Known);
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
        let call = sent(&mut near, Side::Link).remove(0);
        let called = View::parse(&call[20..]).unwrap().seq() + 1;
        let repr =
            Repr { options: answer, ..header((80, 4000), SeqNum(77), called, Flags::SYN | Flags::ACK) };
        let mut packet = segment((SERVER, CLIENT), &repr, &[]);
        assert_eq!(near.handle_packet(NOW, Side::Link, &mut packet), Verdict::Taken);
        let answered = View::parse(&sent(&mut near, Side::Lan)[0][20..]).unwrap().seq() + 1;
        let repr = header((4000, 80), SeqNum(1001), answered, Flags::ACK);
        let mut packet = segment((CLIENT, SERVER), &repr, b"words");
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut packet), Verdict::Taken);
        let (mut left, mut now, id) =
            (Vec::new(), NOW, near.host(Side::Link).connections().next().unwrap().0);
        while near.host(Side::Link).connection(id).is_some_and(|it| it.failure().is_none())
            && left.len() < 200
        {
            near.handle_timeout(now);
            while let Some(packet) = near.poll_transmit(now, Side::Link) {
                if View::parse(&packet[20..]).unwrap().payload() == b"words" {
                    left.push(now);
                }
            }
            while near.poll_transmit(now, Side::Lan).is_some() {}
            let Some(due) = near.poll_timeout() else { break };
            now = due;
        }
        let pauses: Vec<_> =
            left.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_millis()).collect();
        (pauses, now.saturating_since(NOW))
    };
    // A probe is the first.
    let (stranger, until) = pauses(Options { proxy_mss: None, ..masked() });
    let doubling = [200, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000];
    assert_eq!((&stranger[..8], stranger.len()), (&doubling[..], 16), "{stranger:?}");
    assert!(until > Duration::from_secs(1100), "{until:?}");
    let (pair, until) = pauses(masked());
    assert_eq!(pair[..6], [200, 1000, 2000, 4000, 4000, 4000], "{pair:?}");
    assert!((Duration::from_secs(590)..Duration::from_secs(610)).contains(&until), "{until:?}");
}

/// Callers over the link whose servers answer, and who never acknowledge that: they hold the places of half-open connections.
#[test]
fn an_unconfirmed_caller_is_half_open() {
    let config = Config { half_open: 3, ..Config::default() };
    let mut far = proxy(config, Peer::Known);
    let (mut verdicts, mut answers) = (Vec::new(), BTreeMap::new());
    for port in 1..=6 {
        verdicts.push(far.handle_packet(NOW, Side::Link, &mut syn(CLIENT, port, masked())));
        let calls = |packet: &base::Packet| View::parse(&packet[20..]).unwrap().flags() == Flags::SYN;
        let Some(call) = sent(&mut far, Side::Lan).into_iter().find(calls) else { continue };
        let called = View::parse(&call[20..]).unwrap().seq();
        let repr = header((80, port), SeqNum(77), called + 1, Flags::SYN | Flags::ACK);
        let mut answer = segment((SERVER, CLIENT), &repr, &[]);
        assert_eq!(far.handle_packet(NOW, Side::Lan, &mut answer), Verdict::Taken);
        let answer = sent(&mut far, Side::Link).remove(0);
        assert_eq!(options(&answer).proxy_mss, Some(ETHERNET_MSS));
        answers.insert(port, View::parse(&answer[20..]).unwrap().seq());
    }
    let taken = |verdict: &&Verdict| **verdict == Verdict::Taken;
    assert_eq!(verdicts.iter().take_while(taken).count(), 3, "{verdicts:?}");
    far.set_peer(Peer::Nobody, ETHERNET_MSS);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut plain_syn(9)), Verdict::Pass, "they still count");
    // Who acknowledges frees a place.
    let (_, caller) = far.host(Side::Link).connections().next().unwrap();
    let (own, port) = (caller.offer().unwrap().initial_sequence, caller.remote().port());
    assert_eq!((own, verdicts.len()), (SeqNum(1000), 6));
    let ack = answers[&port] + 1;
    let mut packet = segment((CLIENT, SERVER), &header((port, 80), own + 1, ack, Flags::ACK), &[]);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut packet), Verdict::Taken);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut plain_syn(9)), Verdict::Taken);
}

/// A proxy with a caller over the link whose server has answered; the answer is ready to be polled.
fn answered() -> Proxy {
    let mut far = proxy(Config { half_open: 1, ..Config::default() }, Peer::Known);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut syn(CLIENT, 4000, masked())), Verdict::Taken);
    let called = View::parse(&sent(&mut far, Side::Lan)[0][20..]).unwrap().seq();
    let repr = header((80, 4000), SeqNum(77), called + 1, Flags::SYN | Flags::ACK);
    assert_eq!(far.handle_packet(NOW, Side::Lan, &mut segment((SERVER, CLIENT), &repr, &[])), Verdict::Taken);
    far
}

/// A caller asks again because the link was blocked, and the answer has to wait for the link's window: that is no reason to give up.
#[test]
fn an_answer_that_waits_for_the_link_breaks_nothing() {
    let mut far = answered();
    assert_eq!(sent(&mut far, Side::Link).len(), 1);
    let after = |ms| NOW + Duration::from_millis(ms);
    assert_eq!(far.handle_packet(after(2000), Side::Link, &mut syn(CLIENT, 4000, masked())), Verdict::Taken);
    let mut now = NOW;
    while let Some(due) = far.poll_timeout().filter(|due| *due < after(60_000)) {
        now = now.max(due);
        far.handle_timeout(now);
        assert!(far.poll_transmit(now, Side::Lan).is_none_or(|it| !flags(&it).has(Flags::RST)), "{now:?}");
    }
    assert!(now > after(3000), "its timer has expired");
    let again = far.poll_transmit(now, Side::Link).unwrap();
    assert_eq!(flags(&again), Flags::SYN | Flags::ACK);
    assert_eq!((far.host(Side::Link).connections().count(), far.counters().broken), (1, 0));
}

fn flags(packet: &base::Packet) -> Flags {
    View::parse(&packet[20..]).unwrap().flags()
}

/// One that never comes, because its caller has gone: it is asked again, then given up, and its server hears of it.
#[test]
fn an_unconfirmed_caller_is_given_up() {
    let mut far = answered();
    let (mut now, mut answers, mut resets) = (NOW, 0, 0);
    loop {
        while let Some(packet) = far.poll_transmit(now, Side::Link) {
            answers += u32::from(flags(&packet).has(Flags::SYN));
        }
        while let Some(packet) = far.poll_transmit(now, Side::Lan) {
            resets += u32::from(flags(&packet).has(Flags::RST));
        }
        let Some(due) = far.poll_timeout() else { break };
        now = now.max(due);
        assert!(now < NOW + Duration::from_secs(400), "{now:?}");
        far.handle_timeout(now);
    }
    assert!(answers > 3 && resets == 1, "{answers} answers, {resets} resets");
    assert_eq!(far.memory(), 0);
}

/// The answer was lost, and the server has much to say meanwhile: it comes again, or none of that would count.
#[test]
fn an_answer_that_was_lost_comes_again_though_data_flow() {
    let mut far = answered();
    let (mut now, mut answers, mut data, mut seq) = (NOW, Vec::new(), 0, SeqNum(78));
    while now < NOW + Duration::from_secs(20) {
        let heard = core::iter::from_fn(|| far.poll_transmit(now, Side::Lan)).last();
        if let Some(packet) = heard {
            let own = View::parse(&packet[20..]).unwrap().seq();
            let mut said = segment((SERVER, CLIENT), &header((80, 4000), seq, own, Flags::ACK), &[5; 1440]);
            assert_eq!(far.handle_packet(now, Side::Lan, &mut said), Verdict::Taken);
            seq += 1440;
        }
        while let Some(packet) = far.poll_transmit(now, Side::Link) {
            if flags(&packet).has(Flags::SYN) {
                answers.push(now.saturating_since(NOW).as_millis() / 1000);
            } else {
                data += 1;
            }
        }
        now += Duration::from_millis(100);
        far.handle_timeout(now);
    }
    assert_eq!(answers, [0, 3, 9]);
    assert!(data > 100, "{data}");
}

/// End to end each host hears how long the other's segments may be, whatever the two proxies send to each other.
#[test]
fn segment_sizes_are_handed_on() {
    let config = Config { ack: Acknowledgement::EndToEnd, ..Config::default() };
    for far_peer in [Peer::Known, Peer::Nobody] {
        let mut near = proxy(config.clone(), Peer::Known);
        near.set_peer(Peer::Known, 65_000);
        let mut far = proxy(config.clone(), far_peer);
        far.set_peer(far_peer, 65_000);
        let mut call = syn(CLIENT, 4000, Options { mss: Some(1300), ..Options::default() });
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut call), Verdict::Taken);
        let mut over = sent(&mut near, Side::Link).remove(0);
        assert_eq!(far.handle_packet(NOW, Side::Link, &mut over), Verdict::Taken);
        let out = sent(&mut far, Side::Lan).remove(0);
        assert_eq!(options(&out).mss, Some(1300), "{far_peer:?}");
        let repr = Repr {
            options: Options { mss: Some(1200), ..Options::default() },
            ..header(
                (80, 4000),
                SeqNum(77),
                View::parse(&out[20..]).unwrap().seq() + 1,
                Flags::SYN | Flags::ACK,
            )
        };
        assert_eq!(
            far.handle_packet(NOW, Side::Lan, &mut segment((SERVER, CLIENT), &repr, &[])),
            Verdict::Taken
        );
        let mut back = sent(&mut far, Side::Link).remove(0);
        assert_eq!(near.handle_packet(NOW, Side::Link, &mut back), Verdict::Taken);
        assert_eq!(options(&sent(&mut near, Side::Lan)[0]).mss, Some(1200), "{far_peer:?}");
    }
}

/// On a link that loses packets the answer may be lost. What it agreed on is in use by then, and said again: the code, and marks.
#[test]
fn an_answer_that_goes_again_agrees_to_the_same() {
    let lossy = TcpConfig::preset("proxy-link-lossy").unwrap();
    let mut far = proxy(Config { link: lossy, ..Config::default() }, Peer::Known);
    let offer =
        Options { sack_permitted: true, coding: Coding { offered: true, ..Coding::default() }, ..masked() };
    let flags = Flags::SYN | Flags::ECE | Flags::CWR;
    let repr = Repr { options: offer, ..header((4000, 80), SeqNum(9), SeqNum(0), flags) };
    let call = segment((CLIENT, SERVER), &repr, &[]);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut call.clone()), Verdict::Taken);
    let asked = sent(&mut far, Side::Lan).remove(0);
    let view = ip::View::parse(&asked).unwrap();
    let number = View::parse(view.payload()).unwrap().seq() + 1;
    let answer = Repr {
        options: Options { mss: Some(1460), ..Options::default() },
        ..header((80, 4000), SeqNum(7), number, Flags::SYN | Flags::ACK)
    };
    let mut answer = segment((SERVER, CLIENT), &answer, &[]);
    assert_eq!(far.handle_packet(NOW, Side::Lan, &mut answer), Verdict::Taken);
    let mut said = vec![sent(&mut far, Side::Link).remove(0)];
    let mut now = NOW;
    for _ in 0..5 {
        now += Duration::from_secs(60);
        far.handle_timeout(now);
        said.extend(far.poll_transmit(now, Side::Link));
    }
    assert_eq!(said.len(), 6);
    for packet in said {
        let view = ip::View::parse(&packet).unwrap();
        let flags = View::parse(view.payload()).unwrap().flags();
        assert_eq!(flags, Flags::SYN | Flags::ACK | Flags::ECE);
        assert!(options(&packet).coding.offered);
    }
}
