//! Figure 4-7: the nine events of a blockage, of TCP and of the link below it, and what both send in it.

use core::ops::Range;

use base::Instant;
use link::FrameKind;

use super::trace::{SEGMENT, Trace, after, seconds};
use crate::claims::Measurements;
use crate::observe::events::Frame;
use crate::study::probe::{Method, Probe};

/// Of the first blockage of a run. `event(letter)`: when each of figure 4-7's events `A` to `I` happened, in seconds of the
/// run; `happened`: how many did; `in_order`: whether all nine did, in the order of their letters; `rto` as it starts, in
/// seconds, and `dropped`, packets that the queue had dropped by then.
///
/// While TCP hears nothing: `probes`, segments that it sends again, and `besides`, other data segments; `not_doubling`:
/// intervals between probes that are not twice the one before, give or take a tenth; `probe_wait`: the longest from a probe
/// to its first frame, in seconds; `out_of_turn`: frames that the link sent over again though one that went before them had
/// been sent later.
///
/// Series, of segments and frames by their place in the stream: `first_sent`, `sent_again`, `acknowledged`; `new_frame`,
/// `flagged_as_lost`, `over_again`; and `blocked`.
pub(super) const CHOREOGRAPHY: Probe = Probe {
    name: "choreography",
    version: 1,
    quantities: &[
        "event",
        "happened",
        "in_order",
        "rto",
        "dropped",
        "probes",
        "besides",
        "not_doubling",
        "probe_wait",
        "out_of_turn",
    ],
    series: &[
        "blocked",
        "first_sent",
        "sent_again",
        "acknowledged",
        "new_frame",
        "flagged_as_lost",
        "over_again",
    ],
    method: Method::Run {
        watch: Trace::watch,
        read: |trial, run, measured| {
            let trace = Trace::of(run);
            let Some(blockage) = trace.blockages().into_iter().next() else { return Ok(()) };
            measure_events(measured, &trace, &blockage);
            // What reaches TCP after that has left after the blockage began.
            let delay = trial.scenario().link["satellite"].channel.delay.as_secs_f64();
            let frame = trace.down().iter().map(|frame| seconds(frame.on_air.start, frame.on_air.end));
            let frame = frame.fold(0.0, f64::max);
            measure_silence(measured, &trace, &(after(blockage.start, delay + 2.0 * frame)..blockage.end));
            measured.set("dropped", &[], trace.dropped(blockage.start) as f64);
            measured.note("rto", trace.state(blockage.start).map(|state| state.rto.as_secs_f64()));
            if trial.is_first {
                keep_series(measured, &trace, &blockage);
            }
            Ok(())
        },
    },
};

/// The letters of figure 4-7.
const LETTERS: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

fn measure_events(measured: &mut Measurements, trace: &Trace<'_>, blockage: &Range<Instant>) {
    let events = events(trace, blockage);
    for (letter, at) in LETTERS.into_iter().zip(events) {
        measured.set_or("event", &[letter.into()], at.map(Instant::as_secs_f64), "it did not happen");
    }
    measured.set("happened", &[], events.iter().flatten().count() as f64);
    let all: Option<Vec<Instant>> = events.into_iter().collect();
    measured.set("in_order", &[], f64::from(u8::from(all.is_some_and(|events| events.is_sorted()))));
}

/// When each of the nine events happened, in the order of their letters; none if it did not.
///
/// - A: TCP sends its last new segment of the blockage. B: the link begins to go over its window again.
/// - C: TCP sends a segment again, while blocked. D: the link sends its first frame.
/// - E: TCP sends new data after the reopening. F: the link sends its first frame.
/// - G: the link sends a frame again that a block acknowledgement flagged.
/// - H: after that has arrived, the receiver acknowledges more than before. I: on that, TCP sends new data.
fn events(trace: &Trace<'_>, blockage: &Range<Instant>) -> [Option<Instant>; 9] {
    let new = || trace.sent().filter(|(_, segment)| !segment.again).map(|(at, _)| at);
    let started = |kind: FrameKind, from: Instant| {
        trace.down().iter().find(move |frame| frame.kind == kind && frame.on_air.start >= from)
    };
    let silent = new().take_while(|at| *at < blockage.end).last();
    let cycle = silent.and_then(|from| started(FrameKind::Filler, from)).map(|frame| frame.on_air.start);
    let probe = silent.and_then(|from| trace.resent(from..blockage.end).first().copied());
    let fresh = new().find(|at| *at >= blockage.end);
    let repair = started(FrameKind::Retransmission, blockage.end);
    let known = trace.acknowledgements().take_while(|(at, _)| *at < blockage.end).map(|(_, ack)| ack).max();
    let mended = repair.zip(known).and_then(|(frame, known)| {
        trace.acknowledgements().find(|(at, ack)| *at >= frame.arrives_at && *ack > known)
    });
    let flows = mended.and_then(|(_, goal)| {
        let (told, _) = trace.acknowledged().find(|(_, ack)| *ack >= goal)?;
        new().find(|at| *at >= told)
    });
    [
        silent,
        cycle,
        probe,
        probe.and_then(|at| trace.first_frame(at)),
        fresh,
        fresh.and_then(|at| trace.first_frame(at)),
        repair.map(|frame| frame.on_air.start),
        mended.map(|(at, _)| at),
        flows,
    ]
}

