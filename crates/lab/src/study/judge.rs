//! What becomes of a study's claims, under every reading of what the paper leaves unsaid.

use super::results::{View, in_view};
use super::{Plan, Results, Study, StudyError};
use crate::claims::{Claim, Decision, Formula, Tally, Value, Verdict};

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

/// Judges every claim whose experiments all ran.
pub(super) fn judge(
    study: &Study,
    plan: &Plan,
    points: &[Vec<usize>],
    experiments: &[usize],
    results: &Results,
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
            judged.push(judge_claim(study, plan, points, results, place, claim).map_err(complain)?);
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
    results: &Results,
    place: usize,
    claim: &Claim,
) -> Result<Judged, String> {
    let experiments = in_view(study, &claim.from)?;
    let verdict = |reading: &[usize]| {
        let view =
            View { study, plan, results, reading, experiments: &experiments, scope: None, single: false };
        claim.check.decide(&view).map_err(|error| error.to_string())
    };
    let [default, others @ ..] = points else { return Err("no reading runs".to_owned()) };
    let decision = verdict(default)?;
    let mut verdicts = vec![decision.verdict];
    for point in others {
        verdicts.push(verdict(point)?.verdict);
    }
    let reading = &default[..];
    let view = View { study, plan, results, reading, experiments: &experiments, scope: None, single: false };
    let tell = |told: &Formula| {
        let value = told.value(&view).map_err(|error| format!("{}: {error}", told.source()))?;
        Ok((told.source().to_owned(), value))
    };
    let told = claim.told.iter().map(tell).collect::<Result<_, String>>()?;
    Ok(Judged { claim: place, decision, told, verdicts })
}
