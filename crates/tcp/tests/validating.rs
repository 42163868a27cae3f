//! Segment scripts: a congestion window that is not used (RFC 7661, RFC 2861, RFC 5681).

use crate::script::*;
use longhaul_tcp::TcpConfig;
use longhaul_tcp::config::AfterIdle;

fn with(after_idle: AfterIdle) -> TcpConfig {
    plain().with(|it| it.window.after_idle = after_idle)
}

/// A window of 64 segments, of which 32 were used in the round trip up to 500 ms; since then there is nothing to send. With
/// the next byte's number.
fn idle(config: &TcpConfig) -> (Script, i64) {
    let config = config.clone().with(|it| it.window.byte_counting_limit = 100);
    let mut script = Script::with_window(&config, 4);
    let mut next = 1;
    for round in 0..4 {
        let segments = 4 << round;
        script.write(1000 * segments);
        assert_eq!(script.take_count(), segments);
        next += 1000 * segments as i64;
        script.at(200 + 100 * round);
        script.inject(ack(1, next));
    }
    assert_eq!(script.connection().cwnd(), 64_000);
    (script, next)
}

/// How many segments leave at once after a pause of so many milliseconds, and window and threshold then.
fn after(config: &TcpConfig, pause: u64) -> (usize, u64, Option<u64>) {
    let (mut script, _) = idle(config);
    script.at(500 + pause);
    script.write(100_000);
    (script.take_count(), script.connection().cwnd(), script.connection().ssthresh())
}

/// Linux (`tcp_cwnd_restart`): the window halves for each time-out (300 ms) after the first, down to the initial window,
/// and the threshold remembers three quarters (RFC 2861, 3).
#[test]
fn the_window_decays() {
    let config = with(AfterIdle::Decay);
    assert_eq!(after(&config, 150), (60, 64_000, None));
    for (pause, segments) in [(500, 32), (750, 16), (1000, 8), (2000, 4), (20_000, 4)] {
        let (sent, cwnd, _) = after(&config, pause);
        assert_eq!((sent, cwnd), (segments, 1000 * segments as u64), "{pause}");
    }
}

/// RFC 2861 (3): the threshold remembers three quarters of the window that was there before the pause.
#[test]
fn the_threshold_remembers_the_window() {
    let config = with(AfterIdle::Decay).with(|it| {
        it.window.initial_ssthresh = Some(base::units::Size(20_000));
        it.window.byte_counting_limit = 100;
    });
    let mut script = Script::with_window(&config, 4);
    let mut next = 1;
    for round in 0..3 {
        script.write(4000 << round);
        next += 4000 << round;
        script.at(200 + 100 * round);
        script.inject(ack(1, next));
    }
    let window = script.connection().cwnd();
    assert!(window / 4 * 3 > 20_000 && script.connection().ssthresh() == Some(20_000), "{window}");
    script.at(400 + 750);
    script.take_count();
    script.write(1000);
    assert_eq!(script.connection().ssthresh(), Some(window / 4 * 3));
}

/// RFC 7661 (4.4.3): a pause lowers a window, and opens none: not up to the initial one either.
#[test]
fn a_pause_opens_no_window() {
    let mut script = Script::with_window(&with(AfterIdle::Validate), 4);
    script.write(1000);
    script.take_count();
    script.expect_at(400, data(1, 1000));
    script.at(410);
    script.inject(ack(1, 1001));
    let window = script.connection().cwnd();
    script.at(400_000);
    script.write(1000);
    assert_eq!(script.connection().cwnd(), window, "it grew without an acknowledgement");
    assert!(window < 4000);
}

/// Linux (`tcp_cwnd_application_limited`): what a time-out long was not used falls by half.
#[test]
fn a_window_that_is_partly_used_decays_to_what_is() {
    let (mut script, mut acked) = idle(&with(AfterIdle::Decay));
    let mut windows = Vec::new();
    for round in 0..12 {
        script.write(8000);
        script.at(600 + 100 * round);
        acked += 8000;
        script.inject(ack(1, acked));
        windows.push(script.connection().cwnd());
    }
    // 64, then (64 + 8) / 2, (36 + 8) / 2 and (22 + 8) / 2, a time-out of 300 ms apart; of 15, 8 are more than half, which
    // slow start opens.
    windows.dedup();
    assert_eq!(windows[..4], [64_000, 36_000, 22_000, 15_000 + 8000], "{windows:?}");
    assert_eq!(script.connection().ssthresh(), None);
}

/// RFC 7661 (4.3 and 4.4.2): the window is kept through minutes without data, and the next ones are spaced out over half a
/// round trip or more instead of leaving in a burst.
#[test]
fn the_window_is_preserved_and_paced() {
    let (mut script, _) = idle(&with(AfterIdle::Validate));
    script.at(200_500);
    script.write(64_000);
    assert!(script.take_count() <= 4);
    assert_eq!(script.connection().cwnd(), 64_000);
    script.at(200_525);
    let half = script.take_count();
    assert!((25..45).contains(&half), "{half}");
    script.at(200_600);
    script.take_count();
    assert_eq!(script.connection().in_flight(), 60_000, "all that the peer takes");
}

/// RFC 7661 (4.4.3): after five minutes without validation it halves, and again after each further five.
#[test]
fn the_window_is_not_preserved_for_ever() {
    for (minutes, window) in [(4, 64_000), (6, 32_000), (11, 16_000), (60, 4000)] {
        let (mut script, _) = idle(&with(AfterIdle::Validate));
        script.at(minutes * 60_000);
        script.write(64_000);
        script.take_count();
        assert_eq!(script.connection().cwnd(), window, "{minutes}");
    }
}

