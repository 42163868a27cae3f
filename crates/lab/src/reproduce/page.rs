//! The report of a reproduction: one HTML page, its figures as SVG, and the JSON summary.

use core::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::{Cell, Judged, Outcome, Summary, grid};
use crate::claims::Verdict;
use crate::report::Figure;
use crate::report::html::{document, escape, show};

/// Writes `report.html`, its figures and `summary.json` to `directory`; the path of the page.
///
/// # Errors
/// A file cannot be written, or a figure's run failed.
pub fn write(outcome: &Outcome<'_>, command: &str, directory: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(directory)?;
    let mut figures = vec![grid::matrix(outcome)];
    figures.extend(outcome.paper.figures(outcome)?);
    for figure in &figures {
        std::fs::write(directory.join(format!("{}.svg", figure.name)), &figure.svg)?;
    }
    let page = directory.join("report.html");
    std::fs::write(&page, self::page(outcome, &figures, command))?;
    std::fs::write(directory.join("summary.json"), Summary::new(outcome, Some(page.clone())).to_json())?;
    Ok(page)
}

fn page(outcome: &Outcome<'_>, figures: &[Figure], command: &str) -> String {
    let title = format!("{}, reproduced", outcome.paper.title());
    let point = &outcome.points[0];
    let mut body = format!(
        "<h1>{}</h1>\n<p>{} points of what the paper leaves unsaid, {} seeds each. The default point is <b>{}</b>. A \
         verdict is the check's at the medians over the seeds.</p>\n",
        escape(&title),
        outcome.points.len(),
        outcome.plan.seeds,
        escape(&point.name),
    );
    body += &verdicts(outcome);
    figures.iter().for_each(|figure| body += &show(figure));
    body += &format!(
        "<details><summary>Where each claim holds, axis by axis</summary>\n{}</details>\n",
        grid::margins(outcome)
    );
    body += &cells(&outcome.cells);
    outcome.judged.iter().for_each(|judged| body += &details(outcome, judged));
    body += &format!(
        "<details><summary>How to get exactly this</summary>\n<p><code>{}</code> with version {}</p></details>\n",
        escape(command),
        env!("CARGO_PKG_VERSION")
    );
    document(&title, &body)
}

fn verdicts(outcome: &Outcome<'_>) -> String {
    let mut table = String::from(
        "<table><thead><tr><th>claim</th><th>paper</th><th>verdict</th><th>seeds</th><th>grid</th></tr></thead><tbody>\n",
    );
    for judged in &outcome.judged {
        let decided = judged.default_point();
        let share =
            judged.grid.share().map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0));
        let _ = writeln!(
            table,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{} of {}</td><td>{share}</td></tr>",
            escape(&judged.claim.statement),
            escape(judged.claim.paper_value.as_deref().unwrap_or("-")),
            coloured(decided.decision.verdict),
            decided.seeds.holds,
            decided.seeds.total(),
        );
    }
    table + "</tbody></table>\n"
}

fn coloured(verdict: Verdict) -> String {
    let colour = match verdict {
        Verdict::Holds => "#00704f",
        Verdict::Fails => "#b34700",
        Verdict::Undecided => "#666",
    };
    format!("<b style=\"color:{colour}\">{verdict}</b>")
}

/// The paper's tables and figures as numbers.
fn cells(cells: &[Cell]) -> String {
    let mut table = String::from(
        "<details><summary>Every number at the default point</summary>\n<table><thead><tr><th>cell</th><th>paper</th>\
         <th>ours, median</th><th>quartiles</th><th>seeds</th><th>bound</th></tr></thead><tbody>\n",
    );
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    for cell in cells {
        let row: Vec<String> = cell.row.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let _ = writeln!(
            table,
            "<tr><th>{}: {}</th><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td><td>{}</td></tr>",
            escape(cell.table),
            escape(&row.join(", ")),
            number(cell.paper),
            number(cell.ours),
            number(cell.p25),
            number(cell.p75),
            cell.n,
            number(cell.bound)
        );
    }
    table + "</tbody></table></details>\n"
}

/// What a claim's verdict rests on.
fn details(outcome: &Outcome<'_>, judged: &Judged) -> String {
    let decision = &judged.default_point().decision;
    let claim = &judged.claim;
    let mut text = format!(
        "<details><summary>{}: {}</summary>\n<p>Section {}. {}</p>\n<p>Experiment: {}</p>\n<pre>{}</pre>\n<p>At the \
         default point: {}</p>\n",
        escape(&claim.id),
        decision.verdict,
        escape(&claim.section),
        escape(&claim.statement),
        escape(&claim.experiment),
        escape(claim.check.source()),
        escape(&decision.measured()),
    );
    let mut paragraph = |what: &str, said: Option<&str>| {
        if let Some(said) = said {
            let _ = writeln!(text, "<p>{what}: {}</p>", escape(said));
        }
    };
    paragraph("Undecided because", decision.reason.as_deref());
    paragraph("Likely cause", outcome.paper.remark(&claim.id));
    paragraph("Note", claim.note.as_deref());
    text += "<table><tbody>\n";
    for lookup in &decision.lookups {
        let _ = writeln!(
            text,
            "<tr><th><code>{}</code></th><td>{}</td></tr>",
            escape(&lookup.call),
            lookup.value
        );
    }
    text + "</tbody></table></details>\n"
}
