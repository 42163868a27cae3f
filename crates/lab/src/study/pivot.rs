//! A table of a study with the values of some axes side by side: what terminals, reports and pages show of it.

use core::fmt::Write as _;

use super::Study;
use super::form::Center;
use super::markdown::cell as escaped;
use super::summary::Cell;
use crate::claims::short;
use crate::report::html::escape;
use crate::report::table::align;

/// The name under which a cell tells which of several columns of values it is.
pub(super) const QUANTITY: &str = "quantity";
/// How wide a terminal is taken to be.
const TERMINAL: usize = 110;
/// The most rows of a table with a row for each value, with the headings, as long as there is another one.
const LIST: usize = 25;

/// A table, laid out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pivot {
    /// The axes whose values stand side by side.
    by: Vec<String>,
    /// Whether values are without their intervals.
    alone: bool,
    /// The headings, then a row for each combination of the other axes.
    rows: Vec<Vec<String>>,
}

impl Pivot {
    /// The table `id`, with the axes `by` side by side. `written` writes a cell in the column with that place; one that all cells of a row
    /// share, their bound, comes last, if it is to be written.
    pub(super) fn new(
        study: &Study,
        cells: &[Cell],
        id: &str,
        by: &[&str],
        written: impl Fn(&Cell, usize) -> String,
        bound: Option<&dyn Fn(f64) -> String>,
    ) -> Result<Self, String> {
        let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.table == id).collect();
        let mut axes = axes(study, &cells, id)?;
        let by = if by.is_empty() && axes.contains(&QUANTITY) { &[QUANTITY] } else { by };
        if let Some(axis) = by.iter().find(|axis| !axes.contains(axis)) {
            return Err(format!("table \"{id}\" has no axis \"{axis}\"; there are {}", axes.join(", ")));
        }
        axes.retain(|axis| !by.contains(axis));
        let values = |cell: &Cell, axes: &[&str]| -> Vec<String> {
            axes.iter().map(|axis| cell.row.get(*axis).cloned().unwrap_or_default()).collect()
        };
        let key = |cell: &Cell| values(cell, &axes);
        let has_paper = cells.iter().any(|cell| cell.paper.is_some() || cell.paper_text.is_some());
        let alone = if has_paper { "ours" } else { "value" };
        let column_of =
            |cell: &Cell| if by.is_empty() { alone.to_owned() } else { values(cell, by).join(", ") };
        let columns = distinct(cells.iter().map(|cell| column_of(cell)));
        let bound = bound.filter(|_| cells.iter().any(|cell| cell.bound.is_some()));
        let mut headings: Vec<String> = axes.iter().map(|axis| axis.replace('_', " ")).collect();
        headings.extend(columns.iter().cloned());
        headings.extend(bound.map(|_| "bound".to_owned()));
        let mut rows = vec![headings];
        for row in distinct(cells.iter().map(|cell| key(cell))) {
            let of_row: Vec<&Cell> = cells.iter().copied().filter(|cell| key(cell) == row).collect();
            let mut fields = row.clone();
            for (place, column) in columns.iter().enumerate() {
                let found = of_row.iter().find(|cell| column_of(cell) == *column);
                fields.push(found.map_or_else(|| "-".to_owned(), |cell| written(cell, place)));
            }
            if let Some(bound) = bound {
                fields.push(match distinct(of_row.iter().filter_map(|cell| cell.bound))[..] {
                    [] => "-".to_owned(),
                    [one] => bound(one),
                    _ => {
                        return Err(
                            "the cells of a row have different bounds; put another axis side by side"
                                .to_owned(),
                        );
                    }
                });
            }
            rows.push(fields);
        }
        Ok(Self { by: by.iter().map(|axis| (*axis).to_owned()).collect(), alone: false, rows })
    }

    /// For reading: the last axis side by side, or another one if that is too wide for a terminal. Where all are, values without their
    /// intervals stand side by side rather than in a row each, unless those are few; the narrowest table if nothing fits.
    pub(super) fn for_reading(study: &Study, cells: &[Cell], id: &str) -> Option<Self> {
        let of_table: Vec<&Cell> = cells.iter().filter(|cell| cell.table == id).collect();
        let axes = axes(study, &of_table, id).ok()?;
        let center = study.tables.iter().find(|form| form.id == id)?.center;
        // Bounds that differ within a row are left out.
        let by = |by: &[&str], alone: bool| {
            let written = |cell: &Cell, _| cell.shown(center, alone);
            let with_bound = Self::new(study, cells, id, by, written, Some(&short));
            let table = with_bound.or_else(|_| Self::new(study, cells, id, by, written, None)).ok()?;
            Some(Self { alone, ..table })
        };
        // Of a single axis nothing would be left to tell rows apart.
        let beside = |alone: bool| {
            axes.iter().rev().filter(|_| axes.len() > 1).filter_map(move |axis| by(&[axis], alone))
        };
        let list = by(&[], false);
        let is_short = list.as_ref().is_some_and(|list| list.rows.len() <= LIST);
        let mut all: Vec<Self> = beside(false).collect();
        if !is_short {
            all.extend(beside(true));
        }
        all.extend(list);
        let fits = all.iter().position(|table| table.width() <= TERMINAL);
        let narrowest = || (0..all.len()).min_by_key(|place| all[*place].width());
        fits.or_else(narrowest).map(|place| all.swap_remove(place))
    }

    /// What stands side by side, as readers call it, and what each cell says.
    pub(super) fn heading(&self, study: &Study, id: &str) -> String {
        let axes = study.experiments.iter().flat_map(|experiment| &experiment.axes);
        let title = |name: &String| {
            let axis = axes.clone().find(|axis| axis.name == *name);
            axis.map_or_else(|| name.clone(), |axis| axis.title.clone())
        };
        let by: Vec<String> = self.by.iter().filter(|name| *name != QUANTITY).map(title).collect();
        let center = study.tables.iter().find(|form| form.id == id).map(|form| form.center);
        let cells = match center {
            Some(Center::Median) if self.alone => "median; summary.json has its quartiles",
            Some(Center::Median) => "median, and quartiles over the seeds",
            _ if self.alone => "mean; summary.json has its 95 % interval",
            _ => "mean and its 95 % interval",
        };
        if by.is_empty() {
            format!("{id} ({cells})")
        } else {
            format!("{id}, by {} ({cells})", by.join(", "))
        }
    }

    fn width(&self) -> usize {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|field| field.chars().count() + 2).max()
        };
        (0..columns).filter_map(width).sum()
    }

    /// For a terminal.
    pub(super) fn text(&self) -> String {
        align(&self.rows)
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let fields: Vec<String> = row.iter().map(|field| escaped(field)).collect();
            let _ = writeln!(text, "| {} |", fields.join(" | "));
            if number == 0 {
                let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
            }
        }
        text
    }

    pub(super) fn html(&self) -> String {
        let row = |row: &[String], tag: &str| -> String {
            let fields = row.iter().enumerate().map(|(place, field)| {
                let tag = if place == 0 { "th" } else { tag };
                format!("<{tag}>{}</{tag}>", escape(field))
            });
            format!("<tr>{}</tr>\n", fields.collect::<String>())
        };
        let Some((headings, rows)) = self.rows.split_first() else { return String::new() };
        let body: String = rows.iter().map(|fields| row(fields, "td")).collect();
        format!("<table><thead>{}</thead><tbody>\n{body}</tbody></table>\n", row(headings, "th").trim_end())
    }
}

