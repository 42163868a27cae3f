//! Axes: what an experiment varies, and what a paper leaves unsaid.

use toml::{Table, Value as Toml};

use crate::claims::Value;

/// Something that takes several values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What expressions call it. Its name in capital letters is the list of its values.
    pub name: String,
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
        let axis = Self { name: name.to_owned(), values, quick: None };
        for (place, value) in axis.values.iter().enumerate() {
            if axis.place(&value.value) != Some(place) {
                return Err(format!("axis \"{name}\" has {} twice", value.value));
            }
        }
        Ok(axis)
    }

    /// The same with only these values in a quick run.
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
pub(super) fn plain(item: &Toml) -> Result<Value, String> {
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
