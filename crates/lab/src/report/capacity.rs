//! Bandwidth on demand, drawn: what a terminal asked for, was granted and used, superframe by superframe.

use kuva::plot::LinePlot;
use kuva::render::plots::Plot;

use super::figures::{COLOURS, thin, timed};
use crate::run::{Capacity, Run};
use crate::scenario::Scenario;

/// What is drawn of a cycle, in slots.
type Curve = (&'static str, fn(&channel::dama::Cycle) -> u32);

/// What was asked for is the rate request that is in effect, and the volume that was asked for at the superframe's start.
const CURVES: [Curve; 3] = [
    ("asked for", |cycle| cycle.rate + cycle.asked_volume),
    ("granted", |cycle| cycle.grant.total()),
    ("used", |cycle| cycle.used),
];

/// The timeline of a terminal in one run, in kbit/s over seconds.
pub(super) fn timeline(capacity: &Capacity, run: &Run, scenario: &Scenario) -> Option<String> {
    let slots = capacity.slots;
    let superframe = slots.superframe();
    let kbits = |count: u32| f64::from(count) * f64::from(slots.slot_bits()) / superframe.as_secs_f64() / 1e3;
    let curve = |(index, (name, value)): (usize, Curve)| {
        let mut points = Vec::new();
        let mut expected = None;
        for cycle in &capacity.cycles {
            // Asleep in between: nothing was asked for and nothing used.
            if let Some(slept_from) = expected.filter(|next| *next < cycle.start) {
                points.push((base::Instant::as_secs_f64(slept_from), 0.0));
            }
            points.push((cycle.start.as_secs_f64(), kbits(value(cycle))));
            expected = Some(cycle.start + superframe);
        }
        let line = LinePlot::new().with_data(thin(points)).with_step().with_stroke_width(1.5);
        Plot::Line(line.with_color(COLOURS[index]).with_legend(name))
    };
    let plots: Vec<_> = CURVES.into_iter().enumerate().map(curve).collect();
    let end = capacity.cycles.last()?.start + superframe;
    timed(plots, "kbit/s, by the superframe", Some(scenario), end.as_secs_f64(), run.seed)
}
