//! What happens in a script, and when.

use base::Duration;

use crate::call::Call;
use crate::expression::Expression;
use crate::lexer::Position;
use crate::segment::{Expectation, Segment};

/// A line of a script.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it begins.
    pub at: Position,
    /// When it happens.
    pub time: Time,
    /// What happens.
    pub action: Action,
}

/// When an event happens: since the start of the script, or since the event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `0.1`.
    Absolute(Duration),
    /// `+0.1`.
    Relative(Duration),
    /// `0.1~0.2`.
    AbsoluteRange(Duration, Duration),
    /// `+0.1~+0.2`.
    RelativeRange(Duration, Duration),
    /// `*`.
    Any,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// The application makes a system call.
    Call(Call),
    /// `<`: the peer's segment arrives.
    In(Segment),
    /// `>`: the host sends a segment like this.
    Out(Expectation),
    /// `%{ assert ... }%`.
    Assert(Vec<Assertion>),
}

/// What must hold of `TCP_INFO`.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// Where it stands.
    pub at: Position,
    /// What must not be zero.
    pub holds: Expression,
    /// What is said besides, where it does not hold.
    pub says: Option<Expression>,
}
