//! Reading TOML files that people write, with errors that point at the line.
//!
//! Ranges and units are checked while the value is read (see [`crate::units`]), so every complaint knows
//! its place: file, line, key, value and what is allowed.

pub mod choice;
mod dialect;
mod document;
pub mod schema;
mod wording;

use core::fmt;
use core::ops::Range;

use serde::de::DeserializeOwned;

pub use dialect::{Dialect, Settings, read, read_or};
use document::{Node, Wrong};
pub use wording::plain;

/// Why a file cannot be used. Its text is one line: `file:line: key = value: what is wrong and what is allowed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file's name as the user gave it.
    pub file: String,
    /// The line, from 1, if the complaint has a place.
    pub line: Option<usize>,
    /// The offending line, trimmed; empty if the complaint has no place.
    pub excerpt: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// A complaint about `file` as a whole.
    #[must_use]
    pub fn about(file: &str, message: impl fmt::Display) -> Self {
        Self { file: file.to_owned(), line: None, excerpt: String::new(), message: message.to_string() }
    }

    /// A complaint about the bytes `span` of the file's `text`.
    #[must_use]
    pub fn at(file: &str, text: &str, span: Range<usize>, message: impl fmt::Display) -> Self {
        let start = span.start.min(text.len());
        let before = &text.as_bytes()[..start];
        let line = before.iter().filter(|&&byte| byte == b'\n').count();
        let excerpt = text.lines().nth(line).unwrap_or_default().trim().to_owned();
        Self { file: file.to_owned(), line: Some(line + 1), excerpt, message: message.to_string() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.excerpt.is_empty() {
            write!(f, ": {}", self.excerpt)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl core::error::Error for ConfigError {}

/// Reads `text`, the content of `file`, as a `T`.
///
/// # Errors
/// Broken TOML, an unknown or missing key, or a value out of its range.
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ConfigError> {
    Node::parse(text).and_then(T::deserialize).map_err(|wrong| complain(file, text, &wrong))
}

/// Which line a complaint is about, or which key, where no line says so.
fn complain(file: &str, text: &str, wrong: &Wrong) -> ConfigError {
    match wrong.span().filter(|span| !wrong.message().starts_with("missing") || is_table(text, span)) {
        Some(span) => ConfigError::at(file, text, span, plain(wrong.message())),
        None => ConfigError::about(file, plain(&wrong.to_string())),
    }
}

/// Whether a table begins there: its first line is the place of a key that it lacks. The file as a whole has no such line, and an
/// empty span.
fn is_table(text: &str, span: &Range<usize>) -> bool {
    !span.is_empty() && text.get(span.start..).is_some_and(|from| from.starts_with(['[', '{']))
}

/// Reads a table that no file has as it is: what is wrong, and in which key, by its whole path.
///
/// # Errors
/// It says something that is not allowed.
pub fn from_table<T: DeserializeOwned>(table: toml::Table) -> Result<T, String> {
    T::deserialize(Node::from(table)).map_err(|wrong| plain(&wrong.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, Rate};
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Link {
        rate: Rate,
        delay: Duration,
    }

    fn complaint(text: &str) -> String {
        parse::<Link>("link.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_complaint_names_file_line_key_value_and_what_is_allowed() {
        assert_eq!(
            complaint("delay = \"1 s\"\nrate = \"256 kbps\"\n"),
            "link.toml:2: rate = \"256 kbps\": \"256 kbps\" is not a rate; \
             write a number and one of bit/s, kbit/s, Mbit/s, Gbit/s, as in \"256 kbit/s\""
        );
        assert_eq!(
            complaint("rate = \"1 bit/s\"\ndelay = \"1 s\"\njitter = 3\n"),
            "link.toml:3: jitter = 3: unknown key `jitter`, expected `rate` or `delay`"
        );
        // The file as a whole lacks a key: no line of it is to blame, and a comment least of all.
        assert_eq!(complaint("# A link.\nrate = \"1 bit/s\""), "link.toml: missing key `delay`");
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct File {
            link: Link,
            seed: u64,
        }
        let of = |text: &str| parse::<File>("f.toml", text).unwrap_err().to_string();
        let whole = "[link]\nrate = \"1 bit/s\"\ndelay = \"1 s\"\n";
        assert_eq!(of(whole), "f.toml: missing key `seed`");
        assert_eq!(of("[link]\nrate = \"1 bit/s\"\n"), "f.toml:1: [link]: missing key `delay`");
        assert_eq!(of("seed = 1\n[link]\nrate = \"1 bit/s\"\n"), "f.toml:2: [link]: missing key `delay`");
        assert_eq!(of("seed = 1\nlink.rate = \"1 bit/s\"\n"), "f.toml: missing key `delay` in `link`");
        assert!(complaint("rate = [").starts_with("link.toml:1"));
    }

    #[test]
    fn a_value_can_be_asked_for_its_place() {
        #[derive(Debug, Deserialize)]
        struct File {
            link: Vec<toml::Spanned<toml::Table>>,
            #[allow(dead_code)]
            at: Option<toml::Spanned<u8>>,
        }
        let text = "[[link]]\na = 1\n[[link]]\nb = 2\n";
        let file: File = parse("f.toml", text).unwrap();
        let begins: Vec<usize> = file.link.iter().map(|it| it.span().start).collect();
        assert_eq!(begins, [0, 15]);
        assert_eq!(file.link[1].get_ref().to_string(), "b = 2\n");
        type Numbers = std::collections::BTreeMap<String, f64>;
        assert_eq!(
            parse::<Numbers>("f", "a = inf\nb = 2").unwrap().into_values().sum::<f64>(),
            f64::INFINITY
        );
        let wrong = |text: &str| parse::<File>("f.toml", text).unwrap_err().to_string();
        let complaint =
            "f.toml:2: at = 300: invalid value: integer `300`, expected a whole number from 0 to 255";
        assert_eq!(wrong("link = []\nat = 300"), complaint);
        // Where no line says so, the path does, without the keys that ask for the place.
        let table: toml::Table = toml::from_str("link = [{}, 3]").unwrap();
        let complaint = "invalid type: integer `3`, expected a table in `link[1]`";
        assert_eq!(from_table::<File>(table).unwrap_err(), complaint);
    }

    #[test]
    fn kinds_and_lists_are_read_and_complained_of() {
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(dead_code)]
        enum Kind {
            Off,
            Times(Vec<u8>),
            Pair(u8, u8),
            Of { count: u8 },
        }
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct File {
            kind: Kind,
        }
        let read = |text: &str| parse::<File>("f", text).map_err(|error| error.to_string());
        for fits in [
            "'off'",
            "{ off = {} }",
            "{ times = [1, 0xff] }",
            "{ pair = [1, 2] }",
            "{ of = { count = 1_0 } }",
        ] {
            assert!(read(&format!("kind = {fits}")).is_ok(), "{fits}: {:?}", read(&format!("kind = {fits}")));
        }
        for (wrong, complaint) in [
            ("3", "neither a name nor a table"),
            ("{}", "an empty table; allowed is exactly one key"),
            ("{ off = {}, of = {} }", "a table with several keys; allowed is exactly one"),
            ("'of'", "a name alone; it needs a table of its keys"),
            ("'on'", "unknown value `on`, expected one of `off`, `times`, `pair`, `of`"),
            ("{ off = 1 }", "invalid type: integer `1`, expected an empty table"),
            ("{ off = { a = 1 } }", "invalid type: table, expected an empty table"),
            ("{ of = { number = 1 } }", "unknown key `number`, expected `count`"),
            ("{ of = [1] }", "invalid type: list, expected a table"),
            ("{ times = [1, 256] }", "invalid value: integer `256`, expected a whole number from 0 to 255"),
            ("{ pair = [1] }", "invalid length 1, expected a list"),
            ("1e999", "the number is too large"),
            ("2026-01-01", "neither a name nor a table"),
        ] {
            assert_eq!(
                read(&format!("kind = {wrong}")).unwrap_err(),
                format!("f:1: kind = {wrong}: {complaint}")
            );
        }
    }
}
