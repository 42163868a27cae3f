//! Evaluates a check against what was measured.
//!
//! Deviations from Python: there is one kind of number; `and`, `or`, `not`, `all` and `any` answer true, false or
//! unknown (Kleene) and always look at all their parts, so that a report has every measured value; a division by zero
//! is unknown; a tuple is a list.

use super::builtin;
use super::expression::{Arithmetic, Clause, Comparator, Expression};
use super::value::{Truth, Value};

/// What the names and functions of a check mean.
pub trait Environment {
    /// The value of a name; `None` if there is no such name.
    fn name(&self, name: &str) -> Option<Value>;

    /// The value of a function; `None` if there is no such function. What was not measured is [`Value::Unknown`].
    fn call(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value>;
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
    /// The text of each operand and its value.
    pub operands: Vec<(String, Value)>,
    /// Whether it holds; `None` is unknown.
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
    /// An operation on values that it is not made for.
    #[error("{operation} does not go with {value}")]
    Type {
        /// The operation.
        operation: String,
        /// The value.
        value: String,
    },
    /// The check is prose, which only code decides.
    #[error("the check is no expression")]
    Prose,
    /// The check loops over too much.
    #[error("more than {MAX_STEPS} steps")]
    TooLong,
}

/// Parts that one evaluation looks at, at most.
const MAX_STEPS: u32 = 1_000_000;

pub(super) type Evaluated = Result<Value, EvaluateError>;

/// One evaluation of one check.
pub(super) struct Evaluator<'a> {
    environment: &'a dyn Environment,
    /// Names that comprehensions bind, the innermost last.
    scope: Vec<(String, Value)>,
    steps: u32,
    /// Conditions choose what is compared; they are not what is compared.
    in_condition: bool,
    pub(super) lookups: Vec<Lookup>,
    pub(super) comparisons: Vec<Comparison>,
}

impl<'a> Evaluator<'a> {
    pub(super) const fn new(environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            scope: Vec::new(),
            steps: 0,
            in_condition: false,
            lookups: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    pub(super) fn evaluate(&mut self, expression: &Expression) -> Evaluated {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(EvaluateError::TooLong);
        }
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Name(name) => self.name(name),
            Expression::List(items) => Ok(Value::List(self.each(items)?)),
            Expression::Call { name, arguments, options } => self.call(name, arguments, options),
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
                arithmetic(Arithmetic::Subtract, Value::Number(0.0), of)
            }
            Expression::Not(of) => Ok(self.evaluate(of)?.truth().not().into()),
            Expression::Arithmetic { operator, left, right } => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                arithmetic(*operator, left, right)
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

    fn condition(&mut self, expression: &Expression) -> Result<Truth, EvaluateError> {
        let outer = core::mem::replace(&mut self.in_condition, true);
        let truth = self.evaluate(expression)?.truth();
        self.in_condition = outer;
        Ok(truth)
    }

    fn name(&self, name: &str) -> Evaluated {
        let bound = self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        bound
            .or_else(|| self.environment.name(name))
            .or_else(|| (name == "inf").then_some(Value::Number(f64::INFINITY)))
            .ok_or_else(|| EvaluateError::Name(name.to_owned()))
    }

    fn call(&mut self, name: &str, arguments: &[Expression], options: &[(String, Expression)]) -> Evaluated {
        let arguments = self.each(arguments)?;
        let options = options
            .iter()
            .map(|(option, value)| Ok((option.clone(), self.evaluate(value)?)))
            .collect::<Result<Vec<_>, EvaluateError>>()?;
        if options.is_empty()
            && let Some(result) = builtin::call(name, &arguments)
        {
            return result;
        }
        let value = self.environment.call(name, &arguments, &options);
        let value = value.ok_or_else(|| EvaluateError::Function(name.to_owned()))?;
        let lookup = Lookup { call: written(name, &arguments, &options), value: value.clone() };
        if !self.lookups.contains(&lookup) {
            self.lookups.push(lookup);
        }
        Ok(value)
    }

