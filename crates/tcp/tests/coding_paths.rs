//! Loss-Tolerant TCP over bad paths and past those who know nothing of it: the stream comes whole, and then there is silence.

use crate::coded::*;
use crate::pair::Path;
use base::units::Size;
use base::{Duration, SeqNum};
use longhaul_tcp::TcpConfig;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Loss of up to half of all packets both ways, duplication, reordering, marks and wire damage.
    #[test]
    fn every_path_carries_the_stream(
        seed: u64, preset in 0_usize..2, loss in 0_u32..=50, duplication in 0_u32..30, jitter in 0_u64..60,
        marks in 0_u32..20, damage in 0_u64..10, sequence: u32, latency in 1_u64..200,
        bytes in (0_u64..60_000, 0_u64..60_000),
    ) {
        let config = patient(PRESETS[preset]).with(|it| {
            it.initial_sequence = Some(SeqNum(sequence));
        });
        let path = Path {
            loss: f64::from(loss) / 100.0,
            duplication: f64::from(duplication) / 100.0,
            jitter: Duration::from_millis(jitter),
            marks: f64::from(marks) / 100.0,
            ..Path::clean(latency)
        };
        exchange((&config, &config), (path, seed), [bytes.0, bytes.1], |pair| {
            let mut rng = base::Rng::named(seed, "damage");
            pair.alter = Some(Box::new(move |_, mut packet| {
                if rng.below(100) < damage {
                    let bit = rng.below((packet.len() - 20) as u64 * 8) as usize + 160;
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
                vec![packet]
            }));
        });
    }
}

fn lossy(percent: u64) -> (Path, u64) {
    (Path { loss: percent as f64 / 100.0, ..Path::clean(30) }.through(10_000, 500), 7)
}

/// The numbers of data and of repairs wrap in the middle.
#[test]
fn sequence_numbers_wrap() {
    for preset in PRESETS {
        for back in [1, 500, 40_000, 150_000] {
            let config =
                patient(preset).with(|it| it.initial_sequence = Some(SeqNum(0_u32.wrapping_sub(back))));
            let (_, counts) = exchange((&config, &config), lossy(20), [300_000, 300_000], |_| {});
            assert!(
                counts
                    .iter()
                    .flatten()
                    .all(|it| it.received.recovered > 10 && it.received.failed_checks == 0),
                "{counts:?}"
            );
        }
    }
}

/// Repairs of one direction alone are lost, some of them or all.
#[test]
fn repairs_are_lost() {
    for preset in PRESETS {
        for (lost, loss) in [(50, 10), (100, 0), (100, 20)] {
            let config = patient(preset);
            let (_, counts) = exchange((&config, &config), lossy(loss), [200_000, 200_000], |pair| {
                let mut rng = base::Rng::named(3, "repairs");
                pair.drop_if = Box::new(move |_, packet, _| is_repair(packet) && rng.below(100) < lost);
            });
            let [client, server] = counts.map(Option::unwrap);
            assert!(
                client.sent.proactive_sent > 10 && server.sent.proactive_sent > 10,
                "{preset} {counts:?}"
            );
            assert_eq!(client.received.repairs_received == 0, lost == 100);
        }
    }
}

/// A box between the ends takes the options from all that is no SYN: repairs are taken for old duplicates, never for data, and the
/// sender finds out that nobody reports.
#[test]
fn options_are_stripped_behind_the_handshake() {
    for preset in PRESETS {
        for loss in [0, 10] {
            let config = patient(preset);
            let (pair, counts) = exchange((&config, &config), lossy(loss), [1_000_000, 1_000_000], |pair| {
                pair.alter =
                    Some(Box::new(|_, packet| vec![if is_syn(&packet) { packet } else { strip(&packet) }]));
            });
            for it in counts.map(Option::unwrap) {
                assert_eq!((it.received.repairs_received, it.received.recovered), (0, 0));
                assert!(it.sent.proactive_sent > 0 && it.sent.blocks_sent < 200, "{it:?}");
            }
            drop(pair);
        }
    }
}

