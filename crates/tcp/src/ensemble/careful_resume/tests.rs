use super::*;
use crate::congestion::Reno;
use crate::congestion::samples::{MSS, ack, at_ms, congestion, start};

const RTT: Duration = Duration::from_millis(100);

/// What a controller is told, the wrapped one is told too: a method left to its default would be lost in silence.
#[test]
fn every_method_reaches_the_controller() {
    let declared = include_str!("../../congestion.rs").split("pub trait Controller").nth(1).unwrap();
    let declared = declared.split("\n}\n").next().unwrap();
    let ours = include_str!("../careful_resume.rs").split("impl Controller for Resuming").nth(1).unwrap();
    let methods: Vec<&str> =
        declared.lines().filter_map(|line| line.trim().strip_prefix("fn ")?.split('(').next()).collect();
    assert!(methods.len() >= 9, "{methods:?}");
    for method in methods {
        assert!(ours.contains(&format!("fn {method}(")), "{method} does not reach the controller");
        assert!(ours.contains(&format!("self.inner.{method}(")), "{method} does not reach the controller");
    }
}

/// A connection in Reconnaissance with an initial window of 10 segments, for whose destination 100 segments in 100 ms are saved.
fn borrowing() -> Resuming {
    let saved = SavedState { saved: Some((100 * MSS, RTT)), borrower: Some(1), ..SavedState::default() };
    Resuming {
        inner: Box::new(Reno::new(&start(10))),
        shared: Arc::new(Mutex::new(saved)),
        number: 1,
        phase: Phase::Reconnaissance,
        jump_cwnd: 50 * MSS,
        saved_rtt: RTT,
        rtt: Duration::MAX,
        mss: MSS,
        initial_window: 10 * MSS,
        jumped_at: Instant::ZERO,
        pipe_size: 0,
        delivered: 0,
        mark: 0,
        round: 0,
        peak: 0,
        congested: false,
    }
}

fn deliver(resuming: &mut Resuming, ms: u64, segments: u64, in_flight: u64) {
    let sample =
        AckSample { now: at_ms(ms), rtt_min: RTT, in_flight: in_flight * MSS, ..ack(segments * MSS, 0) };
    resuming.on_ack(&sample);
}

/// The initial window has arrived at 100 ms, and 11 segments are out: the window has jumped.
fn jumped() -> Resuming {
    let mut resuming = borrowing();
    deliver(&mut resuming, 100, 9, 2);
    resuming.on_send_opportunity(at_ms(100), 11 * MSS);
    assert_eq!(resuming.phase, Phase::Reconnaissance, "a segment of the initial window is missing");
    deliver(&mut resuming, 100, 1, 1);
    resuming.on_send_opportunity(at_ms(100), 5 * MSS);
    assert_eq!(resuming.phase, Phase::Reconnaissance, "the window is not full");
    resuming.on_send_opportunity(at_ms(100), 12 * MSS);
    assert_eq!((resuming.phase, resuming.window()), (Phase::Unvalidated, 50 * MSS));
    // 50 segments in 100 ms.
    assert_eq!(resuming.pacing_rate(), Some(Rate::from_bps(4_000_000)));
    assert_eq!((resuming.pipe_size, resuming.mark), (12 * MSS, 22 * MSS));
    resuming
}

/// RFC 9959, Unvalidated to Validating: with the first acknowledgement of what was sent in the jump, or when a round trip is over, or the
/// window is full; the window is what is in the network then.
#[test]
fn the_jump_ends_in_one_of_three_ways() {
    let validating = |resuming: &Resuming| (resuming.phase, resuming.window(), resuming.mark);
    let mut acked = jumped();
    deliver(&mut acked, 150, 12, 30);
    assert_eq!(acked.phase, Phase::Unvalidated, "all of these were sent before");
    deliver(&mut acked, 150, 1, 30);
    assert_eq!(validating(&acked), (Phase::Validating, 30 * MSS, 53 * MSS));
    assert_eq!(acked.pacing_rate(), None);
    let mut late = jumped();
    deliver(&mut late, 200, 1, 40);
    assert_eq!(late.phase, Phase::Unvalidated);
    deliver(&mut late, 201, 1, 40);
    assert_eq!(validating(&late), (Phase::Validating, 40 * MSS, 52 * MSS));
    for (ms, in_flight, phase) in [
        (200, 49 * MSS, Phase::Unvalidated),
        (200, 49 * MSS + 1, Phase::Validating),
        (201, 20 * MSS, Phase::Validating),
        // No more is in the network than has proved to get through.
        (201, 12 * MSS, Phase::Normal),
    ] {
        let mut asked = jumped();
        asked.on_send_opportunity(at_ms(ms), in_flight);
        assert_eq!(asked.phase, phase, "{in_flight} at {ms}");
        assert_eq!(lock(&asked.shared).borrower.is_none(), phase == Phase::Normal);
    }
}

/// RFC 9959, Validating to Normal: when the last byte of the jump has arrived.
#[test]
fn validation_ends_with_the_last_byte() {
    let mut resuming = jumped();
    resuming.on_send_opportunity(at_ms(201), 30 * MSS);
    assert_eq!((resuming.phase, resuming.mark), (Phase::Validating, 40 * MSS));
    deliver(&mut resuming, 250, 29, 1);
    assert_eq!((resuming.phase, resuming.pipe_size), (Phase::Validating, 41 * MSS));
    deliver(&mut resuming, 250, 1, 0);
    assert_eq!(resuming.phase, Phase::Normal);
    assert_eq!(lock(&resuming.shared).borrower, None);
}

