//! What TCP sends again over a link that already does.

use std::io;

use base::Instant;
use tcp::Connection;

use crate::claims::Measurements;
use crate::engine::Port;
use crate::network::Network;
use crate::node::Element;
use crate::study::probe::{Method, Probe, Trial};

/// `tcp_resent`: bytes of data that TCP sent again; `link_resent`: bytes of the frames that the link sent again, flagged as
/// lost or going over its window; `link_flagged`: of those that were flagged; `came_again`: of TCP's data segments, the share
/// that brought the receiver nothing new; `queue_drops`: packets.
pub(super) const WASTE: Probe = Probe {
    name: "waste",
    version: 1,
    quantities: &["tcp_resent", "link_resent", "link_flagged", "came_again", "queue_drops"],
    series: &[],
    method: Method::Trial(measure),
};

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let mut network = Network::build(scenario, trial.seed);
    network.engine.run(Instant::ZERO + scenario.duration, 0);
    let sent = || connections(&network, "server").map(Connection::sender_statistics);
    let resent: u64 = sent().map(|counted| counted.bytes_retransmitted).sum();
    let segments: u64 = sent().map(|counted| counted.data_segments_sent + counted.retransmissions).sum();
    let received = connections(&network, "terminal").map(Connection::statistics);
    let needless: u32 = received.map(|counted| counted.duplicates_received).sum();
    measured.set("tcp_resent", &[], resent as f64);
    measured.note("came_again", f64::from(needless) / segments as f64);
    if let Element::Link(link) = network.engine.node(network.links["satellite"]) {
        let report = link.end(Port(0)).report();
        let (flagged, filler) = (report["bits-retransmission"] as f64, report["bits-filler"] as f64);
        measured.set("link_resent", &[], (flagged + filler) / 8.0);
        measured.set("link_flagged", &[], flagged / 8.0);
        let drops = report.iter().filter(|(name, _)| name.starts_with("queue-dropped-"));
        measured.set("queue_drops", &[], drops.map(|(_, count)| count).sum::<u64>() as f64);
    }
    Ok(())
}

/// The connections of a host.
fn connections<'a>(network: &'a Network, host: &str) -> impl Iterator<Item = &'a Connection> {
    let host = match network.engine.node(network.nodes[host]) {
        Element::Host(host) => Some(host),
        _ => None,
    };
    host.into_iter().flat_map(|host| host.tcp().connections()).map(|(_, connection)| connection)
}
