//! Tidy tables, for those who analyse them elsewhere: a row for each measurement, and one for each run and flow. Each axis is a column, with
//! its unit in its name and numbers wherever it has them.

use std::collections::BTreeMap;
use std::io;

use super::axis::Axis;
use super::results::{Cell, Place, Results};
use super::{Study, probe};
use crate::claims::{Measurements, Value};
use crate::run::Run;
use crate::scenario::Suite;
use crate::table::{Field, Rows, Table};

impl From<&Value> for Field {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(*number),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Bool(truth) => Self::Truth(*truth),
            other => Self::Text(other.to_string()),
        }
    }
}

/// The columns of a study's readings and axes.
struct Coordinates<'a> {
    study: &'a Study,
    /// All axes, by the names of their columns.
    axes: Vec<String>,
}

impl<'a> Coordinates<'a> {
    fn of(study: &'a Study) -> Self {
        let mut axes: Vec<String> = Vec::new();
        for column in study.experiments.iter().flat_map(|experiment| &experiment.axes).map(Axis::column) {
            if !axes.contains(&column) {
                axes.push(column);
            }
        }
        Self { study, axes }
    }

    fn columns(&self) -> Vec<String> {
        let readings = self.study.readings.iter().map(|reading| format!("reading.{}", reading.axis.name));
        [EXPERIMENT.to_owned()].into_iter().chain(readings).chain(self.axes.iter().cloned()).collect()
    }

    fn fields(&self, place: &Place) -> Vec<Field> {
        let experiment = &self.study.experiments[place.experiment];
        let readings = self.study.readings.iter().zip(&place.reading);
        let readings = readings.map(|(reading, &at)| Field::from(&reading.axis.values[at].value));
        let own: Vec<(String, Field)> = experiment
            .axes
            .iter()
            .zip(&place.coordinates)
            .map(|(axis, &at)| (axis.column(), axis.field(at)))
            .collect();
        let axes = self.axes.iter().map(|column| {
            let field = own.iter().find(|(own, _)| own == column).map(|(_, field)| field.clone());
            field.unwrap_or(Field::Nothing)
        });
        [Field::Text(experiment.name.clone())].into_iter().chain(readings).chain(axes).collect()
    }
}

/// A row for each measurement: coordinates, seed, the quantity and what it is called with, and its value.
pub(super) struct ByQuantity<'a> {
    results: &'a Results,
    coordinates: Coordinates<'a>,
    arguments: usize,
}

impl<'a> ByQuantity<'a> {
    pub(super) fn of(study: &'a Study, results: &'a Results) -> Self {
        let all = results.cells.values().flat_map(Cell::measured).flat_map(|(_, it)| it.quantities());
        let arguments = all.map(|(call, _)| arguments(call).1.len()).max().unwrap_or(0);
        Self { results, coordinates: Coordinates::of(study), arguments }
    }

    pub(super) fn columns(&self) -> Vec<String> {
        let mut own = ["seed", "quantity"].map(str::to_owned).to_vec();
        own.extend((1..=self.arguments).map(|number| format!("argument_{number}")));
        own.extend(["value", "unit"].map(str::to_owned));
        with_coordinates(&self.coordinates.columns(), &own)
    }

    pub(super) fn write(&self, to: &mut impl Rows) -> io::Result<()> {
        for (place, cell) in &self.results.cells {
            let coordinates = self.coordinates.fields(place);
            for (number, measured) in cell.measured() {
                let seed = self.results.first_seed.wrapping_add(number);
                for (call, value) in measured.quantities() {
                    let (quantity, arguments) = arguments(call);
                    let mut fields = coordinates.clone();
                    fields.extend([Field::Whole(seed), Field::Text(quantity.to_owned())]);
                    let missing = self.arguments - arguments.len();
                    fields.extend(arguments);
                    fields.extend((0..missing).map(|_| Field::Nothing));
                    fields.push(Field::from(value));
                    let unit = Some(probe::unit(quantity)).filter(|unit| !unit.is_empty());
                    fields.push(unit.map_or(Field::Nothing, Field::from));
                    to.add(fields)?;
                }
            }
        }
        Ok(())
    }
}

/// A row for each run and flow: its coordinates and seed, what the whole run came to, and what each flow did.
#[derive(Default)]
pub(crate) struct ByFlow {
    coordinates: Vec<String>,
    columns: Vec<String>,
    rows: Vec<(Vec<Field>, BTreeMap<String, f64>)>,
}

impl ByFlow {
    pub(super) fn of(study: &Study, results: &Results) -> Self {
        let coordinates = Coordinates::of(study);
        let mut table = Self { coordinates: coordinates.columns(), ..Self::default() };
        for (place, cell) in &results.cells {
            for (number, measured) in cell.measured() {
                table.add(
                    &coordinates.fields(place),
                    results.first_seed.wrapping_add(number),
                    measured,
                    |_| true,
                );
            }
        }
        table
    }

    /// Of the runs of a suite.
    pub(crate) fn of_runs(suite: &Suite, runs: &[Run]) -> io::Result<Self> {
        let mut table = Self { coordinates: vec!["scheme".to_owned()], ..Self::default() };
        let none = BTreeMap::new();
        for run in runs {
            let scenario = suite.schemes.iter().filter(|(name, _)| *name == run.scheme).cloned();
            let scenarios: Vec<_> = scenario.collect();
            let trial =
                probe::Trial { scenarios: &scenarios, numbers: &none, seed: run.seed, is_first: false };
            table.add(
                &[Field::Text(run.scheme.clone())],
                run.seed,
                &probe::of_flows(&trial, run)?,
                |quantity| !probe::is_of_samples(quantity),
            );
        }
        Ok(table)
    }

