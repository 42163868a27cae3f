use proptest::prelude::*;

use super::*;

const LAW: Law = Law { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The pseudo-code of RFC 8289, 5.5 and 5.6, line by line, over the sojourn times of the packets that it takes.
#[derive(Default)]
struct Reference {
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Reference {
    const TARGET: u64 = 5_000_000;
    const INTERVAL: u64 = 100_000_000;

    /// `queue`: sojourn times and bytes behind, from the head on. The sojourn of the packet that leaves, and of those dropped.
    fn dequeue(&mut self, now: u64, queue: &mut Vec<(u64, u64)>) -> (Option<u64>, Vec<u64>) {
        let mut dropped = Vec::new();
        let (mut p, mut ok_to_drop) = self.dodequeue(now, queue);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                dropped.extend(p);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now, queue);
                if ok_to_drop {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            dropped.extend(p);
            (p, _) = self.dodequeue(now, queue);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now as i64 - (self.drop_next as i64) < 16 * Self::INTERVAL as i64 {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        (p, dropped)
    }

    fn dodequeue(&mut self, now: u64, queue: &mut Vec<(u64, u64)>) -> (Option<u64>, bool) {
        if queue.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let (sojourn, bytes) = queue.remove(0);
        let mut ok_to_drop = false;
        if sojourn < Self::TARGET || bytes <= 1514 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + Self::INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(sojourn), ok_to_drop)
    }

    fn control_law(t: u64, count: u32) -> u64 {
        t + (Self::INTERVAL as f64 / f64::from(count).sqrt()) as u64
    }
}

proptest! {
    /// At any arrivals and departures it does what the pseudo-code does.
    #[test]
    fn it_is_the_pseudo_code(steps in proptest::collection::vec((0_u64..30, 0_u64..8), 50..1500)) {
        let (mut codel, mut reference) = (Codel::default(), Reference::default());
        let mut arrivals: Vec<u64> = Vec::new();
        // Zero is no time to the pseudo-code.
        let mut now = 1_000_000;
        for (wait, pushed) in steps {
            now += wait * 1_000_003;
            arrivals.extend((0..pushed).map(|_| now));
            let mut queue: Vec<(u64, u64)> = Vec::new();
            for (index, at) in arrivals.iter().enumerate() {
                queue.push((now - at, (arrivals.len() - 1 - index) as u64 * 1000));
            }
            let mut left = queue.clone();
            let (expected, expected_drops) = reference.dequeue(now, &mut left);
            let (mut next, mut dropped) = (0, Vec::new());
            let take = || {
                let (sojourn, behind) = *queue.get(next)?;
                next += 1;
                let packet = Packet::from_slice(&sojourn.to_be_bytes());
                Some(Head { packet, sojourn: Duration::from_nanos(sojourn), behind })
            };
            let signal = |packet: Packet| {
                dropped.push(u64::from_be_bytes(packet[..].try_into().unwrap()));
                None
            };
            let popped = codel.pop(&LAW, Instant::from_nanos(now), take, signal);
            let popped = popped.map(|packet| u64::from_be_bytes(packet[..].try_into().unwrap()));
            prop_assert_eq!(popped, expected);
            prop_assert_eq!(dropped, expected_drops);
            prop_assert_eq!((codel.count, codel.last_count), (reference.count, reference.lastcount));
            prop_assert_eq!(codel.dropping, reference.dropping);
            let drift = codel.drop_next.as_nanos().abs_diff(reference.drop_next);
            prop_assert!(drift < 10_000, "{} ns", drift);
            arrivals.drain(..next);
        }
    }
}

/// How the law goes on where every packet has waited for a second: when it drops.
fn drops(signal: impl Fn(Packet) -> Option<Packet> + Copy) -> Vec<u64> {
    let mut codel = Codel::default();
    let head = || {
        Some(Head { packet: Packet::from_slice(&[0]), sojourn: Duration::from_secs(1), behind: 1_000_000 })
    };
    let mut times = Vec::new();
    for at in 0..1000 {
        let signal = |packet: Packet| {
            times.push(at);
            signal(packet)
        };
        assert!(codel.pop(&LAW, millis(at), head, signal).is_some());
    }
    times
}

/// 100 ms after the first that waited too long; then 100 ms over the square roots of 1, 2, 3 and so on later.
#[test]
fn drops_come_ever_sooner() {
    let expected = [100, 200, 271, 329, 379, 424, 464, 502];
    assert_eq!(drops(|_| None)[..8], expected);
    assert_eq!(drops(Some)[..8], expected, "marks too");
}

#[test]
fn the_square_root_is_as_exact_as_that_of_floats() {
    for count in [1, 2, 3, 4, 5, 99, 10_000, 1_000_000, u32::MAX] {
        let nanos = LAW.after(Instant::ZERO, count).as_nanos() as f64;
        let expected = 1e8 / f64::from(count).sqrt();
        assert!(
            (nanos / expected - 1.0).abs() < 1e-7 * f64::from(count).sqrt() + 1e-7,
            "{count}: {nanos}, not {expected}"
        );
    }
}

/// RFC 8290, 5.2.2: about 15 ms at 1 Mbit/s.
#[test]
fn a_slow_line_has_a_longer_target() {
    let law = |bps| {
        let Law { target, interval } = Law::new(LAW.target, LAW.interval, Some(Rate::from_bps(bps)));
        (target.as_micros(), interval.as_micros())
    };
    assert_eq!(law(10_000_000), (5_000, 100_000));
    assert_eq!(law(1_000_000), (12_112, 100_000));
    assert_eq!(law(128_000), (94_625, 189_250));
    assert_eq!(Law::new(LAW.target, LAW.interval, None), LAW);
    // Nothing leaves, so nothing is dropped either.
    assert_eq!(Law::new(LAW.target, LAW.interval, Some(Rate::from_bps(0))).target, Duration::MAX);
}
