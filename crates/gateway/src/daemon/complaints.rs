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
/// Reasons that are told within an interval, at most.
const MOST_REASONS: usize = 16;

impl Complaints {
    /// A datagram from `from` was refused.
    pub(super) fn on_rejection(&mut self, now: Instant, from: Address, reason: Rejection) {
        // The others are the network's doing, or a stranger's; a counter is enough for them.
        if !matches!(reason, Rejection::ForgedHandshake | Rejection::UnknownPeer(_) | Rejection::Disagreement)
        {
            return;
        }
        match self.told.iter_mut().find(|(told, _)| *told == reason) {
            Some((_, at)) if now < *at + INTERVAL => return,
            Some((_, at)) => *at = now,
            None => {
                self.told.retain(|(_, at)| now < *at + INTERVAL);
                // Anybody can have many keys.
                if self.told.len() == MOST_REASONS {
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

    #[test]
    fn each_mismatch_is_told_once_in_a_while() {
        let mut complaints = Complaints::default();
        let from = Address::Udp(([192, 0, 2, 1], 7).into());
        for second in 0..1000 {
            let now = Instant::ZERO + Duration::from_secs(second);
            for reason in [Rejection::ForgedHandshake, Rejection::Disagreement, Rejection::Replayed] {
                complaints.on_rejection(now, from, reason);
            }
            let told = std::iter::from_fn(|| complaints.poll()).count();
            assert_eq!(told, if second % 600 == 0 { 2 } else { 0 }, "second {second}");
        }
    }

    #[test]
    fn keys_without_end_are_told_a_few_at_a_time() {
        let mut complaints = Complaints::default();
        let from = Address::Udp(([192, 0, 2, 1], 7).into());
        let mut told = 0;
        for second in 0..1200_u64 {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&second.to_le_bytes());
            let reason = Rejection::UnknownPeer(PublicKey::from_bytes(key));
            complaints.on_rejection(Instant::ZERO + Duration::from_secs(second), from, reason);
            told += std::iter::from_fn(|| complaints.poll()).count();
        }
        assert_eq!(told, 2 * MOST_REASONS);
    }
}
