//! Segment scripts: STCP, Peng et al. 2001; figures, sections and equations are that paper's.

use crate::group::*;
use longhaul_tcp::FloorAcks;

/// Peng et al. 2001, 3.1: a new ECB starts as a connection of standard TCP would.
#[test]
fn a_first_connection_starts_from_the_initial_window() {
    let mut group = Group::new(&literal());
    let one = group.connect();
    group.write(one, 100);
    assert_eq!((group.sent(one), group.cwnd(one)), (2, 2 * MSS));
    let ecb = group.ecb();
    assert_eq!((ecb.rem_addr, ecb.n_cwnd, ecb.used_cwnd), (PEER, 2 * MSS, 2 * MSS));
    assert_eq!((ecb.num_connections, ecb.n_ssthresh, ecb.add_new_flag), (1, u64::MAX, false));
}

/// Peng et al. 2001, 3.3: in slow start the aggregate doubles per round trip.
#[test]
fn the_aggregate_doubles_in_slow_start() {
    let mut group = Group::new(&literal());
    let one = group.connect();
    group.write(one, 200);
    for segments in [4, 8, 16, 32] {
        group.round(&[one]);
        assert_eq!(group.ecb().n_cwnd, segments * MSS);
        assert_balanced(&group);
    }
}

/// Peng et al. 2001, 3.3 and claim "grows like one": with two members the aggregate still only doubles.
#[test]
fn two_members_grow_the_aggregate_like_one() {
    let mut group = Group::new(&literal_from(8));
    let (one, two) = (group.open(), group.open());
    group.after(100);
    group.establish(one);
    group.establish(two);
    group.write(one, 200);
    group.write(two, 200);
    assert_eq!(group.ecb().n_cwnd, 8 * MSS);
    for segments in [16, 32, 64] {
        group.round(&[one, two]);
        assert_eq!(group.ecb().n_cwnd, segments * MSS);
        assert_eq!((group.cwnd(one), group.cwnd(two)), (segments * MSS / 2, segments * MSS / 2));
    }
}

/// Peng et al. 2001, 2 and 3.3: three members at the floor of one segment open the aggregate as three connections, or, with
/// `floor-acks = "share"`, as one.
#[test]
fn members_at_the_floor_open_the_aggregate_as_many_or_as_one() {
    for (floor_acks, windows) in [(FloorAcks::Full, [4, 8]), (FloorAcks::Share, [2, 4])] {
        let mut config = literal_from(1);
        config.sharing.floor_acks = floor_acks;
        let mut group = Group::new(&config);
        let members = [group.open(), group.open(), group.open()];
        group.after(100);
        for member in members {
            group.establish(member);
            group.write(member, 200);
        }
        assert_eq!(group.ecb().n_cwnd, MSS);
        for segments in windows {
            group.round(&members);
            assert_eq!(group.ecb().n_cwnd, segments * MSS, "{floor_acks:?}");
        }
    }
}

/// Peng et al. 2001, 3.3: in congestion avoidance the aggregate grows by one segment a round trip, whoever
/// acknowledges.
#[test]
fn the_aggregate_grows_by_a_segment_in_congestion_avoidance() {
    let (mut group, one, two) = pair_of_twenties(&literal());
    group.round(&[one, two]);
    group.duplicates(one, 3);
    group.round(&[one, two]);
    group.round(&[one, two]);
    let before = group.ecb();
    assert!(before.n_cwnd >= before.n_ssthresh);
    group.round(&[one, two]);
    group.round(&[one, two]);
    let grown = group.ecb().n_cwnd - before.n_cwnd;
    assert!((MSS..=3 * MSS).contains(&grown), "{grown}");
}

/// Peng et al. 2001, Figure 2 at T2: a connection after the last one has closed starts with the whole remembered
/// aggregate.
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
    assert_eq!((group.ecb().num_connections, group.ecb().used_cwnd), (0, 0));
    group.after(5000);
    let two = group.connect();
    group.write(two, 200);
    assert_eq!((group.cwnd(two), group.sent(two) as u64), (n_cwnd, n_cwnd / MSS));
}

/// Peng et al. 2001, 3.2: a later connection knows the threshold, and leaves slow start before it causes a loss.
#[test]
fn a_later_connection_inherits_the_threshold() {
    let mut group = Group::new(&literal());
    let one = group.connect();
    group.write(one, 60);
    for _ in 0..3 {
        group.round(&[one]);
    }
    group.duplicates(one, 3);
    let ssthresh = group.ecb().n_ssthresh;
    assert_eq!(ssthresh, 8 * MSS);
    group.round(&[one]);
    group.close(one);
    let two = group.connect();
    assert_eq!(group.connection(two).ssthresh(), Some(ssthresh));
}

