//! Compares two values by the interval of their difference.
//!
//! Exact values compare exactly. Where one is uncertain, the interval of the difference decides: with all of it on one side
//! of zero the answer is known, otherwise it is not. The difference of two samples is taken seed by seed, that of two
//! estimates replicate by replicate, so a comparison is always paired. A difference that is exactly zero with ten
//! seeds or more, and with every one, counts as zero, so that `drops == 0` can hold.

use core::cmp::Ordering::{self, Equal, Greater, Less};

use super::arithmetic::{self, Term};
use super::estimate::{Estimate, told};
use super::evaluator::{EvaluateError, mismatch};
use super::expression::Comparator;
use super::short;
use super::value::{Truth, Value};

/// An uncertain quantity that a comparison rests on: an operand, or the difference of two.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// As written in the check.
    pub text: String,
    /// The estimate itself.
    pub point: f64,
    /// Its interval at the level of the comparison; none of one seed, for example.
    pub interval: Option<(f64, f64)>,
    /// Seeds.
    pub n: usize,
}

/// Compares at one confidence level, and notes what that rests on.
#[derive(Debug)]
pub(super) struct Comparing {
    level: f64,
    /// Comparisons of uncertain values.
    pub(super) uncertain: usize,
    pub(super) measured: Vec<Measured>,
    /// Whether more seeds may tell what these did not.
    pub(super) is_open: bool,
}

/// An operand: its text and its value.
pub(super) type Operand<'a> = (&'a str, &'a Value);

impl Comparing {
    pub(super) const fn at(level: f64) -> Self {
        Self { level, uncertain: 0, measured: Vec::new(), is_open: false }
    }

    /// Whether `left` stands to `right` as `comparator` says.
    pub(super) fn compare(
        &mut self,
        comparator: Comparator,
        left: Operand<'_>,
        right: Operand<'_>,
    ) -> Result<Truth, EvaluateError> {
        match comparator {
            Comparator::Less => self.ordered(left, right, &[Less]),
            Comparator::LessOrEqual => self.ordered(left, right, &[Less, Equal]),
            Comparator::Greater => self.ordered(left, right, &[Greater]),
            Comparator::GreaterOrEqual => self.ordered(left, right, &[Greater, Equal]),
            Comparator::Equal => self.equal(left, right),
            Comparator::NotEqual => Ok(self.equal(left, right)?.not()),
            Comparator::In => self.contains(right.1, left),
            Comparator::NotIn => Ok(self.contains(right.1, left)?.not()),
        }
    }

    fn ordered(
        &mut self,
        left: Operand<'_>,
        right: Operand<'_>,
        allowed: &[Ordering],
    ) -> Result<Truth, EvaluateError> {
        match (left.1, right.1) {
            (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Ok(Truth::Unknown(reason.clone())),
            (Value::Text(a), Value::Text(b)) => Ok(Truth::of(allowed.contains(&a.cmp(b)))),
            (a, b) if a.is_uncertain() || b.is_uncertain() => self.uncertain(left, right, allowed),
            (a, b) => match (a.as_number(), b.as_number()) {
                (Some(a), Some(b)) => Ok(exactly(a, b, allowed)),
                (None, _) => Err(mismatch("an order", a)),
                (_, None) => Err(mismatch("an order", b)),
            },
        }
    }

    fn equal(&mut self, left: Operand<'_>, right: Operand<'_>) -> Result<Truth, EvaluateError> {
        let is_number = |value: &Value| value.is_uncertain() || value.as_number().is_some();
        Ok(match (left.1, right.1) {
            (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Truth::Unknown(reason.clone()),
            (Value::List(a), Value::List(b)) if a.len() == b.len() => {
                let items = a.iter().zip(b).map(|(a, b)| self.equal((left.0, a), (right.0, b)));
                Truth::all(items.collect::<Result<Vec<_>, _>>()?)
            }
            (a, b) if (a.is_uncertain() || b.is_uncertain()) && is_number(a) && is_number(b) => {
                self.uncertain(left, right, &[Equal])?
            }
            (a, b) => match (a.as_number(), b.as_number()) {
                (Some(a), Some(b)) => Truth::of(a == b),
                _ => Truth::of(a == b),
            },
        })
    }

    fn contains(&mut self, list: &Value, item: Operand<'_>) -> Result<Truth, EvaluateError> {
        match list {
            Value::List(items) => {
                let each = items.iter().map(|other| self.equal(item, (&other.to_string(), other)));
                Ok(Truth::any(each.collect::<Result<Vec<_>, _>>()?))
            }
            Value::Unknown(reason) => Ok(Truth::Unknown(reason.clone())),
            other => Err(mismatch("in", other)),
        }
    }

    /// Compares two numbers of which at least one is uncertain.
    fn uncertain(
        &mut self,
        left: Operand<'_>,
        right: Operand<'_>,
        allowed: &[Ordering],
    ) -> Result<Truth, EvaluateError> {
        self.uncertain += 1;
        let (a, b) = match (arithmetic::term("an order", left.1)?, arithmetic::term("an order", right.1)?) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(reason), _) | (_, Err(reason)) => return Ok(Truth::Unknown(reason)),
        };
        let (text, shown, threshold) = match (&a, &b) {
            (Term::Uncertain(a), Term::Exact(b)) => (left.0.to_owned(), a.clone(), *b),
            (Term::Exact(a), Term::Uncertain(b)) => (right.0.to_owned(), b.clone(), *a),
            _ => {
                let text = format!("{} - {}", left.0, bracketed(right.0));
                match difference(left.1, right.1, &a, &b)? {
                    Ok(difference) => (text, difference, 0.0),
                    Err(reason) => return Ok(Truth::Unknown(reason)),
                }
            }
        };
        self.note(&text, &shown, shown.spread(self.level));
        if shown.is_all(threshold) {
            return Ok(Truth::of(allowed.contains(&Equal)));
        }
        let interval = shown.interval(self.level);
        let (low, high) = match interval {
            Ok(interval) => interval,
            Err(reason) => {
                self.is_open |= shown.needs_seeds();
                return Ok(Truth::Unknown(format!("{text}: {reason}")));
            }
        };
        // Seen from an uncertain right operand, less is more.
        let mirrored = matches!(a, Term::Exact(_));
        let allows = |order: Ordering| allowed.contains(&if mirrored { order.reverse() } else { order });
        let known = decide(low, high, threshold, allows);
        self.is_open |= known.is_none();
        Ok(known.map_or_else(
            || {
                let measured = told(shown.point, Some((low, high)));
                let may = if allowed == [Equal] { "may or may not be" } else { "may be below or above" };
                Truth::Unknown(format!("{text} = {measured} {may} {}", short(threshold)))
            },
            Truth::of,
        ))
    }

