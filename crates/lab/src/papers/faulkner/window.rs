//! Section 4.3.1, figures 4-15 and 4-16: the link's window.
//!
//! Seconds of window are nominal, as the thesis's are: frames times a full frame's bits over the line's rate. A packet of
//! 1500 bytes takes three full frames and one of 48 bytes, so that 66 frames hold 0.77 s of line time.
//!
//! The claims ask for every combination of four factors at four blocked fractions. What runs is one factor at a time at two
//! fractions, and less realisations ([`FACTOR_SEEDS`]) of that and of the further fractions.

mod rulings;
pub(super) mod sweep;

use base::config::ConfigError;

use self::sweep::{Setting, curve, optimum, rows};
use super::Topic;
use super::drawing::Curves;
use super::setting::{FRAME_BITS, RATE, Scheme, measure_throughput, scenario};
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Effort, Experiment, Samples};

pub(super) const TOPIC: Topic =
    Topic { experiments: &EXPERIMENTS, rule: rulings::rule, remark: rulings::remark, cells, figures };

const EXPERIMENTS: [Experiment; 2] = [
    Experiment {
        name: SWEEP,
        figures: &["4-15", "4-16"],
        claims: &[
            "faulkner-window-optimum",
            "faulkner-window-two-seconds",
            "faulkner-window-optimum-independent-of-d",
            "faulkner-window-optimum-independent-of-latency",
            "faulkner-duration-matters-at-middle-windows",
            "faulkner-baseline-can-be-tuned",
        ],
        cases: sweep_cases,
        measure: measure_throughput,
    },
    Experiment {
        name: FACTORS,
        figures: &["4-15"],
        claims: &["faulkner-window-two-seconds", "faulkner-window-optimum-independent-of-latency"],
        cases: factor_cases,
        measure: measure_throughput,
    },
];

/// The baseline at both fractions and durations of the figures.
const SWEEP: &str = "window";
/// The same with something changed.
const FACTORS: &str = "window-factors";
/// Frames of window, geometric within a third, to COTMLL's most.
pub(super) const WINDOWS: [u32; 12] = [8, 16, 24, 32, 40, 53, 66, 92, 132, 200, 330, 512];
/// The nominal 4 s, which the claim about middle windows asks for, beside the sweep.
const FOUR_SECONDS: u32 = 264;
/// Blocked fractions of figures 4-15 and 4-16.
const FRACTIONS: [f64; 2] = [0.3, 0.7];
/// The best windows that section 4.3.1 reads off figures 4-15 and 4-16, in seconds.
const BEST: [f64; 2] = [1.4, 0.6];
/// Mean blockages of figures 4-15 and 4-16 in seconds.
const DURATIONS: [f64; 2] = [0.6, 1.0];
/// Further fractions, for the two seconds.
const FURTHER_FRACTIONS: [f64; 2] = [0.1, 0.5];
/// Realisations a point (the claims ask for 25).
const SEEDS: u32 = 25;
/// Realisations a point for the further fractions and factors.
const FACTOR_SEEDS: u32 = 10;
/// A run's least seconds: the baseline's.
const LEAST: f64 = 300.0;

/// What is changed from the baseline, and the key that does it. The first is the other latency of section 4.3.1.
const CHANGES: [(&str, &str); 5] = [
    ("one-way delay 500 ms", "link.satellite.channel.delay=500 ms"),
    ("receive window 64 KiB", "tcp.window.receive-buffer=64 KiB"),
    ("initial RTO 1 s", "tcp.rto.initial=1 s"),
    ("minimum RTO 1 s", "tcp.rto.min=1 s"),
    ("IP queue of 10 packets", "link.satellite.queue={ drop-tail = { packets = 10 } }"),
];
/// Its place among the changes.
const LATENCY: usize = 0;

/// Nominal seconds of a window.
pub(super) fn seconds(window: u32) -> f64 {
    f64::from(window) * FRAME_BITS / RATE
}

