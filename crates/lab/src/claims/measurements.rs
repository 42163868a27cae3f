//! What one run of an experiment measured, under the names by which checks ask for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::evaluator::{Environment, written};
use super::value::Value;
use crate::statistics::Spread;

/// A measured quantity, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Item", into = "Item")]
pub enum Quantity {
    /// The value.
    Measured(f64),
    /// Why it was not measured.
    Unknown(String),
}

/// Quantities by the call that asks for them, such as `ftp('TCP', 1)`, lists that checks range over, and series that figures
/// draw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    quantities: BTreeMap<String, Quantity>,
    lists: BTreeMap<String, Vec<Item>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
enum Item {
    Number(f64),
    Text(String),
}

/// What stands in a file. JSON has no infinities: they are the texts "inf" and "-inf", which no other item may be.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Number(f64),
    Text(String),
}

impl From<Item> for Stored {
    fn from(item: Item) -> Self {
        match item {
            Item::Number(number) if number.is_infinite() => Self::Text(number.to_string()),
            Item::Number(number) => Self::Number(number),
            Item::Text(text) => Self::Text(text),
        }
    }
}

impl From<Stored> for Item {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) if text == "inf" => Self::Number(f64::INFINITY),
            Stored::Text(text) if text == "-inf" => Self::Number(f64::NEG_INFINITY),
            Stored::Number(number) => Self::Number(number),
            Stored::Text(text) => Self::Text(text),
        }
    }
}

impl From<Item> for Quantity {
    fn from(item: Item) -> Self {
        match item {
            Item::Number(value) => Self::Measured(value),
            Item::Text(reason) => Self::Unknown(reason),
        }
    }
}

impl From<Quantity> for Item {
    fn from(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Measured(value) => Self::Number(value),
            Quantity::Unknown(reason) => Self::Text(reason),
        }
    }
}

impl Measurements {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what `name(arguments)` is; it may be infinite.
    pub fn set(&mut self, name: &str, arguments: &[Value], value: f64) {
        debug_assert!(!value.is_nan(), "{name} is not a number");
        self.quantities.insert(written(name, arguments, &[]), Quantity::Measured(value));
    }

    /// Notes what `name(arguments)` is, or why it is unknown if it was not measured.
    pub fn set_or(&mut self, name: &str, arguments: &[Value], value: Option<f64>, reason: &str) {
        match value {
            Some(value) => self.set(name, arguments, value),
            None => {
                let unknown = Quantity::Unknown(reason.to_owned());
                self.quantities.insert(written(name, arguments, &[]), unknown);
            }
        }
    }

    /// Lets checks range over `numbers` under this name; none at all are unknown, so that nothing holds of them.
    pub fn set_numbers(&mut self, name: &str, numbers: impl IntoIterator<Item = f64>, reason_for_none: &str) {
        self.set_items(name, numbers.into_iter().map(Item::Number).collect(), reason_for_none);
    }

    fn set_items(&mut self, name: &str, items: Vec<Item>, reason_for_none: &str) {
        if items.is_empty() {
            let unknown = Quantity::Unknown(reason_for_none.to_owned());
            self.quantities.insert(written(name, &[], &[]), unknown);
        } else {
            self.lists.insert(name.to_owned(), items);
        }
    }

    /// Lets checks range over `texts` under this name.
    pub fn set_texts(&mut self, name: &str, texts: &[&str]) {
        self.lists.insert(name.to_owned(), texts.iter().map(|&text| Item::Text(text.to_owned())).collect());
    }

    /// What `call` gave.
    #[must_use]
    pub fn get(&self, call: &str) -> Option<f64> {
        match self.quantities.get(call)? {
            Quantity::Measured(value) => Some(*value),
            Quantity::Unknown(_) => None,
        }
    }

    /// A quantity without arguments.
    #[must_use]
    pub fn quantity(&self, name: &str) -> Option<f64> {
        self.get(&written(name, &[], &[]))
    }

    /// Notes a quantity without arguments; one that is not finite was not measured.
    pub fn note(&mut self, name: &str, value: impl Into<Option<f64>>) {
        let value = value.into().filter(|value| value.is_finite());
        self.set_or(name, &[], value, "not measured");
    }