/// Where nobody takes repairs any more losses are congestion again, whatever ECN says (RFC 5681, 3.1).
#[test]
fn losses_count_when_the_code_is_given_up() {
    for preset in PRESETS {
        let config = patient(preset);
        let mut pair = crate::pair::Pair::new(7, Path::clean(30).through(10_000, 500), &config);
        pair.alter = Some(Box::new(|_, packet| vec![if is_syn(&packet) { packet } else { strip(&packet) }]));
        pair.connect(&config);
        pair.run_until(hours(1), |pair| pair.ends[1].id.is_some());
        pair.ends[0].to_send = 8_000_000;
        let places = std::rc::Rc::new(std::cell::Cell::new(0));
        let (seen, mut count) = (std::rc::Rc::clone(&places), 0);
        pair.drop_if = Box::new(move |side, packet, _| {
            count += u64::from(side == 0);
            if side == 0 && count > 4000 && parse(packet).0.options.coding.place.is_some() {
                seen.set(seen.get() + 1);
            }
            side == 0 && count == 5000
        });
        let mut windows = Vec::new();
        pair.drain();
        pair.run_until(hours(1), |pair| {
            windows.push(pair.connection(0).cwnd());
            pair.ends[1].received == 8_000_000
        });
        assert_eq!(places.get(), 0, "{preset}: data are still numbered for the code");
        let fell = windows.windows(2).any(|pair| pair[1] * 4 < pair[0] * 3);
        assert!(fell, "{preset}: no loss lowers the window");
    }
}

/// A box takes the options from data and repairs alone; acknowledgements keep theirs.
#[test]
fn options_are_stripped_from_data() {
    for preset in PRESETS {
        for way in 0..2 {
            let config = patient(preset);
            exchange((&config, &config), lossy(10), [300_000, 300_000], |pair| {
                pair.alter = Some(Box::new(move |side, packet| {
                    let strips = side == way && !parse(&packet).1.is_empty();
                    vec![if strips { strip(&packet) } else { packet }]
                }));
            });
        }
    }
}

/// A box takes the offer from SYNs, or from the answers to them alone: then one end believes in a code and the other does not.
#[test]
fn offers_are_stripped() {
    for preset in PRESETS {
        for way in [Some(0), Some(1), None] {
            let config = patient(preset);
            let (_, counts) = exchange((&config, &config), lossy(10), [500_000, 500_000], |pair| {
                pair.alter = Some(Box::new(move |side, packet| {
                    let strips = is_syn(&packet) && way.is_none_or(|way| way == side);
                    vec![if strips { strip(&packet) } else { packet }]
                }));
            });
            for it in counts.iter().flatten() {
                assert_eq!((it.received.repairs_received, it.received.recovered), (0, 0), "{way:?}");
                // The server has seen an offer, and stops when nobody reports.
                assert!(it.sent.proactive_sent < 400 && it.sent.blocks_sent < 110, "{way:?} {it:?}");
                assert!(it.sent.proactive_sent == 0 || way == Some(1), "{way:?} {it:?}");
            }
        }
    }
}

/// Towards a peer without the option it is SACK TCP, with full segments, and losses count.
#[test]
fn a_peer_without_the_code_gets_sack_tcp() {
    let plain = TcpConfig::preset("rfc").unwrap().with(|it| {
        it.limits.time_wait = Duration::from_secs(1);
        it.ecn = longhaul_tcp::config::EcnUse::On;
    });
    for preset in PRESETS {
        for coder in 0..2 {
            let coding = patient(preset);
            let ends = if coder == 0 { (&coding, &plain) } else { (&plain, &coding) };
            let mut windows = Vec::new();
            let (path, seed) = (Path::clean(30).through(10_000, 500), 5);
            let mut pair = crate::pair::Pair::new(seed, path, ends.1);
            pair.connect(ends.0);
            pair.run_until(hours(1), |pair| pair.ends[1].id.is_some());
            pair.ends[coder].to_send = 2_000_000;
            let mut count = 0;
            pair.drop_if = Box::new(move |side, packet, _| {
                assert!(!is_repair(packet) && parse(packet).0.options.coding.place.is_none());
                count += u64::from(side == coder);
                side == coder && count == 300
            });
            pair.drain();
            pair.run_until(hours(1), |pair| {
                windows.push(pair.connection(coder).cwnd());
                pair.ends[1 - coder].received == 2_000_000
            });
            assert!(!pair.ends[1 - coder].corrupt);
            assert_eq!(pair.connection(coder).mss(), 1460);
            let fell = windows.windows(2).any(|pair| pair[1] * 4 < pair[0] * 3);
            assert!(fell, "{preset}: a loss is congestion where nothing is coded");
        }
    }
}

