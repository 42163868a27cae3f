//! How large the super-segments from the LAN may be, whoever they are for: as the most modest tunnel has it. Kept as tunnels change, so
//! that nobody asks ten thousand of them.

use std::collections::BTreeMap;

/// How many tunnels take which size; `None` for single packets only.
#[derive(Debug, Default)]
pub(super) struct SuperSegments(BTreeMap<Option<u32>, usize>);

impl SuperSegments {
    pub(super) fn add(&mut self, size: Option<u32>) {
        *self.0.entry(size).or_default() += 1;
    }

    pub(super) fn remove(&mut self, size: Option<u32>) {
        if let Some(count) = self.0.get_mut(&size) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&size);
            }
        }
    }

    /// What all take.
    pub(super) fn least(&self) -> Option<u32> {
        self.0.first_key_value().and_then(|(size, _)| *size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_modest_counts_while_it_is_there() {
        let mut sizes = SuperSegments::default();
        assert_eq!(sizes.least(), None);
        for size in [Some(9000), Some(3000), Some(3000), None] {
            sizes.add(size);
        }
        assert_eq!(sizes.least(), None);
        sizes.remove(None);
        sizes.remove(Some(3000));
        assert_eq!(sizes.least(), Some(3000));
        sizes.remove(Some(3000));
        assert_eq!(sizes.least(), Some(9000));
    }
}
