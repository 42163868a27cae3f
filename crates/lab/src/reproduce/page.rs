//! The report of a reproduction: one HTML page, its figures as SVG, and the JSON summary.

use core::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::grid::matrix;
use super::{Cell, Criterion, Evidence, Judged, Outcome, Plan, Summary};
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
        Evidence::Study(study, samples) => study.figures(samples),
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
    body += &cells(outcome);
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

/// A column's heading, and what a cell has there.
type Column = (&'static str, fn(&Cell) -> Option<String>);

/// The paper's tables and figures as numbers. What no cell has gets no column.
fn cells(outcome: &Outcome<'_>) -> String {
    let (summary, ours) = match &outcome.evidence {
        Evidence::Grid(..) => ("Every number at the default point", "ours, median"),
        Evidence::Study(..) => ("Every number of the figures and tables", "ours, mean"),
    };
    let columns: [Column; 5] = [
        ("paper", |cell| cell.paper.map(number)),
        (ours, |cell| cell.ours.map(number)),
        ("quartiles", |cell| Some(format!("{} to {}", number(cell.p25?), number(cell.p75?)))),
        ("seeds", |cell| Some(cell.n.to_string())),
        ("bound", |cell| cell.bound.map(number)),
    ];
    let columns: Vec<_> = columns
        .into_iter()
        .filter(|(_, value)| outcome.cells.iter().any(|cell| value(cell).is_some()))
        .collect();
    if columns.is_empty() {
        return String::new();
    }
    let headings: String = columns.iter().map(|(heading, _)| format!("<th>{heading}</th>")).collect();
    let mut table = format!(
        "<details><summary>{summary}</summary>\n<table><thead><tr><th>cell</th>{headings}</tr></thead><tbody>\n"
    );
    for cell in &outcome.cells {
        let row: Vec<String> = cell.row.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let _ = write!(table, "<tr><th>{}: {}</th>", escape(cell.table), escape(&row.join(", ")));
        for (_, value) in &columns {
            let _ = write!(table, "<td>{}</td>", value(cell).unwrap_or_else(|| "-".to_owned()));
        }
        table += "</tr>\n";
    }
    table + "</tbody></table></details>\n"
}

fn number(value: f64) -> String {
    format!("{value:.3}")
}

/// What a remark is about: it was concluded from runs in full, so that another run's verdict may not be the one it explains.
const fn remark_heading(plan: &Plan, verdict: Verdict) -> &'static str {
    match verdict {
        _ if !plan.is_full() => "About the run in full, not this one",
        Verdict::Fails => "Likely cause",
        Verdict::Holds | Verdict::Undecided => "Note",
    }
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
    paragraph(remark_heading(&outcome.plan, ruling.verdict), outcome.paper.remark(&claim.id));
    paragraph("About the claim", claim.note.as_deref());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_a_cause_only_of_what_failed_in_full() {
        let full = Plan { seeds: None, quick: false, figure: None, cache: None, build: "test".to_owned() };
        assert_eq!(remark_heading(&full, Verdict::Fails), "Likely cause");
        assert_eq!(remark_heading(&full, Verdict::Holds), "Note");
        for part in [Plan { quick: true, ..full.clone() }, Plan { seeds: Some(2), ..full }] {
            assert!(remark_heading(&part, Verdict::Fails).contains("not this one"));
        }
    }
}
