//! Segment scripts: where the window starts, and where it starts again.

use crate::script::*;
use base::units::Size;
use longhaul_tcp::{InitialWindow, TcpConfig};

fn starting(initial_window: InitialWindow) -> TcpConfig {
    plain().with(|it| it.window.initial = initial_window)
}

fn preset(name: &str) -> TcpConfig {
    let preset = TcpConfig::preset(name).expect("a preset");
    TcpConfig { initial_sequence: Some(ISS), ..preset }
}

/// Segments that leave at once of `len` bytes.
fn first_flight(script: &mut Script, len: usize) -> usize {
    script.write(len);
    script.take_count()
}

/// RFC 5681 (3.1), RFC 6928 (2): as many segments as configured.
#[test]
fn the_first_flight_has_the_configured_segments() {
    for segments in [1, 2, 3, 4, 10] {
        let mut script = Script::established(&starting(InitialWindow::Segments(segments)));
        assert_eq!(first_flight(&mut script, 20_000), segments as usize);
        assert_eq!(script.connection().cwnd(), u64::from(segments) * 1000);
    }
}

/// RFC 3390 (1): four small segments, three of an Ethernet's, two large ones.
#[test]
fn the_first_flight_of_rfc_3390_depends_on_the_segment() {
    for (mss, segments) in [(536, 4), (1000, 4), (1095, 4), (1460, 3), (2190, 2), (4000, 2)] {
        let config = TcpConfig { mss: Some(mss), ..starting(InitialWindow::Rfc3390) };
        let mut script = Script::connected(&config, 100, syn_ack().mss(mss));
        assert_eq!(first_flight(&mut script, 20_000), segments, "{mss}");
    }
}

/// RFC 3390 (1): the peer's segment counts where it is smaller.
#[test]
fn the_first_flight_of_rfc_3390_goes_by_the_peers_segment() {
    let config = TcpConfig { mss: Some(1460), ..starting(InitialWindow::Rfc3390) };
    let mut script = Script::connected(&config, 100, syn_ack().mss(536));
    assert_eq!(first_flight(&mut script, 20_000), 4);
    assert_eq!(script.connection().cwnd(), 4 * 536);
}

/// RFC 5681 (3.1): one segment after a lost SYN, whatever the initial window is.
#[test]
fn a_lost_syn_leaves_one_segment() {
    for window in [InitialWindow::Segments(10), InitialWindow::Rfc3390] {
        let mut script = Script::connecting(&starting(window));
        script.take();
        script.at(1000);
        script.take();
        script.inject(syn_ack());
        script.expect(ack(1, 1));
        assert_eq!(first_flight(&mut script, 20_000), 1);
    }
}

/// RFC 5681 (3.1): at the initial threshold the window already grows by a segment a round trip.
#[test]
fn an_initial_threshold_ends_slow_start() {
    let config =
        starting(InitialWindow::Segments(4)).with(|it| it.window.initial_ssthresh = Some(Size(4000)));
    let mut script = Script::established(&config);
    assert_eq!(script.connection().ssthresh(), Some(4000));
    script.write(20_000);
    script.at(200);
    for acked in [1001, 2001, 3001] {
        script.inject(ack(1, acked));
        assert_eq!(script.connection().cwnd(), 4000);
    }
    script.inject(ack(1, 4001));
    assert_eq!(script.connection().cwnd(), 5000);
}

/// A connection at 400 ms with nothing out, whose window went from 2000 to 4000 bytes; the time-out is 300 ms.
fn idle(config: &TcpConfig) -> Script {
    let mut script = Script::established(config);
    script.write(6000);
    for (at, acked) in [(200, 2001), (300, 5001), (400, 6001)] {
        script.at(at);
        script.inject(ack(1, acked));
    }
    assert_eq!((script.take_count(), script.connection().cwnd()), (6, 4000));
    script
}

/// RFC 5681 (4.1): the time since the last data was sent has to exceed the time-out.
#[test]
fn a_pause_of_a_timeout_is_not_idle() {
    let config = starting(InitialWindow::Segments(2));
    // The last data left at 300 ms.
    for (at, flight) in [(600, 4), (601, 2)] {
        let mut script = idle(&config);
        script.at(at);
        assert_eq!(first_flight(&mut script, 20_000), flight, "{at}");
    }
}

/// RFC 5681 (4.1): the restart window is the initial one, but no more than cwnd.
#[test]
fn a_restart_does_not_open_the_window() {
    let mut script = Script::established(&starting(InitialWindow::Segments(4)));
    script.write(4000);
    script.take_count();
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 4001));
    let cwnd = script.connection().cwnd();
    assert!(cwnd < 4000, "{cwnd}");
    script.at(5000);
    assert_eq!(first_flight(&mut script, 20_000) as u64, cwnd / 1000);
}

/// RFC 5681 (4.1): the threshold stays, and slow start leads back to it.
#[test]
fn a_restart_leaves_the_threshold() {
    let config =
        starting(InitialWindow::Segments(2)).with(|it| it.window.initial_ssthresh = Some(Size(3000)));
    let mut script = Script::established(&config);
    script.write(2000);
    script.at(200);
    script.inject(ack(1, 2001));
    script.at(2000);
    script.take_count();
    assert_eq!(first_flight(&mut script, 20_000), 2);
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (2000, Some(3000)));
}

/// Kojo et al. 2005 (4): what Reference and Enhanced offer and how they start.
#[test]
fn the_papers_presets_open_as_it_says() {
    for (name, segments, enhanced) in [("reference", 1, false), ("enhanced", 4, true)] {
        let mut script = Script::connecting(&preset(name));
        let options = script.take().options;
        assert_eq!((options.mss, options.timestamps), (Some(1410), None));
        assert_eq!((options.sack_permitted, options.window_scale.is_some()), (enhanced, enhanced));
        // RFC 1122 (4.2.3.1), and Linux 2.4: 3 s.
        script.expect_at(3000, Seg { flags: SYN, ..Seg::default() });
        let mut script = Script::connected(&preset(name), 100, syn_ack().mss(1410).sack_permitted().scale(0));
        assert_eq!(first_flight(&mut script, 20_000), segments);
    }
}

/// Linux: ten segments, all options, and ECN only if asked (`tcp_ecn` = 2).
#[test]
fn the_linux_preset_opens_as_the_kernel() {
    let mut script = Script::connecting(&preset("linux"));
    let sent = script.take();
    assert_eq!(sent.flags, SYN);
    let options = sent.options;
    assert!(options.sack_permitted && options.window_scale.is_some());
    let stamp = options.timestamps.expect("timestamps").value;
    script.at(100);
    script.inject(syn_ack().mss(1460).sack_permitted().scale(7).ts(1, stamp));
    script.take_count();
    assert_eq!(first_flight(&mut script, 40_000), 10);
}

/// RFC 3390 (1) with timestamps (RFC 6691): three segments of 1448 bytes.
#[test]
fn the_rfc_preset_starts_with_three_segments() {
    let mut script = Script::connecting(&preset("rfc"));
    let sent = script.take();
    assert_eq!(sent.flags, SYN | base::wire::tcp::Flags::ECE | base::wire::tcp::Flags::CWR);
    script.at(100);
    let stamp = sent.options.timestamps.expect("timestamps").value;
    script.inject(syn_ack().mss(1460).ts(1, stamp));
    script.take_count();
    assert_eq!(first_flight(&mut script, 3 * 1448), 3);
    assert_eq!(script.connection().cwnd(), 4380);
}
