//! State shared between connections: with whom, how many destinations, nothing at all, cached control blocks (RFC 9040),
//! and that STCP with one member is Reno.

use std::cell::RefCell;
use std::rc::Rc;

use crate::group::*;
use crate::pair::{Pair, Path};
use base::{Duration, Instant};
use longhaul_tcp::config::AfterIdle;
use longhaul_tcp::ensemble::{CachedState, Shared};
use longhaul_tcp::{
    Congestion, ForwardRto, Recovery, Reduction, Sharing, SharingConfig, SpuriousResponse, TcpConfig,
};

/// A moment, `cwnd` and `ssthresh`.
type Window = (Instant, u64, Option<u64>);

/// What one transfer showed: every packet, the sender's window after every event, and its spurious time-outs.
#[derive(Debug, PartialEq)]
struct Trace {
    packets: Vec<Vec<u8>>,
    windows: Vec<Window>,
    spurious_timeouts: u64,
}

/// One transfer with pauses of the application, and of the path.
fn trace(seed: u64, path: Path, config: &TcpConfig) -> Trace {
    let packets = Rc::new(RefCell::new(Vec::new()));
    let mut pair = Pair::new(seed, path, config);
    let seen = Rc::clone(&packets);
    pair.drop_if = Box::new(move |_, packet, _| {
        seen.borrow_mut().push(packet.to_vec());
        false
    });
    let (mut windows, mut spurious_timeouts) = (Vec::new(), 0);
    pair.connect(config);
    for total in [150_000_u64, 400_000, 700_000] {
        pair.ends[0].to_send = total;
        pair.ends[0].finish = total == 700_000;
        pair.drain();
        for part in [total - 60_000, total] {
            let deadline = pair.now.saturating_since(Instant::ZERO) + Duration::from_secs(600);
            let done = pair.run_until(deadline, |pair| {
                if let Some(connection) = pair.ends[0].id.and_then(|id| pair.hosts[0].connection(id))
                    && connection.unacknowledged() > 0
                {
                    windows.push((pair.now, connection.cwnd(), connection.ssthresh()));
                    spurious_timeouts = u64::from(connection.sender_statistics().spurious_timeouts);
                }
                pair.ends[1].received >= part
            });
            assert!(done, "{} of {part}", pair.ends[1].received);
            // Timers expire before what is under way arrives, or, in the end, before the next burst.
            pair.now += Duration::from_secs(if part == total { 5 } else { 1 });
        }
    }
    drop(pair);
    Trace { packets: packets.take(), windows, spurious_timeouts }
}

/// Peng et al. 2001, 4.2 and 4.3: with one member, equations 1 to 5 are standard TCP: the same packets, the same
/// windows.
#[test]
fn one_member_equals_reno_byte_for_byte() {
    let schemes = [
        (Recovery::Sack, Reduction::Immediate),
        (Recovery::Sack, Reduction::Prr),
        (Recovery::NewReno, Reduction::Immediate),
        (Recovery::NewReno, Reduction::RateHalving),
        (Recovery::Reno, Reduction::Immediate),
        (Recovery::Fack, Reduction::RateHalving),
        (Recovery::Rack, Reduction::Prr),
    ];
    let [mut timeouts, mut losses, mut spurious] = [0; 3];
    for (seed, (recovery, reduction)) in schemes.into_iter().cycle().take(28).enumerate() {
        let path = Path {
            jitter: Duration::from_millis(if seed % 3 == 0 { 15 } else { 0 }),
            loss: [0.0, 0.01, 0.03, 0.08][seed % 4],
            ..Path::clean(40)
        };
        let alone = TcpConfig::default().with(|it| {
            it.recovery.scheme = recovery;
            it.recovery.reduction = reduction;
            it.congestion = Congestion::Reno;
            it.recovery.f_rto = [ForwardRto::Basic, ForwardRto::Sack, ForwardRto::Off][seed % 3];
            it.recovery.spurious_response =
                [SpuriousResponse::Halve, SpuriousResponse::Eifel, SpuriousResponse::Undo][seed / 3 % 3];
            it.window.after_idle = if seed % 2 == 0 { AfterIdle::Restart } else { AfterIdle::Keep };
            it.window.byte_counting_limit = [1, 2, 65_535][seed / 2 % 3];
        });
        let reno = trace(seed as u64, path, &alone);
        for (idle_release, decay) in [(false, false), (true, true)] {
            let mut shared = alone.clone();
            shared.sharing = SharingConfig { policy: Sharing::Stcp, idle_release, decay, ..shared.sharing };
            let stcp = trace(seed as u64, path, &shared);
            let differs = reno.windows.iter().zip(&stcp.windows).find(|(one, other)| one != other);
            assert_eq!(differs, None, "seed {seed}, {recovery:?}");
            assert!(reno == stcp, "seed {seed}, {recovery:?}: other packets");
        }
        timeouts += usize::from(reno.windows.iter().any(|&(_, cwnd, _)| cwnd <= 1460));
        losses += usize::from(reno.windows.iter().any(|&(_, _, ssthresh)| ssthresh.is_some()));
        spurious += usize::from(reno.spurious_timeouts > 0);
    }
    let seen = (timeouts, losses, spurious);
    assert!(timeouts >= 3 && losses >= 10 && spurious >= 3, "all must occur: {seen:?}");
}

