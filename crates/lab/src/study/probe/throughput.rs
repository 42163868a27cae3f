//! How much arrived, and when.

use base::{Duration, Instant};

use super::{Method, Probe};
use crate::metrics;
use crate::run::Received;

/// `T`: application bits a second over the bottleneck's rate (Faulkner 2004, 3.4); `T_over_C`: over what its errors
/// leave of that in the long run; `of_bound`: over what this realisation's open time less framing could carry;
/// `goodput`: in bit/s; `bound`: that bound in bit/s; `periods`: channel periods that the run covers.
pub(super) const THROUGHPUT: Probe = Probe {
    name: "throughput",
    version: 1,
    quantities: &["T", "T_over_C", "of_bound", "goodput", "bound", "periods", "complete"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            measured.note("T", run.normalised_throughput);
            measured.note("T_over_C", run.throughput_per_capacity);
            measured.note("of_bound", (run.bound_bps > 0.0).then(|| run.goodput_bps / run.bound_bps));
            measured.note("goodput", run.goodput_bps);
            measured.note("bound", run.bound_bps);
            measured.note("periods", run.channel_periods);
            measured.note("complete", f64::from(u8::from(run.complete)));
            Ok(())
        },
    },
};

/// `T_until` and `T_since`: application bits a second over the bottleneck's rate, before `split` seconds of the run (a number
/// of the experiment's `with`) and from then to its end.
pub(super) const SPLIT_THROUGHPUT: Probe = Probe {
    name: "split-throughput",
    version: 1,
    quantities: &["T_until", "T_since"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.progress = true,
        read: |trial, run, measured| {
            let (split, end) = (trial.number("split")?, trial.scenario().duration.as_secs_f64());
            let at = Instant::ZERO + Duration::from_secs_f64(split);
            let received_by = |received: &Received| {
                let next = received.points.partition_point(|(then, _)| *then <= at);
                received.points[..next].last().map_or(0, |(_, bytes)| *bytes)
            };
            let until: u64 = run.progress.iter().map(received_by).sum();
            let bottleneck = metrics::bottleneck(trial.scenario());
            let share = |bytes: u64, seconds: f64| {
                let rate = bottleneck.as_ref()?.rate;
                metrics::normalised_throughput(bytes as f64 * 8.0 / seconds, rate).filter(|_| seconds > 0.0)
            };
            measured.note("T_until", share(until, split.min(end)));
            measured.note("T_since", share(run.bytes - until, end - split));
            Ok(())
        },
    },
};

/// `seconds(name, n)`: from the opening of the n-th connection of the transfer called `name` to its last byte;
/// `group_seconds(name)`: from the first opening of its connections to the last byte of all; `retransmissions(name)` and
/// `timeouts(name)`: of all its senders; `resent_share(name)`: of its data segments, those sent again.
pub(super) const TRANSFERS: Probe = Probe {
    name: "transfers",
    version: 1,
    quantities: &["seconds", "group_seconds", "retransmissions", "timeouts", "resent_share"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            let late = "it did not arrive within the run";
            let mut names: Vec<&str> = run.transfers.iter().map(|transfer| transfer.name.as_str()).collect();
            names.dedup();
            for name in names {
                let group: Vec<_> = run.transfers.iter().filter(|transfer| transfer.name == name).collect();
                for (number, transfer) in (1_u32..).zip(&group) {
                    let arguments = [name.into(), f64::from(number).into()];
                    measured.set_or("seconds", &arguments, transfer.seconds, late);
                }
                let start = group.iter().filter_map(|transfer| transfer.opened).reduce(f64::min);
                let ends: Option<Vec<f64>> = group.iter().map(|t| Some(t.opened? + t.seconds?)).collect();
                let end = ends.and_then(|ends| ends.into_iter().reduce(f64::max));
                let whole = end.zip(start).map(|(end, start)| end - start);
                measured.set_or("group_seconds", &[name.into()], whole, late);
                let resent: u64 = group.iter().map(|transfer| transfer.retransmissions).sum();
                let sent: u64 = group.iter().map(|transfer| transfer.segments_sent).sum();
                let timeouts: u64 = group.iter().map(|transfer| transfer.timeouts).sum();
                measured.set("retransmissions", &[name.into()], resent as f64);
                measured.set("timeouts", &[name.into()], timeouts as f64);
                let share = (sent > 0).then(|| resent as f64 / sent as f64);
                measured.set_or("resent_share", &[name.into()], share, "no data were sent");
            }
            Ok(())
        },
    },
};

