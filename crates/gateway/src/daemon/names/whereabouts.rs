//! Where a peer that is known by its name is, without I/O: when its address is asked for, and what becomes of the answer.
//!
//! While the peer is heard nothing is asked, since it is where it is, whatever its name says. Once it is silent, the name is
//! asked for again and again.

use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};

use crate::carrier::resolver::Answer;
use crate::config::HostName;
use crate::daemon::Notice;

/// Where a name is, without I/O: questions come out of [`Whereabouts::poll_question`], and each has one answer.
#[derive(Debug)]
pub(super) struct Whereabouts {
    name: HostName,
    /// The family of the addresses that this end can call.
    ipv4: bool,
    /// Where the peer is called.
    pub(super) address: Option<SocketAddr>,
    /// When the next question may be asked; `None` while one is on its way.
    ask_at: Option<Instant>,
    /// Until the next question if this one fails.
    retry: Duration,
    failing: Option<Failing>,
    /// Whether the peer has been heard since it is called at this address, so that it is silent rather than elsewhere.
    has_answered: bool,
}

/// Questions that have failed since the last answer.
#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    /// After how much time this is told again.
    told: Duration,
}

/// Between two questions while the peer is silent. Names whose addresses change have lifetimes (TTL) of about a minute.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long questions fail before that is told again; then four times as long.
const FAILING_TOLD: Duration = Duration::from_secs(30);
/// Until a question that failed is asked again; then twice as long each time, up to [`INTERVAL`].
const RETRY: Duration = Duration::from_secs(1);

impl Whereabouts {
    pub(super) const fn new(name: HostName, ipv4: bool) -> Self {
        Self {
            name,
            ipv4,
            address: None,
            ask_at: Some(Instant::ZERO),
            retry: RETRY,
            failing: None,
            has_answered: false,
        }
    }

    /// The name whose addresses are to be asked for now, if any.
    pub(super) fn poll_question(&mut self, now: Instant, is_heard: bool) -> Option<&HostName> {
        if self.is_idle(is_heard) {
            self.failing = None;
            self.retry = RETRY;
            self.has_answered = true;
            return None;
        }
        self.ask_at.take_if(|at| *at <= now).map(|_| &self.name)
    }

    /// When [`Whereabouts::poll_question`] wants to be called.
    pub(super) fn poll_timeout(&self, is_heard: bool) -> Option<Instant> {
        if self.is_idle(is_heard) { None } else { self.ask_at }
    }

    /// Takes the answer to the last question; what there is to tell.
    pub(super) fn handle_answer(&mut self, now: Instant, is_heard: bool, answer: Answer) -> Option<Notice> {
        let ours = answer.and_then(|mut addresses| {
            addresses.retain(|address| address.is_ipv4() == self.ipv4);
            self.choose(addresses).ok_or_else(|| self.no_address())
        });
        match ours {
            Ok(address) => {
                self.ask_at = Some(now + INTERVAL);
                self.retry = RETRY;
                self.failing = None;
                // It may have been heard again since the question was asked.
                let stays = self.address == Some(address) || self.is_idle(is_heard);
                (!stays).then(|| {
                    self.address = Some(address);
                    Notice::Resolved { name: self.name.name().to_owned(), address }
                })
            }
            Err(error) => {
                self.ask_at = Some(now + self.retry);
                self.retry = self.retry.saturating_mul(2).min(INTERVAL);
                self.has_to_tell(now).then(|| Notice::Unresolved {
                    name: self.name.name().to_owned(),
                    reason: error.to_string(),
                    calling: self.address,
                })
            }
        }
    }

    /// Which address to call. A name may have several, in another order each time: where nobody has answered for an interval, the
    /// next one has its turn.
    fn choose(&mut self, mut addresses: Vec<SocketAddr>) -> Option<SocketAddr> {
        let first = addresses.first().copied()?;
        let Some(called) = self.address else { return Some(first) };
        if !addresses.contains(&called) {
            return Some(first);
        }
        if std::mem::take(&mut self.has_answered) {
            return Some(called);
        }
        addresses.sort_unstable();
        let next = addresses.iter().find(|address| **address > called);
        next.or(addresses.first()).copied()
    }

