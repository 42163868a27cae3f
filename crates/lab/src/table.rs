//! Tables for other programs: columns of numbers, texts and truths, with gaps. They are kept by column, as such programs have them, or
//! written row by row.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::Value as Json;

/// What stands in a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Nothing.
    Nothing,
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// A truth.
    Truth(bool),
    /// A text.
    Text(String),
}

impl Field {
    fn csv(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::Text(text) => quoted(text),
        }
    }

    fn json(self) -> Json {
        match self {
            Self::Nothing => Json::Null,
            Self::Number(number) => number.into(),
            Self::Whole(number) => number.into(),
            Self::Truth(truth) => truth.into(),
            Self::Text(text) => text.into(),
        }
    }
}

impl From<Option<f64>> for Field {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A text as a field of CSV (RFC 4180).
pub(crate) fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// What takes rows.
pub(crate) trait Rows {
    /// A row with a field for each column.
    fn add(&mut self, fields: Vec<Field>) -> io::Result<()>;
}

/// Writes rows as CSV (RFC 4180), or as JSON, a line each.
pub(crate) struct Writer<W> {
    columns: Vec<String>,
    out: W,
    is_json: bool,
}

impl<W: Write> Writer<W> {
    pub(crate) fn csv(columns: Vec<String>, mut out: W) -> io::Result<Self> {
        let heading: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        writeln!(out, "{}", heading.join(","))?;
        Ok(Self { columns, out, is_json: false })
    }

    pub(crate) const fn json(columns: Vec<String>, out: W) -> Self {
        Self { columns, out, is_json: true }
    }
}

impl<W: Write> Rows for Writer<W> {
    fn add(&mut self, fields: Vec<Field>) -> io::Result<()> {
        if self.is_json {
            let pairs = self.columns.iter().cloned().zip(fields.into_iter().map(Field::json));
            return writeln!(self.out, "{}", Json::Object(pairs.collect()));
        }
        let fields: Vec<String> = fields.iter().map(Field::csv).collect();
        writeln!(self.out, "{}", fields.join(","))
    }
}

/// A table by column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: usize,
    columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, with the unit of its numbers.
    pub name: String,
    /// What stands in it.
    pub values: Values,
}

/// The values of a column, row by row, each with whether it is there; what stands for one that is not means nothing.
#[derive(Clone, Debug)]
pub enum Values {
    /// Nothing in any row.
    Nothing,
    /// Numbers.
    Numbers(Vec<f64>, Vec<bool>),
    /// Whole numbers.
    Whole(Vec<u64>, Vec<bool>),
    /// Truths.
    Truths(Vec<bool>, Vec<bool>),
    /// Texts.
    Texts(Texts),
}

/// Texts, each kept once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    known: HashMap<String, u32>,
    all: Vec<String>,
    /// The place of each row's text, or [`Self::NONE`].
    places: Vec<u32>,
}

impl Texts {
    const NONE: u32 = u32::MAX;

    fn push(&mut self, text: &str) {
        let place = match self.known.get(text) {
            Some(&place) => place,
            None => {
                let place = self.all.len() as u32;
                self.all.push(text.to_owned());
                self.known.insert(text.to_owned(), place);
                place
            }
        };
        self.places.push(place);
    }

