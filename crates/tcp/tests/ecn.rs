//! Segment scripts: explicit congestion notification (RFC 3168).

use crate::script::*;
use base::Duration;
use base::wire::ip::Ecn;
use base::wire::tcp::{Flags, View};
use longhaul_tcp::{DelayedAcks, EcnUse, Event, InitialWindow, TcpConfig};

const ECE: Flags = Flags::ECE;
const CWR: Flags = Flags::CWR;

fn with(ecn: EcnUse) -> TcpConfig {
    TcpConfig { ecn, ..plain() }
}

/// A connection at 100 ms whose two sides agreed on ECN.
fn agreed(config: &TcpConfig) -> Script {
    let mut script = Script::connecting(config);
    script.expect(syn_sent().and(ECE | CWR));
    script.at(100);
    script.inject(syn_ack().sack_permitted().and(ECE));
    script.expect(ack(1, 1).ecn(Ecn::NotEct));
    assert!(script.connection().uses_ecn());
    script
}

/// One with `segments` out since 100 ms, at 200 ms.
fn flying(config: &TcpConfig, segments: u32) -> Script {
    let mut script = agreed(&config.clone().with(|it| it.window.initial = InitialWindow::Segments(segments)));
    script.write(40_000);
    assert_eq!(script.take_count(), segments as usize);
    script.at(200);
    script
}

fn syn_sent() -> Seg {
    Seg { flags: SYN, ecn: Some(Ecn::NotEct), ..Seg::default() }
}

fn answer() -> Seg {
    Seg { flags: SYN | ACK, ack: Some(1), ecn: Some(Ecn::NotEct), ..Seg::default() }
}

/// What the host sends of 100 bytes that are written now.
fn expect_data(script: &mut Script, codepoint: Ecn) {
    script.write(100);
    script.expect(data(1, 100).ecn(codepoint));
}

/// RFC 3168 (6.1.1): ECE and CWR in the SYN, ECE in the answer; neither is marked as capable (6.1.1, last rule).
#[test]
fn an_active_open_asks_and_uses_what_the_peer_grants() {
    for ecn in [EcnUse::On, EcnUse::Only] {
        let mut script = agreed(&with(ecn));
        expect_data(&mut script, Ecn::Ect0);
    }
}

/// RFC 3168 (6.1.1): an answer without ECE refuses.
#[test]
fn a_plain_answer_refuses() {
    let mut script = Script::connecting(&with(EcnUse::On));
    script.expect(syn_sent().and(ECE | CWR));
    script.inject(syn_ack());
    script.expect(ack(1, 1));
    assert!(!script.connection().uses_ecn());
    expect_data(&mut script, Ecn::NotEct);
}

/// RFC 3168 (6.1.1): so does one with both flags, which some hosts reflect.
#[test]
fn a_reflected_request_refuses() {
    let mut script = Script::connecting(&with(EcnUse::On));
    script.take();
    script.inject(syn_ack().and(ECE | CWR));
    script.expect(ack(1, 1));
    expect_data(&mut script, Ecn::NotEct);
}

/// RFC 3168 (6.1.1): who did not ask is granted nothing.
#[test]
fn a_grant_without_a_request_counts_for_nothing() {
    for ecn in [EcnUse::Off, EcnUse::Passive] {
        let mut script = Script::connecting(&with(ecn));
        script.expect(syn_sent());
        script.inject(syn_ack().and(ECE));
        script.expect(ack(1, 1));
        expect_data(&mut script, Ecn::NotEct);
    }
}

/// RFC 3168 (6.1.1): a listener that is willing grants a request with ECE alone.
#[test]
fn a_listener_grants_what_is_asked() {
    for ecn in [EcnUse::Passive, EcnUse::On, EcnUse::Only] {
        let mut script = Script::listening(&with(ecn));
        script.inject(syn().and(ECE | CWR));
        script.expect(answer().and(ECE));
        script.inject(ack(1, 1));
        script.expect_event(Event::Accepted { local_port: PORT });
        expect_data(&mut script, Ecn::Ect0);
    }
}