/// SYNs are lost, with the offer or without it.
#[test]
fn handshakes_are_lost() {
    for preset in PRESETS {
        for side in 0..2 {
            for lost in 1..8 {
                let config = patient(preset);
                let (_, counts) = exchange((&config, &config), lossy(5), [50_000, 50_000], |pair| {
                    pair.drop_if =
                        Box::new(move |from, packet, count| from == side && is_syn(packet) && count < lost);
                });
                // An end whose first SYNs were lost still codes.
                if lost < 4 {
                    assert!(
                        counts.iter().all(|it| it.is_some_and(|it| it.sent.proactive_sent > 0)),
                        "{counts:?}"
                    );
                }
            }
        }
    }
}

/// Somebody drops SYNs and answers that offer a code: the connection opens without.
#[test]
fn offers_are_dropped() {
    for preset in PRESETS {
        for side in 0..2 {
            let config = patient(preset);
            let (_, counts) = exchange((&config, &config), lossy(0), [5000, 5000], |pair| {
                pair.drop_if =
                    Box::new(move |from, packet, _| from == side && parse(packet).0.options.coding.offered);
            });
            assert!(counts.iter().flatten().all(|it| it.received.repairs_received == 0), "{counts:?}");
        }
    }
}

/// Small buffers close the window again and again, and a reader that rests lets it be probed.
#[test]
fn windows_close() {
    for preset in PRESETS {
        for buffer in [1500, 3000, 9000] {
            let config = patient(preset).with(|it| it.window.receive_buffer = Size(buffer));
            exchange((&config, &config), lossy(10), [60_000, 60_000], |_| {});
        }
        let config = patient(preset).with(|it| it.window.receive_buffer = Size(20_000));
        let mut pair = crate::pair::Pair::new(3, Path { loss: 0.1, ..Path::clean(30) }, &config);
        pair.connect(&config);
        pair.ends[0].stalled = true;
        pair.run_until(hours(1), |pair| pair.ends[1].id.is_some());
        (pair.ends[1].to_send, pair.ends[1].finish) = (100_000, true);
        pair.drain();
        // An hour of probes: each is a segment, and nothing beside it.
        pair.run_until(hours(1), |_| false);
        let before = pair.transmitted;
        pair.run_until(hours(2), |_| false);
        assert!(pair.transmitted - before < 4 * 900 + 100, "{}", pair.transmitted - before);
        pair.ends[0].stalled = false;
        pair.ends[0].finish = true;
        pair.drain();
        assert!(pair.run_until(hours(3), |pair| pair.saw(0, longhaul_tcp::Event::PeerFinished)));
        assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (100_000, false));
        expect_silence(&mut pair);
    }
}

/// A host with little memory: it keeps to its limit.
#[test]
fn memory_is_limited() {
    for preset in PRESETS {
        let config = patient(preset);
        let (pair, _) = exchange((&config, &config), lossy(20), [300_000, 300_000], |pair| {
            for host in &mut pair.hosts {
                host.limit_memory(60_000);
            }
        });
        drop(pair);
        let mut pair = crate::pair::Pair::new(3, Path { loss: 0.2, ..Path::clean(30) }, &config);
        pair.hosts.iter_mut().for_each(|host| host.limit_memory(60_000));
        pair.connect(&config);
        (pair.ends[0].to_send, pair.ends[1].to_send) = (300_000, 300_000);
        pair.drain();
        pair.run_until(hours(10), |pair| {
            assert!(
                pair.hosts.iter().all(|host| host.memory() <= 60_000),
                "{:?}",
                pair.hosts.each_ref().map(longhaul_tcp::Host::memory)
            );
            pair.ends.iter().all(|end| end.received == 300_000)
        });
        assert!(pair.ends.iter().all(|end| end.received == 300_000 && !end.corrupt));
    }
}
