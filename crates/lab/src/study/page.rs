//! The report of a study: one HTML page, its figures as SVG, the tidy table and the JSON summary.

use core::fmt::Write as _;
use fs_err::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::agreement::Agreement;
use super::judge::Judged;
use super::pivot::Pivot;
use super::summary::{Cell, Summary, criteria};
use super::{Outcome, Plan, Study, StudyError, figure, markdown, readings};
use crate::claims::Verdict;
use crate::drawing::Figure;
use crate::drawing::print::Points;
use crate::report::html::{document, escape, show};

/// Writes `report.html`, its figures with their data, `measurements.csv`, `measurements.jsonl`, `runs.csv`,
/// `summary.json` and `verdicts.md` to `directory`; the path
/// of the page. Figures for print are so wide.
///
/// # Errors
/// A file cannot be written, or a figure or table does not fit what was measured.
pub fn write(
    outcome: &Outcome<'_>,
    command: &str,
    directory: &Path,
    figure_width: Points,
) -> Result<PathBuf, StudyError> {
    fs_err::create_dir_all(directory)?;
    let mut figures: Vec<Figure> = readings::matrix(outcome).into_iter().collect();
    figures.extend(figure::figures(outcome)?);
    figures.iter().try_for_each(|figure| figure.write(directory, figure_width))?;
    let file = |name: &str| File::create(directory.join(name)).map(BufWriter::new);
    outcome.results.write_csv(outcome.study, file("measurements.csv")?)?;
    outcome.results.write_json(outcome.study, file("measurements.jsonl")?)?;
    outcome.results.runs(outcome.study).write_csv(file("runs.csv")?)?;
    let page = directory.join("report.html");
    let summary = Summary::new(outcome, Some(page.clone()))?;
    fs_err::write(&page, self::page(outcome, &summary, &figures, command))?;
    fs_err::write(directory.join("summary.json"), summary.to_json())?;
    if !outcome.judgement.judged.is_empty() {
        fs_err::write(directory.join("verdicts.md"), markdown::verdicts(outcome))?;
    }
    Ok(page)
}

fn page(outcome: &Outcome<'_>, summary: &Summary<'_>, figures: &[Figure], command: &str) -> String {
    let title = match has_paper(outcome) {
        false => outcome.study.title.clone(),
        true => format!("{}, reproduced", outcome.study.title),
    };
    let mut body = format!("<h1>{}</h1>\n<p>{}</p>\n", escape(&title), setting(outcome));
    if !outcome.judgement.judged.is_empty() {
        body += &opening(outcome);
        body += &verdicts(outcome);
    }
    figures.iter().for_each(|figure| body += &show(figure));
    if outcome.study.claims.is_empty() {
        body += &tables(outcome.study, &summary.cells);
    }
    if outcome.points.len() > 1 {
        body += &defaults(outcome);
    }
    if outcome.points.len() > 1 && !outcome.judgement.judged.is_empty() {
        body += &format!(
            "<details><summary>Where each claim holds, axis by axis</summary>\n{}</details>\n",
            readings::margins(outcome)
        );
    }
    body += &agreements(&summary.agreements);
    body += &cells(&summary.cells);
    outcome.judgement.judged.iter().for_each(|judged| body += &details(outcome, judged));
    body += &format!(
        "<details><summary>How to reproduce this report</summary>\n<p><code>{}</code> with version {}</p></details>\n",
        escape(command),
        env!("CARGO_PKG_VERSION")
    );
    document(&title, &body)
}

/// Whether anything is beside it that was printed before.
fn has_paper(outcome: &Outcome<'_>) -> bool {
    let study = outcome.study;
    study.tables.iter().any(|form| form.paper.is_some())
        || study.claims.iter().any(|claim| claim.paper_value.is_some())
}

/// What readers want to know first: how the claims come out, and which do not hold.
fn opening(outcome: &Outcome<'_>) -> String {
    let tally = outcome.judgement.tallies.first().copied().unwrap_or_default();
    let reading = if outcome.points.len() > 1 { " under the default reading" } else { "" };
    let mut text = format!(
        "<p class=\"verdict\">Of {} claims <b class=\"holds\">{} hold</b>, <b class=\"fails\">{} fail</b> and \
         <b class=\"undecided\">{} are undecided</b>{reading}.",
        tally.total(),
        tally.holds,
        tally.fails,
        tally.undecided
    );
    if outcome.points.len() > 1 {
        let held = outcome.judgement.judged.iter().map(Judged::tally);
        let (all, some) =
            (held.clone().filter(|tally| tally.holds == tally.total()), held.filter(|tally| tally.holds > 0));
        let _ = write!(
            text,
            " {} hold under each of the {} readings, {} under at least one.",
            all.count(),
            outcome.points.len(),
            some.count()
        );
    }
    text += "</p>\n";
    for (verdict, heading) in [(Verdict::Fails, "What fails"), (Verdict::Undecided, "What is undecided")] {
        let of = outcome.judgement.judged.iter().filter(|judged| judged.decision.verdict == verdict);
        let item = |judged: &Judged| {
            let claim = &outcome.study.claims[judged.claim];
            let (id, statement) = (escape(&claim.id), escape(&claim.statement));
            format!("<li><a href=\"#{id}\">{id}</a>: {statement}</li>\n")
        };
        let items: String = of.map(item).collect();
        if !items.is_empty() {
            let _ = writeln!(text, "<details><summary>{heading}</summary>\n<ul>\n{items}</ul></details>");
        }
    }
    text
}

