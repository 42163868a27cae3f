//! What the channel does by itself, without traffic: every link's line towards its second end is asked.

use std::io;

use base::Instant;
use channel::Fate;

use super::{Method, Probe, Trial};
use crate::claims::Measurements;

/// `blocked_share(link)`, `mean_blockage(link)` and `mean_period(link)` in seconds, over as many blockages as the
/// experiment's `with` says under `periods`.
pub(super) const BLOCKAGES: Probe = Probe {
    name: "blockages",
    version: 1,
    quantities: &["blocked_share", "mean_blockage", "mean_period"],
    series: &[],
    method: Method::Trial(blockages),
};

/// `lost(link)`: of frames of `bits` bits, one after the other, the share that does not pass; `with` has `frames` and `bits`.
pub(super) const FRAME_LOSS: Probe = Probe {
    name: "frame-loss",
    version: 1,
    quantities: &["lost"],
    series: &[],
    method: Method::Trial(frame_loss),
};

fn blockages(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let periods = trial.number("periods")?;
    for (name, link) in &trial.scenario().link {
        let streams = link.channel.streams(trial.seed, name, "down");
        let (mut blocked, mut whole, mut count) = (0.0, 0.0, 0.0);
        for interval in link.channel.down().errors.timeline(&streams).take(periods as usize) {
            blocked += (interval.end - interval.start).as_secs_f64();
            whole = interval.end.as_secs_f64();
            count += 1.0;
        }
        let of = |amount: f64, by: f64| (by > 0.0).then(|| amount / by);
        let values = [
            ("blocked_share", of(blocked, whole)),
            ("mean_blockage", of(blocked, count)),
            ("mean_period", of(whole, count)),
        ];
        for (quantity, value) in values {
            measured.set_or(quantity, &[name.as_str().into()], value, "it is never blocked");
        }
    }
    Ok(())
}

fn frame_loss(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let (frames, bits) = (trial.number("frames")? as u32, trial.number("bits")? as u32);
    for (name, link) in &trial.scenario().link {
        let mut line = link.channel.down().build(&link.channel.streams(trial.seed, name, "down"));
        let lost = (0..frames).filter(|_| line.send(Instant::ZERO, bits).fate != Fate::Intact).count();
        let share = (frames > 0).then(|| lost as f64 / f64::from(frames));
        measured.set_or("lost", &[name.as_str().into()], share, "no frame was sent");
    }
    Ok(())
}
