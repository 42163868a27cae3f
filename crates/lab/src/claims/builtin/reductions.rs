//! What a sample is reduced to, and what an estimate is without its uncertainty. A plain number is a sample without spread.

use crate::claims::arithmetic::{self, Outcome, Term, combine, is_number};
use crate::claims::evaluator::{Evaluated, mismatch};
use crate::claims::sample::{Sample, deviation, quantile_of};
use crate::claims::value::{Truth, Value};

pub(super) fn call(name: &str, arguments: &[Value], level: f64) -> Option<Evaluated> {
    Some(match (name, arguments) {
        ("mean", [value]) => arithmetic::map("mean", &mean(value), Ok),
        ("median", [value]) => reduce(name, value, |values| quantile_of(values, 0.5)),
        ("quantile", [value, q]) => match q {
            Value::Unknown(_) => Ok(q.clone()),
            Value::Number(q) if (0.0..=1.0).contains(q) => {
                reduce(name, value, |values| quantile_of(values, *q))
            }
            other => Err(mismatch("the second argument of quantile, 0 to 1,", other)),
        },
        ("sd", [value]) => reduce(name, value, deviation),
        ("count", [value]) => count(value),
        ("fraction_above", [value, level]) => match (level, level.as_number()) {
            (Value::Unknown(_), _) => Ok(level.clone()),
            (_, Some(level)) => reduce(name, value, |values| {
                values.iter().filter(|value| **value > level).count() as f64 / values.len() as f64
            }),
            (other, None) => Err(mismatch("the second argument of fraction_above", other)),
        },
        ("part", [value, number, of]) => part(value, number, of),
        ("lo", [value]) => end(name, value, level, |(low, _)| low),
        ("hi", [value]) => end(name, value, level, |(_, high)| high),
        ("point", [value]) => settle(name, value, |term| Ok(Value::Number(term.point()))),
        ("isfinite", [value]) => settle(name, value, |term| Ok(is_finite(term))),
        _ => return None,
    })
}

fn mean(value: &Value) -> Value {
    if let Value::Sample(sample) = value { sample.mean_value() } else { value.clone() }
}

/// A statistic of a sample's values, of a list, or of one number.
fn reduce(name: &str, value: &Value, statistic: impl Fn(&[f64]) -> f64) -> Evaluated {
    match value {
        Value::Sample(sample) => Ok(estimate(sample, statistic)),
        Value::List(_) => super::lists::numbers(name, value, |numbers| {
            if numbers.is_empty() { Err("the list is empty") } else { Ok(statistic(numbers)) }
        }),
        Value::Estimate(_) => Err(mismatch(name, value)),
        number => arithmetic::map(name, number, |number| Ok(statistic(&[number]))),
    }
}

fn estimate(sample: &Sample, statistic: impl Fn(&[f64]) -> f64) -> Value {
    match sample.estimate(statistic) {
        Ok(estimate) if is_number(estimate.point).is_err() => {
            Value::Unknown("the result is not a number".to_owned())
        }
        Ok(estimate) => Value::Estimate(estimate),
        Err(reason) => Value::Unknown(reason),
    }
}

/// How many seeds have a value; a plain number counts as one.
fn count(value: &Value) -> Evaluated {
    match value {
        Value::Sample(sample) => Ok(Value::Number(sample.count() as f64)),
        Value::Unknown(_) => Ok(value.clone()),
        Value::Number(_) => Ok(Value::Number(1.0)),
        other => Err(mismatch("count", other)),
    }
}

/// Of `of` parts of the seeds, as equal as can be, the one with this number from 0; a plain number is all of its parts.
fn part(value: &Value, number: &Value, of: &Value) -> Evaluated {
    let whole = |value: &Value| value.as_number().filter(|n| n.fract() == 0.0 && (0.0..=1e6).contains(n));
    let (number, of) = match (number, of) {
        (unknown @ Value::Unknown(_), _) | (_, unknown @ Value::Unknown(_)) => return Ok(unknown.clone()),
        (number, of) => match (whole(number), whole(of)) {
            (Some(k), Some(n)) if k < n => (k as usize, n as usize),
            _ => return Err(mismatch("the number of a part, below that of all,", number)),
        },
    };
    match value {
        Value::Sample(sample) if !sample.is_exact() => Ok(sample.part(number, of)),
        Value::Sample(_) | Value::Number(_) | Value::Unknown(_) => Ok(value.clone()),
        other => Err(mismatch("part", other)),
    }
}

/// One end of the interval in force, as a plain number: that of an exact number is itself.
fn end(name: &str, value: &Value, level: f64, choose: fn((f64, f64)) -> f64) -> Evaluated {
    settle(name, value, |term| match term {
        Term::Exact(number) => Ok(Value::Number(*number)),
        Term::Uncertain(estimate) => estimate.interval(level).map(|interval| Value::Number(choose(interval))),
    })
}

fn settle(name: &str, value: &Value, choose: impl Fn(&Term) -> Result<Value, String>) -> Evaluated {
    let term = arithmetic::term(name, value)?;
    Ok(term.and_then(|term| choose(&term)).unwrap_or_else(Value::Unknown))
}

/// Whether a number is finite with all of the seeds, or with none of them.
fn is_finite(term: &Term) -> Value {
    let finite =
        combine(core::slice::from_ref(term), |numbers| Ok(f64::from(u8::from(numbers[0].is_finite()))));
    match finite {
        Value::Estimate(estimate) if estimate.is_constant() => Truth::of(estimate.point == 1.0).into(),
        Value::Estimate(_) => Value::Unknown("it is infinite with some of the seeds".to_owned()),
        exact => Truth::of(exact.as_number() == Some(1.0)).into(),
    }
}

/// A statistic of a table of samples, over the seeds that have a value in every cell.
pub(super) fn of_table(rows: &[&[Value]], statistic: impl Fn(&[Vec<Vec<f64>>]) -> Outcome) -> Value {
    let sample = |cell: &Value| match cell {
        Value::Sample(sample) => Some(sample.clone()),
        _ => None,
    };
    let rows: Vec<Vec<Sample>> = rows.iter().map(|row| row.iter().filter_map(sample).collect()).collect();
    let cells = || rows.iter().flatten();
    let seeds = cells().map(|cell| cell.values().len()).min().unwrap_or(0);
    let has = |cell: &Sample, seed: usize| cell.values()[seed].is_some();
    // Each seed stands for its own number, so that a resample of seeds is one of this sample.
    let whole = |seed: usize| cells().all(|cell| has(cell, seed)).then_some(seed as f64);
    let lacking =
        cells().find(|cell| cell.count() < cell.values().len()).map_or("not measured", Sample::reason);
    let common = Sample::of((0..seeds).map(whole)).because(lacking);
    let at = |drawn: &[f64]| {
        let cell = |cell: &Sample| drawn.iter().filter_map(|&seed| cell.values()[seed as usize]).collect();
        let table: Vec<Vec<Vec<f64>>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        statistic(&table)
    };
    let known: Vec<f64> = common.values().iter().flatten().copied().collect();
    match at(&known) {
        Err(reason) if common.lacking().is_none() => Value::Unknown(reason.to_owned()),
        _ => estimate(&common, |drawn| at(drawn).unwrap_or(f64::NAN)),
    }
}
