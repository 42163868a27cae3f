//! Segment scripts: acknowledging, reassembly, the receive window, timestamps, and attacks.

use crate::script::*;
use base::units::Size;
use base::wire::Malformed;
use base::wire::tcp::Flags;
use longhaul_tcp::connection;
use longhaul_tcp::host::Discard;
use longhaul_tcp::{DelayedAcks, Event, Failure, State, TcpConfig};

/// RFC 5681 (4.2): every second segment is acknowledged at once, a single one after the timer.
#[test]
fn every_second_segment_is_acknowledged() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 1000));
    script.expect_nothing();
    script.at(110);
    script.inject(data(1001, 1000));
    script.expect(ack(1, 2001));
    script.at(120);
    script.inject(data(2001, 10));
    script.expect_at(160, ack(1, 2011));
    script.at(500);
    script.expect_nothing();
    script.expect_event(Event::Readable);
}

/// RFC 9293 (3.8.6.3): without delay, every segment is acknowledged.
#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut script = Script::established(&plain().with(|it| it.acknowledgements.delay = DelayedAcks::Off));
    script.inject(data(1, 10));
    script.expect(ack(1, 11));
    script.inject(data(11, 10));
    script.expect(ack(1, 21));
}

/// RFC 9293 (3.8.6.3): data carry a waiting acknowledgement.
#[test]
fn data_carry_the_delayed_acknowledgement() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 1000));
    script.write(20);
    script.expect(data(1, 20).ack(1001));
    script.inject(ack(1001, 21));
    script.at(1000);
    script.expect_nothing();
}

/// RFC 5681 (4.2): a segment beyond a gap, and one that fills it, are acknowledged at once; RFC 2018 (4): the
/// latest block comes first.
#[test]
fn gaps_are_reported_at_once() {
    let mut script = Script::established(&plain());
    script.inject(data(1001, 1000));
    script.expect(ack(1, 1).sack(&[(1001, 2001)]));
    script.inject(data(4001, 1000));
    script.expect(ack(1, 1).sack(&[(4001, 5001), (1001, 2001)]));
    script.inject(data(2001, 1000));
    script.expect(ack(1, 1).sack(&[(1001, 3001), (4001, 5001)]));
    script.inject(data(1, 1000));
    script.expect(ack(1, 3001).sack(&[(4001, 5001)]));
    script.inject(data(3001, 1000));
    script.expect(ack(1, 5001).sack(&[]));
    assert_eq!(script.read(9000), 5000);
}

/// RFC 2018 (3, 4): four blocks at most, three beside timestamps, the latest first.
#[test]
fn as_many_sack_blocks_as_fit() {
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let answer =
            if timestamps { syn_ack().sack_permitted().ts(10, 0) } else { syn_ack().sack_permitted() };
        let mut script = Script::connected(&TcpConfig { timestamps, ..plain() }, 10, answer);
        let mut blocks = Vec::new();
        for hole in 0..6 {
            let start = 101 + 200 * hole;
            let mut segment = data(start, 100);
            if timestamps {
                segment = segment.ts(11, 0);
            }
            script.inject(segment);
            blocks.insert(0, (start as u32, start as u32 + 100));
            blocks.truncate(most);
            script.expect(ack(1, 1).sack(&blocks));
        }
    }
}

/// Each segment beyond a gap gets its own acknowledgement, even where several arrive before the host may answer:
/// a sender without SACK counts them (RFC 5681, 3.2).
#[test]
fn duplicates_are_answered_one_by_one() {
    let mut script = Script::connected(&plain(), 10, syn_ack());
    for at in 1..4 {
        let packet = script.packet(&data(1000 * at + 1, 1000));
        script.host.handle_packet(script.now, &packet).unwrap();
    }
    script.write(50);
    for _ in 0..3 {
        script.expect(ack(1, 1).sack(&[]));
    }
    script.expect(data(1, 50).ack(1));
}

/// RFC 9293 (3.10.7.4, first): old data are acknowledged and delivered once; overlaps are cut.
#[test]
fn repeated_and_overlapping_data_are_delivered_once() {
    let mut script = Script::established(&plain().with(|it| it.acknowledgements.dsack = false));
    script.inject(data(1, 500));
    script.inject(data(1, 500));
    script.expect(ack(1, 501));
    script.inject(data(301, 500));
    script.inject(data(1301, 300));
    script.expect(ack(1, 801).sack(&[(1301, 1601)]));
    script.inject(data(701, 1000));
    script.expect(ack(1, 1701));
    assert_eq!(script.read(9000), 1700);
    assert_eq!(script.connection().statistics().bytes_received, 1700);
    assert_eq!(script.connection().statistics().duplicates_received, 1);
}