/// What tells the cells of a table apart.
fn axes<'a>(study: &'a Study, cells: &[&Cell], id: &str) -> Result<Vec<&'a str>, String> {
    let Some(first) = cells.first() else { return Err(format!("table \"{id}\" has no cells")) };
    let form = study.tables.iter().find(|form| form.id == id).ok_or("no such table")?;
    let mut axes: Vec<&str> = form.rows.as_slice().iter().map(String::as_str).collect();
    axes.extend(first.row.contains_key(QUANTITY).then_some(QUANTITY));
    Ok(axes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Files;
    use crate::study::probe::{Method, Probe};

    const NOTHING: Probe = Probe {
        name: "nothing",
        version: 1,
        quantities: &[],
        series: &[],
        method: Method::Trial(|_, _| Ok(())),
    };

    /// A study with a table over two axes, and its cells: so many values on each.
    fn table(values: usize) -> (Study, Vec<Cell>) {
        let text = "name = 'test'\ntitle = ''\n[[experiment]]\nname = 'e'\naxes.delay = [1]\naxes.loss = [1]\n\
            probes = ['nothing']\n[[table]]\nid = 't'\nfrom = 'e'\nrows = ['delay', 'loss']\nvalue = '1'\n";
        let files: &'static [(&'static str, &'static str)] =
            Box::leak(Box::new([("experiments.toml", text)]));
        let study = Study::load(Files::Embedded("study", files), "experiments.toml", &[&NOTHING]);
        let cell = |delay: usize, loss: usize| {
            let row =
                [("delay", delay), ("loss", loss)].map(|(name, value)| (name.to_owned(), value.to_string()));
            let ours = (delay * values + loss) as f64;
            Cell {
                ours: Some(ours),
                interval: Some([ours - 1.25, ours + 1.25]),
                ..Cell::empty("t", row.into())
            }
        };
        let all = (0..values).flat_map(|delay| (0..values).map(move |loss| cell(delay, loss)));
        (study.unwrap(), all.collect())
    }

    #[test]
    fn a_wide_table_has_its_values_side_by_side_without_intervals() {
        let shape = |values: usize| {
            let (study, cells) = table(values);
            let table = Pivot::for_reading(&study, &cells, "t").unwrap();
            let heading = table.heading(&study, "t");
            (table.rows.len() - 1, table.rows[0].len(), table.rows[1][1].clone(), heading)
        };
        let with = "t, by loss (mean and its 95 % interval)".to_owned();
        assert_eq!(shape(3), (3, 4, "0.0 (-1.2 to 1.2)".to_owned(), with));
        let without = "t, by loss (mean; summary.json has its 95 % interval)".to_owned();
        assert_eq!(shape(9), (9, 10, "0".to_owned(), without));
    }
}
