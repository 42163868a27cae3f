//! Section 4.3.2: what TCP sends again too soon where the link does not keep order, and its time-out.
//!
//! A retransmission is fast when the sender is in fast recovery, and spurious when the receiver gets data that it has. The
//! time-out is the mean over time of what TCP would wait without back-off, which follows the round trips alone.

use std::collections::BTreeMap;

use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::run::Run;
use crate::study::probe::{Method, Probe};

/// `spurious`: data segments that the server sent again in fast recovery and that reached the terminal although it had their
/// data; `data_segments`: all that it sent; `megabytes`: what applications received; `rto`: the mean time-out in seconds.
pub(super) const REORDERING: Probe = Probe {
    name: "reordering",
    version: 1,
    quantities: &["spurious", "data_segments", "megabytes", "rto"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.host_events = true,
        read: |_, run, measured| {
            measure(run, measured);
            Ok(())
        },
    },
};

fn measure(run: &Run, measured: &mut Measurements) {
    measured.note("spurious", spurious(&run.log) as f64);
    let segments: u64 = run.transfers.iter().map(|transfer| transfer.segments_sent).sum();
    measured.note("data_segments", segments as f64);
    measured.note("megabytes", run.bytes as f64 / 1e6);
    measured.note("rto", mean_rto(&run.log));
}

fn spurious(log: &EventLog) -> u64 {
    let states: Vec<_> = log.sender_states("server").collect();
    let mut resent: BTreeMap<(u16, u64), u64> = BTreeMap::new();
    for (at, segment) in log.segments("server").filter(|(_, segment)| segment.sent && segment.again) {
        // A state is logged at the same time as the segments that its change sends, and before them.
        let known = states.partition_point(|(since, _)| *since <= at);
        let own = states[..known].iter().rev().find(|(_, state)| state.from == segment.from);
        if own.is_some_and(|(_, state)| state.recovering) {
            *resent.entry((segment.from, segment.seq)).or_default() += 1;
        }
    }
    let mut spurious = 0;
    let in_vain = log.segments("terminal").filter(|(_, s)| !s.sent && s.len > 0 && s.again);
    for (_, segment) in in_vain {
        if let Some(left) = resent.get_mut(&(segment.from, segment.seq)).filter(|left| **left > 0) {
            *left -= 1;
            spurious += 1;
        }
    }
    spurious
}

fn mean_rto(log: &EventLog) -> Option<f64> {
    let states: Vec<_> = log.sender_states("server").filter(|(_, state)| state.srtt.is_some()).collect();
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([log.ended_at()]);
    let (mut sum, mut time) = (0.0, 0.0);
    for ((since, state), until) in states.iter().zip(ends) {
        let span = until.saturating_since(*since).as_secs_f64();
        sum += span * state.rto.as_secs_f64() / f64::from(2_u32.saturating_pow(state.backoff));
        time += span;
    }
    (time > 0.0).then(|| sum / time)
}
