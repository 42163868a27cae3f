//! Section 4: how many full-size packets a burst hits while the return link is saturated.

use std::io;

use base::Instant;

use super::LINK;
use crate::claims::Measurements;
use crate::node::FrameCost;
use crate::study::probe::{Method, Probe, Trial};

/// `hit(q)`: the q-quantile, for 0, 0.05, 0.95 and 1, of the packets of 1450 bytes that a burst hits, of 10,000 bursts: 0 is the least, 1 the
/// most.
pub(super) const FOOTPRINT: Probe = Probe {
    name: "burst-footprint",
    version: 2,
    quantities: &["hit"],
    series: &[],
    method: Method::Trial(measure),
};

/// Bytes: the paper's MTU.
const PACKET: usize = 1450;
const BURSTS: usize = 10_000;

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let link = trial.scenario().link.get(LINK).ok_or_else(|| io::Error::other("no satellite link"))?;
    let cost: FrameCost = link.frame_cost(false);
    let mut line = link.channel.build(trial.seed, LINK).up;
    let mut bursts = line.timeline().take(BURSTS);
    let mut burst = bursts.next();
    let mut counts: Vec<u32> = Vec::new();
    let mut hit = 0;
    while let Some(current) = &burst {
        let on_air = line.send(Instant::ZERO, cost.bits(PACKET)).on_air;
        // A packet may be hit by several bursts, and a burst hits several packets.
        if on_air.end > current.start && on_air.start < current.end {
            hit += 1;
        }
        while burst.as_ref().is_some_and(|current| current.end <= on_air.end) {
            counts.push(hit);
            burst = bursts.next();
            hit = u32::from(burst.as_ref().is_some_and(|next| next.start < on_air.end));
        }
    }
    counts.sort_unstable();
    for quantile in [0.0, 0.05, 0.95, 1.0] {
        let place = ((counts.len() as f64 * quantile) as usize).min(counts.len().saturating_sub(1));
        let value = counts.get(place).map(|count| f64::from(*count));
        measured.set_or("hit", &[quantile.into()], value, "no bursts");
    }
    Ok(())
}
