//! Tables: numbers beside the paper's.

use std::collections::BTreeMap;

use base::config::ConfigError;
use toml::Value as Toml;

use super::axis::{plain, product};
use super::figure::{check_axes, expression_names, spelled_out, told};
use super::form::{Center, TableForm};
use super::results::{View, Words, verify};
use super::summary::Cell;
use super::template::evaluate;
use super::{Files, Outcome, Study, StudyError};
use crate::claims::Value;
use crate::statistics::Spread;

/// The columns of a table: their names, empty for an only one, and the expression of each.
fn columns(form: &TableForm) -> Result<Vec<(String, String)>, String> {
    match &form.value {
        Toml::String(text) => Ok(vec![(String::new(), text.clone())]),
        Toml::Table(columns) => columns
            .iter()
            .map(|(name, value)| match value {
                Toml::String(text) => Ok((name.clone(), text.clone())),
                other => Err(format!("column \"{name}\" is {other}, not an expression")),
            })
            .collect(),
        other => Err(format!("value = {other}; write an expression, or a table of them")),
    }
}

/// Checks that every table asks only for what its experiment has.
pub(super) fn verify_all(study: &Study) -> Result<(), ConfigError> {
    for form in &study.tables {
        let complain =
            |message: String| ConfigError::about(&study.name, format!("table {}: {message}", form.id));
        let place = study.experiment(&form.from);
        let place = place.ok_or_else(|| complain(format!("no experiment \"{}\"", form.from)))?;
        let experiment = &study.experiments[place];
        let shown: Vec<&str> = form.rows.as_slice().iter().map(String::as_str).collect();
        check_axes(experiment, &shown, &form.at).map_err(complain)?;
        let names = expression_names(experiment);
        let words = Words::new(study, core::slice::from_ref(&place), &names);
        let columns = columns(form).map_err(complain)?;
        let paper = form.paper.iter().filter(|paper| !paper.contains(".csv"));
        let expressions =
            columns.iter().map(|(_, text)| text).chain(&form.bound).chain(&form.only).chain(paper);
        for expression in expressions {
            let text = spelled_out(experiment, expression);
            verify(&text, &words).map_err(complain)?;
        }
        for column in form.paper.iter().chain(form.paper_quartiles.iter().flatten()) {
            printed(&study.files, column).map_err(complain)?;
        }
    }
    Ok(())
}

/// The cells of every table whose experiment ran, under the default reading.
pub(super) fn cells(outcome: &Outcome<'_>) -> Result<Vec<Cell>, StudyError> {
    let mut all = Vec::new();
    for form in &outcome.study.tables {
        let Some(place) = outcome.study.experiment(&form.from) else { continue };
        if outcome.experiments.contains(&place) {
            let complain = |message| StudyError::Expression { place: format!("table {}", form.id), message };
            all.extend(cells_of(outcome, form, place).map_err(complain)?);
        }
    }
    Ok(all)
}

fn cells_of(outcome: &Outcome<'_>, form: &TableForm, place: usize) -> Result<Vec<Cell>, String> {
    let (study, experiment) = (outcome.study, &outcome.study.experiments[place]);
    let Some(reading) = outcome.points.first() else { return Ok(Vec::new()) };
    let places = experiment.axes.iter().map(|axis| match form.at.get(&axis.name) {
        Some(value) => Ok(axis.place(&plain(value)?).into_iter().collect()),
        None => Ok(outcome.plan.places(axis)),
    });
    let columns = columns(form)?;
    let of_csv = |column: &String| printed(&study.files, column);
    let medians = form.paper.as_ref().map(of_csv).transpose()?.unwrap_or_default();
    let quartiles = form.paper_quartiles.iter().flatten().map(of_csv).collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    for coordinates in product(&places.collect::<Result<Vec<_>, String>>()?) {
        let scope = experiment.scope(study, reading, &coordinates)?;
        if form.only.as_ref().is_some_and(|only| !scope.is(only).unwrap_or(false)) {
            continue;
        }
        let experiments = [place];
        let view = View::new(study, &outcome.plan, &outcome.results, reading, &experiments);
        let view = View { scope: Some(&scope), ..view };
        let value = |expression: &str| {
            let text = spelled_out(experiment, expression);
            evaluate(&text, &view)
        };
        let shown = |name: &str| form.rows.as_slice().iter().any(|row| row == name);
        let axes = experiment.axes.iter().zip(&coordinates).filter(|(axis, _)| shown(&axis.name));
        let row: BTreeMap<String, String> =
            axes.map(|(axis, &at)| (axis.name.clone(), axis.values[at].label())).collect();
        let bound = form.bound.as_deref().map(value).transpose()?;
        let calibrated = form.calibrated.as_ref().is_some_and(|fitted| scope.is(fitted).unwrap_or(false));
        for (column, expression) in &columns {
            let mut row = row.clone();
            if !column.is_empty() {
                row.insert("quantity".to_owned(), column.clone());
            }
            let paper = match &form.paper {
                None => None,
                Some(_) if !medians.is_empty() => lookup(&medians, &row).and_then(|field| field.parse().ok()),
                Some(expression) => value(expression)?.as_number(),
            };
            let paper_text = lookup(&medians, &row).filter(|field| field.parse::<f64>().is_err());
            let number = |of: &Printed| lookup(of, &row).and_then(|field| field.parse().ok());
            let paper_quartiles = match quartiles.as_slice() {
                [low, high] => number(low).zip(number(high)),
                _ => None,
            };
            let sample = value(expression)?;
            let shown = match form.center {
                Center::Mean => None,
                Center::Median => {
                    Some(evaluate(&format!("median({})", spelled_out(experiment, expression)), &view)?)
                }
            };
            let is_endless = is_infinite(shown.as_ref().unwrap_or(&sample));
            let ours_text = form.never.clone().filter(|_| is_endless);
            let cell = cell(&form.id, row, &sample, shown.as_ref());
            let bound = bound.as_ref().and_then(told).map(|(bound, _)| bound);
            let paper_quartiles = paper_quartiles.map(|(low, high)| [low, high]);
            let cell = Cell { paper, paper_text, paper_quartiles, ours_text, bound, calibrated, ..cell };
            let cell = match missing(&sample, form.never.as_ref()).filter(|_| study.whole_only) {
                Some(text) => Cell { ours: None, interval: None, ours_text: Some(text), ..cell },
                None => cell,
            };
            cells.extend(Some(cell).filter(|cell| cell.ours.is_some() || cell.ours_text.is_some()));
        }
    }
    Ok(cells)
}

