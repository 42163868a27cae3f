//! Evaluates a check against what was measured.
//!
//! Deviations from Python: there is one kind of number; `and`, `or`, `not`, `all` and `any` answer true, false or
//! unknown (Kleene) and always look at all their parts, so that a report has every measured value; a division by zero
//! is unknown; a tuple is a list. Values may be uncertain: see `arithmetic` and `comparing`.

use core::ops::Range;
use std::collections::BTreeSet;

use super::arithmetic;
use super::builtin;
use super::comparing::{Comparing, Measured};
use super::expression::{Arithmetic, Clause, Comparator, Expression};
use super::value::{Truth, Value};

/// What the names and functions of a check mean.
pub trait Environment {
    /// The value of a name; `None` if there is no such name.
    fn name(&self, name: &str) -> Option<Value>;

    /// The value of a function; `None` if there is no such function. What was not measured is [`Value::Unknown`].
    fn call(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value>;

    /// How much it has been asked for so far, if it keeps count: what a comparison rests on lies between two of these.
    fn asked(&self) -> usize {
        0
    }
}

/// A measured value that a check asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The call, as in `ftp('TCP', 1)`.
    pub call: String,
    /// What it gave.
    pub value: Value,
}

/// One comparison that a check made.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// As written.
    pub text: String,
    /// The names that comprehensions bind there, as in ` at f = 0.3, d = 1`; empty outside of them.
    pub place: String,
    /// The text of each operand and its value; a sample is there as its mean.
    pub operands: Vec<(String, Value)>,
    /// What decides it where it is uncertain: an operand, or the difference of two that are uncertain.
    pub measured: Vec<Measured>,
    /// Whether it holds at its level; `None` is unknown.
    pub holds: Option<bool>,
}

/// Why a check has no meaning at all: a mistake in the claims file or in the experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// A name that nobody defines.
    #[error("no such name: {0}")]
    Name(String),
    /// A function that nobody defines.
    #[error("no such function: {0}")]
    Function(String),
    /// A function of the language with a number of arguments that it does not take.
    #[error("{0}")]
    Arguments(String),
    /// An operation on values that it is not made for.
    #[error("{operation} cannot be used with {value}")]
    Type {
        /// The operation.
        operation: String,
        /// The value.
        value: String,
    },
    /// The check loops over too much.
    #[error("more than {MAX_STEPS} steps")]
    TooLong,
}

/// Parts that one evaluation looks at, at most.
const MAX_STEPS: usize = 1_000_000;

/// Steps that an uncertain value takes beyond those of a number: about a thousand operations.
const STEPS_OF_UNCERTAINTY: usize = 16;

pub(super) type Evaluated = Result<Value, EvaluateError>;

/// One evaluation of one check.
pub(super) struct Evaluator<'a> {
    environment: &'a dyn Environment,
    /// Names that comprehensions bind, the innermost last.
    scope: Vec<(String, Value)>,
    /// The confidence level of every interval.
    level: f64,
    steps: usize,
    /// Conditions choose what is compared; they are not what is compared.
    in_condition: bool,
    /// Whether what is looked at has to be true for the whole to be true, so that the whole is a conjunction.
    in_conjunction: bool,
    known_calls: BTreeSet<String>,
    pub(super) lookups: Vec<Lookup>,
    pub(super) comparisons: Vec<Comparison>,
    /// Comparisons of uncertain values, those in conditions too.
    pub(super) uncertain: usize,
    /// Whether one of these is in something other than a conjunction.
    pub(super) is_mixed: bool,
    /// What was asked for, for what the comprehensions range over.
    sources: Vec<Range<usize>>,
    /// What was asked for, for comparisons that more seeds may decide.
    pub(super) open: Vec<Range<usize>>,
}

impl<'a> Evaluator<'a> {
    pub(super) const fn new(environment: &'a dyn Environment, level: f64) -> Self {
        Self {
            environment,
            scope: Vec::new(),
            level,
            steps: 0,
            in_condition: false,
            in_conjunction: true,
            known_calls: BTreeSet::new(),
            lookups: Vec::new(),
            comparisons: Vec::new(),
            uncertain: 0,
            is_mixed: false,
            sources: Vec::new(),
            open: Vec::new(),
        }
    }

