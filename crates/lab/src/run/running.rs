//! A run under way: step by step, for those who look or act in between; [`super::run`] takes one step.

use std::borrow::Cow;
use std::io;

use base::Instant;

use super::watching::Watched;
use super::{Run, Watch, settle, summarize, traffic};
use crate::engine::NodeId;
use crate::network::Network;
use crate::scenario::Scenario;

/// A run that has begun.
#[derive(Debug)]
pub struct Running<'a> {
    scheme: String,
    scenario: Cow<'a, Scenario>,
    seed: u64,
    keeps_latencies: bool,
    network: Network,
    watched: Watched,
    /// Goals that end it; zero if only time does.
    goals: u32,
    is_over: bool,
}

impl<'a> Running<'a> {
    /// Begins a run: nothing has happened yet.
    ///
    /// # Errors
    /// A capture or log file that cannot be written, or a node or link to capture at that does not exist.
    pub fn begin(scheme: &str, scenario: Cow<'a, Scenario>, seed: u64, watch: &Watch) -> io::Result<Self> {
        let mut network = Network::build(&scenario, seed);
        let watched = Watched::begin(&mut network, &scenario, watch)?;
        let goals = if network.is_endless() { 0 } else { network.goals() };
        let (scheme, keeps_latencies) = (scheme.to_owned(), watch.latencies);
        Ok(Self { scheme, scenario, seed, keeps_latencies, network, watched, goals, is_over: false })
    }

    /// Goes on until `at`, or until it is over; whether it is.
    ///
    /// # Errors
    /// A node for which time does not go on.
    pub fn until(&mut self, at: Instant) -> io::Result<bool> {
        if self.is_over {
            return Ok(true);
        }
        let end = self.end();
        self.step(at.min(end), self.goals)?;
        let network = &self.network;
        let has_all = self.goals > 0 && network.engine.goals_reached() >= self.goals;
        // Where time has not come so far, nothing is left to happen.
        self.is_over = has_all || at >= end || network.engine.now() < at;
        Ok(self.is_over)
    }

    fn step(&mut self, at: Instant, goals: u32) -> io::Result<()> {
        let network = &mut self.network;
        network.engine.try_run(at, goals).map_err(|stuck| {
            let name = network.name_of(stuck.node).unwrap_or_default();
            io::Error::other(format!(
                "\"{name}\" acts at {} over and over, which is a bug in Longhaul",
                stuck.at
            ))
        })
    }

    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.network.engine.now()
    }

    /// Inputs that nodes have handled.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.network.engine.events()
    }

    /// When it is over at the latest.
    #[must_use]
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.scenario.duration
    }

    /// Whether all has come that is promised to come: datagrams are not.
    pub(crate) fn has_what_is_promised(&self) -> bool {
        traffic::of(&self.network).iter().all(|flow| flow.is_complete() || !flow.is_promised())
    }

    /// The node in which connections and packets take most memory, and how many bytes.
    pub(crate) fn most_kept(&self) -> Option<(String, usize)> {
        let network = &self.network;
        let nodes = network.engine.nodes().zip(0..);
        let (node, bytes) =
            nodes.map(|(node, id)| (NodeId(id), node.memory())).max_by_key(|(_, bytes)| *bytes)?;
        Some((network.name_of(node).unwrap_or_default().to_owned(), bytes))
    }

    /// Goes on until `at` although it is over, for those who ask what is left. What it comes to is to be asked before.
    ///
    /// # Errors
    /// A node for which time does not go on.
    pub(crate) fn rest(&mut self, at: Instant) -> io::Result<()> {
        self.step(at, 0)
    }

    /// The hash of all that has happened.
    #[must_use]
    pub(crate) fn trace_hash(&self) -> u64 {
        self.network.engine.trace_hash()
    }

    /// Bytes that the applications of a flow have received in order.
    #[must_use]
    pub fn received(&self, flow: &str) -> u64 {
        traffic::received(&self.network, |name| name == flow)
    }

    /// What it came to.
    ///
    /// # Errors
    /// A capture or log file that cannot be written.
    pub fn finish(mut self) -> io::Result<Run> {
        let ended = if self.goals == 0 { self.end() } else { self.network.engine.now() };
        settle(&mut self.network, ended);
        let mut run = summarize(&self.scheme, &self.scenario, self.seed, &self.network, self.watched.flows());
        if self.keeps_latencies {
            run.latencies = traffic::latencies(&self.network);
        }
        run.log = self.watched.finish(ended)?;
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Suite;
    use base::Duration;

    /// Whoever stops to look changes nothing.
    #[test]
    fn a_run_in_steps_is_the_same_run() {
        let suite =
            Suite::load("demo/download".as_ref(), &["traffic.download.bulk.size=100 kB".parse().unwrap()]);
        for (scheme, scenario) in suite.unwrap().schemes {
            let whole = super::super::run(&scheme, &scenario, 3, &Watch::default()).unwrap();
            let mut running =
                Running::begin(&scheme, Cow::Borrowed(&scenario), 3, &Watch::default()).unwrap();
            let mut steps = 0;
            while !running.until(running.now() + Duration::from_millis(70)).unwrap() {
                steps += 1;
            }
            assert!(steps > 20 && running.received("download") == 100_000, "{steps} steps");
            let stepped = running.finish().unwrap();
            assert_eq!((stepped.trace_hash, stepped.events), (whole.trace_hash, whole.events));
            assert_eq!(stepped.seconds.to_bits(), whole.seconds.to_bits());
        }
    }
}
