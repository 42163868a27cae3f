//! Whole transfers between two hosts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::pair::{PORT, Pair, Path};
use base::units::Size;
use base::{Duration, Instant, Rng};
use longhaul_tcp::{Event, Host, Recovery, State, TcpConfig};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn both_closed(pair: &Pair) -> bool {
    pair.saw(0, Event::Closed) && pair.saw(1, Event::Closed)
}

/// Goal: a megabyte arrives, both sides close, and it takes what slow start and the path allow.
#[test]
fn a_download_opens_delivers_and_closes() {
    let config = TcpConfig::default();
    let mut pair = Pair::new(1, Path::clean(50), &config);
    pair.connect(&config);
    pair.ends[1].to_send = 1_000_000;
    pair.ends[1].finish = true;
    assert!(pair.run_until(secs(60), |pair| pair.saw(0, Event::PeerFinished)));
    assert!(pair.now < Instant::ZERO + secs(3), "took {}", pair.now);
    pair.ends[0].finish = true;
    pair.drain();
    assert!(pair.run_until(secs(60), both_closed));
    assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (1_000_000, false));
    assert!(pair.saw(0, Event::Connected) && pair.saw(1, Event::Accepted { local_port: PORT }));
    assert_eq!(pair.connection(0).state(), State::Closed);
    assert_eq!(pair.connection(1).state(), State::TimeWait);
    assert_eq!(pair.connection(1).sender_statistics().retransmissions, 0);
    assert!(!pair.run_until(secs(600), |_| false));
    assert!(pair.hosts.iter().all(|host| host.connections().count() == 0), "ended connections go");
}

/// Goal: both recoveries deliver both directions at once through loss, duplication and reordering.
#[test]
fn both_directions_survive_a_bad_path() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        for seed in 0..10 {
            let config = TcpConfig::default().with(|it| {
                it.recovery.scheme = recovery;
                it.window.receive_buffer = Size(30_000);
            });
            let path =
                Path { loss: 0.03, duplication: 0.02, jitter: Duration::from_millis(5), ..Path::clean(20) };
            let mut pair = Pair::new(seed, path, &config);
            pair.connect(&config);
            for end in &mut pair.ends {
                end.to_send = 300_000;
                end.finish = true;
            }
            pair.drain();
            assert!(pair.run_until(secs(900), both_closed), "{recovery:?} seed {seed} hangs at {}", pair.now);
            for end in &pair.ends {
                assert_eq!((end.received, end.corrupt), (300_000, false), "{recovery:?} seed {seed}");
            }
        }
    }
}

/// Goal: a host keeps forty connections apart; a server that echoes gives each its own bytes back.
#[test]
fn many_connections_do_not_mix() {
    let config = TcpConfig::default();
    let mut rng = Rng::named(3, "loss");
    let mut client = Host::new(crate::pair::address(0), Rng::named(3, "client"));
    let mut server = Host::new(crate::pair::address(1), Rng::named(3, "server"));
    server.listen(80, &config).unwrap();
    server.listen(81, &config).unwrap();
    assert!(server.listen(80, &config).is_err());
    let mut now = Instant::ZERO;
    let mut echoed = BTreeMap::new();
    for at in 0..40_u8 {
        let remote = SocketAddr::new(crate::pair::address(1), 80 + u16::from(at % 2));
        let id = client.connect(now, remote, &config).unwrap();
        client.write(now, id, &[at; 5000]).unwrap();
        client.finish(now, id).unwrap();
        echoed.insert(id, (at, 0));
    }
    let mut closed = 0;
    for _ in 0..20_000 {
        now += Duration::from_millis(5);
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let Some(packet) = client.poll_transmit(now) {
            if !rng.chance(0.05) {
                let _ = server.handle_packet(now, &packet);
            }
        }
        while let Some((id, event)) = server.poll_event() {
            let mut bytes = [0; 10_000];
            match event {
                Event::Readable => {
                    let count = server.read(now, id, &mut bytes).unwrap();
                    assert_eq!(server.write(now, id, &bytes[..count]), Ok(count));
                }
                Event::PeerFinished => server.finish(now, id).unwrap(),
                _ => {}
            }
        }
        while let Some(packet) = server.poll_transmit(now) {
            if !rng.chance(0.05) {
                let _ = client.handle_packet(now, &packet);
            }
        }
        while let Some((id, event)) = client.poll_event() {
            let (own, count) = echoed.get_mut(&id).unwrap();
            let read = client.read_with(now, id, |bytes| {
                assert!(bytes.iter().all(|byte| byte == own));
                *count += bytes.len();
            });
            assert!(read.is_ok());
            closed += usize::from(event == Event::Closed);
        }
    }
    assert_eq!(closed, 40);
    assert!(echoed.values().all(|&(_, count)| count == 5000));
    assert_eq!((client.connections().count(), server.connections().count()), (0, 0));
}