    pub(super) fn evaluate(&mut self, expression: &Expression) -> Evaluated {
        self.charge(1)?;
        let outer = self.in_conjunction;
        self.in_conjunction = outer && keeps_conjunction(expression);
        let value = self.part(expression);
        self.in_conjunction = outer;
        value
    }

    /// Counts work, so that no check takes for ever.
    fn charge(&mut self, steps: usize) -> Result<(), EvaluateError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(EvaluateError::TooLong) } else { Ok(()) }
    }

    /// Counts the work of bringing values together: where one is uncertain, all of them for each resample.
    fn charge_together(&mut self, values: &[&Value]) -> Result<(), EvaluateError> {
        let extents = values.iter().map(|value| value.extent());
        let (count, uncertain) = extents.fold((0, false), |(a, b), (c, d)| (a + c, b || d));
        self.charge(values.iter().map(|value| value.weight()).sum())?;
        self.charge(if uncertain { count * STEPS_OF_UNCERTAINTY } else { 0 })
    }

    fn part(&mut self, expression: &Expression) -> Evaluated {
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Name { name, .. } => self.name(name),
            Expression::List(items) => Ok(Value::List(self.each(items)?)),
            Expression::Call { name, arguments, options, .. } => self.call(name, arguments, options),
            Expression::Index { of, at } => {
                let (of, at) = (self.evaluate(of)?, self.evaluate(at)?);
                index(of, &at)
            }
            Expression::Slice { of, from, to } => {
                let of = self.evaluate(of)?;
                let from = from.as_deref().map(|from| self.evaluate(from)).transpose()?;
                let to = to.as_deref().map(|to| self.evaluate(to)).transpose()?;
                slice(of, from.as_ref(), to.as_ref())
            }
            Expression::Negate(of) => {
                let of = self.evaluate(of)?;
                self.operate(Arithmetic::Subtract, &Value::Number(0.0), &of)
            }
            Expression::Not(of) => Ok(self.evaluate(of)?.truth().not().into()),
            Expression::Arithmetic { operator, left, right } => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                self.operate(*operator, &left, &right)
            }
            Expression::Comparison { text, operands, comparators } => {
                self.comparison(text, operands, comparators)
            }
            Expression::All(parts) => Ok(Truth::all(self.truths(parts)?).into()),
            Expression::Any(parts) => Ok(Truth::any(self.truths(parts)?).into()),
            Expression::Choice { condition, then, otherwise } => match self.condition(condition)? {
                Truth::Is(true) => self.evaluate(then),
                Truth::Is(false) => self.evaluate(otherwise),
                unknown @ Truth::Unknown(_) => Ok(unknown.into()),
            },
            Expression::Comprehension { item, clauses } => self.comprehension(item, clauses),
        }
    }

    fn each(&mut self, expressions: &[Expression]) -> Result<Vec<Value>, EvaluateError> {
        expressions.iter().map(|expression| self.evaluate(expression)).collect()
    }

    fn truths(&mut self, parts: &[Expression]) -> Result<Vec<Truth>, EvaluateError> {
        Ok(self.each(parts)?.iter().map(Value::truth).collect())
    }

    fn operate(&mut self, operator: Arithmetic, left: &Value, right: &Value) -> Evaluated {
        self.charge_together(&[left, right])?;
        arithmetic::operate(operator, left, right)
    }

    fn condition(&mut self, expression: &Expression) -> Result<Truth, EvaluateError> {
        let outer = (self.in_condition, self.in_conjunction);
        (self.in_condition, self.in_conjunction) = (true, false);
        let truth = self.evaluate(expression)?.truth();
        (self.in_condition, self.in_conjunction) = outer;
        Ok(truth)
    }

    /// Evaluates what something else than a conjunction is made of.
    fn aside(&mut self, expression: &Expression) -> Evaluated {
        let outer = core::mem::replace(&mut self.in_conjunction, false);
        let value = self.evaluate(expression);
        self.in_conjunction = outer;
        value
    }

    fn name(&mut self, name: &str) -> Evaluated {
        let bound = self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let value = bound
            .or_else(|| self.environment.name(name).map(Value::settled))
            .or_else(|| (name == "inf").then_some(Value::Number(f64::INFINITY)))
            .ok_or_else(|| EvaluateError::Name(name.to_owned()))?;
        self.charge(value.weight())?;
        Ok(value)
    }

    fn call(&mut self, name: &str, arguments: &[Expression], options: &[(String, Expression)]) -> Evaluated {
        let arguments = self.each(arguments)?;
        let options = options
            .iter()
            .map(|(option, value)| Ok((option.clone(), self.evaluate(value)?)))
            .collect::<Result<Vec<_>, EvaluateError>>()?;
        self.charge_together(&arguments.iter().collect::<Vec<_>>())?;
        if options.is_empty()
            && let Some(result) = builtin::call(name, &arguments, self.level)
        {
            let value = result?;
            self.charge(value.weight())?;
            return Ok(value);
        }
        let value = self.environment.call(name, &arguments, &options).map(Value::settled);
        let value = value.ok_or_else(|| builtin::refusal(name, arguments.len()))?;
        self.charge(value.weight())?;
        let call = written(name, &arguments, &options);
        if self.known_calls.insert(call.clone()) {
            self.lookups.push(Lookup { call, value: value.clone() });
        }
        Ok(value)
    }

    fn comparison(
        &mut self,
        text: &str,
        operands: &[(String, Expression)],
        comparators: &[Comparator],
    ) -> Evaluated {
        let (mut values, before) = (Vec::new(), self.environment.asked());
        for (text, operand) in operands {
            values.push((text.clone(), self.aside(operand)?));
        }
        let asked = before..self.environment.asked();
        self.charge_together(&values.iter().map(|(_, value)| value).collect::<Vec<_>>())?;
        let mut comparing = Comparing::at(self.level);
        let mut truths = Vec::new();
        for (pair, comparator) in values.windows(2).zip(comparators) {
            let [left, right] = [&pair[0], &pair[1]];
            let before = comparing.uncertain;
            truths.push(comparing.compare(*comparator, (&left.0, &left.1), (&right.0, &right.1))?);
            let lists = matches!(left.1, Value::List(_));
            let any = *comparator == Comparator::In || (*comparator == Comparator::NotEqual && lists);
            self.is_mixed |= comparing.uncertain > before && (any || !self.in_conjunction);
        }
        let Comparing { uncertain, measured, is_open, .. } = comparing;
        self.uncertain += uncertain;
        let place = self.place();
        let truth = Truth::all(truths);
        if is_open && truth.known().is_none() {
            self.open.push(asked);
            self.open.extend(self.sources.iter().cloned());
        }
        let truth = match truth {
            Truth::Unknown(reason) => Truth::Unknown(reason + &place),
            known => known,
        };
        if !self.in_condition {
            let holds = truth.known();
            let mean = |(text, value): (String, Value)| match value {
                Value::Sample(sample) => (text, sample.mean_value()),
                value => (text, value),
            };
            let operands = values.into_iter().map(mean).collect();
            let text = text.to_owned();
            self.comparisons.push(Comparison { text, place, operands, measured, holds });
        }
        Ok(truth.into())
    }

    /// Where in its comprehensions the evaluation is.
    fn place(&self) -> String {
        let plain = |(name, value): &(String, Value)| match value {
            Value::Number(_) | Value::Text(_) | Value::Bool(_) => Some(format!("{name} = {value}")),
            _ => None,
        };
        let names: Vec<String> = self.scope.iter().filter_map(plain).collect();
        if names.is_empty() { String::new() } else { format!(" at {}", names.join(", ")) }
    }

    fn comprehension(&mut self, item: &Expression, clauses: &[Clause]) -> Evaluated {
        let mut items = Vec::new();
        match self.iterate(item, clauses, &mut items)? {
            Some(reason) => Ok(Value::Unknown(reason)),
            None => Ok(Value::List(items)),
        }
    }

    /// Adds the items of the remaining clauses; the reason if what they range over is unknown.
    fn iterate(
        &mut self,
        item: &Expression,
        clauses: &[Clause],
        items: &mut Vec<Value>,
    ) -> Result<Option<String>, EvaluateError> {
        let [clause, inner @ ..] = clauses else {
            items.push(self.evaluate(item)?);
            return Ok(None);
        };
        let before = self.environment.asked();
        let source = self.aside(&clause.source)?;
        self.sources.push(before..self.environment.asked());
        let unknown = self.iterate_over(source, clause, item, inner, items);
        self.sources.pop();
        unknown
    }

    fn iterate_over(
        &mut self,
        source: Value,
        clause: &Clause,
        item: &Expression,
        inner: &[Clause],
        items: &mut Vec<Value>,
    ) -> Result<Option<String>, EvaluateError> {
        let source = match source {
            Value::List(source) => source,
            Value::Unknown(reason) => return Ok(Some(reason)),
            other => return Err(mismatch("for ... in", &other)),
        };
        for value in source {
            let bound = self.scope.len();
            self.bind(&clause.targets, value)?;
            let mut conditions = Vec::new();
            for condition in &clause.conditions {
                conditions.push(self.condition(condition)?);
            }
            let unknown = match Truth::all(conditions) {
                Truth::Is(true) => self.iterate(item, inner, items)?,
                Truth::Is(false) => None,
                Truth::Unknown(reason) => Some(reason),
            };
            self.scope.truncate(bound);
            if unknown.is_some() {
                return Ok(unknown);
            }
        }
        Ok(None)
    }

    fn bind(&mut self, targets: &[String], value: Value) -> Result<(), EvaluateError> {
        match (targets, value) {
            ([target], value) => self.scope.push((target.clone(), value)),
            (targets, Value::List(values)) if values.len() == targets.len() => {
                self.scope.extend(targets.iter().cloned().zip(values));
            }
            (targets, other) => return Err(mismatch(&format!("for {} in", targets.join(", ")), &other)),
        }
        Ok(())
    }
}

