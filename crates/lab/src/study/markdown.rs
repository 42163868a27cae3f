//! The verdicts as Markdown tables, for documentation.

use core::fmt::Write as _;

use super::judge::Judged;
use super::{Outcome, Reading};
use crate::claims::{Comparison, Tally, Value, Verdict, short};

/// Every claim with its verdict, and how many claims hold under each reading.
pub(super) fn verdicts(outcome: &Outcome<'_>) -> String {
    match outcome.points.len() {
        0 | 1 => claims(outcome),
        _ => format!("{}\n{}", claims(outcome), readings(outcome)),
    }
}

/// Every claim with its verdict, what it rests on, and under how many readings it holds.
pub(super) fn claims(outcome: &Outcome<'_>) -> String {
    let many = outcome.points.len() > 1;
    let judged = &outcome.judgement.judged;
    let claim_of = |judged: &Judged| &outcome.study.claims[judged.claim];
    // A study of our own says what it claims; a paper's page has the names that its text and report use.
    let has_paper = judged.iter().any(|judged| claim_of(judged).paper_value.is_some());
    let mut headings = vec!["claim"];
    headings.extend(has_paper.then_some("paper"));
    headings.extend(["ours", "verdict"]);
    headings.extend(many.then_some("readings"));
    let mut text = format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
    for judged in judged {
        let claim = claim_of(judged);
        let id = claim.id.strip_prefix(&format!("{}-", outcome.study.name)).unwrap_or(&claim.id);
        let mut fields = match has_paper {
            true => vec![format!("`{id}`"), cell(claim.paper_value.as_deref().unwrap_or("-"))],
            false => vec![cell(&claim.statement)],
        };
        fields.push(cell(&ours(judged)));
        // A reader must not take the verdict for one on what the paper says.
        let weaker =
            claim.weaker.as_ref().map_or_else(String::new, |weaker| format!(" (weaker: {})", cell(weaker)));
        fields.push(format!("{}{weaker}", judged.decision.verdict));
        let tally = judged.tally();
        fields.extend(many.then(|| format!("{} of {}", tally.holds, tally.total())));
        let _ = writeln!(text, "| {} |", fields.join(" | "));
    }
    text
}

/// The most telling comparison: the first that fails, else the first that is undecided, else the first. The report has all.
fn ours(judged: &Judged) -> String {
    let compared = &judged.decision.comparisons;
    let with = |holds: Option<bool>| compared.iter().find(|comparison| comparison.holds == holds);
    let chosen = match judged.decision.verdict {
        Verdict::Fails => with(Some(false)),
        Verdict::Undecided => with(None),
        Verdict::Holds => None,
    };
    let Some(chosen) = chosen.or_else(|| compared.first()) else { return "-".to_owned() };
    let met = compared.iter().filter(|comparison| comparison.holds == Some(true)).count();
    format!("{}{}; {met} of {} met", values(chosen), chosen.place, compared.len())
}

/// The two sides of a comparison, without the expressions that they come from.
fn values(comparison: &Comparison) -> String {
    let value = |(_, value): &(String, Value)| match (value, value.as_number()) {
        (Value::Estimate(estimate), _) => estimate.to_string(),
        (_, Some(number)) => short(number),
        (Value::Unknown(_), _) => "unknown".to_owned(),
        (other, _) => other.to_string(),
    };
    comparison.operands.iter().map(value).collect::<Vec<_>>().join(" against ")
}

/// How many claims hold under each reading: the readings with the most first, and only the first twenty.
pub(super) fn readings(outcome: &Outcome<'_>) -> String {
    const SHOWN: usize = 20;
    let axes: Vec<String> =
        outcome.study.readings.iter().map(|reading: &Reading| reading.axis.name.replace('_', " ")).collect();
    let mut text =
        format!("| {} | hold | fail | undecided |\n|{}\n", axes.join(" | "), "---|".repeat(axes.len() + 3));
    let mut order: Vec<usize> = (0..outcome.points.len()).collect();
    order.sort_by_key(|&point| (core::cmp::Reverse(outcome.judgement.tallies[point].holds), point));
    for point in order.into_iter().take(SHOWN) {
        let values = outcome.study.readings.iter().zip(&outcome.points[point]);
        let values: Vec<String> = values.map(|(reading, &at)| reading.axis.values[at].label()).collect();
        let Tally { holds, fails, undecided } = outcome.judgement.tallies[point];
        let default = if point == 0 { " (default)" } else { "" };
        let _ = writeln!(text, "| {}{default} | {holds} | {fails} | {undecided} |", values.join(" | "));
    }
    if outcome.points.len() > SHOWN {
        let _ = writeln!(
            text,
            "\nOnly the {SHOWN} readings with the most claims that hold are shown, of {}.",
            outcome.points.len()
        );
    }
    text
}

/// Text in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
