//! Figure 4-1: throughput over the bit error rate, where it begins to fall, and how far apart TCP and TCP-LL do so.

use base::config::ConfigError;

use super::super::drawing::Curves;
use super::super::setting::{Channel, Scheme, measure_throughput, scenario};
use super::positive;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::statistics::{Bootstrap, Interval, crossing};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    // Figure 4-2 has the predictions beside what is measured here.
    figures: &["4-1", "4-2"],
    claims: &["faulkner-bsc-order-of-magnitude", "faulkner-bsc-knees", "faulkner-bsc-prediction"],
    cases,
    measure: measure_throughput,
};

const NAME: &str = "bit-errors";
const SCHEMES: [Scheme; 2] = [Scheme::Tcp, Scheme::TcpLl];
/// Paired realisations a point.
const SEEDS: u32 = 25;
/// Points a decade, from 1e-8 to 1e-3.
const A_DECADE: i32 = 4;

/// The sweep's decimal logarithms of the bit error rate, every quarter of a decade.
fn logarithms() -> impl Iterator<Item = f64> {
    (-8 * A_DECADE..=-3 * A_DECADE).map(|quarter| f64::from(quarter) / f64::from(A_DECADE))
}

fn rate(logarithm: f64) -> f64 {
    libm::pow(10.0, logarithm)
}

fn name(scheme: Scheme, logarithm: Option<f64>) -> String {
    let ber = logarithm.map_or_else(|| "0".to_owned(), |logarithm| format!("{:.3e}", rate(logarithm)));
    format!("{} c={ber}", scheme.name())
}

/// The whole sweep, or every other point of it. A channel without errors is the same for every seed, so one is enough.
fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let (step, seconds, seeds) = effort.choose((2, 100.0, 3), (1, 300.0, SEEDS));
    let mut cases = Vec::new();
    for scheme in SCHEMES {
        let clear = scenario(scheme, &Channel::Clear, seconds, &[])?;
        cases.push(Case::new(name(scheme, None), clear, 1));
        for logarithm in logarithms().step_by(step) {
            let scenario = scenario(scheme, &Channel::BitErrors(rate(logarithm)), seconds, &[])?;
            cases.push(Case::new(name(scheme, Some(logarithm)), scenario, seeds));
        }
    }
    Ok(cases)
}

/// What one realisation carried at every point of the sweep, of both schemes in the order of [`SCHEMES`].
type Realisation = [Vec<f64>; 2];

/// The curves of all realisations, and over which points they go.
struct Sweep {
    logarithms: Vec<f64>,
    realisations: Vec<Realisation>,
    /// Throughput without errors, of both schemes.
    clear: [f64; 2],
}

impl Sweep {
    /// Those points of the sweep that ran; none if nothing did.
    fn of(samples: &Samples) -> Option<Self> {
        let at = |scheme, logarithm| samples.values(NAME, &name(scheme, Some(logarithm)), "T");
        let logarithms: Vec<f64> = logarithms()
            .filter(|&logarithm| SCHEMES.iter().all(|&scheme| !at(scheme, logarithm).is_empty()))
            .collect();
        let points =
            SCHEMES.map(|scheme| logarithms.iter().map(|&place| at(scheme, place)).collect::<Vec<_>>());
        let seeds = points.iter().flatten().map(Vec::len).min()?;
        let realisation =
            |k: usize| [0, 1].map(|scheme: usize| points[scheme].iter().map(|values| values[k]).collect());
        let clear = |scheme| samples.mean(NAME, &name(scheme, None), "T");
        let clear = [clear(SCHEMES[0])?, clear(SCHEMES[1])?];
        Some(Self { realisations: (0..seeds).map(realisation).collect(), logarithms, clear })
    }

    /// The decimal logarithm of the bit error rate at which the mean of some realisations falls to a share of what a clear
    /// channel carries, by linear interpolation over that logarithm; not a number if it never does.
    fn falls(&self, realisations: &[&Realisation], scheme: usize, share: f64) -> f64 {
        let mean = |place: usize| {
            let sum: f64 = realisations.iter().map(|curves| curves[scheme][place]).sum();
            sum / realisations.len() as f64
        };
        let curve: Vec<(f64, f64)> =
            self.logarithms.iter().enumerate().map(|(place, &at)| (at, mean(place))).collect();
        crossing(&curve, share * self.clear[scheme]).unwrap_or(f64::NAN)
    }

