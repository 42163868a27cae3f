//! The engine's benchmarks: here ten SACK bulk flows through one bottleneck.
//!
//! 500-byte segments, 40 Mbit/s access links of 1 ms, a 10 Mbit/s bottleneck of 20 ms behind a queue of 500
//! packets, 100 simulated seconds. Erasures hit data and acknowledgements alike. What is counted is data and acknowledgement packets that pass the bottleneck;
//! timing is the caller's business, since nothing here reads a clock.

pub mod scale;

use core::fmt::Write as _;
use std::path::Path;

use base::Instant;

use crate::engine::Port;
use crate::network::Network;
use crate::node::Element;
use crate::scenario::{Scenario, Suite};

/// Flows that share the bottleneck.
const FLOWS: u32 = 10;

/// The benchmark's network, ready to run.
#[derive(Debug)]
pub struct Bottleneck {
    scenario: Scenario,
    network: Network,
}

/// What a run of the benchmark came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Data and acknowledgement packets that passed the bottleneck in either direction; lost ones are not counted.
    pub packets: u64,
    /// Application bytes that arrived in order.
    pub bytes: u64,
    /// Inputs that nodes handled.
    pub events: u64,
    /// The run's trace hash.
    pub trace_hash: u64,
}

impl Bottleneck {
    /// The network with this probability of losing a packet on the bottleneck.
    ///
    /// # Panics
    /// If `erasure` is no probability.
    #[must_use]
    pub fn new(erasure: f64, seed: u64) -> Self {
        let suite = Suite::parse("bottleneck", &scenario(erasure), Path::new(""), &[]);
        let scenario = suite.expect("the benchmark's own scenario, with a probability").scenario;
        let network = Network::build(&scenario, seed);
        Self { scenario, network }
    }

    /// Runs it to its end.
    pub fn run(&mut self) -> Passed {
        let engine = &mut self.network.engine;
        engine.run(Instant::ZERO + self.scenario.duration, 0);
        let Element::Wire(bottleneck) = engine.node(self.network.links["bottleneck"]) else {
            unreachable!("the bottleneck has no link protocol")
        };
        let passed = |port| bottleneck.end(port).counters().delivered;
        let received =
            self.network.transfers.iter().map(|transfer| crate::run::receiver(engine, transfer).received());
        Passed {
            packets: passed(Port(0)) + passed(Port(1)),
            bytes: received.sum(),
            events: engine.events(),
            trace_hash: engine.trace_hash(),
        }
    }
}

/// The benchmark as a scenario file.
#[must_use]
pub fn scenario(erasure: f64) -> String {
    let mut text = format!(
        "name = \"ten SACK flows through one bottleneck\"\nduration = \"100 s\"\n\n\
         [tcp]\nmss = 512\nrecovery = \"sack\"\n\n\
         [link.bottleneck]\nends = [\"left\", \"right\"]\nqueue = {{ drop-tail = {{ packets = 500 }} }}\n\
         [link.bottleneck.channel]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         errors = {{ erasure = {{ probability = {erasure} }} }}\n"
    );
    for flow in 0..FLOWS {
        let access = "channel = { rate = \"40 Mbit/s\", delay = \"1 ms\" }";
        let _ = write!(
            text,
            "\n[link.from{flow}]\nends = [\"sender{flow}\", \"left\"]\n{access}\n\
             [link.to{flow}]\nends = [\"right\", \"receiver{flow}\"]\n{access}\n\
             [traffic.flow{flow}.bulk]\nfrom = \"sender{flow}\"\nto = \"receiver{flow}\"\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bottleneck is full without loss, and starved at 10 %.
    #[test]
    fn ten_flows_fill_a_clean_bottleneck() {
        let passed = |erasure| Bottleneck::new(erasure, 1).run();
        let (clean, lossy) = (passed(0.0), passed(0.1));
        // 100 s of 10 Mbit/s in packets of 552 bytes with 500 bytes of data.
        let bound = 100.0 * 10e6 / 8.0 * 500.0 / 552.0;
        assert!((0.95..=1.0).contains(&(clean.bytes as f64 / bound)), "{clean:?}");
        assert!(lossy.bytes < clean.bytes / 2, "{lossy:?}");
        assert_eq!(clean, passed(0.0));
    }
}
