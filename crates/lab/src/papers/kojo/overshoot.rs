//! Start-up: the first round trip, the queue, what overflows, and who ends slow start.

use base::Instant;

use super::transfer::{Observed, acked_at};
use crate::observe::Flow;
use crate::observe::events::PacketStep;
use crate::statistics::mean;

pub(super) fn measure(observed: &Observed<'_>, note: &mut dyn FnMut(&str, Option<f64>)) {
    let first_ack = observed.flows.iter().filter_map(|flow| Some(flow.acks.first()?.0)).min();
    let segments = || observed.flows.iter().flat_map(|flow| &flow.segments);
    let in_first_rtt = first_ack.map(|ack| segments().filter(|segment| segment.at < ack).count() as f64);
    note("first_rtt_segments", in_first_rtt);
    note("ip_queue_max", Some(ip_queue_max(observed)));
    note("flight_max", observed.flows.iter().map(|flow| flight_max(flow)).reduce(f64::max));
    let drops = overflows(observed);
    let first_overflow = drops.iter().min().map_or(f64::INFINITY, |at| observed.since_start(*at));
    note("first_overflow", Some(first_overflow));
    // What was sent before the first loss was noticed came to the terminal before it too: the LAN is fast.
    let noticed = segments().filter(|segment| segment.again).map(|segment| segment.at).min();
    let before = |at: &&Instant| noticed.is_none_or(|noticed| **at <= noticed);
    note("startup_drops", Some(drops.iter().filter(before).count() as f64));
    let ended_by_link: Vec<f64> =
        observed.flows.iter().filter_map(|flow| ended_by_link(observed, flow)).collect();
    note("ss_ended_by_link", mean(&ended_by_link));
    let thresholds = observed.flows.iter().filter_map(|flow| initial_ssthresh(observed, flow));
    note("initial_ssthresh", thresholds.reduce(f64::min));
    note("last_alone_s", last_alone(observed));
}

/// The threshold with which the first data left; infinite if slow start had no end set.
fn initial_ssthresh(observed: &Observed<'_>, flow: &Flow) -> Option<f64> {
    let first = flow.segments.first()?.at;
    let mut states = observed.states.iter().filter(|(at, state)| *at <= first && state.to == flow.ports.1);
    let (_, state) = states.next_back()?;
    Some(state.ssthresh.map_or(f64::INFINITY, |ssthresh| ssthresh as f64))
}

/// When the IP queue or the MAC buffer had no room.
fn overflows(observed: &Observed<'_>) -> Vec<Instant> {
    let queue = observed.steps(PacketStep::Dropped).map(|(at, _)| at);
    queue.chain(observed.mac_drops.iter().copied()).collect()
}

fn ip_queue_max(observed: &Observed<'_>) -> f64 {
    let (mut waiting, mut most) = (0_i64, 0);
    for (_, mark) in &observed.packets {
        match mark.step {
            PacketStep::Queued => waiting += 1,
            PacketStep::Taken | PacketStep::Dropped => waiting -= 1,
            _ => {}
        }
        most = most.max(waiting);
    }
    most as f64
}

/// The most bytes that were sent and not acknowledged.
fn flight_max(flow: &Flow) -> f64 {
    let mut most = 0;
    let mut acks = flow.acks.iter().peekable();
    let (mut acked, mut sent) = (0, 0);
    for segment in &flow.segments {
        while let Some((_, up_to)) = acks.next_if(|(at, _)| *at <= segment.at) {
            acked = *up_to;
        }
        sent = sent.max(segment.offset + u64::from(segment.len));
        most = most.max(sent.saturating_sub(acked));
    }
    most as f64
}

/// Whether the first segment that was sent again had been lost on the channel, or late, rather than dropped by a buffer; none if none was.
fn ended_by_link(observed: &Observed<'_>, flow: &Flow) -> Option<f64> {
    let again = flow.segments.iter().find(|segment| segment.again)?;
    let is_it = |to: u16, seq: u64| to == flow.ports.1 && seq == again.offset;
    let dropped =
        observed.steps(PacketStep::Dropped).any(|(at, mark)| at <= again.at && is_it(mark.to, mark.seq));
    let taken = observed.steps(PacketStep::Taken).find(|(_, mark)| is_it(mark.to, mark.seq));
    // Without flow control a packet comes to the MAC buffer in the moment in which the link takes it.
    let by_mac = taken.is_some_and(|(at, _)| observed.mac_drops.contains(&at));
    Some(f64::from(u8::from(!dropped && !by_mac)))
}

/// Seconds from the end of the last connection but one to that of the last.
fn last_alone(observed: &Observed<'_>) -> Option<f64> {
    let ends: Option<Vec<Instant>> =
        observed.flows.iter().map(|flow| acked_at(flow, observed.size)).collect();
    let mut ends = ends?;
    ends.sort();
    let [.., before, last] = ends[..] else { return None };
    Some(last.saturating_since(before).as_secs_f64())
}
