//! The greatest, the least, or any other of several uncertain numbers in their order.
//!
//! The one that came out greatest is not the greatest one: with ten that are equal its point is 1.5 standard errors too high. So what
//! comes of it carries an alternative for each that may be in its place, and its interval covers them (`estimate`).

use core::cmp::Ordering;

use super::arithmetic::{Term, plainly};
use super::value::Value;

/// The term with `rank` smaller ones, and each of the others that may be it.
pub(super) fn ranked(terms: &[Term], rank: usize) -> Value {
    let mut order: Vec<usize> = (0..terms.len()).collect();
    order.sort_by(|&a, &b| terms[a].point().total_cmp(&terms[b].point()));
    let Some(&chosen) = order.get(rank) else { return Value::Unknown("the list is empty".to_owned()) };
    let at_rank = plainly(terms, |numbers| {
        let mut numbers = numbers.to_vec();
        numbers.sort_by(f64::total_cmp);
        Ok(numbers[rank])
    });
    let mut value = match at_rank {
        Value::Estimate(estimate) => estimate,
        other => return other,
    };
    let difference = |a: usize, b: usize| {
        let pair = [terms[a].clone(), terms[b].clone()];
        // What is infinite with both is as great.
        plainly(&pair, |numbers| Ok(if numbers[0] == numbers[1] { 0.0 } else { numbers[0] - numbers[1] }))
    };
    let mut all = Vec::with_capacity(terms.len());
    for (place, &other) in order.iter().enumerate() {
        let shortfall = match place.cmp(&rank) {
            Ordering::Less => difference(chosen, other),
            Ordering::Equal => Value::Number(0.0),
            Ordering::Greater => difference(other, chosen),
        };
        let shortfall = match shortfall {
            Value::Number(exact) if exact > 0.0 => continue,
            Value::Estimate(estimate) => Some(estimate),
            _ => None,
        };
        for mut alternative in terms[other].alternatives(value.replicates.len()) {
            alternative.shortfalls.extend(shortfall.clone());
            all.push(alternative);
        }
    }
    if all.len() > 1 {
        value.alternatives = Some(all.into());
    }
    Value::Estimate(value)
}