/// RFC 9040: `sharing = "none"`: nothing is remembered.
#[test]
fn without_sharing_nothing_is_remembered() {
    let mut group = Group::new(&sharing(Sharing::None));
    let one = group.connect();
    group.write(one, 60);
    for _ in 0..4 {
        group.round(&[one]);
    }
    group.close(one);
    assert!(group.host.ensemble().is_empty());
    let two = group.connect();
    assert_eq!(group.cwnd(two), 2 * MSS);
}

/// Peng et al. 2001: the paper's second open question: with a prefix, hosts of a subnet share; others do not.
#[test]
fn a_prefix_shares() {
    for (bits, other, shares) in [(24, "10.0.1.77", true), (24, "10.0.2.2", false), (32, "10.0.1.77", false)]
    {
        let mut config = literal();
        config.sharing.prefix_v4 = bits;
        let mut group = Group::new(&config);
        let one = group.connect();
        group.write(one, 100);
        group.open_to(other.parse().unwrap());
        assert_eq!(group.ecb().num_connections == 2, shares, "{other}/{bits}");
        assert_eq!(group.host.ensemble().len() == 1, shares);
        let network = if bits == 24 { "10.0.1.0" } else { "10.0.1.2" };
        assert_eq!(group.ecb().rem_addr, network.parse::<std::net::IpAddr>().unwrap());
    }
}

/// RFC 9040: the table is bounded: the destination unused longest is forgotten, one in use never.
#[test]
fn the_destination_unused_longest_is_forgotten() {
    for mut config in [literal(), sharing(Sharing::Cache)] {
        config.sharing.entries = 2;
        let mut group = Group::new(&config);
        let first = group.open_to("10.0.0.11".parse().unwrap());
        group.after(10);
        group.abort(first);
        let second = group.open_to("10.0.0.12".parse().unwrap());
        group.after(10);
        group.abort(second);
        let known = |group: &Group, host: &str| {
            group.host.ensemble().shared(config.sharing.policy, host.parse().unwrap()).is_some()
        };
        group.open_to("10.0.0.13".parse().unwrap());
        assert!(!known(&group, "10.0.0.11") && known(&group, "10.0.0.12") && known(&group, "10.0.0.13"));
        group.open_to("10.0.0.14".parse().unwrap());
        assert!(!known(&group, "10.0.0.12") && known(&group, "10.0.0.13") && known(&group, "10.0.0.14"));
        // Both are in use: a fifth shares nothing, and is counted.
        group.open_to("10.0.0.15".parse().unwrap());
        assert!(!known(&group, "10.0.0.15"));
        assert_eq!((group.host.ensemble().evictions(), group.host.ensemble().refusals()), (2, 1));
    }
}

/// RFC 9040: one that a connection uses is never forgotten, though it was unused before, or another of its connections has gone.
#[test]
fn a_destination_in_use_is_not_forgotten() {
    for mut config in [literal(), sharing(Sharing::Cache)] {
        config.sharing.entries = 2;
        let [first, second, third] =
            ["10.0.0.11", "10.0.0.12", "10.0.0.13"].map(|host| host.parse().unwrap());
        for before in [1, 2] {
            let mut group = Group::new(&config);
            // Unused in between, or with one of two that goes.
            let gone = group.open_to(first);
            if before == 2 {
                group.open_to(first);
            }
            group.after(10);
            group.abort(gone);
            if before == 1 {
                group.open_to(first);
            }
            group.open_to(second);
            group.open_to(third);
            let ensemble = group.host.ensemble();
            assert_eq!((ensemble.evictions(), ensemble.refusals()), (0, 1), "the members' state is split");
        }
    }
}

/// RFC 4987 (2.1), RFC 9040: SYNs that nobody goes on from are remembered nowhere, and evict nothing.
#[test]
fn spoofed_syns_evict_nothing() {
    let mut config = sharing(Sharing::Cache);
    config.sharing.entries = 4;
    let mut group = after_a_loss(&config);
    for host in 1..=4 {
        group.receive_syn_from(std::net::Ipv4Addr::new(10, 9, 9, host).into());
    }
    assert_eq!((group.host.ensemble().len(), group.host.ensemble().evictions()), (1, 0));
    let two = group.connect();
    assert_eq!(group.connection(two).ssthresh(), Some(15 * MSS));
}

