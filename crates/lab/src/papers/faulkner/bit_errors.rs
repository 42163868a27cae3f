//! Section 4.1.1, figures 4-1 and 4-3: the binary symmetric channel.

pub(super) mod curve;
mod limit;
mod trace;

use super::Topic;
use crate::report::Figure;
use crate::reproduce::{Criterion, Experiment, Ruling, Samples};
use crate::statistics::Interval;

pub(super) const TOPIC: Topic =
    Topic { experiments: &EXPERIMENTS, rule, remark, cells: curve::cells, figures };

const EXPERIMENTS: [Experiment; 3] = [curve::EXPERIMENT, limit::EXPERIMENT, trace::EXPERIMENT];

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-bsc-order-of-magnitude" => Some(curve::order_of_magnitude(samples)),
        "faulkner-bsc-knees" => Some(curve::knees(samples)),
        "faulkner-bsc-is-limit-f-to-zero" => Some(limit::rule(samples)),
        "faulkner-bsc-trace" => Some(trace::rule(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    match claim {
        "faulkner-bsc-knees" => Some(
            "Where a knee lies depends on what one calls so: at 0.99 of the throughput without errors, which is told, both lie within \
             the factor of 3, at 0.95 neither does.",
        ),
        "faulkner-bsc-trace" => Some(
            "Only in 4 of 25 realisations does TCP time out at all. In three of them every first sending comes before its copy; \
             in the other one the queue before the link, which slow start probably overruns, had dropped them. The channel \
             costs no segment.",
        ),
        _ => None,
    }
}

fn figures(samples: &Samples) -> Vec<Figure> {
    let mut figures = curve::figures(samples);
    figures.extend(trace::figures(samples));
    figures
}

/// `what` has to be above zero; an interval that holds zero cannot tell.
fn positive(what: impl Into<String>, difference: Option<Interval>) -> Criterion {
    let holds = difference.and_then(|interval| match (interval.is_above(0.0), interval.is_below(0.0)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    });
    Criterion::new(what, "above 0", difference, holds)
}
