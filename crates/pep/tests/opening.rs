//! What callers are told, and when.

use crate::chain::packets::{NOW, header, plain_syn, segment, sent};
use crate::chain::{CLIENT, Chain, SERVER, Setup, address, stream};
use base::wire::tcp::{Flags, View};
use base::{Duration, Instant, Rng, SeqNum};
use longhaul_pep::{Answer, Config, ETHERNET_MSS, Peer, Proxy, Side, Verdict};
use tcp::{ConnectionId, Failure, Host, TcpConfig};

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn answering(answer: Answer) -> Setup {
    Setup { near: Some(Config { answer, ..Config::default() }), ..Setup::default() }
}

/// A request of 300 bytes, answered with as many; when the caller was connected and when it had its answer, in milliseconds.
fn exchange(setup: &Setup, before: u32) -> (u64, u64) {
    let mut chain = Chain::new(setup);
    chain.listen(80, &setup.host);
    let mut result = (0, 0);
    for _ in 0..=before {
        let start = chain.now;
        chain.server_saw.clear();
        let id = chain.connect(80, &setup.host);
        let until = start.saturating_since(Instant::ZERO) + Duration::from_secs(20);
        chain.run(until, |chain| chain.saw(id).connected_at.is_some());
        assert_eq!(chain.client.write(chain.now, id, &stream(1, 300)), Ok(300));
        chain.run(until, |chain| chain.server_saw().read.len() == 300);
        assert_eq!(chain.server_saw().read, stream(1, 300));
        let at_server = chain.server_saw().id.unwrap();
        chain.server.write(chain.now, at_server, &stream(2, 300)).unwrap();
        chain.run(until, |chain| chain.saw(id).read.len() == 300);
        assert_eq!(chain.saw(id).read, stream(2, 300));
        let ms = |at: Option<Instant>| at.unwrap().saturating_since(start).as_millis();
        result = (ms(chain.saw(id).connected_at), ms(chain.saw(id).first_byte_at));
    }
    result
}

/// Round trips of 600 ms: without proxies two, with a handshake that waits for the server two, with a known server one.
#[test]
fn a_known_server_saves_a_round_trip() {
    let around = |ms: u64, want: u64| (want..want + 40).contains(&ms);
    let (connected, answered) = exchange(&Setup { near: None, far: None, ..Setup::default() }, 1);
    assert!(around(connected, 604) && around(answered, 1208), "{connected} {answered}");
    let (connected, answered) = exchange(&answering(Answer::Never), 1);
    assert!(around(connected, 604) && around(answered, 1208), "{connected} {answered}");
    let (connected, answered) = exchange(&answering(Answer::Known), 0);
    assert!(around(connected, 604) && around(answered, 1208), "{connected} {answered}");
    let (connected, answered) = exchange(&answering(Answer::Known), 1);
    assert!(around(connected, 2) && around(answered, 606), "{connected} {answered}");
    let (connected, answered) = exchange(&answering(Answer::Always), 0);
    assert!(around(connected, 2) && around(answered, 606), "{connected} {answered}");
    // One proxy alone answers early too; the far end does not take data on a SYN.
    let one = Setup { far: None, ..answering(Answer::Always) };
    let (connected, answered) = exchange(&one, 0);
    assert!(around(connected, 2) && around(answered, 1204), "{connected} {answered}");
}

#[test]
fn a_refusal_is_one() {
    for setup in
        [Setup::default(), Setup { far: None, ..Setup::default() }, Setup { near: None, ..Setup::default() }]
    {
        let mut chain = Chain::new(&setup);
        let id = chain.connect(81, &setup.host);
        chain.run(Duration::from_secs(5), |chain| chain.saw(id).failed.is_some());
        assert_eq!(chain.saw(id).failed, Some(Failure::Refused));
        assert!(chain.now < at_ms(640), "{:?}", chain.now);
        chain.run(Duration::from_secs(200), |_| false);
        for proxy in chain.proxies.iter().flatten() {
            assert_eq!((proxy.counters().refused, proxy.memory()), (1, 0));
        }
    }
}

/// A chain whose near proxy knows the server.
fn acquainted() -> Chain {
    let setup = answering(Answer::Known);
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    let id = call(&mut chain, Duration::from_secs(5));
    assert!(chain.saw(id).connected_at.is_some());
    chain
}

/// Calls, says something once it is connected, and waits until that has failed or for so long; who called.
fn call(chain: &mut Chain, wait: Duration) -> ConnectionId {
    let host = TcpConfig::preset("linux").unwrap();
    let until = chain.now.saturating_since(Instant::ZERO) + wait;
    let id = chain.connect(80, &host);
    chain.run(until, |chain| chain.saw(id).connected_at.is_some() || chain.saw(id).failed.is_some());
    if chain.saw(id).connected_at.is_some() {
        chain.client.write(chain.now, id, &stream(1, 300)).unwrap();
    }
    chain.run(until, |chain| chain.saw(id).failed.is_some());
    id
}