/// Urgent data are data (RFC 6093, 6).
#[test]
fn urgent_data_are_delivered_in_band() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 100).and(Flags::URG));
    assert_eq!(script.read(500), 100);
}

fn small_buffer() -> TcpConfig {
    plain().with(|it| {
        it.window.receive_buffer = Size(4000);
        it.acknowledgements.delay = DelayedAcks::Off;
    })
}

/// RFC 9293 (3.8.6.2.2): the window closes as the buffer fills, and opens by no less than a segment.
#[test]
fn the_window_opens_by_whole_segments() {
    let mut script = Script::established(&small_buffer());
    script.inject(data(1, 2000));
    script.expect(ack(1, 2001).window(2000));
    script.inject(data(2001, 2000));
    script.expect(ack(1, 4001).window(0));
    assert_eq!(script.read(999), 999);
    script.expect_nothing();
    assert_eq!(script.read(1), 1);
    script.expect(ack(1, 4001).window(1000));
    // While the window stays more than half of what it was, nothing is said.
    script.read(500);
    script.expect_nothing();
    script.read(500);
    script.expect(ack(1, 4001).window(2000));
}

/// A small buffer opens by half of itself (RFC 9293, 3.8.6.2.2: Fr = 1/2).
#[test]
fn a_window_smaller_than_two_segments_opens_by_half_the_buffer() {
    let mut script = Script::established(&small_buffer().with(|it| it.window.receive_buffer = Size(1200)));
    script.inject(data(1, 1000));
    script.expect(ack(1, 1001).window(200));
    script.inject(data(1001, 200));
    script.expect(ack(1, 1201).window(0));
    script.read(599);
    script.expect_nothing();
    script.read(1);
    script.expect(ack(1, 1201).window(600));
}

/// RFC 9293 (3.8.6): data beyond the window are not kept, and a closed window still answers probes.
#[test]
fn the_receive_window_is_enforced() {
    let mut script = Script::established(&small_buffer());
    script.inject(data(1, 3000));
    script.expect(ack(1, 3001).window(1000));
    script.inject(data(3001, 2000));
    script.expect(ack(1, 4001).window(0));
    for _ in 0..20 {
        script.inject(data(4001, 1));
        script.expect(ack(1, 4001).window(0));
    }
    assert_eq!(
        script.try_inject(data(4501, 100)),
        Err(segment(connection::Discard::OutsideWindow(IRS + 4501)))
    );
    script.expect(ack(1, 4001).window(0));
    assert_eq!(script.read(9000), 4000);
    assert_eq!(script.connection().statistics().bytes_received, 4000);
}

fn segment(discard: connection::Discard) -> Discard {
    Discard::Segment(discard)
}

/// RFC 9293 (3.10.7.4, first): with a closed window acknowledgements still count.
#[test]
fn acknowledgements_count_while_the_window_is_closed() {
    let mut script = Script::established(&small_buffer());
    script.inject(data(1, 4000));
    script.expect(ack(1, 4001).window(0));
    script.write(100);
    script.expect(data(1, 100));
    script.inject(data(4001, 1).ack(101));
    script.expect(ack(101, 4001));
    assert_eq!(script.connection().flight_size(), 0);
}

/// RFC 7323 (2.3, 2.4): scaled windows, which never shrink by more than the scale's rounding.
#[test]
fn a_scaled_window_shows_the_whole_buffer() {
    let config = plain().with(|it| {
        it.window.receive_buffer = Size(262_144);
        it.acknowledgements.delay = DelayedAcks::Off;
    });
    let mut script = Script::connected(&config, 10, syn_ack().scale(0));
    let mut edge = 0;
    let mut at = 1;
    for len in [1, 7, 1000, 3, 993, 1000] {
        script.inject(data(at, len));
        at += len as i64;
        let answer = script.take();
        let shown = at + (i64::from(answer.window) << 3);
        assert!(shown >= edge - 7 && shown <= 1 + 262_144 + 8, "{edge} then {shown}");
        edge = edge.max(shown);
    }
}

fn stamped() -> Script {
    let config = plain().with(|it| {
        it.timestamps = true;
        it.acknowledgements.delay = DelayedAcks::On;
    });
    Script::connected(&config, 100, syn_ack().sack_permitted().ts(1000, 0))
}

