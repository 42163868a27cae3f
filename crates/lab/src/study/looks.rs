//! Looking at the claims several times, with more seeds for those that are undecided.
//!
//! A number of seeds that decides every claim of a study is far more than most of its claims need. So a full run measures as many as
//! its experiments name, and looks; what an undecided comparison rests on gets as many seeds again, and so on. Each look has its part of the
//! error that a verdict may have ([`Growth::level`]), so that stopping as soon as something is decided does not make chance count for more.
//! After Pocock, Group sequential methods in the design and analysis of clinical trials, Biometrika 64 (1977), with Bonferroni's equal
//! parts: looks with different numbers of seeds in different comparisons have no common correlation to gain from.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use super::Judgement;
use super::results::Place;
use super::sweep::Job;
use crate::claims::LEVEL;

/// Looks unless a study says otherwise: in the last one there are four times as many seeds as in the first.
pub(super) const DEFAULT: u32 = 3;

/// Looks at most.
pub(super) const MOST: u32 = 6;

/// How many seeds there are, and what more may be spent.
#[derive(Debug)]
pub(super) struct Growth {
    /// Looks in all, and those that were had.
    looks: u32,
    had: u32,
    /// Work that may still be added. Ours: as much as the first look took.
    budget: u64,
    /// Replications of what a job is the first of, where they are more than its case has.
    seeds: BTreeMap<usize, u32>,
}

impl Growth {
    /// So many looks, of which the first takes so much work.
    pub(super) const fn new(looks: u32, work: u64) -> Self {
        Self { looks, had: 0, budget: work, seeds: BTreeMap::new() }
    }

    /// The level of confidence of each look.
    pub(super) fn level(&self) -> f64 {
        1.0 - (1.0 - LEVEL) / f64::from(self.looks)
    }

