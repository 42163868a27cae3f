//! A peer that sends anything: no segment breaks the host, and only the peer's own stream is ever delivered.

use crate::script::*;
use base::units::Size;
use base::wire::tcp::Flags;
use longhaul_tcp::{Recovery, State};
use proptest::prelude::*;

fn anything() -> impl Strategy<Value = Seg> {
    let near = prop_oneof![8 => -50_i64..6000, 1 => any::<i32>().prop_map(i64::from)];
    let acked = prop_oneof![8 => -50_i64..9000, 1 => any::<i32>().prop_map(i64::from)];
    // Mostly plain acknowledgements; now and then any bits at all.
    let flags = prop_oneof![20 => Just(ACK), 2 => Just(FIN | ACK), 1 => any::<u8>().prop_map(Flags)];
    let blocks = proptest::collection::vec((0_u32..9000, 0_u32..9000), 0..4);
    (flags, near, acked, 0_usize..1200, any::<u16>(), blocks).prop_map(
        |(flags, seq, ack, len, window, sack)| Seg {
            flags,
            seq,
            ack: Some(ack),
            len,
            window: Some(window),
            sack: Some(sack),
            ..Seg::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_segment_breaks_a_connection(
        steps in proptest::collection::vec((anything(), 0_u64..400, 0_usize..3000), 1..80),
    ) {
        let config = plain().with(|it| {
it.window.receive_buffer = Size(5000);
it.window.send_buffer = Size(9000);
it.limits.time_wait = base::Duration::from_secs(9000);
});
        let mut script = Script::established(&config);
        let id = script.id.unwrap();
        let mut at = 100;
        for (segment, wait, amount) in steps {
            script.inject(segment);
            if script.connection().failure().is_some() || script.connection().state() == State::TimeWait {
                break;
            }
            if script.host.write(script.now, id, &[]).is_ok() {
                script.write(amount);
            }
            script.read(amount);
            prop_assert!(script.connection().readable() <= 5000);
            prop_assert!(script.connection().in_flight() <= 2 * script.connection().flight_size());
            prop_assert!(script.connection().cwnd() >= u64::from(script.connection().mss()));
            at += wait;
            script.at(at);
            script.take_count();
        }
    }

    #[test]
    fn no_bytes_break_a_host(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), cut in 0_usize..200) {
        let mut script = Script::established(&plain());
        prop_assert!(script.inject_packet(&bytes).is_err());
        // Bytes in the shape of a packet for the host, with checksums that hold up to the segment's own.
        let good = script.packet(&data(1, 50));
        bytes.truncate(cut);
        for (at, byte) in bytes.iter().enumerate() {
            let mut bent = good.clone();
            bent[20 + at % 70] ^= byte;
            let _ = script.inject_packet(&bent);
        }
        prop_assert_eq!(script.connection().state(), State::Established);
        script.read(100);
    }
}

/// A peer that acknowledges everything selectively first (RFC 2018, 8, lets it), and then cumulatively, which brings no new bytes:
/// recovery is over all the same, and the FIN goes out once.
#[test]
fn what_was_acknowledged_selectively_ends_recovery_too() {
    for scheme in [Recovery::Sack, Recovery::Fack, Recovery::Rack] {
        let config = plain().with(|it| it.recovery.scheme = scheme);
        let mut script = Script::with_window(&config, 8);
        script.write(8000);
        script.at(200);
        for end in [3001, 5001, 8001] {
            script.inject(ack(1, 1).sack(&[(1001, end)]));
        }
        script.inject(ack(1, 1).sack(&[(1, 8001)]));
        script.take_count();
        script.inject(ack(1, 8001));
        script.finish();
        assert!(!script.connection().recovering(), "{scheme:?}");
        assert_eq!(script.take_count(), 1, "{scheme:?}");
    }
}
