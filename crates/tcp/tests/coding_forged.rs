//! Loss-Tolerant TCP under those who forge repairs or alter them on their way, know the numbers and not the data: the stream comes
//! whole. And what ends a transfer early or cuts it small.

use crate::coded::*;
use crate::pair::{Pair, Path};
use base::wire::checksum::Sum;
use base::wire::ip::{Ecn, Protocol, Repr};
use base::wire::tcp::Flags;
use base::wire::tcp::coding::{Place, Repair, Report};
use base::{Duration, Rng};
use longhaul_tcp::Event;

fn lossy(percent: u64) -> (Path, u64) {
    (Path { loss: percent as f64 / 100.0, ..Path::clean(30) }.through(10_000, 500), 7)
}

/// A packet like this one that says something else of blocks, with data of its own.
fn forged(packet: &[u8], rng: &mut Rng) -> Vec<u8> {
    rewrite(packet, |repr, data| {
        let coding = &mut repr.options.coding;
        let mut place =
            coding.place.unwrap_or(Place { block: 1, number: 0, sources: 1, repairs: 1, again: false });
        let mut repair =
            coding.repair.unwrap_or(Repair { start: repr.seq, tail: data.len() as u16, check: 0 });
        let was_repair = coding.repair.is_some();
        let mut any = |most: u64| rng.below(most);
        // One thing is wrong, or all of it.
        let what = any(9);
        let wrong = |at: u64| what == at || what == 8;
        if wrong(0) {
            place.block = place.block.wrapping_add(any(5) as u8).wrapping_sub(2);
        }
        if wrong(1) {
            place.sources = 1 + any(127) as u8;
        }
        if wrong(2) {
            place.number = any(256) as u8;
        }
        if wrong(3) {
            repair.start += any(5000) as u32;
        }
        if wrong(4) {
            repair.tail = any(2000) as u16;
        }
        if wrong(5) {
            repair.check ^= 1 << any(32);
        }
        if wrong(6) {
            data.iter_mut().for_each(|byte| *byte = any(256) as u8);
        }
        if wrong(7) {
            data.resize(1 + any(1400) as usize, 7);
        }
        place.again = false;
        if !was_repair {
            // Of a segment with data, one that ends where that begins.
            place.number = place.number.max(place.sources);
            repr.seq = repr.seq - data.len() as u32;
            if place.number == 255 {
                place.repairs = 127;
            }
        }
        (coding.place, coding.repair, coding.report) = (Some(place), Some(repair), None);
        repr.options.sack = Default::default();
        repr.flags = Flags::ACK;
    })
}

/// Somebody sends forged repairs before or behind real ones and data.
#[test]
fn forged_repairs_never_corrupt_the_stream() {
    for preset in PRESETS {
        for seed in 0..12 {
            let config = patient(preset);
            let (_, counts) = exchange((&config, &config), lossy(20), [150_000, 150_000], |pair| {
                let mut rng = Rng::named(seed, "forger");
                pair.alter = Some(Box::new(move |_, packet| {
                    let (repr, data) = parse(&packet);
                    let one_in = if repr.options.coding.repair.is_some() { 2 } else { 4 };
                    if data.is_empty() || rng.below(one_in) > 0 {
                        return vec![packet];
                    }
                    let false_one = forged(&packet, &mut rng);
                    if rng.below(2) == 0 { vec![false_one, packet] } else { vec![packet, false_one] }
                }));
            });
            assert!(counts.iter().flatten().any(|it| it.received.failed_checks > 0), "{counts:?}");
            assert!(counts.iter().flatten().all(|it| it.received.recovered > 0), "{counts:?}");
        }
    }
}

/// Repairs are altered on their way, in options or data, and the options of data too, and the checksum is mended.
#[test]
fn altered_repairs_never_corrupt_the_stream() {
    for preset in PRESETS {
        for seed in 0..12 {
            let config = patient(preset);
            exchange((&config, &config), lossy(15), [150_000, 150_000], |pair| {
                let mut rng = Rng::named(seed, "flips");
                pair.alter = Some(Box::new(move |_, packet| {
                    let (header, whole) = lengths(&packet);
                    let upto = if is_repair(&packet) && rng.below(2) == 0 { whole } else { header };
                    if is_syn(&packet) || upto == 20 || rng.below(4) > 0 {
                        return vec![packet];
                    }
                    // SACK blocks may lie, but not of what came: only the code's options here.
                    let altered = flip(&packet, (20, upto), &mut rng);
                    let same = |packet: &[u8]| parse(packet).0.options.sack;
                    // A repair whose option is no longer one is an old duplicate.
                    vec![if same(&altered) == same(&packet) { altered } else { packet }]
                }));
            });
        }
    }
}

