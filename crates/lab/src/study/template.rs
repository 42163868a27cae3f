//! Templates: values of a study that depend on the axes, as `"$f"`, `"$d s"` or `"${150 * d / f} s"`.
//!
//! A text that is one `$name` or `${expression}` and nothing else becomes that value, of its own type; in a longer text
//! each is written out. Expressions are those of claims (`docs/claims.md`).

use toml::{Table, Value as Toml};

use super::axis::plain;
use crate::claims::{Environment, Formula, Value};

/// The names that expressions of one case know.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    names: Vec<(String, Value)>,
}

impl Scope {
    /// Adds a name; it hides an older one.
    pub(super) fn bind(&mut self, name: &str, value: Value) {
        self.names.push((name.to_owned(), value));
    }

    /// The value of an expression.
    pub(super) fn value(&self, expression: &str) -> Result<Value, String> {
        let value = evaluate(expression, self)?;
        match value {
            Value::Unknown(reason) => Err(format!("\"{expression}\" is unknown: {reason}")),
            value => Ok(value),
        }
    }

    /// Whether a condition is met.
    pub(super) fn is(&self, condition: &str) -> Result<bool, String> {
        match self.value(condition)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(format!("\"{condition}\" is {other}, not true or false")),
        }
    }

    /// A number: one as it is, or a text with an expression for one.
    pub(super) fn number(&self, written: &Toml) -> Result<f64, String> {
        let value = match written {
            Toml::String(expression) => self.value(expression)?,
            other => plain(other)?,
        };
        value.as_number().ok_or_else(|| format!("{written} is {value}, not a number"))
    }

    /// Binds each name of a table to its number or expression, in order.
    pub(super) fn bind_all(&mut self, table: &Table) -> Result<(), String> {
        for (name, written) in table {
            let value = match written {
                Toml::String(expression) => self.value(expression)?,
                Toml::Array(items) => items.iter().map(plain).collect::<Result<Value, String>>()?,
                other => plain(other)?,
            };
            self.bind(name, value);
        }
        Ok(())
    }

    /// A text with its templates written out.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        match self.fill_text(text)? {
            Toml::String(text) => Ok(text),
            other => Ok(other.to_string()),
        }
    }

    /// The table with all templates in it filled in.
    pub(super) fn fill(&self, table: &Table) -> Result<Table, String> {
        table.iter().map(|(key, value)| Ok((key.clone(), self.fill_value(value)?))).collect()
    }

    fn fill_value(&self, value: &Toml) -> Result<Toml, String> {
        Ok(match value {
            Toml::String(text) => self.fill_text(text)?,
            Toml::Array(items) => {
                Toml::Array(items.iter().map(|item| self.fill_value(item)).collect::<Result<_, String>>()?)
            }
            Toml::Table(table) => Toml::Table(self.fill(table)?),
            other => other.clone(),
        })
    }

    fn fill_text(&self, text: &str) -> Result<Toml, String> {
        let mut written = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            written += &rest[..at];
            let after = &rest[at + 1..];
            let (expression, end) = match after.strip_prefix('{') {
                Some(inside) => {
                    let close = inside.find('}').ok_or_else(|| format!("\"{text}\": no }} after ${{"))?;
                    (&inside[..close], close + 2)
                }
                None => {
                    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    let end = end.unwrap_or(after.len());
                    (&after[..end], end)
                }
            };
            let value = self.value(expression)?;
            rest = &after[end..];
            if at == 0 && rest.is_empty() && written.is_empty() {
                return toml_of(&value);
            }
            match value {
                Value::Text(text) => written += &text,
                value => written += &value.to_string(),
            }
        }
        Ok(Toml::String(written + rest))
    }
}

/// The value of an expression by what `environment` knows.
pub(super) fn evaluate(expression: &str, environment: &dyn Environment) -> Result<Value, String> {
    let complain = |error: &dyn core::fmt::Display| format!("\"{expression}\": {error}");
    let formula = Formula::parse(expression).map_err(|error| complain(&error))?;
    formula.value(environment).map_err(|error| complain(&error))
}

/// A value as TOML has it: whole numbers are integers.
fn toml_of(value: &Value) -> Result<Toml, String> {
    Ok(match value {
        Value::Number(number) if *number == number.trunc() && number.abs() < 1e15 => {
            Toml::Integer(*number as i64)
        }
        Value::Number(number) => Toml::Float(*number),
        Value::Bool(truth) => Toml::Boolean(*truth),
        Value::Text(text) => Toml::String(text.clone()),
        Value::List(items) => Toml::Array(items.iter().map(toml_of).collect::<Result<_, String>>()?),
        other => return Err(format!("{other} has no place in a scenario")),
    })
}

impl Environment for Scope {
    fn name(&self, name: &str) -> Option<Value> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn call(&self, _: &str, _: &[Value], _: &[(String, Value)]) -> Option<Value> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_alone_keeps_its_type_and_others_are_written_out() {
        let mut scope = Scope::default();
        scope.bind("f", 0.3.into());
        scope.bind("w", 66.0.into());
        scope.bind("block", "latest".into());
        let table: Table = toml::from_str(
            "a = '$f'\nb = '$w'\nc = '$f s'\nd = '${w > 3}'\ne = { x = ['-${2 * w} of $block-'] }\ng = 7",
        )
        .unwrap();
        let filled = scope.fill(&table).unwrap();
        let expected: Table =
            toml::from_str("a = 0.3\nb = 66\nc = '0.3 s'\nd = true\ne = { x = ['-132 of latest-'] }\ng = 7")
                .unwrap();
        assert_eq!(filled, expected);
    }

    #[test]
    fn unknown_names_and_open_braces_are_refused() {
        let scope = Scope::default();
        for (text, want) in [("$g", "no such name: g"), ("${1", "no } after"), ("${1 / 0}", "unknown")] {
            let complaint = scope.text(text).unwrap_err();
            assert!(complaint.contains(want), "{complaint}");
        }
    }
}
