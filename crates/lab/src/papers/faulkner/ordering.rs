//! Section 4.3.2, figure 4-17: delivery in order or not.
//!
//! The thesis does not list its channels. Here they are bit errors at 1e-5 and four blocked fractions at two mean
//! blockages, each with the baseline's window and with the thesis's best one: what takes two seconds to get through.

mod retransmissions;
mod variants;

use base::config::ConfigError;
use kuva::plot::BarPlot;
use kuva::plot::legend::LegendPosition;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::Topic;
use super::setting::{Channel, FRAME_BITS, RATE, Scheme, WINDOW, measure_throughput, scenario};
use crate::report::{BOUND_COLOUR, COLOURS, Figure, draw};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const TOPIC: Topic = Topic { experiments: &EXPERIMENTS, rule, remark: |_| None, cells, figures };

const EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        name: NAME,
        figures: &["4-17"],
        claims: &["faulkner-in-order-wins"],
        cases,
        measure: measure_throughput,
    },
    variants::EXPERIMENT,
    retransmissions::EXPERIMENT,
    retransmissions::DATAGRAMS,
];

const NAME: &str = "ordering";
const SCHEMES: [Scheme; 2] = [Scheme::TcpLl, Scheme::Unordered];
const BIT_ERROR_RATE: f64 = 1e-5;
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// Mean blockages in seconds.
const DURATIONS: [f64; 2] = [0.6, 1.0];
/// Seconds that the best window takes to get through, after section 4.3.1.
const BEST: f64 = 2.0;
/// Realisations a point, as the claim asks for.
const SEEDS: u32 = 25;
/// A run's least seconds: the baseline's.
const LEAST: f64 = 300.0;
/// The share of settings that have to be beyond doubt.
const SURE: f64 = 0.8;

/// A channel and a window.
struct Setting {
    channel: Channel,
    name: String,
    window: u32,
}

impl Setting {
    fn case(&self, scheme: Scheme) -> String {
        format!("{}, {}, window {}", scheme.name(), self.name, self.window)
    }
}

/// Every channel with both windows.
fn settings() -> Vec<Setting> {
    let mut channels = vec![(Channel::BitErrors(BIT_ERROR_RATE), format!("BER {BIT_ERROR_RATE:e}"))];
    for f in FRACTIONS {
        channels.extend(DURATIONS.map(|d| (Channel::Blockage { f, d }, format!("f={f} d={d}"))));
    }
    let with = |(channel, name): (Channel, String)| {
        let open = if let Channel::Blockage { f, .. } = channel { 1.0 - f } else { 1.0 };
        let best = (BEST * open * RATE / FRAME_BITS).round() as u32;
        [WINDOW, best].map(|window| Setting { channel, name: name.clone(), window })
    };
    channels.into_iter().flat_map(with).collect()
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for setting in settings() {
        for scheme in SCHEMES {
            let length = setting.channel.steady(LEAST, effort);
            let scenario = scenario(scheme, &setting.channel, length, &[scheme.protocol(setting.window)])?;
            cases.push(Case::new(setting.case(scheme), scenario, effort.choose(3, SEEDS)));
        }
    }
    Ok(cases)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-in-order-wins" => Some(in_order_wins(samples)),
        retransmissions::CLAIM => Some(retransmissions::triggers(samples)),
        _ => None,
    }
}

fn in_order_wins(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let mut sure = Some(0);
    let settings = settings();
    for setting in &settings {
        let [on, off] = SCHEMES.map(|scheme| setting.case(scheme));
        let gain = samples.difference(NAME, [&on, &off], "T");
        sure = sure.zip(gain).map(|(sure, gain)| sure + i32::from(!gain.contains(0.0)));
        criteria.push(Criterion::new(
            format!("T in order less T unordered, {}, window {}", setting.name, setting.window),
            "above 0",
            gain,
            gain.map(|gain| gain.mean > 0.0),
        ));
    }
    let share = sure.map(|sure| f64::from(sure) / settings.len() as f64);
    criteria.push(Criterion::at_least("share of these whose interval excludes 0", share, SURE));
    criteria.extend(variants::told(samples));
    Ruling::all(criteria)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for setting in settings() {
        for scheme in SCHEMES {
            let row = [
                ("channel", setting.name.clone()),
                ("window", setting.window.to_string()),
                ("scheme", scheme.name().to_owned()),
            ];
            let values = samples.values(NAME, &setting.case(scheme), "T");
            let bound = Some(setting.channel.capacity());
            cells.push(Cell { bound, ..Cell::of_mean("figure 4-17", &row, values) });
        }
    }
    cells
}

/// A figure for each of the windows: the baseline's and the best.
fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let (baseline, best): (Vec<_>, Vec<_>) =
        settings().into_iter().partition(|setting| setting.window == WINDOW);
    vec![
        bars(samples, &baseline, "a", "a window of 512 frames"),
        bars(samples, &best, "b", "a window that takes 2 s to get through"),
    ]
}

fn bars(samples: &Samples, settings: &[Setting], panel: &str, window: &str) -> Figure {
    let mut plot = BarPlot::new();
    for setting in settings {
        let [on, off] = SCHEMES.map(|scheme| samples.mean(NAME, &setting.case(scheme), "T"));
        let (Some(on), Some(off)) = (on, off) else { continue };
        let values = [on, off, setting.channel.capacity()];
        let colours = [COLOURS[1], COLOURS[0], BOUND_COLOUR];
        plot = plot.with_group(setting.name.clone(), values.into_iter().zip(colours));
    }
    let plots = vec![Plot::Bar(plot.with_legend(vec!["in order", "unordered", "capacity"]))];
    let layout = Layout::auto_from_plots(&plots)
        .with_y_label("normalised throughput")
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    Figure {
        name: format!("figure-4-17{panel}"),
        title: format!("Figure 4-17 ({panel}): delivery in order and not, with {window}"),
        caption: format!(
            "Means over the same realisations of each channel, {SEEDS} in full, beside its capacity. The intervals of the \
             paired differences stand with the claim."
        ),
        svg: draw(plots, layout),
    }
}
