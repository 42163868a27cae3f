//! Which frames a block acknowledgement flags, beside what became of them, which the lab knows.
//!
//! A flag is false if the latest sending of its frame is going to arrive, or has, or has not yet had the time to. The claim
//! is decided with the endpoint as it is, which compares a block's latest sendings; with their first ones, as the text could
//! be read too, flags are counted beside it.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};
use link::FrameKind;
use link::cotmll::SubProtocol;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::{FramesFlagged, LinkDirection, TrailerMark, What};
use crate::papers::faulkner::setting::{Channel, logged, saturated};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::Watch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-block-ack-flags-only-lost-frames"],
    cases,
    measure,
};

const NAME: &str = "flags";
/// Which of the sendings of a block's frames counts, as COTMLL's configuration calls it.
const AGAINST: [&str; 2] = ["latest", "first"];
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// Mean blockages in seconds.
const DURATIONS: [f64; 4] = [0.05, 0.2, 1.0, 5.0];
const BIT_ERRORS: f64 = 1e-5;
const SEEDS: u32 = 5;
const DIRECTIONS: [LinkDirection; 2] = [LinkDirection::Down, LinkDirection::Up];
/// From the filling of a trailer to its arrival: 32 bits and the propagation delay.
const UNDER_WAY: Duration = Duration::from_nanos(250_122_070);
/// Sequence numbers on the air.
const SPACE: usize = 1024;

fn channels() -> Vec<Channel> {
    let blockages = FRACTIONS.iter().flat_map(|&f| DURATIONS.map(|d| Channel::Blockage { f, d }));
    blockages.chain([Channel::BitErrors(BIT_ERRORS)]).collect()
}

fn label(channel: &Channel) -> String {
    match channel {
        Channel::Blockage { f, d } => format!("f = {f}, d = {d} s"),
        _ => format!("c = {BIT_ERRORS:e}"),
    }
}

fn name(against: &str, channel: &Channel) -> String {
    format!("{against}, {}", label(channel))
}

/// Half of the usual length each is enough, and at most 1000 s: there are many flags in every period.
fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for against in AGAINST {
        for channel in channels() {
            let seconds = (channel.steady(300.0, Effort::Full) / 2.0).clamp(300.0, 1000.0);
            let protocol = format!("window = 512, flag-against = \"{against}\"");
            let scenario = saturated(&protocol, &channel, effort.choose(30.0, seconds), &[])?;
            cases.push(Case::new(name(against, &channel), scenario, effort.choose(1, SEEDS)));
        }
    }
    Ok(cases)
}

/// What became of the flags of one direction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    all: u32,
    /// By a block of which no frame had been sent more than once.
    fresh: u32,
    /// Of those, false ones.
    fresh_false: u32,
    /// False ones of all others.
    cycled_false: u32,
    /// Of the false ones by such blocks, frames that had come before the acknowledgement left. Since the block is the first
    /// beyond a gap, they lie before the gap.
    fresh_in_order: u32,
    /// Of all false ones, such frames.
    in_order: u32,
    /// Flags beyond the first for one sending.
    repeated: u32,
}

/// The sendings of the frame with a number.
#[derive(Clone, Copy, Default)]
struct Sent {
    times: u32,
    /// Of the latest.
    arrives_at: Instant,
    intact: bool,
    flags: u32,
}

impl Flags {
    fn of(log: &EventLog, direction: LinkDirection) -> Self {
        let mut flags = Self::default();
        let mut sent = [Sent::default(); SPACE];
        // Every started frame is there, with what became known of it later.
        let mut frames = log.frames(LINK, direction).into_iter();
        for event in log.link_events(LINK, direction) {
            match &event.what {
                What::FrameStarted(_) => {
                    let Some(frame) = frames.next() else { return flags };
                    let Some(trailer) = frame.trailer.filter(|t| t.class == SubProtocol::Reliable) else {
                        continue;
                    };
                    let before = &mut sent[usize::from(trailer.tx)];
                    let times = if frame.kind == FrameKind::New { 1 } else { before.times + 1 };
                    let intact = frame.intact == Some(true);
                    *before = Sent { times, arrives_at: frame.arrives_at, intact, flags: 0 };
                }
                What::FramesFlagged(flagged) => flags.note(flagged, event.at, &mut sent),
                _ => {}
            }
        }
        flags
    }

