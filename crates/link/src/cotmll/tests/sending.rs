//! The four rules, the flags, the window (Faulkner 2004, 2.3).

use super::*;
use FrameKind::{Control, Filler, New, Retransmission};

/// Every combination of flagged, window room with data, outstanding: the published order decides.
#[test]
fn the_rules_are_tried_in_order() {
    for flagged in [false, true] {
        for new in [false, true] {
            for outstanding in [false, true] {
                let mut a = endpoint(4);
                if flagged {
                    send_new(&mut a, 2);
                    ack(&mut a, block(1, 1));
                } else if outstanding {
                    send_new(&mut a, 2);
                }
                if new {
                    offer(&mut a, 9, 100);
                }
                let expected = match (flagged, new, outstanding) {
                    (true, ..) => (Retransmission, 0),
                    (false, true, true) => (New, 2),
                    (false, true, false) => (New, 0),
                    (false, false, true) => (Filler, 0),
                    (false, false, false) => (Control, 0),
                };
                assert_eq!(action(&mut a), expected, "{flagged} {new} {outstanding}");
            }
        }
    }
}

#[test]
fn new_data_waits_for_window_room() {
    let mut a = endpoint(2);
    send_new(&mut a, 2);
    offer(&mut a, 9, 100);
    assert_eq!(actions(&mut a, 2), [(Filler, 0), (Filler, 1)]);
    // Frames that a block acknowledged still occupy the window.
    ack(&mut a, block(1, 1));
    assert_eq!(actions(&mut a, 2), [(Retransmission, 0), (Filler, 0)]);
    ack(&mut a, cumulative(2));
    assert_eq!(actions(&mut a, 2), [(New, 2), (Filler, 2)]);
}

#[test]
fn flagged_frames_go_in_window_order_and_fillers_by_age() {
    let mut a = endpoint(512);
    send_new(&mut a, 6);
    // 0 and 1 are sent again, so that 2 is the oldest.
    assert_eq!(actions(&mut a, 2), [(Filler, 0), (Filler, 1)]);
    ack(&mut a, block(4, 1));
    // 4 was sent after 2 and 3, and before the second transmissions of 0 and 1.
    assert_eq!(actions(&mut a, 2), [(Retransmission, 2), (Retransmission, 3)]);
    // By age: 5 was last sent before the others.
    assert_eq!(
        actions(&mut a, 6),
        [(Filler, 5), (Filler, 0), (Filler, 1), (Filler, 2), (Filler, 3), (Filler, 5)]
    );
}

#[test]
fn a_block_flags_what_was_not_sent_again_since_its_latest_sending() {
    let mut a = endpoint(512);
    send_new(&mut a, 4);
    // All cycle once; then 0 once more, and only the second 1 or 2 can have arrived.
    assert_eq!(actions(&mut a, 5), [(Filler, 0), (Filler, 1), (Filler, 2), (Filler, 3), (Filler, 0)]);
    ack(&mut a, block(2, 1));
    // 1 was last sent before 2's latest transmission and is lost; 0 was sent after it and may be on its way.
    assert_eq!(actions(&mut a, 2), [(Retransmission, 1), (Filler, 3)]);
    assert_eq!(count(&a, "frames-flagged"), 1);
}

/// Against its first transmission, nothing that was sent after that is taken for lost.
#[test]
fn a_block_may_count_by_its_first_sending() {
    let mut a = with(Config { flag_against: FlagAgainst::First, ..Config::default() });
    send_new(&mut a, 4);
    assert_eq!(actions(&mut a, 3), [(Filler, 0), (Filler, 1), (Filler, 2)]);
    ack(&mut a, block(2, 1));
    assert_eq!(count(&a, "frames-flagged"), 0);
    let mut a = with(Config { flag_against: FlagAgainst::First, ..Config::default() });
    send_new(&mut a, 4);
    ack(&mut a, block(2, 1));
    assert_eq!(actions(&mut a, 2), [(Retransmission, 0), (Retransmission, 1)]);
}

#[test]
fn a_repeated_block_flags_nothing() {
    let mut a = endpoint(512);
    send_new(&mut a, 3);
    ack(&mut a, block(1, 2));
    assert_eq!(action(&mut a), (Retransmission, 0));
    ack(&mut a, block(1, 2));
    assert_eq!(action(&mut a), (Filler, 0));
    // A longer block is news: 3 was sent after 0 was sent again, so that is lost too.
    send_new(&mut a, 1);
    ack(&mut a, block(1, 3));
    assert_eq!(action(&mut a), (Retransmission, 0));
    assert_eq!(count(&a, "frames-flagged"), 2);
}