fn setting(outcome: &Outcome<'_>) -> String {
    let mut text = escape(&outcome.study.setting);
    if let [default, _, ..] = &outcome.points[..] {
        let _ = write!(
            text,
            " {} readings of what {} unsaid; the default is <b>{}</b>.",
            outcome.points.len(),
            if has_paper(outcome) { "the paper leaves" } else { "is left" },
            escape(&outcome.study.reading_name(default))
        );
    }
    if outcome.plan.quick {
        text +=
            " <b>Quick: few seeds, short runs and coarse axes; verdicts may differ from a full run's.</b>";
    }
    text + " Intervals are 95 % over channel realisations."
}

/// The readings' defaults, and why.
fn defaults(outcome: &Outcome<'_>) -> String {
    let mut text = String::from("<details><summary>What is left unsaid, and the default</summary>\n");
    text += "<table><tbody>\n";
    for reading in &outcome.study.readings {
        let values: Vec<String> = reading.axis.values.iter().map(super::AxisValue::label).collect();
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td><td><b>{}</b></td><td>{}</td></tr>",
            escape(&reading.axis.name.replace('_', " ")),
            escape(&values.join(", ")),
            escape(&reading.axis.values[reading.default].label()),
            escape(&reading.reason)
        );
    }
    text + "</tbody></table></details>\n"
}

fn verdicts(outcome: &Outcome<'_>) -> String {
    let many = outcome.points.len() > 1;
    let more = if many { "<th>readings</th>" } else { "" };
    let printed = outcome.study.claims.iter().any(|claim| claim.paper_value.is_some());
    let paper = if printed { "<th>paper</th>" } else { "" };
    let mut table = format!(
        "<table><thead><tr><th>claim</th><th>section</th>{paper}<th>verdict</th>{more}</tr></thead><tbody>\n"
    );
    for judged in &outcome.judgement.judged {
        let claim = &outcome.study.claims[judged.claim];
        let tally = judged.tally();
        let more = match many {
            true => format!("<td>{} of {}</td>", tally.holds, tally.total()),
            false => String::new(),
        };
        let _ = writeln!(
            table,
            "<tr><th>{}</th><td>{}</td>{}<td>{}{}</td>{more}</tr>",
            escape(&claim.statement),
            escape(&claim.section),
            match printed {
                true => format!("<td>{}</td>", escape(claim.paper_value.as_deref().unwrap_or("-"))),
                false => String::new(),
            },
            coloured(judged.decision.verdict),
            claim
                .weaker
                .as_ref()
                .map_or_else(String::new, |weaker| format!("<br>weaker: {}", escape(weaker))),
        );
    }
    table + "</tbody></table>\n"
}

fn coloured(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Undecided => "undecided",
    };
    format!("<b class=\"{class}\">{verdict}</b>")
}

/// How near larger tables come to the paper, as a whole and group by group.
fn agreements(all: &[Agreement]) -> String {
    let mut text = String::new();
    let mut table = "";
    for agreement in all {
        if agreement.table != table {
            text += if table.is_empty() { "" } else { "</tbody></table>\n" };
            table = &agreement.table;
            let _ = write!(
                text,
                "<h2>Table {}: agreement with the paper</h2>\n<table><thead><tr><th>cells</th><th></th><th>within 10 %</th>\
                 <th>20 %</th><th>50 %</th><th>sets ranked as in the paper</th><th>pairs</th></tr></thead><tbody>\n",
                escape(table)
            );
        }
        let group =
            agreement.group.as_ref().map_or("all".to_owned(), |(axis, value)| format!("{axis} {value}"));
        let [ten, twenty, fifty] = agreement.within;
        let of = |kept: usize, all: usize| format!("{kept} of {all}");
        let sets = agreement.order.map_or_else(String::new, |order| of(order.sets_kept, order.sets));
        let pairs = agreement.order.map_or_else(String::new, |order| of(order.pairs_kept, order.pairs));
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td><td>{ten}</td><td>{twenty}</td><td>{fifty}</td><td>{sets}</td><td>{pairs}</td></tr>",
            escape(&group),
            agreement.cells
        );
    }
    text + if table.is_empty() {
        ""
    } else {
        "</tbody></table>\n<p>Sets and pairs consist of cells side by side that differ by more than 2 % in the paper.</p>\n"
    }
}