/// Every place a segment can claim and every repair, with numbers that would count as data: nothing is delivered.
#[test]
fn a_repair_is_never_data() {
    let config = patient("lt-tcp");
    let mut pair = Pair::new(1, Path::clean(10), &config);
    pair.connect(&config);
    pair.run_until(hours(1), |pair| pair.ends[1].id.is_some());
    pair.run_until(Duration::from_secs(5), |_| false);
    let packets = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let log = packets.clone();
    pair.drop_if = Box::new(move |side, packet, _| {
        if side == 1 {
            log.borrow_mut().push(packet.to_vec());
        }
        side == 1
    });
    pair.ends[1].to_send = 400;
    pair.drain();
    let data = packets.borrow()[0].clone();
    let (genuine, payload) = parse(&data);
    assert_eq!((payload.len(), pair.ends[0].received), (400, 0));
    for ahead in [0, 1, 399, 400, 401, 1000, 5000] {
        for flags in
            [Flags::ACK, Flags::ACK | Flags::FIN, Flags::ACK | Flags::RST, Flags(0), Flags::FIN, Flags::RST]
        {
            if flags.has(Flags::RST) && ahead == 400 {
                // A reset that hits its number is one.
                continue;
            }
            let packet = rewrite(&data, |repr, data| {
                repr.seq = genuine.seq + ahead - 400;
                repr.flags = flags;
                let place = Place { block: 1, number: 1, sources: 1, repairs: 1, again: false };
                repr.options.coding.place = Some(place);
                repr.options.coding.repair = Some(Repair { start: genuine.seq, tail: 400, check: 1 });
                data.fill(9);
            });
            pair.inject(0, &packet);
            assert_eq!(pair.ends[0].received, 0);
            assert!(
                pair.ends[0].events.iter().all(|(_, event)| *event == Event::Connected),
                "{flags:?} {ahead}"
            );
        }
    }
    pair.inject(0, &data);
    assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (400, false));
}

/// A receiver lies in its reports: the sender goes on, and its estimate stays a rate.
#[test]
fn lying_reports_stop_nobody() {
    for preset in PRESETS {
        for seed in 0..6 {
            let config = patient(preset);
            exchange((&config, &config), lossy(10), [200_000, 200_000], |pair| {
                let mut rng = Rng::named(seed, "liar");
                pair.alter = Some(Box::new(move |_, packet| {
                    let mut any = || rng.below(256) as u8;
                    vec![rewrite(&packet, |repr, _| {
                        if let Some(report) = &mut repr.options.coding.report {
                            let honest = *report;
                            *report =
                                Report { ended: [(any(), any()), (any(), any())], missing: (any(), any()) };
                            match any() % 4 {
                                0 => report.ended = [(honest.ended[0].0, any()), honest.ended[1]],
                                1 => (report.ended, report.missing) = (honest.ended, (honest.missing.0, 255)),
                                2 => report.missing.0 = honest.ended[0].0.wrapping_add(1),
                                _ => {}
                            }
                        }
                    })]
                }));
            });
        }
    }
}

/// What a router answers to this packet.
fn too_big(packet: &[u8], mtu: u16) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(&packet[..28]);
    let sum = Sum::of(&icmp).finish();
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let sender = [packet[12], packet[13], packet[14], packet[15]];
    let header = Repr::new([10, 9, 9, 9].into(), sender.into(), Protocol::ICMP, Ecn::NotEct, icmp.len());
    let mut answer = vec![0; header.header_len()];
    header.emit(&mut answer);
    answer.extend(icmp);
    answer
}

