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
    /// scheme, or if some run of the first carried nothing. With an even number of seeds it is the lower one of the two in the
    /// middle, and of equal ones the first.
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
        let &(value, seed) = values.get(values.len().checked_sub(1)? / 2)?;
        let measure = match is_of_ratios {
            true => format!("goodput of {last} over that of {first}"),
            false => format!("goodput of {last}"),
        };
        Some(Self { seed, measure: (values.len() > 1).then_some(measure), value })
    }
}
