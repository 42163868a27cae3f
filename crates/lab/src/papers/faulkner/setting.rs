//! The thesis's link and channel, and the scenarios that experiments run on them.

use std::io;
use std::path::Path;

use base::config::ConfigError;
use base::{Duration, Instant, Rate};

use crate::claims::Measurements;
use crate::metrics::{self, STEADY_PERIODS};
use crate::reproduce::{Case, Effort};
use crate::run::{self, Run, Watch};
use crate::scenario::{Override, Scenario, Suite};

/// The line's bits per second: the thesis's 256 kbit/s, of which 66 frames/s, 46 kB, 20 kB and 3.7e-9 all follow.
pub(super) const RATE: f64 = LINE.as_bps() as f64;
const LINE: Rate = Rate::from_bps(262_144);
/// Bits of a full frame (section 2.3).
pub(super) const FRAME_BITS: f64 = 3968.0;
/// Frames of the baseline's window (section 4.1).
pub(super) const WINDOW: u32 = 512;

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// One packet a frame, no retransmission.
    Tcp,
    /// COTMLL, which delivers in order.
    TcpLl,
    /// COTMLL, which delivers each packet as soon as it is whole.
    Unordered,
}

impl Scheme {
    /// Its name in cases, tables and figures.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::TcpLl => "TCP-LL",
            Self::Unordered => "TCP-LL, unordered",
        }
    }

    /// What sets it, with a window of so many frames: among a scenario's further keys it takes the place of the baseline's.
    pub(super) fn protocol(self, window: u32) -> String {
        match self {
            Self::Tcp => "link.satellite.protocol=plain".to_owned(),
            Self::TcpLl => cotmll(&format!("window = {window}, ordered = true")),
            Self::Unordered => cotmll(&format!("window = {window}, ordered = false")),
        }
    }
}

fn cotmll(parameters: &str) -> String {
    format!("link.satellite.protocol={{ cotmll = {{ {parameters} }} }}")
}

/// A scheme on a channel for so many seconds, with further keys as `--set` takes them.
pub(super) fn scenario(
    scheme: Scheme,
    channel: &Channel,
    seconds: f64,
    more: &[String],
) -> Result<Scenario, ConfigError> {
    let mut set = vec![scheme.protocol(WINDOW), channel.setting(), format!("duration={seconds} s")];
    set.extend_from_slice(more);
    laid_over("baseline", BASELINE, scheme.name(), &set)
}

const BASELINE: &str = include_str!("../../../../../scenarios/faulkner/baseline.toml");

/// COTMLL with these parameters, saturated in both directions, on a channel for so many seconds, with further keys as
/// `--set` takes them.
pub(super) fn saturated(
    parameters: &str,
    channel: &Channel,
    seconds: f64,
    more: &[String],
) -> Result<Scenario, ConfigError> {
    let mut set = vec![cotmll(parameters), channel.setting(), format!("duration={seconds} s")];
    set.extend_from_slice(more);
    laid_over("saturated", SATURATED, "COTMLL", &set)
}

const SATURATED: &str = include_str!("../../../../../scenarios/faulkner/saturated.toml");
/// Bytes of a packet of that scenario's sources, and of the record in it.
pub(super) const PACKET: f64 = 1500.0;
pub(super) const RECORD: f64 = 1472.0;

/// One of the thesis's scenario files with keys set, under a scheme's name.
pub(super) fn laid_over(
    file: &str,
    text: &str,
    scheme: &str,
    set: &[String],
) -> Result<Scenario, ConfigError> {
    let file = format!("scenarios/faulkner/{file}.toml");
    let parse =
        |change: &String| change.parse::<Override>().map_err(|error| ConfigError::about(&file, error));
    let overrides = set.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let suite = Suite::parse(&file, text, Path::new(""), &overrides)?;
    Ok(Scenario { name: scheme.to_owned(), ..suite.scenario })
}

/// A channel of the thesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Channel {
    /// Nothing goes wrong.
    Clear,
    /// Blocked for the fraction `f` of the time, `d` seconds on average.
    Blockage {
        /// Blocked fraction.
        f: f64,
        /// Mean blockage in seconds.
        d: f64,
    },
    /// The binary symmetric channel with this bit error rate.
    BitErrors(f64),
    /// Each packet or frame is lost with this probability.
    Erasure(f64),
    /// Blocked for so many seconds, then open for so many; the first blockage comes after so many.
    Periodic {
        /// Seconds of a blockage.
        blocked: f64,
        /// Seconds between blockages.
        open: f64,
        /// When the first one starts, in seconds.
        first: f64,
    },
}