    fn note(&mut self, text: &str, shown: &Estimate, interval: Option<(f64, f64)>) {
        // The middle of a chain of comparisons is compared twice.
        if !self.measured.iter().any(|measured| measured.text == text) {
            let Estimate { point, n, .. } = *shown;
            self.measured.push(Measured { text: text.to_owned(), point, interval, n });
        }
    }
}

/// Whether a value in `low..=high` stands to the threshold as is allowed; none if it depends on where it is.
fn decide(low: f64, high: f64, threshold: f64, allows: impl Fn(Ordering) -> bool) -> Option<bool> {
    if low == threshold && high == threshold {
        return Some(allows(Equal));
    }
    // One end may touch the threshold: a value that is exactly there has no chance, but an answer has to cover it.
    if high < threshold || (high == threshold && allows(Equal) == allows(Less)) {
        return Some(allows(Less));
    }
    if low > threshold || (low == threshold && allows(Equal) == allows(Greater)) {
        return Some(allows(Greater));
    }
    None
}

/// The estimate of a difference, paired as closely as the two allow; the reason if there is none.
fn difference(
    left: &Value,
    right: &Value,
    a: &Term,
    b: &Term,
) -> Result<Result<Estimate, String>, EvaluateError> {
    let infinite = |term: &Term| match term {
        Term::Uncertain(estimate) => {
            Some(estimate.point).filter(|point| point.is_infinite() && estimate.is_constant())
        }
        Term::Exact(_) => None,
    };
    // Infinity less infinity is not a number, but the two are equal.
    if let (Some(a), Some(b)) = (infinite(a), infinite(b))
        && a == b
    {
        let n = left.seeds().min(right.seeds());
        return Ok(Ok(Estimate::of(0.0, [0.0].into(), n)));
    }
    let difference = arithmetic::zip("an order", left, right, |a, b| Ok(a - b))?;
    Ok(match arithmetic::term("an order", &difference)? {
        Ok(Term::Uncertain(estimate)) => Ok(estimate),
        Ok(Term::Exact(_)) => unreachable!("one of the two is uncertain"),
        Err(reason) => Err(reason),
    })
}

fn exactly(a: f64, b: f64, allowed: &[Ordering]) -> Truth {
    Truth::of(a.partial_cmp(&b).is_some_and(|is| allowed.contains(&is)))
}

/// A sum or difference in brackets, so that it can be taken away.
fn bracketed(text: &str) -> String {
    if text.contains([' ', '+', '-']) { format!("({text})") } else { text.to_owned() }
}
