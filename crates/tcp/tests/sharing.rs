//! State shared between connections: STCP (Peng et al. 2001), cached control blocks (RFC 9040).

mod group;

use group::*;
use longhaul_tcp::{InitialWindow, TcpConfig};

/// 3.1: a new ECB starts as a connection of standard TCP would.
#[test]
fn a_first_connection_starts_from_the_initial_window() {
    let mut group = Group::new(&literal());
    let one = group.connect();
    group.write(one, 100);
    assert_eq!((group.sent(one), group.cwnd(one)), (2, 2 * MSS));
    let ecb = group.ecb();
    assert_eq!((ecb.rem_addr, ecb.n_cwnd, ecb.used_cwnd, ecb.num_connections), (PEER, 2 * MSS, 2 * MSS, 1));
    assert_eq!((ecb.n_ssthresh, ecb.add_new_flag), (u64::MAX, false));
}

/// Figure 2 at T2: a connection after the last one has closed starts with the whole remembered aggregate.
#[test]
fn a_later_connection_starts_from_the_remembered_aggregate() {
    let mut group = Group::new(&literal());
    let one = group.connect();
    group.write(one, 100);
    for _ in 0..4 {
        group.round(&[one]);
    }
    group.close(one);
    let n_cwnd = group.ecb().n_cwnd;
    assert!(n_cwnd > 20 * MSS, "{n_cwnd}");
    assert_eq!(group.ecb().num_connections, 0);
    group.after(5000);
    let two = group.connect();
    group.sent(two);
    group.write(two, 200);
    assert_eq!((group.cwnd(two), group.sent(two) as u64), (n_cwnd, n_cwnd / MSS));
}

/// Figure 2 at T3: the running connection gives half, and the newcomer starts with as much.
#[test]
fn a_newcomer_gets_half_of_the_only_member() {
    let config = TcpConfig { initial_window: InitialWindow::Segments(40), ..literal() };
    let mut group = Group::new(&config);
    let one = group.connect();
    group.write(one, 300);
    assert_eq!(group.cwnd(one), 40 * MSS);
    let two = group.open();
    assert_eq!((group.ecb().quota, group.ecb().add_new_flag), (20 * MSS, true));
    group.ack(one);
    assert_eq!((group.cwnd(one), group.ecb().contribution), (21 * MSS, 20 * MSS));
    group.after(100);
    group.establish(two);
    group.write(two, 100);
    assert_eq!((group.cwnd(two), group.sent(two)), (20 * MSS, 20));
    assert_eq!((group.ecb().add_new_flag, group.ecb().used_cwnd), (false, group.ecb().n_cwnd));
}
