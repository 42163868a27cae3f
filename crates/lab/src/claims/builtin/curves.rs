//! What is read off curves: lists of places and of heights, of equal length.

use crate::claims::arithmetic::{self, Outcome, Term, combine};
use crate::claims::evaluator::{Evaluated, mismatch};
use crate::claims::value::Value;
use crate::statistics::{self, LinearFit, TwoWay};

pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Evaluated> {
    Some(match (name, arguments) {
        ("spearman", [xs, ys]) => curve(name, xs, ys, |points| {
            let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
            statistics::spearman(&xs, &ys).ok_or("a rank correlation of what does not vary")
        }),
        ("slope", [xs, ys]) => curve(name, xs, ys, |points| Ok(fit(points)?.slope)),
        ("r_squared", [xs, ys]) => curve(name, xs, ys, |points| Ok(fit(points)?.r_squared)),
        ("argmax", [xs, ys]) => curve(name, xs, ys, |points| statistics::argmax(points).ok_or(NO_POINTS)),
        ("argmin", [xs, ys]) => curve(name, xs, ys, |points| {
            let turned: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, -y)).collect();
            statistics::argmax(&turned).ok_or(NO_POINTS)
        }),
        ("peak", [xs, ys]) => curve(name, xs, ys, |points| {
            ascending(points)?;
            if points.iter().any(|(x, _)| *x <= 0.0) {
                return Err("a peak is looked for at places above 0");
            }
            statistics::smoothed_argmax(points).ok_or(NO_POINTS)
        }),
        ("crossing", [_, _, Value::Unknown(_)]) => Ok(arguments[2].clone()),
        ("crossing", [xs, ys, level]) => match level.as_number() {
            Some(level) => curve(name, xs, ys, |points| {
                ascending(points)?;
                statistics::crossing(points, level).ok_or("the line never reaches the level")
            }),
            None => Err(mismatch("the level of crossing", level)),
        },
        ("interpolate", [xs, ys, at]) => interpolate(xs, ys, at),
        ("variance_share", [table, factor]) => variance_share(table, factor),
        _ => return None,
    })
}

/// The height of the line between the points at a place, which may be uncertain; beyond its ends that of the end.
fn interpolate(xs: &Value, ys: &Value, at: &Value) -> Evaluated {
    const NAME: &str = "interpolate";
    let at = match arithmetic::term(NAME, at)? {
        Ok(at) => at,
        Err(reason) => return Ok(Value::Unknown(reason)),
    };
    curve_with(NAME, xs, ys, Some(at), |points, at| {
        ascending(points)?;
        statistics::interpolate(points, at.unwrap_or_default()).ok_or(NO_POINTS)
    })
}

/// What `function` makes of the points of a curve.
fn curve(name: &str, xs: &Value, ys: &Value, function: impl Fn(&[(f64, f64)]) -> Outcome) -> Evaluated {
    curve_with(name, xs, ys, None, |points, _| function(points))
}

/// What `function` makes of the points of a curve, and of the number `more` if there is one. Unknown if there are not
/// as many places as heights.
fn curve_with(
    name: &str,
    xs: &Value,
    ys: &Value,
    more: Option<Term>,
    function: impl Fn(&[(f64, f64)], Option<f64>) -> Outcome,
) -> Evaluated {
    let (xs, ys) = match (super::lists::list_terms(name, xs)?, super::lists::list_terms(name, ys)?) {
        (Ok(xs), Ok(ys)) => (xs, ys),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Value::Unknown(reason)),
    };
    if xs.len() != ys.len() {
        return Ok(Value::Unknown(format!("{name}: {} places and {} heights", xs.len(), ys.len())));
    }
    let len = xs.len();
    let terms: Vec<_> = xs.into_iter().chain(ys).chain(more).collect();
    Ok(combine(&terms, |numbers| {
        let points = numbers[..len].iter().copied().zip(numbers[len..2 * len].iter().copied());
        function(&points.collect::<Vec<_>>(), numbers.get(2 * len).copied())
    }))
}

fn fit(points: &[(f64, f64)]) -> Result<LinearFit, &'static str> {
    LinearFit::of(points).ok_or("a line through fewer than two places")
}

fn ascending(points: &[(f64, f64)]) -> Result<(), &'static str> {
    let ascend = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if ascend { Ok(()) } else { Err("the places of a curve have to ascend") }
}

/// The share of a table's variance that goes with its rows (factor 0) or its columns (factor 1). Samples in the cells are
/// replicates, so that what varies with the seed counts in the whole; a table of numbers has one value in each cell.
fn variance_share(table: &Value, factor: &Value) -> Evaluated {
    const NAME: &str = "variance_share";
    let by_rows = match factor.as_number() {
        Some(0.0) => true,
        Some(1.0) => false,
        _ => return Err(mismatch("the second argument of variance_share, 0 or 1,", factor)),
    };
    let rows = match table {
        Value::List(rows) => rows,
        Value::Unknown(_) => return Ok(table.clone()),
        other => return Err(mismatch(NAME, other)),
    };
    let mut cells: Vec<&[Value]> = Vec::new();
    for row in rows {
        match row {
            Value::List(row) => cells.push(row),
            Value::Unknown(_) => return Ok(row.clone()),
            other => return Err(mismatch(NAME, other)),
        }
    }
    let share = move |split: Option<TwoWay>| {
        let split =
            split.ok_or("a variance share needs two rows and two columns, and as many cells in each row")?;
        Ok(if by_rows { split.share_a() } else { split.share_b() })
    };
    if cells.iter().any(|row| row.iter().any(|cell| !matches!(cell, Value::Sample(_)))) {
        let width = cells.first().map_or(1, |row| row.len().max(1));
        if cells.iter().any(|row| row.len() != width) {
            return Ok(
                share(None).map_or_else(|reason: &str| Value::Unknown(reason.to_owned()), Value::Number)
            );
        }
        let all = Value::List(cells.concat());
        return super::lists::numbers(NAME, &all, |numbers| {
            share(TwoWay::without_replication(
                &numbers.chunks(width).map(<[f64]>::to_vec).collect::<Vec<_>>(),
            ))
        });
    }
    Ok(super::reductions::of_table(&cells, |cells| share(TwoWay::of(cells))))
}

const NO_POINTS: &str = "a curve without points";
