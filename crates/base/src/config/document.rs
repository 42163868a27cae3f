//! A TOML file as a tree whose parts know where they stand, and as what types are read from.
//!
//! Types are read from this tree alone, whether it comes from a file or from a table that no file has: the code that serde
//! derives for a type is compiled once, and a complaint has both the place and the path of what is wrong.

mod hand_over;
mod reader;
mod wrong;

use core::ops::Range;

use serde::de::{Error as _, Expected, Unexpected};
use toml::Spanned;
use toml::de::{DeInteger, DeValue};
use zeroize::Zeroizing;

pub(super) use wrong::Wrong;

/// A value, and the bytes of the file that say it, if a file does.
#[derive(Clone, Debug)]
pub(super) struct Node {
    span: Option<Range<usize>>,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    /// Wiped in the end: it may be a key.
    Text(Zeroizing<String>),
    /// A key of ours, which is no file's.
    Ours(&'static str),
    Whole(i128),
    Number(f64),
    Truth(bool),
    /// Days and times, which nothing here reads.
    Date,
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

/// A key, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    span: Option<Range<usize>>,
    name: String,
}

impl Key {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// One that no file has.
impl From<String> for Key {
    fn from(name: String) -> Self {
        Self { span: None, name }
    }
}

impl Node {
    /// The whole of a file.
    ///
    /// # Errors
    /// It is no TOML.
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let table =
            toml::de::DeTable::parse(text).map_err(|error| Wrong::new(error.message(), error.span()))?;
        let span = table.span();
        Self::placed(DeValue::Table(table.into_inner()), span)
    }

    fn placed(value: DeValue<'_>, span: Range<usize>) -> Result<Self, Wrong> {
        let within = |it: Spanned<DeValue<'_>>| {
            let span = it.span();
            Self::placed(it.into_inner(), span)
        };
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned().into()),
            DeValue::Integer(number) => match whole(&number) {
                Some(number) => Value::Whole(number),
                None => return Err(Wrong::new("the number has too many digits", Some(span))),
            },
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(value) if value.is_finite() || number.as_str().contains(['i', 'n']) => {
                    Value::Number(value)
                }
                _ => return Err(Wrong::new("the number is too large", Some(span))),
            },
            DeValue::Boolean(truth) => Value::Truth(truth),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => Value::List(items.into_iter().map(within).collect::<Result<_, _>>()?),
            DeValue::Table(entries) => {
                let entries = entries.into_iter().map(|(name, value)| {
                    let key = Key { span: Some(name.span()), name: name.into_inner().into_owned() };
                    Ok((key, within(value)?))
                });
                Value::Table(entries.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { span: Some(span), value })
    }

    /// What is written there, if it is text.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The entries, if it is a table.
    pub(super) fn entries_mut(&mut self) -> Option<&mut Vec<(Key, Self)>> {
        match &mut self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) const fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// Makes it a table of nothing but itself under this key.
    pub(super) fn wrap(&mut self, key: &str) {
        let value = core::mem::replace(&mut self.value, Value::Table(Vec::new()));
        let inner = Self { span: self.span.clone(), value };
        self.value = Value::Table(vec![(Key { span: self.span.clone(), name: key.to_owned() }, inner)]);
    }

    /// Makes a name a table of it, without anything that belongs to it.
    pub(super) fn into_choice(mut self) -> Self {
        if let Value::Text(name) = &mut self.value {
            let name = core::mem::take(&mut **name);
            let nothing = Self { span: None, value: Value::Table(Vec::new()) };
            self.value = Value::Table(vec![(Key { span: self.span.clone(), name }, nothing)]);
        }
        self
    }

    /// A complaint about it in these words.
    pub(super) fn refused(&self, message: &str) -> Wrong {
        Wrong::new(message, self.span.clone())
    }

    /// The complaint that it is something else than was expected.
    pub(super) fn unexpected(&self, expected: &dyn Expected) -> Wrong {
        let found = match &self.value {
            Value::Text(text) => Unexpected::Str(text),
            Value::Ours(name) => Unexpected::Str(name),
            Value::Whole(number) => match i64::try_from(*number) {
                Ok(number) => Unexpected::Signed(number),
                Err(_) => Unexpected::Other("a large whole number"),
            },
            Value::Number(number) => Unexpected::Float(*number),
            Value::Truth(truth) => Unexpected::Bool(*truth),
            Value::Date => Unexpected::Other("date"),
            Value::List(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        Wrong::invalid_type(found, expected).at(self.span.clone())
    }

    /// A key or a name, as a value.
    fn text(name: String, span: Option<Range<usize>>) -> Self {
        Self { span, value: Value::Text(name.into()) }
    }
}

fn whole(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

impl From<toml::Value> for Node {
    fn from(value: toml::Value) -> Self {
        let value = match value {
            toml::Value::String(text) => Value::Text(text.into()),
            toml::Value::Integer(number) => Value::Whole(number.into()),
            toml::Value::Float(number) => Value::Number(number),
            toml::Value::Boolean(truth) => Value::Truth(truth),
            toml::Value::Datetime(_) => Value::Date,
            toml::Value::Array(items) => Value::List(items.into_iter().map(Self::from).collect()),
            toml::Value::Table(table) => return table.into(),
        };
        Self { span: None, value }
    }
}

impl From<toml::Table> for Node {
    fn from(table: toml::Table) -> Self {
        let entry = |(name, value)| (Key { span: None, name }, Self::from(value));
        Self { span: None, value: Value::Table(table.into_iter().map(entry).collect()) }
    }
}
