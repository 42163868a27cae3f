//! A bad path between a stack and its device: rate, delay, loss, reordering and duplication, from a seed.

use std::collections::BTreeMap;

use base::units::Probability;
use base::{Duration, Instant, Packet, Rng};
use channel::line;
use channel::model::Streams;
use channel::{Fate, Line};

/// What happens to packets in one direction.
#[derive(Clone, Debug)]
pub struct Impairments {
    /// Rate, delay and loss.
    pub line: line::Config,
    /// Share of the packets that come late, and so behind others.
    pub reordering: Probability,
    /// How late at most.
    pub lateness: Duration,
    /// Share of the packets that come twice.
    pub duplication: Probability,
}

impl Impairments {
    pub(super) fn path(&self, seed: u64, name: &str) -> Path {
        let streams =
            Streams { seed, timeline: name.to_owned(), later: Duration::ZERO, line: name.to_owned() };
        Path {
            line: self.line.build(&streams),
            impairments: self.clone(),
            rng: Rng::named(seed, &format!("{name}/order")),
            under_way: BTreeMap::new(),
            accepted: 0,
        }
    }
}

/// One direction of a bad path.
#[derive(Debug)]
pub(super) struct Path {
    line: Line,
    impairments: Impairments,
    rng: Rng,
    /// By time of arrival, then in the order in which they came.
    under_way: BTreeMap<(Instant, u64), Packet>,
    accepted: u64,
}

impl Path {
    /// Takes a packet; whether it will arrive.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: Packet) -> bool {
        let transit = self.line.send(now, packet.len() as u32 * 8);
        // Drawn for each packet, so that each draw belongs to a packet's number.
        let twice = self.rng.chance(self.impairments.duplication.get());
        let (first, second) = (self.lateness(), self.lateness());
        if transit.fate != Fate::Intact {
            return false;
        }
        if twice {
            self.put(transit.arrives_at.saturating_add(second), Packet::from_slice(&packet));
        }
        self.put(transit.arrives_at.saturating_add(first), packet);
        true
    }

    fn lateness(&mut self) -> Duration {
        let late = self.rng.chance(self.impairments.reordering.get());
        let by = self.rng.below(self.impairments.lateness.as_nanos());
        if late { Duration::from_nanos(by) } else { Duration::ZERO }
    }

    fn put(&mut self, at: Instant, packet: Packet) {
        self.under_way.insert((at, self.accepted), packet);
        self.accepted += 1;
    }

    /// When the next packet arrives.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.under_way.keys().next().map(|(at, _)| *at)
    }

    /// A packet that has arrived by `now`.
    pub(super) fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        let entry = self.under_way.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rate;
    use channel::ErrorModel;

    fn impairments(loss: f64, reordering: f64, duplication: f64) -> Impairments {
        let probability = |p: f64| Probability::try_from(p).unwrap();
        Impairments {
            line: line::Config {
                rate: Rate::from_bps(8_000_000),
                rate_changes: Vec::new(),
                path: channel::path::Config::default(),
                delay: Duration::from_millis(20),
                errors: ErrorModel::Erasure { probability: probability(loss), changes: Vec::new() },
                errors_at: line::End::Arrival,
            },
            reordering: probability(reordering),
            lateness: Duration::from_millis(10),
            duplication: probability(duplication),
        }
    }

    /// The first bytes of what arrives of 1000 packets, a millisecond apart, and when each came.
    fn arrivals(impairments: &Impairments, seed: u64) -> Vec<(u16, u64)> {
        let mut path = impairments.path(seed, "test");
        for n in 0..1000_u16 {
            let now = Instant::ZERO + Duration::from_millis(n.into());
            path.handle_packet(now, Packet::from_slice(&n.to_le_bytes()));
        }
        let mut arrived = Vec::new();
        while let Some(at) = path.poll_timeout() {
            let packet = path.poll_packet(at).unwrap();
            arrived.push((u16::from_le_bytes([packet[0], packet[1]]), at.as_nanos()));
        }
        arrived
    }

    #[test]
    fn a_good_path_keeps_order_and_delay() {
        let arrived = arrivals(&impairments(0.0, 0.0, 0.0), 1);
        // Two bytes at 8 Mbit/s are 2 us.
        let expected = (0..1000).map(|n| (n, u64::from(n) * 1_000_000 + 20_002_000));
        assert!(arrived.into_iter().eq(expected));
    }

    #[test]
    fn losses_duplicates_and_disorder_have_their_shares() {
        let share = |loss, reordering, duplication| {
            let arrived = arrivals(&impairments(loss, reordering, duplication), 7);
            let behind = arrived.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
            (arrived.len(), behind)
        };
        let (left, behind) = share(0.2, 0.0, 0.0);
        assert!((760..840).contains(&left) && behind == 0, "{left} {behind}");
        let (all, behind) = share(0.0, 0.2, 0.0);
        assert!(all == 1000 && (100..250).contains(&behind), "{all} {behind}");
        let (more, behind) = share(0.0, 0.0, 0.2);
        assert!((1160..1240).contains(&more) && behind == 0, "{more} {behind}");
    }

    #[test]
    fn a_seed_is_a_realisation() {
        let bad = impairments(0.1, 0.1, 0.1);
        assert_eq!(arrivals(&bad, 3), arrivals(&bad, 3));
        assert_ne!(arrivals(&bad, 3), arrivals(&bad, 4));
    }
}
