//! What each stretch of a split connection sees of the delay.

use std::io;

use base::{Duration, Instant};
use pep::Side;

use crate::claims::Measurements;
use crate::engine::Port;
use crate::network::Network;
use crate::node::Element;
use crate::study::probe::{Method, Probe, Trial};

/// After `at` seconds (a number of the experiment's `with`), in milliseconds: `sender_srtt`, the longest smoothed round-trip time
/// of the hosts that send, and `satellite_rtt`, the least round-trip time of the connections between the proxies.
pub(super) const SEGMENTS: Probe = Probe {
    name: "casoni-segments",
    version: 1,
    quantities: &["sender_srtt", "satellite_rtt"],
    series: &[],
    method: Method::Trial(measure),
};

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let mut network = Network::build(trial.scenario(), trial.seed);
    network.engine.run(Instant::ZERO + Duration::from_secs_f64(trial.number("at")?), 0);
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let senders = network.transfers.iter().filter_map(|transfer| match network.engine.node(transfer.from) {
        Element::Host(host) => Some(host.tcp().connections()),
        _ => None,
    });
    let srtts = senders.flatten().filter_map(|(_, connection)| connection.srtt());
    measured.note("sender_srtt", srtts.max().map(ms));
    let Element::Wire(satellite) = network.engine.node(network.links["satellite"]) else {
        return Err(io::Error::other("the satellite is a wire"));
    };
    let proxy = satellite.end(Port(0)).proxy();
    let connections = proxy.into_iter().flat_map(|proxy| proxy.host(Side::Link).connections());
    let least = connections.filter_map(|(_, connection)| connection.rtt_min()).min();
    measured.note("satellite_rtt", least.map(ms));
    Ok(())
}
