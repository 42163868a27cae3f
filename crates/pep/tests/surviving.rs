//! A gateway dies and comes back: what the hosts see of it, in each mode.

use crate::chain::packets::{NOW, call, header, segment};
use crate::chain::{CLIENT, Chain, SERVER, Setup, stream};
use base::wire::tcp::Flags;
use base::{Duration, Instant, Rng, SeqNum};
use longhaul_pep::{Acknowledgement, Config, ETHERNET_MSS, Peer, Proxy, Side, Verdict};
use tcp::Failure;

fn setup(ack: Acknowledgement) -> Setup {
    let config = Config { ack, ..Config::default() };
    Setup { near: Some(config.clone()), far: Some(config), loss: 0.005, ..Setup::default() }
}

/// Replaces the proxy of gateway `which`; the other one hears of it, and says how many hosts had a connection.
fn kill(chain: &mut Chain, which: usize, setup: &Setup) -> Option<usize> {
    let config = [&setup.near, &setup.far][which].clone().unwrap();
    let mut reborn = Proxy::new(config, &mut Rng::named(99, "reborn"));
    reborn.set_peer(Peer::Known, ETHERNET_MSS);
    chain.proxies[which] = Some(reborn);
    let now = chain.now;
    let had = chain.proxies[1 - which].as_mut().map(|other| other.on_peer_lost(now));
    chain.settle();
    had
}

/// Who gave up before it was answered had no connection that could be lost.
#[test]
fn a_caller_that_gave_up_has_lost_nothing() {
    let mut proxy = Proxy::new(setup(Acknowledgement::Local).near.unwrap(), &mut Rng::named(1, "proxy"));
    proxy.set_peer(Peer::Known, ETHERNET_MSS);
    for port in [1, 2] {
        assert_eq!(call(&mut proxy, NOW, Side::Lan, CLIENT, port), Verdict::Taken);
    }
    let reset = header((1, 80), SeqNum(1001), SeqNum(0), Flags::RST);
    assert_eq!(
        proxy.handle_packet(NOW, Side::Lan, &mut segment((CLIENT, SERVER), &reset, &[])),
        Verdict::Taken
    );
    assert_eq!(proxy.on_peer_lost(NOW), 0, "the other one still waits for an answer");
}

/// So many bytes up or down, through the death of a gateway after 2 s.
fn through_a_death(
    ack: Acknowledgement,
    which: usize,
    up: bool,
    len: usize,
) -> (Chain, tcp::ConnectionId, Vec<u8>) {
    let setup = setup(ack);
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    let id = chain.connect(80, &setup.host);
    chain.run(Duration::from_secs(20), |chain| chain.server_saw().connected_at.is_some());
    let at_server = chain.server_saw().id.unwrap();
    let data = stream(7, len);
    let (mut sent, mut dead) = (0, false);
    let begun = chain.now.saturating_since(Instant::ZERO).as_millis();
    for ms in (begun..900_000).step_by(10) {
        if sent < data.len() {
            let now = chain.now;
            let sender = if up { (&mut chain.client, id) } else { (&mut chain.server, at_server) };
            sent += sender.0.write(now, sender.1, &data[sent..]).unwrap_or(0);
            if sent == data.len() {
                let _ = sender.0.finish(now, sender.1);
            }
        }
        if ms >= begun + 2000 && !dead {
            dead = true;
            assert_eq!(kill(&mut chain, which, &setup), Some(1));
        }
        chain.run(Duration::from_millis(ms), |_| false);
        let (client, server) = (chain.saw(id), chain.server_saw());
        let receiver = if up { &server } else { &client };
        if receiver.finished || (client.failed.is_some() && server.failed.is_some()) {
            break;
        }
    }
    (chain, id, data)
}

/// What was acknowledged end to end needs no gateway: the hosts go on by themselves, through the new gateway or past it.
#[test]
fn end_to_end_connections_survive_their_gateways() {
    for (which, up) in [(0, true), (0, false), (1, true), (1, false)] {
        let (chain, id, data) = through_a_death(Acknowledgement::EndToEnd, which, up, 3_000_000);
        let receiver = if up { chain.server_saw() } else { chain.saw(id) };
        assert_eq!((receiver.read.len(), receiver.finished), (data.len(), true), "gateway {which}, up {up}");
        assert!(receiver.read == data && receiver.failed.is_none());
        assert!(chain.now < Instant::ZERO + Duration::from_secs(120), "{:?}", chain.now);
    }
}