    fn comparison(
        &mut self,
        text: &str,
        operands: &[(String, Expression)],
        comparators: &[Comparator],
    ) -> Evaluated {
        let mut values = Vec::new();
        for (text, operand) in operands {
            values.push((text.clone(), self.evaluate(operand)?));
        }
        let pairs = values.windows(2).zip(comparators);
        let truths = pairs.map(|(pair, comparator)| compare(*comparator, &pair[0].1, &pair[1].1));
        let truth = Truth::all(truths.collect::<Result<Vec<_>, _>>()?);
        if !self.in_condition {
            let holds = truth.known();
            self.comparisons.push(Comparison { text: text.to_owned(), operands: values, holds });
        }
        Ok(truth.into())
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
        let source = match self.evaluate(&clause.source)? {
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

fn arithmetic(operator: Arithmetic, left: Value, right: Value) -> Evaluated {
    let (left, right) = match (left, right) {
        (unknown @ Value::Unknown(_), _) | (_, unknown @ Value::Unknown(_)) => return Ok(unknown),
        pair => pair,
    };
    let number = |value: &Value| value.as_number().ok_or_else(|| mismatch("arithmetic", value));
    let (a, b) = (number(&left)?, number(&right)?);
    if b == 0.0 && matches!(operator, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder) {
        return Ok(Value::Unknown("a division by zero".to_owned()));
    }
    Ok(Value::Number(match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::FloorDivide => (a / b).floor(),
        Arithmetic::Remainder => a - b * (a / b).floor(),
        Arithmetic::Power => libm::pow(a, b),
    }))
}

fn compare(comparator: Comparator, left: &Value, right: &Value) -> Result<Truth, EvaluateError> {
    use core::cmp::Ordering::{Equal, Greater, Less};
    let ordered = |allowed: &[core::cmp::Ordering]| match (left, right) {
        (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Ok(Truth::Unknown(reason.clone())),
        (Value::Text(a), Value::Text(b)) => Ok(Truth::of(allowed.contains(&a.cmp(b)))),
        (a, b) => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => Ok(Truth::of(a.partial_cmp(&b).is_some_and(|is| allowed.contains(&is)))),
            (None, _) => Err(mismatch("an order", a)),
            (_, None) => Err(mismatch("an order", b)),
        },
    };
    match comparator {
        Comparator::Less => ordered(&[Less]),
        Comparator::LessOrEqual => ordered(&[Less, Equal]),
        Comparator::Greater => ordered(&[Greater]),
        Comparator::GreaterOrEqual => ordered(&[Greater, Equal]),
        Comparator::Equal => Ok(equal(left, right)),
        Comparator::NotEqual => Ok(equal(left, right).not()),
        Comparator::In => contains(right, left),
        Comparator::NotIn => Ok(contains(right, left)?.not()),
    }
}

fn equal(left: &Value, right: &Value) -> Truth {
    match (left, right) {
        (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Truth::Unknown(reason.clone()),
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            Truth::all(a.iter().zip(b).map(|(a, b)| equal(a, b)))
        }
        (a, b) => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => Truth::of(a == b),
            _ => Truth::of(a == b),
        },
    }
}

fn contains(list: &Value, item: &Value) -> Result<Truth, EvaluateError> {
    match list {
        Value::List(items) => Ok(Truth::any(items.iter().map(|other| equal(other, item)))),
        Value::Unknown(reason) => Ok(Truth::Unknown(reason.clone())),
        other => Err(mismatch("in", other)),
    }
}

fn index(of: Value, at: &Value) -> Evaluated {
    match (of, at) {
        (Value::Unknown(reason), _) => Ok(Value::Unknown(reason)),
        (_, Value::Unknown(reason)) => Ok(Value::Unknown(reason.clone())),
        (Value::List(items), at) => {
            let place = place(at, items.len())?;
            let outside = || mismatch(&format!("an index of {} items", items.len()), at);
            items.get(place).cloned().ok_or_else(outside)
        }
        (other, _) => Err(mismatch("an index", &other)),
    }
}

fn slice(of: Value, from: Option<&Value>, to: Option<&Value>) -> Evaluated {
    match of {
        Value::List(items) => {
            let bound = |value: Option<&Value>, default| value.map_or(Ok(default), |v| place(v, items.len()));
            let (from, to) = (bound(from, 0)?, bound(to, items.len())?.min(items.len()));
            Ok(Value::List(items.get(from..to).unwrap_or_default().to_vec()))
        }
        unknown @ Value::Unknown(_) => Ok(unknown),
        other => Err(mismatch("a slice", &other)),
    }
}

/// A whole number as a place among `len` items; a negative one counts from the end.
fn place(value: &Value, len: usize) -> Result<usize, EvaluateError> {
    let number = value.as_number().filter(|number| number.fract() == 0.0 && number.abs() < 1e9);
    let number = number.ok_or_else(|| mismatch("an index", value))? as i64;
    let place = if number < 0 { number + len as i64 } else { number };
    usize::try_from(place).map_err(|_| mismatch("an index", value))
}
