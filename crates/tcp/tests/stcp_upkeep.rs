//! STCP beyond the paper: idle members, state that nobody uses, and that no member is ever stuck.

use crate::group::*;
use base::Duration;
use longhaul_tcp::{InitialWindow, TcpConfig};
use proptest::prelude::*;

/// Keeps `busy` supplied for so many round trips; `idle` has nothing to send.
fn rounds_of(group: &mut Group, busy: usize, rounds: usize) {
    for _ in 0..rounds {
        let waiting = group.connection(busy).unacknowledged() as u64 / MSS;
        let wanted = 3 * group.ecb().n_cwnd / MSS;
        group.write(busy, wanted.saturating_sub(waiting) as usize);
        group.round(&[busy]);
    }
}

/// Two members of which the second has nothing more to send, with all of its window free.
fn one_busy_one_idle(config: &TcpConfig) -> (Group, usize, usize) {
    let mut group = Group::new(&config.clone().with(|it| it.window.initial = InitialWindow::Segments(40)));
    let (one, two) = (group.open(), group.open());
    group.after(100);
    group.establish(one);
    group.establish(two);
    group.write(one, 20);
    group.write(two, 20);
    group.round(&[one, two]);
    // A loss, and with it the end of slow start.
    group.write(one, 30);
    group.duplicates(one, 3);
    group.round(&[one]);
    group.round(&[one]);
    assert_eq!(group.connection(two).in_flight(), 0);
    (group, one, two)
}

/// Peng et al. 2001: the literal behaviour: a member that sends nothing keeps its share for ever.
#[test]
fn without_idle_release_an_idle_member_hoards() {
    let (mut group, one, two) = one_busy_one_idle(&literal());
    let hoard = group.cwnd(two);
    assert!(hoard >= 20 * MSS);
    rounds_of(&mut group, one, 10);
    assert_eq!((group.cwnd(two), group.ecb().statistics.bytes_released), (hoard, 0));
}

fn releasing() -> TcpConfig {
    let mut config = literal();
    config.sharing.idle_release = true;
    config
}

/// Beyond Peng et al. 2001: what a member has not used for one to two retransmission time-outs, the others can use.
#[test]
fn an_idle_member_gives_its_window_back() {
    let (mut group, one, two) = one_busy_one_idle(&releasing());
    let (hoard, before) = (group.cwnd(two), group.cwnd(one));
    // The first period lasts for the initial time-out, 1 s; the next for that of the path, 300 ms.
    rounds_of(&mut group, one, 8);
    assert_eq!(group.cwnd(two), hoard);
    rounds_of(&mut group, one, 6);
    assert_eq!((group.cwnd(two), group.ecb().statistics.bytes_released), (MSS, hoard - MSS));
    assert!(group.cwnd(one) >= before + hoard - MSS);
    assert_balanced(&group);
}

/// Beyond Peng et al. 2001: when it wants more again, the others pay it like a newcomer.
#[test]
fn a_member_that_comes_back_is_paid_like_a_newcomer() {
    let (mut group, one, two) = one_busy_one_idle(&releasing());
    rounds_of(&mut group, one, 14);
    assert_eq!(group.cwnd(two), MSS);
    // One segment fits into what it kept: nothing is asked for.
    group.write(two, 1);
    assert!(!group.ecb().add_new_flag);
    group.write(two, 200);
    assert!(group.ecb().add_new_flag);
    let equal = group.ecb().n_cwnd / 2;
    group.ack(one);
    assert_eq!(group.cwnd(two), equal);
    assert_balanced(&group);
    rounds_of(&mut group, one, 8);
    assert!(!group.ecb().add_new_flag, "its time to be paid ends");
}

/// Beyond the paper: remembered state halves for each retransmission time-out without connections, down to the initial
/// window, as in RFC 2861; the threshold keeps three quarters.
#[test]
fn a_remembered_aggregate_decays() {
    let cases = [
        (0, true, 0),
        (800, true, 0),
        (1100, true, 1),
        (2100, true, 2),
        (20_000, true, 60),
        (20_000, false, 0),
    ];
    for (idle, decay, halvings) in cases {
        let mut config = literal_from(4);
        config.sharing.decay = decay;
        config.sharing.half_life = Some(Duration::from_secs(1));
        let (mut group, before) = remembered(&config);
        group.after(idle);
        let two = group.connect();
        assert_eq!(group.cwnd(two), (before >> halvings).max(4 * MSS), "after {idle} ms");
    }
}

/// A connection learnt an aggregate of more than 60 segments at 100 ms, and has closed; the aggregate.
fn remembered(config: &TcpConfig) -> (Group, u64) {
    let mut group = Group::new(config);
    let one = group.connect();
    group.write(one, 200);
    for _ in 0..4 {
        group.round(&[one]);
    }
    group.close(one);
    let n_cwnd = group.ecb().n_cwnd;
    assert!(n_cwnd >= 64 * MSS);
    (group, n_cwnd)
}