/// What was acknowledged by a gateway dies with it, and the connection too: nobody takes a part for the whole. Who still sends is told.
#[test]
fn locally_acknowledged_connections_break_and_say_so() {
    for (which, up) in [(0, true), (0, false), (1, true), (1, false)] {
        let (mut chain, id, data) = through_a_death(Acknowledgement::Local, which, up, 60_000_000);
        let receiver = if up { chain.server_saw() } else { chain.saw(id) };
        let lost = if up { chain.saw(id).failed } else { chain.server_saw().failed };
        assert!(!receiver.finished && receiver.read.len() < data.len(), "gateway {which}, up {up}");
        assert!(data.starts_with(&receiver.read));
        assert_eq!(lost, Some(Failure::Reset), "gateway {which}, up {up}");
        chain.run(Duration::from_secs(20_000), |_| false);
        chain.expect_no_connections();
    }
}

/// Who has called and was not answered yet has lost nothing: it asks again, and gets its connection.
#[test]
fn a_call_outlasts_a_gateway() {
    for which in [0, 1] {
        for millis in [10, 150, 290, 310, 450, 590] {
            let setup = setup(Acknowledgement::Local);
            let mut chain = Chain::new(&setup);
            chain.listen(80, &setup.host);
            let id = chain.connect(80, &setup.host);
            chain.run(Duration::from_millis(millis), |_| false);
            assert!(chain.saw(id).connected_at.is_none());
            let had = kill(&mut chain, which, &setup);
            assert!(which == 0 || had == Some(0), "a call is no connection: {had:?}");
            chain.run(Duration::from_secs(20), |chain| chain.saw(id).connected_at.is_some());
            let saw = chain.saw(id);
            assert!(
                saw.connected_at.is_some() && saw.failed.is_none(),
                "gateway {which} after {millis} ms: {saw:?}"
            );
        }
    }
}

/// A link that is dark for a while breaks nothing that would not break without a proxy.
#[test]
fn connections_outlast_a_dark_link() {
    for (ack, up) in
        [(Acknowledgement::Local, true), (Acknowledgement::Local, false), (Acknowledgement::EndToEnd, true)]
    {
        let setup = setup(ack);
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(20), |chain| chain.server_saw().connected_at.is_some());
        let (data, at_server) = (stream(7, 200_000), chain.server_saw().id.unwrap());
        let now = chain.now;
        let (sender, at) = if up { (&mut chain.client, id) } else { (&mut chain.server, at_server) };
        assert_eq!(sender.write(now, at, &data), Ok(data.len()));
        let _ = sender.finish(now, at);
        let begun = now.saturating_since(Instant::ZERO);
        chain.run(begun + Duration::from_millis(700), |_| false);
        chain.lose(1.0);
        chain.run(begun + Duration::from_secs(120), |_| false);
        chain.lose(0.0);
        chain.run(begun + Duration::from_secs(400), |_| false);
        let receiver = if up { chain.server_saw() } else { chain.saw(id) };
        assert!(
            receiver.read == data && receiver.finished,
            "{ack:?}, up {up}: {} bytes",
            receiver.read.len()
        );
    }
}

/// A gateway that dies and stays dead: who sends is told when the proxy near him gives up, about when he would have himself.
#[test]
fn who_sends_to_a_dead_gateway_is_told() {
    let mut told = Vec::new();
    for split in [false, true] {
        let mut setup = setup(Acknowledgement::Local);
        if !split {
            (setup.near, setup.far) = (None, None);
        }
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(20), |chain| chain.server_saw().connected_at.is_some());
        chain.lose(1.0);
        let start = chain.now;
        assert_eq!(chain.client.write(chain.now, id, &stream(7, 1000)), Ok(1000));
        chain.run(Duration::from_secs(5000), |chain| chain.saw(id).failed.is_some());
        assert_eq!(chain.saw(id).failed, Some(if split { Failure::Reset } else { Failure::TimedOut }));
        told.push(chain.now.saturating_since(start).as_millis() / 1000);
    }
    assert!(told[1] <= told[0] && told[1] > 100, "{told:?} s without and with proxies");
}