/// RFC 3168 (6.1.1): nothing else is a request, and an unwilling listener grants none.
#[test]
fn a_listener_grants_nothing_else() {
    for (ecn, flags) in
        [(EcnUse::Off, ECE | CWR), (EcnUse::On, ECE), (EcnUse::On, CWR), (EcnUse::On, Flags(0))]
    {
        let mut script = Script::listening(&with(ecn));
        script.inject(syn().and(flags));
        script.expect(answer());
        script.inject(ack(1, 1));
        expect_data(&mut script, Ecn::NotEct);
    }
}

/// RFC 3168 (6.1.1.1): a SYN that is not answered is sent again without the request.
#[test]
fn an_unanswered_request_is_not_repeated() {
    let mut script = Script::connecting(&with(EcnUse::On));
    script.expect(syn_sent().and(ECE | CWR));
    script.expect_at(1000, syn_sent());
    script.expect_at(3000, syn_sent());
    script.inject(syn_ack());
    script.expect(ack(1, 1));
    expect_data(&mut script, Ecn::NotEct);
}

/// RFC 3168 (6.1.1): who has sent a SYN without a request does not mark data as capable, but echoes the marks of a
/// peer that granted the first.
#[test]
fn a_late_grant_obliges_to_echo_only() {
    let mut script = Script::connecting(&with(EcnUse::On));
    script.take();
    script.expect_at(1000, syn_sent());
    script.at(1100);
    script.inject(syn_ack().and(ECE));
    script.expect(ack(1, 1));
    expect_data(&mut script, Ecn::NotEct);
    script.inject(data(1, 1000).ecn(Ecn::Ce));
    script.inject(data(1001, 1000).ecn(Ecn::Ect0));
    script.expect(ack(101, 2001).and(ECE));
}

/// RFC 3168 (6.1.1): a listener that hears the SYN again, now without the request, withdraws the grant.
#[test]
fn a_repeated_syn_without_a_request_withdraws_the_grant() {
    let mut script = Script::listening(&with(EcnUse::On));
    script.inject(syn().and(ECE | CWR));
    script.expect(answer().and(ECE));
    script.inject(syn());
    script.expect(answer());
    script.inject(ack(1, 1));
    expect_data(&mut script, Ecn::NotEct);
}

/// RFC 3168 (6.1): with the request it grants again, as it does when its answer's timer expires.
#[test]
fn a_repeated_answer_grants_again() {
    let mut script = Script::listening(&with(EcnUse::Passive));
    script.inject(syn().and(ECE | CWR));
    script.expect(answer().and(ECE));
    script.inject(syn().and(ECE | CWR));
    script.expect(answer().and(ECE));
    script.expect_at(1000, answer().and(ECE));
    script.inject(ack(1, 1));
    expect_data(&mut script, Ecn::Ect0);
}

/// RFC 3168 (6.1.1): two requests that cross are each other's; a side that asked for nothing grants nothing then.
#[test]
fn requests_may_cross() {
    for (ecn, codepoint) in [(EcnUse::On, Ecn::Ect0), (EcnUse::Passive, Ecn::NotEct)] {
        let mut script = Script::connecting(&with(ecn));
        script.take();
        script.at(50);
        script.inject(syn().and(ECE | CWR));
        let granted = if ecn == EcnUse::On { ECE } else { Flags(0) };
        script.expect(answer().and(granted));
        script.inject(syn_ack().and(ECE));
        script.expect_event(Event::Connected);
        script.take_count();
        expect_data(&mut script, codepoint);
    }
}

/// RFC 3168 (6.1.4, 6.1.5): new data are capable; acknowledgements, retransmissions and a bare FIN are not.
#[test]
fn only_new_data_are_capable() {
    let mut script = agreed(&with(EcnUse::On));
    script.write(2000);
    script.expect(data(1, 1000).ecn(Ecn::Ect0));
    script.expect(data(1001, 1000).ecn(Ecn::Ect0));
    script.expect_at(400, data(1, 1000).ecn(Ecn::NotEct));
    script.inject(data(1, 2000).ack(1));
    script.expect(ack(2001, 2001).ecn(Ecn::NotEct));
    script.inject(ack(2001, 2001));
    script.finish();
    script.expect(fin(2001).ecn(Ecn::NotEct));
}

