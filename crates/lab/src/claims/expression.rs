//! What a check looks like once it is read.

use super::value::Value;

/// A part of a check.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Literal(Value),
    Name {
        name: String,
        /// Where it stands in the source, in bytes.
        at: usize,
    },
    /// A tuple or a list.
    List(Vec<Expression>),
    Call {
        name: String,
        /// Where it stands in the source, in bytes.
        at: usize,
        arguments: Vec<Expression>,
        options: Vec<(String, Expression)>,
    },
    Index {
        of: Box<Expression>,
        at: Box<Expression>,
    },
    Slice {
        of: Box<Expression>,
        from: Option<Box<Expression>>,
        to: Option<Box<Expression>>,
    },
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Arithmetic {
        operator: Arithmetic,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    /// `a < b <= c`: each neighbour with the next.
    Comparison {
        /// As written.
        text: String,
        /// One more than there are comparators, each with its text.
        operands: Vec<(String, Expression)>,
        comparators: Vec<Comparator>,
    },
    /// Joined by `and`.
    All(Vec<Expression>),
    /// Joined by `or`.
    Any(Vec<Expression>),
    /// `then if condition else otherwise`.
    Choice {
        condition: Box<Expression>,
        then: Box<Expression>,
        otherwise: Box<Expression>,
    },
    /// `item for a, b in source if condition ...`.
    Comprehension {
        item: Box<Expression>,
        clauses: Vec<Clause>,
    },
}

/// One `for ... in ... if ...` of a comprehension.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    pub(super) targets: Vec<String>,
    pub(super) source: Expression,
    pub(super) conditions: Vec<Expression>,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Rounded down.
    FloorDivide,
    /// Of the sign of the divisor.
    Remainder,
    Power,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `==` and `is`, which differ for no value of this language.
    Equal,
    NotEqual,
    In,
    NotIn,
}