#[test]
fn a_cumulative_acknowledgement_implies_no_loss() {
    let mut a = endpoint(512);
    send_new(&mut a, 5);
    ack(&mut a, cumulative(2));
    assert_eq!(actions(&mut a, 2), [(Filler, 2), (Filler, 3)]);
    ack(&mut a, cumulative(2));
    assert_eq!(action(&mut a), (Filler, 4));
    assert_eq!(count(&a, "frames-flagged"), 0);
}

#[test]
fn an_acknowledgement_clears_a_flag() {
    let mut a = endpoint(512);
    send_new(&mut a, 5);
    ack(&mut a, block(3, 1));
    ack(&mut a, cumulative(2));
    assert_eq!(actions(&mut a, 2), [(Retransmission, 2), (Filler, 4)]);
    ack(&mut a, cumulative(5));
    assert_eq!(action(&mut a), (Control, 0));
}

/// Faulkner 2004, figure 4-7: B, D and G.
#[test]
fn a_blockage_is_cycled_through_and_mended() {
    let mut a = endpoint(512);
    send_new(&mut a, 40);
    let cycled: Vec<_> = actions(&mut a, 60).iter().map(|(_, tx)| *tx).collect();
    assert_eq!(cycled, (0..40).chain(0..20).collect::<Vec<_>>());
    // New data is sent at once.
    send_new(&mut a, 1);
    assert_eq!(action(&mut a), (Filler, 20));
    // The channel opened for 10 to 19 on the second cycle: what lies before was sent before.
    ack(&mut a, block(10, 10));
    assert_eq!(actions(&mut a, 10), (0..10).map(|tx| (Retransmission, tx)).collect::<Vec<_>>());
    assert_eq!(action(&mut a), (Filler, 21));
}

#[test]
fn acknowledgements_of_frames_not_in_flight_are_ignored() {
    let mut a = endpoint(512);
    send_new(&mut a, 5);
    ack(&mut a, cumulative(2));
    for wrong in [
        cumulative(6),
        cumulative(1),
        cumulative(514),
        block(2, 1),
        block(3, 3),
        block(1, 4),
        block(600, 127),
    ] {
        let before = count(&a, "acks-invalid");
        ack(&mut a, wrong);
        assert_eq!((count(&a, "acks-invalid"), count(&a, "frames-flagged")), (before + 1, 0), "{wrong:?}");
    }
    assert_eq!((a.in_flight(), action(&mut a)), (3, (Filler, 2)));
}

#[test]
fn sequence_numbers_wrap() {
    let mut a = endpoint(512);
    for round in 0..5_u64 {
        send_new(&mut a, 512);
        let base = round * 512;
        ack(&mut a, block(((base + 511) % 1024) as u16, 1));
        let flagged: Vec<_> = actions(&mut a, 511).iter().map(|(_, tx)| u64::from(*tx)).collect();
        assert_eq!(flagged, (base..base + 511).map(|s| s % 1024).collect::<Vec<_>>());
        ack(&mut a, cumulative(((base + 512) % 1024) as u16));
        assert_eq!(a.in_flight(), 0);
    }
}

/// 3968 bits less 72: 487 bytes; "a 1500-byte packet takes four frames" (notes on the thesis).
#[test]
fn packets_are_cut_into_full_frames() {
    let mut a = endpoint(512);
    offer(&mut a, 7, 1500);
    let sent: Vec<_> = (0..4).map(|_| next(&mut a)).collect();
    let lens: Vec<_> = sent.iter().map(|s| s.payload.len()).collect();
    let ends: Vec<_> = sent.iter().map(|s| (s.trailer.first, s.trailer.last)).collect();
    assert_eq!(lens, [487, 487, 487, 39]);
    assert_eq!(ends, [(true, false), (false, false), (false, false), (false, true)]);
    assert_eq!((487 + TRAILER_LEN) * 8 + 40, 3968);
    assert_eq!(next(&mut a).payload, sent[0].payload);
}

#[test]
fn a_frame_fits_the_line() {
    // The line's limit, or the protocol's own where that is less.
    for (frame_limit, frame_payload, lens) in [(104, 487, [100, 100, 50]), (600, 100, [100, 100, 50])] {
        let config = Config { frame_payload: frame_payload.try_into().unwrap(), ..Config::default() };
        let mut a = Cotmll::new(config, &LineLimits::new(frame_limit, None));
        offer(&mut a, 7, 250);
        assert_eq!([(); 3].map(|()| next(&mut a).payload.len()), lens);
        a.offer(NOW, Packet::from_slice(&[8; 250]), Treatment::Once).unwrap();
        assert_eq!([(); 4].map(|()| next(&mut a)).map(|sent| sent.payload.len()), [100, 100, 50, 100]);
    }
}