/// RFC 7323 (4.3): delayed acknowledgements echo the first segment, ones for a gap the last in order, and the
/// filling segment's comes back.
#[test]
fn the_right_timestamp_is_echoed() {
    let mut script = stamped();
    script.inject(data(1, 100).ts(1001, 0));
    script.inject(data(101, 100).ts(1002, 0));
    script.expect(ack(1, 201).ts(0, 1001));
    script.inject(data(301, 100).ts(1004, 0));
    script.expect(ack(1, 201).ts(0, 1001));
    script.inject(data(201, 100).ts(1005, 0));
    script.expect(ack(1, 401).ts(0, 1005));
}

/// RFC 7323 (5.3): PAWS refuses and acknowledges old segments.
#[test]
fn old_timestamps_are_refused() {
    let mut script = stamped();
    script.inject(data(1, 100).ts(2000, 0));
    script.inject(data(101, 100).ts(2000, 0));
    script.expect(ack(1, 201));
    assert_eq!(
        script.try_inject(data(201, 100).ts(1999, 0)),
        Err(segment(connection::Discard::OldTimestamp(1999)))
    );
    script.expect(ack(1, 201));
    // Numbers wrap.
    script.inject(data(201, 100).ts(2000 + (1 << 31) - 1, 0));
    script.inject(data(301, 100).ts(1 << 31, 0));
    assert_eq!(script.read(1000), 300);
    // RFC 7323 (5.2): resets are exempt.
    script.inject(rst(301).ts(1, 0));
    script.expect_event(Event::Failed(Failure::Reset));
}

/// RFC 5961 (5.2), RFC 7323 (5.3): what a forged segment with an acknowledgement that cannot be, or with one of the past
/// that is easier to hit, says of time is not believed: the next genuine one passes PAWS.
#[test]
fn a_forged_segment_does_not_move_ts_recent() {
    for forged in [2, -3000] {
        let mut script = stamped();
        script.inject(data(1, 100).ack(forged).ts(1000 + (1 << 30), 0));
        script.take_count();
        assert_eq!(script.try_inject(data(101, 100).ts(1001, 0)), Ok(()), "{forged}");
    }
}

/// RFC 7323 (5.5): after 24 idle days the last timestamp is no measure.
#[test]
fn an_ancient_timestamp_refuses_nothing() {
    let mut script = stamped();
    script.inject(data(1, 100).ts(2000, 0));
    script.at(25 * 24 * 3_600_000);
    script.take_count();
    script.inject(data(101, 100).ts(1500, 0));
    assert_eq!(script.read(1000), 200);
}

/// RFC 7323 (3.2).
#[test]
fn segments_without_the_agreed_timestamp_are_dropped() {
    let mut script = stamped();
    assert_eq!(script.try_inject(data(1, 100)), Err(segment(connection::Discard::NoTimestamp)));
    script.at(1000);
    script.expect_nothing();
    assert_eq!(script.connection().readable(), 0);
}

/// RFC 5961 (3.2).
#[test]
fn only_an_exact_reset_resets() {
    let mut script = Script::established(&plain());
    assert_eq!(script.try_inject(rst(2)), Err(segment(connection::Discard::ResetChallenged(IRS + 2))));
    script.expect(ack(1, 1));
    assert!(script.try_inject(rst(-5)).is_err());
    script.expect_nothing();
    assert_eq!(script.connection().state(), State::Established);
    script.inject(rst(1));
    script.expect_event(Event::Failed(Failure::Reset));
}

/// RFC 5961 (4.2): wherever it lies, and whatever its timestamp; ten in five seconds (7).
#[test]
fn a_syn_is_challenged() {
    for mut script in [Script::established(&plain()), stamped()] {
        for seq in [500, -5000, 1 << 30] {
            let challenged = Err(segment(connection::Discard::SynChallenged));
            assert_eq!(script.try_inject(Seg { seq, ..syn() }), challenged);
            script.expect(ack(1, 1));
        }
        for seq in 0..30 {
            script.inject(Seg { seq, ..syn() });
        }
        assert_eq!(script.take_count(), 7);
        assert_eq!(script.connection().state(), State::Established);
    }
}

/// RFC 5961 (5.2): acknowledgements from the future, or older than any window, are challenged and their data dropped.
#[test]
fn unacceptable_acknowledgements_are_challenged() {
    let mut script = Script::established(&plain());
    assert!(script.try_inject(data(1, 100).ack(2)).is_err());
    script.expect(ack(1, 1));
    // SND.UNA - MAX.SND.WND is the oldest.
    assert!(script.try_inject(data(1, 100).ack(-60_000)).is_err());
    script.expect(ack(1, 1));
    assert_eq!(script.connection().readable(), 0);
    script.inject(data(1, 100).ack(-59_999));
    assert_eq!(script.connection().readable(), 100);
}