/// Peng et al. 2001, Figure 2 at T3: the running connection gives half, and the newcomer starts with as much.
#[test]
fn a_newcomer_gets_half_of_the_only_member() {
    let mut group = Group::new(&literal_from(40));
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
    assert!(!group.ecb().add_new_flag);
    assert_balanced(&group);
}

/// Peng et al. 2001, 3.3: the quota of each of N members is `n_cwnd / (N (N + 1))`: all end with an equal share.
#[test]
fn three_members_and_a_fourth_end_equal() {
    let mut group = Group::new(&literal_from(48));
    let members: Vec<usize> = (0..3).map(|_| group.open()).collect();
    group.after(100);
    for &at in &members {
        group.establish(at);
        group.write(at, 300);
    }
    for &at in &members {
        group.sent(at);
        assert_eq!(group.cwnd(at), 16 * MSS);
    }
    let newcomer = group.open();
    assert_eq!(group.ecb().quota, 4 * MSS);
    for &at in &members {
        group.ack(at);
    }
    assert_eq!(group.ecb().contribution, 12 * MSS);
    group.establish(newcomer);
    group.write(newcomer, 100);
    assert_eq!(group.cwnd(newcomer), 12 * MSS);
    for &at in &members {
        assert_eq!(group.cwnd(at), 13 * MSS, "12 and the growth of one acknowledgement");
    }
    assert_balanced(&group);
}

/// Peng et al. 2001, 3.3: a member pays once, not at every call while the flag is up.
#[test]
fn a_payer_pays_once() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    group.open();
    for _ in 0..5 {
        group.ack(one);
    }
    assert_eq!((group.ecb().statistics.payments, group.ecb().statistics.bytes_paid), (1, 20 * MSS));
    assert_eq!((group.cwnd(one), group.ecb().contribution), (25 * MSS, 20 * MSS));
    // A further newcomer is paid by both, and the first one not again.
    group.open();
    assert_eq!(group.ecb().statistics.payments, 2, "the first newcomer has enough to pay at once");
    let quota = group.ecb().n_cwnd / 6;
    group.ack(one);
    assert_eq!(group.ecb().statistics.payments, 3);
    assert_eq!(group.ecb().statistics.bytes_paid, 20 * MSS + 2 * quota);
    assert_balanced(&group);
}

/// Peng et al. 2001, Figure 3: three connections opened at once queue, and share the remembered aggregate equally.
#[test]
fn three_simultaneous_joins_share_equally() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut group = Group::new(&literal_from(30));
        let members = [group.open(), group.open(), group.open()];
        group.after(100);
        for at in order {
            group.establish(members[at]);
            group.write(members[at], 100);
            assert_eq!((group.cwnd(members[at]), group.sent(members[at])), (10 * MSS, 10));
        }
        assert_balanced(&group);
    }
}

/// Peng et al. 2001, 3.3: two newcomers that wait at the same time are paid by the running member one after the other,
/// and the first pays the second.
#[test]
fn two_newcomers_queue_behind_a_running_member() {
    let mut group = Group::new(&literal_from(60));
    let one = group.connect();
    group.write(one, 300);
    let (two, three) = (group.open(), group.open());
    group.ack(one);
    group.after(100);
    for at in [three, two] {
        group.establish(at);
        group.write(at, 100);
        assert_eq!(group.cwnd(at), 20 * MSS);
    }
    assert_eq!(group.cwnd(one), 21 * MSS);
    assert_balanced(&group);
}

/// Peng et al. 2001, 3.3: a newcomer whom nobody paid starts with one segment, not with zero; what that is too much
/// heals at the next call of a member that has more.
#[test]
fn an_unpaid_newcomer_starts_with_one_segment_and_the_excess_heals() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    let two = group.connect();
    group.write(two, 10);
    assert_eq!((group.cwnd(two), group.sent(two)), (MSS, 1));
    let ecb = group.ecb();
    assert_eq!((ecb.used_cwnd - ecb.n_cwnd, ecb.statistics.max_window_excess), (MSS, MSS));
    group.ack(one);
    assert_balanced(&group);
    assert_eq!((group.cwnd(one), group.cwnd(two)), (40 * MSS, MSS));
}