/// Of each transfer or source: `received(name)`, bytes; `flow_goodput(name)`, bits a second from its first opening to its last byte, or to the
/// end of the run where bytes are missing.
pub(super) const FLOWS: Probe = Probe {
    name: "flows",
    version: 1,
    quantities: &["received", "flow_goodput"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            let end_of_run = run.started + run.seconds;
            let transfers = run.transfers.iter().map(|it| {
                let end = it.opened.zip(it.seconds).map(|(opened, seconds)| opened + seconds);
                (it.name.as_str(), it.bytes, it.opened, end)
            });
            let sources = run.sources.iter().map(|it| (it.name.as_str(), it.bytes, it.opened, None));
            let all: Vec<_> = transfers.chain(sources).collect();
            let mut names: Vec<&str> = all.iter().map(|(name, ..)| *name).collect();
            names.dedup();
            for name in names {
                let group = || all.iter().filter(|(of, ..)| *of == name);
                let bytes: u64 = group().map(|(_, bytes, ..)| bytes).sum();
                let start = group().filter_map(|(_, _, opened, _)| *opened).reduce(f64::min);
                let end = group().map(|(.., end)| end.unwrap_or(end_of_run)).reduce(f64::max);
                let span = end.zip(start).map(|(end, start)| end - start).filter(|span| *span > 0.0);
                measured.set("received", &[name.into()], bytes as f64);
                measured.set_or(
                    "flow_goodput",
                    &[name.into()],
                    span.map(|span| bytes as f64 * 8.0 / span),
                    "it never opened",
                );
            }
            Ok(())
        },
    },
};

/// `steady(name)`: bits a second that the transfers or sources called `name` received after the first tenth of the run, when
/// windows and queues have filled.
pub(super) const STEADY: Probe = Probe {
    name: "steady",
    version: 1,
    quantities: &["steady"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.progress = true,
        read: |trial, run, measured| {
            let whole = trial.scenario().duration;
            let start = Instant::ZERO + whole / 10;
            let mut names: Vec<&str> = run.progress.iter().map(|received| received.name.as_str()).collect();
            names.dedup();
            for name in names {
                let of_name = run.progress.iter().filter(|received| received.name == name);
                let late = of_name.map(|received| {
                    let by_start = received.points.partition_point(|(at, _)| *at <= start);
                    let before = received.points[..by_start].last().map_or(0, |(_, bytes)| *bytes);
                    received.points.last().map_or(0, |(_, bytes)| *bytes) - before
                });
                let bits = late.sum::<u64>() as f64 * 8.0;
                measured.set("steady", &[name.into()], bits / (0.9 * whole.as_secs_f64()));
            }
            Ok(())
        },
    },
};

/// The series `progress`: seconds, and kilobytes that all applications had received by then.
pub(super) const PROGRESS: Probe = Probe {
    name: "progress",
    version: 1,
    quantities: &[],
    series: &["progress"],
    method: Method::Run {
        watch: |watch| watch.progress = true,
        read: |trial, run, measured| {
            if trial.is_first {
                let points = run.progress.iter().flat_map(|received| &received.points);
                let points = points.map(|(at, bytes)| (at.as_secs_f64(), *bytes as f64 / 1e3));
                measured.set_series("progress", crate::drawing::thin(points.collect()));
            }
            Ok(())
        },
    },
};