/// RFC 3135 (2.2): end to end nothing is acknowledged that the far end has not; what it has is, at once and once.
#[test]
fn what_the_far_end_has_is_acknowledged_at_once() {
    let mut script = Script::established(&plain());
    script.steer(|it| it.acknowledge_only(0));
    script.inject(data(1, 1000));
    script.expect_nothing();
    script.steer(|it| it.acknowledge_only(1000));
    script.expect(ack(1, 1001));
    // A duplicate would look like a loss.
    script.steer(|it| it.acknowledge_only(1000));
    script.expect_nothing();
}

/// RFC 2018 (4): what is withheld from acknowledgement has come: it is no part of the gap, nor a gap where there is none.
#[test]
fn what_is_withheld_is_not_missing() {
    let mut script = Script::established(&plain());
    script.steer(|it| it.acknowledge_only(0));
    for at in 0..3 {
        script.inject(data(1 + 1000 * at, 1000));
    }
    script.write(10);
    script.expect(data(1, 10).ack(1).sack(&[]));
    script.inject(data(5001, 1000));
    script.expect(ack(11, 1).sack(&[(5001, 6001), (1001, 3001)]));
    // Beside that much there is room for one block.
    script.write(985);
    script.expect(data(11, 985).ack(1).sack(&[(5001, 6001)]));
}

/// RFC 2018 (4): the blocks that were told of least are those that changed last, also once a gap is filled.
#[test]
fn the_latest_blocks_come_first() {
    let mut script = Script::established(&plain());
    let run = |at: u32| (2000 * at - 999, 2000 * at + 1);
    for at in [6, 1, 5, 2, 4, 3] {
        script.inject(data(i64::from(run(at).0), 1000));
    }
    let latest = [3, 4, 2, 5].map(run);
    assert_eq!(script.take_count(), 6);
    script.inject(fin(40_001));
    script.expect(ack(1, 1).sack(&latest));
    script.inject(data(1, 1000));
    script.expect(ack(1, 2001).sack(&latest));
}

/// RFC 5961 (7): ten in five seconds.
#[test]
fn challenges_are_rate_limited() {
    // However they spread.
    for apart in [0, 100] {
        let mut script = Script::established(&plain());
        for at in 0..30 {
            script.at(100 + apart * at);
            script.inject(rst(5));
        }
        assert_eq!(script.take_count(), 10, "{apart} ms apart");
        script.at(5200);
        script.inject(rst(5));
        script.expect(ack(1, 1));
        assert_eq!(script.connection().statistics().challenge_acks, 11);
    }
}

/// Segments without ACK are dropped (RFC 9293, 3.10.7.4, fifth).
#[test]
fn a_segment_without_ack_is_dropped() {
    let mut script = Script::established(&plain());
    let bare = Seg { flags: Flags(0), seq: 1, len: 10, ..Seg::default() };
    assert_eq!(script.try_inject(bare), Err(segment(connection::Discard::NoAck)));
    assert_eq!(script.connection().readable(), 0);
}

/// RFC 9293 (3.1): what is no packet for this host is refused by reason and changes nothing.
#[test]
fn foreign_and_broken_packets_are_refused() {
    let mut script = Script::established(&plain());
    let good = script.packet(&data(1, 100));
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    assert_eq!(script.inject_packet(&flipped), Err(Discard::Malformed(Malformed::Checksum)));
    let mut header = good.clone();
    header[8] ^= 1;
    assert_eq!(script.inject_packet(&header), Err(Discard::Malformed(Malformed::Checksum)));
    let mut fragment = good.clone();
    fragment[6] |= 0x20;
    assert_eq!(script.inject_packet(&fragment), Err(Discard::Fragment));
    for len in 0..good.len() {
        assert!(script.inject_packet(&good[..len]).is_err());
    }
    let mut stranger = longhaul_tcp::Host::new(PEER, base::Rng::named(1, "x"));
    assert_eq!(stranger.handle_packet(script.now, &good), Err(Discard::NotForUs(HOST)));
    script.expect_nothing();
    assert_eq!(script.connection().readable(), 0);
    assert_eq!(script.inject_packet(&good), Ok(()));
    assert_eq!(script.read(500), 100);
}
