//! Figure 4-7's nine events of a blockage of 5 s, of TCP and of the link below it.

use core::ops::Range;
use std::io;

use base::Instant;
use base::config::ConfigError;
use link::FrameKind;

use super::trace::{Trace, after};
use super::{BLOCKED, JITTERED, Window, pictures, setup};
use crate::claims::Measurements;
use crate::observe::events::Frame;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, Scheme};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::scenario::Scenario;
use crate::statistics::mean;

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-7"], claims: &[CLAIM], cases, measure };

pub(super) const NAME: &str = "one blockage of 5 s";
pub(super) const CLAIM: &str = "faulkner-recovery-choreography";

/// When the blockage starts, and when the run ends.
pub(super) const STARTS: f64 = 20.0;
pub(super) const ENDS: f64 = STARTS + BLOCKED;
const SECONDS: f64 = 40.0;
/// A frame's time, and how long what has left the terminal is on its way.
const FRAME: f64 = FRAME_BITS / RATE;
const DELAY: f64 = 0.25;

/// Figure 4-7's letters.
pub(super) const LETTERS: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

pub(super) const WINDOWS: [Window; 2] = [Window::Baseline, Window::Small];

fn name(window: Window, is_jittered: bool) -> String {
    format!("{}{}", window.name(), if is_jittered { ", jittered" } else { "" })
}

/// The case of which figure 4-7 is drawn.
pub(super) fn drawn(window: Window) -> String {
    name(window, false)
}

/// TCP-LL with one blockage.
fn blocked_once(window: Window, is_jittered: bool) -> Result<Scenario, ConfigError> {
    let channel = Channel::Periodic { blocked: BLOCKED, open: SECONDS, first: STARTS };
    setup(Scheme::TcpLl, window, is_jittered, &channel, SECONDS)
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for window in WINDOWS {
        cases.push(Case::new(name(window, false), blocked_once(window, false)?, 1));
        let jittered = blocked_once(window, true)?;
        cases.push(Case::new(name(window, true), jittered, effort.choose(2, JITTERED)));
    }
    Ok(cases)
}

/// When each of the nine events happened, in the order of their letters; none if it did not.
///
/// - A: TCP sends its last new segment of the blockage. B: the link begins to go over its window again.
/// - C: TCP sends a segment again, while blocked. D: the link sends its first frame.
/// - E: TCP sends new data after the reopening. F: the link sends its first frame.
/// - G: the link sends a frame again that a block acknowledgement flagged.
/// - H: after that has arrived, the receiver acknowledges more than before. I: on that, TCP sends new data.
fn events(trace: &Trace, blockage: &Range<Instant>) -> [Option<Instant>; 9] {
    let new = || trace.sent().filter(|(_, segment)| !segment.again);
    let silent = new().take_while(|(at, _)| *at < blockage.end).last().map(|(at, _)| at);
    let started = |kind: FrameKind, from: Instant| {
        trace.down().iter().find(move |frame| frame.kind == kind && frame.on_air.start >= from)
    };
    let cycle = silent.and_then(|from| started(FrameKind::Filler, from)).map(|frame| frame.on_air.start);
    let probe = silent.and_then(|from| probes(trace, from..blockage.end).first().copied());
    let probe_frame = probe.and_then(|at| first_frame(trace, at));
    let fresh = new().find(|(at, _)| *at >= blockage.end);
    let fresh_frame = fresh.and_then(|(at, segment)| trace.first_frame(at, segment));
    let repair = started(FrameKind::Retransmission, blockage.end);
    let known = trace.acknowledgements().take_while(|(at, _)| *at < blockage.end).map(|(_, ack)| ack).max();
    let mended = repair.zip(known).and_then(|(frame, known)| {
        trace.acknowledgements().find(|(at, ack)| *at >= frame.arrives_at && *ack > known)
    });
    let flows = mended.and_then(|(_, goal)| {
        let (told, _) = trace.acknowledged().find(|(_, ack)| *ack >= goal)?;
        new().find(|(at, _)| *at >= told)
    });
    [
        silent,
        cycle,
        probe,
        probe_frame,
        fresh.map(|(at, _)| at),
        fresh_frame,
        repair.map(|frame| frame.on_air.start),
        mended.map(|(at, _)| at),
        flows.map(|(at, _)| at),
    ]
}

