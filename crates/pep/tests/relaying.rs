//! What goes in comes out, as far as it can.

use crate::chain::packets::{header, segment};
use crate::chain::{CLIENT, Chain, SERVER, Setup, stream};
use base::wire::ip;
use base::wire::tcp::Flags;
use base::{Duration, Instant, SeqNum};
use longhaul_pep::{Acknowledgement, Config, Side, Verdict};
use tcp::{Failure, State, TcpConfig};

fn end_to_end() -> Setup {
    let config = Config { ack: Acknowledgement::EndToEnd, ..Config::default() };
    Setup { near: Some(config.clone()), far: Some(config), ..Setup::default() }
}

fn setups() -> Vec<(&'static str, Setup)> {
    let one = |setup: Setup| Setup { far: None, ..setup };
    let other = |setup: Setup| Setup { near: None, ..setup };
    vec![
        ("pair", Setup::default()),
        ("near", one(Setup::default())),
        ("far", other(Setup::default())),
        ("end-to-end pair", end_to_end()),
        ("end-to-end near", one(end_to_end())),
        ("end-to-end far", other(end_to_end())),
    ]
}

/// `len` bytes up and down at once, each side finishing when it has written all; when the last byte came.
fn both_ways(setup: &Setup, len: usize) -> (Chain, Instant) {
    let mut chain = Chain::new(setup);
    chain.listen(80, &setup.host);
    let id = chain.connect(80, &setup.host);
    let (up, down) = (stream(1, len), stream(2, len));
    let (mut sent_up, mut sent_down) = (0, 0);
    let limit = Duration::from_secs(4000);
    for _ in 0..1_000_000 {
        let before = (sent_up, sent_down, chain.saw(id).read.len());
        if chain.saw(id).connected_at.is_some() && sent_up < len {
            sent_up += chain.client.write(chain.now, id, &up[sent_up..]).unwrap();
            if sent_up == len {
                chain.client.finish(chain.now, id).unwrap();
            }
        }
        if let Some(at_server) = chain.server_saw().id
            && sent_down < len
        {
            sent_down += chain.server.write(chain.now, at_server, &down[sent_down..]).unwrap();
            if sent_down == len {
                chain.server.finish(chain.now, at_server).unwrap();
            }
        }
        let is_over = |chain: &Chain| chain.saw(id).finished && chain.server_saw().finished;
        if is_over(&chain) || chain.now >= Instant::ZERO + limit {
            break;
        }
        if before == (sent_up, sent_down, chain.saw(id).read.len()) {
            let step = chain.now.saturating_since(Instant::ZERO) + Duration::from_millis(20);
            chain.run(step, is_over);
        }
    }
    let last = chain.saw(id).last_byte_at.max(chain.server_saw().last_byte_at).unwrap();
    assert_eq!(chain.server_saw().read.len(), len);
    assert!(chain.server_saw().read == up && chain.saw(id).read == down);
    let later = chain.now.saturating_since(Instant::ZERO) + Duration::from_secs(200);
    chain.run(later, |_| false);
    assert!(
        chain.saw(id).failed.is_none() && chain.server_saw().failed.is_none(),
        "{:?}",
        chain.saw(id).failed
    );
    chain.expect_no_connections();
    (chain, last)
}

#[test]
fn streams_arrive_whole_both_ways_whatever_is_lost() {
    for (name, setup) in setups() {
        for loss in [0.0, 0.02, 0.2] {
            for seed in 1..4 {
                let setup = Setup { loss, seed, ..setup.clone() };
                let (_, last) = both_ways(&setup, 300_000);
                assert!(last < Instant::ZERO + Duration::from_secs(900), "{name} {loss} {seed}: {last:?}");
            }
        }
    }
}

