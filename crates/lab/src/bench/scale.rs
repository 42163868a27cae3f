//! What size costs: a star of many terminals, and many flows between two hosts.
//!
//! Every flow has a share of 40 kbit/s and a window of 8 KiB that the receiver sets, so that the load of a flow is the
//! same in every size, nothing is lost, and the cost of an event can be compared. Timing is the caller's business,
//! since nothing here reads a clock.

use core::fmt::Write as _;
use std::path::Path;

use base::{Duration, Instant};

use crate::network::Network;
use crate::node::Element;
use crate::scenario::Suite;

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A router with so many terminals; each sends to another one or receives from it.
    Star(u32),
    /// So many flows between two hosts on one wire.
    Flows(u32),
}

impl Shape {
    /// Terminals or flows.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Star(size) | Self::Flows(size) => size,
        }
    }

    /// Flows that run.
    #[must_use]
    pub const fn flows(self) -> u32 {
        match self {
            Self::Star(terminals) => terminals / 2,
            Self::Flows(flows) => flows,
        }
    }

    /// The shape as a scenario file.
    #[must_use]
    pub fn scenario(self) -> String {
        let mut text =
            "name = \"scale\"\nduration = \"1000 h\"\ntcp.window.receive-buffer = \"8 KiB\"\n".to_owned();
        match self {
            Self::Star(terminals) => write_star(&mut text, terminals),
            Self::Flows(flows) => write_flows(&mut text, flows),
        }
        text
    }

    /// Simulated time in which a flow sends two segments, and the whole at least some ten thousand.
    #[must_use]
    pub fn slice(self) -> Duration {
        let segments = u64::from((20_000 / self.flows().max(1)).max(2));
        Duration::from_millis(300).saturating_mul(segments)
    }
}

/// After that much simulated time every flow has filled its window. Ours: the flows open during the first second, and
/// a round trip through the full queue takes two.
pub const WARM_UP: Duration = Duration::from_secs(6);

fn write_star(text: &mut String, terminals: u32) {
    for terminal in 0..terminals {
        let _ = write!(
            text,
            "[link.l{terminal}]\nends = [\"hub\", \"t{terminal}\"]\n\
             channel = {{ rate = \"40 kbit/s\", delay = \"10 ms\" }}\n"
        );
    }
    for flow in 0..terminals / 2 {
        let (from, to) = (2 * flow, 2 * flow + 1);
        let start = u64::from(flow) * 1_000_000_000 / u64::from(terminals);
        let _ = write!(
            text,
            "[traffic.f{flow}.bulk]\nfrom = \"t{from}\"\nto = \"t{to}\"\nstart = \"{start} ns\"\n"
        );
    }
}

/// Half of the flows are opened by either side, since a host has fewer than 65 536 ports to wait at.
fn write_flows(text: &mut String, flows: u32) {
    let (rate, queue) = (u64::from(flows) * 40, u64::from(flows) * 8);
    let stagger = 1_000_000_000 / u64::from(flows);
    let _ = write!(
        text,
        "[link.wire]\nends = [\"left\", \"right\"]\nqueue = {{ drop-tail = {{ packets = {queue} }} }}\n\
         channel = {{ rate = \"{rate} kbit/s\", delay = \"10 ms\" }}\n"
    );
    for (opener, connections) in [("receiver", flows - flows / 2), ("sender", flows / 2)] {
        let _ = write!(
            text,
            "[traffic.{opener}.bulk]\nfrom = \"left\"\nto = \"right\"\nopened-by = \"{opener}\"\n\
             connections = {connections}\nstagger = \"{stagger} ns\"\n"
        );
    }
}

/// A network of some shape while it runs.
#[derive(Debug)]
pub struct Scaled {
    network: Network,
    until: Instant,
}

impl Scaled {
    /// Reads and checks the scenario of a shape, and builds its network.
    ///
    /// # Panics
    /// If the benchmark's scenario is refused.
    #[must_use]
    pub fn new(scenario: &str) -> Self {
        let suite = Suite::parse("scale", scenario, Path::new(""), &[]);
        let suite = suite.unwrap_or_else(|error| panic!("the benchmark's own scenario: {error}"));
        Self { network: Network::build(&suite.scenario, 1), until: Instant::ZERO }
    }

    /// Runs on for `time`; the events that happened.
    pub fn advance(&mut self, time: Duration) -> u64 {
        let before = self.network.engine.events();
        self.until = self.until.saturating_add(time);
        self.network.engine.run(self.until, 0);
        self.network.engine.events() - before
    }

    /// Bytes of application data that senders have sent and not seen acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let hosts = self.network.engine.nodes().filter_map(|node| match node {
            Element::Host(host) => Some(host.tcp()),
            _ => None,
        });
        hosts.flat_map(tcp::Host::connections).map(|(_, connection)| connection.flight_size()).sum()
    }

    /// Bytes of application data that arrived in order, by flow.
    #[must_use]
    pub fn received(&self) -> Vec<u64> {
        let engine = &self.network.engine;
        self.network.transfers.iter().map(|it| crate::run::receiver(engine, it).received()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every flow fills its window, gets its share and keeps it: what makes sizes comparable.
    #[test]
    fn every_flow_has_the_same_load() {
        for shape in [Shape::Star(2), Shape::Star(20), Shape::Flows(2), Shape::Flows(30)] {
            let mut scaled = Scaled::new(&shape.scenario());
            scaled.advance(WARM_UP);
            let before = scaled.received();
            scaled.advance(Duration::from_secs(30));
            let shares = scaled.received().into_iter().zip(before).map(|(after, before)| after - before);
            let rates: Vec<f64> = shares.map(|bytes| bytes as f64 * 8.0 / 30.0).collect();
            assert_eq!(rates.len(), shape.flows() as usize);
            assert!(rates.iter().all(|rate| (36e3..40e3).contains(rate)), "{shape:?}: {rates:?}");
            let window = scaled.in_flight() / u64::from(shape.flows());
            assert!((5_000..=8_192).contains(&window), "{shape:?}: {window}");
        }
    }
}