/// When TCP sent something again within a time.
fn probes(trace: &Trace, within: Range<Instant>) -> Vec<Instant> {
    let again = trace.sent().filter(|(at, segment)| segment.again && within.contains(at));
    again.map(|(at, _)| at).collect()
}

/// When the link starts the first frame of what TCP sent then.
fn first_frame(trace: &Trace, at: Instant) -> Option<Instant> {
    let (_, segment) = trace.sent().find(|(then, _)| *then == at)?;
    trace.first_frame(at, segment)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let trace = Trace::of(scheme, scenario, seed)?;
    let mut measured = Measurements::new();
    let Some(blockage) = trace.blockages().into_iter().next() else { return Ok(measured) };
    let events = events(&trace, &blockage);
    for (letter, at) in LETTERS.into_iter().zip(events) {
        measured.note(letter, at.map(|at| at.saturating_since(blockage.start).as_secs_f64()));
    }
    let ordered: Option<Vec<Instant>> = events.into_iter().collect();
    let is_ordered = ordered.is_some_and(|events| events.is_sorted());
    measured.note("in order", f64::from(u8::from(is_ordered)));
    // What reaches TCP then has left before the blockage: it may still answer that.
    let deaf = after(blockage.start, DELAY + 2.0 * FRAME)..blockage.end;
    let probes = probes(&trace, deaf.clone());
    let sent = trace.sent().filter(|(at, _)| deaf.contains(at)).count();
    measured.note("probes", probes.len() as f64);
    measured.note("besides", (sent - probes.len()) as f64);
    measured.note("not doubling", not_doubling(&probes).map(|intervals| intervals as f64));
    let waits = probes.iter().map(|&at| {
        let started = first_frame(&trace, at);
        // One that never starts waits until the run ends, and longer.
        started.map_or_else(|| trace.left(at), |started| started.saturating_since(at).as_secs_f64())
    });
    measured.note("wait", waits.reduce(f64::max));
    measured.note("out of turn", out_of_turn(trace.down(), &deaf) as f64);
    measured.note("dropped", trace.dropped(blockage.start) as f64);
    measured.note("rto", trace.state(blockage.start).map(|state| state.rto.as_secs_f64()));
    if WINDOWS.into_iter().any(|window| case.name == drawn(window)) {
        pictures::keep_sequences(&trace, &mut measured);
    }
    Ok(measured)
}

/// How many intervals between probes are not twice those before, give or take a tenth; none of fewer than three probes, which
/// do not tell.
fn not_doubling(probes: &[Instant]) -> Option<usize> {
    let intervals: Vec<f64> =
        probes.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).collect();
    let is_off = |pair: &&[f64]| !(1.9..=2.1).contains(&(pair[1] / pair[0]));
    (intervals.len() > 1).then(|| intervals.windows(2).filter(is_off).count())
}

/// Frames sent over again within a time though one that was sent over before them had been sent later: in the order of the
/// least recently sent there is none.
fn out_of_turn(frames: &[Frame], within: &Range<Instant>) -> usize {
    let mut last_sent = vec![None; 1024];
    let mut latest = 0;
    let mut count = 0;
    for frame in frames {
        let Some(trailer) = frame.trailer.filter(|_| frame.kind != FrameKind::Control) else { continue };
        let before = last_sent[usize::from(trailer.tx) % 1024].replace(frame.number);
        if frame.kind == FrameKind::Filler && within.contains(&frame.on_air.start) {
            let before = before.unwrap_or(0);
            count += usize::from(before < latest);
            latest = latest.max(before);
        }
    }
    count
}