    /// The text of each row, where there is one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.places.iter().map(|&place| self.all.get(place as usize).map(String::as_str))
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Numbers(_, present) | Self::Whole(_, present) | Self::Truths(_, present) => present.len(),
            Self::Texts(texts) => texts.places.len(),
        }
    }

    /// So many rows, the last ones without a value.
    fn pad(&mut self, rows: usize) {
        match self {
            Self::Nothing => {}
            Self::Numbers(values, present) => {
                values.resize(rows, 0.0);
                present.resize(rows, false);
            }
            Self::Whole(values, present) => {
                values.resize(rows, 0);
                present.resize(rows, false);
            }
            Self::Truths(values, present) => {
                values.resize(rows, false);
                present.resize(rows, false);
            }
            Self::Texts(texts) => texts.places.resize(rows, Texts::NONE),
        }
    }

    /// Puts a value into the row with this number, the next one or later.
    fn set(&mut self, row: usize, field: Field) {
        if field == Field::Nothing {
            return;
        }
        self.widen(&field);
        self.pad(row);
        match (self, field) {
            (Self::Numbers(values, present), Field::Number(number)) => {
                values.push(number);
                present.push(true);
            }
            (Self::Numbers(values, present), Field::Whole(number)) => {
                values.push(number as f64);
                present.push(true);
            }
            (Self::Whole(values, present), Field::Whole(number)) => {
                values.push(number);
                present.push(true);
            }
            (Self::Truths(values, present), Field::Truth(truth)) => {
                values.push(truth);
                present.push(true);
            }
            (Self::Texts(texts), Field::Text(text)) => texts.push(&text),
            (Self::Texts(texts), field) => texts.push(&field.csv()),
            (values, field) => unreachable!("{values:?} were widened for {field:?}"),
        }
    }

    /// Makes room for a value of another kind: whole numbers become numbers, and anything a text.
    fn widen(&mut self, field: &Field) {
        let rows = self.len();
        match (&*self, field) {
            (Self::Nothing, _) => {
                *self = match field {
                    Field::Nothing => Self::Nothing,
                    Field::Number(_) => Self::Numbers(Vec::new(), Vec::new()),
                    Field::Whole(_) => Self::Whole(Vec::new(), Vec::new()),
                    Field::Truth(_) => Self::Truths(Vec::new(), Vec::new()),
                    Field::Text(_) => Self::Texts(Texts::default()),
                }
            }
            (Self::Whole(values, present), Field::Number(_)) => {
                *self = Self::Numbers(values.iter().map(|&number| number as f64).collect(), present.clone());
            }
            (Self::Numbers(..), Field::Number(_) | Field::Whole(_))
            | (Self::Whole(..), Field::Whole(_))
            | (Self::Truths(..), Field::Truth(_))
            | (Self::Texts(_), _) => {}
            _ => {
                let mut texts = Self::Texts(Texts::default());
                for row in 0..rows {
                    texts.set(row, self.get(row));
                }
                *self = texts;
            }
        }
    }

    fn get(&self, row: usize) -> Field {
        let is_there = |present: &[bool]| present.get(row) == Some(&true);
        match self {
            Self::Numbers(values, present) if is_there(present) => Field::Number(values[row]),
            Self::Whole(values, present) if is_there(present) => Field::Whole(values[row]),
            Self::Truths(values, present) if is_there(present) => Field::Truth(values[row]),
            Self::Texts(texts) => {
                let place = texts.places.get(row).copied().unwrap_or(Texts::NONE);
                texts.all.get(place as usize).map_or(Field::Nothing, |text| Field::Text(text.clone()))
            }
            _ => Field::Nothing,
        }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = String>) -> Self {
        let column = |name| Column { name, values: Values::Nothing };
        Self { rows: 0, columns: columns.into_iter().map(column).collect() }
    }

    /// Begins a row, with nothing in it.
    pub const fn begin_row(&mut self) {
        self.rows += 1;
    }

    /// Sets a field of the last row; a column that is not there yet is added.
    ///
    /// # Panics
    /// If no row has begun, or the field has been set before.
    pub fn set(&mut self, name: &str, field: Field) {
        let row = self.rows.checked_sub(1).expect("a row that has begun");
        let place = self.columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
            self.columns.push(Column { name: name.to_owned(), values: Values::Nothing });
            self.columns.len() - 1
        });
        let values = &mut self.columns[place].values;
        assert!(values.len() <= row, "\"{name}\" is set twice");
        values.set(row, field);
    }

    /// Rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, each with a value for every row or none at all.
    #[must_use]
    pub fn into_columns(mut self) -> Vec<Column> {
        self.columns.iter_mut().for_each(|column| column.values.pad(self.rows));
        self.columns
    }

    /// Without the columns that have nothing in them, but for the first ones.
    #[must_use]
    pub fn filled(mut self, first: usize) -> Self {
        let mut place = 0;
        self.columns.retain(|column| {
            place += 1;
            place <= first || !matches!(column.values, Values::Nothing)
        });
        self
    }

    /// Only the rows in which `keeps` takes the text of a column.
    #[must_use]
    pub fn only(self, column: &str, keeps: impl Fn(&str) -> bool) -> Self {
        let texts = self.columns.iter().find(|it| it.name == column).map(|it| &it.values);
        let mut kept = Self::new(self.columns.iter().map(|column| column.name.clone()));
        for row in 0..self.rows {
            if texts.is_some_and(|texts| matches!(texts.get(row), Field::Text(text) if keeps(&text))) {
                kept.begin_row();
                let pairs = kept.columns.iter_mut().zip(&self.columns);
                pairs.for_each(|(to, from)| to.values.set(kept.rows - 1, from.values.get(row)));
            }
        }
        kept
    }

    /// Writes it as CSV.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut writer = Writer::csv(names, out)?;
        (0..self.rows)
            .try_for_each(|row| writer.add(self.columns.iter().map(|it| it.values.get(row)).collect()))
    }
}

