//! What TCP and the link do around each blockage of a run.

use base::Instant;

use super::trace::{Trace, seconds};
use crate::claims::Measurements;
use crate::study::probe::{Method, Probe};

/// Of the k-th blockage, from 1. As it starts: `received(k)`, bytes that the application has; `dropped(k)`, packets that the
/// queue had dropped; `flight(k)`, segments under way; `rto(k)`, `srtt(k)` in seconds; `timeouts_before(k)`. After it, in
/// seconds from its end: `first_byte(k)`, until the application has one more byte, at most until the run's end;
/// `second_of_data(k)`, as many as the line carries in a second, and `first_data(k)`, until TCP's next data reach the
/// terminal, both at most until the next blockage or the run's end. From its start until then: `resent(k)`, data segments
/// sent again, and `timeouts(k)`.
///
/// `reconnection`: the longest from a blockage's end until an intact frame arrives, in the direction that takes longer, of
/// those blockages in which the link has data outstanding.
pub(super) const RECOVERIES: Probe = Probe {
    name: "recoveries",
    version: 2,
    quantities: &[
        "received",
        "dropped",
        "flight",
        "rto",
        "srtt",
        "timeouts_before",
        "first_byte",
        "second_of_data",
        "first_data",
        "resent",
        "timeouts",
        "reconnection",
    ],
    series: &["blocked"],
    method: Method::Run {
        watch: Trace::watch,
        read: |trial, run, measured| {
            let trace = Trace::of(run);
            let second = trial.scenario().link["satellite"].channel.rate.as_bps() / 8;
            let blockages = trace.blockages();
            for (place, blockage) in blockages.iter().enumerate() {
                let next = blockages.get(place + 1).map(|next| next.start);
                before(measured, &trace, place + 1, blockage.start);
                let end = next.unwrap_or(run.log.ended_at());
                if blockage.end < run.log.ended_at() {
                    after(measured, &trace, place + 1, blockage.start..end, blockage.end, second);
                }
            }
            let waits = blockages
                .iter()
                .filter(|blockage| blockage.end < run.log.ended_at() && trace.is_outstanding(blockage.end));
            // Where no frame ever comes, it takes longer than the run goes on.
            let waits = waits.map(|b| trace.until_frame(b.end).unwrap_or_else(|| trace.left(b.end)));
            let none = "the link had nothing outstanding in any blockage";
            measured.set_or("reconnection", &[], waits.reduce(f64::max), none);
            if trial.is_first {
                measured.set_series("blocked", trace.shades());
            }
            Ok(())
        },
    },
};

/// What stands as blockage number `k` starts.
fn before(measured: &mut Measurements, trace: &Trace<'_>, k: usize, start: Instant) {
    let k = [(k as f64).into()];
    let state = trace.state(start);
    measured.set("received", &k, trace.received(start) as f64);
    measured.set("dropped", &k, trace.dropped(start) as f64);
    measured.set("flight", &k, trace.flight(start));
    measured.set_or("rto", &k, state.map(|state| state.rto.as_secs_f64()), NO_STATE);
    let srtt = state.and_then(|state| state.srtt).map(base::Duration::as_secs_f64);
    measured.set_or("srtt", &k, srtt, NO_STATE);
    measured.set_or("timeouts_before", &k, state.map(|state| f64::from(state.timeouts)), NO_STATE);
}

/// What happens from its start to the next one's, once the line is open again.
fn after(
    measured: &mut Measurements,
    trace: &Trace<'_>,
    k: usize,
    cycle: core::ops::Range<Instant>,
    reopened: Instant,
    second: u64,
) {
    let k = [(k as f64).into()];
    let most = seconds(reopened, cycle.end);
    let limited = |wait: Option<f64>| wait.unwrap_or(most).min(most);
    let first = trace.until_received(reopened, 1).unwrap_or_else(|| trace.left(reopened));
    measured.set("first_byte", &k, first);
    measured.set("second_of_data", &k, limited(trace.until_received(reopened, second)));
    measured.set("first_data", &k, limited(trace.until_data(reopened)));
    let timeouts = |at: Instant| trace.state(at).map(|state| f64::from(state.timeouts));
    let expired = timeouts(cycle.end).zip(timeouts(cycle.start)).map(|(end, start)| end - start);
    measured.set_or("timeouts", &k, expired, NO_STATE);
    measured.set("resent", &k, trace.resent(cycle).len() as f64);
}

const NO_STATE: &str = "TCP had no round-trip time yet";