/// Peng et al. 2001, 3.3: the newcomer that the peer opened takes part too, for in the paper the server sends.
#[test]
fn a_passive_open_attaches() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    let two = group.receive_syn();
    assert_eq!(group.ecb().num_connections, 1);
    group.after(100);
    group.establish(two);
    assert_eq!((group.ecb().num_connections, group.ecb().quota), (2, 20 * MSS));
    group.ack(one);
    group.write(two, 100);
    assert_eq!(group.sent(two), 20);
}

/// Peng et al. 2001, 3.3: the same where it sends at once, before the running member has been asked: half of the window is handed over,
/// not one segment.
#[test]
fn a_passive_open_that_sends_at_once_gets_its_half() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    let two = group.receive_syn();
    group.after(100);
    group.establish(two);
    group.write(two, 100);
    assert_eq!((group.cwnd(one), group.cwnd(two), group.sent(two)), (20 * MSS, 20 * MSS, 20));
    assert_balanced(&group);
    // Whoever was called later takes a third, from both.
    let three = group.receive_syn();
    group.after(100);
    group.establish(three);
    group.write(three, 100);
    let windows = [one, two, three].map(|member| group.cwnd(member) / MSS);
    assert_eq!(windows, [13, 13, 13]);
    group.ack(one);
    assert_eq!(group.ecb().statistics.payments, 3, "nobody pays twice");
}

/// RFC 4987 (2.1), Peng et al. 2001, 3.3: who only sends a SYN takes nothing from a running member, not even with an
/// acknowledgement that guesses.
#[test]
fn spoofed_syns_take_no_window() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    for _ in 0..4 {
        let spoofed = group.receive_syn();
        group.guess(spoofed, 2);
    }
    group.ack(one);
    assert_eq!((group.ecb().num_connections, group.cwnd(one)), (1, 41 * MSS));
    assert_eq!(group.ecb().statistics.joins, 1);
}

/// Peng et al. 2001, Figure 2 at T4: when one of two closes, the other takes over its share at its next call.
#[test]
fn a_closed_connections_share_goes_to_the_other() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 200);
    let two = group.open();
    group.ack(one);
    group.after(100);
    group.establish(two);
    group.write(two, 20);
    let (before, n_cwnd) = (group.cwnd(one), group.ecb().n_cwnd);
    group.close(two);
    let left = group.ecb();
    assert_eq!((left.num_connections, left.used_cwnd), (1, before));
    assert!(left.n_cwnd >= n_cwnd);
    group.ack(one);
    assert!(group.cwnd(one) >= 2 * before - 2 * MSS, "{} after {before}", group.cwnd(one));
    assert_balanced(&group);
}

/// Peng et al. 2001, Equation 4: a loss found by duplicates halves the member that it hit and leaves the others as they
/// are.
#[test]
fn a_loss_by_duplicates_is_local() {
    let (mut group, one, two) = pair_of_twenties(&literal());
    let (hit, other, n_cwnd) = (group.cwnd(two), group.cwnd(one), group.ecb().n_cwnd);
    group.duplicates(two, 3);
    assert_eq!((group.cwnd(two), group.cwnd(one)), (hit / 2, other));
    let ecb = group.ecb();
    assert_eq!((ecb.n_cwnd, ecb.n_ssthresh, ecb.statistics.losses), (n_cwnd - hit / 2, n_cwnd - hit / 2, 1));
    assert_balanced(&group);
}

/// Peng et al. 2001, 3.3: what duplicates inflate a window by stays with the connection that they reach.
#[test]
fn inflation_stays_local() {
    let (mut group, one, two) = pair_of_twenties(&literal());
    group.sent(two);
    group.duplicates(two, 3);
    let ecb = group.ecb();
    let (before, other) = (group.cwnd(two), group.cwnd(one));
    group.sent(two);
    group.duplicates(two, 15);
    assert!(group.sent(two) > 0, "the inflated window lets new data out");
    assert_eq!((group.cwnd(two), group.cwnd(one), group.ecb().n_cwnd), (before, other, ecb.n_cwnd));
}