/// RFC 7661 (4.4.1): a loss takes the window back to half of what was really used, less what had to be sent again.
#[test]
fn a_loss_ends_the_preservation() {
    for (after_idle, during, end) in [(AfterIdle::Validate, 10_000, 9500), (AfterIdle::Keep, 32_000, 32_000)]
    {
        let config = with(after_idle).with(|it| {
            it.recovery.reduce_from = longhaul_tcp::ReduceFrom::Cwnd;
            it.recovery.limited_transmit = false;
        });
        let (mut script, acked) = idle(&config);
        script.at(100_000);
        script.write(20_000);
        script.at(100_050);
        assert_eq!(script.take_count(), 20);
        script.at(100_150);
        let first = acked as u32;
        for more in [0, 1000] {
            script.inject(ack(1, acked).sack(&[(first + 1000, first + 8000 + more)]));
        }
        script.inject(ack(1, acked).sack(&[(first + 1000, first + 20_000)]));
        assert_eq!(script.sent(), [acked]);
        assert_eq!(script.connection().cwnd(), during, "{after_idle:?}");
        script.at(100_250);
        script.inject(ack(1, acked + 20_000));
        assert!(!script.connection().recovering());
        assert_eq!(script.connection().cwnd(), end, "{after_idle:?}");
    }
}

/// RFC 7661 (4.4.1): what was delivered before a loss is forgotten after it: a sender that uses a fifth of its new window is
/// in the phase again after a round trip, however lately it used more, and what it has then is spaced out.
#[test]
fn a_loss_forgets_what_was_used() {
    let (mut script, mut acked) = idle(&with(AfterIdle::Validate));
    let round = |script: &mut Script, at: u64, segments: i64, acked: &mut i64| {
        script.at(at);
        script.write(1000 * segments as usize);
        script.at(at + 100);
        script.take_count();
        *acked += 1000 * segments;
        script.inject(ack(1, *acked));
    };
    round(&mut script, 100_000, 20, &mut acked);
    script.at(100_110);
    script.write(20_000);
    script.at(100_250);
    let first = acked as u32;
    for end in [2000, 8000, 20_000] {
        script.inject(ack(1, acked).sack(&[(first + 1000, first + end)]));
    }
    script.at(100_350);
    acked += 20_000;
    script.inject(ack(1, acked));
    assert!(!script.connection().recovering());
    script.take_count();
    for at in [100_360, 100_470, 100_580] {
        round(&mut script, at, 2, &mut acked);
    }
    let cwnd = script.connection().cwnd();
    assert!((8000..13_000).contains(&cwnd), "{cwnd}");
    script.at(100_690);
    script.write(8000);
    let burst = script.take_count();
    assert!(burst <= 4, "{burst} segments at once");
}

/// RFC 7661 (4.3): a sender that fills its window is never in the phase: its windows are those of RFC 5681.
#[test]
fn a_bulk_sender_is_always_validated() {
    let windows = |after_idle| {
        let mut script = Script::with_window(&with(after_idle), 4);
        script.write(400_000);
        let (mut acked, mut windows) = (1, Vec::new());
        for round in 1..6 {
            script.at(100 + 100 * round);
            let out = script.take_count() as i64;
            for segment in 0..out {
                acked += 1000;
                script.inject(ack(1, acked));
                windows.push((segment, script.connection().cwnd()));
            }
        }
        windows
    };
    assert_eq!(windows(AfterIdle::Validate), windows(AfterIdle::Restart));
}

/// Linux (`tcp_cwnd_application_limited`, `tcp_is_cwnd_limited`): in slow start a window of which more than half is used is in use; in
/// congestion avoidance one that is not full decays.
#[test]
fn a_window_of_which_most_is_used_decays_after_slow_start_alone() {
    for (ssthresh, decays) in [(None, false), (Some(base::units::Size(64_000)), true)] {
        let config = with(AfterIdle::Decay).with(|it| it.window.initial_ssthresh = ssthresh);
        let mut script = Script::with_window(&config, 4);
        let (mut acked, mut least) = (1, u64::MAX);
        for round in 0..16 {
            // An acknowledgement a segment doubles the window up to 64, a single one hardly opens it.
            let (segments, acks) = if round < 4 { (4 << round, 4 << round) } else { (40, 1) };
            script.write(1000 * segments);
            let window = script.connection().cwnd();
            least = if round < 4 { window } else { least.min(window) };
            script.at(200 + 100 * round);
            for _ in 0..acks {
                acked += (1000 * segments / acks) as i64;
                script.inject(ack(1, acked));
            }
            assert!(round != 3 || script.connection().cwnd() == 64_000);
            least = if round == 3 { 64_000 } else { least };
        }
        assert_eq!(least < 64_000, decays, "{least}");
    }
}

/// RFC 7661 (4.2, 4.3): a sender that uses more than half of its window is validated by that, a second long: it sends as it likes.
#[test]
fn who_uses_the_window_is_not_spaced_out() {
    let config =
        with(AfterIdle::Validate).with(|it| it.window.initial_ssthresh = Some(base::units::Size(64_000)));
    let (mut script, mut acked) = idle(&config);
    for round in 0..10 {
        // Now and then a small round.
        let segments = if round % 3 == 2 { 4 } else { 48 };
        script.at(510 + 100 * round);
        script.write(1000 * segments);
        assert_eq!(script.take_count(), segments, "round {round} is paced");
        script.at(600 + 100 * round);
        acked += 1000 * segments as i64;
        script.inject(ack(1, acked));
    }
}
