//! Segment scripts: how long acknowledgements wait.

use crate::script::*;
use base::Duration;
use base::units::Size;
use base::wire::tcp::Flags;
use longhaul_tcp::{DelayedAcks, Event, TcpConfig};

const MODES: [DelayedAcks; 4] =
    [DelayedAcks::Off, DelayedAcks::On, DelayedAcks::AfterSlowStart, DelayedAcks::QuickAcks];

fn with(delayed_acks: DelayedAcks) -> TcpConfig {
    plain().with(|it| it.acknowledgements.delay = delayed_acks)
}

/// Gives the host `count` segments of 1000 bytes, the first at `from`, and reads them; how many it acknowledged at once.
fn acked_at_once(script: &mut Script, from: i64, count: i64) -> usize {
    for at in 0..count {
        script.inject(data(from + 1000 * at, 1000));
    }
    let acked = script.take_count();
    script.read(1_000_000);
    // The window may have to be told.
    script.take_count();
    acked
}

/// RFC 1122 (4.2.3.2): the wait is what was configured, half a second at most.
#[test]
fn a_single_segment_waits_as_long_as_configured() {
    let config = with(DelayedAcks::On).with(|it| it.acknowledgements.timeout = Duration::from_millis(500));
    let mut script = Script::established(&config);
    script.inject(data(1, 1000));
    script.expect_at(600, ack(1, 1001));
}

/// RFC 1122 (4.2.3.2): the wait counts from the first segment that waits.
#[test]
fn the_wait_counts_from_the_oldest_segment() {
    let mut script = Script::established(&with(DelayedAcks::On));
    script.inject(data(1, 1000));
    script.at(130);
    script.inject(data(1001, 1000));
    script.expect(ack(1, 2001));
    // The timer of the first does not cut the wait of the third short.
    script.inject(data(2001, 1000));
    script.expect_at(170, ack(1, 3001));
}

/// RFC 5681 (4.2): a super-segment is more than one.
#[test]
fn two_segments_in_one_are_acknowledged_at_once() {
    let mut script = Script::established(&with(DelayedAcks::On));
    script.inject(data(1, 1999));
    script.expect_nothing();
    script.inject(data(2000, 1));
    script.expect(ack(1, 2001));
    script.inject(data(2001, 2000));
    script.expect(ack(1, 4001));
}

/// RFC 5681 (4.2): neither a segment beyond a gap nor the one that fills it waits, in any mode.
#[test]
fn gaps_never_wait() {
    for mode in MODES {
        let mut script = Script::established(&with(mode));
        acked_at_once(&mut script, 1, 40);
        script.inject(data(41_001, 1000));
        script.expect(ack(1, 40_001).sack(&[(41_001, 42_001)]));
        script.inject(data(40_001, 1000));
        script.expect(ack(1, 42_001));
    }
}

/// RFC 9293 (3.10.7.4, first and eighth): neither does a duplicate, nor a FIN.
#[test]
fn duplicates_and_fins_never_wait() {
    for mode in MODES {
        let mut script = Script::established(&with(mode));
        acked_at_once(&mut script, 1, 40);
        script.inject(data(39_001, 1000));
        script.expect(ack(1, 40_001));
        script.inject(Seg { len: 10, ..fin(40_001) });
        script.expect(ack(1, 40_012));
        script.expect_event(Event::PeerFinished);
    }
}

/// RFC 2760 (3.2.3); Kojo et al. 2005 (4): every segment until half of the window was received, then every second.
#[test]
fn delay_begins_at_half_of_the_window() {
    let config = with(DelayedAcks::AfterSlowStart).with(|it| it.window.receive_buffer = Size(4000));
    let mut script = Script::established(&config);
    script.inject(data(1, 1000));
    script.expect(ack(1, 1001));
    script.inject(data(1001, 1000));
    script.expect(ack(1, 2001));
    script.inject(data(2001, 1000));
    script.expect_at(140, ack(1, 3001));
}

