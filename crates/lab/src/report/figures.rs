//! The figures of a suite's report.

use kuva::plot::StripPlot;
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::{SchemeRuns, by_scheme, dama, over_time};
use crate::drawing::{BOUND, Chart, Drawing, Figure, Look, Looks, Row, Sheet, thin, with_room_for};
use crate::run::{Run, Typical};
use crate::scenario::{Scenario, Suite};

/// What figures of single runs show: those of the typical seed.
pub(super) struct Shown<'a> {
    suite: &'a Suite,
    looks: &'a Looks,
    pub(super) typical: Typical,
    /// A run for each scheme, in their order.
    pub(super) runs: Vec<&'a Run>,
    /// The scenario whose channels are those of all schemes, if there is one.
    pub(super) shared: Option<&'a Scenario>,
    /// The one whose bound stands for all schemes: on the same channels bounds differ by framing alone.
    pub(super) bounding: Option<&'a Scenario>,
}

impl<'a> Shown<'a> {
    fn new(suite: &'a Suite, runs: &'a [Run], looks: &'a Looks) -> Option<Self> {
        let typical = Typical::of(suite, runs)?;
        let of_scheme = |(name, _): &(String, Scenario)| {
            runs.iter().find(|run| run.scheme == *name && run.seed == typical.seed)
        };
        let shown = suite.schemes.iter().filter_map(of_scheme).collect();
        let shared = suite.same_channels().then_some(&suite.scenario);
        let bounding = shared.and(suite.schemes.last()).map(|(_, scenario)| scenario);
        Some(Self { suite, looks, typical, runs: shown, shared, bounding })
    }

    pub(super) fn look(&self, run: &Run) -> Look {
        self.looks.look(&run.scheme)
    }

    /// The scenario of a run's scheme.
    pub(super) fn scenario(&self, run: &Run) -> Option<&'a Scenario> {
        self.suite.schemes.iter().find(|(name, _)| *name == run.scheme).map(|(_, scenario)| scenario)
    }

    /// Which realisation this is.
    fn realisation(&self) -> String {
        let Typical { seed, measure, value } = &self.typical;
        let value = if *value < 1e3 { format!("{value:.1}") } else { super::rate::human_rate(*value) };
        match measure {
            Some(measure) => format!(" Seed {seed} is the median realisation, by {measure} ({value})."),
            None => String::new(),
        }
    }
}

/// Every figure of a suite's report.
pub(super) fn figures(suite: &Suite, runs: &[Run]) -> Vec<Figure> {
    let looks = Looks::of(&[suite.schemes.iter().map(|(name, _)| name.clone()).collect()]);
    let schemes = by_scheme(suite, runs);
    let Some(shown) = Shown::new(suite, runs, &looks) else { return Vec::new() };
    let (seed, realisation) = (shown.typical.seed, shown.realisation());
    let mut figures = Vec::new();
    let mut add = |name: &str, title: String, caption: &str, drawing: Option<Drawing>| {
        let (name, caption) = (name.to_owned(), caption.to_owned());
        figures.extend(drawing.map(|drawing| Figure { name, title, caption, drawing }));
    };
    add(
        "goodput",
        "Goodput of every run".to_owned(),
        "One dot per seed, and the bound: what the channel could carry while it was open, less the framing.",
        Some(goodput_by_seed(&schemes, &looks, shown.shared.is_some())),
    );
    add(
        "progress",
        format!("Progress, seed {seed}"),
        &format!("Bytes that the application has received.{realisation}"),
        over_time::progress(&shown),
    );
    add(
        "goodput-over-time",
        format!("Goodput over time, seed {seed}"),
        &format!("{}{realisation}", over_time::goodput_caption(&shown)),
        over_time::goodput(&shown),
    );
    add(
        "latency",
        format!("Latency, seed {seed}"),
        &format!(
            "Fraction of records and transactions that arrived within a time; those that never arrived are left out.{realisation}"
        ),
        latency(&shown),
    );
    for (number, (name, scenario)) in suite.schemes.iter().enumerate() {
        let Some(run) = shown.runs.iter().find(|run| run.scheme == *name) else { continue };
        add(
            &format!("segments-{}", number + 1),
            format!("{name}: every segment, seed {seed}"),
            "The first connection, as its sender saw it.",
            sequence(run, scenario, looks.look(name)),
        );
        for (link, granted) in &run.capacity {
            add(
                &format!("capacity-{link}-{}", number + 1),
                format!("{name}: bandwidth on demand on {link}, seed {seed}"),
                "Per superframe: the rate or volume that the terminal requested at its start, the slots that the plan granted, \
                 and those that carried data.",
                dama::timeline(granted, run, scenario, looks.look(name)),
            );
        }
    }
    figures
}