/// The path gets narrower in the middle of a transfer, more than once, and routers say so.
#[test]
fn a_path_gets_narrower() {
    for preset in PRESETS {
        for (loss, first) in [(0, 1200), (10, 1200), (10, 600), (30, 900)] {
            let config = patient(preset);
            let mut pair = Pair::new(5, lossy(loss).0, &config);
            let reports = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let log = reports.clone();
            let mut sent = 0;
            pair.drop_if = Box::new(move |side, packet, _| {
                sent += u64::from(side == 1);
                let mtu = if sent < 100 {
                    1500
                } else if sent < 400 {
                    first
                } else {
                    576
                };
                let drops = side == 1 && packet.len() > mtu;
                if drops {
                    log.borrow_mut().push(too_big(packet, mtu as u16));
                }
                drops
            });
            pair.connect(&config);
            (pair.ends[1].to_send, pair.ends[1].finish) = (600_000, true);
            (pair.ends[0].finish, pair.ends[0].to_send) = (true, 1000);
            pair.drain();
            let done = pair
                .run_until(hours(1), |pair| pair.saw(0, Event::PeerFinished) || !reports.borrow().is_empty());
            assert!(done);
            while !pair.saw(0, Event::PeerFinished) {
                let waiting: Vec<_> = reports.borrow_mut().drain(..).collect();
                for report in waiting {
                    pair.inject(1, &report);
                }
                assert!(
                    pair.now < base::Instant::ZERO + hours(1),
                    "{preset} at {loss} %: {}",
                    pair.ends[0].received
                );
                assert!(pair.step());
            }
            assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (600_000, false));
            expect_silence(&mut pair);
        }
    }
}

/// The connection is reset or aborted in the middle of a block: no timer of the code outlives it.
#[test]
fn a_connection_ends_in_a_block() {
    for preset in PRESETS {
        for aborts in 0..2 {
            for at in [20, 50, 51, 52, 53, 100, 200] {
                let config = patient(preset);
                let mut pair = Pair::new(at, lossy(10).0, &config);
                pair.connect(&config);
                (pair.ends[0].to_send, pair.ends[1].to_send) = (500_000, 500_000);
                pair.drain();
                pair.run_until(hours(1), |pair| pair.transmitted > at);
                let id = pair.ends[aborts].id.unwrap();
                pair.hosts[aborts].abort(pair.now, id).unwrap();
                pair.drain();
                expect_silence(&mut pair);
            }
        }
    }
}

/// Bytes that are written one by one, with and without rests, and a last one with the FIN: each is a block, or some are.
#[test]
fn tiny_writes_come_whole() {
    for preset in PRESETS {
        for (nagle, rest, size) in
            [(false, 0, 1), (false, 3, 7), (true, 3, 7), (false, 200, 90), (true, 500, 1)]
        {
            let config = patient(preset).with(|it| it.nagle = nagle);
            let mut pair = Pair::new(3, lossy(20).0, &config);
            pair.connect(&config);
            pair.run_until(hours(1), |pair| pair.ends[1].id.is_some());
            for turn in 0..300 {
                let end = &mut pair.ends[1];
                end.to_send += size;
                end.finish = turn == 299;
                pair.drain();
                let due = pair.now.saturating_since(base::Instant::ZERO) + Duration::from_millis(rest);
                pair.run_until(due, |_| false);
            }
            pair.ends[0].finish = true;
            pair.drain();
            assert!(pair.run_until(hours(2), |pair| pair.saw(0, Event::PeerFinished)), "{preset}");
            assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (300 * size, false));
            expect_silence(&mut pair);
        }
    }
}

/// A connection that has nothing to send is silent, though it stays open.
#[test]
fn an_idle_connection_sleeps() {
    for preset in PRESETS {
        for seed in 0..10 {
            let config = patient(preset);
            let mut pair = Pair::new(seed, Path { loss: 0.3, ..lossy(0).0 }, &config);
            pair.connect(&config);
            (pair.ends[0].to_send, pair.ends[1].to_send) = (20_000 + seed * 777, 20_000);
            pair.drain();
            expect_silence(&mut pair);
            for side in 0..2 {
                assert_eq!(pair.ends[side].received, pair.ends[1 - side].sent);
                assert_eq!(pair.connection(side).in_flight(), 0);
                assert_eq!(pair.connection(side).unacknowledged(), 0);
            }
        }
    }
}
