//! The unacknowledged frames in the order of their latest transmission (Faulkner 2004, 2.3, footnote 3): a linked list
//! within arrays, one entry for each place of the window.

use super::window::WINDOW;

/// Places of the window, least recently touched first.
#[derive(Debug)]
pub(super) struct ByAge {
    /// For each place, and for the ring's anchor, the place touched before it.
    older: Box<[u16]>,
    /// For each place, and for the ring's anchor, the place touched after it.
    newer: Box<[u16]>,
}

/// Closes the list to a ring, so that no end is special.
const ANCHOR: usize = WINDOW;

/// A place that is not in the list points to itself.
impl ByAge {
    pub(super) fn new() -> Self {
        let alone: Box<[u16]> = (0..=ANCHOR as u16).collect();
        Self { older: alone.clone(), newer: alone }
    }

    /// The place touched longest ago.
    #[inline]
    pub(super) fn oldest(&self) -> Option<usize> {
        let oldest = usize::from(self.newer[ANCHOR]);
        (oldest != ANCHOR).then_some(oldest)
    }

    /// Makes `place` the newest, whether it was in the list or not.
    #[inline]
    pub(super) fn touch(&mut self, place: usize) {
        self.remove(place);
        let newest = usize::from(self.older[ANCHOR]);
        self.join(newest, place);
        self.join(place, ANCHOR);
    }

    /// Takes `place` out, if it is in.
    #[inline]
    pub(super) fn remove(&mut self, place: usize) {
        let (older, newer) = (usize::from(self.older[place]), usize::from(self.newer[place]));
        self.join(older, newer);
        self.join(place, place);
    }

    #[inline]
    fn join(&mut self, older: usize, newer: usize) {
        self.newer[older] = newer as u16;
        self.older[newer] = older as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_oldest_is_the_least_recently_touched(
            steps in prop::collection::vec((0_usize..WINDOW, prop::bool::weighted(0.6)), 0..400),
        ) {
            let (mut list, mut model) = (ByAge::new(), Vec::new());
            for (place, touch) in steps {
                model.retain(|&other| other != place);
                if touch {
                    list.touch(place);
                    model.push(place);
                } else {
                    list.remove(place);
                }
                prop_assert_eq!(list.oldest(), model.first().copied());
            }
        }
    }
}
