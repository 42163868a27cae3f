//! The functions that every check knows. In a function of a list each sample counts as its mean.

mod curves;
mod lists;
mod reductions;

use super::arithmetic::{Outcome, map, zip};
use super::evaluator::{EvaluateError, Evaluated, mismatch};
use super::value::Value;

/// Every function, with the fewest and the most arguments that it takes.
const FUNCTIONS: [(&str, usize, usize); 37] = [
    ("abs", 1, 1),
    ("all", 1, 1),
    ("any", 1, 1),
    ("argmax", 2, 2),
    ("argmin", 2, 2),
    ("count", 1, 1),
    ("crossing", 3, 3),
    ("exp", 1, 1),
    ("floor", 1, 1),
    ("fraction_above", 2, 2),
    ("hi", 1, 1),
    ("interpolate", 3, 3),
    ("isfinite", 1, 1),
    ("len", 1, 1),
    ("lo", 1, 1),
    ("log", 1, 1),
    ("log10", 1, 1),
    ("max", 1, usize::MAX),
    ("mean", 1, 1),
    ("median", 1, 1),
    ("min", 1, usize::MAX),
    ("pairs", 1, 1),
    ("part", 3, 3),
    ("peak", 2, 2),
    ("point", 1, 1),
    ("quantile", 2, 2),
    ("r_squared", 2, 2),
    ("range", 1, 2),
    ("round", 1, 2),
    ("sd", 1, 1),
    ("slope", 2, 2),
    ("sorted", 1, 1),
    ("spearman", 2, 2),
    ("sqrt", 1, 1),
    ("sum", 1, 1),
    ("variance_share", 2, 2),
    ("zip", 2, 2),
];

/// Whether the language has a function of this name.
pub(super) fn is_known(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, ..)| *known == name)
}

/// Why a call is none, where nobody defines it: an unknown function, or a wrong number of arguments.
pub(super) fn refusal(name: &str, given: usize) -> EvaluateError {
    let Some((_, fewest, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
        return EvaluateError::Function(name.to_owned());
    };
    let takes = match (fewest, most) {
        (fewest, &usize::MAX) => format!("at least {fewest}"),
        (fewest, most) if fewest == most => format!("{fewest}"),
        (fewest, most) => format!("{fewest} to {most}"),
    };
    let plural = if takes == "1" || takes == "at least 1" { "" } else { "s" };
    EvaluateError::Arguments(format!("{name} takes {takes} argument{plural}, not {given}"))
}

/// Whether the function called `name` takes this many arguments.
pub(super) fn takes(name: &str, given: usize) -> bool {
    let takes =
        |(known, fewest, most): &(&str, usize, usize)| *known == name && (*fewest..=*most).contains(&given);
    FUNCTIONS.iter().any(takes)
}

/// What the function called `name` makes of `arguments`, with intervals at a confidence `level`; `None` if there is no such
/// function of so many arguments.
pub(super) fn call(name: &str, arguments: &[Value], level: f64) -> Option<Evaluated> {
    if !takes(name, arguments.len()) {
        return None;
    }
    lists::call(name, arguments)
        .or_else(|| reductions::call(name, arguments, level))
        .or_else(|| curves::call(name, arguments))
        .or_else(|| of_number(name, arguments))
}

/// Functions of a number; of a sample seed by seed.
fn of_number(name: &str, arguments: &[Value]) -> Option<Evaluated> {
    Some(match (name, arguments) {
        ("abs", [value]) => map(name, value, |x| Ok(x.abs())),
        ("log", [value]) => map(name, value, |x| logarithm(x, libm::log)),
        ("log10", [value]) => map(name, value, |x| logarithm(x, libm::log10)),
        ("exp", [value]) => map(name, value, |x| Ok(libm::exp(x))),
        ("sqrt", [value]) => {
            map(name, value, |x| if x < 0.0 { Err("the root of a number below 0") } else { Ok(x.sqrt()) })
        }
        ("floor", [value]) => map(name, value, |x| Ok(x.floor())),
        ("round", [value]) => map(name, value, |x| Ok(x.round_ties_even())),
        ("round", [value, digits]) => match digits {
            Value::Unknown(_) => Ok(digits.clone()),
            Value::Number(n) if n.fract() == 0.0 && n.abs() <= MOST_DIGITS => {
                zip(name, value, digits, |x, digits| Ok(rounded(x, digits as i32)))
            }
            other => Err(mismatch("round", other)),
        },
        _ => return None,
    })
}

fn logarithm(x: f64, function: fn(f64) -> f64) -> Outcome {
    if x > 0.0 { Ok(function(x)) } else { Err("the logarithm of a number that is not above 0") }
}

/// Rounded to decimal digits as in Python: the exact binary value decides, and of two equally near the even one.
fn rounded(x: f64, digits: i32) -> f64 {
    if !x.is_finite() {
        return x;
    }
    if digits < 0 {
        let unit = libm::pow(10.0, f64::from(-digits));
        return (x / unit).round_ties_even() * unit;
    }
    format!("{x:.*}", digits as usize).parse().unwrap_or(x)
}

/// Decimal digits that `round` takes; a double has 17.
const MOST_DIGITS: f64 = 17.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_pythons() {
        assert_eq!([rounded(2.675, 2), rounded(0.125, 2), rounded(0.375, 2)], [2.67, 0.12, 0.38]);
        assert_eq!(
            [rounded(1250.0, -2), rounded(-0.5, 0), rounded(f64::INFINITY, 1)],
            [1200.0, 0.0, f64::INFINITY]
        );
    }

    /// A function in the table that nothing computes would be taken for one that nobody defines.
    #[test]
    fn every_function_of_the_table_is_there() {
        for (name, fewest, most) in FUNCTIONS {
            for given in [fewest, most.min(4)] {
                let arguments = vec![Value::Unknown("planted".to_owned()); given];
                assert!(call(name, &arguments, 0.95).is_some(), "{name} of {given}");
                let more = vec![Value::None; most.saturating_add(1).min(9)];
                assert!(most == usize::MAX || call(name, &more, 0.95).is_none(), "{name} of too many");
            }
        }
    }
}
