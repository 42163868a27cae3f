//! Bursts as Linux hands them to a device that cuts them up, segment by segment.

use crate::script::{ISS, Script, ack, plain, syn_ack};
use base::wire::tcp::{Flags, View};
use longhaul_tcp::{InitialWindow, TcpConfig};

fn offloading(segments: u32) -> TcpConfig {
    plain().with(|it| {
        it.offload = true;
        it.window.initial = InitialWindow::Segments(segments);
    })
}

/// A connection over a path of `rtt` milliseconds that has written more than it may send.
fn sending(config: &TcpConfig, rtt: u64) -> Script {
    let mut script = Script::connected(config, rtt, syn_ack().sack_permitted().window(65_000));
    script.write(100_000);
    script
}

/// Segments of each burst that ended with PSH, and how many came behind the last one.
fn bursts(script: &mut Script) -> (Vec<usize>, usize) {
    let (mut ended, mut open) = (Vec::new(), 0);
    for _ in 0..script.waiting() {
        open += 1;
        if script.take().flags.has(Flags::PSH) {
            ended.push(open);
            open = 0;
        }
    }
    (ended, open)
}

/// Linux, `tcp_tso_autosize` and `tcp_cwnd_test`: a millisecond's worth at twice the window a round trip and more on a short path,
/// half of the window at most, and never less than two.
#[test]
fn a_burst_is_a_millisecond_or_two_segments() {
    for (rtt, window, ended, open) in [
        (100, 10, vec![2; 5], 0),
        (100, 7, vec![2; 3], 1),
        (100, 3, vec![], 3),
        // 3255 bytes by the rate and 31 for the path, and the odd one goes.
        (6, 10, vec![3; 3], 1),
        // 3906 and 127.
        (5, 10, vec![4, 4, 2], 0),
        // 8984 and 127: without the latter they were eight.
        (5, 23, vec![9, 9, 5], 0),
        (1, 10, vec![5, 5], 0),
    ] {
        let mut script = sending(&offloading(window), rtt);
        assert_eq!(bursts(&mut script), (ended, open), "{rtt} ms, {window} segments");
    }
}

/// Linux, `__tcp_retransmit_skb`: what is sent again is no part of a burst, and one that it interrupts is over.
#[test]
fn what_is_sent_again_ends_a_burst() {
    let mut script = sending(&offloading(10), 100);
    script.take_count();
    script.at(200);
    let progress = script.packet(&ack(1, 2001));
    script.host.handle_packet(script.now, &progress).unwrap();
    script.host.poll_transmit(script.now).expect("the first of two");
    script.inject(ack(1, 2001).sack(&[(3001, 10_001)]));
    assert_eq!(script.take().seq.distance(ISS), 2001);
    assert_eq!(bursts(&mut script), (vec![2], 0));
}

/// RFC 9293 (3.9.1.2): PSH says that nothing more is there, and here there is.
#[test]
fn without_it_nothing_but_the_end_is_pushed() {
    let mut script = sending(&offloading(10).with(|it| it.offload = false), 100);
    assert_eq!(bursts(&mut script), (vec![], 10));
}

/// Linux, `GSO_LEGACY_MAX_SIZE`: 64 KiB.
#[test]
fn a_burst_is_no_longer_than_a_packet() {
    let config = offloading(400);
    let mut script = Script::connected(&config, 2, syn_ack().mss(500).window(65_500));
    script.write(100_000);
    assert_eq!(bursts(&mut script), (vec![130], 1));
}

/// As with a Linux device that takes one segment at a time: paced segments leave one by one.
#[test]
fn what_is_paced_is_no_burst() {
    let mut script = sending(&offloading(10).with(|it| it.pacing = true), 100);
    let (ended, open) = bursts(&mut script);
    assert!(ended.is_empty() && open > 0, "{ended:?} {open}");
}

/// Linux: what a device cuts says PSH on its last segment; one segment by itself may begin a burst of others.
#[test]
fn a_train_of_several_is_a_burst_of_its_own() {
    let mut script = Script::connected(&offloading(10), 100, syn_ack().sack_permitted());
    let id = script.id.unwrap();
    script.host.write(script.now, id, &[0; 9000]).unwrap();
    let pushed = |script: &mut Script, most| {
        let (packet, _) = script.host.poll_transmit_train(script.now, most).expect("a segment");
        View::parse(&packet[20..]).unwrap().flags().has(Flags::PSH)
    };
    let sent = [0, 3000, 0, 0, 2000].map(|most| pushed(&mut script, most));
    assert_eq!(sent, [false, true, false, true, true]);
}

/// Linux, `tcp_tso_should_defer`: an odd segment waits behind one that has just gone where an acknowledgement is due ...
#[test]
fn an_odd_segment_waits_for_the_next_acknowledgement() {
    let mut script = sending(&offloading(10), 100);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 1001).window(10_000));
    assert_eq!(bursts(&mut script), (vec![], 1), "the last one left long ago");
    script.inject(ack(1, 2001).window(10_000));
    assert_eq!(bursts(&mut script), (vec![], 0));
    script.inject(ack(1, 4001).window(10_000));
    assert_eq!(bursts(&mut script), (vec![2], 0), "room for three");
    script.inject(ack(1, 5001).window(10_000));
    assert_eq!(bursts(&mut script), (vec![2], 0));
}

/// Linux: ... in a millisecond at most ...
#[test]
fn an_odd_segment_does_not_wait_for_a_later_acknowledgement() {
    for (at, sent) in [(198, 1), (199, 0)] {
        let mut script = sending(&offloading(10), 100);
        script.take_count();
        script.at(at);
        script.inject(ack(1, 1001).window(10_000));
        assert_eq!(script.take_count(), 1);
        script.inject(ack(1, 2001).window(10_000));
        assert_eq!(script.take_count(), sent, "at {at} ms");
    }
}

/// Linux: ... or half of the smoothed round-trip time ...
#[test]
fn on_a_short_path_soon_is_half_a_round_trip() {
    let mut script = sending(&offloading(10), 1);
    script.take_count();
    script.at(2);
    script.inject(ack(1, 10_001).window(10_000));
    assert_eq!(script.take_count(), 10);
    script.inject(ack(1, 11_001).window(10_000));
    assert_eq!(script.take_count(), 1, "the next acknowledgement comes in 875 us");
}

/// Linux, `tcp_tso_win_divisor`: ... unless it takes a third of the window ...
#[test]
fn a_third_of_the_window_does_not_wait() {
    let mut script = sending(&offloading(10), 100);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 5001).window(6000));
    assert_eq!(script.take_count(), 1);
    script.inject(ack(1, 6001).window(6000));
    assert_eq!(script.take_count(), 0);
    script.inject(ack(1, 9001).window(3000));
    assert_eq!(script.take_count(), 1);
}

/// Linux: ... or nothing will ever come behind it.
#[test]
fn the_end_does_not_wait() {
    for (total, window, finishes, sent) in [
        (12_000, 10_000, false, 1),
        (12_500, 10_000, false, 0),
        (12_500, 10_500, false, 0),
        (12_500, 10_000, true, 0),
        (12_500, 10_500, true, 2),
    ] {
        let mut script = Script::connected(&offloading(10), 100, syn_ack().sack_permitted());
        script.write(total);
        if finishes {
            script.finish();
        }
        script.take_count();
        script.at(200);
        script.inject(ack(1, 1001).window(10_000));
        assert_eq!(script.take_count(), 1);
        script.inject(ack(1, 2001).window(window));
        assert_eq!(script.take_count(), sent, "{total} bytes, window {window}, finished {finishes}");
    }
}