/// Kojo et al. 2005 (4): the window is the advertised one, so 65,535 bytes where it is not scaled.
#[test]
fn an_unscaled_window_bounds_the_undelayed_start() {
    let config = with(DelayedAcks::AfterSlowStart).with(|it| it.window.receive_buffer = Size(262_144));
    let mut script = Script::established(&config);
    // 32,767 bytes: the 33rd segment begins below.
    assert_eq!(acked_at_once(&mut script, 1, 33), 33);
    assert_eq!(acked_at_once(&mut script, 33_001, 20), 10);
}

/// Kojo et al. 2005 (4): and with 256 KiB, as its Enhanced TCP had, 131,072 bytes.
#[test]
fn a_scaled_window_prolongs_the_undelayed_start() {
    let config = with(DelayedAcks::AfterSlowStart).with(|it| it.window.receive_buffer = Size(262_144));
    let mut script = Script::connected(&config, 100, syn_ack().sack_permitted().scale(0));
    assert_eq!(acked_at_once(&mut script, 1, 132), 132);
    assert_eq!(acked_at_once(&mut script, 132_001, 20), 10);
}

/// Kojo et al. 2005 (4): it is the beginning of the connection, and no later pause or loss brings it back.
#[test]
fn the_undelayed_start_does_not_come_again() {
    let config = with(DelayedAcks::AfterSlowStart).with(|it| it.window.receive_buffer = Size(8000));
    let mut script = Script::established(&config);
    assert_eq!(acked_at_once(&mut script, 1, 4), 4);
    script.at(5000);
    script.inject(data(3001, 1000));
    script.expect(ack(1, 4001));
    script.inject(data(4001, 1000));
    script.expect_at(5040, ack(1, 5001));
}

/// Linux, `tcp_incr_quickack`: sixteen segments at once, then every second.
#[test]
fn the_first_sixteen_segments_are_acknowledged_quickly() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    assert_eq!(acked_at_once(&mut script, 1, 16), 16);
    assert_eq!(acked_at_once(&mut script, 16_001, 10), 5);
}

/// Linux, `tcp_incr_quickack`: as many as half of the window has, but two at least.
#[test]
fn a_small_window_has_fewer_quick_acknowledgements() {
    for (buffer, quick) in [(6000, 3), (1500, 2)] {
        let config = with(DelayedAcks::QuickAcks).with(|it| it.window.receive_buffer = Size(buffer));
        let mut script = Script::established(&config);
        for at in 0..quick {
            script.inject(data(1 + 100 * at, 100));
            script.expect(ack(1, 101 + 100 * at));
        }
        script.inject(data(1 + 100 * quick, 100));
        script.expect_at(140, ack(1, 101 + 100 * quick));
    }
}

/// Linux, `tcp_delack_timer_handler` and `tcp_event_data_recv`: the wait doubles when the timer expires, follows
/// the gaps between segments, and is no longer than the round-trip time.
#[test]
fn the_quick_wait_adapts_up_to_the_round_trip_time() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    acked_at_once(&mut script, 1, 16);
    script.at(110);
    script.inject(data(16_001, 1000));
    script.expect_at(150, ack(1, 17_001));
    // 80 ms, and a gap of 60 ms: 80 / 2 + 60 = 100 ms.
    script.at(170);
    script.inject(data(17_001, 1000));
    script.expect_at(270, ack(1, 18_001));
    // 200 ms, and a gap of 110 ms: 210 ms, but the round trip takes 100 ms.
    script.at(280);
    script.inject(data(18_001, 1000));
    script.expect_at(380, ack(1, 19_001));
}

/// Linux, `TCP_DELACK_MAX`: nor than 200 ms.
#[test]
fn the_quick_wait_ends_at_200_ms() {
    let mut script = Script::connected(&with(DelayedAcks::QuickAcks), 300, syn_ack());
    acked_at_once(&mut script, 1, 16);
    for (comes, acked) in [(310, 350), (370, 470), (540, 740)] {
        script.at(comes);
        let start = script.connection().statistics().bytes_received as i64 + 1;
        script.inject(data(start, 1000));
        script.expect_at(acked, ack(1, start + 1000));
    }
}

