//! What an endpoint or a queue says that it holds, beside what is really allocated.

mod allocations;

use allocations::live;
use base::{Duration, Instant, Packet, Rate};
use longhaul_link::coded::{self, Coded};
use longhaul_link::cotmll::{self, Cotmll, Wide, wide};
use longhaul_link::harq::{self, Harq};
use longhaul_link::plain::{self, Plain};
use longhaul_link::queue;
use longhaul_link::slacp::{self, Slacp};
use longhaul_link::{Demand, Endpoint, LineLimits, Queue, Treatment};

const LINE: LineLimits = LineLimits::new(1466, Some(Rate::from_bps(1_000_000_000)));

/// Tables that are as long whatever is sent.
const TABLES: usize = 160_000;

type New = fn() -> Box<dyn Endpoint>;

/// Every protocol.
const PROTOCOLS: [(&str, New); 6] = [
    ("coded", || Box::new(Coded::new(coded::Config::default(), &LINE))),
    ("cotmll", || Box::new(Wide::new(wide::Config::default(), &LINE))),
    ("cotmll-thesis", || Box::new(Cotmll::new(cotmll::Config::default(), &LINE))),
    ("slacp", || Box::new(Slacp::new(slacp::Config::default(), &LINE))),
    ("harq", || Box::new(Harq::new(harq::Config::default(), &LINE))),
    ("plain", || Box::new(Plain::new(plain::Config::default(), &LINE))),
];

/// In a thread of its own, so that no buffer of another case is used again.
fn apart(case: impl FnOnce() + Send + 'static) {
    std::thread::spawn(case).join().unwrap();
}

/// An IPv4 packet of no protocol in particular.
fn packet(len: usize) -> Packet {
    let mut packet = Packet::with_capacity(len);
    packet.resize(len);
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet
}

/// Sends up to so many packets, as far as there is room, to whom `take` has each frame; how many have found room.
fn send(
    end: &mut dyn Endpoint,
    len: usize,
    count: usize,
    mut take: impl FnMut(&mut dyn Endpoint, Instant, &mut [u8]),
) -> usize {
    let (mut now, mut taken) = (Instant::ZERO, 0);
    let mut frame = Vec::new();
    for _ in 0..count * 60 {
        now += Duration::from_nanos(12_000);
        if taken < count && end.has_room(Treatment::Reliable) {
            assert!(end.offer(now, packet(len), Treatment::Reliable).is_ok(), "it said that there is room");
            taken += 1;
        }
        frame.clear();
        if end.demand(now) == Demand::Fresh && end.poll_frame(now, &mut frame).is_some() {
            end.seal_frame(now, &mut frame);
            take(end, now, &mut frame);
        }
    }
    taken
}

/// Bytes that something holds, which is gone then. What it gives back is not kept for later packets, since as many are kept already.
fn held<T>(it: T) -> usize {
    let kept: Vec<_> = [1000; 5000].into_iter().chain([60_000; 200]).map(Packet::with_capacity).collect();
    drop(kept);
    let before = live();
    drop(it);
    before - live()
}

/// Goal: what it says is what it holds.
fn assert_counted(name: &str, counted: usize, held: usize) {
    assert!(held.abs_diff(counted) < held / 5 + TABLES, "{name}: {counted} of {held} bytes are counted");
}

#[test]
fn what_is_under_way_is_counted_as_it_is_allocated() {
    for (name, new) in PROTOCOLS {
        for (len, count) in [(60, 5000), (1400, 5000), (60_000, 100)] {
            apart(move || {
                let mut end = new();
                send(&mut *end, len, count, |_, _, _| ());
                assert_counted(&format!("{name}, {len} bytes"), end.memory(), held(end));
            });
        }
    }
}