/// A connection that lost a segment with 30 in flight has closed.
fn after_a_loss(config: &TcpConfig) -> Group {
    let mut group = Group::new(config);
    let one = group.connect();
    group.write(one, 60);
    for _ in 0..4 {
        group.round(&[one]);
    }
    group.duplicates(one, 3);
    assert_eq!(group.connection(one).ssthresh(), Some(15 * MSS));
    group.round(&[one]);
    group.close(one);
    group
}

/// RFC 9040 (6) and Kojo et al. (4): a new connection starts with the threshold that the last one learnt.
#[test]
fn a_new_connection_starts_with_the_cached_threshold() {
    let mut group = after_a_loss(&sharing(Sharing::Cache));
    let two = group.connect();
    assert_eq!((group.connection(two).ssthresh(), group.cwnd(two)), (Some(15 * MSS), 2 * MSS));
    // It leaves slow start there.
    group.write(two, 200);
    for _ in 0..3 {
        group.round(&[two]);
    }
    assert_eq!(group.cwnd(two), 15 * MSS);
    group.round(&[two]);
    assert_eq!(group.cwnd(two), 16 * MSS);
}

/// RFC 9040 (6): a connection that learnt nothing leaves a newer threshold than it began with alone.
#[test]
fn only_what_was_learnt_is_cached() {
    let mut group = after_a_loss(&sharing(Sharing::Cache));
    let idle = group.connect();
    assert_eq!(group.connection(idle).ssthresh(), Some(15 * MSS));
    let busy = group.connect();
    group.write(busy, 20);
    group.duplicates(busy, 3);
    assert_eq!(group.connection(busy).ssthresh(), Some(2 * MSS));
    group.close(busy);
    group.close(idle);
    let next = group.connect();
    assert_eq!(group.connection(next).ssthresh(), Some(2 * MSS));
}

/// RFC 9040: without a loss there is no threshold to learn.
#[test]
fn a_connection_without_losses_teaches_no_threshold() {
    let mut group = Group::new(&sharing(Sharing::Cache));
    let one = group.connect();
    group.write(one, 10);
    group.round(&[one]);
    group.round(&[one]);
    group.close(one);
    let two = group.connect();
    assert_eq!(group.connection(two).ssthresh(), None);
}

/// RFC 9040 (6): old state is not used.
#[test]
fn a_cached_threshold_expires() {
    let mut config = sharing(Sharing::Cache);
    config.sharing.lifetime = Duration::from_secs(30);
    let mut group = after_a_loss(&config);
    group.after(31_000);
    let two = group.connect();
    assert_eq!(group.connection(two).ssthresh(), None);
}

/// RFC 9040 (6): a connection without losses teaches its round trip, and brings no threshold back that has expired.
#[test]
fn a_connection_without_losses_teaches_its_round_trip() {
    let mut config = sharing(Sharing::Cache);
    (config.sharing.share_rtt, config.sharing.lifetime) = (true, Duration::from_secs(30));
    for loses in [false, true] {
        let mut group = if loses { after_a_loss(&config) } else { Group::new(&config) };
        group.after(31_000);
        let one = group.connect();
        group.write(one, 10);
        group.round(&[one]);
        group.close(one);
        let two = group.open();
        assert!(group.connection(two).srtt().is_some(), "its round trip is forgotten");
        group.after(100);
        group.establish(two);
        assert_eq!(group.connection(two).ssthresh(), None, "an expired threshold");
    }
}

/// RFC 9040: `share-rtt`: the first time-out of the new connection, its SYN's included, follows the cached round-trip
/// time.
#[test]
fn the_round_trip_time_is_shared_if_asked() {
    for (share_rtt, retransmitted_after) in [(false, 1000), (true, 300)] {
        let mut config = sharing(Sharing::Cache);
        config.sharing.share_rtt = share_rtt;
        let mut group = after_a_loss(&config);
        let two = group.open();
        assert_eq!(group.connection(two).srtt().is_some(), share_rtt);
        assert_eq!(group.connection(two).rto(), Duration::from_millis(retransmitted_after));
        // What it was given is nothing that it learnt.
        let stored = group.host.ensemble().shared(Sharing::Cache, PEER);
        group.after(100);
        group.abort(two);
        let Some(Shared::Cache(before)) = stored else { panic!("{stored:?}") };
        let after = Shared::Cache(CachedState { members: 0, ..before });
        assert_eq!(group.host.ensemble().shared(Sharing::Cache, PEER), Some(after));
    }
}