/// Linux, `tcp_event_data_recv`: segments in quick succession bring the wait back to 40 ms.
#[test]
fn the_quick_wait_falls_again_when_segments_come_fast() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    acked_at_once(&mut script, 1, 16);
    script.at(110);
    script.inject(data(16_001, 1000));
    script.expect_at(150, ack(1, 17_001));
    // 80 ms by the timer; a gap of 40 ms makes 80 / 2 + 40 ms; none makes half and 20 ms: 60, then 50 ms.
    script.inject(data(17_001, 1000));
    script.inject(data(18_001, 1000));
    script.expect(ack(1, 19_001));
    script.inject(data(19_001, 1000));
    script.expect_at(200, ack(1, 20_001));
}

/// Linux, `tcp_event_data_recv`: after a pause longer than the retransmission time-out the sender starts slowly, and
/// is acknowledged quickly.
#[test]
fn a_pause_brings_quick_acknowledgements_back() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    assert_eq!(acked_at_once(&mut script, 1, 20), 18);
    script.at(400);
    assert_eq!(acked_at_once(&mut script, 20_001, 4), 2, "300 ms are no pause");
    script.at(701);
    assert_eq!(acked_at_once(&mut script, 24_001, 20), 18);
}

/// Linux, `tcp_enter_quickack_mode`: so does a duplicate, for the sender has timed out.
#[test]
fn a_duplicate_brings_quick_acknowledgements_back() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    assert_eq!(acked_at_once(&mut script, 1, 20), 18);
    script.inject(data(19_001, 1000));
    script.expect(ack(1, 20_001));
    assert_eq!(acked_at_once(&mut script, 20_001, 19), 17, "one of the sixteen went to the duplicate");
}

/// Linux, `tcp_event_data_sent`: who answers soon after a request lets the next answer carry the acknowledgement ...
#[test]
fn an_answering_side_waits_for_its_answer() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    script.inject(data(1, 100));
    script.expect(ack(1, 101));
    script.at(110);
    script.write(50);
    script.expect(data(1, 50));
    script.at(200);
    script.inject(data(101, 100).ack(51));
    script.expect_nothing();
    script.at(205);
    script.write(50);
    script.expect(data(51, 50).ack(201));
    script.inject(ack(201, 101));
    script.at(1000);
    script.expect_nothing();
}

/// Linux: ... until an answer did not come in time (`tcp_delack_timer_handler`).
#[test]
fn an_answer_that_fails_to_come_ends_the_waiting() {
    let mut script = Script::established(&with(DelayedAcks::QuickAcks));
    script.inject(data(1, 100));
    script.expect(ack(1, 101));
    script.write(50);
    script.expect(data(1, 50));
    script.at(200);
    script.inject(data(101, 100).ack(51));
    script.expect_at(240, ack(51, 201));
    script.inject(data(201, 100).ack(51));
    script.expect(ack(51, 301));
}

/// A receiver that has used up its quick acknowledgements and read everything, at 100 ms.
fn attentive(pushed: bool) -> Script {
    let config = with(DelayedAcks::QuickAcks).with(|it| it.acknowledgements.pushed = pushed);
    let mut script = Script::established(&config);
    acked_at_once(&mut script, 1, 16);
    script
}

/// Linux, `__tcp_cleanup_rbuf`: what was pushed, or is short, is acknowledged as soon as all has been read ...
#[test]
fn what_was_pushed_is_acknowledged_once_read() {
    for (len, push, at_once) in
        [(1000, true, true), (1000, false, false), (700, false, true), (700, true, true)]
    {
        let mut script = attentive(true);
        let mut segment = data(16_001, len);
        segment.flags = if push { segment.flags | Flags::PSH } else { segment.flags };
        script.inject(segment);
        script.expect_nothing();
        script.read(len - 1);
        script.expect_nothing();
        script.read(1);
        if at_once {
            script.expect(ack(1, 16_001 + len as i64));
            // What comes next was not pushed.
            script.inject(data(16_001 + len as i64, 1000));
            script.read(1000);
        }
        script.expect_nothing();
    }
}

/// Linux: ... where it is told to.
#[test]
fn what_was_pushed_waits_by_default() {
    let mut script = attentive(false);
    let mut segment = data(16_001, 1000);
    segment.flags = segment.flags | Flags::PSH;
    script.inject(segment);
    script.read(1000);
    script.expect_nothing();
}