fn measure_silence(measured: &mut Measurements, trace: &Trace<'_>, deaf: &Range<Instant>) {
    let probes = trace.resent(deaf.clone());
    let sent = trace.sent().filter(|(at, _)| deaf.contains(at)).count();
    measured.set("probes", &[], probes.len() as f64);
    measured.set("besides", &[], (sent - probes.len()) as f64);
    let doubling = not_doubling(&probes).map(|intervals| intervals as f64);
    measured.set_or("not_doubling", &[], doubling, "fewer than three probes do not tell");
    // One that never starts waits until the run ends, and longer.
    let wait =
        |&at: &Instant| trace.first_frame(at).map_or_else(|| trace.left(at), |start| seconds(at, start));
    let wait = probes.iter().map(wait).reduce(f64::max);
    measured.set_or("probe_wait", &[], wait, "TCP sent no probe");
    measured.set("out_of_turn", &[], out_of_turn(trace.down(), deaf) as f64);
}

/// How many intervals between probes are not twice those before, give or take a tenth; none of fewer than three probes.
fn not_doubling(probes: &[Instant]) -> Option<usize> {
    let intervals: Vec<f64> = probes.windows(2).map(|pair| seconds(pair[0], pair[1])).collect();
    let is_off = |pair: &&[f64]| !(1.9..=2.1).contains(&(pair[1] / pair[0]));
    (intervals.len() > 1).then(|| intervals.windows(2).filter(is_off).count())
}

/// Frames sent over again within a time though one that was sent over before them had been sent later: in the order of the
/// least recently sent there is none.
fn out_of_turn(frames: &[Frame], within: &Range<Instant>) -> usize {
    let mut last_sent = vec![None; 1024];
    let (mut latest, mut count) = (0, 0);
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

/// Keeps what happens from a second before the blockage to a few after it.
fn keep_series(measured: &mut Measurements, trace: &Trace<'_>, blockage: &Range<Instant>) {
    let shown = blockage.start.as_secs_f64() - 1.0..blockage.end.as_secs_f64() + 4.0;
    let mut keep = |name: &str, points: Vec<(Instant, f64)>| {
        let points = points.into_iter().map(|(at, y)| (at.as_secs_f64(), y));
        measured.set_series(name, points.filter(|(at, _)| shown.contains(at)));
    };
    let sent = |again: bool| {
        let sent = trace.sent().filter(move |(_, segment)| segment.again == again);
        sent.map(|(at, segment)| (at, segment.seq as f64 / SEGMENT)).collect()
    };
    keep("first_sent", sent(false));
    keep("sent_again", sent(true));
    keep("acknowledged", trace.acknowledged().map(|(at, ack)| (at, ack as f64 / SEGMENT)).collect());
    let [new, flagged, again] = frames(trace);
    keep("new_frame", new);
    keep("flagged_as_lost", flagged);
    keep("over_again", again);
    measured.set_series("blocked", trace.shades());
}

/// When frames were sent, new, flagged and over again, each with the place of its first transmission among all. Sequence numbers
/// go around at 1024.
fn frames(trace: &Trace<'_>) -> [Vec<(Instant, f64)>; 3] {
    let mut places = vec![0.0; 1024];
    let mut next = 0.0;
    let mut marks: [Vec<(Instant, f64)>; 3] = Default::default();
    for frame in trace.down() {
        let Some(trailer) = frame.trailer else { continue };
        let place = &mut places[usize::from(trailer.tx) % 1024];
        let kind = match frame.kind {
            FrameKind::New => {
                *place = next;
                next += 1.0;
                0
            }
            FrameKind::Retransmission => 1,
            FrameKind::Filler => 2,
            FrameKind::Repair | FrameKind::Control => continue,
        };
        marks[kind].push((frame.on_air.start, *place));
    }
    marks
}

#[cfg(test)]
mod tests {
    use link::cotmll::SubProtocol;

    use super::*;
    use crate::observe::events::TrailerMark;

    /// A frame of 15 ms, a quarter of a second from the other end.
    fn frame(number: u64, kind: FrameKind, tx: u16) -> Frame {
        let at = after(Instant::ZERO, number as f64 * 0.015);
        let trailer =
            TrailerMark { class: SubProtocol::Reliable, tx, first: true, last: true, ack: 0, ack_count: 0 };
        Frame {
            number,
            kind,
            bits: 3968,
            late_bits: 0,
            on_air: at..after(at, 0.015),
            arrives_at: after(at, 0.265),
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
