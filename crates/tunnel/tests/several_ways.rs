//! Two ends with several ways between them.

use base::wire::ip::Protocol;
use base::{Duration, Instant, Rate};
use link::{LineId, When};
use longhaul_tunnel::Event;

use crate::between::{Line, OTHER, Pair, Setup};

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A way that carries so much, and takes so long in each direction.
fn way(kbit: u64, delay_ms: u64) -> Line {
    let mut line = Line::CLEAR;
    line.delay = millis(delay_ms);
    line.bottleneck = Some((Rate::from_bps(kbit * 1000), millis(300)));
    line
}

/// Nothing passes.
fn dark(line: &Line) -> Line {
    let mut dark = line.clone();
    dark.fates = vec![1];
    dark
}

/// A satellite's and a nearer one, a quarter as fast.
const WAYS: [(u64, u64); 2] = [(8000, 300), (2000, 25)];

fn pair(when: [When; 2]) -> Pair {
    let mut pair = Pair::new(Setup { when, ..Setup::of("", false).over(2) });
    for (number, (kbit, delay)) in WAYS.into_iter().enumerate() {
        pair.set_way(number, &way(kbit, delay));
    }
    pair.pass(millis(5000));
    pair
}

/// For so long one end sends a packet of 1000 bytes each `interval` to the other, for which somebody waits.
fn stream(pair: &mut Pair, from: usize, interval: Duration, span: Duration) {
    send(pair, from, INTERACTIVE, interval, span);
}

/// With a mark, since what is thin counts as something else than what is not.
fn send(pair: &mut Pair, from: usize, dscp: u8, interval: Duration, span: Duration) {
    for _ in 0..span.as_micros() / interval.as_micros() {
        pair.offer(from, 1000, dscp, OTHER);
        pair.pass(interval);
    }
}

const INTERACTIVE: u8 = 18;
const BULK: u8 = 8;

/// The longest time between two packets that came out at an end, of those from the `first` on.
fn longest_gap(pair: &Pair, at: usize, first: usize) -> Duration {
    let times = &pair.delivered_at(at)[first..];
    times.windows(2).map(|pair| pair[1].saturating_since(pair[0])).max().expect("there are two")
}

/// Mbit/s that come out while more is offered than both carry.
fn filled(pair: &mut Pair, from: usize, span: Duration) -> f64 {
    let before = pair.delivered(1 - from).len();
    send(pair, from, BULK, Duration::from_micros(750), span);
    (pair.delivered(1 - from).len() - before) as f64 * 8000.0 / span.as_secs_f64() / 1e6
}

/// Whether the packets of each of the four flows came in order.
fn is_in_order(pair: &Pair, at: usize) -> bool {
    let of = |flow| pair.delivered(at).iter().filter(move |number| *number % 4 == flow);
    (0..4).all(|flow| of(flow).is_sorted())
}

/// In either direction, though the second end knows nothing of the ways but what comes over them.
#[test]
fn a_download_has_the_sum_of_both() {
    for from in [0, 1] {
        let mut pair = pair([When::Always; 2]);
        filled(&mut pair, from, millis(10_000));
        let rate = filled(&mut pair, from, millis(20_000));
        assert!(rate > 8.6, "{rate} Mbit/s of 10 from {from}");
        assert!(is_in_order(&pair, 1 - from));
        tells_of_both_together(&pair, from);
    }
}

/// A status has each way by the name of its carrier, and what all are together: the sum of what they carry, the nearest one's round trip.
fn tells_of_both_together(pair: &Pair, at: usize) {
    let mut status = pair.end(at).status(pair.now);
    let names = ["sky", "mobile"].map(str::to_owned);
    status.name_paths(if at == 0 { &names } else { &[] });
    let status = serde_json::to_value(status).unwrap();
    let (all, each) = (&status["path"], status["paths"].as_array().unwrap());
    let called: Vec<_> = each.iter().map(|path| path["name"].as_str().unwrap()).collect();
    assert_eq!(called, if at == 0 { ["sky", "mobile"] } else { ["path-1", "path-2"] });
    let sum = |key: &str| each.iter().map(|path| path[key].as_u64().unwrap()).sum::<u64>();
    for key in ["carries", "rate", "datagrams_answered", "datagrams_lost"] {
        assert_eq!(all[key].as_u64(), Some(sum(key)), "{key}: {status:#}");
    }
    assert!(all["carries"].as_u64().unwrap().abs_diff(10_000_000) < 500_000, "{status:#}");
    assert_eq!(all["round_trip_seconds"], each[1]["round_trip_seconds"]);
    assert!(all["loss"].is_f64(), "{status:#}");
}