/// An observer hears what each frame says when it is complete, and which frames are flagged.
#[test]
fn an_observer_hears_of_frames_and_flags() {
    let mut a = endpoint(512);
    send_new(&mut a, 4);
    assert_eq!(a.poll_event(), None, "nobody observed");
    a.observe();
    let events = |a: &mut Cotmll| core::iter::from_fn(|| a.poll_event()).collect::<Vec<_>>();
    let sent = next(&mut a).trailer;
    assert_eq!((sent.tx, events(&mut a)), (0, vec![Event::Sent(Header::Cotmll(sent))]));
    let told = |told| {
        let trailer = Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack: told };
        Event::Received(Header::Cotmll(trailer))
    };
    // 0 was sent again since.
    ack(&mut a, block(2, 1));
    assert_eq!(events(&mut a), [told(block(2, 1)), Event::TakenForLost([1].into())]);
    ack(&mut a, cumulative(4));
    assert_eq!(events(&mut a), [told(cumulative(4))]);
    // Those that are known are not told again, when one of them has arrived after all either.
    send_new(&mut a, 6);
    events(&mut a);
    ack(&mut a, block(9, 1));
    assert_eq!(events(&mut a), [told(block(9, 1)), Event::TakenForLost([4, 5, 6, 7, 8].into())]);
    ack(&mut a, block(6, 1));
    assert_eq!(events(&mut a), [told(block(6, 1))]);
}

#[test]
fn demand_tells_news_from_repetition() {
    let mut a = endpoint(1);
    assert_eq!(a.demand(NOW), Demand::Filler);
    offer(&mut a, 1, 100);
    assert_eq!(a.demand(NOW), Demand::Fresh);
    next(&mut a);
    offer(&mut a, 2, 100);
    // The window is full: all that can be said was said.
    assert_eq!((a.demand(NOW), a.has_room(Treatment::Reliable)), (Demand::Filler, false));
    ack(&mut a, cumulative(1));
    assert_eq!(a.demand(NOW), Demand::Fresh);
    next(&mut a);
    assert_eq!((a.demand(NOW), a.has_room(Treatment::Reliable)), (Demand::Filler, true));
    // A frame beyond a gap: a block to tell, and nothing cumulative.
    arrive(&mut a, 1, 0).unwrap();
    assert_eq!(a.demand(NOW), Demand::Fresh);
    assert_eq!(next(&mut a).trailer.ack, block(1, 1));
    assert_eq!(a.demand(NOW), Demand::Filler);
    // The gap closes while a block was told last: the next one tells it.
    arrive(&mut a, 0, 0).unwrap();
    assert_eq!(a.demand(NOW), Demand::Fresh);
    assert_eq!(next(&mut a).trailer.ack, cumulative(2));
    assert_eq!(a.demand(NOW), Demand::Filler);
    assert_eq!(a.poll_timeout(), None);
}

#[test]
fn a_flag_is_news() {
    let mut a = endpoint(512);
    send_new(&mut a, 2);
    assert_eq!(a.demand(NOW), Demand::Filler);
    ack(&mut a, block(1, 1));
    assert_eq!(a.demand(NOW), Demand::Fresh);
    next(&mut a);
    assert_eq!(a.demand(NOW), Demand::Filler);
}

#[test]
fn a_reset_keeps_what_was_not_sent() {
    let mut a = endpoint(512);
    send_new(&mut a, 3);
    offer(&mut a, 8, 1000);
    next(&mut a);
    arrive(&mut a, 0, 1).unwrap();
    fragment(&mut a, 1, true, false, 2).unwrap();
    a.reset();
    // Three packets were sent whole; the fourth starts again with the first number.
    assert_eq!(count(&a, "packets-reset"), 3);
    let sent = next(&mut a);
    assert_eq!(
        (sent.kind, sent.trailer.tx, sent.trailer.first, sent.trailer.ack),
        (New, 0, true, cumulative(0))
    );
    assert_eq!(actions(&mut a, 3), [(New, 1), (New, 2), (Filler, 0)]);
    // What had arrived still goes up, and the peer's first frame is new.
    arrive(&mut a, 0, 3).unwrap();
    assert_eq!(delivered(&mut a), [vec![1; 3], vec![3; 3]]);
    assert_eq!(count(&a, "packets-incomplete"), 1);
}