/// RFC 3168 (6.1.6): nor are probes of a closed window.
#[test]
fn window_probes_are_not_capable() {
    let mut script = agreed(&with(EcnUse::On));
    script.inject(ack(1, 1).window(0));
    script.write(100);
    script.expect_at(400, data(1, 1).ecn(Ecn::NotEct));
    script.inject(ack(1, 2).window(5000));
    script.expect(data(2, 99).ecn(Ecn::Ect0));
}

/// RFC 3168 (6.1.3): after a mark every acknowledgement says so, until the peer says that it has reduced.
#[test]
fn a_mark_is_echoed_until_the_peer_has_reduced() {
    let mut script = agreed(&with(EcnUse::On));
    script.inject(data(1, 1000).ecn(Ecn::Ce));
    script.inject(data(1001, 1000).ecn(Ecn::Ect0));
    script.expect(ack(1, 2001).and(ECE));
    script.inject(data(2001, 1000).ecn(Ecn::Ect0));
    script.expect_at(140, ack(1, 3001).and(ECE));
    script.write(10);
    script.expect(data(1, 10).ack(3001).and(ECE));
    script.inject(data(3001, 1000).ecn(Ecn::Ect0).and(CWR));
    script.inject(data(4001, 1000).ecn(Ecn::Ect0));
    script.expect(ack(11, 5001));
    assert_eq!(script.connection().statistics().marks_received, 1);
}

/// RFC 3168 (6.1.3): the segment that says so may bear a new mark.
#[test]
fn a_mark_on_the_reducing_segment_is_echoed() {
    let mut script = agreed(&with(EcnUse::On));
    script.inject(data(1, 2000).ecn(Ecn::Ce));
    script.expect(ack(1, 2001).and(ECE));
    script.inject(data(2001, 2000).ecn(Ecn::Ce).and(CWR));
    script.expect(ack(1, 4001).and(ECE));
    script.inject(data(4001, 2000).ecn(Ecn::Ect0).and(CWR));
    script.expect(ack(1, 6001));
}

/// RFC 3168 (6.1.3): a mark beyond a gap is echoed with the duplicate.
#[test]
fn a_mark_beyond_a_gap_is_echoed() {
    let mut script = agreed(&with(EcnUse::On));
    script.inject(data(1001, 1000).ecn(Ecn::Ce));
    script.expect(ack(1, 1).and(ECE).sack(&[(1001, 2001)]));
}

/// RFC 3168 (6.1.5): marks on data outside the window, and on segments without data, are ignored: they may be forged.
#[test]
fn marks_outside_the_window_are_ignored() {
    let mut script = agreed(&with(EcnUse::On));
    assert!(script.try_inject(data(-2000, 1000).ecn(Ecn::Ce)).is_err());
    script.expect(ack(1, 1));
    script.inject(ack(1, 1).ecn(Ecn::Ce));
    script.inject(data(1, 2000));
    script.expect(ack(1, 2001));
    assert_eq!(script.connection().statistics().marks_received, 0);
}

/// RFC 3168 (6.1.1): without an agreement neither marks nor echoes mean anything.
#[test]
fn without_an_agreement_nothing_is_echoed_or_heeded() {
    let mut script = Script::established(&with(EcnUse::Passive));
    script.inject(data(1, 2000).ecn(Ecn::Ce));
    script.expect(ack(1, 2001));
    script.write(2000);
    script.take_count();
    script.inject(ack(2001, 1001).and(ECE));
    assert_eq!(script.connection().ssthresh(), None);
}

/// Linux, `__tcp_ecn_check_ce`: a first mark, and the peer's word that it reduced, bring quick acknowledgements, for its
/// window may be small.
#[test]
fn marks_bring_quick_acknowledgements() {
    let config = with(EcnUse::On).with(|it| it.acknowledgements.delay = DelayedAcks::QuickAcks);
    let mut script = agreed(&config);
    for at in 0..17 {
        script.inject(data(1 + 1000 * at, 1000));
    }
    assert_eq!(script.take_count(), 16);
    script.at(140);
    script.expect(ack(1, 17_001));
    script.inject(data(17_001, 1000).ecn(Ecn::Ce));
    script.expect(ack(1, 18_001).and(ECE));
    script.inject(data(18_001, 1000));
    script.expect(ack(1, 19_001).and(ECE));
    script.inject(data(19_001, 1000));
    script.expect_nothing();
    script.inject(data(20_001, 1000));
    script.expect(ack(1, 21_001).and(ECE));
    script.inject(data(21_001, 1000).and(CWR));
    script.expect(ack(1, 22_001));
}

