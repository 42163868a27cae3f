//! Whom a gateway refuses, told to whoever runs it: once, and again if it goes on.

use base::{Duration, Instant};

use tunnel::path::Address;
use tunnel::session::Rejection;

/// What is still to be told, and what was.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// When each reason was told last.
    told: Vec<(Rejection, Instant)>,
    waiting: Vec<(Address, Rejection)>,
}

/// Between two complaints for the same reason: anybody can cause them.
const INTERVAL: Duration = Duration::from_secs(600);
/// Reasons that strangers give and that are told within an interval, at most.
const MOST_REASONS: usize = 16;

impl Complaints {
    /// A datagram from `from` was refused.
    pub(super) fn on_rejection(&mut self, now: Instant, from: Address, reason: Rejection) {
        // The others are the network's doing, or a stranger's; a counter is enough for them.
        if !matches!(
            reason,
            Rejection::ForgedHandshake | Rejection::UnknownPeer(_) | Rejection::Disagreement(_)
        ) {
            return;
        }
        match self.told.iter_mut().find(|(told, _)| *told == reason) {
            Some((_, at)) if now < *at + INTERVAL => return,
            Some((_, at)) => *at = now,
            None => {
                self.told.retain(|(_, at)| now < *at + INTERVAL);
                // Anybody can have many keys. Who disagrees is a peer, and each of those is told of.
                let is_strangers = |reason: &Rejection| !matches!(reason, Rejection::Disagreement(_));
                let strangers = self.told.iter().filter(|(told, _)| is_strangers(told)).count();
                if is_strangers(&reason) && strangers == MOST_REASONS {
                    return;
                }
                self.told.push((reason, now));
            }
        }
        self.waiting.push((from, reason));
    }

    /// What is to be told.
    pub(super) fn poll(&mut self) -> Option<(Address, Rejection)> {
        self.waiting.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tunnel::key::PublicKey;

    fn key(number: u64) -> PublicKey {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        PublicKey::from_bytes(key)
    }

    #[test]
    fn each_mismatch_is_told_once_in_a_while() {
        let mut complaints = Complaints::default();
        let from = Address::Udp(([192, 0, 2, 1], 7).into());
        for second in 0..1000 {
            let now = Instant::ZERO + Duration::from_secs(second);
            for reason in [
                Rejection::ForgedHandshake,
                Rejection::Disagreement(key(1)),
                Rejection::Disagreement(key(2)),
                Rejection::Replayed,
            ] {
                complaints.on_rejection(now, from, reason);
            }
            let told = std::iter::from_fn(|| complaints.poll()).count();
            assert_eq!(told, if second % 600 == 0 { 3 } else { 0 }, "second {second}");
        }
    }

    #[test]
    fn keys_without_end_are_told_a_few_at_a_time() {
        let mut complaints = Complaints::default();
        let from = Address::Udp(([192, 0, 2, 1], 7).into());
        let mut told = 0;
        for second in 0..1200_u64 {
            let now = Instant::ZERO + Duration::from_secs(second);
            complaints.on_rejection(now, from, Rejection::UnknownPeer(key(second)));
            told += std::iter::from_fn(|| complaints.poll()).count();
        }
        assert_eq!(told, 2 * MOST_REASONS);
        // Peers are told of all the same.
        complaints.on_rejection(
            Instant::ZERO + Duration::from_secs(1200),
            from,
            Rejection::Disagreement(key(7)),
        );
        assert_eq!(complaints.poll(), Some((from, Rejection::Disagreement(key(7)))));
    }
}