#[test]
fn what_has_come_is_counted_as_it_is_allocated() {
    for (name, new) in PROTOCOLS {
        apart(move || {
            let (mut from, mut to) = (new(), new());
            let mut frames = Vec::new();
            send(&mut *from, 1400, 3000, |_, now, frame| frames.push((now, frame.to_vec())));
            // What lacks its start cannot go up.
            for (now, frame) in &frames[12..frames.len().min(3000)] {
                let _ = to.handle_frame(*now, frame);
                while to.poll_packet().is_some() {}
            }
            assert_counted(name, to.memory(), held(to));
        });
    }
}

/// Goal: with a limit a sender has so much under way at most, and with none at all a packet.
#[test]
fn who_may_hold_little_has_little_under_way() {
    const LIMIT: usize = 1 << 20;
    for (name, new) in PROTOCOLS {
        apart(move || {
            let mut end = new();
            end.limit_memory(LIMIT);
            send(&mut *end, 1400, 5000, |_, _, _| ());
            assert!(end.memory() < LIMIT + TABLES, "{name}: {} bytes", end.memory());
            let mut least = new();
            least.limit_memory(0);
            let taken = send(&mut *least, 1400, 5000, |_, _, _| ());
            assert!(taken >= 1, "{name} takes nothing");
            assert!(name == "plain" || taken <= 8, "{name} takes {taken}");
        });
    }
}

/// Goal: who is acknowledged holds nothing any more, not even the room that it took.
#[test]
fn what_was_acknowledged_is_given_back() {
    for (name, new) in PROTOCOLS {
        apart(move || {
            let (mut from, mut to) = (new(), new());
            send(&mut *from, 1400, 400, |from, now, frame| {
                let _ = to.handle_frame(now, frame);
                while to.poll_packet().is_some() {}
                let mut answer = Vec::new();
                if to.poll_frame(now, &mut answer).is_some() {
                    to.seal_frame(now, &mut answer);
                    let _ = from.handle_frame(now, &answer);
                }
            });
            for end in [from, to] {
                assert!(end.memory() < TABLES, "{name}: {} bytes", end.memory());
            }
        });
    }
}

#[test]
fn what_waits_counts_as_its_buffers() {
    for text in ["drop-tail = { packets = 20000 }", "red = {}", "fq-codel = {}"] {
        apart(move || {
            let config: queue::Config = base::config::parse("queue.toml", text).unwrap();
            let site = queue::Site { rate: Some(Rate::from_bps(1_000_000_000)), seed: 1, name: "l" };
            let mut queue = config.build(&site, "queue");
            for _ in 0..10_000 {
                queue.push(Instant::ZERO, packet(28), &mut |_, _| ());
            }
            assert!(queue.memory() >= queue.len() * 1664 && queue.len() > 10);
            while queue.len() > 5000 && queue.pop(Instant::ZERO, &mut |_, _| ()).is_some() {}
            assert_counted(text, queue.memory(), held(queue));
        });
    }
}

/// Goal: a thousand flows that come and go, as from a scan of addresses, leave no tunnel with more than each may always have.
#[test]
fn flows_that_have_gone_leave_little() {
    apart(|| {
        let config: queue::Config = base::config::parse("queue.toml", "fq-codel = {}").unwrap();
        let site = queue::Site { rate: Some(Rate::from_bps(1_000_000_000)), seed: 1, name: "l" };
        let mut queue = config.build(&site, "queue");
        let push_all = |queue: &mut dyn Queue| {
            for n in 0..8000_u32 {
                let mut packet = packet(28);
                packet[12..16].copy_from_slice(&(n / 5).to_be_bytes());
                queue.push(Instant::ZERO, packet, &mut |_, _| panic!("there is room"));
            }
        };
        push_all(&mut *queue);
        while queue.pop(Instant::ZERO, &mut |_, _| ()).is_some() {}
        let left = queue.memory();
        assert!(left <= 64 << 10, "{left} bytes");
        push_all(&mut *queue);
        while queue.len() > 100 && queue.pop(Instant::ZERO, &mut |_, _| ()).is_some() {}
        let counted = queue.memory() - 100 * 1664;
        assert!(counted > 512 << 10, "what flows have room for counts too: {counted}");
        assert_counted("flows", queue.memory(), held(queue));
    });
}
