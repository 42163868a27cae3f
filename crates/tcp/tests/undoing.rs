//! Segment scripts: fast recovery that was not needed (RFC 3522, RFC 3708, RFC 4015, RFC 9438, Linux).

use crate::pair::{Pair, Path};
use crate::script::*;
use base::Duration;
use base::wire::tcp::Flags;
use longhaul_tcp::config::{FastConfig, HyblaConfig, VegasConfig};
use longhaul_tcp::{Congestion, CubicConfig, EcnUse, InitialWindow, Recovery, SpuriousResponse, TcpConfig};

fn undoing(response: SpuriousResponse) -> TcpConfig {
    plain().with(|it| {
        it.recovery.undo = true;
        it.recovery.spurious_response = response;
        it.recovery.limited_transmit = false;
    })
}

/// Ten segments of 988 bytes are out since 100 ms, with timestamps; at 200 ms the first is sent again, for three beyond it
/// have arrived. With what is added to the clock.
fn recovering(config: &TcpConfig) -> (Script, u32) {
    let config = config.clone().with(|it| {
        it.timestamps = true;
        it.window.initial = InitialWindow::Segments(10);
    });
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.expect("a timestamp").value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(9000, offset).and(Flags::ECE));
    script.take();
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    script.at(200);
    for end in [1977, 2965, 3953] {
        script.inject(ack(1, 1).sack(&[(989, end)]).ts(9100, offset + 100));
    }
    assert_eq!(script.sent(), [1]);
    assert!(script.connection().recovering());
    (script, offset)
}

/// How often fast recovery was found not to have been needed.
fn undone(script: &Script) -> u16 {
    script.connection().sender_statistics().spurious_recoveries
}

/// RFC 3522 (3.2, step 4): the acknowledgement echoes a timestamp from before the retransmission: the first copy was late.
/// The window is back (Linux, `tcp_undo_cwnd_reduction`).
#[test]
fn timestamps_undo_a_spurious_recovery() {
    let (mut script, offset) = recovering(&undoing(SpuriousResponse::Restore));
    assert_eq!(script.connection().cwnd(), 4940);
    script.at(210);
    script.inject(ack(1, 3953).ts(9110, offset + 100));
    // While a copy is under way nobody knows what it repairs; here it was the only one, and is acknowledged.
    assert_eq!(undone(&script), 1);
    assert!(!script.connection().recovering());
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (9880, None));
    assert_eq!(script.connection().in_flight(), script.connection().flight_size());
}

/// RFC 3522 (3.2, step 4): the echo is the retransmission's own timestamp: it was needed.
#[test]
fn timestamps_tell_a_needed_recovery() {
    let (mut script, offset) = recovering(&undoing(SpuriousResponse::Restore));
    script.at(300);
    script.inject(ack(1, 3953).ts(9200, offset + 200));
    assert_eq!((undone(&script), script.connection().cwnd()), (0, 4940));
    // The first acknowledgement decides: an old echo later is another segment's.
    script.inject(ack(1, 9881).ts(9200, offset + 100));
    assert_eq!((undone(&script), script.connection().ssthresh()), (0, Some(4940)));
}

/// RFC 3708 (2): once the receiver reports that all that was sent again came twice, nothing had been lost.
#[test]
fn reports_undo_a_spurious_recovery() {
    for (reports, count) in
        [(&[(1, 1001)][..], 0), (&[(1, 1001), (4001, 5001)], 1), (&[(1, 1001), (1, 1001)], 0)]
    {
        let mut script = Script::with_window(&undoing(SpuriousResponse::Restore), 10);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.at(200);
        // Segments 1 and 5 are late.
        script.inject(ack(1, 1).sack(&[(1001, 4001), (5001, 8001)]));
        script.inject(ack(1, 1).sack(&[(1001, 4001), (5001, 9001)]));
        script.inject(ack(1, 1).sack(&[(1001, 4001), (5001, 10_001)]));
        assert_eq!(script.sent(), [1, 4001]);
        script.at(210);
        script.inject(ack(1, 10_001));
        assert!(!script.connection().recovering());
        script.at(300);
        for &report in reports {
            script.inject(ack(1, 10_001).sack(&[report]));
        }
        let expected = if count == 1 { 10_000 } else { 5000 };
        assert_eq!((undone(&script), script.connection().cwnd()), (count, expected), "{reports:?}");
    }
}

