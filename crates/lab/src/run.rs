//! Running scenarios: one run of one scheme with one seed, and all runs of a suite in parallel.

mod counters;
mod exchanges;
mod running;
mod sources;
mod traffic;
mod transfers;
mod typical;
mod watching;

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use base::Instant;
use channel::dama::{Cycle, Slots};
use rayon::prelude::*;
use serde::Serialize;

use crate::network::Network;
use crate::node::Element;
use crate::observe::{EventLog, Flow, QueueTrace, TunnelTrace, WindowTrace};
use crate::scenario::{Scenario, Suite};
use crate::traffic::latency::Sample;
use crate::{bound, metrics};

pub use exchanges::TransactionsResult;
pub use running::Running;
pub use sources::SourceResult;
pub use transfers::TransferResult;
pub(crate) use transfers::receiver;
pub use typical::Typical;

/// What a run of one scheme with one seed came to.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The scheme's name.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// When the first connection opened, in seconds.
    pub started: f64,
    /// Bytes that applications received in order.
    pub bytes: u64,
    /// From the first opening of a connection to the last byte, or to the end of the run where bytes are missing.
    pub seconds: f64,
    /// Application bits per second over that time.
    pub goodput_bps: f64,
    /// What the channel's capacity less the framing would have allowed on this realisation.
    pub bound_bps: f64,
    /// Goodput over the rate of the [bottleneck](metrics::bottleneck), where there is one.
    pub normalised_throughput: Option<f64>,
    /// Goodput over that rate times the channel's capacity in the long run, where it has one.
    pub throughput_per_capacity: Option<f64>,
    /// How many mean periods of the channel, blockage and open time, the run's seconds cover, where there are blockages.
    pub channel_periods: Option<f64>,
    /// Whether every byte that was received was the right one.
    pub intact: bool,
    /// Whether every transfer of a given size, source of a given duration and given number of transactions ended.
    pub complete: bool,
    /// The hash of all events, in hexadecimal.
    pub trace_hash: String,
    /// Inputs that nodes handled.
    pub events: u64,
    /// The share of each connection of a bulk transfer.
    pub transfers: Vec<TransferResult>,
    /// The share of each connection of a rate-controlled source.
    pub sources: Vec<SourceResult>,
    /// The share of everything that consists of transactions.
    pub transactions: Vec<TransactionsResult>,
    /// What each direction of each link counted, `link/down` towards its second end and `link/up` from it.
    pub links: BTreeMap<String, BTreeMap<String, u64>>,
    /// What each host and router dropped, and what routers forwarded.
    pub nodes: BTreeMap<String, BTreeMap<String, u64>>,
    /// What plots are drawn from, where it was asked for.
    #[serde(skip)]
    pub flows: Vec<Flow>,
    /// The windows of the senders' connections, where they were asked for.
    #[serde(skip)]
    pub windows: Vec<WindowTrace>,
    /// When the queues of each wire dropped packets, `link/down` and `link/up`, where that was asked for.
    #[serde(skip)]
    pub drops: BTreeMap<String, Vec<Instant>>,
    /// How long the queues of each link were, `link/down` and `link/up`, where that was asked for.
    #[serde(skip)]
    pub queues: BTreeMap<String, QueueTrace>,
    /// What each end of a tunnel found out about its path, by node (`node/tunnel` where several end), where that was asked for.
    #[serde(skip)]
    pub tunnels: BTreeMap<String, TunnelTrace>,
    /// What terminals with bandwidth on demand asked for and were granted, by link, where that was asked for.
    #[serde(skip)]
    pub capacity: BTreeMap<String, Capacity>,
    /// All events, where they were asked for.
    #[serde(skip)]
    pub log: EventLog,
    /// Every latency of the records and transactions of each name, where that was asked for; an even choice of them
    /// where there are too many.
    #[serde(skip)]
    pub latencies: BTreeMap<String, Vec<Sample>>,
    /// What applications had received when, where that was asked for.
    #[serde(skip)]
    pub progress: Vec<Received>,
}

/// What one application had received when, in the order of the transfers and then of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The name of the transfer or source in the scenario.
    pub name: String,
    /// The port at which one side waited for the other.
    pub port: u16,
    /// Times, each with all bytes received in order by then.
    pub points: Vec<(Instant, u64)>,
}

/// What a terminal with bandwidth on demand asked for and was granted.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Its slots.
    pub slots: Slots,
    /// What happened in each superframe in which it was awake, in their order.
    pub cycles: Vec<Cycle>,
}

