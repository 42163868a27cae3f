//! Transfers with Loss-Tolerant TCP's erasure code.

use std::cell::Cell;
use std::rc::Rc;

use crate::pair::{Pair, Path};
use base::wire::tcp::Flags;
use base::{Duration, Instant};
use longhaul_tcp::{Event, FecStatistics, RepairStatistics, TcpConfig};

fn lt() -> TcpConfig {
    TcpConfig::preset("lt-tcp").unwrap()
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A download of so many bytes at this rate of erasures, data direction only; it has come whole.
fn download(config: &TcpConfig, bytes: u64, loss: u64, seed: u64) -> Pair {
    let mut pair = Pair::new(seed, Path::clean(60).through(10_000, 500), config);
    let mut rng = base::Rng::named(seed, "erasures");
    pair.drop_if = Box::new(move |side, _, count| side == 1 && count > 0 && rng.below(100) < loss);
    pair.connect(config);
    pair.ends[1].to_send = bytes;
    pair.ends[1].finish = true;
    pair.drain();
    assert!(pair.run_until(secs(3600), |pair| pair.saw(0, Event::PeerFinished)), "at {loss} %, seed {seed}");
    assert_eq!((pair.ends[0].received, pair.ends[0].corrupt), (bytes, false));
    pair
}

fn sent(pair: &Pair) -> FecStatistics {
    *pair.connection(1).fec_statistics().expect("a code")
}

fn received(pair: &Pair) -> RepairStatistics {
    *pair.connection(0).repair_statistics().expect("a code")
}

#[test]
fn it_repairs_what_is_lost() {
    let pair = download(&lt(), 1_000_000, 20, 1);
    let (sent, received) = (sent(&pair), received(&pair));
    assert!(received.recovered > 50, "{received:?}");
    assert_eq!(received.failed_checks, 0);
    assert!(sent.proactive_sent > 200 && sent.reactive_sent > 10, "{sent:?}");
    let plain = TcpConfig::preset("rfc").unwrap().with(|it| it.timestamps = false);
    let bare = download(&plain, 1_000_000, 20, 1);
    let took = |pair: &Pair| pair.now.saturating_since(Instant::ZERO).as_secs_f64();
    println!("with the code {:.2} s, without {:.2} s", took(&pair), took(&bare));
    assert!(took(&pair) * 4.0 < took(&bare), "{} against {}", took(&pair), took(&bare));
}

/// Linux cuts no blocks: the segments of a block go one by one, the same whether a device would cut bursts or not.
#[test]
fn blocks_are_no_bursts() {
    let sent = |offload: bool| {
        let config = lt().with(|it| (it.pacing, it.offload) = (false, offload));
        let mut pair = Pair::new(1, Path::clean(60).through(10_000, 500), &config);
        let pushed = Rc::new(Cell::new([0; 2]));
        let counts = pushed.clone();
        pair.drop_if = Box::new(move |side, packet, _| {
            let mut so_far = counts.get();
            if side == 1 {
                so_far[0] += 1;
                so_far[1] += u32::from(crate::coded::parse(packet).0.flags.has(Flags::PSH));
            }
            counts.set(so_far);
            false
        });
        pair.connect(&config);
        pair.ends[1].to_send = 200_000;
        pair.drain();
        assert!(pair.run_until(secs(60), |pair| pair.ends[0].received == 200_000));
        (pair.now, pushed.get())
    };
    assert_eq!(sent(true), sent(false));
}

/// One segment is lost in a block that repairs it: nothing is sent again, and the duplicates that waited are not sent either, not even
/// when the block is over.
#[test]
fn what_is_repaired_is_not_told() {
    for (preset, at) in [("lt-tcp", 40), ("lt-tcp", 90), ("lt-tcp-plus", 40), ("lt-tcp-plus", 90)] {
        let config = TcpConfig::preset(preset).unwrap();
        let mut pair = Pair::new(1, Path::clean(60).through(10_000, 500), &config);
        let mut sources = 0;
        pair.drop_if = Box::new(move |side, packet, _| {
            let coding = crate::coded::parse(packet).0.options.coding;
            sources += u64::from(side == 1 && coding.place.is_some() && coding.repair.is_none());
            side == 1 && sources == at && coding.repair.is_none()
        });
        pair.connect(&config);
        pair.ends[1].to_send = 300_000;
        pair.drain();
        assert!(pair.run_until(secs(60), |pair| pair.ends[0].received == 300_000));
        pair.run_until(secs(70), |_| false);
        assert!(!pair.ends[0].corrupt);
        let received = received(&pair);
        let sender = pair.connection(1).sender_statistics();
        println!("{preset} {at}: {received:?}, {} duplicates", sender.duplicate_acks);
        assert_eq!((received.recovered, sender.timeouts), (1, 0));
        // RACK takes two for a loss, after a while.
        let most = u64::from(preset == "lt-tcp-plus" && at == 90);
        assert!(sender.retransmissions <= most, "{}", sender.retransmissions);
        assert!(received.acks_spared > 0, "{received:?}");
        // Where the repair waits for the window, the timer lets some go.
        assert!(sender.duplicate_acks < 3, "{}", sender.duplicate_acks);
    }
}

/// Either kind of repairs alone is a code (Sundararajan et al. 2011, III).
#[test]
fn each_kind_of_repairs_works_alone() {
    for (proactive, reactive) in [(true, false), (false, true)] {
        let config = lt().with(|it| (it.fec.proactive, it.fec.reactive) = (proactive, reactive));
        let pair = download(&config, 300_000, 10, 1);
        let (sent, received) = (sent(&pair), received(&pair));
        assert_eq!((sent.proactive_sent > 0, sent.reactive_sent > 0), (proactive, reactive));
        assert!(received.recovered > 0, "{received:?}");
    }
}

/// Sundararajan et al. 2011 (LT-TCP, III): repairs leave behind their block, before the next one's data, and within the window.
#[test]
fn repairs_leave_behind_their_block_and_within_the_window() {
    for preset in ["lt-tcp", "lt-tcp-plus"] {
        let config = TcpConfig::preset(preset).unwrap();
        let mut pair = Pair::new(1, Path::clean(60).through(10_000, 500), &config);
        let (mut block, mut owed) = (None, 0);
        pair.drop_if = Box::new(move |side, packet, _| {
            let coding = crate::coded::parse(packet).0.options.coding;
            if let Some(place) = coding.place.filter(|_| side == 1) {
                if coding.repair.is_some() {
                    owed -= 1;
                } else if block != Some(place.block) {
                    assert_eq!(owed, 0, "{preset}: data have overtaken repairs");
                    (block, owed) = (Some(place.block), i32::from(place.repairs));
                }
            }
            false
        });
        pair.connect(&config);
        pair.ends[1].to_send = 300_000;
        pair.drain();
        let mut beyond = 0;
        assert!(pair.run_until(secs(60), |pair| {
            if pair.ends[1].id.is_some() {
                let connection = pair.connection(1);
                beyond = beyond.max(connection.in_flight().saturating_sub(connection.cwnd()));
            }
            pair.ends[0].received == 300_000
        }));
        assert_eq!(beyond, 0, "{preset}: repairs ignore the window");
    }
}

/// Sundararajan et al. 2011 (LT-TCP, III): segments that follow the window, and a code for full ones, do each without the other.
#[test]
fn parts_work_without_the_others() {
    let sizes = lt().with(|it| (it.fec.proactive, it.fec.reactive) = (false, false));
    let pair = download(&sizes, 3000, 0, 1);
    assert!(pair.connection(1).mss() < 1460, "segments do not get smaller");
    let code = lt().with(|it| it.fec.adaptive_mss = false);
    let pair = download(&code, 300_000, 10, 1);
    assert!(received(&pair).recovered > 10, "nothing is repaired");
}

/// RFC 7323 (3.2): where timestamps are agreed on, a segment without one is refused: repairs have them too.
#[test]
fn repairs_have_timestamps() {
    let pair = download(&lt().with(|it| it.timestamps = true), 300_000, 20, 1);
    let received = received(&pair);
    assert!(received.recovered > 20, "the code is useless: {received:?}");
}

/// Sundararajan et al. 2011 (LT-TCP, III): what has nothing behind it is protected as well: the repairs of the last block leave by
/// themselves.
#[test]
fn the_end_of_a_stream_is_protected() {
    let pair = download(&lt(), 500, 0, 1);
    assert!(sent(&pair).proactive_sent > 0, "the end of each answer is unprotected");
}
