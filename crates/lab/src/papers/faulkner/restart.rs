//! What each blockage costs a link that always has something to send (section 4.2.2).
//!
//! The cost is open time in which the line did not carry what was read, over the number of blockages. The head of the run is
//! left out, so that slow start does not count.

use std::io;

use base::{Duration, Instant};

use crate::claims::Measurements;
use crate::run::Run;
use crate::study::probe::{Method, Probe, Trial};

/// `restart_cost`: open seconds that a blockage costs, of those after `with.settled` seconds; `with.line_bits` is how many
/// bits of the line carry a byte that is read. `timeouts_met`: the sender's time-outs for each blockage.
pub(super) const RESTART: Probe = Probe {
    name: "restart",
    version: 1,
    quantities: &["restart_cost", "timeouts_met"],
    series: &[],
    method: Method::Run { watch: |watch| watch.progress = true, read: measure },
};

fn measure(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let settled = Instant::ZERO + Duration::from_secs_f64(trial.number("settled")?);
    let points = run.progress.first().map_or(&[][..], |received| &received.points);
    let before = points.partition_point(|(at, _)| *at <= settled);
    let skipped = before.checked_sub(1).map_or(0, |last| points[last].1);
    let bytes = points.last().map_or(0, |(_, bytes)| bytes.saturating_sub(skipped));
    let all = super::blockages::blockages(scenario, trial.seed);
    let mut open = scenario.duration.as_secs_f64() - settled.as_secs_f64();
    let mut met = 0;
    for blocked in all.iter().filter(|blocked| blocked.end > settled) {
        open -= blocked.end.saturating_since(blocked.start.max(settled)).as_secs_f64();
        met += 1;
    }
    let rate = scenario.link["satellite"].channel.down().rate.as_bps() as f64;
    let used = bytes as f64 * trial.number("line_bits")? / rate;
    let none = "the run met no blockage";
    measured.set_or("restart_cost", &[], (met > 0).then(|| (open - used) / f64::from(met)), none);
    let timeouts: u64 = run.sources.iter().map(|source| source.timeouts).sum();
    let timeouts = (!all.is_empty()).then(|| timeouts as f64 / all.len() as f64);
    measured.set_or("timeouts_met", &[], timeouts, none);
    Ok(())
}
