//! Section 4.2.2 and figures 4-11 to 4-13: the latency of a rate-controlled source over load per capacity.
//!
//! The thesis does not say how its source cuts its stream. Here a record is a full segment's data, 1448 bytes, for two
//! reasons: Nagle's algorithm never holds a full segment back, so that the figures do not depend on whether the thesis
//! left it on, and the headers take the same share at every load, which with shorter records grows as the load falls.
//! What shorter records with and without Nagle's algorithm come to is told with the planning example.
//!
//! Load is what the application offers over the line's rate times the open fraction of time. Headers, framing and the
//! frames that each blockage costs come on top: a load of 1 is more than the channel carries.
//!
//! A run's mean is over the records that were read before its end, as the thesis's must have been.

mod backlog;
mod duration;
mod fraction;
mod laws;
mod planning;
mod restart;

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};

use super::Topic;
use super::setting::{Channel, RATE, Scheme, scenario};
use crate::claims::Measurements;
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::Spread;
use crate::traffic::latency::Sample;

pub(super) const TOPIC: Topic = Topic { experiments: &EXPERIMENTS, rule, remark, cells, figures };

const EXPERIMENTS: [Experiment; 7] = [
    fraction::EXPERIMENT,
    duration::EXPERIMENT,
    duration::WITHOUT_TCP,
    duration::LONG_RUNS,
    restart::EXPERIMENT,
    backlog::EXPERIMENT,
    planning::EXPERIMENT,
];

/// Bytes of a record: what a segment with time stamps holds.
const RECORD: u32 = 1448;
/// Bits on the line of the packet with such a record: three full frames and one of 48 bytes.
const PACKET_BITS: f64 = 3.0 * super::setting::FRAME_BITS + 384.0;
/// A run's seconds: the thesis's tests took five minutes.
const SECONDS: f64 = 300.0;
/// Runs a point, as the thesis's.
const SEEDS: u32 = 8;

/// Offered loads per capacity, in tenths, that a coarse sweep makes do with.
const FEW_LOADS: [u32; 5] = [2, 4, 6, 8, 9];

/// A source in place of the baseline's transfer.
#[derive(Clone, Copy, Debug)]
struct Source {
    transport: &'static str,
    /// Application bits per second.
    bps: f64,
    /// Bytes of a record.
    record: u32,
}

impl Source {
    const fn tcp(bps: f64) -> Self {
        Self { transport: "tcp", bps, record: RECORD }
    }

    fn setting(&self, more: &str) -> String {
        let Self { transport, bps, record } = self;
        format!(
            "traffic.download={{ rate = {{ from = \"server\", to = \"terminal\", rate = \"{bps:.0} bit/s\", \
             record = \"{record} B\", transport = \"{transport}\" {more}}} }}"
        )
    }

    /// The scenario of the source over COTMLL.
    fn over(&self, channel: &Channel, seconds: f64) -> Result<Scenario, ConfigError> {
        scenario(Scheme::TcpLl, channel, seconds, &[self.setting("")])
    }
}

/// Application bits per second at so many tenths of a channel's capacity.
fn offered(channel: &Channel, tenths: u32) -> f64 {
    load(tenths) * channel.capacity() * RATE
}

fn load(tenths: u32) -> f64 {
    f64::from(tenths) / 10.0
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { latencies: true, ..Watch::default() })?;
    let latency = run.sources[0].latency;
    let mut measured = Measurements::new();
    measured.note("L", latency.map(|latency| latency.mean));
    measured.note("median", latency.map(|latency| latency.p50));
    measured.note("timeouts", run.sources[0].timeouts as f64);
    measured.note("met", met(scenario, seed, &run.latencies["download"]));
    Ok(measured)
}