impl Rows for Table {
    fn add(&mut self, fields: Vec<Field>) -> io::Result<()> {
        let row = self.rows;
        self.rows += 1;
        for (column, field) in self.columns.iter_mut().zip(fields) {
            column.values.set(row, field);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_what_they_are() {
        let rows = |is_json: bool| {
            let mut out = Vec::new();
            let columns = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
            let mut writer = match is_json {
                true => Writer::json(columns, &mut out),
                false => Writer::csv(columns, &mut out).unwrap(),
            };
            writer.add(vec!["x, \"y\"".into(), Field::Whole(3), Field::Nothing]).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(rows(false), "a,b,c\n\"x, \"\"y\"\"\",3,\n");
        assert_eq!(rows(true), "{\"a\":\"x, \\\"y\\\"\",\"b\":3,\"c\":null}\n");
    }

    #[test]
    fn a_table_has_gaps_and_columns_of_one_kind() {
        let mut table = Table::new(["time_s".to_owned(), "never".to_owned()]);
        let rows = [("whole", Field::Whole(1)), ("mixed", Field::Whole(2)), ("mixed", Field::Number(0.5))];
        for (name, field) in rows {
            table.begin_row();
            table.set("time_s", Field::Number(1.5));
            table.set(name, field);
        }
        table.begin_row();
        table.set("text", "a, b".into());
        table.set("whole", Field::Truth(true));
        let mut out = Vec::new();
        table.write_csv(&mut out).unwrap();
        let expected = "time_s,never,whole,mixed,text\n1.5,,1,,\n1.5,,,2,\n1.5,,,0.5,\n,,true,,\"a, b\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let only = table.clone().only("text", |text| text.starts_with('a'));
        let texts = only.columns.iter().map(|column| column.values.get(0).csv());
        assert_eq!((only.rows, texts.collect::<Vec<_>>().join(";")), (1, ";;true;;\"a, b\"".to_owned()));
        assert_eq!(table.clone().filled(2).columns.len(), 5);
        let columns = table.filled(1).into_columns();
        let kinds: Vec<_> = columns
            .iter()
            .map(|it| match &it.values {
                Values::Nothing => "nothing".to_owned(),
                Values::Numbers(_, present) => format!("numbers {present:?}"),
                Values::Whole(..) => "whole".to_owned(),
                Values::Truths(..) => "truths".to_owned(),
                Values::Texts(texts) => format!("texts {:?}", texts.iter().collect::<Vec<_>>()),
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "numbers [true, true, true, false]",
                "texts [Some(\"1\"), None, None, Some(\"true\")]",
                "numbers [false, true, true, false]",
                "texts [None, None, None, Some(\"a, b\")]"
            ]
        );
    }
}
