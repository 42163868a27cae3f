//! Functions that take or make lists.

use crate::claims::arithmetic::{Outcome, Term, combine, terms};
use crate::claims::evaluator::{EvaluateError, Evaluated, mismatch};
use crate::claims::ranked::ranked;
use crate::claims::sample::quantile_of;
use crate::claims::value::{Truth, Value};

/// Items of the longest range.
const LONGEST_RANGE: f64 = 100_000.0;

pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Evaluated> {
    Some(match (name, arguments) {
        ("len", [list]) => items(name, list, |items| Value::Number(items.len() as f64)),
        ("all", [list]) => items(name, list, |items| Truth::all(items.iter().map(Value::truth)).into()),
        ("any", [list]) => items(name, list, |items| Truth::any(items.iter().map(Value::truth)).into()),
        ("sum", [list]) => numbers(name, list, |numbers| Ok(numbers.iter().sum())),
        ("mean", [list @ Value::List(_)]) => numbers(name, list, mean),
        ("median", [list @ Value::List(_)]) => numbers(name, list, |n| some(n, |n| quantile_of(n, 0.5))),
        ("min", _) => extreme(name, arguments, false),
        ("max", _) => extreme(name, arguments, true),
        ("sorted", [list]) => sorted(list),
        ("pairs", [list]) => {
            items(name, list, |items| items.windows(2).map(|pair| Value::List(pair.to_vec())).collect())
        }
        ("zip", [first, second]) => zip(first, second),
        ("range", [end]) => range(&Value::Number(0.0), end),
        ("range", [start, end]) => range(start, end),
        _ => return None,
    })
}

fn mean(numbers: &[f64]) -> Outcome {
    some(numbers, |numbers| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn some(numbers: &[f64], function: impl Fn(&[f64]) -> f64) -> Outcome {
    if numbers.is_empty() { Err("the list is empty") } else { Ok(function(numbers)) }
}

fn items(name: &str, list: &Value, function: impl Fn(&[Value]) -> Value) -> Evaluated {
    match list {
        Value::List(items) => Ok(function(items)),
        Value::Unknown(_) => Ok(list.clone()),
        other => Err(mismatch(name, other)),
    }
}

/// What `function` makes of a list of numbers; unknown if one of them is, or if it makes nothing of them.
pub(super) fn numbers(name: &str, list: &Value, function: impl Fn(&[f64]) -> Outcome) -> Evaluated {
    Ok(match list_terms(name, list)? {
        Ok(terms) => combine(&terms, function),
        Err(reason) => Value::Unknown(reason),
    })
}

/// The numbers of a list, or the reason why one of them is unknown.
pub(super) fn list_terms(name: &str, list: &Value) -> Result<Result<Vec<Term>, String>, EvaluateError> {
    match list {
        Value::List(items) => terms(name, items),
        Value::Unknown(reason) => Ok(Err(reason.clone())),
        other => Err(mismatch(name, other)),
    }
}

/// The least or the greatest of a list, or of several arguments.
fn extreme(name: &str, arguments: &[Value], is_greatest: bool) -> Evaluated {
    let all = Value::List(arguments.to_vec());
    let list = if let [list] = arguments { list } else { &all };
    Ok(match list_terms(name, list)? {
        Ok(terms) => ranked(&terms, if is_greatest { terms.len().saturating_sub(1) } else { 0 }),
        Err(reason) => Value::Unknown(reason),
    })
}

/// In ascending order; of uncertain numbers the estimates of the least, the second and so on.
fn sorted(list: &Value) -> Evaluated {
    let Value::List(items) = list else { return items("sorted", list, |_| Value::None) };
    if let Some(unknown) = items.iter().find(|item| matches!(item, Value::Unknown(_))) {
        return Ok(unknown.clone());
    }
    if items.iter().any(Value::is_uncertain) {
        return Ok(match terms("sorted", items)? {
            Ok(terms) => Value::List((0..terms.len()).map(|rank| ranked(&terms, rank)).collect()),
            Err(reason) => Value::Unknown(reason),
        });
    }
    let mut items = items.clone();
    items.sort_by(|a, b| match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.to_string().cmp(&b.to_string()),
    });
    Ok(Value::List(items))
}

fn zip(first: &Value, second: &Value) -> Evaluated {
    match (first, second) {
        (Value::List(a), Value::List(b)) => {
            let pair = |(a, b): (&Value, &Value)| Value::List(vec![a.clone(), b.clone()]);
            Ok(Value::List(a.iter().zip(b).map(pair).collect()))
        }
        (Value::Unknown(_), _) => Ok(first.clone()),
        (_, Value::Unknown(_)) => Ok(second.clone()),
        (Value::List(_), other) | (other, _) => Err(mismatch("zip", other)),
    }
}

fn range(start: &Value, end: &Value) -> Evaluated {
    let (start, end) = match (start, end) {
        (unknown @ Value::Unknown(_), _) | (_, unknown @ Value::Unknown(_)) => return Ok(unknown.clone()),
        (start, end) => (start, end),
    };
    let whole = |value: &Value| {
        value.as_number().filter(|n| n.fract() == 0.0 && n.abs() <= LONGEST_RANGE).map(|n| n as i64)
    };
    match (whole(start), whole(end)) {
        (Some(start), Some(end)) => Ok((start..end).map(|n| n as f64).collect()),
        (None, _) => Err(mismatch("range", start)),
        (_, None) => Err(mismatch("range", end)),
    }
}
