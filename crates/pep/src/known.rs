//! Servers that have lately taken a connection.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant};

/// Servers and until when they count as known, bounded in number.
#[derive(Debug, Default)]
pub(crate) struct KnownServers {
    until: BTreeMap<SocketAddr, Instant>,
    /// Servers and until when they count as known, in the order in which they were noted; some are out of date.
    noted: VecDeque<(Instant, SocketAddr)>,
}

/// How long a server that took a connection is expected to take another one. Ours.
const LIFETIME: Duration = Duration::from_secs(600);
/// Servers that are kept.
const MOST: usize = 4096;

impl KnownServers {
    /// The server has taken a connection.
    pub(crate) fn note(&mut self, now: Instant, server: SocketAddr) {
        let until = now.saturating_add(LIFETIME);
        // Once in a while is often enough.
        if self.until.get(&server).is_some_and(|&known| known.saturating_since(now) > LIFETIME / 2) {
            return;
        }
        self.until.insert(server, until);
        self.noted.push_back((until, server));
        while let Some(&(until, server)) = self.noted.front() {
            if until > now && self.noted.len() <= MOST {
                break;
            }
            self.noted.pop_front();
            if self.until.get(&server) == Some(&until) {
                self.until.remove(&server);
            }
        }
    }

    /// It has refused one.
    pub(crate) fn forget(&mut self, server: SocketAddr) {
        self.until.remove(&server);
    }

    /// Whether it is known.
    pub(crate) fn holds(&self, now: Instant, server: SocketAddr) -> bool {
        self.until.get(&server).is_some_and(|&until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_for_a_while_and_not_too_many() {
        let server = |number: u32| SocketAddr::new(core::net::Ipv4Addr::from(number).into(), 80);
        let mut known = KnownServers::default();
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        known.note(at(0), server(1));
        known.note(at(0), server(2));
        known.note(at(400), server(1));
        known.forget(server(2));
        assert!(known.holds(at(599), server(1)) && !known.holds(at(1), server(2)));
        assert!(known.holds(at(999), server(1)) && !known.holds(at(1000), server(1)));
        for number in 0..10_000 {
            known.note(at(1000), server(number));
        }
        assert!(!known.holds(at(1000), server(0)) && known.holds(at(1000), server(9999)));
        assert!(known.until.len() <= MOST && known.noted.len() <= MOST);
    }

    /// What is known no more goes when the next server is noted, and what was noted again meanwhile stays.
    #[test]
    fn what_is_known_no_more_is_swept() {
        let server = |number: u32| SocketAddr::new(core::net::Ipv4Addr::from(number).into(), 80);
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let mut known = KnownServers::default();
        for number in 0..10 {
            known.note(at(0), server(number));
        }
        known.note(at(400), server(3));
        known.note(at(599), server(100));
        assert_eq!((known.until.len(), known.noted.len()), (11, 12));
        known.note(at(600), server(101));
        assert_eq!((known.until.len(), known.noted.len()), (3, 3));
        assert!(known.holds(at(999), server(3)) && !known.holds(at(600), server(4)));
        // More often than every five minutes it is not noted.
        for s in 601..=699 {
            known.note(at(s), server(3));
        }
        assert_eq!(known.noted.len(), 3);
        known.note(at(700), server(3));
        assert_eq!(known.noted.len(), 4);
    }
}