/// What to keep of a run besides its figures.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Keep the traces that plots are drawn from.
    pub flows: bool,
    /// Keep the senders' windows and the times of the queues' drops.
    pub windows: bool,
    /// Keep the lengths of the queues, and the averages that these go by.
    pub queues: bool,
    /// Keep what tunnels find out about their paths.
    pub tunnels: bool,
    /// Keep all events, up to [`crate::observe::events::KEPT`].
    pub events: bool,
    /// Keep the events of hosts alone, segments and senders' states, up to as many.
    pub host_events: bool,
    /// Keep what terminals with bandwidth on demand ask for and are granted.
    pub capacity: bool,
    /// Write all events to this file as they happen, one JSON object a line.
    pub log: Option<PathBuf>,
    /// Keep the latency of every record and transaction.
    pub latencies: bool,
    /// Keep how many bytes applications had received when.
    pub progress: bool,
    /// Write the packets of this node, or else the frames of this link, to this file.
    pub capture: Option<(String, PathBuf)>,
}

impl Watch {
    /// What plots of a report are drawn from.
    fn for_plots() -> Self {
        Self { flows: true, latencies: true, progress: true, capacity: true, ..Self::default() }
    }
}

/// Runs `scenario` once.
///
/// # Errors
/// A capture or log file that cannot be written, a node or link to capture at that does not exist, or a node for which
/// time does not go on.
pub fn run(scheme: &str, scenario: &Scenario, seed: u64, watch: &Watch) -> io::Result<Run> {
    let mut running = Running::begin(scheme, Cow::Borrowed(scenario), seed, watch)?;
    running.until(running.end())?;
    running.finish()
}

/// Lets links that sleep count what they would have sent until the end.
fn settle(network: &mut Network, now: Instant) {
    for &node in network.links.values() {
        if let Element::Link(link) = network.engine.node_mut(node) {
            link.settle(now);
        }
    }
}

fn summarize(scheme: &str, scenario: &Scenario, seed: u64, network: &Network, flows: Vec<Flow>) -> Run {
    let engine = &network.engine;
    let traffic = traffic::of(network);
    let bytes = traffic::received(network, |_| true);
    let started = traffic.iter().filter_map(|flow| flow.opened_at()).min().unwrap_or(Instant::ZERO);
    let complete = traffic.iter().all(|flow| flow.is_complete());
    let last_byte = traffic.iter().filter_map(|flow| flow.finished_at()).max();
    let run_end = Instant::ZERO + scenario.duration;
    let end = last_byte.filter(|_| complete && !network.is_endless()).unwrap_or(run_end);
    let seconds = end.saturating_since(started).as_secs_f64();
    let goodput_bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let bottleneck = metrics::bottleneck(scenario);
    Run {
        scheme: scheme.to_owned(),
        seed,
        started: started.as_secs_f64(),
        bytes,
        seconds,
        goodput_bps,
        bound_bps: bound::goodput_bps(scenario, seed, complete),
        normalised_throughput: bottleneck
            .as_ref()
            .and_then(|narrow| metrics::normalised_throughput(goodput_bps, narrow.rate)),
        throughput_per_capacity: bottleneck
            .and_then(|narrow| metrics::throughput_per_capacity(goodput_bps, narrow.rate, narrow.capacity?)),
        channel_periods: metrics::channel_periods(scenario, seconds),
        intact: traffic.iter().all(|flow| flow.is_intact()),
        complete,
        trace_hash: format!("{:016x}", engine.trace_hash()),
        events: engine.events(),
        transfers: network.transfers.iter().map(|one| transfers::result(engine, one)).collect(),
        sources: network.sources.iter().map(|one| sources::Observed::new(engine, one).result(end)).collect(),
        transactions: network.exchanges.iter().map(|one| exchanges::result(engine, one)).collect(),
        links: counters::links(engine, &network.links),
        nodes: counters::nodes(engine, &network.nodes),
        flows,
        windows: watching::senders(network)
            .into_iter()
            .filter_map(|node| traffic::host(engine, node).windows().cloned())
            .collect(),
        drops: counters::drops(engine, &network.links),
        queues: counters::queues(engine, &network.links),
        tunnels: counters::tunnels(engine, &network.nodes),
        capacity: counters::capacity(engine, &network.links),
        log: EventLog::default(),
        latencies: BTreeMap::new(),
        progress: traffic::progress(network),
    }
}

/// What a suite's runs keep and write besides their figures.
#[derive(Clone, Debug, Default)]
pub struct Recordings {
    /// Keep what plots are drawn from, for the [typical](Typical) seed.
    pub plots: bool,
    /// The packets of a node, or the frames of a link, each scheme's with the first seed.
    pub captures: Captures,
    /// All events of the scheme with this name and the first seed to this file, which `docs/events.md` describes.
    pub log: Option<(String, PathBuf)>,
}

impl Recordings {
    /// Adds to `watch` what is written of a scheme's run with the first seed.
    fn add_to(&self, watch: &mut Watch, scheme: &str) {
        watch.capture = self.captures.of(scheme);
        watch.log = self.log.as_ref().filter(|(logged, _)| scheme == logged).map(|(_, path)| path.clone());
    }
}

