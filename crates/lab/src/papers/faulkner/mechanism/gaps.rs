//! What block acknowledgements cost where a tenth of the frames is lost in few long runs, and where one by one.
//!
//! A sending is redundant if an earlier one of the same frame was going to arrive, or had. Runs last 300 s, thirty periods
//! of the blockage channel; 150 periods in each of the 120 runs would take minutes.

use std::io;

use base::config::ConfigError;
use link::FrameKind;
use link::cotmll::SubProtocol;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::LinkDirection;
use crate::papers::faulkner::setting::{Channel, logged, saturated};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::Watch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-block-ack-suits-blockage"],
    cases,
    measure,
};

const NAME: &str = "few long gaps";
const WINDOWS: [u32; 3] = [64, 128, 512];
const SEEDS: u32 = 20;
/// A tenth of the frames of 3968 bits is lost on either.
const CHANNELS: [(&str, Channel); 2] =
    [("blockage", Channel::Blockage { f: 0.1, d: 1.0 }), ("bit errors", Channel::BitErrors(2.655e-5))];
const DIRECTIONS: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];
/// Sequence numbers on the air.
const SPACE: usize = 1024;

fn name(channel: &str, window: u32) -> String {
    format!("{channel} window={window}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for (label, channel) in CHANNELS {
        for window in WINDOWS {
            let protocol = format!("window = {window}");
            let scenario = saturated(&protocol, &channel, effort.choose(60.0, 300.0), &[])?;
            cases.push(Case::new(name(label, window), scenario, effort.choose(2, SEEDS)));
        }
    }
    Ok(cases)
}

/// What both directions put on the line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sendings {
    all: u32,
    redundant: u32,
    /// Of the redundant ones, those that had been flagged as lost.
    by_flag: u32,
    lost: u32,
    delivered: u32,
}

impl Sendings {
    fn note(&mut self, log: &EventLog, direction: LinkDirection) {
        let mut comes = [false; SPACE];
        for frame in log.frames(LINK, direction) {
            let (Some(trailer), Some(intact)) = (frame.trailer, frame.intact) else { continue };
            if trailer.class != SubProtocol::Reliable {
                continue;
            }
            let comes = &mut comes[usize::from(trailer.tx)];
            if frame.kind == FrameKind::New {
                *comes = false;
            }
            self.all += 1;
            self.lost += u32::from(!intact);
            self.redundant += u32::from(*comes);
            self.by_flag += u32::from(*comes && frame.kind == FrameKind::Retransmission);
            self.delivered += u32::from(intact && !*comes);
            *comes |= intact;
        }
    }
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = logged(NAME, case.scenario(), seed, Watch::default())?;
    let mut sendings = Sendings::default();
    DIRECTIONS.into_iter().for_each(|direction| sendings.note(&run.log, direction));
    let delivered = f64::from(sendings.delivered);
    let mut measured = Measurements::new();
    measured.note("redundant", f64::from(sendings.redundant) / delivered);
    measured.note("by flag", f64::from(sendings.by_flag) / delivered);
    measured.note("again", f64::from(sendings.all) / delivered - 1.0);
    measured.note("lost", f64::from(sendings.lost) / f64::from(sendings.all));
    Ok(measured)
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for window in WINDOWS {
        let [blockage, errors] = CHANNELS.map(|(channel, _)| name(channel, window));
        let difference = |quantity| samples.difference(NAME, [&blockage, &errors], quantity);
        let at = format!("window {window}");
        let what = format!("redundant sendings per delivered frame, blockage less BSC, {at}");
        criteria.push(Criterion::surely_below(what, difference("redundant"), 0.0));
        for (channel, _) in CHANNELS {
            let told = |quantity: &str| samples.interval(NAME, &name(channel, window), quantity);
            let of = format!("{channel}, {at}");
            criteria.push(Criterion::told(format!("redundant sendings per frame, {of}"), told("redundant")));
            criteria.push(Criterion::told(format!("of those by a flag, {of}"), told("by flag")));
            criteria.push(Criterion::told(format!("all sendings but the first, {of}"), told("again")));
            criteria.push(Criterion::told(format!("lost, of all sendings, {of}"), told("lost")));
        }
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let cell = |channel: &str, window: u32| {
        let row = [("channel", channel.to_owned()), ("window", window.to_string())];
        let values = samples.values(NAME, &name(channel, window), "redundant");
        Cell::of_mean("redundant sendings per delivered frame", &row, values)
    };
    CHANNELS.iter().flat_map(|(channel, _)| WINDOWS.map(|window| cell(channel, window))).collect()
}
