//! Section 4.1.1, figure 4-3: a transfer segment by segment over bit errors, and what became of segments that timed out.
//!
//! The first 30 s are looked at, as in the figure. Runs last longer, so that what timed out towards their end has the time to
//! arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use base::{Duration, Instant};

use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::{LinkDirection, PacketStep, Segment};
use crate::run::Run;
use crate::study::probe::{Method, Probe, Trial};

/// `bytes`: that arrived in time; `gap_before` and `gap_after`: the longest time between retransmissions before 7 s and from
/// then on, in seconds; `timed_out`: segments that the timer had sent again; of these `original_first`: those whose first
/// sending certainly came before the copy, and `queue_dropped`: those that the queue before the link had dropped;
/// `in_recovery`: segments that only fast recovery sent again; `expiries`: of the timer.
///
/// The series: `flights`, from each segment's first transmission to its first reception; `sent_again`; `received_again`.
pub(super) const ERROR_TRACE: Probe = Probe {
    name: "error-trace",
    version: 1,
    quantities: &[
        "bytes",
        "gap_before",
        "gap_after",
        "timed_out",
        "original_first",
        "queue_dropped",
        "in_recovery",
        "expiries",
    ],
    series: &["flights", "sent_again", "received_again"],
    method: Method::Run {
        watch: |watch| {
            watch.events = true;
            watch.progress = true;
        },
        read: measure,
    },
};

const SHOWN: Duration = Duration::from_secs(30);
/// From when on the thesis sees widely spaced retransmissions.
const SPREAD_FROM: Duration = Duration::from_secs(7);
/// Bytes of a full segment.
const SEGMENT: f64 = 1448.0;

fn measure(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let points = run.progress.iter().flat_map(|received| &received.points);
    let bytes = points.filter(|(at, _)| *at <= shown()).map(|(_, bytes)| *bytes).max();
    measured.note("bytes", bytes.unwrap_or(0) as f64);
    for (quantity, is_late) in [("gap_before", false), ("gap_after", true)] {
        measured.set_or(quantity, &[], largest_gap(&run.log, is_late), "nothing was sent again");
    }
    measure_timed_out(trial, &run.log, measured);
    let states = run.log.sender_states("server").take_while(|(at, _)| *at <= shown());
    measured.note("expiries", states.last().map_or(0.0, |(_, state)| f64::from(state.timeouts)));
    if trial.is_first {
        keep_segments(&run.log, measured);
    }
    Ok(())
}

fn shown() -> Instant {
    Instant::ZERO + SHOWN
}

/// The data segments that the server sends again in time.
fn sent_again(log: &EventLog) -> impl Iterator<Item = (Instant, &Segment)> {
    log.segments("server").filter(|(at, segment)| segment.sent && segment.again && *at <= shown())
}

/// The longest time between consecutive retransmissions of which the later one comes before the spread, or after it.
fn largest_gap(log: &EventLog, is_late: bool) -> Option<f64> {
    let times: Vec<Instant> = sent_again(log).map(|(at, _)| at).collect();
    let gaps = times.windows(2).filter(|pair| (pair[1] >= Instant::ZERO + SPREAD_FROM) == is_late);
    gaps.map(|pair| (pair[1] - pair[0]).as_secs_f64()).reduce(f64::max)
}

fn measure_timed_out(trial: &Trial<'_>, log: &EventLog, measured: &mut Measurements) {
    let mut recovering = BTreeMap::new();
    for (at, state) in log.sender_states("server") {
        recovering.insert(at, state.recovering);
    }
    // A state is logged at the same time as the segments that its change sends.
    let in_recovery = |at: Instant| recovering.range(..=at).next_back().is_some_and(|(_, &is)| is);
    let (mut timed_out, mut recovered) = (BTreeSet::new(), BTreeSet::new());
    for (at, segment) in sent_again(log) {
        let of = if in_recovery(at) { &mut recovered } else { &mut timed_out };
        of.insert(segment.seq);
    }
    let passages = passages(log);
    let delay = trial.scenario().link["satellite"].channel.delay;
    let count = |which: &dyn Fn(&Passage) -> bool| {
        timed_out.iter().filter(|seq| passages.get(seq).is_some_and(which)).count() as f64
    };
    measured.note("timed_out", timed_out.len() as f64);
    measured.note("original_first", count(&|passage| passage.is_original_first(delay)));
    measured.note("queue_dropped", count(&|passage| passage.first_dropped));
    measured.note("in_recovery", recovered.difference(&timed_out).count() as f64);
}

/// What the link did with the transmissions of one segment.
#[derive(Debug, Default)]
struct Passage {
    queued: u32,
    /// Whether the queue dropped the first of them.
    first_dropped: bool,
    /// When the link took those that the queue did not drop.
    taken: Vec<Instant>,
    /// When the first of them came out.
    delivered: Option<Instant>,
}

impl Passage {
    /// Whether the first transmission came out before any copy can have come. Of a link that loses packets this says nothing.
    fn is_original_first(&self, delay: Duration) -> bool {
        let before_copy = |at: Instant| self.taken.get(1).is_none_or(|&copy| at < copy + delay);
        !self.first_dropped && self.delivered.is_some_and(before_copy)
    }
}

fn passages(log: &EventLog) -> BTreeMap<u64, Passage> {
    let mut passages: BTreeMap<u64, Passage> = BTreeMap::new();
    for (at, packet) in log.packets("satellite", LinkDirection::Down).filter(|(_, packet)| packet.len > 0) {
        let passage = passages.entry(packet.seq).or_default();
        match packet.step {
            PacketStep::Queued => passage.queued += 1,
            // What the queue drops is what has just come.
            PacketStep::Dropped => passage.first_dropped |= passage.queued == 1,
            PacketStep::Taken => passage.taken.push(at),
            PacketStep::Delivered => passage.delivered = passage.delivered.or(Some(at)),
            PacketStep::Lost => {}
        }
    }
    passages
}

fn keep_segments(log: &EventLog, measured: &mut Measurements) {
    let place = |at: Instant, seq: u64| (at.as_secs_f64(), seq as f64 / SEGMENT);
    let mut first_sent = BTreeMap::new();
    for (at, segment) in log.segments("server").filter(|(_, segment)| segment.sent && segment.len > 0) {
        first_sent.entry(segment.seq).or_insert(at);
    }
    let received = || {
        let segments = log.segments("terminal");
        segments.filter(|(at, segment)| !segment.sent && segment.len > 0 && *at <= shown())
    };
    let mut flights = Vec::new();
    for (at, segment) in received().filter(|(_, segment)| !segment.again) {
        if let Some(&first) = first_sent.get(&segment.seq) {
            flights.extend([place(first, segment.seq), place(at, segment.seq)]);
        }
    }
    measured.set_series("flights", flights);
    measured.set_series("sent_again", sent_again(log).map(|(at, segment)| place(at, segment.seq)));
    let twice = received().filter(|(_, segment)| segment.again);
    measured.set_series("received_again", twice.map(|(at, segment)| place(at, segment.seq)));
}
