//! Figure 4-13: what a blockage leaves behind, with room to catch up and without.
//!
//! A latency is back where it was when it is at most 1.2 times the median of the two seconds before the blockage. Reading
//! is faster than offering from when more than that comes within the 100 ms after a record: records are 110 ms apart as
//! they are offered, so that it takes two.

use core::ops::Range;
use std::io;

use base::{Duration, Instant};

use super::blockages::{blockages, read_at};
use crate::claims::Measurements;
use crate::run::Run;
use crate::scenario::Traffic;
use crate::statistics::{Spread, mean};
use crate::study::probe::{Method, Probe, Trial};
use crate::traffic::latency::Sample;

/// Of the blockages of a run that another one follows: `cleared`: the share after which latency is back before the next
/// one. Means over them: `back`: seconds from the reopening until then; `speed`: what is read from the reopening until then,
/// or until the next blockage, over what is offered; `faster`: seconds from the reopening until reading is faster than
/// offering. `L_by(seconds)`: the mean latency of the records read by then. The series `flights`: when a record
/// was written and when it was read, with its number, for one record in four; `blocked`: starts and ends of blockages.
pub(super) const BACKLOG: Probe = Probe {
    name: "backlog",
    version: 1,
    quantities: &["cleared", "back", "speed", "faster", "L_by"],
    series: &["flights", "blocked"],
    method: Method::Run { watch: |watch| watch.latencies = true, read: measure },
};

/// How much above the latency before the blockage is no backlog.
const CLEARED: f64 = 1.2;
/// Before a blockage, in which a latency is taken for that without one.
const BEFORE: Duration = Duration::from_secs(2);
/// Over which a rate of reading is taken.
const WINDOW: Duration = Duration::from_millis(100);
/// One record in so many is drawn.
const DRAWN: usize = 4;
/// When the growth of latency is looked at, in seconds.
const LENGTHS: [f64; 3] = [300.0, 600.0, 1200.0];

/// What followed one blockage.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// From the reopening until a latency was back where it had been, in seconds; none if it was not before the next blockage.
    back: Option<f64>,
    /// What was read until then a second, over what was offered.
    speed: f64,
    /// From the reopening until reading got faster than offering, in seconds.
    faster: Option<f64>,
}

/// The records of a run in the order of their reading.
struct Records<'a> {
    read: &'a [Sample],
    /// Bits a second.
    offered: f64,
}

impl Records<'_> {
    fn between(&self, from: Instant, to: Instant) -> &[Sample] {
        let first = self.read.partition_point(|record| read_at(record) < from);
        &self.read[first..self.read.partition_point(|record| read_at(record) < to).max(first)]
    }

    /// What was read a second, over what was offered.
    fn rate(&self, from: Instant, to: Instant) -> f64 {
        let bytes: u64 = self.between(from, to).iter().map(|record| u64::from(record.bytes)).sum();
        bytes as f64 * 8.0 / to.saturating_since(from).as_secs_f64() / self.offered
    }

    fn after(&self, blocked: &Range<Instant>, next: Instant) -> Option<Recovery> {
        let calm = self.between(blocked.start - BEFORE, blocked.start);
        let calm = Spread::of(calm.iter().map(|record| record.latency.as_secs_f64()))?.median;
        let is_back = |record: &&Sample| record.latency.as_secs_f64() <= CLEARED * calm;
        let back = self.between(blocked.end, next).iter().find(is_back).map(read_at);
        // What comes together is read at one moment: the record itself does not count, others of its moment do.
        let is_faster = |record: &&Sample| {
            let from = read_at(record);
            let own = f64::from(record.bytes) * 8.0 / WINDOW.as_secs_f64() / self.offered;
            self.rate(from, from + WINDOW) - own > 1.0
        };
        let faster = self.between(blocked.end, next).iter().find(is_faster).map(read_at);
        let since = |time: Instant| time.saturating_since(blocked.end).as_secs_f64();
        let speed = self.rate(blocked.end, back.unwrap_or(next));
        Some(Recovery { back: back.map(since), speed, faster: faster.map(since) })
    }
}

fn measure(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let Some(Traffic::Rate(source)) = scenario.traffic.get("download") else {
        return Err(io::Error::other("a backlog is that of a source called download"));
    };
    let read = run.latencies.get("download").map_or(&[][..], Vec::as_slice);
    let records = Records { read, offered: source.rate.as_bps() as f64 };
    let blocked = blockages(scenario, trial.seed);
    let pairs = blocked.windows(2).filter_map(|pair| records.after(&pair[0], pair[1].start));
    let recoveries: Vec<Recovery> = pairs.collect();
    let over = |value: &dyn Fn(&Recovery) -> Option<f64>| {
        mean(&recoveries.iter().filter_map(value).collect::<Vec<_>>())
    };
    measured.note("cleared", over(&|recovery| Some(f64::from(u8::from(recovery.back.is_some())))));
    measured.note("back", over(&|recovery| recovery.back));
    measured.note("speed", over(&|recovery| Some(recovery.speed)));
    measured.note("faster", over(&|recovery| recovery.faster));
    for seconds in LENGTHS {
        let by = Instant::ZERO + Duration::from_secs_f64(seconds);
        let latencies = read.iter().filter(|record| read_at(record) <= by);
        let latencies: Vec<f64> = latencies.map(|record| record.latency.as_secs_f64()).collect();
        let within = Instant::ZERO + scenario.duration >= by;
        let value = mean(&latencies).filter(|_| within);
        measured.set_or("L_by", &[seconds.into()], value, "the run is shorter");
    }
    if trial.is_first {
        let every = read.iter().zip(1_u32..).step_by(DRAWN);
        let ends = every.flat_map(|(record, number)| {
            [record.sent, read_at(record)].map(|time| (time.as_secs_f64(), f64::from(number)))
        });
        measured.set_series("flights", ends);
        let shades = blocked.iter().map(|blocked| (blocked.start.as_secs_f64(), blocked.end.as_secs_f64()));
        measured.set_series("blocked", shades);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    /// A record each 100 ms; after a blockage they are read from 13 s on, each 30 ms until all have come.
    fn records() -> Vec<Sample> {
        let record = |number: u32| {
            let sent = f64::from(number) / 10.0;
            let waited = if number < 98 { 0.0 } else { 13.0 + f64::from(number - 98) * 0.03 };
            let latency = Duration::from_secs_f64((sent + 0.25).max(waited) - sent);
            Sample { sent: at(sent), latency, bytes: 1000 }
        };
        (0..200).map(record).collect()
    }

    #[test]
    fn a_backlog_is_cleared_once_latency_is_back() {
        let read = records();
        let records = Records { read: &read, offered: 80_000.0 };
        let recovery = records.after(&(at(10.0)..at(12.0)), at(20.0)).unwrap();
        // Number 140 is the first that is read within 1.2 times 250 ms, at 14.26 s: 42 have been read before it.
        assert!((recovery.back.unwrap() - 2.26).abs() < 1e-6, "{recovery:?}");
        assert!((recovery.faster.unwrap() - 1.0).abs() < 1e-6, "{recovery:?}");
        assert!((recovery.speed - 4.2 / 2.26).abs() < 1e-6, "{recovery:?}");
        // Before the next blockage nothing was read: then latency is not back.
        let recovery = records.after(&(at(10.0)..at(12.0)), at(12.5)).unwrap();
        assert_eq!((recovery.back, recovery.faster, recovery.speed), (None, None, 0.0));
    }
}
