//! Operations on numbers, carried to samples seed by seed and to estimates replicate by replicate.
//!
//! Deviations from Python: there is one kind of number, a binary double; what Python raises an error for, such as a
//! division by zero, and what is not a number, such as `inf - inf`, is unknown; a result that is too large is infinite.

use super::estimate::{Alternative, Estimate};
use super::evaluator::{Evaluated, mismatch};
use super::expression::Arithmetic;
use super::value::Value;

/// A number, or why there is none.
pub(super) type Outcome = Result<f64, &'static str>;

/// One number of a list, in which a sample counts as its mean.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Exact(f64),
    Uncertain(Estimate),
}

impl Term {
    pub(super) fn point(&self) -> f64 {
        match self {
            Self::Exact(number) => *number,
            Self::Uncertain(estimate) => estimate.point,
        }
    }

    fn replicate(&self, place: usize) -> f64 {
        match self {
            Self::Exact(number) => *number,
            Self::Uncertain(estimate) => estimate.replicates[place],
        }
    }

    pub(super) const fn n(&self) -> Option<usize> {
        match self {
            Self::Exact(_) => None,
            Self::Uncertain(estimate) => Some(estimate.n),
        }
    }

    const fn agrees(&self) -> bool {
        matches!(self, Self::Exact(_) | Self::Uncertain(Estimate { agrees: true, .. }))
    }

    const fn is_chosen(&self) -> bool {
        matches!(self, Self::Uncertain(Estimate { alternatives: Some(_), .. }))
    }

    /// What it may be, with so many replicates of a plain number.
    pub(super) fn alternatives(&self, replicates: usize) -> Vec<Alternative> {
        let alone = |value| vec![Alternative { value, shortfalls: Vec::new() }];
        match self {
            Self::Uncertain(Estimate { alternatives: Some(them), .. }) => them.to_vec(),
            Self::Uncertain(estimate) => alone(estimate.clone()),
            Self::Exact(number) => {
                alone(Estimate::of(*number, core::iter::repeat_n(*number, replicates).collect(), usize::MAX))
            }
        }
    }
}

/// What one value counts as: a number, or the reason why it is unknown.
pub(super) type Counted = Result<Term, String>;

/// The number that `value` counts as in `operation`.
///
/// # Errors
/// It is none.
pub(super) fn term(operation: &str, value: &Value) -> Result<Counted, super::EvaluateError> {
    Ok(match value {
        Value::Unknown(reason) => Err(reason.clone()),
        Value::Estimate(estimate) => Ok(Term::Uncertain(estimate.clone())),
        Value::Sample(sample) => sample.mean().map(Term::Uncertain),
        other => Ok(Term::Exact(other.as_number().ok_or_else(|| mismatch(operation, other))?)),
    })
}

