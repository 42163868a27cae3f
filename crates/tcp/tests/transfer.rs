//! Whole transfers between two hosts.

mod pair;

use base::Duration;
use base::units::Size;
use longhaul_tcp::{Event, Recovery, State, TcpConfig};
use pair::{PORT, Pair, Path};

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
    assert!(pair.now < base::Instant::ZERO + secs(3), "took {}", pair.now);
    pair.ends[0].finish = true;
    pair.drain();
    assert!(pair.run_until(secs(60), both_closed));
    assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (1_000_000, false));
    assert!(pair.saw(0, Event::Connected) && pair.saw(1, Event::Accepted { local_port: PORT }));
    assert_eq!(pair.connection(0).state(), State::Closed);
    assert_eq!(pair.connection(1).state(), State::TimeWait);
    assert_eq!(pair.connection(1).statistics().retransmissions, 0);
    assert!(!pair.run_until(secs(600), |_| false));
    assert!(pair.hosts.iter().all(|host| host.connections().count() == 0), "ended connections go");
}

/// Goal: both recoveries deliver both directions at once through loss, duplication and reordering.
#[test]
fn both_directions_survive_a_bad_path() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        for seed in 0..10 {
            let config = TcpConfig { recovery, receive_buffer: Size(30_000), ..TcpConfig::default() };
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