/// Peng et al. 2001, Equation 5: a time-out brings every member to one segment, and the threshold to half of the total
/// flight. That the other's timer expires for data of the same flight changes nothing.
#[test]
fn a_timeout_is_global() {
    let (mut group, one, two) = pair_of_twenties(&literal());
    let flight = group.outstanding(one) + group.outstanding(two);
    group.after(2000);
    assert!([one, two].iter().all(|&at| group.connection(at).sender_statistics().timeouts > 0));
    let ecb = group.ecb();
    assert_eq!((group.cwnd(one), group.cwnd(two)), (MSS, MSS));
    assert_eq!((ecb.n_cwnd, ecb.used_cwnd, ecb.num_connections), (2 * MSS, 2 * MSS, 2));
    assert_eq!((ecb.n_ssthresh, ecb.statistics.timeouts), (flight / 2, 1));
}

/// Two members of which the first has timed out, with data of the second's from before still out.
fn one_timed_out() -> (Group, usize, usize) {
    let (mut group, one, two) = pair_of_twenties(&literal());
    group.after(250);
    group.ack(two);
    group.after(100);
    assert_eq!((group.connection(one).sender_statistics().timeouts, group.ecb().statistics.timeouts), (1, 1));
    assert_eq!(group.connection(two).sender_statistics().timeouts, 0);
    (group, one, two)
}

/// Peng et al. 2001, Equation 5, "similar to a single TCP connection": acknowledgements of what another member had sent
/// before the time-out do not open the aggregate; those of what it sent later do.
#[test]
fn data_from_before_a_timeout_opens_no_window() {
    let (mut group, one, two) = one_timed_out();
    group.ack_all(two);
    assert_eq!((group.ecb().n_cwnd, group.cwnd(one), group.cwnd(two)), (2 * MSS, MSS, MSS));
    assert_eq!(group.outstanding(two), MSS, "it goes on with one segment");
    group.round(&[two]);
    assert_eq!(group.cwnd(two), 2 * MSS);
}

/// Peng et al. 2001, Equation 5: losses among what was out at a time-out are the same congestion.
#[test]
fn losses_from_before_a_timeout_are_answered() {
    let (mut group, _, two) = one_timed_out();
    let before = group.ecb();
    group.duplicates(two, 3);
    assert_eq!(group.connection(two).sender_statistics().recoveries, 1);
    let after = group.ecb();
    assert_eq!((after.n_cwnd, after.n_ssthresh), (before.n_cwnd, before.n_ssthresh));
    assert_eq!(after.statistics.losses, 0);
}

/// Peng et al. 2001, Equation 2 with the floor: a member whose window is one segment keeps it through further losses,
/// and the aggregate does not fall below what the members hold.
#[test]
fn a_member_at_the_floor_loses_nothing_more() {
    let mut group = Group::new(&literal_from(10));
    let one = group.connect();
    group.write(one, 300);
    let two = group.connect();
    group.write(two, 300);
    let floor = group.cwnd(two);
    assert_eq!(floor, MSS);
    let n_cwnd = group.ecb().n_cwnd;
    group.after(100);
    group.ack(one);
    let before = (group.cwnd(one), group.ecb().n_cwnd);
    group.duplicates(two, 3);
    assert_eq!((group.cwnd(two), group.cwnd(one), group.ecb().n_cwnd), (MSS, before.0, before.1));
    assert!(group.ecb().n_cwnd >= n_cwnd);
}

/// Peng et al. 2001: a connection whose handshake fails gives back what it was granted.
#[test]
fn a_failed_handshake_gives_its_grant_back() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    let two = group.open();
    group.ack(one);
    assert_eq!(group.ecb().contribution, 20 * MSS);
    group.abort(two);
    assert_eq!((group.ecb().num_connections, group.ecb().add_new_flag), (1, false));
    group.ack(one);
    assert_eq!(group.cwnd(one), 42 * MSS);
    assert_balanced(&group);
}

/// RFC 5681 (3.1): after a lost SYN a newcomer starts with one segment, whatever it was granted.
#[test]
fn a_lost_syn_limits_the_newcomer() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 300);
    let two = group.open();
    group.ack(one);
    group.after(1100);
    group.establish(two);
    group.write(two, 100);
    assert_eq!(group.sent(two), 1);
}

/// RFC 5681 (4.1): a member that was idle restarts from the initial window at most, and the aggregate loses the rest.
#[test]
fn an_idle_member_restarts_from_the_initial_window() {
    let mut group = Group::new(&literal_from(4));
    let one = group.connect();
    group.write(one, 60);
    for _ in 0..6 {
        group.round(&[one]);
    }
    assert!(group.cwnd(one) > 30 * MSS);
    group.after(5000);
    group.sent(one);
    group.write(one, 60);
    assert_eq!((group.sent(one), group.ecb().n_cwnd), (4, 4 * MSS));
}