/// RFC 8985 (7.4.2): a tail loss probe repairs a loss, which lowers the window. A report that comes late, that the recovery
/// before it was not needed, does not take that back.
#[test]
fn a_late_report_does_not_undo_a_repaired_loss() {
    let config = undoing(SpuriousResponse::Restore).with(|it| it.recovery.scheme = Recovery::Rack);
    let mut script = Script::with_window(&config, 10);
    script.write(10_000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    assert_eq!(script.sent(), [1]);
    script.at(210);
    script.inject(ack(1, 10_001));
    assert_eq!((script.connection().recovering(), script.connection().cwnd()), (false, 5000));
    script.write(4000);
    assert_eq!(script.take_count(), 4);
    while script.connection().sender_statistics().tail_probes == 0 {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    assert_eq!(script.sent(), [13_001]);
    let now = script.now.as_nanos() / 1_000_000;
    script.at(now + 100);
    script.inject(ack(1, 14_001));
    script.write(1000);
    script.take_count();
    script.at(now + 200);
    script.inject(ack(1, 15_001));
    let lowered = script.connection().cwnd();
    assert!(script.connection().sender_statistics().recoveries == 2 && lowered < 5000, "{lowered}");
    script.inject(ack(1, 15_001).sack(&[(1, 1001)]));
    assert_eq!((undone(&script), script.connection().cwnd()), (0, lowered));
}

/// Linux (`tcp_try_undo_dsack`): so it is after a time-out, of which neither timestamps nor F-RTO told.
#[test]
fn reports_undo_a_spurious_timeout() {
    let mut script = Script::flying(&undoing(SpuriousResponse::Restore), 2);
    script.expect_at(400, data(1, 1000));
    script.at(410);
    script.inject(ack(1, 2001));
    assert!(script.connection().cwnd() <= 2000);
    script.at(500);
    script.inject(ack(1, 2001).sack(&[(1, 1001)]));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().ssthresh(), None);
}

/// RFC 3708 (2): with the method off, or a peer without selective acknowledgements, a report says nothing of a time-out.
#[test]
fn reports_undo_no_timeout_where_they_are_not_wanted() {
    for (undo, sack) in [(false, true), (true, false)] {
        let config = undoing(SpuriousResponse::Restore).with(|it| {
            it.recovery.undo = undo;
            it.window.initial = InitialWindow::Segments(2);
        });
        let mut script = Script::connected(&config, 100, Seg { sack_permitted: sack, ..syn_ack() });
        script.write(2000);
        assert_eq!(script.take_count(), 2);
        script.expect_at(400, data(1, 1000));
        script.at(410);
        script.inject(ack(1, 2001));
        script.at(500);
        script.inject(ack(1, 2001).sack(&[(1, 1001)]));
        assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0, "undo {undo}, SACK {sack}");
    }
}

/// Linux (`tcp_try_undo_partial`): while copies of other segments are under way, those may have been lost.
#[test]
fn one_late_segment_does_not_speak_for_another() {
    let (mut script, offset) = recovering(&undoing(SpuriousResponse::Restore));
    // A second gap: 3953 is missing as well.
    script.inject(ack(1, 1).sack(&[(4941, 9881), (989, 3953)]).ts(9100, offset + 100));
    assert_eq!(script.sent()[0], 3953);
    script.at(210);
    script.inject(ack(1, 3953).sack(&[(4941, 9881)]).ts(9110, offset + 100));
    assert_eq!(undone(&script), 0);
    // The copy was what filled the gap.
    script.at(300);
    script.inject(ack(1, 9881).ts(9200, offset + 200));
    assert_eq!((undone(&script), script.connection().ssthresh()), (0, Some(4940)));
}

/// RFC 4015 (3.1, step 9): window and threshold by what was outstanding; none if the acknowledgement echoes a mark.
#[test]
fn a_mark_leaves_the_window_as_it_is() {
    for (ecn, expected) in [(EcnUse::Off, (9880, None)), (EcnUse::On, (4940, Some(4940)))] {
        let config = undoing(SpuriousResponse::Eifel).with(|it| it.ecn = ecn);
        let (mut script, offset) = recovering(&config);
        script.at(210);
        script.inject(ack(1, 3953).ts(9110, offset + 100).and(Flags::ECE));
        assert_eq!(undone(&script), 1);
        assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), expected, "{ecn:?}");
    }
}

