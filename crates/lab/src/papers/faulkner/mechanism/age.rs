//! How old an acknowledgement is when it arrives, in a trailer that is filled as it leaves and in one that is filled when the
//! frame starts.
//!
//! The claim's figures are those of full frames. A packet of 1500 bytes takes three of them and a short one; the mean over
//! all frames is told too. So is the time since the newest frame that an acknowledgement covers came.
//!
//! An acknowledgement is dated by when it is said to be filled in. That it says what had come by then, and no less, its
//! contents have to show: a date alone would make the claim true by definition.

use std::io;

use base::Instant;
use base::config::ConfigError;
use link::FrameKind;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::LinkDirection;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, logged, saturated};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::Watch;
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
    let run = logged(NAME, case.scenario(), seed, Watch::default())?;
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
    let contents = contents(&run.log);
    let of_all = |value: fn(&Contents) -> f64| mean(&contents.iter().map(value).collect::<Vec<_>>());
    measured.note("since news", of_all(|one| one.since_news));
    measured.note("as dated", of_all(|one| f64::from(u8::from(one.is_as_dated))));
    measured.note("as at the start", of_all(|one| f64::from(u8::from(one.is_as_at_start))));
    let records = run.sources.iter().filter(|source| source.name == "down").map(|source| source.delivered);
    measured.note("delivered", records.sum::<u64>() as f64);
    Ok(measured)
}

/// What an acknowledgement that arrives from the terminal says.
#[derive(Clone, Copy, Debug)]
struct Contents {
    /// How long ago the newest frame that it covers had come there, in seconds.
    since_news: f64,
    /// Whether it covers all that had come when it was filled in, and nothing else.
    is_as_dated: bool,
    /// Whether the same would be true of the moment at which its frame started.
    is_as_at_start: bool,
}

/// What each acknowledgement from the terminal says. The line loses nothing, so all of them are cumulative.
fn contents(log: &EventLog) -> Vec<Contents> {
    let came: Vec<Instant> = log
        .frames(LINK, LinkDirection::Down)
        .into_iter()
        .filter(|frame| frame.kind == FrameKind::New)
        .filter_map(|frame| frame.arrived_at)
        .collect();
    let (mut covered, mut all) = (0_usize, Vec::new());
    for frame in log.frames(LINK, LinkDirection::Up) {
        let (Some(arrived), Some(trailer)) = (frame.arrived_at, frame.trailer) else { continue };
        let Some(filled) = frame.filled_at() else { continue };
        // Numbers on the air are modulo 1024, and never go back on a line that keeps order.
        covered += (usize::from(trailer.ack) + 1024 - covered % 1024) % 1024;
        let Some(newest) = covered.checked_sub(1).and_then(|last| came.get(last)) else { continue };
        // Of what comes at the very moment either is right.
        let is_all_by =
            |moment: Instant| *newest <= moment && came.get(covered).is_none_or(|next| *next >= moment);
        all.push(Contents {
            since_news: arrived.saturating_since(*newest).as_secs_f64(),
            is_as_dated: is_all_by(filled),
            is_as_at_start: is_all_by(frame.on_air.start),
        });
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
        for (moment, case) in MOMENTS.into_iter().zip([&trailer, &start]) {
            let what =
                format!("acknowledgements that say what had come when they were filled in, {moment}, {at}");
            criteria.push(Criterion::at_least(what, samples.mean(NAME, case, "as dated"), 1.0));
        }
        let what = format!("those in trailers of which that is true of their frame's start as well, {at}");
        criteria.push(Criterion::told(what, samples.mean(NAME, &trailer, "as at the start")));
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
