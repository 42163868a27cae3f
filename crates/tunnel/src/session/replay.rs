//! The sliding window that accepts every counter once (RFC 6479).
//!
//! Deviations: none; the ring has one word more than the window, as there.

/// Remembers which of the last [`WINDOW`] counters arrived.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    /// One more than the highest counter that arrived.
    next: u64,
    ring: [u64; WORDS],
}

/// Counters below the highest that are still told apart.
pub(crate) const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// Words of the ring, a power of two: 8128 counters, 2 ms of full-size datagrams at 40 Gbit/s.
const WORDS: usize = 128;

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { next: 0, ring: [0; WORDS] }
    }
}

impl ReplayWindow {
    /// Whether `counter` is new, as far as the window reaches. Does not remember it: it may be a forgery.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return true;
        }
        if !self.reaches(counter) {
            return false;
        }
        self.ring[Self::word(counter)] & Self::bit(counter) == 0
    }

    /// Whether it can be told if `counter` has arrived.
    pub(crate) const fn reaches(&self, counter: u64) -> bool {
        self.next.saturating_sub(counter) <= WINDOW
    }

    /// Remembers an authenticated `counter`, which is below `u64::MAX`; how many below it were skipped if it is the highest so far.
    pub(crate) fn mark(&mut self, counter: u64) -> Option<u64> {
        let skipped = counter.checked_sub(self.next);
        if skipped.is_some() {
            let newest = self.next.saturating_sub(1) / 64;
            let words = (counter / 64 - newest).min(WORDS as u64);
            for step in 1..=words {
                self.ring[((newest + step) % WORDS as u64) as usize] = 0;
            }
            self.next = counter + 1;
        }
        self.ring[Self::word(counter)] |= Self::bit(counter);
        skipped
    }

    /// Whether anything arrived at all.
    pub(crate) const fn is_untouched(&self) -> bool {
        self.next == 0
    }

    const fn word(counter: u64) -> usize {
        ((counter / 64) % WORDS as u64) as usize
    }

    const fn bit(counter: u64) -> u64 {
        1 << (counter % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn the_window_is_at_least_what_was_promised() {
        const { assert!(WINDOW >= 2048) };
        let mut window = ReplayWindow::default();
        assert!(window.is_untouched());
        assert_eq!(window.mark(WINDOW), Some(WINDOW), "so many were skipped");
        assert!(window.is_new(1) && !window.is_new(0), "only what the window still covers is new");
        assert_eq!(window.mark(1), None);
        assert!(!window.is_new(1) && window.is_new(2));
        assert_eq!(window.mark(WINDOW + 1), Some(0));
        assert!(window.mark(u64::MAX - 1).is_some());
        assert!(!window.is_new(WINDOW) && window.is_new(u64::MAX - 2));
    }

    proptest! {
        /// The model remembers everything and forgets what the window no longer covers.
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((0_u64..20_000, any::<bool>()), 1..400)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::default(), HashSet::new(), None::<u64>);
            let mut base = 0_u64;
            for (step, jump) in steps {
                let counter = if jump { base + step } else { (base + 100).saturating_sub(step % 300) };
                let covered = highest.is_none_or(|h| counter > h || h + 1 - counter <= WINDOW);
                prop_assert_eq!(window.is_new(counter), covered && !seen.contains(&counter), "{}", counter);
                if window.is_new(counter) {
                    let skipped = highest.map_or(Some(counter), |h| counter.checked_sub(h + 1));
                    prop_assert_eq!(window.mark(counter), skipped);
                    seen.insert(counter);
                    highest = highest.max(Some(counter));
                    base = highest.unwrap_or(0);
                }
            }
        }
    }
}
