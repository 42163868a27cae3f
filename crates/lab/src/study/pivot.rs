//! A table of a study as Markdown, with the values of some axes side by side.

use core::fmt::Write as _;

use super::super::Study;
use super::super::markdown::cell as escaped;
use super::super::summary::Cell;
use super::format::{Format, number};

/// The name under which a cell tells which of several columns of values it is.
const QUANTITY: &str = "quantity";

/// The table `id`, one row for each combination of the axes beside `by`. Cells show `paper / ours` where the paper prints something.
pub(super) fn table(
    study: &Study,
    cells: &[Cell],
    id: &str,
    by: &[&str],
    formats: &[Format],
) -> Result<String, String> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.table == id).collect();
    let Some(first) = cells.first() else { return Err(format!("table \"{id}\" has no cells")) };
    let form = study.tables.iter().find(|form| form.id == id).ok_or("no such table")?;
    let mut axes: Vec<&str> = form.rows.as_slice().iter().map(String::as_str).collect();
    axes.extend(first.row.contains_key(QUANTITY).then_some(QUANTITY));
    let by = if by.is_empty() && axes.contains(&QUANTITY) { &[QUANTITY] } else { by };
    if let Some(axis) = by.iter().find(|axis| !axes.contains(axis)) {
        return Err(format!("table \"{id}\" has no axis \"{axis}\"; there are {}", axes.join(", ")));
    }
    axes.retain(|axis| !by.contains(axis));
    let values = |cell: &Cell, axes: &[&str]| -> Vec<String> {
        axes.iter().map(|axis| cell.row.get(*axis).cloned().unwrap_or_default()).collect()
    };
    let key = |cell: &Cell| values(cell, &axes);
    let column_of = |cell: &Cell| if by.is_empty() { "ours".to_owned() } else { values(cell, by).join(", ") };
    let columns = distinct(cells.iter().map(|cell| column_of(cell)));
    let has_bound = cells.iter().any(|cell| cell.bound.is_some());
    let mut headings: Vec<String> = axes.iter().map(|axis| axis.replace('_', " ")).collect();
    headings.extend(columns.iter().cloned());
    headings.extend(has_bound.then(|| "bound".to_owned()));
    let mut text = format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
    for row in distinct(cells.iter().map(|cell| key(cell))) {
        let of_row: Vec<&Cell> = cells.iter().copied().filter(|cell| key(cell) == row).collect();
        let mut fields = row.clone();
        for (place, column) in columns.iter().enumerate() {
            let found = of_row.iter().find(|cell| column_of(cell) == *column);
            let format = formats.get(place).or(formats.last()).copied();
            fields.push(found.map_or_else(|| "-".to_owned(), |cell| written(cell, format)));
        }
        if has_bound {
            fields.push(bound(&of_row, formats.last().copied())?);
        }
        let fields: Vec<String> = fields.iter().map(|field| escaped(field)).collect();
        let _ = writeln!(text, "| {} |", fields.join(" | "));
    }
    Ok(text)
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for item in all {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

fn written(cell: &Cell, format: Option<Format>) -> String {
    let interval = cell.interval.map(|[low, high]| (low, high));
    let ours = match (&cell.ours_text, cell.ours) {
        (Some(text), _) => text.clone(),
        (None, Some(ours)) => number(ours, interval, format),
        (None, None) => "-".to_owned(),
    };
    let paper = cell.paper.map(|paper| number(paper, None, format)).or_else(|| cell.paper_text.clone());
    match paper {
        Some(paper) => format!("{paper} / {ours}"),
        None => ours,
    }
}

/// The bound that all cells of a row share.
fn bound(row: &[&Cell], format: Option<Format>) -> Result<String, String> {
    match distinct(row.iter().filter_map(|cell| cell.bound))[..] {
        [] => Ok("-".to_owned()),
        [one] => Ok(number(one, None, format)),
        _ => Err("the cells of a row have different bounds; put another axis side by side".to_owned()),
    }
}