/// Without losses a pair fills the link from the first round trip on.
#[test]
fn a_pair_fills_the_link() {
    let megabyte = 8_000_000.0 / 10_000_000.0;
    let seconds = |setup: &Setup| {
        let (_, last) = both_ways(setup, 1_000_000);
        last.saturating_since(Instant::ZERO).as_secs_f64()
    };
    // A handshake, half a round trip, and the data with their headers.
    let best = 0.6 + 0.3 + megabyte * 1480.0 / 1440.0;
    let pair = seconds(&Setup::default());
    assert!(pair < best + 0.15, "{pair} s, at best {best}");
    let none = seconds(&Setup { near: None, far: None, ..Setup::default() });
    assert!(none > 1.5 * pair, "{none} s without proxies, {pair} with");
}

/// A reader that does not read holds the sender up, and memory stays bounded.
#[test]
fn a_slow_reader_closes_the_senders_window() {
    for (name, setup) in setups() {
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        chain.server_reads = false;
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(2), |chain| chain.saw(id).connected_at.is_some());
        let data = stream(1, 64 << 20);
        let mut sent = 0;
        for second in 2..120 {
            sent += chain.client.write(chain.now, id, &data[sent..]).unwrap();
            chain.run(Duration::from_secs(second), |_| false);
        }
        assert!(sent < 60 << 20, "{name}: {sent} bytes taken, nobody reads");
        for proxy in chain.proxies.iter().flatten() {
            assert!(proxy.memory() < 48 << 20, "{name}: {}", proxy.memory());
        }
        chain.server_reads = true;
        for second in 120..400 {
            sent += chain.client.write(chain.now, id, &data[sent..]).unwrap();
            chain.run(Duration::from_secs(second), |_| false);
        }
        assert_eq!(chain.server_saw().read.len(), data.len(), "{name}");
        assert!(chain.server_saw().read == data);
    }
}

/// A server that answers and resets: what it said before arrives before the reset.
#[test]
fn a_reset_comes_after_what_was_said_before() {
    for (name, setup) in setups() {
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(2), |chain| chain.server_saw().connected_at.is_some());
        let at_server = chain.server_saw().id.unwrap();
        chain.server.write(chain.now, at_server, &stream(2, 40_000)).unwrap();
        chain.run(Duration::from_secs(10), |chain| {
            chain.server.connection(at_server).is_some_and(|it| it.unacknowledged() == 0)
        });
        chain.server.abort(chain.now, at_server).unwrap();
        chain.run(Duration::from_secs(20), |chain| chain.saw(id).failed.is_some());
        assert_eq!(chain.saw(id).failed, Some(Failure::Reset), "{name}");
        assert!(chain.saw(id).read == stream(2, 40_000), "{name}: {} bytes", chain.saw(id).read.len());
        chain.run(Duration::from_secs(300), |_| false);
        for proxy in chain.proxies.iter().flatten() {
            assert_eq!(proxy.memory(), 0, "{name}");
        }
    }
}

/// Acknowledged end to end: what the sender has had acknowledged, the receiver has.
#[test]
fn end_to_end_acknowledges_nothing_that_has_not_arrived() {
    for setup in [end_to_end(), Setup { far: None, ..end_to_end() }] {
        let setup = Setup { loss: 0.01, ..setup };
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(2), |chain| chain.saw(id).connected_at.is_some());
        let data = stream(1, 4_000_000);
        let mut sent = 0;
        for ms in 200..6000 {
            sent += chain.client.write(chain.now, id, &data[sent..]).unwrap();
            chain.run(Duration::from_millis(ms * 10), |_| false);
            let acked = chain.client.connection(id).unwrap().sender_statistics().bytes_acked;
            let at_server = chain.server_saw();
            let received = at_server
                .id
                .map_or(0, |id| chain.server.connection(id).map_or(0, |it| it.statistics().bytes_received));
            assert!(acked <= received, "{acked} acknowledged, {received} received");
        }
        assert_eq!(chain.server_saw().read.len(), data.len());
        let counted = chain.client.connection(id).unwrap().sender_statistics();
        assert_eq!(counted.timeouts, 0, "{counted:?}");
    }
}

/// Timestamps, windows and sizes that hosts may come with.
#[test]
fn hosts_of_all_kinds_are_served() {
    let kinds = ["reference", "enhanced", "linux-2.4", "rfc"].map(|name| TcpConfig::preset(name).unwrap());
    for host in kinds {
        for (_, setup) in setups() {
            both_ways(&Setup { host: host.clone(), loss: 0.01, ..setup }, 100_000);
        }
    }
}

