//! Telling the other gateway that there is a proxy here, and hearing that there is one there.
//!
//! Proxies believe each other: a SYN brings data, and its handshake is taken for done. Whoever only says in a SYN that it is a
//! proxy may be anybody. So each gateway announces its own inside the session, again and again, more and more rarely, until
//! the other says that it has heard.

use base::{Duration, Instant};
use pep::Peer;

/// In its body, a byte: the sender has heard that there is a proxy at the other end.
const HEARD: u8 = 1;
/// It wants to know whether it has been heard.
const ASKS: u8 = 2;

/// Before the first repetition: above a satellite's round trip.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Between two later ones.
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// After so long a wait in vain there is nobody.
const PATIENCE: Duration = Duration::from_secs(8);

/// What the two gateways know of each other's proxies.
#[derive(Debug)]
pub(crate) struct Pairing {
    heard: bool,
    is_heard: bool,
    due: Option<Instant>,
    /// Before the next repetition.
    wait: Duration,
}

impl Pairing {
    /// Nobody has said anything.
    pub(crate) const fn new() -> Self {
        Self { heard: false, is_heard: false, due: Some(Instant::ZERO), wait: FIRST_WAIT }
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Peer {
        match self.heard {
            true => Peer::Known,
            false if self.wait <= PATIENCE => Peer::Possible,
            false => Peer::Nobody,
        }
    }

    /// Takes what the other gateway says.
    pub(crate) fn handle(&mut self, now: Instant, body: &[u8]) {
        // Later versions may say more.
        let Some(&said) = body.first() else { return };
        self.heard = true;
        if said & HEARD != 0 {
            self.is_heard = true;
            self.due = None;
        }
        if said & ASKS != 0 {
            self.due = Some(now);
        }
    }

    /// What to say now, if anything.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<[u8; 1]> {
        self.due.take_if(|due| *due <= now)?;
        let mut says = if self.heard { HEARD } else { 0 };
        if !self.is_heard {
            says |= ASKS;
            self.due = Some(now + self.wait);
            self.wait = self.wait.saturating_mul(2).min(LONGEST_WAIT);
        }
        Some([says])
    }

    /// When [`Pairing::poll`] wants to be called.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    /// Two ends, and which of their messages arrive; how many seconds pass until both are quiet, and how many messages.
    fn seconds_to_meet(arrives: impl Fn(usize) -> bool) -> (u64, usize) {
        let (mut ends, mut sent) = ([Pairing::new(), Pairing::new()], 0);
        for second in 0..1000 {
            for _ in 0..4 {
                for from in 0..2 {
                    let Some(body) = ends[from].poll(at(second)) else { continue };
                    sent += 1;
                    if arrives(sent) {
                        ends[1 - from].handle(at(second), &body);
                    }
                }
            }
            if ends.iter().all(|end| end.poll_timeout().is_none()) {
                assert!(ends.iter().all(|end| end.peer() == Peer::Known && end.is_heard));
                return (second, sent);
            }
        }
        panic!("they never meet");
    }

    #[test]
    fn two_proxies_meet_whatever_is_lost() {
        assert_eq!(seconds_to_meet(|_| true), (0, 3));
        for lost in 0_u32..256 {
            let (seconds, sent) = seconds_to_meet(|n| n > 8 || lost >> (n - 1) & 1 == 0);
            // The pause before the next try doubles.
            let most = (1 << lost.count_ones()) - 1;
            assert!(seconds <= most && sent <= 14, "{lost:08b}: {seconds} s, {sent} sent");
        }
    }

    /// A gateway without a proxy: an announcement a minute in the end, and no more talk of proxies to its hosts.
    #[test]
    fn where_nobody_answers_there_is_nobody() {
        let mut alone = Pairing::new();
        let mut said = Vec::new();
        for second in 0..300 {
            said.extend(alone.poll(at(second)).map(|body| (second, body)));
            assert_eq!(alone.peer() == Peer::Possible, second < 7, "{second}");
        }
        let seconds: Vec<u64> = said.iter().map(|&(second, _)| second).collect();
        assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 127, 191, 255]);
        assert!(said.iter().all(|&(_, body)| body == [ASKS]));
        alone.handle(at(300), &[]);
        assert_eq!(alone.peer(), Peer::Nobody);
        alone.handle(at(300), &[ASKS, 9]);
        assert_eq!((alone.peer(), alone.poll(at(300))), (Peer::Known, Some([HEARD | ASKS])));
        alone.handle(at(301), &[HEARD]);
        assert_eq!((alone.poll_timeout(), alone.poll(at(999))), (None, None));
    }
}