/// Beyond Peng et al. 2001: without `half-life` the aggregate halves per retransmission time-out of the path.
#[test]
fn the_half_life_is_a_retransmission_timeout() {
    let mut config = literal_from(4);
    config.sharing.decay = true;
    let (mut group, before) = remembered(&config);
    // RTT 100 ms, RTO 300 ms by its margin.
    group.after(650);
    let two = group.connect();
    assert_eq!((group.cwnd(two), group.ecb().statistics.decays), (before / 4, 2));
}

/// RFC 2861 (3): the threshold keeps three quarters of the window that halves.
#[test]
fn a_decayed_aggregate_remembers_three_quarters() {
    let mut config = literal_from(4);
    config.sharing.decay = true;
    config.window.initial_ssthresh = Some(base::units::Size(5000));
    let mut group = Group::new(&config);
    let one = group.connect();
    group.write(one, 400);
    for _ in 0..12 {
        group.round(&[one]);
    }
    group.close(one);
    let before = group.ecb();
    assert!(before.n_cwnd > 10 * MSS && before.n_ssthresh < before.n_cwnd / 4 * 3, "{before:?}");
    group.after(650);
    group.connect();
    assert_eq!(group.ecb().n_ssthresh, before.n_cwnd / 4 * 3);
}

/// Beyond Peng et al. 2001: after a pause, connections that open together have what was learnt.
#[test]
fn joint_openings_have_what_was_learnt() {
    let (mut group, before) = remembered(&literal_from(4));
    let [one, two] = [(); 2].map(|()| group.open());
    group.establish(one);
    group.establish(two);
    assert_eq!(group.ecb().n_cwnd, before, "the learnt aggregate is forgotten");
}

/// Beyond Peng et al. 2001: after its lifetime, state is forgotten with or without decay.
#[test]
fn old_state_expires() {
    for (idle, known) in [(9_000, true), (11_000, false)] {
        let mut config = literal_from(4);
        config.sharing.lifetime = Duration::from_secs(10);
        let (mut group, before) = remembered(&config);
        group.after(idle);
        let two = group.connect();
        assert_eq!(group.cwnd(two), if known { before } else { 4 * MSS });
    }
}

/// Beyond Peng et al. 2001: where the last member that runs leaves before it has paid, those that wait share equally.
#[test]
fn newcomers_that_nobody_is_left_to_pay_share_equally() {
    let mut group = Group::new(&literal_from(40));
    let one = group.connect();
    group.write(one, 10);
    group.ack_all(one);
    let members = [group.open(), group.open(), group.open()];
    assert_eq!(group.ecb().contribution, 0);
    group.close(one);
    let part = group.ecb().n_cwnd / 3;
    for at in [members[2], members[0], members[1]] {
        group.establish(at);
        group.write(at, 100);
        assert!(group.cwnd(at).abs_diff(part) <= 2);
    }
    assert_balanced(&group);
}