/// End to end: a caller that has died and come back answers with what was acknowledged to it, which is less than has come.
#[test]
fn a_reset_at_what_was_acknowledged_is_one() {
    let setup = end_to_end();
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    let id = chain.connect(80, &setup.host);
    chain.run(Duration::from_secs(5), |chain| chain.server_saw().connected_at.is_some());
    chain.lose(1.0);
    chain.client.write(chain.now, id, &stream(1, 5000)).unwrap();
    chain.run(Duration::from_secs(6), |_| false);
    let now = chain.now;
    let near = chain.proxies[0].as_mut().unwrap();
    let (_, caller) = near.host(Side::Lan).connections().next().unwrap();
    assert_eq!((caller.readable(), caller.state()), (0, State::Established));
    assert_eq!(caller.statistics().bytes_received, 5000);
    let (first, port) = (caller.offer().unwrap().initial_sequence, caller.remote().port());
    for (seq, state) in
        [(first, State::Established), (first + 2, State::Established), (first + 1, State::Closed)]
    {
        let mut reset = segment((CLIENT, SERVER), &header((port, 80), seq, SeqNum(0), Flags::RST), &[]);
        let _ = near.handle_packet(now, Side::Lan, &mut reset);
        let (_, caller) = near.host(Side::Lan).connections().next().unwrap();
        assert_eq!(caller.state(), state, "{seq:?}");
    }
    // What it had said arrives, and then the reset.
    chain.lose(0.0);
    chain.run(Duration::from_secs(120), |chain| chain.server_saw().failed.is_some());
    assert_eq!((chain.server_saw().failed, chain.server_saw().read.len()), (Some(Failure::Reset), 5000));
}

/// A near proxy where the server has closed first, with the connection's ends in TIME-WAIT; a number that a new SYN may have.
fn over(near: Config) -> (Chain, SeqNum, u16) {
    let setup = Setup { near: Some(near), ..Setup::default() };
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    let id = chain.connect(80, &setup.host);
    chain.run(Duration::from_secs(5), |chain| chain.saw(id).connected_at.is_some());
    let at_server = chain.server_saw().id.unwrap();
    chain.server.finish(chain.now, at_server).unwrap();
    chain.run(Duration::from_secs(7), |chain| chain.saw(id).finished);
    chain.client.finish(chain.now, id).unwrap();
    chain.run(Duration::from_secs(9), |_| false);
    let (_, over) = chain.proxies[0].as_ref().unwrap().host(Side::Lan).connections().next().unwrap();
    assert_eq!(over.state(), State::TimeWait);
    let (seq, port) = (over.offer().unwrap().initial_sequence + 1_000_000, over.remote().port());
    (chain, seq, port)
}