    fn note(&mut self, flagged: &FramesFlagged, now: Instant, sent: &mut [Sent; SPACE]) {
        let Some(TrailerMark { ack, ack_count, .. }) = flagged.trailer else { return };
        let mut block = (0..usize::from(ack_count)).map(|k| (usize::from(ack) + k) % SPACE);
        let is_fresh = block.all(|number| sent[number].times <= 1);
        for &number in &flagged.frames {
            let frame = &mut sent[usize::from(number)];
            let is_false = u32::from(frame.intact || frame.arrives_at > now);
            self.all += 1;
            self.repeated += u32::from(frame.flags > 0);
            let had_come = u32::from(frame.intact && frame.arrives_at.saturating_add(UNDER_WAY) <= now);
            self.in_order += had_come;
            frame.flags += 1;
            if is_fresh {
                self.fresh += 1;
                self.fresh_false += is_false;
                self.fresh_in_order += had_come;
            } else {
                self.cycled_false += is_false;
            }
        }
    }
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = logged(NAME, case.scenario(), seed, Watch::default())?;
    let both = DIRECTIONS.map(|direction| Flags::of(&run.log, direction));
    let sum = |count: fn(&Flags) -> u32| f64::from(both.iter().map(count).sum::<u32>());
    let counted = |name: &str| DIRECTIONS.map(|direction| run.links[&direction.of(LINK)][name] as f64);
    let lost: f64 = counted("frames-lost").iter().sum();
    // What the log shows has to be what the endpoints counted.
    if counted("endpoint-frames-flagged").iter().sum::<f64>() != sum(|flags| flags.all) {
        return Err(io::Error::other("the log does not hold every flag"));
    }
    let mut measured = Measurements::new();
    measured.note("flags", sum(|flags| flags.all));
    measured.note("fresh", sum(|flags| flags.fresh));
    measured.note("fresh, false", sum(|flags| flags.fresh_false));
    measured.note("cycled", sum(|flags| flags.all - flags.fresh));
    measured.note("cycled, false", sum(|flags| flags.cycled_false));
    measured.note("fresh, in order", sum(|flags| flags.fresh_in_order));
    measured.note("in order", sum(|flags| flags.in_order));
    measured.note("repeated", sum(|flags| flags.repeated));
    measured.note("lost", lost);
    Ok(measured)
}

/// The sum over the seeds of a case.
fn sum(samples: &Samples, against: &str, channel: &Channel, quantity: &str) -> Option<f64> {
    let values = samples.values(NAME, &name(against, channel), quantity);
    (!values.is_empty()).then(|| values.iter().sum())
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let over_all = |against: &str, quantity: &str| {
        channels()
            .iter()
            .try_fold(0.0, |total, channel| Some(total + sum(samples, against, channel, quantity)?))
    };
    let what = "false flags while no frame of the block was sent more than once";
    let mut criteria = vec![
        Criterion::at_most(what, over_all("latest", "fresh, false"), 0.0),
        Criterion::told(
            "of those, frames that had come in order before the block's gap",
            over_all("latest", "fresh, in order"),
        ),
        Criterion::told("flags by such blocks", over_all("latest", "fresh")),
        Criterion::at_most("flags beyond the first for one sending", over_all("latest", "repeated"), 0.0),
    ];
    for channel in channels() {
        let share = |part: &str, of: &str| {
            let (part, of) = (sum(samples, "latest", &channel, part)?, sum(samples, "latest", &channel, of)?);
            // Without a flag there is nothing to tell.
            (of > 0.0).then(|| part / of)
        };
        let at = label(&channel);
        criteria.push(Criterion::at_most(
            format!("other false flags, of all flags, {at}"),
            share("cycled, false", "flags"),
            0.05,
        ));
        let what = format!("the same of the flags by blocks with frames sent again, {at}");
        criteria.push(Criterion::told(what, share("cycled, false", "cycled")));
    }
    for against in AGAINST {
        let per_lost =
            over_all(against, "flags").zip(over_all(against, "lost")).map(|(flags, lost)| flags / lost);
        let total = |a: &str, b: &str| Some(over_all(against, a)? + over_all(against, b)?);
        let of = format!("comparing with the block's {against} sendings");
        criteria.push(Criterion::told(format!("flags per lost frame, {of}"), per_lost));
        criteria.push(Criterion::told(format!("false flags, {of}"), total("fresh, false", "cycled, false")));
        let what = format!("of those, frames that had come in order before the block's gap, {of}");
        criteria.push(Criterion::told(what, over_all(against, "in order")));
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for against in AGAINST {
        for channel in channels() {
            let all = |quantity: &str| samples.values(NAME, &name(against, &channel), quantity);
            let row = [("against", against.to_owned()), ("channel", label(&channel))];
            let per_lost = all("flags").into_iter().zip(all("lost")).map(|(flags, lost)| flags / lost);
            cells.push(Cell::of_mean("flags per lost frame", &row, per_lost));
            let wrong = all("fresh, false").into_iter().zip(all("cycled, false")).map(|(a, b)| a + b);
            let share = wrong.zip(all("flags")).filter(|(_, all)| *all > 0.0).map(|(wrong, all)| wrong / all);
            cells.push(Cell::of_mean("false flags, of all flags", &row, share));
        }
    }
    cells
}
