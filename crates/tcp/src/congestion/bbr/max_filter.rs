//! The largest value of the last rounds, in constant space: K. Nichols' windowed maximum, as in Linux's `win_minmax`.
//!
//! Deviations: none.

/// The best three samples of a window, each younger than the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxFilter([Sample; 3]);

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    value: u64,
}

impl MaxFilter {
    /// The largest value; zero before the first.
    pub(crate) const fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Takes the sample of a round that is not before the last one's; `window` rounds count.
    pub(crate) fn update(&mut self, window: u64, round: u64, value: u64) {
        let new = Sample { round, value };
        let best = &mut self.0;
        if value >= best[0].value || round - best[2].round > window {
            *best = [new; 3];
            return;
        }
        if value >= best[1].value {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].value {
            best[2] = new;
        }
        let age = round - best[0].round;
        if age > window {
            *best = [best[1], best[2], new];
            if round - best[0].round > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].round == best[0].round && age > window / 4 {
            // A quarter of the window without a second-best: any younger one will do.
            (best[1], best[2]) = (new, new);
        } else if best[2].round == best[1].round && age > window / 2 {
            best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_lasts_for_a_window() {
        let mut filter = MaxFilter::default();
        filter.update(10, 1, 500);
        for round in 2..=11 {
            filter.update(10, round, 300 + round);
            assert_eq!(filter.get(), 500, "round {round}");
        }
        filter.update(10, 12, 100);
        assert!((301..=311).contains(&filter.get()), "{}", filter.get());
        filter.update(10, 40, 50);
        assert_eq!(filter.get(), 50);
    }

    /// Linux, `minmax_subwin_update`: a second best is sought once a quarter of the window is over, a third after a half; each takes the
    /// place of the one before it when that is older than the window.
    #[test]
    fn the_next_best_takes_the_place() {
        let mut filter = MaxFilter::default();
        filter.update(8, 1, 900);
        // Within a quarter of the window nothing else is kept.
        for (round, sample) in [(2, 100), (3, 700), (4, 200), (6, 400), (8, 300), (9, 50)] {
            filter.update(8, round, sample);
            assert_eq!(filter.get(), 900, "round {round}");
        }
        for (round, sample, best) in
            [(10, 50, 400), (12, 50, 400), (14, 60, 400), (15, 40, 300), (17, 30, 60), (18, 1000, 1000)]
        {
            filter.update(8, round, sample);
            assert_eq!(filter.get(), best, "round {round}");
        }
    }

    /// Linux, `minmax_subwin_update`: where no sample came for long, the second best may be too old as well.
    #[test]
    fn two_may_be_too_old_at_once() {
        for (round, best) in [(12, 200), (13, 100), (14, 100), (15, 10)] {
            let mut filter = MaxFilter::default();
            for (round, sample) in [(1, 900), (4, 200), (6, 100)] {
                filter.update(8, round, sample);
            }
            filter.update(8, round, 10);
            assert_eq!(filter.get(), best, "round {round}");
        }
    }
}
