//! Sections 4.1.2 and 4.2.1, figures 4-4, 4-8 and 4-9: throughput over blocked fraction and mean blockage.

use std::io;

use base::config::ConfigError;

use super::Topic;
use super::drawing::Curves;
use super::setting::{Channel, Scheme, scenario, throughput};
use crate::claims::Measurements;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::Interval;

pub(super) const TOPIC: Topic = Topic { experiments: &EXPERIMENTS, rule, remark: |_| None, cells, figures };

const EXPERIMENTS: [Experiment; 1] = [Experiment {
    name: NAME,
    figures: &["4-4", "4-8", "4-9"],
    claims: &["faulkner-tcp-stalls-beyond-40-percent", "faulkner-tcp-ll-degrades-gracefully"],
    cases,
    measure,
}];

const NAME: &str = "blockage";
/// Blocked fractions of figure 4-4.
const FRACTIONS: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Mean blockages in seconds: section 4.1.2 has them from 0.2 to 5.
const DURATIONS: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 5.0];
/// Runs a point (figure 4-4).
const SEEDS: u32 = 25;

fn durations(effort: Effort) -> &'static [f64] {
    effort.choose(&DURATIONS[2..3], &DURATIONS)
}

fn name(scheme: Scheme, f: f64, d: f64) -> String {
    format!("{} f={f} d={d}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for scheme in [Scheme::Tcp, Scheme::TcpLl] {
        for f in FRACTIONS {
            for &d in durations(effort) {
                let channel = Channel::Blockage { f, d };
                let scenario = scenario(scheme, &channel, channel.steady(300.0, effort), &[])?;
                cases.push(Case::new(name(scheme, f, d), scenario, effort.choose(3, SEEDS)));
            }
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    Ok(measured)
}

/// Throughput at a blocked fraction, pooled over the mean blockages.
fn pooled(samples: &Samples, scheme: Scheme, f: f64) -> Option<Interval> {
    let at = |&d: &f64| samples.values(NAME, &name(scheme, f, d), "T");
    Interval::of(DURATIONS.iter().flat_map(at), 0.95)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-tcp-stalls-beyond-40-percent" => Some(stalls(samples)),
        "faulkner-tcp-ll-degrades-gracefully" => Some(degrades_gracefully(samples)),
        _ => None,
    }
}

fn stalls(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for f in FRACTIONS.into_iter().filter(|&f| f >= 0.5) {
        criteria.push(Criterion::at_most(
            format!("T(TCP) at f = {f}"),
            pooled(samples, Scheme::Tcp, f),
            0.02,
        ));
    }
    let below = FRACTIONS.into_iter().find(|&f| {
        pooled(samples, Scheme::Tcp, f).is_some_and(|throughput| throughput.mean / (1.0 - f) < 0.1)
    });
    criteria.push(Criterion::told("first f with T(TCP) / C below 0.1", below));
    Ruling::all(criteria)
}

fn degrades_gracefully(samples: &Samples) -> Ruling {
    let means: Vec<Option<f64>> =
        FRACTIONS.iter().map(|&f| pooled(samples, Scheme::TcpLl, f).map(|interval| interval.mean)).collect();
    let steps: Option<Vec<f64>> = means.windows(2).map(|pair| Some(pair[0]? - pair[1]?)).collect();
    let smallest = steps.as_ref().map(|steps| steps.iter().copied().fold(f64::INFINITY, f64::min));
    let largest =
        steps.as_ref().and_then(|steps| Some(steps.iter().copied().fold(0.0, f64::max) / means[0]?));
    let mut criteria = vec![
        Criterion::new("least loss over a step of f", "above 0", smallest, smallest.map(|step| step > 0.0)),
        Criterion::at_most("greatest loss over a step of f, of T(0)", largest, 0.25),
    ];
    for (f, mean) in FRACTIONS.into_iter().zip(means).filter(|(f, _)| *f <= 0.7) {
        let share = mean.map(|mean| mean / (1.0 - f));
        criteria.push(Criterion::at_least(format!("T(TCP-LL) / C at f = {f}"), share, 0.3));
    }
    Ruling::all(criteria)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in [Scheme::Tcp, Scheme::TcpLl] {
        for f in FRACTIONS {
            for d in DURATIONS {
                let row =
                    [("scheme", scheme.name().to_owned()), ("f", f.to_string()), ("d", format!("{d} s"))];
                let values = samples.values(NAME, &name(scheme, f, d), "T");
                cells.push(Cell { bound: Some(1.0 - f), ..Cell::of_mean("figure 4-4", &row, values) });
            }
        }
    }
    cells
}

fn figures(samples: &Samples) -> io::Result<Vec<Figure>> {
    if !samples.has(NAME) {
        return Ok(Vec::new());
    }
    let curve = |scheme| -> Vec<(f64, Interval)> {
        FRACTIONS.into_iter().filter_map(|f| Some((f, pooled(samples, scheme, f)?))).collect()
    };
    let svg = Curves::new("blocked fraction f", "normalised throughput")
        .measured("TCP", 0, &curve(Scheme::Tcp))
        .measured("TCP-LL", 1, &curve(Scheme::TcpLl))
        .calculated("capacity", FRACTIONS.iter().map(|&f| (f, 1.0 - f)).collect())
        .svg();
    Ok(vec![Figure {
        name: "figure-4-4".to_owned(),
        title: "Figure 4-4: throughput over blocked fraction".to_owned(),
        caption: "Means over d from 0.2 to 5 s, with 95 % intervals, beside the channel's capacity 1 - f."
            .to_owned(),
        svg,
    }])
}
