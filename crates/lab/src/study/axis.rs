//! Axes: what an experiment varies, and what a paper leaves unsaid.

use core::str::FromStr;

use base::units::Size;
use base::{Duration, Rate};
use toml::{Table, Value as Toml};

use crate::claims::Value;
use crate::table::Field;

/// Something that takes several values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What expressions call it. Its name in capital letters is the list of its values.
    pub name: String,
    /// What readers call it: the whole key where it stands for one of a scenario.
    pub title: String,
    /// The values, in order.
    pub values: Vec<AxisValue>,
    /// The places of those that a quick run has.
    pub(super) quick: Option<Vec<usize>>,
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub struct AxisValue {
    /// What expressions and tables call it.
    pub value: Value,
    /// The keys that it sets.
    pub set: Table,
}

impl AxisValue {
    /// Its name in tables and figures.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

impl Axis {
    /// Reads an axis: a list of numbers and texts, or a table of labels and the keys that each sets.
    pub(super) fn read(name: &str, written: &Toml) -> Result<Self, String> {
        let plain = |item: &Toml| Ok(AxisValue { value: plain(item)?, set: Table::new() });
        let values = match written {
            Toml::Array(items) => items.iter().map(plain).collect::<Result<Vec<_>, String>>()?,
            Toml::Table(labels) => labels
                .iter()
                .map(|(label, set)| match set {
                    Toml::Table(set) => Ok(AxisValue { value: Value::Text(label.clone()), set: set.clone() }),
                    other => Err(format!("\"{label}\" sets {other}; write a table of keys to set")),
                })
                .collect::<Result<Vec<_>, String>>()?,
            other => {
                return Err(format!(
                    "axis \"{name}\" is {other}; write a list, or a table of labels and keys"
                ));
            }
        };
        if values.is_empty() {
            return Err(format!("axis \"{name}\" has no values"));
        }
        if name.is_empty() || name.chars().any(|c| !(c.is_ascii_alphanumeric() || c == '_')) {
            return Err(format!("axis \"{name}\": a name has letters, digits and _"));
        }
        let axis = Self { name: name.to_owned(), title: name.replace('_', " "), values, quick: None };
        for (place, value) in axis.values.iter().enumerate() {
            if axis.place(&value.value) != Some(place) {
                return Err(format!("axis \"{name}\" has {} twice", value.value));
            }
        }
        Ok(axis)
    }