/// Whether all that is true in an expression has to be true for it to be true.
fn keeps_conjunction(expression: &Expression) -> bool {
    match expression {
        Expression::Call { name, options, .. } => name == "all" && options.is_empty(),
        Expression::All(_)
        | Expression::Comparison { .. }
        | Expression::Choice { .. }
        | Expression::List(_)
        | Expression::Comprehension { .. } => true,
        _ => false,
    }
}

/// A call as one would write it: the name under which a measurement is kept.
#[must_use]
pub fn written(name: &str, arguments: &[Value], options: &[(String, Value)]) -> String {
    let arguments = arguments.iter().map(ToString::to_string);
    let options = options.iter().map(|(option, value)| format!("{option}={value}"));
    format!("{name}({})", arguments.chain(options).collect::<Vec<_>>().join(", "))
}

pub(super) fn mismatch(operation: &str, value: &Value) -> EvaluateError {
    EvaluateError::Type { operation: operation.to_owned(), value: value.to_string() }
}

fn index(of: Value, at: &Value) -> Evaluated {
    match (of, at) {
        (Value::Unknown(reason), _) => Ok(Value::Unknown(reason)),
        (_, Value::Unknown(reason)) => Ok(Value::Unknown(reason.clone())),
        (Value::List(items), at) => {
            let place = usize::try_from(place(at, items.len())?).ok();
            let outside = || mismatch(&format!("an index of {} items", items.len()), at);
            place.and_then(|place| items.get(place)).cloned().ok_or_else(outside)
        }
        (other, _) => Err(mismatch("an index", &other)),
    }
}

fn slice(of: Value, from: Option<&Value>, to: Option<&Value>) -> Evaluated {
    if let Some(unknown) = [from, to].into_iter().flatten().find(|v| matches!(v, Value::Unknown(_))) {
        return Ok(unknown.clone());
    }
    match of {
        Value::List(items) => {
            // A slice takes what there is; only an index has to be inside.
            let bound = |value: Option<&Value>, default| {
                value.map_or(Ok(default), |value| Ok(place(value, items.len())?.clamp(0, items.len() as i64)))
            };
            let (from, to) = (bound(from, 0)?, bound(to, items.len() as i64)?);
            Ok(Value::List(items.get(from as usize..to as usize).unwrap_or_default().to_vec()))
        }
        unknown @ Value::Unknown(_) => Ok(unknown),
        other => Err(mismatch("a slice", &other)),
    }
}

/// A whole number as a place among `len` items; a negative one counts from the end.
fn place(value: &Value, len: usize) -> Result<i64, EvaluateError> {
    let number = value.as_number().filter(|number| number.fract() == 0.0 && number.abs() < 1e9);
    let number = number.ok_or_else(|| mismatch("an index", value))? as i64;
    Ok(if number < 0 { number + len as i64 } else { number })
}