/// The tables as people read them, where no claim says what came out.
fn tables(study: &Study, cells: &[Cell]) -> String {
    let all = study.tables.iter().filter_map(|form| {
        let table = Pivot::for_reading(study, cells, &form.id)?;
        Some(format!("<h2>{}</h2>\n{}", escape(&table.heading(study, &form.id)), table.html()))
    });
    all.collect()
}

/// A column's heading, and what a cell has there.
type Column = (&'static str, fn(&Cell) -> Option<String>);

/// The tables. What no cell has gets no column.
fn cells(cells: &[Cell]) -> String {
    let has_paper = cells.iter().any(|cell| cell.paper.is_some() || cell.paper_text.is_some());
    let value = if has_paper { "ours" } else { "value" };
    let all: [Column; 7] = [
        ("paper", |cell| cell.paper.map(number).or_else(|| cell.paper_text.as_deref().map(escape))),
        ("its quartiles", |cell| {
            cell.paper_quartiles.map(|[low, high]| format!("{} to {}", number(low), number(high)))
        }),
        (value, |cell| cell.ours.map(number).or_else(|| cell.ours_text.as_deref().map(escape))),
        ("95 %", |cell| cell.interval.map(|[low, high]| format!("{} to {}", number(low), number(high)))),
        ("quartiles", |cell| Some(format!("{} to {}", number(cell.p25?), number(cell.p75?)))),
        ("seeds", |cell| (cell.n > 0).then(|| cell.n.to_string())),
        ("bound", |cell| cell.bound.map(number)),
    ];
    let columns: Vec<_> =
        all.into_iter().filter(|(_, value)| cells.iter().any(|cell| value(cell).is_some())).collect();
    if columns.is_empty() {
        return String::new();
    }
    let headings: String = columns.iter().map(|(heading, _)| format!("<th>{heading}</th>")).collect();
    let mut table = format!(
        "<details><summary>Every number of the tables</summary>\n<table><thead><tr><th>cell</th>{headings}</tr></thead>\
         <tbody>\n"
    );
    for cell in cells {
        let row: Vec<String> = cell.row.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let _ = write!(table, "<tr><th>{}: {}</th>", escape(&cell.table), escape(&row.join(", ")));
        for (_, value) in &columns {
            let _ = write!(table, "<td>{}</td>", value(cell).unwrap_or_else(|| "-".to_owned()));
        }
        table += "</tr>\n";
    }
    table + "</tbody></table></details>\n"
}

fn number(value: f64) -> String {
    crate::claims::short(value)
}

/// What a remark is about: it was concluded from full runs, so that another run's verdict may not be the one it explains.
fn remark_heading(plan: &Plan, verdict: Verdict) -> &'static str {
    match verdict {
        _ if !plan.is_full() => "About the full run, not this one",
        Verdict::Fails => "Likely cause",
        Verdict::Holds | Verdict::Undecided => "Note",
    }
}

/// What a claim's verdict rests on.
fn details(outcome: &Outcome<'_>, judged: &Judged) -> String {
    let claim = &outcome.study.claims[judged.claim];
    let mut text = format!(
        "<details id=\"{}\"><summary>{}: {}</summary>\n<p>Section {}. {}</p>\n<p>Experiment: {}</p>\n",
        escape(&claim.id),
        escape(&claim.id),
        judged.decision.verdict,
        escape(&claim.section),
        escape(&claim.statement),
        escape(&claim.experiment),
    );
    let mut paragraph = |what: &str, said: Option<&str>| {
        if let Some(said) = said {
            let _ = writeln!(text, "<p>{what}: {}</p>", escape(said));
        }
    };
    paragraph("Undecided because", judged.decision.reason.as_deref());
    paragraph(remark_heading(&outcome.plan, judged.decision.verdict), claim.remark.as_deref());
    paragraph("About the claim", claim.note.as_deref());
    paragraph("An older wording of the check", claim.was.as_deref());
    paragraph("Weaker than the paper's statement", claim.weaker.as_deref());
    text += "<table><tbody>\n";
    for criterion in criteria(judged) {
        let holds = match criterion.holds {
            Some(true) => coloured(Verdict::Holds),
            Some(false) => coloured(Verdict::Fails),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td><td>{holds}</td></tr>",
            escape(&criterion.what),
            escape(&criterion.measured)
        );
    }
    text + "</tbody></table></details>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_a_cause_only_of_what_failed_in_full() {
        let full = Plan::default();
        assert_eq!(remark_heading(&full, Verdict::Fails), "Likely cause");
        assert_eq!(remark_heading(&full, Verdict::Holds), "Note");
        for part in [Plan { quick: true, ..full.clone() }, Plan { seeds: Some(2), ..full }] {
            assert!(remark_heading(&part, Verdict::Fails).contains("not this one"));
        }
    }
}