pub(super) fn in_order(samples: &Samples) -> Ruling {
    let single = name(Window::Baseline, false);
    let at = |quantity: &str| samples.mean(NAME, &single, quantity);
    let happened = LETTERS.iter().filter(|letter| at(letter).is_some()).count();
    let is_ordered = at("in order").map(|ordered| ordered > 0.0);
    let wait = at("wait");
    let mut criteria = vec![
        Criterion::new("events of A to I that happened", "all 9, in order", happened as f64, is_ordered),
        Criterion::at_most("segments besides probes", at("besides"), 0.0),
        Criterion::at_most("intervals between probes that do not double", at("not doubling"), 0.0),
        Criterion::at_most("frames that went over the window out of turn", at("out of turn"), 0.0),
    ];
    // Without a probe nothing can be told.
    criteria.push(Criterion::at_most("longest wait of a probe's first frame, s", wait, FRAME));
    for window in WINDOWS {
        let single = name(window, false);
        let tell = |what: &str, quantity: &str| {
            let what = format!("{what}, {}", window.name());
            Criterion::told(what, samples.mean(NAME, &single, quantity))
        };
        for letter in LETTERS {
            criteria.push(tell(&format!("{letter}, s after the blockage's start"), letter));
        }
        criteria.push(tell("RTO as the blockage starts, s", "rto"));
        criteria.push(tell("packets that the queue had dropped by then", "dropped"));
        criteria.push(tell("probes", "probes"));
        let jittered = name(window, true);
        for (what, quantity) in [("all nine in order", "in order"), ("probes", "probes")] {
            let mean = mean(&samples.values(NAME, &jittered, quantity));
            criteria
                .push(Criterion::told(format!("mean over jittered runs: {what}, {}", window.name()), mean));
        }
    }
    let small = name(Window::Small, true);
    for (what, quantity) in [
        ("segments besides probes", "besides"),
        ("intervals that do not double", "not doubling"),
        ("frames out of turn", "out of turn"),
        ("longest wait of a probe's first frame, s", "wait"),
    ] {
        let values = samples.values(NAME, &small, quantity);
        let most = values.into_iter().reduce(f64::max);
        criteria.push(Criterion::told(format!("most over jittered runs: {what}, 64 KiB"), most));
    }
    Ruling::all(criteria)
}

#[cfg(test)]
mod tests {
    use link::cotmll::SubProtocol;

    use super::*;
    use crate::observe::events::TrailerMark;

    fn frame(number: u64, kind: FrameKind, tx: u16) -> Frame {
        let at = after(Instant::ZERO, number as f64 * FRAME);
        let trailer =
            TrailerMark { class: SubProtocol::Reliable, tx, first: true, last: true, ack: 0, ack_count: 0 };
        Frame {
            number,
            kind,
            bits: FRAME_BITS as u32,
            late_bits: 0,
            on_air: at..after(at, FRAME),
            arrives_at: after(at, FRAME + DELAY),
            sealed_at: None,
            trailer: Some(trailer),
            intact: None,
            arrived_at: None,
            discarded: None,
        }
    }

    #[test]
    fn turns_go_by_the_last_sending() {
        use FrameKind::{Filler, New, Retransmission};
        let count = |sent: &[(FrameKind, u16)]| {
            let frames = sent.iter().zip(1..).map(|(&(kind, tx), number)| frame(number, kind, tx));
            out_of_turn(&frames.collect::<Vec<_>>(), &(Instant::ZERO..Instant::MAX))
        };
        assert_eq!(
            count(&[(New, 7), (New, 8), (Filler, 7), (New, 9), (Filler, 8), (Filler, 7), (Filler, 9)]),
            0
        );
        assert_eq!(count(&[(New, 7), (New, 8), (Filler, 7), (New, 9), (Filler, 9), (Filler, 8)]), 1);
        // Sent again out of its turn, 7 is the last of the cycle.
        assert_eq!(count(&[(New, 7), (New, 8), (Retransmission, 7), (Filler, 8), (Filler, 7)]), 0);
        assert_eq!(count(&[(New, 7), (New, 8), (Filler, 8), (Filler, 7)]), 1);
    }

    #[test]
    fn only_intervals_that_double_are_back_off() {
        let at = |seconds: &[f64]| seconds.iter().map(|&s| after(Instant::ZERO, s)).collect::<Vec<_>>();
        assert_eq!(not_doubling(&at(&[1.0, 2.0, 4.0, 8.0])), Some(0));
        assert_eq!(not_doubling(&at(&[1.0, 2.0, 3.0, 5.0])), Some(1));
        assert_eq!(not_doubling(&at(&[1.0, 2.0])), None);
    }
}
