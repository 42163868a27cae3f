//! What becomes of a study's claims, under every reading of what the paper leaves unsaid.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::results::{Place, View, in_view};
use super::{Plan, Results, Study, StudyError};
use crate::claims::{Claim, Decision, Formula, Tally, Value, Verdict};

/// Of the rules by which claims are decided: another version may decide otherwise.
pub(super) const VERSION: u32 = 2;

/// Every claim, judged.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// In the order of the claims file.
    pub judged: Vec<Judged>,
    /// How the claims come out under each reading, the default one first.
    pub tallies: Vec<Tally>,
}

/// A claim and what became of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its place in the claims file.
    pub claim: usize,
    /// Under the default reading.
    pub decision: Decision,
    /// What is told beside it: the expression and its value.
    pub told: Vec<(String, Value)>,
    /// The verdict under each reading, the default one first.
    pub verdicts: Vec<Verdict>,
    /// If it is undecided under the default one: where more seeds may decide it.
    pub(super) open: BTreeSet<Place>,
}

impl Judged {
    /// At how many readings it comes out which way.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.verdicts.iter().for_each(|verdict| tally.add(*verdict));
        tally
    }
}

/// Judges every claim whose experiments all ran, at a level of confidence.
pub(super) fn judge(
    study: &Study,
    plan: &Plan,
    points: &[Vec<usize>],
    experiments: &[usize],
    (results, level): (&Results, f64),
) -> Result<Judgement, StudyError> {
    let mut judged = Vec::new();
    for (place, claim) in study.claims.iter().enumerate() {
        let needs = &study.asked[place].all;
        let ran = |experiment: &usize| {
            experiments.contains(experiment) || study.experiments[*experiment].is_skipped(plan)
        };
        let is_decided = match &plan.figure {
            Some(_) => !needs.is_empty() && needs.iter().all(ran),
            None => true,
        };
        if is_decided {
            let complain = |message: String| StudyError::Expression { place: claim.id.clone(), message };
            judged
                .push(judge_claim(study, plan, points, (results, level), (place, claim)).map_err(complain)?);
        }
    }
    let tally = |point: usize| {
        let mut tally = Tally::default();
        judged.iter().for_each(|judged: &Judged| tally.add(judged.verdicts[point]));
        tally
    };
    let tallies = (0..points.len()).map(tally).collect();
    Ok(Judgement { judged, tallies })
}

fn judge_claim(
    study: &Study,
    plan: &Plan,
    points: &[Vec<usize>],
    (results, level): (&Results, f64),
    (place, claim): (usize, &Claim),
) -> Result<Judged, String> {
    let experiments = in_view(study, &claim.from)?;
    let decide = |view: &View<'_>| claim.check.decide_at(view, level).map_err(|error| error.to_string());
    let [default, others @ ..] = points else { return Err("no reading runs".to_owned()) };
    let under_default = View::new(study, plan, results, default, &experiments);
    let decision = decide(&under_default)?;
    let open = match decision.verdict {
        Verdict::Undecided => {
            let asked = under_default.asked.borrow();
            decision
                .open
                .iter()
                .flat_map(|range| asked.get(range.clone()).unwrap_or_default())
                .cloned()
                .collect()
        }
        Verdict::Holds | Verdict::Fails => BTreeSet::new(),
    };
    let mut verdicts = vec![decision.verdict];
    let under = |point: &Vec<usize>| -> Result<Verdict, String> {
        Ok(decide(&View::new(study, plan, results, point, &experiments))?.verdict)
    };
    verdicts.extend(others.par_iter().map(under).collect::<Result<Vec<_>, _>>()?);
    let tell = |told: &Formula| {
        let value = told.value(&under_default).map_err(|error| format!("{}: {error}", told.source()))?;
        Ok((told.source().to_owned(), value))
    };
    let told = claim.told.iter().map(tell).collect::<Result<_, String>>()?;
    Ok(Judged { claim: place, decision, told, verdicts, open })
}
