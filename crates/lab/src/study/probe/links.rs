//! What links counted.

use base::Instant;
use channel::duplex;

use super::{Method, Probe};
use crate::metrics;
use crate::observe::QueueMark;

/// `counter(direction, name)`: as `longhaul run --json` has it under `links`, such as
/// `counter('satellite/down', 'frames-lost')`.
pub(super) const COUNTERS: Probe = Probe {
    name: "counters",
    version: 1,
    quantities: &["counter"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            for (direction, counters) in &run.links {
                for (name, count) in counters {
                    let arguments = [direction.as_str().into(), name.as_str().into()];
                    measured.set("counter", &arguments, *count as f64);
                }
            }
            Ok(())
        },
    },
};

/// `air(direction, kind)`: the share of the run in which the line of a direction, such as `'satellite/down'`, carries frames
/// of a kind: `new`, `retransmission`, `filler`, `repair` or `control`.
pub(super) const AIR: Probe = Probe {
    name: "air",
    version: 1,
    quantities: &["air"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |trial, run, measured| {
            for (direction, counters) in &run.links {
                let (name, down) = direction.split_once('/').unwrap_or((direction, "down"));
                let Some(link) = trial.scenario().link.get(name) else { continue };
                let rate = |channel: &duplex::Config| {
                    let line = if down == "up" { channel.up() } else { channel.down() };
                    line.rate.as_bps() as f64
                };
                let most = link.channels().map(rate).sum::<f64>() * run.seconds;
                for (counter, bits) in counters {
                    let Some(kind) = counter.strip_prefix("bits-").filter(|_| most > 0.0) else { continue };
                    measured.set("air", &[direction.as_str().into(), kind.into()], *bits as f64 / most);
                }
            }
            Ok(())
        },
    },
};

/// `air_per_bit`: bits that links with a protocol put on their lines, both ways, for each bit that applications received.
pub(super) const COST: Probe = Probe {
    name: "cost",
    version: 1,
    quantities: &["air_per_bit"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            let counted = run.links.values().flatten();
            let bits: u64 =
                counted.filter(|(name, _)| name.starts_with("bits-")).map(|(_, bits)| *bits).sum();
            let received = run.bytes as f64 * 8.0;
            measured.note("air_per_bit", (received > 0.0).then(|| bits as f64 / received));
            Ok(())
        },
    },
};

/// `blocked(direction)`: the share of the run's time in which a direction, such as `'satellite/down'`, is blocked; of a path beside a link's
/// channel `'satellite/lte/down'`.
pub(super) const BLOCKED: Probe = Probe {
    name: "blocked",
    version: 1,
    quantities: &["blocked"],
    series: &[],
    method: Method::Trial(|trial, measured| {
        let run = Instant::ZERO..Instant::ZERO + trial.scenario().duration;
        let ways = trial.scenario().link.iter().flat_map(|(name, link)| link.ways(name));
        for way in ways {
            for (direction, line) in [("down", way.channel.down()), ("up", way.channel.up())] {
                let timeline = line.errors.timeline(&way.streams(trial.seed, direction));
                let share = timeline.blocked_time(run.clone()).as_secs_f64() / run.end.as_secs_f64();
                measured.set("blocked", &[format!("{}/{direction}", way.owner).as_str().into()], share);
            }
        }
        Ok(())
    }),
};

/// `queue_length(direction)`: packets that waited for a direction, such as `'satellite/down'`, on average after the first tenth of
/// the run; `queue_average(direction)`: the mean of the average that its queue goes by, if it is one of RED. The series of both names,
/// over seconds, are those of the bottleneck.
pub(super) const QUEUES: Probe = Probe {
    name: "queues",
    version: 1,
    quantities: &["queue_length", "queue_average"],
    series: &["queue_length", "queue_average"],
    method: Method::Run {
        watch: |watch| watch.queues = true,
        read: |trial, run, measured| {
            let whole = trial.scenario().duration;
            let span = Instant::ZERO + whole / 10..Instant::ZERO + whole;
            for (direction, trace) in &run.queues {
                let arguments = [direction.as_str().into()];
                measured.set_or("queue_length", &arguments, trace.mean_packets(&span), "no time");
                let average = trace.mean_average(&span);
                measured.set_or("queue_average", &arguments, average, "the queue goes by no average");
            }
            let bottleneck = metrics::bottleneck(trial.scenario()).filter(|_| trial.is_first);
            if let Some(trace) = bottleneck.and_then(|found| run.queues.get(&found.direction)) {
                let mut series = |name, value: fn(&QueueMark) -> Option<f64>| {
                    let points =
                        trace.marks.iter().filter_map(|mark| Some((mark.at.as_secs_f64(), value(mark)?)));
                    measured.set_series(name, crate::drawing::thin(points.collect()));
                };
                series("queue_length", |mark| Some(mark.packets.into()));
                series("queue_average", |mark| mark.average);
            }
            Ok(())
        },
    },
};