/// What a stream needs the nearer way carries, and so it is as early as there.
#[test]
fn what_is_little_goes_the_nearer_way() {
    for from in [0, 1] {
        let mut pair = pair([When::Always; 2]);
        stream(&mut pair, from, millis(20), millis(3000));
        pair.pass(millis(1000));
        let (far, before) = (pair.sent_over(0), pair.delivered(1 - from).len());
        stream(&mut pair, from, millis(20), millis(10_000));
        pair.pass(millis(100));
        assert_eq!(pair.delivered(1 - from).len(), before + 500);
        let far = pair.sent_over(0) - far;
        assert!(far < 25_000, "{far} of 500 kB went by satellite");
        let gap = longest_gap(&pair, 1 - from, before);
        assert!(gap < millis(30), "{gap:?}");
    }
}

/// The nearer way vanishes without a word: nothing of the stream is missing, it goes on over the other, and comes back with the way.
#[test]
fn a_stream_goes_on_when_its_way_is_gone() {
    for from in [0, 1] {
        let mut pair = pair([When::Always; 2]);
        stream(&mut pair, from, millis(20), millis(5000));
        pair.set_way(1, &dark(&way(WAYS[1].0, WAYS[1].1)));
        let (before, sent) = (pair.delivered(1 - from).len() - 1, pair.sent_over(1));
        stream(&mut pair, from, millis(20), millis(10_000));
        let sent = pair.sent_over(1) - sent;
        assert!(sent < 400_000, "{sent} bytes went the way that was gone, from {from}");
        let gap = longest_gap(&pair, 1 - from, before);
        assert!(gap <= millis(4 * 600 + 200), "{gap:?} from {from}");
        let near = LineId::new(1).unwrap();
        let told = |pair: &Pair, is_open| {
            let told = Event::Line { line: near, is_open };
            (0..2).all(|end| pair.events(end).contains(&told))
        };
        // Where anything passes a question a second finds out that nothing comes back.
        pair.pass(millis(25_000));
        assert!(told(&pair, true) && told(&pair, false), "{:?}", pair.events(0));
        let status = serde_json::to_value(pair.end(0).status(pair.now)).unwrap();
        let each = status["paths"].as_array().unwrap().iter();
        let answered: u64 = each.map(|path| path["datagrams_answered"].as_u64().unwrap()).sum();
        assert_eq!(status["path"]["datagrams_answered"].as_u64(), Some(answered), "of the silent one too");
        pair.set_way(1, &way(WAYS[1].0, WAYS[1].1));
        stream(&mut pair, from, millis(20), millis(3000));
        let near = pair.sent_over(1);
        stream(&mut pair, from, millis(20), millis(2000));
        assert!(pair.sent_over(1) - near > 90_000, "it is used again");
        pair.pass(millis(2000));
        assert!(is_in_order(&pair, 1 - from), "from {from}");
        assert_eq!(pair.delivered(1 - from).len(), 1000, "from {from}");
    }
}

/// What has left over a way that is gone, sums of it too, is counted on no more: nothing is sent there again and again, whatever the other way may be
/// used for.
#[test]
fn nothing_is_sent_for_ever_over_a_way_that_is_gone() {
    for (dscp, bytes) in [(BULK, 1000), (INTERACTIVE, 1000), (BULK, 80), (0, 80)] {
        let (mut pair, mut sent) = (pair([When::Always, When::Metered]), 0);
        for _ in 0..200 {
            pair.offer(0, bytes, dscp, OTHER);
            pair.pass(millis(10));
        }
        pair.set_way(0, &dark(&way(WAYS[0].0, WAYS[0].1)));
        for number in 0..1000 {
            pair.offer(0, bytes, dscp, OTHER);
            pair.pass(millis(10));
            // What was under way has come over the other way by then.
            if number == 800 {
                sent = pair.sent_over(0);
            }
        }
        let sent = pair.sent_over(0) - sent;
        assert!(sent < 100_000, "{sent} bytes, with packets of {bytes} and mark {dscp}");
        pair.pass(millis(2000));
        assert_eq!(pair.delivered(1).len(), 1200);
    }
}

