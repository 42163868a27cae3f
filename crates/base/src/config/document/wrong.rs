//! What is wrong with a file: where, in which key, and in which words.

use core::fmt;
use core::ops::Range;

use serde::de;

use super::{Key, hand_over};

/// A complaint about a value.
#[derive(Clone, Debug)]
pub(in crate::config) struct Wrong(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    message: String,
    span: Option<Range<usize>>,
    /// The keys that lead to the value, the innermost first.
    path: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Item(usize),
}

impl Wrong {
    pub(super) fn new(message: &str, span: Option<Range<usize>>) -> Self {
        Self(Box::new(Parts { message: message.to_owned(), span, path: Vec::new() }))
    }

    /// A complaint about a key.
    pub(in crate::config) fn about(key: &Key, message: &str) -> Self {
        Self::new(message, key.span.clone()).in_key(key.name.clone())
    }

    /// It is about a value that stands there, or about something within it.
    pub(super) fn at(mut self, span: Option<Range<usize>>) -> Self {
        self.0.span = self.0.span.or(span);
        self
    }

    pub(in crate::config) fn in_key(mut self, name: String) -> Self {
        self.0.path.push(Step::Key(name));
        self
    }

    pub(super) fn in_item(mut self, index: usize) -> Self {
        self.0.path.push(Step::Item(index));
        self
    }

    pub(in crate::config) fn message(&self) -> &str {
        &self.0.message
    }

    pub(in crate::config) fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    /// The key, by its whole path, as `link.errors[2].mean`; empty if it is the whole file.
    fn path(&self) -> String {
        let mut text = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Item(index) => text += &format!("[{index}]"),
                Step::Key(name) if text.is_empty() => text += name,
                Step::Key(name) => text += &format!(".{name}"),
            }
        }
        text
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        let path = self.path();
        if path.is_empty() { Ok(()) } else { write!(f, " in `{path}`") }
    }
}

impl core::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        hand_over::wrong().unwrap_or_else(|| Self::new(&message.to_string(), None))
    }
}
