//! Memory that is free, which the allocator keeps for itself: handshakes and first measurements of a thousand peers leave holes.

use base::{Duration, Instant};

/// When free memory is given back: some time after sessions have begun or ended, and seldom.
#[derive(Debug, Default)]
pub struct Tidying {
    due: Option<Instant>,
    done: Instant,
}

/// From the first of what leaves holes until it is over, usually.
const WAIT: Duration = Duration::from_secs(10);
/// Between two times: it takes up to 20 ms with ten thousand peers.
const INTERVAL: Duration = Duration::from_secs(60);

impl Tidying {
    /// Memory may have become free.
    pub fn ask(&mut self, now: Instant) {
        let next = (now + WAIT).max(self.done + INTERVAL);
        self.due.get_or_insert(next);
    }

    /// When [`Tidying::handle_timeout`] is to be called.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Gives memory back, if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.due.take_if(|due| *due <= now).is_some() {
            self.done = now;
            give_back();
        }
    }
}

/// Gives memory back to the system.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes an integer, and may be made at any time.
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_after_a_while_and_seldom() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut tidying = Tidying::default();
        assert_eq!(tidying.poll_timeout(), None);
        tidying.ask(at(100));
        tidying.ask(at(105));
        assert_eq!(tidying.poll_timeout(), Some(at(110)));
        tidying.handle_timeout(at(109));
        assert_eq!(tidying.poll_timeout(), Some(at(110)));
        tidying.handle_timeout(at(110));
        assert_eq!(tidying.poll_timeout(), None);
        tidying.ask(at(111));
        assert_eq!(tidying.poll_timeout(), Some(at(170)));
    }
}