/// Goodput of every run, a column a scheme, beside the bounds: one column of them where the channels are the same.
fn goodput_by_seed(schemes: &[SchemeRuns<'_>], looks: &Looks, same_channels: bool) -> Drawing {
    let (mut groups, mut colours, mut rows, mut most) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    let mut add = |name: &str, colour, values: Vec<(u64, f64)>| {
        rows.extend(values.iter().map(|(seed, kbit)| Row::new(name, seed.to_string(), *kbit)));
        most = values.iter().map(|(_, kbit)| *kbit).fold(most, f64::max);
        let kbits: Vec<f64> = values.into_iter().map(|(_, kbit)| kbit).collect();
        groups.push((name.to_owned(), kbits));
        colours.push(colour);
    };
    let values = |scheme: &SchemeRuns<'_>, value: fn(&Run) -> f64| -> Vec<(u64, f64)> {
        scheme.runs.iter().map(|run| (run.seed, value(run) / 1e3)).collect()
    };
    for scheme in schemes {
        add(scheme.name, looks.look(scheme.name).colour, values(scheme, |run| run.goodput_bps));
    }
    // On the same channels the bounds differ by framing alone: the last scheme's stands for all.
    let bounds =
        if same_channels { schemes.len().saturating_sub(1)..schemes.len() } else { 0..schemes.len() };
    for scheme in &schemes[bounds] {
        let label = if same_channels { "bound".to_owned() } else { format!("bound of {}", scheme.name) };
        add(&label, BOUND, values(scheme, |run| run.bound_bps));
    }
    const LABEL: &str = "goodput (kbit/s)";
    Drawing::new(["seed", LABEL].map(str::to_owned), rows, move |size| {
        let strip = StripPlot::new().with_center().with_point_size(5.0).with_marker_opacity(0.7);
        let strip = groups.iter().cloned().fold(strip, |strip, (name, kbits)| strip.with_group(name, kbits));
        let plots = vec![Plot::Strip(strip.with_group_colors(colours.clone()))];
        let layout = Layout::auto_from_plots(&plots);
        let layout = crate::drawing::from_zero(layout, size, LABEL, (0.0, most));
        let layout = with_room_for(layout, size, groups.iter().map(|(name, _)| name.as_str()));
        Sheet::new(plots, layout).svg(size)
    })
}

/// The distribution of the latencies of every source and all transactions, a line each and scheme.
fn latency(shown: &Shown<'_>) -> Option<Drawing> {
    let mut chart = Chart::new("latency (s)", "fraction").between_y(0.0..1.0);
    for run in &shown.runs {
        for (place, (name, samples)) in run.latencies.iter().enumerate() {
            let mut seconds: Vec<f64> = samples.iter().map(|sample| sample.latency.as_secs_f64()).collect();
            seconds.sort_by(f64::total_cmp);
            let all = seconds.len() as f64;
            let points = seconds.into_iter().enumerate().map(|(below, at)| (at, (below + 1) as f64 / all));
            let points: Vec<_> = points.collect();
            if !points.is_empty() {
                let look = shown.look(run).varied(place);
                chart = chart.steps(&format!("{}: {name}", run.scheme), look, thin(points));
            }
        }
    }
    (!chart.is_empty()).then(|| chart.drawing())
}

/// One run's segments against time: first transmissions, retransmissions and the cumulative acknowledgement.
fn sequence(run: &Run, scenario: &Scenario, look: Look) -> Option<Drawing> {
    let flow = run.flows.first()?;
    let mark = |again: bool| {
        let marks = flow.segments.iter().filter(move |segment| segment.again == again);
        thin(marks.map(|s| (s.at.as_secs_f64(), s.offset as f64 / 1e3)).collect())
    };
    let mut acks: Vec<(f64, f64)> = Vec::new();
    for (at, offset) in &flow.acks {
        let at = at.as_secs_f64();
        acks.extend(acks.last().map(|(_, before)| (at, *before)));
        acks.push((at, *offset as f64 / 1e3));
    }
    let chart = Chart::new("", "offset in the stream (kB)")
        .points("sent", Look { mark: MarkerShape::Circle, ..look }, mark(false))
        .points("sent again", Look::plain(MarkerShape::Cross), mark(true))
        .trace("acknowledged", Look { dashes: None, ..Look::calculated(0) }, thin(acks));
    over_time::timed(chart, Some(scenario), over_time::end_of(run), run.seed)
}