#[derive(Clone, Debug)]
enum Step {
    Open,
    ReceiveSyn,
    Establish(usize),
    Write(usize, usize),
    Ack(usize, usize),
    Duplicates(usize, usize),
    Wait(u64),
    Close(usize),
    Abort(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..6_usize;
    prop_oneof![
        2 => Just(Step::Open),
        1 => Just(Step::ReceiveSyn),
        3 => at.clone().prop_map(Step::Establish),
        4 => (at.clone(), 1..60_usize).prop_map(|(at, segments)| Step::Write(at, segments)),
        6 => (at.clone(), 1..30_usize).prop_map(|(at, count)| Step::Ack(at, count)),
        2 => (at.clone(), 1..6_usize).prop_map(|(at, count)| Step::Duplicates(at, count)),
        3 => (1..2500_u64).prop_map(Step::Wait),
        1 => at.clone().prop_map(Step::Close),
        1 => at.prop_map(Step::Abort),
    ]
}

/// Which of the group's connections are established and not yet closed.
#[derive(Default)]
struct Roll {
    waiting: Vec<usize>,
    running: Vec<usize>,
}

fn apply(group: &mut Group, roll: &mut Roll, step: &Step) {
    let pick = |from: &[usize], at: usize| (!from.is_empty()).then(|| at % from.len());
    match *step {
        Step::Open if roll.waiting.len() + roll.running.len() < 6 => roll.waiting.push(group.open()),
        Step::ReceiveSyn if roll.waiting.len() + roll.running.len() < 6 => {
            roll.waiting.push(group.receive_syn());
        }
        Step::Open | Step::ReceiveSyn => {}
        Step::Establish(at) => {
            if let Some(at) = pick(&roll.waiting, at) {
                let at = roll.waiting.swap_remove(at);
                group.establish(at);
                roll.running.push(at);
            }
        }
        Step::Wait(millis) => group.after(millis),
        Step::Write(at, _)
        | Step::Ack(at, _)
        | Step::Duplicates(at, _)
        | Step::Close(at)
        | Step::Abort(at) => {
            let Some(index) = pick(&roll.running, at) else { return };
            let at = roll.running[index];
            match *step {
                Step::Write(_, segments) if group.connection(at).writable() >= segments * MSS as usize => {
                    group.write(at, segments);
                }
                Step::Ack(_, count) => (0..count).for_each(|_| group.ack(at)),
                Step::Duplicates(_, count) => group.duplicates(at, count),
                Step::Close(_) => {
                    group.close(at);
                    roll.running.swap_remove(index);
                }
                Step::Abort(_) => {
                    group.abort(at);
                    roll.running.swap_remove(index);
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

/// Peng et al. 2001: no deadlock: whatever the members did to each other, what they have written gets out and is
/// acknowledged.
    #[test]
    fn every_member_gets_its_data_out(
        segments in 1..20_u32,
        idle_release: bool,
        decay: bool,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut config = literal_from(segments);
        config.sharing.idle_release = idle_release;
        config.sharing.decay = decay;
        // Long enough for peers that a script leaves without an answer.
        config.limits.data_retries = 1000;
        config.limits.syn_retries = 1000;
        let mut group = Group::new(&config);
        let mut roll = Roll::default();
        for step in &steps {
            apply(&mut group, &mut roll, step);
        }
        for at in roll.waiting {
            group.establish(at);
            roll.running.push(at);
        }
        for &at in &roll.running {
            group.write(at, 3);
        }
        for _ in 0..1000 {
            group.round(&roll.running);
        }
        for &at in &roll.running {
            prop_assert_eq!(group.connection(at).unacknowledged(), 0);
            prop_assert!(group.cwnd(at) >= MSS);
        }
        if !roll.running.is_empty() {
            let ecb = group.ecb();
            prop_assert_eq!(ecb.num_connections as usize, roll.running.len());
            let floors = u64::from(ecb.num_connections) * MSS;
            prop_assert!(ecb.used_cwnd <= ecb.n_cwnd + floors, "{:?}", ecb);
            prop_assert!(ecb.statistics.max_window_excess <= 6 * MSS);
        }
    }
}

/// Beyond Peng et al. 2001: a member that has used all of its window, and falls idle, gives it back; one that goes on using it does not.
#[test]
fn a_member_that_falls_idle_gives_its_window_back() {
    let (mut group, one, two) = pair_of_twenties(&releasing());
    group.duplicates(one, 3);
    let supply = |group: &mut Group, at: usize| {
        let waiting = group.connection(at).unacknowledged() as u64 / MSS;
        group.write(at, 300_u64.saturating_sub(waiting) as usize);
    };
    for _ in 0..20 {
        supply(&mut group, one);
        supply(&mut group, two);
        group.round(&[one, two]);
        assert!(!group.ecb().add_new_flag, "who uses its window is to be paid");
    }
    let ecb = group.ecb();
    assert_eq!(ecb.statistics.bytes_released, 0, "{ecb:?}");
    // Everything of the second's has come.
    while group.connection(two).unacknowledged() > 0 {
        supply(&mut group, one);
        group.round(&[one, two]);
    }
    for _ in 0..14 {
        supply(&mut group, one);
        group.round(&[one]);
    }
    assert_eq!(group.cwnd(two), MSS, "it is never released");
    assert_eq!(group.cwnd(one), group.ecb().n_cwnd - MSS);
}

/// Peng et al. 2001: of three others that are busy each gives a third: who comes back has an equal share, and not nearly everything.
#[test]
fn who_comes_back_to_several_has_an_equal_share() {
    let mut group = Group::new(&releasing().with(|it| it.window.initial = InitialWindow::Segments(40)));
    let members = [(); 4].map(|()| group.open());
    group.after(100);
    for at in members {
        group.establish(at);
        group.write(at, 10);
    }
    group.round(&members);
    let [busy @ .., idle] = members;
    group.write(busy[0], 60);
    group.duplicates(busy[0], 3);
    for _ in 0..30 {
        for at in busy {
            let waiting = group.connection(at).unacknowledged() as u64 / MSS;
            group.write(at, 100_u64.saturating_sub(waiting) as usize);
        }
        group.round(&busy);
    }
    assert_eq!(group.cwnd(idle), MSS, "it was released");
    let equal = group.ecb().n_cwnd / 4;
    group.write(idle, 200);
    for at in busy {
        group.ack(at);
    }
    let share = group.cwnd(idle);
    assert!(share.abs_diff(equal) < equal / 2, "{share} of an equal share of {equal}");
}