/// Datagrams that grow old are not given up for that, nor for being thin.
#[test]
fn datagrams_go_on_too() {
    for (from, len) in [(0, 200), (1, 200), (0, 1000)] {
        let mut pair = pair([When::Always; 2]);
        let send = |pair: &mut Pair, count: u32| {
            for _ in 0..count {
                pair.offer(from, len, 0, Protocol::UDP);
                pair.pass(millis(20));
            }
        };
        send(&mut pair, 250);
        pair.set_way(1, &dark(&way(WAYS[1].0, WAYS[1].1)));
        send(&mut pair, 200);
        pair.set_way(1, &way(WAYS[1].0, WAYS[1].1));
        send(&mut pair, 200);
        pair.pass(millis(3000));
        assert_eq!(pair.delivered(1 - from).len(), 650, "of {len} bytes from {from}");
    }
}

/// For minutes, so that keys and addresses of the dead way are forgotten; and either way may be the one.
#[test]
fn a_way_that_was_gone_for_long_is_used_again() {
    for gone in [0, 1] {
        let mut pair = pair([When::Always; 2]);
        let (kbit, delay) = WAYS[gone];
        pair.set_way(gone, &dark(&way(kbit, delay)));
        stream(&mut pair, 0, millis(50), Duration::from_secs(400));
        assert!(pair.is_connected(), "over the other way");
        let before = pair.delivered(1).len();
        assert!(before > 7900, "{before} of 8000");
        pair.set_way(gone, &way(kbit, delay));
        pair.pass(millis(5000));
        let sent = pair.sent_over(gone);
        filled(&mut pair, 0, millis(15_000));
        assert!(pair.sent_over(gone) - sent > 15 * kbit * 1000 / 8 / 2, "{gone}: it is used again");
    }
}

/// A session begins over whichever way there is.
#[test]
fn either_way_is_enough_to_begin() {
    for gone in [0, 1] {
        let mut pair = Pair::new(Setup::of("", false).over(2));
        pair.set_way(gone, &dark(&Line::CLEAR));
        pair.pass(millis(5000));
        assert!(pair.is_connected(), "without {gone}");
        stream(&mut pair, 1, millis(20), millis(1000));
        pair.pass(millis(500));
        assert_eq!(pair.delivered(0).len(), 50, "without {gone}");
    }
}

/// Its address changes, as with a new lease: the peer follows once the new one is proved.
#[test]
fn a_way_may_be_elsewhere_from_one_packet_to_the_next() {
    let mut pair = pair([When::Always; 2]);
    stream(&mut pair, 1, millis(20), millis(5000));
    pair.move_to(1, 5);
    let before = pair.delivered(0).len() - 1;
    stream(&mut pair, 1, millis(20), millis(5000));
    let gap = longest_gap(&pair, 0, before);
    assert!(gap <= millis(4 * 600 + 200), "{gap:?}");
    let near = pair.sent_over(1);
    stream(&mut pair, 1, millis(20), millis(2000));
    assert!(pair.sent_over(1) - near > 90_000, "it is used at the new place");
    pair.pass(millis(2000));
    assert!(is_in_order(&pair, 0));
    assert_eq!(pair.delivered(0).len(), 600);
}

/// What costs something carries signs of life while the other suffices, and the peer is told so.
#[test]
fn metered_and_backup_ways_are_spared() {
    for (when, from) in [(When::Metered, 0), (When::Metered, 1), (When::Backup, 0), (When::Backup, 1)] {
        let mut pair = pair([When::Always, when]);
        stream(&mut pair, from, millis(20), millis(30_000));
        let (far, near) = (pair.sent_over(0), pair.sent_over(1));
        assert!(near * 100 <= far, "{near} beside {far} bytes, {when:?} from {from}");
        pair.set_way(0, &dark(&way(WAYS[0].0, WAYS[0].1)));
        stream(&mut pair, from, millis(20), millis(10_000));
        assert!(pair.sent_over(1) - near > 300_000, "{when:?} from {from}: it is there in need");
    }
}

