//! What one run of an experiment measured, under the names by which checks ask for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evaluator::written;
use super::value::Value;

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

    /// Why `call` gave nothing, if that was noted.
    #[must_use]
    pub fn reason(&self, call: &str) -> Option<&str> {
        match self.quantities.get(call)? {
            Quantity::Measured(_) => None,
            Quantity::Unknown(reason) => Some(reason),
        }
    }

    /// Every quantity by its call, with its value if it was measured.
    pub fn quantities(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.quantities.keys().map(|call| (call.as_str(), self.get(call)))
    }

    /// The items of a list.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<Value>> {
        let value = |item: &Item| match item {
            Item::Number(number) => Value::Number(*number),
            Item::Text(text) => Value::Text(text.clone()),
        };
        Some(self.lists.get(name)?.iter().map(value).collect())
    }

    /// Notes a quantity without arguments; one that is not finite was not measured.
    pub fn note(&mut self, name: &str, value: impl Into<Option<f64>>) {
        let value = value.into().filter(|value| value.is_finite());
        self.set_or(name, &[], value, "not measured");
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