impl Channel {
    /// Its capacity as a fraction of the rate: the open fraction of time, or 1 less a bit's entropy.
    pub(super) fn capacity(&self) -> f64 {
        match *self {
            Self::Clear => 1.0,
            Self::Blockage { f, .. } => 1.0 - f,
            Self::BitErrors(ber) => channel::capacity::of_bit_errors(ber),
            Self::Erasure(probability) => channel::capacity::of_erasure(probability),
            Self::Periodic { blocked, open, .. } => open / (blocked + open),
        }
    }

    /// Mean time of a good and a bad state together, in seconds; none if there are no blockages.
    pub(super) fn period(&self) -> Option<f64> {
        match *self {
            Self::Blockage { f, d } if f > 0.0 => Some(d / f),
            Self::Periodic { blocked, open, .. } => Some(blocked + open),
            _ => None,
        }
    }

    /// How long a run takes to be steady: 150 periods, and never less than `least` seconds; an eighth of both if it has to be
    /// quick.
    pub(super) fn steady(&self, least: f64, effort: Effort) -> f64 {
        let full = self.period().map_or(least, |period| (f64::from(STEADY_PERIODS) * period).max(least));
        effort.choose(full / 8.0, full).ceil()
    }

    fn setting(&self) -> String {
        let errors = match *self {
            Self::Clear => "\"none\"".to_owned(),
            Self::Blockage { f: 0.0, .. } => "\"none\"".to_owned(),
            Self::Blockage { f, d } => format!("{{ gilbert-elliott = {{ f = {f:?}, d = \"{d} s\" }} }}"),
            Self::BitErrors(0.0) => "\"none\"".to_owned(),
            Self::BitErrors(ber) => format!("{{ bit-errors = {{ ber = {ber:?} }} }}"),
            Self::Erasure(probability) => format!("{{ erasure = {{ probability = {probability:?} }} }}"),
            Self::Periodic { blocked, open, first } => format!(
                "{{ periodic = {{ blocked = \"{blocked} s\", open = \"{open} s\", first = \"{first} s\" }} }}"
            ),
        };
        format!("link.satellite.channel.errors={errors}")
    }
}

/// A run with all of its events in the log, or all of hosts if only those are asked for, and what else is to be watched.
///
/// # Errors
/// There were more than a log keeps, or the run failed.
pub(super) fn logged(scheme: &str, scenario: &Scenario, seed: u64, watch: Watch) -> io::Result<Run> {
    let run = run::run(scheme, scenario, seed, &Watch { events: !watch.host_events, ..watch })?;
    match run.log.unkept() {
        0 => Ok(run),
        unkept => Err(io::Error::other(format!("{unkept} events were too many to keep"))),
    }
}

/// Normalised throughput (section 3.4.3): application bits received a second, over the line's rate.
pub(super) fn throughput(run: &Run) -> f64 {
    normalised(run.goodput_bps)
}

/// Runs a case's only scheme and keeps its normalised throughput, `T`: what most experiments measure.
pub(super) fn measure_throughput(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    Ok(measured)
}

/// The normalised throughput of so many bits a second over the line.
pub(super) fn normalised(bps: f64) -> f64 {
    metrics::normalised_throughput(bps, LINE).unwrap_or_default()
}

/// T/C: application bits received a second, over what blockages of the fraction `blocked` leave of the line's rate.
pub(super) fn throughput_per_capacity(run: &Run, blocked: f64) -> f64 {
    metrics::throughput_per_capacity(run.goodput_bps, LINE, 1.0 - blocked).unwrap_or_default()
}

/// Bytes that were received within so many seconds, of the points of a [`crate::run::Received`].
pub(super) fn received_by(points: &[(Instant, u64)], seconds: f64) -> u64 {
    let end = Instant::ZERO + Duration::from_secs_f64(seconds);
    let next = points.partition_point(|(at, _)| *at <= end);
    points[..next].last().map_or(0, |(_, bytes)| *bytes)
}
