//! An expression of the check language, read: a part of a check, or a value to be told beside it.

use super::estimate::LEVEL;
use super::evaluator::{Environment, EvaluateError, Evaluator};
use super::expression::Expression;
use super::parser::{self, ParseError};
use super::value::Value;
use super::vocabulary::{self, Vocabulary};

/// An expression and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    source: String,
    pub(super) expression: Expression,
}

impl Formula {
    /// Reads an expression.
    ///
    /// # Errors
    /// The text is no expression of the language.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Ok(Self { source: source.to_owned(), expression: parser::parse(source)? })
    }

    /// The text as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The value by what `environment` knows. `lo` and `hi` mean the 95 % interval.
    ///
    /// # Errors
    /// It asks for what nobody defines, or does not make sense.
    pub fn value(&self, environment: &dyn Environment) -> Result<Value, EvaluateError> {
        Evaluator::new(environment, LEVEL).evaluate(&self.expression)
    }

    /// Checks every name, function and literal argument without evaluating anything.
    ///
    /// # Errors
    /// The first mistake and its place in the text.
    pub fn verify(&self, vocabulary: &dyn Vocabulary) -> Result<(), ParseError> {
        vocabulary::verify(&self.expression, vocabulary)
    }
}