    /// Whether there is nothing to find out.
    const fn is_idle(&self, is_heard: bool) -> bool {
        is_heard && self.address.is_some()
    }

    fn no_address(&self) -> io::Error {
        let family = if self.ipv4 { "IPv4" } else { "IPv6" };
        io::Error::other(format!("it has no {family} address, of which family `listen` is"))
    }

    /// A question has failed. The first time is told, and later ones as silence is.
    fn has_to_tell(&mut self, now: Instant) -> bool {
        let failing = self.failing.get_or_insert(Failing { since: now, told: Duration::ZERO });
        let is_due = now >= failing.since + failing.told;
        if is_due {
            failing.told = failing.told.saturating_mul(4).max(FAILING_TOLD);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Destination;

    /// A resolver that answers at once, second by second.
    struct World {
        whereabouts: Whereabouts,
        answer: Result<Vec<SocketAddr>, &'static str>,
        is_heard: bool,
        second: u64,
        asked: Vec<u64>,
        told: Vec<(u64, String)>,
    }

    impl World {
        fn new(answer: Result<&[&str], &'static str>) -> Self {
            let Destination::Name(name) = "hub.example.org:7000".parse().unwrap() else { panic!("a name") };
            let whereabouts = Whereabouts::new(name, true);
            let answer = answer.map(addresses);
            Self { whereabouts, answer, is_heard: false, second: 0, asked: Vec::new(), told: Vec::new() }
        }

        fn run(&mut self, seconds: u64) {
            for _ in 0..seconds {
                let now = at(self.second);
                let due = self.whereabouts.poll_timeout(self.is_heard).is_some_and(|due| due <= now);
                assert_eq!(self.whereabouts.poll_question(now, self.is_heard).is_some(), due);
                if due {
                    self.asked.push(self.second);
                    assert_eq!(self.whereabouts.poll_timeout(self.is_heard), None, "one at a time");
                    let answer = self.answer.clone().map_err(io::Error::other);
                    let notice = self.whereabouts.handle_answer(now, self.is_heard, answer);
                    self.told.extend(notice.map(|notice| (self.second, notice.to_string())));
                }
                self.second += 1;
            }
        }

        fn asked(&mut self) -> Vec<u64> {
            std::mem::take(&mut self.asked)
        }

        fn told(&mut self) -> Vec<(u64, String)> {
            std::mem::take(&mut self.told)
        }

        fn address(&self) -> Option<String> {
            self.whereabouts.address.map(|address| address.to_string())
        }
    }

    fn at(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    const FIRST: &str = "192.0.2.7:7000";
    const SECOND: &str = "192.0.2.8:7000";

    #[test]
    fn a_silent_peer_is_asked_for_each_minute_and_one_that_is_heard_never() {
        let mut world = World::new(Ok(&[FIRST]));
        world.run(100);
        assert_eq!(world.asked(), [0, 60]);
        assert_eq!(world.told(), [(0, format!("peer hub.example.org is now at {FIRST}"))]);
        world.is_heard = true;
        world.answer = Ok(addresses(&[SECOND]));
        world.run(1000);
        assert_eq!((world.asked(), world.address().as_deref()), (vec![], Some(FIRST)));
        world.is_heard = false;
        world.run(100);
        assert_eq!((world.asked(), world.address().as_deref()), (vec![1100, 1160], Some(SECOND)));
        assert_eq!(world.told(), [(1100, format!("peer hub.example.org is now at {SECOND}"))]);
    }

    #[test]
    fn an_answer_that_has_only_the_address_in_use_changes_nothing() {
        let mut world = World::new(Ok(&["[2001:db8::7]:7000", FIRST]));
        world.run(1);
        assert_eq!(world.address().as_deref(), Some(FIRST), "the first of the family");
        world.told();
        world.run(100);
        assert_eq!((world.told(), world.address().as_deref()), (vec![], Some(FIRST)));
    }

    /// A fade of a minute and a half is no reason to call elsewhere.
    #[test]
    fn an_address_that_answered_is_called_for_another_minute() {
        let mut world = World::new(Ok(&[FIRST, SECOND]));
        world.is_heard = true;
        world.run(100);
        world.is_heard = false;
        world.run(60);
        assert_eq!(world.address().as_deref(), Some(FIRST));
        world.run(10);
        assert_eq!(world.address().as_deref(), Some(SECOND));
    }

    #[test]
    fn the_addresses_of_a_name_are_called_in_turn_whatever_their_order() {
        let third = "192.0.2.9:7000";
        let mut world = World::new(Ok(&[SECOND, FIRST, third]));
        let mut called = Vec::new();
        for minute in 0..5 {
            world.run(60);
            called.extend(world.address());
            world.answer.as_mut().unwrap().rotate_left(minute % 3);
        }
        assert_eq!(called, [SECOND, third, FIRST, SECOND, third]);
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_asked_for_more_and_more_rarely() {
        let mut world = World::new(Err("no name server"));
        world.run(600);
        let asked = world.asked();
        assert_eq!(asked[..9], [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert!(asked[6..].windows(2).all(|pair| pair[1] - pair[0] == 60), "{asked:?}");
        let told = world.told();
        assert_eq!(told.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 31, 123, 483]);
        assert_eq!(told[0].1, "the address of hub.example.org is not known yet: no name server");
        world.answer = Ok(addresses(&[FIRST]));
        world.run(60);
        assert_eq!((world.asked(), world.address().as_deref()), (vec![603], Some(FIRST)));
        world.told();
        world.answer = Err("no name server");
        world.run(20);
        assert_eq!(world.asked(), [663, 664, 666, 670, 678]);
        let still =
            format!("the address of hub.example.org cannot be found: no name server; still calling {FIRST}");
        assert_eq!(world.told(), [(663, still)]);
    }

    #[test]
    fn failures_before_the_peer_was_heard_do_not_count_later() {
        let mut world = World::new(Ok(&[FIRST]));
        world.run(1);
        world.answer = Err("no name server");
        world.run(300);
        world.is_heard = true;
        world.run(100);
        world.is_heard = false;
        world.asked();
        world.told();
        world.run(10);
        assert_eq!(world.asked(), [401, 402, 404, 408]);
        assert_eq!(world.told().len(), 1);
    }

    #[test]
    fn a_name_without_an_address_of_the_family_is_not_resolved() {
        let mut world = World::new(Ok(&["[2001:db8::7]:7000"]));
        world.run(1);
        assert_eq!(world.address(), None);
        assert!(world.told()[0].1.ends_with("it has no IPv4 address, of which family `listen` is"));
        world.answer = Ok(vec![]);
        world.run(10);
        assert_eq!((world.asked(), world.address()), (vec![0, 1, 3, 7], None));
    }

    /// The peer may call first, before this end knows where it is.
    #[test]
    fn a_peer_that_is_heard_before_its_name_is_resolved_is_asked_for() {
        let mut world = World::new(Err("no name server"));
        world.is_heard = true;
        world.run(3);
        world.answer = Ok(addresses(&[FIRST]));
        world.run(100);
        assert_eq!((world.asked(), world.address().as_deref()), (vec![0, 1, 3], Some(FIRST)));
    }

    #[test]
    fn an_answer_that_comes_when_the_peer_is_heard_again_changes_nothing() {
        let mut world = World::new(Ok(&[FIRST]));
        world.run(60);
        assert!(world.whereabouts.poll_question(at(60), false).is_some());
        let notice = world.whereabouts.handle_answer(at(61), true, Ok(addresses(&[SECOND])));
        assert_eq!((notice, world.address().as_deref()), (None, Some(FIRST)));
        assert_eq!(world.whereabouts.poll_timeout(false), Some(at(121)));
    }
}
