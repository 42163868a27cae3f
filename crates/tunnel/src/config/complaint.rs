//! What is wrong with values that are each right by themselves.

use core::ops::Range;

use base::config::ConfigError;
use serde::de;
use toml::Spanned;

/// Where in a file a value lies.
pub type Place = Spanned<de::IgnoredAny>;

/// What is wrong with a value, in view of the others.
#[derive(Debug)]
pub struct Complaint {
    span: Option<Range<usize>>,
    message: String,
}

impl Complaint {
    /// A complaint about the value at `place`, or about the file as a whole.
    #[must_use]
    pub fn at(place: Option<&Place>, message: String) -> Self {
        Self { span: place.map(Spanned::span), message }
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The complaint with the line of `text`, the content of `file`.
    #[must_use]
    pub fn in_file(self, file: &str, text: &str) -> ConfigError {
        match self.span {
            Some(span) => ConfigError::at(file, text, span, self.message),
            None => ConfigError::about(file, self.message),
        }
    }
}