/// RFC 9959, Safe Retreat: half of what came through is the window, and no slow start beyond; what was saved misleads nobody else. It ends
/// when all that was out has arrived, with half of `PipeSize` as the threshold.
#[test]
fn a_retreat_ends_with_half_of_what_came_through() {
    let mut resuming = jumped();
    resuming.on_congestion(&congestion(50 * MSS, Cause::Loss));
    assert_eq!(
        (resuming.phase, resuming.window(), resuming.ssthresh()),
        (Phase::SafeRetreat, 6 * MSS, Some(6 * MSS))
    );
    let shared = *lock(&resuming.shared);
    assert_eq!((shared.saved, shared.retreats), (None, 1));
    // What proves spurious is no reason to trust the jump.
    resuming.on_spurious_congestion(at_ms(210), 50 * MSS, 50 * MSS);
    assert_eq!(resuming.window(), 6 * MSS);
    resuming.on_ack(&AckSample { now: at_ms(220), rtt_min: RTT, recovering: true, ..ack(49 * MSS, 0) });
    assert_eq!((resuming.phase, resuming.ssthresh()), (Phase::SafeRetreat, Some(6 * MSS)));
    resuming.on_ack(&AckSample { now: at_ms(220), rtt_min: RTT, recovering: true, ..ack(MSS, 0) });
    assert_eq!((resuming.phase, resuming.ssthresh()), (Phase::Normal, Some(31 * MSS)));
    // A time-out leaves the loss window, and two segments are the least threshold.
    let mut resuming = jumped();
    resuming.pipe_size = MSS;
    resuming.on_congestion(&congestion(50 * MSS, Cause::Timeout));
    assert_eq!((resuming.window(), resuming.ssthresh()), (MSS, Some(2 * MSS)));
}

/// RFC 5681 (4.1): an idle time ends the jump and restarts the controller; where a response was not needed, it is undone.
#[test]
fn the_controller_hears_of_idle_times_and_spurious_losses() {
    let mut resuming = jumped();
    resuming.on_send_opportunity(at_ms(201), 30 * MSS);
    resuming.on_restart(at_ms(9000));
    assert_eq!((resuming.phase, resuming.window()), (Phase::Normal, 10 * MSS));
    resuming.on_congestion(&congestion(10 * MSS, Cause::Loss));
    assert_eq!(resuming.window(), 5 * MSS);
    resuming.on_spurious_congestion(at_ms(9100), 10 * MSS, 20 * MSS);
    assert_eq!((resuming.window(), resuming.ssthresh()), (10 * MSS, Some(20 * MSS)));
}

/// RFC 9959, Observing: once a round trip without losses, the most that was in the network, if it is four initial windows at least; less
/// than is saved only after congestion.
#[test]
fn rounds_are_observed() {
    let mut resuming = Resuming { phase: Phase::Normal, ..borrowing() };
    lock(&resuming.shared).saved = None;
    let mut see = |round, segments, recovering, congested| {
        if congested {
            resuming.on_congestion(&congestion(40 * MSS, Cause::Loss));
        }
        let sample = AckSample { rtt_min: RTT, round, recovering, ..ack(MSS, segments * MSS) };
        resuming.on_ack(&sample);
        lock(&resuming.shared).saved.map(|it| it.0 / MSS)
    };
    assert_eq!(see(1, 39, false, false), None, "little");
    assert_eq!(see(1, 45, false, false), None, "the round is not over");
    assert_eq!(see(2, 10, true, false), None, "it repairs losses");
    assert_eq!(see(2, 40, false, false), Some(45));
    assert_eq!(see(3, 60, false, false), Some(60));
    assert_eq!(see(4, 70, false, true), Some(70));
    assert_eq!(see(5, 50, false, true), Some(50));
}

/// RFC 9959: one connection at a time borrows what is saved, until it ends or the jump is over.
#[test]
fn members_and_the_borrower_are_counted() {
    let policy = CarefulResume::new(&SharingConfig::default());
    lock(&policy.saved).saved = Some((100 * MSS, RTT));
    let config = Arc::new(crate::TcpConfig::default());
    let opening =
        Opening { now: at_ms(1), config: &config, start: start(10), syn_lost: false, called: false };
    let tickets = [(); 3].map(|()| policy.join(&opening));
    assert_eq!(tickets.map(|it| it.number), [1, 2, 3]);
    let controllers: Vec<_> = tickets.map(|it| policy.establish(it, &opening)).into();
    assert_eq!((controllers.len(), policy.members()), (3, 3));
    let closing = Closing { now: at_ms(2), ssthresh: None, srtt: None, rttvar: Duration::ZERO };
    policy.leave(tickets[1], &closing);
    assert_eq!((policy.members(), lock(&policy.saved).borrower), (2, Some(1)));
    policy.leave(tickets[0], &closing);
    assert_eq!((policy.members(), lock(&policy.saved).borrower), (1, None));
}
