//! Marks over time in bounded room: when there are too many, every second one goes, and from then on every second comes.

/// Marks that a series keeps at most: five minutes of 256 kbit/s in records of 100 bytes.
const KEPT: usize = 100_000;

/// At most 100 000 of all marks pushed, evenly chosen.
#[derive(Clone, Debug)]
pub struct Series<T> {
    kept: Vec<T>,
    /// One in so many is kept.
    stride: u64,
    pushed: u64,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), stride: 1, pushed: 0 }
    }
}

impl<T> Series<T> {
    /// Takes one more mark.
    pub fn push(&mut self, mark: T) {
        if self.pushed.is_multiple_of(self.stride) {
            if self.kept.len() == KEPT {
                let mut odd = true;
                self.kept.retain(|_| {
                    odd = !odd;
                    !odd
                });
                self.stride *= 2;
            }
            // The full series holds an even number: what comes now is on the coarser grid as well.
            self.kept.push(mark);
        }
        self.pushed += 1;
    }

    /// The marks kept, in their order.
    #[must_use]
    pub fn marks(&self) -> &[T] {
        &self.kept
    }

    /// Marks pushed, kept or not.
    #[must_use]
    pub const fn pushed(&self) -> u64 {
        self.pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_even_and_bounded() {
        let mut series = Series::default();
        let all = 5 * KEPT as u64 + 7;
        (0..all).for_each(|mark| series.push(mark));
        assert_eq!(series.pushed(), all);
        assert!((KEPT / 2..=KEPT).contains(&series.marks().len()), "{}", series.marks().len());
        let stride = series.marks()[1];
        assert!(series.marks().iter().enumerate().all(|(place, &mark)| mark == place as u64 * stride));
    }
}