/// What a table shows where some seeds have a value and others have none.
pub(super) const NOT_ALL: &str = "not in all seeds";

/// What a table shows instead of a value that not all seeds have: [`NOT_ALL`], or `never` if none has it.
fn missing(value: &Value, never: Option<&String>) -> Option<String> {
    let known = match value {
        Value::Sample(sample) => sample.values().iter().flatten().count(),
        Value::Unknown(_) => 0,
        _ => return None,
    };
    match value {
        Value::Sample(sample) if known == sample.values().len() => None,
        _ if known > 0 => Some(NOT_ALL.to_owned()),
        _ => never.cloned(),
    }
}

fn is_infinite(value: &Value) -> bool {
    let number = match value {
        Value::Sample(sample) => return is_infinite(&sample.mean_value()),
        Value::Estimate(estimate) => Some(estimate.point),
        other => other.as_number(),
    };
    number == Some(f64::INFINITY)
}

/// A cell of what was measured, with what of it is shown instead of its mean.
fn cell(table: &str, row: BTreeMap<String, String>, value: &Value, shown: Option<&Value>) -> Cell {
    let (mut quartiles, mut n) = (None, 0);
    if let Value::Sample(sample) = value {
        let spread = Spread::of(sample.values().iter().flatten().copied());
        n = spread.as_ref().map_or(0, |spread| spread.n);
        quartiles = spread.map(|spread| (spread.p25, spread.p75));
    } else if let Value::Estimate(estimate) = value {
        n = estimate.n;
    }
    let ours = told(shown.unwrap_or(value));
    Cell {
        ours: ours.map(|(value, _)| value),
        interval: ours.and_then(|(_, interval)| interval).map(|(low, high)| [low, high]),
        p25: quartiles.map(|(p25, _)| p25),
        p75: quartiles.map(|(_, p75)| p75),
        n,
        ..Cell::empty(table, row)
    }
}

/// The rows of a CSV file, each field by its column's name, with what one column says.
type Printed = Vec<(BTreeMap<String, String>, String)>;

/// What `place` says, a file and a column as in `table1.csv seconds`; nothing where it is an expression.
fn printed(files: &Files, place: &str) -> Result<Printed, String> {
    let Some((file, column)) = place.split_once(".csv ") else { return Ok(Vec::new()) };
    let (path, text) = files.read(&format!("{file}.csv")).map_err(|error| error.to_string())?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let fields = |line: &str| line.split(',').map(|field| field.trim().to_owned()).collect::<Vec<_>>();
    let names = fields(lines.next().ok_or_else(|| format!("{path}: it is empty"))?);
    let place = names.iter().position(|name| name == column.trim());
    let place =
        place.ok_or_else(|| format!("{path}: no column \"{column}\"; there are {}", names.join(", ")))?;
    let mut rows = Vec::new();
    for line in lines {
        let fields = fields(line);
        let value = fields.get(place).filter(|field| !field.is_empty()).cloned();
        let row = names.iter().cloned().zip(fields).collect();
        rows.extend(value.map(|value| (row, value)));
    }
    Ok(rows)
}

/// The printed value of the row that has the same value in every column that both have.
fn lookup(printed: &Printed, row: &BTreeMap<String, String>) -> Option<String> {
    let is_same = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    let matches = |(fields, _): &&(BTreeMap<String, String>, String)| {
        row.iter().all(|(name, value)| fields.get(name).is_none_or(|field| is_same(field, value)))
    };
    let mut found = printed.iter().filter(matches);
    let (_, value) = found.next()?;
    found.next().is_none().then(|| value.clone())
}
