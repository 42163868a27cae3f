//! What links counted.

use base::Instant;

use super::{Method, Probe};

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
                let line = if down == "up" { link.channel.up() } else { link.channel.down() };
                let most = line.rate.as_bps() as f64 * run.seconds;
                for (counter, bits) in counters {
                    let Some(kind) = counter.strip_prefix("bits-").filter(|_| most > 0.0) else { continue };
                    measured.set("air", &[direction.as_str().into(), kind.into()], *bits as f64 / most);
                }
            }
            Ok(())
        },
    },
};

/// `blocked(direction)`: the share of the run's time in which a direction, such as `'satellite/down'`, is blocked.
pub(super) const BLOCKED: Probe = Probe {
    name: "blocked",
    version: 1,
    quantities: &["blocked"],
    series: &[],
    method: Method::Trial(|trial, measured| {
        let run = Instant::ZERO..Instant::ZERO + trial.scenario().duration;
        for (name, link) in &trial.scenario().link {
            let lines = [("down", link.channel.down()), ("up", link.channel.up())];
            for (direction, line) in lines {
                let timeline = line.errors.timeline(&link.channel.streams(trial.seed, name, direction));
                let share = timeline.blocked_time(run.clone()).as_secs_f64() / run.end.as_secs_f64();
                measured.set("blocked", &[format!("{name}/{direction}").as_str().into()], share);
            }
        }
        Ok(())
    }),
};
