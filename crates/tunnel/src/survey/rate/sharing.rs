//! Sharing: how much of the bottleneck is ours while somebody else keeps a queue there.
//!
//! A queue that sending less does not drain may be somebody else's. So may one of which far less passes for us than of our trains: whoever has a small part
//! can neither fill nor empty it, whatever it happens to do while he sends less. Then what is sent follows neither delays nor what the bottleneck lets through: it is
//! what as many CUBIC flows would take as there are TCP flows inside ([`super::virtual_flows`]), and no more than their part beside one other.

use base::{Duration, Instant};

use super::virtual_flows::VirtualFlows;

/// How sure it is that there is somebody to share with, and our share.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// Somebody else's queue was found at the bottleneck of late.
    until: Instant,
    /// Experiments with a queue that failed, one after the other.
    failures: u32,
    /// TCP flows inside, the most of late.
    inside: Recent,
    flows: VirtualFlows,
    /// What the bottleneck carries for all, in bits per second, as far as it is known.
    bottleneck: Option<f64>,
    /// Since when losses or a queue have looked like those of a crowd.
    suspected: Option<Instant>,
    /// What our flows begin with, if they should not with all of our part.
    begins_at: Option<f64>,
    /// Since when no queue has stood, while somebody else's should.
    empty_since: Option<Instant>,
}

/// The largest of recent counts.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    count: u64,
    at: Instant,
}

/// What a sample tells to those who share.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When the stamp left.
    pub sent_at: Instant,
    /// Packets that were lost beyond what the channel loses.
    pub lost: u64,
    /// Whether none stands.
    pub is_empty: bool,
    /// The newest round trip, queues included.
    pub round_trip: Duration,
    /// What the bottleneck carries for all, in bits per second, if it has been measured of late.
    pub bottleneck: Option<f64>,
}

/// Failures in a row from which on it is sure that the queue is somebody else's. Ours.
const SURE: u32 = 2;
/// Virtual flows for each TCP flow inside: what is paced is hit each time that the queue overflows, and flows are hit by chance. Ours.
const VIRTUAL: u64 = 3;
/// How long it counts as somebody else's after it was last found. Ours.
const MEMORY: Duration = Duration::from_secs(10);
/// Or overflowed: a flow of CUBIC with ten thousand packets under way takes about twenty seconds to fill it again. Ours.
const OVERFLOWS: Duration = Duration::from_secs(20);
/// Nobody else's queue runs empty for so long. Ours.
const EMPTY: Duration = Duration::from_secs(3);
/// For how long the most flows inside count. Ours.
const INSIDE: Duration = Duration::from_secs(5);

