//! A clock that can stand still.

use base::{Duration, Instant};

/// The time in which the link has taken packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    stood: Duration,
    stands_since: Option<Instant>,
}

impl Stopwatch {
    /// What it shows.
    pub(super) fn read(&self, now: Instant) -> Instant {
        let running_until = self.stands_since.map_or(now, |since| now.min(since));
        running_until.saturating_sub(self.stood)
    }

    /// Since when it has stood still, if it does. That may be a while ago: it then goes back to what it showed, once.
    pub(super) fn set(&mut self, now: Instant, stands_since: Option<Instant>) {
        if let Some(since) = self.stands_since.take_if(|_| stands_since.is_none()) {
            self.stood = self.stood.saturating_add(now.saturating_since(since));
        }
        self.stands_since = self.stands_since.or(stands_since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn it_stands_and_goes_on_from_there() {
        let mut watch = Stopwatch::default();
        watch.set(at(5), None);
        assert_eq!(watch.read(at(10)), at(10));
        watch.set(at(12), Some(at(12)));
        watch.set(at(15), Some(at(15)));
        assert_eq!(watch.read(at(20)), at(12), "the first word counts");
        watch.set(at(20), None);
        assert_eq!((watch.read(at(20)), watch.read(at(25))), (at(12), at(17)));
        // Since 22, which is known at 30.
        watch.set(at(30), Some(at(22)));
        assert_eq!((watch.read(at(30)), watch.read(at(40))), (at(14), at(14)));
        watch.set(at(42), None);
        assert_eq!(watch.read(at(43)), at(15));
    }
}
