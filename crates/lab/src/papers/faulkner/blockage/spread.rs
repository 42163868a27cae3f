//! How much of the throughput's variance goes with the blocked fraction, and how much with the mean blockage.

use super::{FRACTIONS, durations, values};
use crate::papers::faulkner::setting::Scheme;
use crate::reproduce::{Criterion, Ruling, Samples};
use crate::statistics::{Spread, TwoWay, crossing, mean, standard_deviation};

/// Every value of a scheme, by fraction, mean blockage and seed; none if a cell did not run.
fn split(samples: &Samples, scheme: Scheme) -> Option<TwoWay> {
    let durations = durations(samples.effort());
    let row = |&f: &f64| durations.iter().map(|&d| values(samples, scheme, f, d, "T")).collect();
    let rows = FRACTIONS.iter().map(row);
    TwoWay::of(&rows.collect::<Vec<Vec<_>>>())
}

/// The means of a scheme at a fraction, one a mean blockage.
fn means(samples: &Samples, scheme: Scheme, f: f64) -> Vec<f64> {
    let durations = durations(samples.effort()).iter();
    durations.filter_map(|&d| mean(&values(samples, scheme, f, d, "T"))).collect()
}

pub(super) fn dominates_under_arq(samples: &Samples) -> Ruling {
    let split = split(samples, Scheme::TcpLl);
    let mut criteria = vec![
        Criterion::at_least("share of variance with f", split.map(|split| split.share_a()), 0.9),
        Criterion::at_most("share of variance with d", split.map(|split| split.share_b()), 0.05),
    ];
    for f in FRACTIONS {
        let all = durations(samples.effort()).len();
        let means = Spread::of(means(samples, Scheme::TcpLl, f)).filter(|means| means.n == all);
        let range = means.map(|means| (means.max - means.min) / means.mean);
        criteria.push(Criterion::at_most(format!("(max - min over d) / mean at f = {f}"), range, 0.2));
    }
    Ruling::all(criteria)
}

pub(super) fn dominates_without(samples: &Samples) -> Ruling {
    let shares = split(samples, Scheme::Tcp).map(|split| (split.share_a(), split.share_b()));
    let [tcp, ll] = [Scheme::Tcp, Scheme::TcpLl];
    let halves = half(samples, tcp).zip(half(samples, ll));
    let scatters = scatter(samples, tcp).zip(scatter(samples, ll));
    Ruling::all(vec![
        Criterion::new(
            "share of variance with f",
            "above that with d",
            shares.map(|(f, _)| f),
            shares.map(|(f, d)| f > d),
        ),
        Criterion::told("share of variance with d", shares.map(|(_, d)| d)),
        Criterion::new(
            "f at which TCP has half its throughput",
            "below half of TCP-LL's",
            halves.map(|(tcp, _)| tcp),
            halves.map(|(tcp, ll)| tcp < ll / 2.0),
        ),
        Criterion::told("f at which TCP-LL has half its throughput", halves.map(|(_, ll)| ll)),
        Criterion::new(
            "median coefficient of variation of TCP",
            "above TCP-LL's",
            scatters.map(|(tcp, _)| tcp),
            scatters.map(|(tcp, ll)| tcp > ll),
        ),
        Criterion::told("median coefficient of variation of TCP-LL", scatters.map(|(_, ll)| ll)),
    ])
}

/// The fraction at which a scheme's mean over all mean blockages falls to half of that without blockage.
fn half(samples: &Samples, scheme: Scheme) -> Option<f64> {
    let point = |&f: &f64| Some((f, mean(&means(samples, scheme, f))?));
    let curve: Vec<(f64, f64)> = FRACTIONS.iter().filter_map(point).collect();
    crossing(&curve, curve.first()?.1 / 2.0)
}

/// The median over the cells of the standard deviation over the mean; cells where nothing arrives have none, nor has what is
/// not random for want of blockages.
fn scatter(samples: &Samples, scheme: Scheme) -> Option<f64> {
    let mut all = Vec::new();
    for f in FRACTIONS.into_iter().filter(|&f| f > 0.0) {
        for &d in durations(samples.effort()) {
            let values = values(samples, scheme, f, d, "T");
            let mean = mean(&values).unwrap_or(0.0);
            all.extend(standard_deviation(&values).filter(|_| mean > 0.0).map(|deviation| deviation / mean));
        }
    }
    Spread::of(all).map(|spread| spread.median)
}
