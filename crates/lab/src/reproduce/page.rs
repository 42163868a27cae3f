//! The report of a reproduction: one HTML page, its figures as SVG, and the JSON summary.

use core::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::grid::matrix;
use super::{Cell, Criterion, Evidence, Judged, Outcome, Summary};
use crate::claims::Verdict;
use crate::report::Figure;
use crate::report::html::{document, escape, show};

/// Writes `report.html`, its figures and `summary.json` to `directory`; the path of the page.
///
/// # Errors
/// A file cannot be written, or a figure's run failed.
pub fn write(outcome: &Outcome<'_>, command: &str, directory: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(directory)?;
    let figures = match &outcome.evidence {
        Evidence::Grid(grid, surveyed) => {
            let mut figures = vec![matrix::matrix(&outcome.judged, surveyed)];
            figures.extend(grid.figures(outcome, surveyed)?);
            figures
        }
        Evidence::Study(study, samples) => study.figures(samples)?,
    };
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
    let mut body = format!("<h1>{}</h1>\n<p>{}</p>\n", escape(&title), setting(outcome));
    body += &verdicts(outcome);
    figures.iter().for_each(|figure| body += &show(figure));
    if let Some(surveyed) = outcome.surveyed() {
        body += &format!(
            "<details><summary>Where each claim holds, axis by axis</summary>\n{}</details>\n",
            matrix::margins(&outcome.judged, surveyed)
        );
    }
    body += &cells(&outcome.cells);
    outcome.judged.iter().for_each(|judged| body += &details(outcome, judged));
    body += &format!(
        "<details><summary>How to get exactly this</summary>\n<p><code>{}</code> with version {}</p></details>\n",
        escape(command),
        env!("CARGO_PKG_VERSION")
    );
    document(&title, &body)
}

fn setting(outcome: &Outcome<'_>) -> String {
    let setting = escape(outcome.setting());
    match &outcome.evidence {
        Evidence::Grid(_, surveyed) => format!(
            "{} points of what the paper leaves unsaid, {} seeds each. The default point is <b>{setting}</b>. A \
             verdict is the check's at the medians over the seeds.",
            surveyed.points.len(),
            surveyed.seeds,
        ),
        Evidence::Study(..) => {
            let quick = if outcome.plan.quick {
                " <b>Quick: few seeds, short runs and coarse sweeps; verdicts may differ from a full run's.</b>"
            } else {
                ""
            };
            format!("{setting}.{quick} Intervals are 95 % of Student's t over channel realisations.")
        }
    }
}

fn verdicts(outcome: &Outcome<'_>) -> String {
    let surveyed = outcome.surveyed().is_some();
    let more = if surveyed { "<th>seeds</th><th>grid</th>" } else { "<th>section</th>" };
    let mut table =
        format!("<table><thead><tr><th>claim</th><th>paper</th><th>verdict</th>{more}</tr></thead><tbody>\n");
    for judged in &outcome.judged {
        let more = match (judged.seeds, judged.grid) {
            (Some(seeds), Some(grid)) => {
                let share =
                    grid.share().map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0));
                format!("<td>{} of {}</td><td>{share}</td>", seeds.holds, seeds.total())
            }
            _ => format!("<td>{}</td>", escape(&judged.claim.section)),
        };
        let _ = writeln!(
            table,
            "<tr><th>{}</th><td>{}</td><td>{}</td>{more}</tr>",
            escape(&judged.claim.statement),
            escape(judged.claim.paper_value.as_deref().unwrap_or("-")),
            coloured(judged.ruling.verdict),
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
    let (claim, ruling) = (&judged.claim, &judged.ruling);
    let mut text = format!(
        "<details><summary>{}: {}</summary>\n<p>Section {}. {}</p>\n<p>Experiment: {}</p>\n<pre>{}</pre>\n",
        escape(&claim.id),
        ruling.verdict,
        escape(&claim.section),
        escape(&claim.statement),
        escape(&claim.experiment),
        escape(claim.check.source()),
    );
    let mut paragraph = |what: &str, said: Option<&str>| {
        if let Some(said) = said {
            let _ = writeln!(text, "<p>{what}: {}</p>", escape(said));
        }
    };
    paragraph("At the default point", outcome.surveyed().map(|_| ruling.measured.as_str()));
    paragraph("Undecided because", ruling.reason.as_deref());
    paragraph("Likely cause", outcome.paper.remark(&claim.id));
    paragraph("Note", claim.note.as_deref());
    text += "<table><tbody>\n";
    for criterion in &ruling.criteria {
        text += &row(criterion);
    }
    text + "</tbody></table></details>\n"
}

fn row(criterion: &Criterion) -> String {
    let holds = match criterion.holds {
        Some(true) => coloured(Verdict::Holds),
        Some(false) => coloured(Verdict::Fails),
        None => String::new(),
    };
    format!(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{holds}</td></tr>\n",
        escape(&criterion.what),
        escape(&criterion.measured()),
        escape(&criterion.required)
    )
}
