//! What TCP sends again over a link that already does.
//!
//! What the link sends again is everything but first sendings: what was flagged as lost, and its going over its window
//! again when it has nothing else to send. The claim is decided on both; TCP's bytes over those of flagged frames alone are
//! told.
//!
//! Runs last 300 s at every blocked fraction: 30 to 210 channel periods each, and at least 750 over all realisations.

use core::cell::RefCell;
use std::io;
use std::rc::Rc;

use base::config::ConfigError;
use base::{Instant, Packet};

use crate::claims::Measurements;
use crate::engine::{Direction, Observer, Port};
use crate::network::Network;
use crate::node::Element;
use crate::observe::events::Streams;
use crate::papers::faulkner::setting::{Channel, Scheme, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-7"], claims: &[CLAIM], cases, measure };

const NAME: &str = "bytes sent again";
pub(super) const CLAIM: &str = "faulkner-tcp-waste-small";
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
const DURATION: f64 = 1.0;
/// Connections at once, and realisations of each.
const CONNECTIONS: [(u32, u32); 3] = [(1, 25), (4, 10), (16, 10)];

fn name(f: f64, connections: u32) -> String {
    format!("f={f}, connections: {connections}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for f in FRACTIONS {
        for (connections, realisations) in CONNECTIONS {
            let channel = Channel::Blockage { f, d: DURATION };
            let set = [format!("traffic.download.bulk.connections={connections}")];
            let scenario = scenario(Scheme::TcpLl, &channel, effort.choose(30.0, 300.0), &set)?;
            cases.push(Case::new(name(f, connections), scenario, effort.choose(2, realisations)));
        }
    }
    Ok(cases)
}

/// TCP data that passes the two hosts.
#[derive(Debug, Default)]
struct Data {
    streams: Streams,
    /// Bytes of segments of which some had been sent before.
    sent_again: u64,
    received: u64,
    /// Bytes of segments all of which had been received before.
    received_again: u64,
}

/// One host's part of it.
#[derive(Debug)]
struct Passing(Rc<RefCell<Data>>);

impl Observer for Passing {
    fn on_packet(&mut self, _: Instant, direction: Direction, packet: &Packet) {
        let is_sent = matches!(direction, Direction::Sent);
        let mut data = self.0.borrow_mut();
        let Some(segment) = data.streams.segment(packet, is_sent) else { return };
        let len = u64::from(segment.len);
        match (is_sent, segment.again) {
            (true, true) => data.sent_again += len,
            (true, false) => {}
            (false, again) => {
                data.received += len;
                data.received_again += if again { len } else { 0 };
            }
        }
    }
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let scenario = case.scenario();
    let mut network = Network::build(scenario, seed);
    let data = Rc::new(RefCell::new(Data::default()));
    for &node in network.nodes.values() {
        network.engine.observe(node, Passing(Rc::clone(&data)));
    }
    network.engine.run(Instant::ZERO + scenario.duration, 0);
    let data = data.borrow();
    let mut measured = Measurements::new();
    if let Element::Link(link) = network.engine.node(network.links["satellite"]) {
        let report = link.end(Port(0)).report();
        let link = (report["bits-retransmission"] + report["bits-filler"]) as f64 / 8.0;
        measured.note("of link", data.sent_again as f64 / link);
        let flagged = report["bits-retransmission"] as f64 / 8.0;
        measured.note("of flagged", (flagged > 0.0).then(|| data.sent_again as f64 / flagged));
        measured.note("needless of link", data.received_again as f64 / link);
        let dropped = report["queue-dropped-for-packets"] + report["queue-dropped-for-bytes"];
        measured.note("dropped", dropped as f64);
    }
    measured.note("twice", data.received_again as f64 / data.received as f64);
    measured.note("sent again", data.sent_again as f64 / 1e3);
    Ok(measured)
}

pub(super) fn is_small(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let at =
        |f: f64, connections: u32, quantity: &str| samples.interval(NAME, &name(f, connections), quantity);
    for (connections, _) in CONNECTIONS {
        for f in FRACTIONS {
            let place = format!("f = {f}, connections: {connections}");
            let what = format!("TCP's bytes sent again over the link's, {place}");
            criteria.push(Criterion::at_most(what, at(f, connections, "of link"), 0.05));
            let what = format!("share of TCP's bytes that came again, {place}");
            criteria.push(Criterion::at_most(what, at(f, connections, "twice"), 0.05));
            let what = format!("TCP's bytes sent again over those of flagged frames, {place}");
            criteria.push(Criterion::told(what, at(f, connections, "of flagged")));
            let what = format!("bytes that came again over the link's, {place}");
            criteria.push(Criterion::told(what, at(f, connections, "needless of link")));
            let what = format!("packets that the queue dropped, {place}");
            criteria.push(Criterion::told(what, at(f, connections, "dropped")));
        }
    }
    Ruling::all(criteria)
}