    /// What to measure for the next look: for first jobs, numbers of further replications. Nothing if this was the last one.
    pub(super) fn next(&mut self, jobs: &[Job], judgement: &Judgement) -> Vec<(usize, Range<u32>)> {
        self.had += 1;
        if self.had >= self.looks {
            return Vec::new();
        }
        let firsts: BTreeMap<&Place, usize> = jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.number == 0 && !job.case.exact)
            .flat_map(|(place, job)| job.places.iter().map(move |at| (at, place)))
            .collect();
        let mut wanted: Vec<BTreeSet<usize>> = judgement
            .judged
            .iter()
            .map(|judged| judged.open.iter().filter_map(|place| firsts.get(place).copied()).collect())
            .collect();
        // The most verdicts for the work.
        let cost = |of: &BTreeSet<usize>| of.iter().map(|&job| self.cost(jobs, job)).sum::<u64>();
        wanted.sort_by_cached_key(cost);
        let (mut chosen, mut budget) = (BTreeSet::new(), self.budget);
        for of_claim in wanted {
            let new: BTreeSet<usize> = of_claim.difference(&chosen).copied().collect();
            if let Some(left) = budget.checked_sub(cost(&new)) {
                budget = left;
                chosen.extend(new);
            }
        }
        self.budget = budget;
        chosen.into_iter().map(|job| (job, self.double(jobs, job))).collect()
    }

    /// The work of as many replications as there are.
    fn cost(&self, jobs: &[Job], first: usize) -> u64 {
        u64::from(self.seeds_of(jobs, first)) * jobs[first].case.work
    }

    fn seeds_of(&self, jobs: &[Job], first: usize) -> u32 {
        self.seeds.get(&first).copied().unwrap_or(jobs[first].case.seeds)
    }

    fn double(&mut self, jobs: &[Job], first: usize) -> Range<u32> {
        let seeds = self.seeds_of(jobs, first);
        self.seeds.insert(first, 2 * seeds);
        seeds..2 * seeds
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use base::Rng;

    use crate::claims::Verdict;
    use crate::study::probe::{Method, Probe};
    use crate::study::{Files, Plan, Progress, Study, Sweep};

    /// Values around `centre`, with deviation 1.
    const AROUND: Probe = Probe {
        name: "around",
        version: 1,
        quantities: &["value"],
        series: &[],
        method: Method::Trial(|trial, measured| {
            let mut rng = Rng::named(trial.seed, "around");
            let away = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            measured.set("value", &[], trial.numbers["centre"] + away);
            Ok(())
        }),
    };

    const HEAD: &str = "name = 't'\ntitle = ''\nclaims = 'claims'\n";
    const EXPERIMENT: &str = "[[experiment]]\nname = 'e'\naxes.centre = [0.0, 1.0, 3.0, 5.0, 7.0]\nseeds = 5\nprobes = ['around']\nwith.centre = 'centre'\n";
    const CLAIMS: &str = "
[[claim]]
id = 'plain'
section = ''
statement = ''
check = 'value(3) > 0'
kind = 'ordering'

[[claim]]
id = 'near'
section = ''
statement = ''
check = 'value(3) > 0 and value(1) > 0.2'
kind = 'ordering'

[[claim]]
id = 'never'
section = ''
statement = ''
check = 'all(value(c) >= c for c in [0])'
kind = 'ordering'
";

    fn study(head: &str, claims: &str) -> Study {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let files = [
            ("experiments.toml", leak(format!("{head}{EXPERIMENT}"))),
            ("claims.toml", leak(claims.to_owned())),
        ];
        Study::load(Files::Embedded("study", Box::leak(Box::new(files))), "experiments.toml", &[&AROUND])
            .unwrap()
    }

    /// Seeds by `centre`, verdicts, and the work that was done and added.
    fn run(study: &Study, plan: Plan) -> (Vec<usize>, Vec<Verdict>, [u64; 2]) {
        let work = Mutex::new([0, 0]);
        let tell = |step| match step {
            Progress::Done(more) => work.lock().unwrap()[0] += more,
            Progress::Added(more) => work.lock().unwrap()[1] += more,
        };
        let outcome = Sweep::prepare(study, plan).unwrap().run(tell).unwrap();
        let mut table = Vec::new();
        outcome.results.write_csv(study, &mut table).unwrap();
        let rows = String::from_utf8(table).unwrap();
        let seeds =
            |centre: &&str| rows.lines().filter(|row| row.starts_with(&format!("e,{centre},"))).count();
        let verdicts = outcome.judgement.judged.iter().map(|judged| judged.decision.verdict).collect();
        (["0", "1", "3"].iter().map(seeds).collect(), verdicts, work.into_inner().unwrap())
    }

    use Verdict::{Holds, Undecided};

    #[test]
    fn what_is_undecided_gets_more_seeds_until_it_is_decided() {
        // `near` needs more than five seeds for one of its two values, and no number tells for `never`; each replication takes 1.
        let (seeds, verdicts, work) = run(&study(HEAD, CLAIMS), Plan::default());
        assert_eq!(verdicts, [Holds, Holds, Undecided]);
        assert_eq!((seeds, work), (vec![20, 10, 5], [45, 20]));
    }

    #[test]
    fn one_look_is_all_where_seeds_are_chosen() {
        for (head, plan) in [
            (String::new(), Plan { seeds: Some(5), ..Plan::default() }),
            (String::new(), Plan { quick: true, ..Plan::default() }),
            (String::new(), Plan { shard: Some((1, 1)), ..Plan::default() }),
            ("looks = 1\n".to_owned(), Plan::default()),
        ] {
            let (seeds, verdicts, work) = run(&study(&format!("{HEAD}{head}"), CLAIMS), plan);
            assert_eq!((seeds, work), (vec![5, 5, 5], [25, 0]));
            assert_eq!(verdicts[2], Undecided);
        }
    }

    /// As much is added as the first look took at most, for the claims that take least of it.
    #[test]
    fn what_is_added_is_bounded() {
        let (seeds, verdicts, work) = run(&study(&format!("{HEAD}looks = 6\n"), CLAIMS), Plan::default());
        assert!((20..=25).contains(&work[1]) && work[0] == 25 + work[1], "{work:?}");
        assert!(verdicts[2] == Undecided && seeds[0] <= 20 && seeds[2] == 5, "{seeds:?}");
    }

    #[test]
    fn looks_are_few() {
        let files = [("experiments.toml", "name = 't'\ntitle = ''\nlooks = 7\n")];
        let complaint =
            Study::load(Files::Embedded("study", Box::leak(Box::new(files))), "experiments.toml", &[]);
        assert!(complaint.unwrap_err().to_string().contains("looks = 7; allowed are 1 to 6"));
    }
}