/// RFC 3168 (6.1.2): an echo halves the window once for a window of data; the first new data say so, once.
#[test]
fn echoes_halve_the_window_once_a_round_trip() {
    let mut script = flying(&with(EcnUse::On), 10);
    script.inject(ack(1, 1001).and(ECE));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
    script.inject(ack(1, 5001).and(ECE));
    script.expect_nothing();
    script.inject(ack(1, 6001).and(ECE));
    script.expect(data(10_001, 1000).and(CWR).ecn(Ecn::Ect0));
    script.inject(ack(1, 10_001).and(ECE));
    assert_eq!(script.connection().cwnd(), 5000);
    for at in 0..4 {
        script.expect(data(11_001 + 1000 * at, 1000).ecn(Ecn::Ect0));
    }
    // All that was out then is answered for: this is a new mark.
    script.inject(ack(1, 11_001).and(ECE));
    assert_eq!(script.connection().cwnd(), 2500);
    script.inject(ack(1, 14_001));
    script.expect(data(15_001, 1000).and(CWR));
    assert_eq!(script.connection().sender_statistics().mark_reductions, 2);
}

/// RFC 3168 (6.1.2): an acknowledgement that echoes a mark does not open the window.
#[test]
fn echoes_do_not_open_the_window() {
    let mut script = flying(&with(EcnUse::On), 4);
    script.inject(ack(1, 1001).and(ECE));
    assert_eq!(script.connection().cwnd(), 2000);
    for acked in [2001, 3001, 4001] {
        script.inject(ack(1, acked).and(ECE));
    }
    assert_eq!(script.connection().cwnd(), 2000);
}

/// RFC 3168 (6.1): an echo while nothing is out says nothing new.
#[test]
fn an_echo_without_data_in_flight_is_ignored() {
    let mut script = agreed(&with(EcnUse::On));
    script.inject(ack(1, 1).and(ECE));
    assert_eq!(script.connection().ssthresh(), None);
}

/// RFC 3168 (6.1.2): an echo counts in a duplicate too, also of a peer without selective acknowledgements.
#[test]
fn an_echo_in_a_duplicate_counts() {
    let config = with(EcnUse::On).with(|it| it.window.initial = InitialWindow::Segments(10));
    let mut script = Script::connecting(&config);
    script.take();
    script.at(100);
    script.inject(syn_ack().and(ECE));
    script.take();
    script.write(10_000);
    assert_eq!(script.take_count(), 10);
    script.inject(ack(1, 1).and(ECE));
    assert_eq!(
        (script.connection().cwnd(), script.connection().sender_statistics().mark_reductions),
        (5000, 1)
    );
}

/// Duplicates: three of them say that the first segment was lost.
fn lose_the_first(script: &mut Script, flags: Flags) {
    for end in [2001, 3001, 4001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]).and(flags));
    }
}

/// RFC 3168 (6.1.2): losses and marks of one window lower it once: a loss after the response to a mark ...
#[test]
fn a_loss_in_a_marked_window_is_repaired_only() {
    let mut script = flying(&with(EcnUse::On), 10);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]).and(ECE));
    assert_eq!(script.connection().cwnd(), 5000);
    lose_the_first(&mut script, ECE);
    script.expect(data(1, 1000).ecn(Ecn::NotEct));
    assert!(script.connection().recovering());
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
}

/// RFC 3168 (6.1): a mark after the response to a loss. New data say that the window went down for it, too.
#[test]
fn a_mark_in_a_window_with_a_loss_changes_nothing() {
    let mut script = flying(&with(EcnUse::On), 10);
    lose_the_first(&mut script, Flags(0));
    assert_eq!(script.connection().cwnd(), 5000);
    assert_eq!(script.sent(), [10_001, 11_001, 1], "limited transmit, and the loss");
    script.at(300);
    script.inject(ack(1, 10_001).and(ECE));
    assert_eq!(
        (script.connection().cwnd(), script.connection().sender_statistics().mark_reductions),
        (5000, 0)
    );
    script.expect(data(12_001, 1000).and(CWR).ecn(Ecn::Ect0));
    script.expect(data(13_001, 1000).ecn(Ecn::Ect0));
}