/// A SYN between the ends of a connection that is over is a new caller's, with a mark and a room of its own.
#[test]
fn ports_are_used_again() {
    let (mut chain, seq, port) = over(Config { answer: longhaul_pep::Answer::Never, ..Config::default() });
    let now = chain.now;
    let near = chain.proxies[0].as_mut().unwrap();
    let mut call = segment((CLIENT, SERVER), &header((port, 80), seq, SeqNum(0), Flags::SYN), &[]);
    call[1] = 46 << 2;
    let sum =
        base::wire::checksum::update(u16::from_be_bytes([call[10], call[11]]), 0x4500, 0x4500 + (46 << 2));
    call[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(near.handle_packet(now, Side::Lan, &mut call), Verdict::Taken);
    let out = near.poll_transmit(now, Side::Link).unwrap();
    assert_eq!(ip::View::parse(&out).unwrap().dscp(), 46);
    assert_eq!(near.counters().split, 2);
}

/// Where there is no room for it, it passes, and so does what follows it, both ways. What is over takes no room.
#[test]
fn what_is_over_does_not_stand_in_the_way() {
    let (mut chain, seq, port) = over(Config { connections: 1, half_open: 1, ..Config::default() });
    let now = chain.now;
    let near = chain.proxies[0].as_mut().unwrap();
    let mut other = segment((CLIENT, SERVER), &header((9, 80), seq, SeqNum(0), Flags::SYN), &[]);
    assert_eq!(near.handle_packet(now, Side::Lan, &mut other), Verdict::Taken);
    let mut send = |side, flags| {
        let (ends, ports) = match side {
            Side::Lan => ((CLIENT, SERVER), (port, 80)),
            Side::Link => ((SERVER, CLIENT), (80, port)),
        };
        near.handle_packet(now, side, &mut segment(ends, &header(ports, seq, seq, flags), &[]))
    };
    assert_eq!(send(Side::Lan, Flags::SYN), Verdict::Pass);
    assert_eq!(send(Side::Link, Flags::SYN | Flags::ACK), Verdict::Pass);
    assert_eq!(send(Side::Lan, Flags::ACK), Verdict::Pass);
    assert_eq!(send(Side::Link, Flags::ACK), Verdict::Pass);
}

/// End to end: a caller that half-closes, and an answer that takes longer across the link than TIME-WAIT lasts.
#[test]
fn the_last_acknowledgements_reach_the_sender() {
    let setup = Setup { rate: base::Rate::from_bps(200_000), ..end_to_end() };
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    let id = chain.connect(80, &setup.host);
    chain.run(Duration::from_secs(5), |chain| chain.server_saw().connected_at.is_some());
    chain.client.finish(chain.now, id).unwrap();
    chain.run(Duration::from_secs(8), |chain| chain.server_saw().finished);
    let (answer, at_server) = (stream(3, 1_500_000), chain.server_saw().id.unwrap());
    let (mut sent, mut again) = (0, 0);
    for second in 9..200 {
        let server = chain.server.connection(at_server);
        again = server.map_or(again, |it| it.sender_statistics().retransmissions);
        if sent < answer.len() {
            sent += chain.server.write(chain.now, at_server, &answer[sent..]).unwrap();
            if sent == answer.len() {
                chain.server.finish(chain.now, at_server).unwrap();
            }
        }
        chain.run(Duration::from_secs(second), |_| false);
    }
    assert!(chain.saw(id).read == answer && chain.saw(id).finished);
    assert_eq!((chain.server_saw().closed, chain.server_saw().failed, again), (true, None, 0));
    chain.run(Duration::from_secs(400), |_| false);
    chain.expect_no_connections();
}

/// A code between the proxies repairs what the link loses, end to end too, where the numbers that it checks by are the ends' own. Where
/// nobody has configured one, none is offered.
#[test]
fn a_code_works_end_to_end() {
    let lossy = TcpConfig::preset("proxy-link-lossy").unwrap();
    for link in [Some(lossy), None] {
        let codes = link.is_some();
        let config = Config { ack: Acknowledgement::EndToEnd, ..Config::default() };
        let config = Config { link: link.unwrap_or_else(|| config.link.clone()), ..config };
        let setup = Setup { near: Some(config.clone()), far: Some(config), loss: 0.05, ..Setup::default() };
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        chain.run(Duration::from_secs(20), |chain| chain.saw(id).connected_at.is_some());
        let data = stream(1, 300_000);
        let mut sent = 0;
        for second in 20..200 {
            sent += chain.client.write(chain.now, id, &data[sent..]).unwrap();
            chain.run(Duration::from_secs(second), |_| false);
        }
        assert!(chain.server_saw().read == data);
        let far = chain.proxies[1].as_ref().unwrap().host(Side::Link);
        let counted = far.connections().next().unwrap().1.repair_statistics().copied();
        assert_eq!(counted.is_some(), codes, "{counted:?}");
        assert!(counted.is_none_or(|it| it.recovered > 0 && it.failed_checks == 0), "{counted:?}");
        // A repair takes its place in every segment once.
        assert_eq!(far.connections().next().unwrap().1.mss(), if codes { 1420 } else { 1440 });
    }
}