    /// A statistic with its bootstrap interval over realisations; none where it, or that of a resample, does not exist.
    fn interval(&self, statistic: impl Fn(&[&Realisation]) -> f64) -> Option<Interval> {
        let mut bootstrap = Bootstrap::named(FIRST_SEED, NAME).with_resamples(RESAMPLES);
        let interval = bootstrap.interval(&self.realisations, 0.95, statistic)?;
        [interval.mean, interval.low, interval.high].iter().all(|end| end.is_finite()).then_some(interval)
    }

    /// The bit error rate at which a scheme falls to a share.
    fn knee(&self, scheme: usize, share: f64) -> Option<Interval> {
        self.interval(|realisations| rate(self.falls(realisations, scheme, share)))
    }

    /// How much further TCP-LL's fall to a share is than TCP's.
    fn ratio(&self, share: f64) -> Option<Interval> {
        self.interval(|realisations| {
            rate(self.falls(realisations, 1, share) - self.falls(realisations, 0, share))
        })
    }
}

/// Resamples of a curve's bootstrap.
const RESAMPLES: usize = 1000;

pub(super) fn order_of_magnitude(samples: &Samples) -> Ruling {
    let sweep = Sweep::of(samples);
    let ratio = sweep.as_ref().and_then(|sweep| sweep.ratio(0.9));
    let mut criteria = vec![Criterion::within("BER of T = 0.9 T(c = 0), TCP-LL over TCP", ratio, 5.0, 50.0)];
    for logarithm in [-6.0, -5.0, -4.0] {
        let pair = [Scheme::TcpLl, Scheme::Tcp].map(|scheme| name(scheme, Some(logarithm)));
        let lead = samples.difference(NAME, pair.each_ref().map(String::as_str), "T");
        criteria.push(positive(format!("T(TCP-LL) - T(TCP) at 1e{logarithm}"), lead));
    }
    let pair = [Scheme::TcpLl, Scheme::Tcp].map(|scheme| name(scheme, Some(-7.0)));
    let ratio = samples.ratio(NAME, pair.each_ref().map(String::as_str), "T");
    criteria.push(Criterion::at_least("T(TCP-LL) / T(TCP) at 1e-7", ratio, 0.97));
    Ruling::all(criteria)
}

/// Where each falls below 0.95 of what it carries without errors, and the other levels.
pub(super) fn knees(samples: &Samples) -> Ruling {
    let sweep = Sweep::of(samples);
    let mut criteria = Vec::new();
    for (scheme, (label, printed)) in [("TCP", 1e-7), ("TCP-LL", 1e-6)].into_iter().enumerate() {
        let knee = |share| sweep.as_ref().and_then(|sweep| sweep.knee(scheme, share));
        let what = |share: f64| format!("BER of T({label}) = {share} T(c = 0)");
        criteria.push(Criterion::within(what(0.95), knee(0.95), printed / 3.0, printed * 3.0));
        for share in [0.99, 0.9, 0.5] {
            criteria.push(Criterion::told(what(share), knee(share)));
        }
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in SCHEMES {
        for logarithm in logarithms() {
            let values = samples.values(NAME, &name(scheme, Some(logarithm)), "T");
            if values.is_empty() {
                continue;
            }
            let channel = Channel::BitErrors(rate(logarithm));
            let row = [("scheme", scheme.name().to_owned()), ("c", format!("{:.3e}", rate(logarithm)))];
            cells.push(Cell { bound: Some(channel.capacity()), ..Cell::of_mean("figure 4-1", &row, values) });
        }
    }
    cells
}

/// Measured throughput over the bit error rate, with intervals.
pub(in crate::papers::faulkner) fn measured(samples: &Samples, scheme: Scheme) -> Vec<(f64, Interval)> {
    logarithms()
        .filter_map(|at| Some((rate(at), samples.interval(NAME, &name(scheme, Some(at)), "T")?)))
        .collect()
}

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let capacity = logarithms().map(rate).map(|ber| (ber, Channel::BitErrors(ber).capacity()));
    let svg = Curves::new("bit error rate", "normalised throughput")
        .log_x()
        .measured("TCP", 0, &measured(samples, Scheme::Tcp))
        .measured("TCP-LL", 1, &measured(samples, Scheme::TcpLl))
        .calculated("capacity", capacity.collect())
        .svg();
    let seeds = samples.runs(NAME, &name(Scheme::Tcp, Some(-8.0))).len();
    let seconds = samples.effort().choose(100, 300);
    vec![Figure {
        name: "figure-4-1".to_owned(),
        title: "Figure 4-1: throughput over bit error rate".to_owned(),
        caption: format!(
            "Means of {seeds} paired realisations of {seconds} s (seeds from {FIRST_SEED}), with 95 % intervals, beside \
             the capacity of the binary symmetric channel."
        ),
        svg,
    }]
}