/// RFC 3168 (6.1): the window after that one is another matter: its loss counts.
#[test]
fn a_loss_in_the_next_window_counts() {
    // The first segment of that window is lost, or the second.
    for first in [10_001, 11_001] {
        let mut script = flying(&with(EcnUse::On), 10);
        script.inject(ack(1, 10_001).and(ECE));
        assert_eq!((script.connection().cwnd(), script.take_count()), (5000, 5));
        script.inject(ack(1, first));
        for end in [2000, 3000, 4000] {
            script.inject(ack(1, first).sack(&[(first as u32 + 1000, first as u32 + end)]));
        }
        let told = "after a mark, losses have to go on reducing the window";
        assert_eq!(script.connection().ssthresh(), Some(2500), "{told}: lost {first}");
    }
}

/// RFC 3168 (6.1.2): the first new data segment alone says that the window went down: a device repeats what a train says.
#[test]
fn a_train_does_not_tell_of_a_reduction() {
    let mut script = flying(&with(EcnUse::On), 10);
    let echo = script.packet(&ack(1, 10_001).and(ECE));
    script.host.handle_packet(script.now, &echo).unwrap();
    let train = |script: &mut Script| {
        let (packet, size) = script.host.poll_transmit_train(script.now, 3000).expect("a train");
        (View::parse(&packet[20..]).unwrap().flags().has(CWR), size)
    };
    assert_eq!(train(&mut script), (true, None));
    assert_eq!(train(&mut script), (false, Some(1000)));
}

/// RFC 3168 (6.1.2): a time-out starts from one segment, marked window or not, and new data say so.
#[test]
fn a_timeout_counts_after_a_mark() {
    let mut script = flying(&with(EcnUse::On), 10);
    script.inject(ack(1, 1001).and(ECE));
    script.expect_at(500, data(1001, 1000).ecn(Ecn::NotEct));
    assert_eq!(script.connection().cwnd(), 1000);
    script.inject(ack(1, 10_001));
    script.expect(data(10_001, 1000).and(CWR));
}

/// RFC 8311 (4.1): a loss is repaired and nothing more, if marks are the only signal.
#[test]
fn a_loss_does_not_lower_the_window_if_only_marks_do() {
    let mut script = flying(&with(EcnUse::Only), 10);
    lose_the_first(&mut script, Flags(0));
    assert_eq!(script.connection().cwnd(), 10_000);
    // Four segments have left the network: two new ones by limited transmit, the lost one, and another new one.
    assert_eq!(script.sent(), [10_001, 11_001, 1, 12_001]);
    script.inject(ack(1, 1).sack(&[(1001, 6001)]));
    script.expect(data(13_001, 1000).ecn(Ecn::Ect0));
    script.expect(data(14_001, 1000).ecn(Ecn::Ect0));
    script.at(300);
    script.inject(ack(1, 10_001));
    assert!(script.connection().cwnd() >= 10_000);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// RFC 8311 (4.1): the marks do.
#[test]
fn a_mark_lowers_the_window_if_only_marks_do() {
    let mut script = flying(&with(EcnUse::Only), 10);
    lose_the_first(&mut script, ECE);
    assert_eq!(script.connection().cwnd(), 5000);
}

/// RFC 3168 (6.1): a time-out does, too: nobody is left who could echo marks.
#[test]
fn a_timeout_lowers_the_window_if_only_marks_do() {
    let mut script = flying(&with(EcnUse::Only), 10);
    script.expect_at(400, data(1, 1000).ecn(Ecn::NotEct));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(5000)));
}

/// RFC 3168 (6.1): a peer that refuses ECN gets the usual response to losses.
#[test]
fn a_loss_counts_where_the_peer_refuses() {
    let config = with(EcnUse::Only).with(|it| it.window.initial = InitialWindow::Segments(10));
    let mut script = Script::connecting(&config);
    script.take();
    script.at(100);
    script.inject(syn_ack().sack_permitted());
    script.write(40_000);
    script.at(200);
    lose_the_first(&mut script, Flags(0));
    assert_eq!(script.connection().cwnd(), 5000);
    assert_eq!(script.connection().rto(), Duration::from_millis(300));
}
