//! What the link did: losses, repair, the MAC buffer and the capacity that it was granted.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use link::FrameKind;

use super::LINK;
use super::transfer::{Observed, acked_at};
use crate::observe::events::{LinkDirection, PacketStep};
use crate::statistics::mean;

/// Packets that came to the link later than this before the end may still be on their way.
const UNDER_WAY: Duration = Duration::from_secs(10);

pub(super) fn measure(observed: &Observed<'_>, note: &mut dyn FnMut(&str, Option<f64>)) {
    note("frame_loss", frame_loss(observed));
    let (residual_loss, link_delay_max) = passage(observed);
    note("residual_loss", residual_loss);
    note("link_delay_max", link_delay_max);
    let (again, given_up) =
        (observed.counted("endpoint-frames-retransmitted"), observed.counted("endpoint-frames-given-up"));
    note("retx_ok", (again > 0.0).then(|| 1.0 - given_up / again));
    note("redundancy_bytes", Some(observed.counted("endpoint-bytes-repair")));
    note("mac_drops", Some(observed.counted("mac-drops")));
    let bursts = observed.run.log.blockages(LINK, LinkDirection::Up);
    let met = bursts.iter().filter(|burst| burst.end > observed.start && burst.start < observed.end);
    note("bursts", Some(met.count() as f64));
    note("rtt_idle", rtt_idle(observed));
    let (share, wait) = capacity(observed);
    note("grant_share", share);
    note("alloc_wait_s", Some(wait));
}

/// The share of first transmissions of full-size frames that the channel hit.
fn frame_loss(observed: &Observed<'_>) -> Option<f64> {
    let new = || observed.frames.iter().filter(|frame| frame.kind == FrameKind::New);
    let longest = new().map(|frame| frame.bits).max()?;
    let full: Vec<_> = new().filter(|frame| frame.bits == longest).collect();
    let lost = full.iter().filter(|frame| frame.intact == Some(false)).count();
    Some(lost as f64 / full.len() as f64)
}

/// The share of data packets that the link took and never delivered, and the longest time from the one to the other.
fn passage(observed: &Observed<'_>) -> (Option<f64>, Option<f64>) {
    // By connection and offset: when each copy was taken.
    let mut taken: BTreeMap<(u16, u64), Vec<Instant>> = BTreeMap::new();
    let (mut copies, mut longest) = (0_u32, None::<Duration>);
    let mut in_order = Instant::ZERO;
    let last = observed.run.log.ended_at().min(observed.end).saturating_sub(UNDER_WAY);
    for (at, mark) in &observed.packets {
        let waiting = taken.entry((mark.to, mark.seq)).or_default();
        match mark.step {
            PacketStep::Taken => waiting.push(*at),
            PacketStep::Delivered if !waiting.is_empty() => {
                // The link keeps packets in order, so copies that were taken before the last one delivered have been lost.
                let place = waiting.iter().position(|taken| *taken >= in_order).unwrap_or(waiting.len() - 1);
                let taken_at = waiting.remove(place);
                in_order = taken_at;
                longest = longest.max(Some(at.saturating_since(taken_at)));
                copies += 1;
            }
            _ => {}
        }
    }
    let lost = taken.values().flatten().filter(|at| **at <= last).count() as u32;
    copies += lost;
    let share = (copies > 0).then(|| f64::from(lost) / f64::from(copies));
    (share, longest.map(Duration::as_secs_f64))
}

/// The median round trip of segments, sent once, that found the MAC buffer empty. Without SLACP, where a packet is a frame.
fn rtt_idle(observed: &Observed<'_>) -> Option<f64> {
    let flow = observed.flows.first()?;
    let log = &observed.run.log;
    let taken = log.packets(LINK, LinkDirection::Up).filter(|(_, mark)| mark.step == PacketStep::Taken);
    let taken = taken.filter(|(at, _)| !observed.mac_drops.contains(at));
    let frames = log.frames(LINK, LinkDirection::Up);
    let mut trips = Vec::new();
    let mut empty_from = Instant::ZERO;
    // Frames leave in the order of their packets.
    for ((at, mark), frame) in taken.zip(&frames) {
        let is_empty = empty_from <= at;
        empty_from = frame.on_air.end;
        let sent: Vec<_> = flow.segments.iter().filter(|segment| segment.offset == mark.seq).collect();
        if is_empty && mark.len > 0 && sent.len() == 1 && mark.to == flow.ports.1 {
            let acked = acked_at(flow, mark.seq + u64::from(mark.len));
            trips.extend(acked.map(|acked| acked.saturating_since(sent[0].at).as_secs_f64()));
        }
    }
    trips.sort_by(f64::total_cmp);
    trips.get(trips.len() / 2).copied()
}

/// Over the superframes at whose start the MAC buffer held something: the mean share of the line that was granted, and the
/// seconds of those that were granted nothing.
fn capacity(observed: &Observed<'_>) -> (Option<f64>, f64) {
    let Some(capacity) = observed.run.capacity.get(LINK) else { return (None, 0.0) };
    let slots = capacity.slots;
    let during = |start: Instant| start >= observed.start && start <= observed.end;
    let busy: Vec<_> =
        capacity.cycles.iter().filter(|cycle| during(cycle.start) && cycle.buffered > 0).collect();
    let share = |cycle: &&channel::dama::Cycle| {
        f64::from(cycle.grant.total()) / f64::from(slots.count(slots.superframe_at(cycle.start)))
    };
    let shares: Vec<f64> = busy.iter().map(share).collect();
    let waits = busy.iter().filter(|cycle| cycle.grant.total() == 0).count();
    (mean(&shares), waits as f64 * slots.superframe().as_secs_f64())
}