/// Where each scheme's capture goes.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    /// The node, or else the link.
    pub at: String,
    /// Schemes by name, each with its file; those that are not captured are left out.
    pub files: Vec<(String, PathBuf)>,
}

impl Captures {
    /// What [`Watch::capture`] is for a scheme.
    fn of(&self, scheme: &str) -> Option<(String, PathBuf)> {
        let file = self.files.iter().find(|(name, _)| name == scheme);
        file.map(|(_, path)| (self.at.clone(), path.clone()))
    }
}

/// Runs every scheme of `suite` with every seed, in parallel, and calls `on_done` after each; the runs come back in the order of
/// schemes and seeds. Which seed is typical shows when all are done, so its runs are repeated if plots are to be drawn.
///
/// Once `on_done` breaks off, no further run starts, and those seeds come back, from the first on, that every scheme has run: what a
/// suite with fewer seeds gives.
///
/// # Errors
/// As [`run`]; [`io::ErrorKind::Interrupted`] if it was broken off before every scheme had run with the first seed.
pub fn run_all(
    suite: &Suite,
    recordings: &Recordings,
    on_done: impl Fn(&Run) -> ControlFlow<()> + Sync,
) -> io::Result<Vec<Run>> {
    let (schemes, seeds) = (&suite.schemes, suite.scenario.seeds as usize);
    let is_only = recordings.plots && seeds == 1;
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    // All schemes with the first seed, then all with the second: whenever it ends, the seeds that are done can be compared.
    let turn = |_| {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (k, (scheme, scenario)) = (turn / schemes.len(), &schemes[turn % schemes.len()]);
        let mut watch = if is_only { Watch::for_plots() } else { Watch::default() };
        if k == 0 {
            recordings.add_to(&mut watch, scheme);
        }
        let run = run(scheme, scenario, scenario.seed + k as u64, &watch)?;
        if on_done(&run).is_break() {
            is_over.store(true, Ordering::Relaxed);
        }
        Ok(Some((turn, run)))
    };
    let turns = (0..schemes.len() * seeds).into_par_iter().with_max_len(1);
    let done: io::Result<Vec<Option<(usize, Run)>>> = turns.map(turn).collect();
    let mut done: Vec<_> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(turn, _)| *turn);
    let whole = done.iter().enumerate().take_while(|(place, (turn, _))| place == turn).count();
    done.truncate(whole - whole % schemes.len());
    if done.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "interrupted before every scheme had run with the first seed",
        ));
    }
    done.sort_by_key(|(turn, _)| (turn % schemes.len(), *turn));
    let mut runs: Vec<Run> = done.into_iter().map(|(_, run)| run).collect();
    if recordings.plots && !is_only {
        keep_for_plots(suite, &mut runs)?;
    }
    Ok(runs)
}

/// Has runs of `suite` keep what plots are drawn from: those with the [typical](Typical) seed are repeated.
///
/// # Errors
/// As [`run`], or a run comes out otherwise when it is repeated.
pub fn keep_for_plots(suite: &Suite, runs: &mut [Run]) -> io::Result<()> {
    Typical::of(suite, runs).map_or(Ok(()), |typical| repeat(suite, runs, typical.seed))
}

/// Repeats the runs with this seed and keeps what plots are drawn from.
fn repeat(suite: &Suite, runs: &mut [Run], seed: u64) -> io::Result<()> {
    runs.par_iter_mut().filter(|run| run.seed == seed).try_for_each(|before| {
        let scheme = suite.schemes.iter().find(|(name, _)| *name == before.scheme);
        let (_, scenario) = scheme.expect("a run is of a scheme of its suite");
        *before = again(before, scenario, &Watch::for_plots())?;
        Ok(())
    })
}

/// Repeats a run of `scenario`, to be watched otherwise.
///
/// # Errors
/// As [`run`], or it does not come out as before.
pub fn again(before: &Run, scenario: &Scenario, watch: &Watch) -> io::Result<Run> {
    let again = run(&before.scheme, scenario, before.seed, watch)?;
    if again.trace_hash == before.trace_hash {
        return Ok(again);
    }
    Err(io::Error::other(format!(
        "\"{}\" with seed {} does not come out as before when it is repeated, so something in it is not deterministic: \
         a controller that goes by a clock, by chance or by an earlier run is",
        before.scheme, before.seed
    )))
}

/// One hash over the hashes of `runs`, in hexadecimal.
#[must_use]
pub fn trace_hash(runs: &[Run]) -> String {
    let mut hash = crate::engine::TraceHash::new();
    for run in runs {
        hash.mix(u64::from_str_radix(&run.trace_hash, 16).unwrap_or_default());
    }
    format!("{:016x}", hash.finish())
}