/// A server that was known refuses: the caller has been told that it is connected, and sees a reset. The next sees a refusal.
#[test]
fn a_known_server_that_refuses_resets_and_is_known_no_more() {
    let mut chain = acquainted();
    chain.server = Host::new(address(SERVER), Rng::named(7, "restarted"));
    let start = chain.now;
    let id = call(&mut chain, Duration::from_secs(5));
    assert_eq!(chain.saw(id).failed, Some(Failure::Reset));
    assert!(chain.saw(id).connected_at.is_some());
    assert!(chain.now.saturating_since(start) < Duration::from_millis(660), "{:?}", chain.now);
    let id = call(&mut chain, Duration::from_secs(5));
    assert_eq!((chain.saw(id).failed, chain.saw(id).connected_at), (Some(Failure::Refused), None));
    assert_eq!(chain.proxies[0].as_ref().unwrap().counters().refused, 2);
}

/// One that answers no more: the caller sees a reset once the proxy has given up. The next is not told that it is connected.
#[test]
fn a_known_server_that_falls_silent_resets_and_is_known_no_more() {
    let mut chain = acquainted();
    chain.lose(1.0);
    let id = call(&mut chain, Duration::from_secs(600));
    assert_eq!(chain.saw(id).failed, Some(Failure::Reset));
    let counters = chain.proxies[0].as_ref().unwrap().counters();
    assert_eq!((counters.unanswered, counters.refused), (1, 0));
    let id = call(&mut chain, Duration::from_secs(5));
    assert_eq!(chain.saw(id).connected_at, None);
}

/// Where nobody answers, nobody answers: the caller gives up by itself.
#[test]
fn silence_stays_silence() {
    let setup = Setup { loss: 1.0, ..Setup::default() };
    let mut chain = Chain::new(&setup);
    let id = chain.connect(80, &setup.host);
    chain.run(Duration::from_secs(300), |chain| chain.saw(id).failed.is_some());
    assert_eq!(chain.saw(id).failed, Some(Failure::TimedOut));
    assert_eq!(chain.saw(id).connected_at, None);
    chain.run(Duration::from_secs(700), |_| false);
    let proxy = chain.proxies[0].as_ref().unwrap();
    assert_eq!(proxy.memory(), 0);
    assert!(proxy.counters().unanswered >= 1);
}

/// A link that takes nothing, because its other end is not there: callers are not kept waiting for ever, and nor are their places.
#[test]
fn callers_of_a_link_that_takes_nothing_are_given_up() {
    for (answer, is_reset) in [(Answer::Never, false), (Answer::Always, true)] {
        let config = Config { answer, half_open: 1, ..Config::default() };
        let mut near = Proxy::new(config, &mut Rng::named(1, "proxy"));
        near.set_peer(Peer::Known, ETHERNET_MSS);
        assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
        if is_reset {
            let answer = sent(&mut near, Side::Lan).remove(0);
            let repr =
                header((4000, 80), SeqNum(1001), View::parse(&answer[20..]).unwrap().seq() + 1, Flags::ACK);
            let mut words = segment((CLIENT, SERVER), &repr, b"words");
            assert_eq!(near.handle_packet(NOW, Side::Lan, &mut words), Verdict::Taken);
        } else {
            assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4001)), Verdict::Pass, "no place");
        }
        let (mut now, mut told) = (NOW, Vec::new());
        while let Some(due) = near.poll_timeout() {
            now = now.max(due);
            assert!(now < NOW + Duration::from_secs(400), "{now:?}");
            near.handle_timeout(now);
            while let Some(packet) = near.poll_transmit(now, Side::Lan) {
                told.push(View::parse(&packet[20..]).unwrap().flags());
            }
        }
        assert!(now > NOW + Duration::from_secs(100), "{now:?}");
        assert_eq!(
            told.contains(&(Flags::RST | Flags::ACK)) || told.contains(&Flags::RST),
            is_reset,
            "{told:?}"
        );
        assert_eq!((near.memory(), near.counters().unanswered), (0, 1));
        assert!(sent(&mut near, Side::Link).is_empty(), "no burst of calls that nobody waits for any more");
        assert_eq!(near.handle_packet(now, Side::Lan, &mut plain_syn(4001)), Verdict::Taken);
    }
}

/// A caller that was answered early, and whose call finds no memory, is told; it would wait for its own time-out.
#[test]
fn an_early_caller_without_memory_is_reset() {
    let config = Config { answer: Answer::Always, ..Config::default() };
    let mut near = Proxy::new(config, &mut Rng::named(1, "proxy"));
    assert_eq!(near.handle_packet(NOW, Side::Lan, &mut plain_syn(4000)), Verdict::Taken);
    let answer = View::parse(&sent(&mut near, Side::Lan)[0][20..]).unwrap().seq() + 1;
    near.limit_memory(0);
    let repr = header((4000, 80), SeqNum(1001), answer, Flags::ACK);
    let mut words = segment((CLIENT, SERVER), &repr, b"words");
    assert_eq!(near.handle_packet(NOW, Side::Lan, &mut words), Verdict::Taken);
    let told: Vec<_> = sent(&mut near, Side::Lan);
    let is_reset = |packet: &[u8]| View::parse(&packet[20..]).unwrap().flags().has(Flags::RST);
    assert!(told.iter().any(|packet| is_reset(packet)), "the caller hears nothing");
}