/// The numbers that `values` count as, or the reason why one of them is unknown.
pub(super) fn terms(
    operation: &str,
    values: &[Value],
) -> Result<Result<Vec<Term>, String>, super::EvaluateError> {
    let mut terms = Vec::with_capacity(values.len());
    for value in values {
        match term(operation, value)? {
            Ok(term) => terms.push(term),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(terms))
}

/// What `function` makes of the points; the replicates are what it makes of each replicate of the terms. The result is a
/// plain number if all terms are. Where a term depends on which of several is the greatest, so does the result.
pub(super) fn combine(terms: &[Term], function: impl Fn(&[f64]) -> Outcome) -> Value {
    let choices: Vec<(usize, Vec<Alternative>)> = terms
        .iter()
        .enumerate()
        .filter(|(_, term)| term.is_chosen())
        .map(|(place, term)| (place, term.alternatives(0)))
        .collect();
    let mut value = match plainly(terms, &function) {
        Value::Estimate(estimate) if !choices.is_empty() => estimate,
        value => return value,
    };
    let ways: usize = choices.iter().map(|(_, them)| them.len()).product();
    if ways > MOST_WAYS {
        return Value::Unknown(format!("{ways} ways to choose what is the greatest are too many"));
    }
    let mut all = Vec::with_capacity(ways);
    for way in 0..ways {
        let (mut terms, mut shortfalls, mut rest) = (terms.to_vec(), Vec::new(), way);
        for (place, them) in &choices {
            let chosen = &them[rest % them.len()];
            rest /= them.len();
            terms[*place] = Term::Uncertain(chosen.value.clone());
            shortfalls.extend(chosen.shortfalls.iter().cloned());
        }
        match plainly(&terms, &function) {
            Value::Estimate(value) => all.push(Alternative { value, shortfalls }),
            other => return other,
        }
    }
    value.alternatives = Some(all.into());
    Value::Estimate(value)
}

/// Alternatives of one value at most.
const MOST_WAYS: usize = 1024;

/// What `function` makes of the points, and of each replicate of the terms, without regard to their alternatives. The
/// result is a plain number if all terms are.
pub(super) fn plainly(terms: &[Term], function: impl Fn(&[f64]) -> Outcome) -> Value {
    let mut numbers: Vec<f64> = terms.iter().map(Term::point).collect();
    let point = match function(&numbers).and_then(is_number) {
        Ok(point) => point,
        Err(reason) => return Value::Unknown(reason.to_owned()),
    };
    let Some(n) = terms.iter().filter_map(Term::n).min() else { return Value::Number(point) };
    let replicate = |place| {
        numbers.iter_mut().zip(terms).for_each(|(number, term)| *number = term.replicate(place));
        function(&numbers).unwrap_or(f64::NAN)
    };
    let replicates = (0..replicates_of(terms)).map(replicate).collect();
    let agrees = terms.iter().all(Term::agrees);
    Value::Estimate(Estimate::of(point, replicates, n).agreeing(agrees))
}

/// All estimates have as many replicates; of ones that somebody else made, the fewest count.
pub(super) fn replicates_of(terms: &[Term]) -> usize {
    let counts = terms.iter().filter_map(|term| match term {
        Term::Exact(_) => None,
        Term::Uncertain(estimate) => Some(estimate.replicates.len()),
    });
    counts.min().unwrap_or(0)
}

/// A function of one number.
pub(super) fn map(name: &str, value: &Value, function: impl Fn(f64) -> Outcome) -> Evaluated {
    let function = |number| function(number).and_then(is_number);
    if let Value::Sample(sample) = value {
        return Ok(sample.map(function));
    }
    Ok(match term(name, value)? {
        Ok(term) => combine(&[term], |numbers| function(numbers[0])),
        Err(reason) => Value::Unknown(reason),
    })
}

/// A function of two numbers.
pub(super) fn zip(
    name: &str,
    left: &Value,
    right: &Value,
    function: impl Fn(f64, f64) -> Outcome,
) -> Evaluated {
    let function = |a, b| function(a, b).and_then(is_number);
    Ok(match (left, right) {
        (Value::Unknown(_), _) => left.clone(),
        (_, Value::Unknown(_)) => right.clone(),
        (Value::Sample(a), Value::Sample(b)) => a.zip(b, function),
        (Value::Sample(a), b) if b.as_number().is_some() => {
            let b = b.as_number().unwrap_or_default();
            a.map(|a| function(a, b))
        }
        (a, Value::Sample(b)) if a.as_number().is_some() => {
            let a = a.as_number().unwrap_or_default();
            b.map(|b| function(a, b))
        }
        _ => match (term(name, left)?, term(name, right)?) {
            (Ok(a), Ok(b)) => combine(&[a, b], |numbers| function(numbers[0], numbers[1])),
            (Err(reason), _) | (_, Err(reason)) => Value::Unknown(reason),
        },
    })
}

/// An operator of the language.
pub(super) fn operate(operator: Arithmetic, left: &Value, right: &Value) -> Evaluated {
    zip("arithmetic", left, right, |a, b| match operator {
        Arithmetic::Add => Ok(a + b),
        Arithmetic::Subtract => Ok(a - b),
        Arithmetic::Multiply => Ok(a * b),
        Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder if b == 0.0 => Err(BY_ZERO),
        Arithmetic::Divide => Ok(a / b),
        Arithmetic::FloorDivide => Ok(divide(a, b).0),
        Arithmetic::Remainder => Ok(divide(a, b).1),
        Arithmetic::Power if a == 0.0 && b < 0.0 => Err(BY_ZERO),
        Arithmetic::Power => Ok(libm::pow(a, b)),
    })
}

/// The quotient rounded down and the remainder, which has the divisor's sign. The exact remainder comes first, as in
/// Python's reference implementation, so that 1 // 0.1 is 9.
fn divide(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder != 0.0 {
        if (b < 0.0) != (remainder < 0.0) {
            remainder += b;
            quotient -= 1.0;
        }
    } else {
        remainder = 0.0_f64.copysign(b);
    }
    let whole = quotient.floor();
    (if quotient - whole > 0.5 { whole + 1.0 } else { whole }, remainder)
}

/// What is not a number is no result.
pub(super) fn is_number(value: f64) -> Outcome {
    if value.is_nan() { Err("the result is not a number") } else { Ok(value) }
}

const BY_ZERO: &str = "a division by zero";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::sample::Sample;

    #[test]
    fn division_is_pythons() {
        assert_eq!(divide(1.0, 0.1).0, 9.0);
        assert_eq!(divide(-7.0, 2.0), (-4.0, 1.0));
        assert_eq!(divide(7.0, -2.0), (-4.0, -1.0));
        assert_eq!(divide(-5.0, f64::INFINITY), (-1.0, f64::INFINITY));
    }

    #[test]
    fn samples_meet_seed_by_seed() {
        let of = |values: &[f64]| Value::Sample(Sample::of(values.iter().copied().map(Some)));
        let ratio = operate(Arithmetic::Divide, &of(&[2.0, 6.0, 9.0]), &of(&[1.0, 2.0])).unwrap();
        assert_eq!(ratio, of(&[2.0, 3.0]));
        let some = operate(Arithmetic::Divide, &of(&[2.0, 6.0]), &of(&[0.0, 2.0])).unwrap();
        assert!(matches!(&some, Value::Sample(sample) if sample.values() == [None, Some(3.0)]));
        let none = operate(Arithmetic::Divide, &Value::Number(1.0), &of(&[0.0, 0.0, 2.0])).unwrap();
        assert_eq!(none, Value::Unknown("a division by zero (1 of 3 seeds have a value)".to_owned()));
        let infinite = Value::Number(f64::INFINITY);
        let nothing = operate(Arithmetic::Subtract, &infinite, &infinite).unwrap();
        assert_eq!(nothing, Value::Unknown("the result is not a number".to_owned()));
    }

    #[test]
    fn estimates_meet_replicate_by_replicate() {
        let sample = Sample::of([1.0, 2.0, 4.0].map(Some));
        let estimate = Value::Estimate(sample.mean().unwrap());
        let zero = operate(Arithmetic::Subtract, &estimate, &Value::Sample(sample)).unwrap();
        let Value::Estimate(zero) = zero else { panic!("an estimate") };
        assert!(zero.point == 0.0 && zero.is_constant());
    }
}