    /// The numbers of a list, in their order; none if there is no such list.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let number = |item: &Item| match item {
            Item::Number(number) => Some(*number),
            Item::Text(_) => None,
        };
        self.lists.get(name).into_iter().flatten().filter_map(number).collect()
    }

    /// Keeps points that a figure draws, abscissa and ordinate of each, so that drawing it again takes no run. No check sees
    /// them.
    pub fn set_series(&mut self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<(f64, f64)> = points.into_iter().collect();
        // Nothing is drawn at infinity.
        debug_assert!(points.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{name} has no number");
        self.series.insert(name.to_owned(), points);
    }

    /// The points of a series, in their order; none if there is no such series.
    #[must_use]
    pub fn series(&self, name: &str) -> &[(f64, f64)] {
        self.series.get(name).map_or(&[], Vec::as_slice)
    }

    /// Takes in what another experiment measured in the same run.
    pub fn extend(&mut self, other: Self) {
        self.quantities.extend(other.quantities);
        self.lists.extend(other.lists);
        self.series.extend(other.series);
    }

    /// The medians over `runs`, without their series. A quantity that most of them lack is unknown, for the reason that the first of those
    /// gives; a list keeps what all of them have.
    #[must_use]
    pub fn medians(runs: &[Self]) -> Self {
        let mut medians = Self::new();
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.quantities.keys()).collect();
        for name in names {
            let spread = Self::spread(runs, name).filter(|spread| 2 * spread.n >= runs.len());
            let reason = runs.iter().find_map(|run| match run.quantities.get(name) {
                Some(Quantity::Unknown(reason)) => Some(reason.clone()),
                _ => None,
            });
            let unknown =
                || Quantity::Unknown(reason.unwrap_or_else(|| "not measured with most seeds".to_owned()));
            let median = spread.map_or_else(unknown, |spread| Quantity::Measured(spread.median));
            medians.quantities.insert(name.clone(), median);
        }
        let [first, others @ ..] = runs else { return medians };
        for (name, items) in &first.lists {
            let everywhere = |item: &&Item| {
                others.iter().all(|run| run.lists.get(name).is_some_and(|items| items.contains(item)))
            };
            let common = items.iter().filter(everywhere).cloned().collect();
            medians.set_items(name, common, "nothing that all seeds have");
        }
        medians
    }

    /// The spread of a quantity over the runs that have it.
    #[must_use]
    pub fn spread(runs: &[Self], call: &str) -> Option<Spread> {
        Spread::of(runs.iter().filter_map(|run| run.get(call)))
    }
}

impl Environment for Measurements {
    /// A list, or a quantity without arguments.
    fn name(&self, name: &str) -> Option<Value> {
        let list = self.lists.get(name).map(|items| {
            let value = |item: &Item| match item {
                Item::Number(number) => Value::Number(*number),
                Item::Text(text) => Value::Text(text.clone()),
            };
            Value::List(items.iter().map(value).collect())
        });
        list.or_else(|| {
            self.quantities.contains_key(&written(name, &[], &[])).then(|| self.call(name, &[], &[]))?
        })
    }

    fn call(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value> {
        let call = written(name, arguments, options);
        match self.quantities.get(&call) {
            Some(Quantity::Measured(value)) => Some(Value::Number(*value)),
            Some(Quantity::Unknown(reason)) => Some(Value::Unknown(reason.clone())),
            None => {
                let prefix = format!("{name}(");
                let known = self.quantities.range(prefix.clone()..).next();
                let known = known.is_some_and(|(call, _)| call.starts_with(&prefix));
                known.then(|| Value::Unknown(format!("{call} was not measured")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(time: Option<f64>, rounds: &[f64]) -> Measurements {
        let mut run = Measurements::new();
        run.set_or("ftp", &["TCP".into(), 1.0.into()], time, "never ended");
        run.set_numbers("rounds", rounds.iter().copied(), "no round");
        run
    }

    #[test]
    fn medians_are_over_the_seeds_that_have_a_value() {
        let runs = [
            run(Some(1.0), &[1.0, 2.0]),
            run(None, &[2.0, 3.0]),
            run(Some(3.0), &[2.0]),
            run(Some(8.0), &[2.0]),
        ];
        let medians = Measurements::medians(&runs);
        assert_eq!(medians.get("ftp('TCP', 1)"), Some(3.0));
        assert_eq!(medians.name("rounds"), Some(Value::List(vec![Value::Number(2.0)])));
        let medians = Measurements::medians(&[run(None, &[]), run(None, &[]), run(Some(1.0), &[])]);
        let unknown = medians.call("ftp", &["TCP".into(), 1.0.into()], &[]);
        assert_eq!(unknown, Some(Value::Unknown("never ended".to_owned())));
    }

    #[test]
    fn an_unmeasured_call_of_a_known_function_is_unknown_and_of_another_one_a_mistake() {
        let run = run(Some(1.0), &[]);
        assert!(matches!(run.call("ftp", &["UDP".into()], &[]), Some(Value::Unknown(_))));
        assert_eq!(run.call("ft", &["TCP".into()], &[]), None);
        assert_eq!(run.name("ftp"), None);
        assert_eq!(run.name("rounds"), Some(Value::Unknown("no round".to_owned())));
    }

    #[test]
    fn what_is_stored_reads_back() {
        let mut runs = [run(Some(1.5), &[1.0, 2.0, f64::NEG_INFINITY]), run(None, &[])];
        runs[1].set("x", &[], f64::INFINITY);
        // Most numbers take all their digits.
        runs[0].set_series("roots", (0..1000).map(|k| (f64::from(k) / 7.0, f64::from(k).sqrt())));
        assert_eq!((runs[0].series("roots").len(), runs[1].series("roots")), (1000, &[][..]));
        let stored = serde_json::to_string(&runs).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Measurements>>(&stored).unwrap(), runs);
    }
}