/// A protocol that knows nothing of several lines goes on over the first, whatever comes over others.
#[test]
fn others_stay_with_the_first_way() {
    let mut pair = Pair::new(Setup::of("protocol = \"slacp\"", false).over(2));
    pair.pass(millis(3000));
    stream(&mut pair, 0, millis(20), millis(1000));
    pair.pass(millis(500));
    assert_eq!((pair.delivered(1).len(), pair.sent_over(1)), (50, 0));
}

/// From the first moment on, when of each way little is known, and one is gone then.
#[test]
fn nothing_is_lost_while_ways_are_found_out() {
    for start in (0..4000).step_by(100) {
        for from in [0, 1] {
            let mut pair = Pair::new(Setup::of("", true).over(2));
            for (number, (kbit, delay)) in WAYS.into_iter().enumerate() {
                pair.set_way(number, &way(kbit * (1 + number as u64), delay));
            }
            pair.pass(millis(1500 + start));
            for number in 0..200 {
                if number == 18 {
                    pair.set_way(1, &dark(&way(4000, 25)));
                }
                pair.offer(from, 228, 0, Protocol::UDP);
                pair.pass(millis(20));
            }
            pair.pass(millis(3000));
            let all: std::collections::BTreeSet<u32> = pair.delivered(1 - from).iter().copied().collect();
            let missing: Vec<u32> = (0..200).filter(|number| !all.contains(number)).collect();
            assert!(missing.is_empty(), "{missing:?} from {from}, {start} ms after the start");
        }
    }
}

/// One end starts anew while a way is gone: the other does not wait for that way, though it was the nearer and of no cost.
#[test]
fn a_restart_with_one_way_gone_leaves_the_other() {
    for (gone, restarts) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let when = if gone == 0 { [When::Always, When::Metered] } else { [When::Metered, When::Always] };
        let mut pair = pair(when);
        stream(&mut pair, 1, millis(20), millis(2000));
        pair.set_way(gone, &dark(&way(WAYS[gone].0, WAYS[gone].1)));
        pair.pass(Duration::from_secs(60));
        pair.restart(restarts);
        pair.pass(Duration::from_secs(30));
        for from in [0, 1] {
            let before = pair.delivered(1 - from).len();
            // Slower than anything is thought of before it is known.
            stream(&mut pair, from, millis(100), millis(6000));
            pair.pass(millis(2000));
            let came = pair.delivered(1 - from).len() - before;
            assert!(came == 60, "{came} of 60 from {from}, way {gone} gone and {restarts} restarted");
        }
    }
}

/// What reports say of a way that is gone in one direction brings nobody to wait for it.
#[test]
fn a_way_that_is_gone_in_one_direction_is_not_waited_for() {
    for silent in [0, 1] {
        let mut pair = pair([When::Always; 2]);
        stream(&mut pair, 1, millis(20), millis(2000));
        pair.set_fates_over(1, silent, &[1]);
        for from in [0, 1, 0, 1] {
            let before = pair.delivered(1 - from).len();
            stream(&mut pair, from, millis(50), Duration::from_secs(30));
            pair.pass(millis(3000));
            assert_eq!(pair.delivered(1 - from).len() - before, 600, "from {from}, {silent} is not heard");
        }
    }
}

/// What an end uses each way for.
fn used(pair: &Pair, at: usize) -> Vec<String> {
    let status = serde_json::to_value(pair.end(at).status(Instant::ZERO)).unwrap();
    let paths = status["paths"].as_array().unwrap().clone();
    paths.iter().map(|path| path["used"].as_str().unwrap().to_owned()).collect()
}

/// The peer is called by a name: each way is used for what it is meant for, though nobody knew where to when it began.
#[test]
fn ways_to_a_name_have_what_they_were_told() {
    let mut pair = Pair::new(Setup { when: [When::Always, When::Metered], ..Setup::of("", false).over(2) });
    pair.begin_without_address();
    pair.pass(millis(1000));
    pair.call();
    pair.pass(millis(5000));
    assert_eq!(used(&pair, 0), ["always", "metered"]);
    assert_eq!(used(&pair, 1), ["always", "metered"], "and the peer is told");
}