/// Blockages that a record met from when it could first be at the terminal, where the obstacles are, until it was read; the
/// median over those records that met any.
fn met(scenario: &Scenario, seed: u64, samples: &[Sample]) -> Option<f64> {
    let blocked: Vec<_> = blockages(scenario, seed).collect();
    let delay = scenario.link["satellite"].channel.delay;
    let count = |sample: &Sample| {
        let read = sample.sent.saturating_add(sample.latency);
        let there = sample.sent.saturating_add(delay);
        let over = blocked.partition_point(|blocked| blocked.end <= there);
        blocked.partition_point(|blocked| blocked.start < read).saturating_sub(over)
    };
    let counts = samples.iter().map(count).filter(|&count| count > 0);
    Spread::of(counts.map(|count| count as f64)).map(|spread| spread.median)
}

/// When the downlink was blocked in a run, at the terminal, where the obstacles are.
pub(super) fn blockages(
    scenario: &Scenario,
    seed: u64,
) -> impl Iterator<Item = core::ops::Range<Instant>> + use<> {
    let channel = &scenario.link["satellite"].channel;
    let timeline = channel.down().errors.timeline(&channel.streams(seed, "satellite", "down"));
    timeline.blocked_in(Instant::ZERO..Instant::ZERO + scenario.duration)
}

/// Bits per second that the source of a scenario offers.
fn rate_of(scenario: &Scenario) -> f64 {
    match &scenario.traffic["download"] {
        Traffic::Rate(source) => source.rate.as_bps() as f64,
        _ => unreachable!("a source took the transfer's place"),
    }
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-latency-exponential-in-load" => Some(fraction::exponential(samples)),
        "faulkner-latency-higher-with-f" => Some(fraction::higher(samples)),
        "faulkner-latency-inversion" => Some(duration::inversion(samples)),
        "faulkner-blockages-met-while-queued" => Some(restart::met_while_queued(samples)),
        "faulkner-headroom-clears-backlog" => Some(backlog::clears(samples)),
        "faulkner-planning-example" => Some(planning::example(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    match claim {
        "faulkner-latency-exponential-in-load" => Some(
            "Which law fits depends on f: at f = 0.1 and 0.3 a queue's, a + b / (1 - load), at f = 0.7 the exponential, \
             by Akaike's criterion. At f = 0.1 the line misses the required R^2 by less than its interval.",
        ),
        "faulkner-latency-inversion" => Some(
            "The order turns over at higher loads than the thesis has. Nor is TCP needed for it: datagrams over the same \
             link show it as well, probably since short blockages are many and each costs the link open time. Blockages of \
             5 s change places last, with six a run they scatter most; TCP's time-outs probably have their part in it.",
        ),
        "faulkner-blockages-met-while-queued" => Some(
            "The cost of a restart is not fixed. Over UDP a blockage costs the link a tenth of a second or less; over TCP \
             a long one costs more, probably since about every other blockage of 5 s ends in a time-out, whose back-off \
             outlasts it.",
        ),
        "faulkner-headroom-clears-backlog" => Some(
            "The backlog goes as the thesis says. But after some blockages reading is faster than offering sooner than a \
             round trip after the reopening: probably since the link, going over its window, has some of what is missing on \
             its way by then.",
        ),
        "faulkner-planning-example" => Some(
            "Neither Nagle's algorithm nor the length of records explains the latency. Datagrams come to about 2 s with a \
             window of 66 frames: what TCP takes beyond that is probably its own, and less with RACK. With 512 frames \
             datagrams take longer, probably since a frame that was lost again waits until all others in the window have \
             been repeated.",
        ),
        _ => None,
    }
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let parts = [
        fraction::cells(samples),
        duration::cells(samples),
        restart::cells(samples),
        planning::cells(samples),
    ];
    parts.into_iter().flatten().collect()
}

fn figures(samples: &Samples) -> Vec<Figure> {
    let mut figures: Vec<Figure> =
        [fraction::figure(samples), duration::figure(samples)].into_iter().flatten().collect();
    figures.extend(backlog::figures(samples));
    figures
}