impl Sharing {
    /// Whether somebody else's queue was found of late.
    #[must_use]
    pub fn is_found(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Whether it is sure that the queue is somebody else's, so that [`Sharing::observe`] says what to send.
    #[must_use]
    pub fn is_sure(&self, now: Instant) -> bool {
        self.is_found(now) && self.failures >= SURE
    }

    /// There are so many TCP flows inside that have something to send.
    pub const fn set_inside(&mut self, now: Instant, count: u64) {
        let Recent { count: most, at } = self.inside;
        if count >= most || at.saturating_add(INSIDE).as_nanos() <= now.as_nanos() {
            self.inside = Recent { count, at: now };
        }
    }

    /// Our part of what the bottleneck carries, at most: that of our flows beside one other.
    #[must_use]
    pub fn most(&self) -> f64 {
        let inside = self.inside.count.max(1) as f64;
        inside / (inside + 1.0)
    }

    /// A queue drained: it was ours.
    pub const fn on_drained(&mut self) {
        self.failures = 0;
    }

    /// A queue did not drain, which is tried again after `quiet_until`.
    pub fn on_not_drained(&mut self, quiet_until: Instant) {
        self.failures += 1;
        self.until = quiet_until + MEMORY;
    }

    /// The queue overflows although its part was left to somebody else: then there is somebody.
    pub fn on_overflow(&mut self, now: Instant) {
        if self.is_found(now) {
            self.failures = self.failures.max(SURE);
        }
    }

    /// When losses or a queue first looked like those of a crowd, if that was of late. Trains that left before may tell of a faster path.
    #[must_use]
    pub fn suspected_since(&self, now: Instant) -> Option<Instant> {
        self.suspected.filter(|since| now < *since + OVERFLOWS)
    }

    /// Losses or a queue may be those of a crowd, or not.
    pub fn suspect(&mut self, now: Instant, is_suspect: bool) {
        self.suspected = is_suspect.then(|| self.suspected_since(now).unwrap_or(now));
    }

    /// Others lose what we send, of which `arrived` bits per second are left.
    pub fn on_crowd(&mut self, now: Instant, arrived: f64) {
        self.failures = self.failures.max(SURE);
        self.until = self.until.max(now + OVERFLOWS);
        self.begins_at = Some(arrived);
        self.suspected = None;
    }

    /// Takes in a sample; what to send, in bits per second, while it is sure that there is somebody. `sent` was sent until now.
    pub fn observe(&mut self, now: Instant, seen: &Seen, sent: f64) -> Option<f64> {
        if !self.is_sure(now) {
            self.flows.clear();
            self.empty_since = None;
            return None;
        }
        if seen.lost > 0 {
            self.until = self.until.max(now + OVERFLOWS);
        }
        self.empty_since = seen.is_empty.then(|| self.empty_since.unwrap_or(now));
        if self.empty_since.is_some_and(|since| now >= since + EMPTY) {
            *self = Self { inside: self.inside, ..Self::default() };
            return None;
        }
        // While it is sure there are no trains, which would overflow the queue.
        self.bottleneck = seen.bottleneck.or(self.bottleneck);
        let most = self.most() * self.bottleneck.unwrap_or(0.0);
        let count = self.inside.count.saturating_mul(VIRTUAL) as usize;
        let begins_at = self.begins_at.take().unwrap_or(sent.max(most));
        self.flows.resize(now, count, begins_at, seen.round_trip);
        self.flows.on_lost(now, seen.sent_at, seen.lost, seen.round_trip);
        if self.bottleneck.is_some() {
            self.flows.limit(now, most, seen.round_trip);
        }
        Some(self.flows.rate(now, seen.round_trip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// A sample of a long queue at a bottleneck of 10 Mbit/s, 200 ms away, which left just before.
    fn seen(now: Instant, lost: u64) -> Seen {
        Seen {
            sent_at: now.saturating_sub(Duration::from_millis(200)),
            lost,
            is_empty: false,
            round_trip: Duration::from_millis(200),
            bottleneck: Some(10e6),
        }
    }

    /// Sure from the first second on, with `inside` flows inside.
    fn sharing(inside: u64) -> Sharing {
        let mut sharing = Sharing::default();
        sharing.set_inside(at(1), inside);
        sharing.on_not_drained(at(1));
        sharing.on_not_drained(at(1));
        sharing
    }

    #[test]
    fn two_queues_in_a_row_that_do_not_drain_are_somebody_elses() {
        let mut sharing = Sharing::default();
        sharing.on_not_drained(at(20));
        assert!(!sharing.is_sure(at(21)) && sharing.is_found(at(29)) && !sharing.is_found(at(30)));
        sharing.on_drained();
        sharing.on_not_drained(at(50));
        assert!(!sharing.is_sure(at(51)));
        sharing.on_not_drained(at(90));
        assert!(sharing.is_sure(at(99)) && !sharing.is_sure(at(100)));
    }

    #[test]
    fn one_that_overflows_is_too() {
        let mut sharing = Sharing::default();
        sharing.on_overflow(at(1));
        sharing.on_not_drained(at(20));
        assert_eq!(sharing.observe(at(11), &seen(at(11), 0), 4e6), None);
        sharing.on_overflow(at(12));
        assert!(sharing.observe(at(12), &seen(at(12), 1), 4e6).is_some());
    }

    #[test]
    fn a_share_begins_with_that_beside_one_other() {
        for (inside, sent, share) in
            [(0, 4e6, 5e6), (1, 4e6, 5e6), (1, 9e6, 5e6), (4, 9e6, 8e6), (9, 20e6, 9e6)]
        {
            let told = sharing(inside).observe(at(2), &seen(at(2), 0), sent).unwrap();
            assert!((told - share).abs() < 1.0, "{inside} inside, {sent} sent: {told}");
        }
    }

    #[test]
    fn losses_cut_the_share_by_flow() {
        for (inside, lost, part) in [(1, 1, 0.9), (1, 3, 0.7), (1, 9, 0.7), (4, 1, 1.0 - 0.3 / 12.0)] {
            let beside = Seen { bottleneck: None, ..seen(at(2), lost) };
            let told = sharing(inside).observe(at(2), &beside, 5e6).unwrap();
            assert!((told / 5e6 - part).abs() < 1e-9, "{inside} inside, {lost} lost: {told}");
        }
    }

    #[test]
    fn the_most_flows_of_five_seconds_count() {
        let mut sharing = sharing(8);
        sharing.set_inside(at(5), 1);
        assert!((sharing.most() - 8.0 / 9.0).abs() < 1e-9);
        sharing.set_inside(at(6), 2);
        assert!((sharing.most() - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn it_ends_when_no_queue_stands_for_three_seconds_or_none_overflows_for_twenty() {
        let empty = |now| Seen { is_empty: true, ..seen(now, 0) };
        let mut ends = sharing(1);
        let is_over = |now: u64| ends.observe(at(now), &empty(at(now)), 4e6).is_none();
        assert_eq!([2, 3, 4, 5, 6].map(is_over), [false, false, false, true, true]);
        let mut fills_again = sharing(1);
        for now in 2..60 {
            let seen = if now % 3 == 0 { seen(at(now), (now % 9 == 0).into()) } else { empty(at(now)) };
            assert!(fills_again.observe(at(now), &seen, 4e6).is_some(), "{now}");
        }
        let mut lapses = sharing(1);
        assert!(lapses.observe(at(3), &seen(at(3), 1), 4e6).is_some());
        assert!(lapses.observe(at(22), &seen(at(22), 0), 4e6).is_some());
        assert!(lapses.observe(at(23), &seen(at(23), 0), 4e6).is_none());
    }

    #[test]
    fn what_trains_found_holds_while_there_are_none() {
        let mut sharing = sharing(1);
        sharing.observe(at(2), &seen(at(2), 0), 4e6);
        let later = Seen { bottleneck: None, ..seen(at(9), 0) };
        assert!(sharing.observe(at(9), &later, 4e6).unwrap() <= 5e6);
    }

    #[test]
    fn a_crowd_is_sure_at_once_and_our_flows_begin_with_what_arrives() {
        let mut sharing = Sharing::default();
        sharing.set_inside(at(1), 1);
        sharing.on_crowd(at(1), 2e6);
        let told = sharing.observe(at(1), &seen(at(1), 0), 9e6).unwrap();
        assert!((told - 2e6).abs() < 1.0, "{told}");
        assert!(sharing.is_sure(at(20)) && !sharing.is_sure(at(21)));
    }

    #[test]
    fn a_suspicion_has_its_first_sign_and_lapses_after_twenty_seconds() {
        let mut sharing = Sharing::default();
        sharing.suspect(at(1), true);
        sharing.suspect(at(2), true);
        assert_eq!(sharing.suspected_since(at(2)), Some(at(1)));
        assert_eq!([20, 21].map(|now| sharing.suspected_since(at(now))), [Some(at(1)), None]);
        sharing.suspect(at(22), true);
        assert_eq!(sharing.suspected_since(at(22)), Some(at(22)));
        sharing.suspect(at(23), false);
        assert_eq!(sharing.suspected_since(at(23)), None);
        sharing.suspect(at(24), true);
        sharing.on_crowd(at(25), 1e6);
        assert_eq!(sharing.suspected_since(at(25)), None);
    }
}
