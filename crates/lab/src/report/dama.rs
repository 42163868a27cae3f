//! Bandwidth on demand, drawn: what a terminal asked for, was granted and used, superframe by superframe.

use kuva::plot::scatter::MarkerShape;

use super::over_time::timed;
use crate::drawing::{Chart, Drawing, Look, thin};
use crate::run::{Capacity, Run};
use crate::scenario::Scenario;

/// The timeline of a terminal in one run, in kbit/s over seconds; `look` is that of the run's scheme.
pub(super) fn timeline(capacity: &Capacity, run: &Run, scenario: &Scenario, look: Look) -> Option<Drawing> {
    let slots = capacity.slots;
    let superframe = slots.superframe();
    let kbits = |count: u32| f64::from(count) * f64::from(slots.slot_bits()) / superframe.as_secs_f64() / 1e3;
    let points = |value: fn(&channel::dama::Cycle) -> u32| {
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
        thin(points)
    };
    // What was asked for is the rate request that is in effect, and the volume that was asked for at the superframe's start.
    let chart = Chart::new("", "rate by the superframe (kbit/s)")
        .steps("asked for", Look::calculated(1), points(|cycle| cycle.rate + cycle.asked_volume))
        .steps("granted", Look::plain(MarkerShape::Square), points(|cycle| cycle.grant.total()))
        .steps("used", look, points(|cycle| cycle.used));
    let end = capacity.cycles.last()?.start + superframe;
    timed(chart, Some(scenario), end.as_secs_f64(), run.seed)
}