    fn add(
        &mut self,
        coordinates: &[Field],
        seed: u64,
        measured: &Measurements,
        keeps: impl Fn(&str) -> bool,
    ) {
        let (mut whole, mut flows) = (BTreeMap::new(), BTreeMap::<String, BTreeMap<String, f64>>::new());
        for (call, value) in measured.quantities() {
            let (quantity, arguments) = arguments(call);
            if !keeps(quantity) {
                continue;
            }
            let mut of_flow = |flow: &String| {
                flows
                    .entry(flow.clone())
                    .or_default()
                    .extend(value.map(|value| (column("", quantity), value)));
            };
            match &arguments[..] {
                [] => whole.extend(value.map(|value| (column("run_", quantity), value))),
                [Field::Text(flow)] if probe::is_of_flow(quantity) => of_flow(flow),
                // The only connection is the flow; those of several are in the measurements.
                [Field::Text(flow), Field::Number(1.0)] if probe::is_of_flow(quantity) => {
                    let second = format!("{quantity}('{flow}', 2)");
                    if measured.get(&second).is_none() && measured.reason(&second).is_none() {
                        of_flow(flow);
                    }
                }
                _ => {}
            }
        }
        if flows.is_empty() {
            flows.insert(String::new(), BTreeMap::new());
        }
        for (flow, own) in flows {
            let mut fields = coordinates.to_vec();
            fields.push(Field::Whole(seed));
            fields.push(if flow.is_empty() { Field::Nothing } else { Field::Text(flow) });
            let own: BTreeMap<String, f64> =
                whole.iter().map(|(name, value)| (name.clone(), *value)).chain(own).collect();
            for name in own.keys() {
                if !self.columns.contains(name) {
                    self.columns.push(name.clone());
                }
            }
            self.rows.push((fields, own));
        }
    }

    /// As a table.
    pub(crate) fn table(mut self) -> Table {
        // What is the whole run's comes last.
        self.columns.sort_by_key(|name| (name.starts_with("run_"), name.clone()));
        let own = ["seed", "flow"].map(str::to_owned);
        let own: Vec<_> = own.into_iter().chain(self.columns.iter().cloned()).collect();
        let mut table = Table::new(with_coordinates(&self.coordinates, &own));
        for (mut fields, values) in self.rows {
            fields.extend(self.columns.iter().map(|name| Field::from(values.get(name).copied())));
            table.add(fields).expect("a table takes every row");
        }
        table
    }
}

/// The column of the experiment's name.
const EXPERIMENT: &str = "experiment";

/// All columns: an axis that is called like another column is told from it.
fn with_coordinates(coordinates: &[String], own: &[String]) -> Vec<String> {
    let is_taken = |place: usize, name: &String| own.contains(name) || (place > 0 && name == EXPERIMENT);
    let apart = coordinates.iter().enumerate().map(|(place, name)| match is_taken(place, name) {
        true => format!("axis.{name}"),
        false => name.clone(),
    });
    apart.chain(own.iter().cloned()).collect()
}

/// What a quantity's column is called: with its unit, unless its name says that.
fn column(prefix: &str, quantity: &str) -> String {
    match probe::unit(quantity) {
        "" => format!("{prefix}{quantity}"),
        "s" if quantity.ends_with("seconds") => format!("{prefix}{quantity}"),
        unit => format!("{prefix}{quantity}_{unit}"),
    }
}

/// A call's quantity, and what it is called with.
fn arguments(call: &str) -> (&str, Vec<Field>) {
    let Some((quantity, rest)) = call.split_once('(') else { return (call, Vec::new()) };
    let (mut rest, mut all) = (rest.strip_suffix(')').unwrap_or(rest).trim(), Vec::new());
    while !rest.is_empty() {
        let (argument, after) = match rest.strip_prefix('\'') {
            Some(text) => {
                let (text, after) = text.split_once('\'').unwrap_or((text, ""));
                (Field::Text(text.to_owned()), after)
            }
            None => {
                let (plain, after) = rest.find(',').map_or((rest, ""), |at| rest.split_at(at));
                let plain = plain.trim();
                (plain.parse().map_or_else(|_| Field::Text(plain.to_owned()), Field::Number), after)
            }
        };
        all.push(argument);
        rest = after.trim_start_matches([',', ' ']);
    }
    (quantity, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_taken_apart() {
        let text = |text: &str| Field::Text(text.to_owned());
        assert_eq!(arguments("T"), ("T", Vec::new()));
        assert_eq!(arguments("T()"), ("T", Vec::new()));
        let two = ("seconds", vec![text("a, b"), Field::Number(2.0)]);
        assert_eq!(arguments("seconds('a, b', 2)"), two);
        assert_eq!(arguments("wait('sky/down')"), ("wait", vec![text("sky/down")]));
    }

    #[test]
    fn an_axis_is_told_from_what_is_measured() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let coordinates = names(&["experiment", "experiment", "scheme", "seconds", "loss"]);
        assert_eq!(
            with_coordinates(&coordinates, &names(&["seed", "seconds"])),
            names(&["experiment", "axis.experiment", "scheme", "axis.seconds", "loss", "seed", "seconds"])
        );
    }

    #[test]
    fn columns_have_their_units() {
        for (quantity, name) in
            [("goodput", "goodput_bps"), ("seconds", "seconds"), ("L_99", "L_99_s"), ("timeouts", "timeouts")]
        {
            assert_eq!(column("", quantity), name);
        }
    }
}