fn case(setting: &Setting, window: u32, seconds: f64, seeds: u32) -> Result<Case, ConfigError> {
    let mut more = vec![Scheme::TcpLl.protocol(window)];
    more.extend(setting.change.map(|change| CHANGES[change].1.to_owned()));
    let scenario = scenario(Scheme::TcpLl, &setting.channel(), seconds, &more)?;
    Ok(Case::new(setting.case(window), scenario, seeds))
}

fn sweep_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for f in FRACTIONS {
        for d in DURATIONS {
            let setting = Setting::baseline(f, d);
            let length = setting.channel().steady(LEAST, effort);
            for window in WINDOWS.into_iter().chain([FOUR_SECONDS]) {
                cases.push(case(&setting, window, length, effort.choose(3, SEEDS))?);
            }
        }
    }
    Ok(cases)
}

/// One factor at a time at the shorter blockage. In a hurry only the latency.
fn factor_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    let mut settings = Vec::new();
    for change in 0..effort.choose(LATENCY + 1, CHANGES.len()) {
        settings.extend(
            FRACTIONS.map(|f| Setting { change: Some(change), ..Setting::baseline(f, DURATIONS[0]) }),
        );
    }
    if effort == Effort::Full {
        settings.extend(FURTHER_FRACTIONS.map(|f| Setting::baseline(f, DURATIONS[0])));
    }
    for setting in settings {
        let seeds = if setting.change == Some(LATENCY) { SEEDS } else { FACTOR_SEEDS };
        let length = setting.channel().steady(LEAST, effort);
        for window in WINDOWS {
            cases.push(case(&setting, window, length, effort.choose(3, seeds))?);
        }
    }
    Ok(cases)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (table, f) in [("figure 4-15", FRACTIONS[0]), ("figure 4-16", FRACTIONS[1])] {
        for d in DURATIONS {
            for window in WINDOWS {
                let setting = Setting::baseline(f, d);
                let row = [("d", format!("{d} s")), ("window", format!("{:.2} s", seconds(window)))];
                let values = samples.values(setting.experiment(), &setting.case(window), "T");
                cells.push(Cell { bound: Some(1.0 - f), ..Cell::of_mean(table, &row, values) });
            }
        }
    }
    cells.extend(best_windows(samples));
    cells
}

/// Where the curves of the figures are highest, beside what the thesis reads off its own.
fn best_windows(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (f, printed) in FRACTIONS.into_iter().zip(BEST) {
        for d in DURATIONS {
            let row = [("f", f.to_string()), ("d", format!("{d} s"))];
            let rows = rows(samples, &Setting::baseline(f, d));
            let best = (!rows.is_empty()).then(|| optimum(&rows.iter().collect::<Vec<_>>()));
            let cell = Cell::of_mean("best window, s", &row, best);
            cells.push(Cell { paper: Some(printed), p25: None, p75: None, n: rows.len(), ..cell });
        }
    }
    cells
}

fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(SWEEP) {
        return Vec::new();
    }
    let figure = |(number, f): (&str, f64)| {
        let ends = [seconds(WINDOWS[0]), seconds(WINDOWS[WINDOWS.len() - 1])];
        let mut curves = Curves::new("link window (s)", "normalised throughput").log_x();
        for (colour, d) in DURATIONS.into_iter().enumerate() {
            curves =
                curves.measured(&format!("d = {d} s"), colour, &curve(samples, &Setting::baseline(f, d)));
        }
        let svg = curves.calculated("capacity", ends.map(|end| (end, 1.0 - f)).to_vec()).svg();
        Figure {
            name: format!("figure-{number}"),
            title: format!("Figure {number}: throughput over the link's window, f = {f}"),
            caption: format!(
                "Means over realisations of the channel, {SEEDS} in full, with 95 % intervals, beside the channel's \
                 capacity 1 - f. One second is 66 frames; the baseline is 7.75 s."
            ),
            svg,
        }
    };
    [("4-15", FRACTIONS[0]), ("4-16", FRACTIONS[1])].map(figure).to_vec()
}
