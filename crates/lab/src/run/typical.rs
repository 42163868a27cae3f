//! Which realisation stands for all of a suite's: that of the median.

use crate::run::Run;
use crate::scenario::Suite;

/// The seed that figures of single runs show, and by what it is the median one.
#[derive(Clone, Debug, PartialEq)]
pub struct Typical {
    /// The seed.
    pub seed: u64,
    /// What it is the median of over the seeds, such as `goodput of B over that of A`; `None` for the only seed.
    pub measure: Option<String>,
    /// The value of that measure with this seed.
    pub value: f64,
}

impl Typical {
    /// The seed with the median, over the seeds, of the last scheme's goodput over the first's; of goodput if there is one
    /// scheme, or if some run of the first carried nothing. With an even number of seeds it is the upper one of the two in the
    /// middle.
    #[must_use]
    pub fn of(suite: &Suite, runs: &[Run]) -> Option<Self> {
        let (first, last) = (&suite.schemes.first()?.0, &suite.schemes.last()?.0);
        let goodput = |scheme: &str, seed| {
            let run = runs.iter().find(|run| run.scheme == scheme && run.seed == seed);
            run.map(|run| run.goodput_bps)
        };
        let seeds: Vec<u64> = runs.iter().filter(|run| run.scheme == *last).map(|run| run.seed).collect();
        let ratio = |&seed: &u64| {
            let ratio = goodput(last, seed)? / goodput(first, seed)?;
            ratio.is_finite().then_some((ratio, seed))
        };
        let ratios: Option<Vec<_>> = seeds.iter().map(ratio).filter(|_| first != last).collect();
        let is_of_ratios = ratios.as_ref().is_some_and(|ratios| !ratios.is_empty());
        let mut values = match ratios {
            Some(ratios) if is_of_ratios => ratios,
            _ => seeds.iter().filter_map(|&seed| Some((goodput(last, seed)?, seed))).collect(),
        };
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let &(value, seed) = values.get(values.len() / 2)?;
        let measure = match is_of_ratios {
            true => format!("goodput of {last} over that of {first}"),
            false => format!("goodput of {last}"),
        };
        Some(Self { seed, measure: (values.len() > 1).then_some(measure), value })
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;
    use std::path::Path;

    use super::*;
    use crate::run::{Recordings, run_all};

    const TEXT: &str = "name = 'a'\ndescription = ''\nseed = 3\nseeds = 5\nduration = '600 s'\n\
        [link.l]\nends = ['a', 'b']\nprotocol = 'plain'\n\
        [link.l.channel]\nrate = '1 Mbit/s'\ndelay = '20 ms'\n\
        errors = { gilbert-elliott = { f = 0.3, d = '0.2 s' } }\n\
        [traffic.t.bulk]\nfrom = 'a'\nto = 'b'\nsize = '40 kB'\n";

    fn suite(text: &str) -> Suite {
        Suite::parse("test", text, Path::new(""), &[]).unwrap()
    }

    #[test]
    fn plots_are_of_the_median_seed_alone_and_change_no_run() {
        let suite = suite(TEXT);
        let plain = run_all(&suite, &Recordings::default(), |_| ControlFlow::Continue(())).unwrap();
        let typical = Typical::of(&suite, &plain).unwrap();
        let mut goodput: Vec<(f64, u64)> = plain.iter().map(|run| (run.goodput_bps, run.seed)).collect();
        goodput.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!((typical.value, typical.seed), goodput[2]);
        let kept = run_all(&suite, &Recordings { plots: true, ..Recordings::default() }, |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        for (plain, kept) in plain.iter().zip(&kept) {
            assert_eq!(serde_json::to_string(plain).unwrap(), serde_json::to_string(kept).unwrap());
            assert_eq!(kept.progress.is_empty(), kept.seed != typical.seed, "seed {}", kept.seed);
            assert!(plain.progress.is_empty());
        }
        let shown = kept.iter().find(|run| run.seed == typical.seed).unwrap();
        assert_eq!(
            shown.progress[0].points.last().unwrap().1,
            shown.bytes,
            "its last point is all that was received"
        );
    }

    #[test]
    fn of_several_schemes_the_ratio_of_the_last_to_the_first_counts() {
        let suite = suite(&format!("{TEXT}[[scheme]]\nname = 'first'\n[[scheme]]\nname = 'last'\n"));
        let mut runs = run_all(&suite, &Recordings::default(), |_| ControlFlow::Continue(())).unwrap();
        for (goodput, run) in [2.0, 2.0, 1.0, 1.0, 1.0, 8.0, 2.0, 5.0, 7.0, 3.0].into_iter().zip(&mut runs) {
            run.goodput_bps = goodput;
        }
        // Ratios 4, 1, 5, 7 and 3 with seeds 3 to 7.
        let typical = Typical::of(&suite, &runs).unwrap();
        assert_eq!((typical.seed, typical.value), (3, 4.0));
        assert_eq!(typical.measure.unwrap(), "goodput of last over that of first");
        // Where the first carried nothing, the last's own goodput: 8, 2, 5, 7 and 3.
        runs[0].goodput_bps = 0.0;
        let typical = Typical::of(&suite, &runs).unwrap();
        assert_eq!((typical.seed, typical.value), (5, 5.0));
    }
}
