//! Segment scripts: Careful Resume, RFC 9959, phase by phase.

use crate::group::*;
use base::Duration;
use longhaul_tcp::ensemble::{CarefulResumePhase as Phase, SavedState, Shared};
use longhaul_tcp::{Sharing, TcpConfig};

fn saved(group: &Group) -> SavedState {
    match group.host.ensemble().shared(Sharing::CarefulResume, PEER) {
        Some(Shared::CarefulResume(saved)) => saved,
        other => panic!("{other:?}"),
    }
}

/// A connection had 128 segments in flight at 100 ms, and has closed.
fn observed(config: &TcpConfig) -> Group {
    let mut group = Group::new(config);
    let one = group.connect();
    group.write(one, 300);
    for _ in 0..7 {
        group.round(&[one]);
    }
    group.close(one);
    group
}

/// Another one has its initial window acknowledged after `rtt` ms, and more to send.
fn resumed(group: &mut Group, rtt: u64) -> usize {
    let two = group.open();
    group.after(rtt);
    group.establish(two);
    group.write(two, 300);
    assert_eq!((saved(group).phase, group.sent(two)), (Phase::Reconnaissance, 2));
    group.after(rtt);
    group.ack_all(two);
    two
}

/// RFC 9959: Observing: the window and the round-trip time are saved.
#[test]
fn observing_saves_what_the_path_carried() {
    let group = observed(&sharing(Sharing::CarefulResume));
    let (cwnd, rtt) = saved(&group).saved.expect("saved parameters");
    assert_eq!(rtt, Duration::from_millis(100));
    assert!((100 * MSS..=160 * MSS).contains(&cwnd), "{cwnd}");
}

/// RFC 9959: Observing: less than four initial windows is not saved.
#[test]
fn a_small_window_is_not_saved() {
    let mut group = Group::new(&sharing(Sharing::CarefulResume));
    let one = group.connect();
    group.write(one, 6);
    group.round(&[one]);
    group.round(&[one]);
    group.close(one);
    assert_eq!(saved(&group).saved, None);
}

/// RFC 9959: Observing: an application that sends little does not lower what is saved.
#[test]
fn a_small_transfer_does_not_lower_what_is_saved() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let before = saved(&group).saved;
    let two = group.connect();
    group.write(two, 14);
    for _ in 0..3 {
        group.round(&[two]);
    }
    group.close(two);
    assert_eq!(saved(&group).saved, before);
}

/// RFC 9959: Reconnaissance to Unvalidated: with the initial window acknowledged, the path confirmed and data waiting,
/// the window jumps to half of what was saved.
#[test]
fn the_window_jumps_to_half_of_what_was_saved() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let jump = saved(&group).saved.unwrap().0 / 2;
    let two = resumed(&mut group, 100);
    assert_eq!(saved(&group).jumps, 1);
    group.after(100);
    let in_flight = group.connection(two).in_flight();
    assert!(in_flight > 40 * MSS && in_flight <= jump, "{in_flight} of {jump}");
}

/// RFC 9959: Reconnaissance: the round-trip time must lie between half and ten times of the one saved.
#[test]
fn another_round_trip_time_means_another_path() {
    for (rtt, jumps) in [(40, 0), (60, 1), (900, 1), (1100, 0)] {
        let config = sharing(Sharing::CarefulResume).with(|it| it.rto.initial = Duration::from_secs(3));
        let mut group = observed(&config);
        let two = resumed(&mut group, rtt);
        assert_eq!(saved(&group).jumps, jumps, "{rtt} ms");
        if jumps == 0 {
            assert_eq!((saved(&group).phase, group.cwnd(two)), (Phase::Normal, 4 * MSS));
        }
    }
}

/// RFC 9959: Reconnaissance: a sender without more data stays there.
#[test]
fn without_data_there_is_no_jump() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let two = group.connect();
    group.write(two, 3);
    group.round(&[two]);
    assert_eq!((saved(&group).phase, saved(&group).jumps), (Phase::Reconnaissance, 0));
    group.write(two, 100);
    assert_eq!(saved(&group).jumps, 1);
}

/// RFC 9959: Reconnaissance: congestion ends it.
#[test]
fn congestion_before_the_jump_means_normal() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let two = group.connect();
    group.write(two, 100);
    group.after(2000);
    assert!(group.connection(two).sender_statistics().timeouts > 0);
    group.round(&[two]);
    group.round(&[two]);
    assert_eq!((saved(&group).phase, saved(&group).jumps), (Phase::Normal, 0));
}

/// RFC 9959: Unvalidated to Validating, and Validating to Normal: once all of the jump has been acknowledged.
#[test]
fn a_jump_that_comes_through_is_validated() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let two = resumed(&mut group, 100);
    group.after(99);
    let of_the_jump = group.connection(two).in_flight();
    group.after(1);
    group.ack(two);
    assert_eq!(saved(&group).phase, Phase::Validating);
    while group.connection(two).in_flight() > 0 && saved(&group).phase == Phase::Validating {
        group.ack(two);
    }
    assert_eq!((saved(&group).phase, saved(&group).retreats), (Phase::Normal, 0));
    assert!(group.cwnd(two) >= of_the_jump, "{} of {of_the_jump}", group.cwnd(two));
}

/// RFC 9959: Validating to Safe Retreat: half of what came through, the saved parameters are gone; and to Normal once
/// all of the jump has arrived, with a threshold of half of `PipeSize`.
#[test]
fn a_loss_in_the_jump_means_retreat() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let two = resumed(&mut group, 100);
    group.after(100);
    for _ in 0..10 {
        group.ack(two);
    }
    assert_eq!(saved(&group).phase, Phase::Validating);
    group.duplicates(two, 3);
    let state = saved(&group);
    assert_eq!((state.phase, state.retreats, state.saved), (Phase::SafeRetreat, 1, None));
    let window = group.cwnd(two);
    assert!(window <= 8 * MSS, "half of the 4 before the jump and the 10 of it: {window}");
    group.after(100);
    group.ack_all(two);
    group.after(100);
    group.ack_all(two);
    assert_eq!(saved(&group).phase, Phase::Normal);
    assert!(group.connection(two).ssthresh().unwrap() < 70 * MSS);
}

/// A time-out in the jump: the loss window of RFC 5681, and retreat.
#[test]
fn a_timeout_in_the_jump_means_retreat() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let two = resumed(&mut group, 100);
    group.after(3000);
    assert_eq!((saved(&group).phase, group.cwnd(two)), (Phase::SafeRetreat, MSS));
}

/// RFC 9959: the parameters are lent to one connection at a time.
#[test]
fn only_one_connection_jumps_at_a_time() {
    let mut group = observed(&sharing(Sharing::CarefulResume));
    let (two, three) = (group.open(), group.open());
    group.after(100);
    for at in [two, three] {
        group.establish(at);
        group.write(at, 100);
    }
    group.after(100);
    group.ack_all(two);
    group.ack_all(three);
    assert_eq!(saved(&group).jumps, 1);
    assert_eq!(group.cwnd(three), 4 * MSS);
}

/// RFC 9959: saved parameters have a lifetime.
#[test]
fn saved_parameters_expire() {
    let mut config = sharing(Sharing::CarefulResume);
    config.sharing.lifetime = Duration::from_secs(30);
    let mut group = observed(&config);
    group.after(31_000);
    let two = group.connect();
    group.write(two, 100);
    assert_eq!((saved(&group).phase, saved(&group).saved), (Phase::Normal, None));
}