    /// Its values as numbers, if all are of one kind.
    pub(super) fn scale(&self) -> Option<Scale> {
        let numbers = self.values.iter().map(|value| match value.value {
            Value::Number(number) => Some(number),
            _ => None,
        });
        if let Some(values) = numbers.collect::<Option<Vec<f64>>>() {
            return Some(Scale { values, unit: "", one: 1.0, base: "" });
        }
        let texts = self.values.iter().map(|value| match &value.value {
            Value::Text(text) if value.set.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let texts = texts.collect::<Option<Vec<&str>>>()?;
        let times = || Scale::read(&texts, |time: Duration| time.as_secs_f64(), TIMES, "s");
        let rates = || Scale::read(&texts, |rate: Rate| rate.as_bps() as f64, RATES, "bps");
        times().or_else(rates).or_else(|| Scale::read(&texts, |size: Size| size.0 as f64, SIZES, "bytes"))
    }

    /// What its column is called in tables for other programs: with the unit of its numbers.
    #[must_use]
    pub fn column(&self) -> String {
        match self.scale() {
            Some(Scale { base: unit, .. }) if !unit.is_empty() => format!("{}_{unit}", self.key()),
            _ => self.key().to_owned(),
        }
    }

    /// What stands there for the value with this place.
    pub(super) fn field(&self, place: usize) -> Field {
        match self.scale() {
            Some(scale) => Field::Number(scale.values[place] * scale.one),
            None => Field::from(&self.values[place].value),
        }
    }

    /// The key of a scenario that it stands for, or else its name.
    fn key(&self) -> &str {
        if self.title.contains('.') { &self.title } else { &self.name }
    }

    /// What stands beside it in a figure.
    pub(super) fn label(&self) -> String {
        let name = self.name.replace('_', " ");
        match self.scale() {
            Some(Scale { unit, .. }) if !unit.is_empty() => format!("{name} ({unit})"),
            _ => name,
        }
    }

    /// What stands at the value with this place, beside the [label](Self::label): a number in its unit, or a text.
    pub(super) fn tick(&self, place: usize) -> String {
        match self.scale() {
            Some(scale) => Value::Number(scale.values[place]).to_string(),
            None => self.values[place].label(),
        }
    }

    /// This axis, of which a quick run has only these values.
    pub(super) fn with_quick(mut self, written: &Toml) -> Result<Self, String> {
        let items = written.as_array().map_or(core::slice::from_ref(written), Vec::as_slice);
        let place = |item: &Toml| {
            let value = plain(item)?;
            self.place(&value).ok_or_else(|| self.unknown(&value))
        };
        let places = items.iter().map(place).collect::<Result<Vec<_>, String>>()?;
        self.quick = Some(places);
        Ok(self)
    }

    /// The place of a value; texts are equal, and numbers but for rounding.
    #[must_use]
    pub fn place(&self, value: &Value) -> Option<usize> {
        self.values.iter().position(|own| match (&own.value, value) {
            (Value::Number(a), Value::Number(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (a, b) => a == b,
        })
    }

    /// The complaint about a value that the axis does not have.
    pub(super) fn unknown(&self, value: &Value) -> String {
        let known: Vec<String> = self.values.iter().map(|own| own.value.to_string()).collect();
        format!("axis \"{}\" has no value {value}; there are {}", self.name, known.join(", "))
    }

    /// The places that run.
    pub(super) fn places(&self, quick: bool) -> Vec<usize> {
        match &self.quick {
            Some(places) if quick => places.clone(),
            _ => (0..self.values.len()).collect(),
        }
    }

    /// What its list of values is called in expressions.
    #[must_use]
    pub fn list_name(&self) -> String {
        self.name.to_ascii_uppercase()
    }
}

/// The values of an axis as numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) values: Vec<f64>,
    /// Of all of them; empty where they have none.
    pub(super) unit: &'static str,
    /// How many base units that is, and what these are called in columns' names.
    pub(super) one: f64,
    pub(super) base: &'static str,
}

/// Units, and how much of the base unit each is, the largest first.
type Units = &'static [(f64, &'static str)];
const TIMES: Units = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")];
const RATES: Units = &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const SIZES: Units = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")];

impl Scale {
    fn read<T: FromStr>(
        texts: &[&str],
        number: impl Fn(T) -> f64,
        units: Units,
        base: &'static str,
    ) -> Option<Self> {
        let read = texts.iter().map(|text| text.parse().ok().map(&number));
        let values = read.collect::<Option<Vec<f64>>>()?;
        let (one, unit) = largest_unit(values.iter().copied(), units);
        // Without what the division leaves behind the last digit.
        let in_unit = |value: &f64| (value / one * 1e9).round() / 1e9;
        Some(Self { values: values.iter().map(in_unit).collect(), unit, one, base })
    }
}

/// The largest of the units that the greatest of the values has at least one of.
fn largest_unit(values: impl Iterator<Item = f64>, units: Units) -> (f64, &'static str) {
    let most = values.fold(0.0, f64::max);
    let fits = units.iter().find(|(one, _)| most >= *one * (1.0 - 1e-9));
    fits.or(units.last()).copied().unwrap_or((1.0, ""))
}

/// The largest unit of rates in which the greatest of them is one or more, and how much that is.
pub(super) fn rate_unit(rates: impl Iterator<Item = Rate>) -> (f64, &'static str) {
    largest_unit(rates.map(|rate| rate.as_bps() as f64), RATES)
}

/// All combinations of places on axes that run, the last axis innermost.
pub(super) fn product(places: &[Vec<usize>]) -> Vec<Vec<usize>> {
    places.iter().fold(vec![Vec::new()], |all, places| {
        let extend = |head: &Vec<usize>| {
            places.iter().map(|&place| head.iter().copied().chain([place]).collect()).collect::<Vec<_>>()
        };
        all.iter().flat_map(extend).collect()
    })
}

/// A plain value of TOML as expressions know it.
///
/// # Errors
/// It is something else.
pub fn plain(item: &Toml) -> Result<Value, String> {
    match item {
        Toml::Integer(number) => Ok(Value::Number(*number as f64)),
        Toml::Float(number) => Ok(Value::Number(*number)),
        Toml::Boolean(truth) => Ok(Value::Bool(*truth)),
        Toml::String(text) => Ok(Value::Text(text.clone())),
        other => Err(format!("{other} is neither a number nor a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Axis, String> {
        let table: Table = toml::from_str(text).unwrap();
        Axis::read("f", &table["f"])
    }

    #[test]
    fn values_keep_their_order_and_are_found_again() {
        let axis = axis("f = { zulu = { a = 1 }, alpha = {} }").unwrap();
        assert_eq!(axis.values.iter().map(AxisValue::label).collect::<Vec<_>>(), ["zulu", "alpha"]);
        assert_eq!(axis.place(&"alpha".into()), Some(1));
        let numbers = super::tests::axis("f = [0.1, 3, \"x\"]").unwrap();
        assert_eq!(numbers.place(&Value::Number(0.3 - 0.2)), Some(0));
        assert_eq!(numbers.place(&Value::Number(0.2)), None);
        assert!(numbers.unknown(&0.2.into()).contains("there are 0.1, 3, 'x'"));
    }

    #[test]
    fn quantities_of_one_kind_are_numbers() {
        let scale = |text: &str| axis(text).unwrap().scale();
        let some = |values: &[f64], unit, one, base| Some(Scale { values: values.to_vec(), unit, one, base });
        assert_eq!(scale("f = [\"50 ms\", \"0.25 s\"]"), some(&[50.0, 250.0], "ms", 1e-3, "s"));
        assert_eq!(scale("f = [\"256 kbit/s\", \"2 Mbit/s\"]"), some(&[0.256, 2.0], "Mbit/s", 1e6, "bps"));
        assert_eq!(scale("f = [\"64 KiB\"]"), some(&[65.536], "kB", 1e3, "bytes"));
        assert_eq!(scale("f = [0.1, 3]"), some(&[0.1, 3.0], "", 1.0, ""));
        for names in [
            "f = [\"plain\", \"coded\"]",
            "f = [true, false]",
            "f = [\"50 ms\", 3]",
            "f = [\"50 ms\", \"2 Mbit/s\"]",
        ] {
            assert_eq!(scale(names), None, "{names}");
        }
        assert_eq!(axis("f = [\"50 ms\"]").unwrap().label(), "f (ms)");
    }

    #[test]
    fn what_is_no_axis_is_refused() {
        for (text, want) in [
            ("f = 3", "write a list"),
            ("f = []", "no values"),
            ("f = [1, 1.0]", "twice"),
            ("f = { a = 3 }", "write a table of keys"),
        ] {
            let complaint = axis(text).unwrap_err();
            assert!(complaint.contains(want), "{complaint}");
        }
    }

    #[test]
    fn the_last_axis_is_innermost() {
        assert_eq!(product(&[vec![0, 1], vec![5, 7]]), [[0, 5], [0, 7], [1, 5], [1, 7]]);
        assert_eq!(product(&[]), [Vec::<usize>::new()]);
    }
}
