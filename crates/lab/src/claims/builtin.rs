//! The functions that every check knows.

use super::evaluator::{EvaluateError, Evaluated, mismatch};
use super::value::{Truth, Value};

/// Items of the longest range.
const LONGEST_RANGE: f64 = 100_000.0;

/// What the function called `name` makes of `arguments`; `None` if it is not one of these.
pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Evaluated> {
    Some(match (name, arguments) {
        ("abs", [value]) => number(value, f64::abs),
        ("len", [list]) => items(name, list, |items| Value::Number(items.len() as f64)),
        ("all", [list]) => items(name, list, |items| Truth::all(items.iter().map(Value::truth)).into()),
        ("any", [list]) => items(name, list, |items| Truth::any(items.iter().map(Value::truth)).into()),
        ("sum", [list]) => numbers(name, list, |numbers| Some(numbers.iter().sum())),
        ("mean", [list]) => {
            numbers(name, list, |n| (!n.is_empty()).then(|| n.iter().sum::<f64>() / n.len() as f64))
        }
        ("min", _) => extreme(name, arguments, f64::min),
        ("max", _) => extreme(name, arguments, f64::max),
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

fn number(value: &Value, function: impl Fn(f64) -> f64) -> Evaluated {
    match (value, value.as_number()) {
        (Value::Unknown(_), _) => Ok(value.clone()),
        (_, Some(number)) => Ok(Value::Number(function(number))),
        (other, None) => Err(mismatch("a function of numbers", other)),
    }
}

fn items(name: &str, list: &Value, function: impl Fn(&[Value]) -> Value) -> Evaluated {
    match list {
        Value::List(items) => Ok(function(items)),
        Value::Unknown(_) => Ok(list.clone()),
        other => Err(mismatch(name, other)),
    }
}

/// What `function` makes of a list of numbers; unknown if one of them is, or if it makes nothing of them.
fn numbers(name: &str, list: &Value, function: impl Fn(&[f64]) -> Option<f64>) -> Evaluated {
    let items = match list {
        Value::List(items) => items,
        Value::Unknown(_) => return Ok(list.clone()),
        other => return Err(mismatch(name, other)),
    };
    if let Some(unknown) = items.iter().find(|item| matches!(item, Value::Unknown(_))) {
        return Ok(unknown.clone());
    }
    let numbers = items.iter().map(|item| item.as_number().ok_or_else(|| mismatch(name, item)));
    let result = function(&numbers.collect::<Result<Vec<_>, EvaluateError>>()?);
    Ok(result.map_or_else(|| Value::Unknown(format!("{name} of nothing")), Value::Number))
}

/// The least or the greatest of a list, or of several arguments.
fn extreme(name: &str, arguments: &[Value], choose: fn(f64, f64) -> f64) -> Evaluated {
    let all = Value::List(arguments.to_vec());
    let list = if let [list @ (Value::List(_) | Value::Unknown(_))] = arguments { list } else { &all };
    numbers(name, list, |numbers| numbers.iter().copied().reduce(choose))
}

fn sorted(list: &Value) -> Evaluated {
    let mut unknown = None;
    let sorted = items("sorted", list, |items| {
        let mut items = items.to_vec();
        items.sort_by(|a, b| match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => a.to_string().cmp(&b.to_string()),
        });
        Value::List(items)
    })?;
    if let Value::List(items) = &sorted {
        unknown = items.iter().find(|item| matches!(item, Value::Unknown(_))).cloned();
    }
    Ok(unknown.unwrap_or(sorted))
}

fn zip(first: &Value, second: &Value) -> Evaluated {
    match (first, second) {
        (Value::List(a), Value::List(b)) => {
            let pair = |(a, b): (&Value, &Value)| Value::List(vec![a.clone(), b.clone()]);
            Ok(a.iter().zip(b).map(pair).collect())
        }
        (unknown @ Value::Unknown(_), _) | (_, unknown @ Value::Unknown(_)) => Ok(unknown.clone()),
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
