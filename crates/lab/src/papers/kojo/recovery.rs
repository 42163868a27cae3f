//! How TCP noticed losses and repaired them, and which of its time-outs were needless.

use std::collections::BTreeSet;

use base::{Duration, Instant};

use super::transfer::{Observed, acked_at};
use crate::observe::{Flow, SegmentMark};
use crate::statistics::mean;

/// Losses from which on an episode counts for how fast it was repaired.
const MANY: usize = 3;
/// What a segment takes from the sender to the receiver at least: the hop.
const LEAST_TRIP: Duration = Duration::from_millis(250);

pub(super) fn measure(observed: &Observed<'_>, note: &mut dyn FnMut(&str, Option<f64>)) {
    let spurious: usize = observed.flows.iter().map(|flow| needless_timeouts(observed, flow)).sum();
    note("rto_spurious", Some(spurious as f64));
    let detected: u64 = observed.transfers.iter().map(|transfer| transfer.spurious_timeouts).sum();
    note("rto_detected", Some(detected as f64));
    let needless = observed.received.iter().filter(|(_, segment)| segment.len > 0 && segment.again).count();
    note("needless_segments", Some(needless as f64));
    let speeds: Vec<f64> = observed.flows.iter().flat_map(|flow| repair_speeds(observed, flow)).collect();
    note("repaired_per_rtt", mean(&speeds));
    let third = observed.flows.first().and_then(|flow| Some((flow, third_duplicate(observed, flow)?)));
    note("first_dupack3", Some(third.map_or(f64::INFINITY, |(_, at)| observed.since_start(at))));
    let sent = third.map(|(flow, at)| sent_by(flow, at));
    note("sent_at_dupack3", sent.map(|sent| sent as f64));
    let recovery = third.and_then(|(flow, at)| Some(acked_at(flow, sent_by(flow, at))?.saturating_since(at)));
    note("recovery_s", recovery.map(Duration::as_secs_f64));
}

/// New bytes sent by a time.
fn sent_by(flow: &Flow, at: Instant) -> u64 {
    let sent = flow.segments.iter().take_while(|segment| segment.at <= at);
    sent.map(|segment| segment.offset + u64::from(segment.len)).max().unwrap_or(0)
}

/// When the third duplicate acknowledgement in a row came for the first time.
fn third_duplicate(observed: &Observed<'_>, flow: &Flow) -> Option<Instant> {
    let (mut last, mut count) = (None, 0);
    for (at, segment) in observed.acks.iter().filter(|(_, segment)| segment.from == flow.ports.1) {
        let is_duplicate = segment.len == 0 && segment.ack.is_some() && segment.ack == last;
        let is_owed = segment.ack.is_some_and(|ack| sent_by(flow, *at) > ack);
        count = if is_duplicate && is_owed { count + 1 } else { 0 };
        if count == 3 {
            return Some(*at);
        }
        last = segment.ack.or(last);
    }
    None
}

/// Time-outs after which the first unacknowledged segment reached the receiver by a copy sent before.
///
/// That is so if it arrived before a copy sent at the time-out could, or if every copy of it arrived.
fn needless_timeouts(observed: &Observed<'_>, flow: &Flow) -> usize {
    let mut before = 0;
    let mut timeouts = Vec::new();
    for (at, state) in observed.states.iter().filter(|(_, state)| state.to == flow.ports.1) {
        if state.timeouts > before {
            timeouts.push(*at);
        }
        before = state.timeouts;
    }
    let needless = |at: &&Instant| {
        let place = flow.acks.partition_point(|(acked_at, _)| acked_at <= *at);
        let una = place.checked_sub(1).map_or(0, |place| flow.acks[place].1);
        let copies = flow.segments.iter().filter(|segment| segment.offset == una).count();
        let arrivals =
            observed.received.iter().filter(|(_, s)| s.to == flow.ports.1 && s.len > 0 && s.seq == una);
        let arrivals: Vec<Instant> = arrivals.map(|(at, _)| *at).collect();
        arrivals.first().is_some_and(|first| *first < **at + LEAST_TRIP || arrivals.len() == copies)
    };
    timeouts.iter().filter(needless).count()
}

/// Of each fast recovery with many losses: segments sent again a round trip.
fn repair_speeds(observed: &Observed<'_>, flow: &Flow) -> Vec<f64> {
    let mut speeds = Vec::new();
    let mut began = None;
    for (at, state) in observed.states.iter().filter(|(_, state)| state.to == flow.ports.1) {
        match began {
            None if state.recovering => began = Some((*at, state.timeouts)),
            Some((start, timeouts)) if !state.recovering => {
                let during = flow.segments.iter().filter(|s| s.again && s.at >= start && s.at < *at);
                let during: Vec<_> = during.collect();
                let repaired: BTreeSet<u64> = during.iter().map(|segment| segment.offset).collect();
                // How long a repair took to be acknowledged, which the sender itself does not sample (Karn and Partridge).
                let trip = |segment: &&&SegmentMark| {
                    let acked = acked_at(flow, segment.offset + u64::from(segment.len))?;
                    Some(acked.saturating_since(segment.at).as_secs_f64())
                };
                let shortest = during.iter().filter_map(|segment| trip(&segment)).reduce(f64::min);
                if repaired.len() >= MANY
                    && state.timeouts == timeouts
                    && let Some(rtt) = shortest
                {
                    let trips = at.saturating_since(start).as_secs_f64() / rtt;
                    speeds.push(repaired.len() as f64 / trips.max(1.0));
                }
                began = None;
            }
            _ => {}
        }
    }
    speeds
}