/// RFC 9438 (4.9.2) and Linux (`undo_cwnd`): every controller is given its window back; BBR has no threshold. Without the
/// setting none is.
#[test]
fn every_controller_gets_its_window_back() {
    for congestion in [
        Congestion::Reno,
        Congestion::Cubic(CubicConfig::default()),
        Congestion::Bbr,
        Congestion::Vegas(VegasConfig::default()),
        Congestion::WestwoodEre,
        Congestion::WestwoodPlus,
        Congestion::Fast(FastConfig::default()),
        Congestion::Hybla(HyblaConfig::default()),
    ] {
        for undo in [true, false] {
            let config = undoing(SpuriousResponse::Restore).with(|it| {
                it.congestion = congestion.clone();
                it.recovery.undo = undo;
                it.pacing = false;
            });
            let config = config.with(|it| it.timestamps = true);
            let (mut script, offset) = paced_recovering(&config);
            let before = script.connection().cwnd();
            script.at(240);
            script.inject(ack(1, 3953).ts(9110, offset + 100));
            assert_eq!(undone(&script), u16::from(undo), "{congestion:?}");
            let after = script.connection().cwnd();
            let bbr = congestion == Congestion::Bbr;
            assert!(
                if undo { after >= 9880 } else { bbr || after <= before + 988 },
                "{congestion:?}: {before} {after}"
            );
        }
    }
}

/// As [`recovering`], for those that space segments out: all have left by 230 ms.
fn paced_recovering(config: &TcpConfig) -> (Script, u32) {
    let config = config.clone().with(|it| it.window.initial = InitialWindow::Segments(10));
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.expect("a timestamp").value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(9000, offset));
    script.take();
    script.write(9880);
    script.at(200);
    for end in [1977, 2965, 3953] {
        script.inject(ack(1, 1).sack(&[(989, end)]).ts(9100, offset + 100));
    }
    script.at(230);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
    (script, offset)
}

/// Goal: where packets overtake each other by up to 10 ms of 100, nothing is lost, and a transfer whose recoveries are taken
/// back gets on: ten times as far with NewReno and three times with SACK by timestamps (RFC 3522). Reports alone (RFC 3708)
/// come a round trip later and gain little.
#[test]
fn reordering_costs_less() {
    let transfer = |scheme, undo, timestamps| {
        let config = TcpConfig::default().with(|it| {
            it.recovery.scheme = scheme;
            it.recovery.undo = undo;
            it.recovery.spurious_response = SpuriousResponse::Restore;
            it.timestamps = timestamps;
        });
        let path = Path { jitter: Duration::from_millis(10), ..Path::clean(50) };
        let mut pair = Pair::new(1, path, &config);
        pair.connect(&config);
        pair.ends[1].to_send = u64::MAX;
        pair.drain();
        pair.run_until(Duration::from_secs(20), |_| false);
        let statistics = pair.connection(1).sender_statistics();
        assert_eq!(
            undo,
            4 * u32::from(statistics.spurious_recoveries) > 3 * statistics.recoveries,
            "{statistics:?}"
        );
        pair.ends[0].received as f64
    };
    for (scheme, timestamps, gain) in
        [(Recovery::NewReno, true, 10.0), (Recovery::Sack, true, 3.0), (Recovery::Sack, false, 1.0)]
    {
        let got = transfer(scheme, true, timestamps) / transfer(scheme, false, timestamps);
        assert!(got > gain, "{scheme:?}: {got}");
    }
}

/// Goal: where segments are lost and none is late, nothing is taken back, whatever the evidence (RFC 3522, RFC 3708); but
/// what a time-out sends again without need can make another recovery that is spurious.
#[test]
fn losses_are_not_undone() {
    for scheme in [Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        for timestamps in [true, false] {
            let config = TcpConfig::preset("linux").expect("a preset").with(|it| {
                it.recovery.scheme = scheme;
                it.timestamps = timestamps;
            });
            let path = Path { loss: 0.02, ..Path::clean(50).through(5000, 60) };
            let mut pair = Pair::new(1, path, &config);
            pair.connect(&config);
            pair.ends[1].to_send = u64::MAX;
            pair.drain();
            pair.run_until(Duration::from_secs(120), |_| false);
            let statistics = pair.connection(1).sender_statistics();
            assert!(statistics.recoveries > 50, "{scheme:?}");
            assert!(
                100 * u32::from(statistics.spurious_recoveries) <= statistics.recoveries,
                "{scheme:?} {statistics:?}"
            );
        }
    }
}
