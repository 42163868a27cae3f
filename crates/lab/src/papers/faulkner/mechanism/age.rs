//! How old an acknowledgement is when it arrives, in a trailer that is filled as it leaves and in one that is filled when the
//! frame starts.
//!
//! The claim's figures are those of full frames. A packet of 1500 bytes takes three of them and a short one; the mean over
//! all frames is told too. So is the time since the newest frame that an acknowledgement covers came, which the contents
//! of the acknowledgements alone say.

use std::io;

use base::Instant;
use base::config::ConfigError;
use link::FrameKind;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::LinkDirection;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, saturated};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::mean;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-just-in-time-acknowledgement"],
    cases,
    measure,
};

const NAME: &str = "age of acknowledgements";
/// Bits per second of the uplink.
const UPLINKS: [f64; 4] = [2400.0, 9600.0, 64_000.0, RATE];
/// When the acknowledgement is filled in, as COTMLL's configuration calls it.
const MOMENTS: [&str; 2] = ["trailer", "start"];
/// Bits of a trailer.
const TRAILER: f64 = 32.0;

fn name(moment: &str, uplink: f64) -> String {
    format!("{moment}, {uplink} bit/s")
}

/// One run a setting: there is no chance in it.
fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for moment in MOMENTS {
        for uplink in UPLINKS {
            let protocol = format!("window = 512, acknowledge = \"{moment}\"");
            let rate = format!("link.satellite.channel.up-rate={uplink} bit/s");
            let scenario = saturated(&protocol, &Channel::Clear, effort.choose(60.0, 600.0), &[rate])?;
            cases.push(Case::new(name(moment, uplink), scenario, 1));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let watch = Watch { events: true, ..Watch::default() };
    let run = run::run(NAME, case.scenario(), seed, &watch)?;
    let mut measured = Measurements::new();
    let (mut full, mut all) = (Vec::new(), Vec::new());
    for frame in run.log.frames(LINK, LinkDirection::Up) {
        let (Some(arrived), Some(filled)) = (frame.arrived_at, frame.filled_at()) else { continue };
        let age = arrived.saturating_since(filled).as_secs_f64();
        all.push(age);
        if f64::from(frame.bits) == FRAME_BITS {
            full.push(age);
        }
    }
    measured.note("age", mean(&full));
    measured.note("age, all frames", mean(&all));
    measured.note("since news", mean(&since_news(&run.log)));
    let records = run.sources.iter().filter(|source| source.name == "down").map(|source| source.delivered);
    measured.note("delivered", records.sum::<u64>() as f64);
    Ok(measured)
}

/// For each acknowledgement that arrives from the terminal: how long ago the newest frame that it covers had come there. The
/// line loses nothing, so all of them are cumulative.
fn since_news(log: &EventLog) -> Vec<f64> {
    let came: Vec<Instant> = log
        .frames(LINK, LinkDirection::Down)
        .into_iter()
        .filter(|frame| frame.kind == FrameKind::New)
        .filter_map(|frame| frame.arrived_at)
        .collect();
    let (mut covered, mut all) = (0_usize, Vec::new());
    for frame in log.frames(LINK, LinkDirection::Up) {
        let (Some(arrived), Some(trailer)) = (frame.arrived_at, frame.trailer) else { continue };
        // Numbers on the air are modulo 1024, and never go back on a line that keeps order.
        covered += (usize::from(trailer.ack) + 1024 - covered % 1024) % 1024;
        if covered > 0 {
            all.extend(came.get(covered - 1).map(|came| arrived.saturating_since(*came).as_secs_f64()));
        }
    }
    all
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for uplink in UPLINKS {
        let [trailer, start] = MOMENTS.map(|moment| name(moment, uplink));
        let at = format!("at {uplink} bit/s");
        let gain = |quantity: &str| {
            Some(samples.mean(NAME, &start, quantity)? - samples.mean(NAME, &trailer, quantity)?)
        };
        let expected = (FRAME_BITS - TRAILER) / uplink;
        let what = format!("age lower by, of a frame less its trailer, {at}");
        criteria.push(Criterion::within(what, gain("age").map(|gain| gain / expected), 0.95, 1.05));
        criteria.push(Criterion::told(format!("age lower by, in seconds, {at}"), gain("age")));
        let what = format!("the same over all frames, short ones among them, {at}");
        criteria.push(Criterion::told(what, gain("age, all frames")));
        let what = format!("time since the newest frame covered lower by, in seconds, {at}");
        criteria.push(Criterion::told(what, gain("since news")));
        let delivered = |case: &str| samples.mean(NAME, case, "delivered");
        let ratio = delivered(&trailer).zip(delivered(&start)).map(|(trailer, start)| trailer / start);
        criteria.push(Criterion::at_least(format!("downlink throughput, of the other's, {at}"), ratio, 1.0));
    }
    Ruling::all(criteria)
}
