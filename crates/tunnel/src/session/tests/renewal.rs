//! Keys that are renewed, and that expire.

use super::*;

#[test]
fn data_under_the_old_keys_still_counts_until_new_data_came() {
    let mut pair = Pair::established();
    let old = [b"a", b"b"].map(|payload| sealed(&mut pair.caller, at(1), payload));
    let answer = pair.answer(at(2));
    assert_eq!(opened(&mut pair.called, at(3), &old[0]), Ok((b"a".to_vec(), false)));
    give(&mut pair.caller, at(3), CALLED, &answer).unwrap();
    let new = sealed(&mut pair.caller, at(4), b"c");
    assert_eq!(opened(&mut pair.called, at(5), &new), Ok((b"c".to_vec(), false)));
    assert_eq!(opened(&mut pair.called, at(6), &old[1]), Ok((b"b".to_vec(), true)));
}

/// New keys under which nothing came must not displace those that the peer still uses.
#[test]
fn keys_in_use_outlast_two_handshakes_without_data() {
    let mut pair = Pair::established();
    let old = sealed(&mut pair.called, at(1), b"old");
    for second in 1..3 {
        let answer = pair.answer(at(second * 1000));
        give(&mut pair.caller, at(second * 1000), CALLED, &answer).unwrap();
        // The datagram that would confirm the keys is lost.
        while pair.caller.poll_transmit().is_some() {}
    }
    assert_eq!(opened(&mut pair.caller, at(3000), &old), Ok((b"old".to_vec(), false)));
}

#[test]
fn keys_expire() {
    let mut pair = Pair::established();
    pair.called.handle_timeout(at(299_999));
    assert!(pair.called.is_established());
    pair.called.handle_timeout(at(300_000));
    assert_eq!(pair.called.poll_event(), Some(Event::Lost));
    assert!(!pair.called.is_established());
}

/// The keys before those in use expire by their own age, not by that of their successors.
#[test]
fn previous_keys_expire() {
    for (now, want) in [(299_999, Ok((b"old".to_vec(), true))), (300_000, Err(Rejection::UnknownSession))] {
        let mut pair = Pair::established();
        let old = sealed(&mut pair.caller, at(1), b"old");
        let answer = pair.answer(at(200_000));
        give(&mut pair.caller, at(200_000), CALLED, &answer).unwrap();
        let confirming = sent(&mut pair.caller);
        give(&mut pair.called, at(200_000), CALLER, &confirming).unwrap();
        pair.called.handle_timeout(at(now));
        assert!(pair.called.is_established());
        assert_eq!(opened(&mut pair.called, at(now), &old), want, "{now} ms");
    }
}

/// Keys that nobody confirmed expire too: nobody can hold their first datagram back for long.
#[test]
fn unconfirmed_keys_expire() {
    let mut pair = Pair::new();
    let answer = pair.answer(at(0));
    give(&mut pair.caller, at(0), CALLED, &answer).unwrap();
    let confirming = sent(&mut pair.caller);
    assert_eq!(pair.called.poll_timeout(), Some(at(300_000)));
    pair.called.handle_timeout(at(300_000));
    assert_eq!(give(&mut pair.called, at(300_000), CALLER, &confirming), Err(Rejection::UnknownSession));
}
