//! What a slower uplink delays: TCP's ACKs, and the time after a blockage until data comes again.
//!
//! An ACK's latency is from when the terminal sends it, into the queue before the uplink, until the server has it; those that
//! the queue drops have none. A recovery lasts from the end of a blockage until the terminal gets TCP data that it did not
//! have; if that does not happen before the run ends, until then. Blockages before the first data have none.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use base::wire::ip::{self, Protocol};
use base::{Instant, Packet};

use crate::claims::Measurements;
use crate::engine::{Direction, Observer};
use crate::network::Network;
use crate::observe::events::Streams;
use crate::papers::faulkner::latency::blockages;
use crate::scenario::Scenario;
use crate::statistics::{Spread, mean};

/// What both hosts see of one transfer.
#[derive(Debug, Default)]
struct Seen {
    /// ACKs on their way: when each was sent, and the TCP segment.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    /// Latencies of those that came, in seconds.
    latencies: Vec<f64>,
    streams: Streams,
    /// When data came to the terminal that had not been there.
    news: Vec<Instant>,
}

/// The terminal's part of it.
#[derive(Debug)]
struct Terminal(Rc<RefCell<Seen>>);

/// The server's.
#[derive(Debug)]
struct Server(Rc<RefCell<Seen>>);

impl Observer for Terminal {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let mut seen = self.0.borrow_mut();
        let is_sent = direction == Direction::Sent;
        let Some(segment) = seen.streams.segment(packet, is_sent) else { return };
        if is_sent {
            seen.under_way.extend(tcp_of(packet).map(|segment| (now, segment)));
        } else if segment.len > 0 && !segment.again {
            seen.news.push(now);
        }
    }
}

impl Observer for Server {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let mut seen = self.0.borrow_mut();
        match direction {
            // Where a stream begins is in what its sender sends.
            Direction::Sent => {
                seen.streams.segment(packet, true);
            }
            Direction::Received => {
                let Some(arrived) = tcp_of(packet) else { return };
                // The link keeps order: what was sent before it has been dropped.
                let Some(place) = seen.under_way.iter().position(|(_, sent)| *sent == arrived) else {
                    return;
                };
                let (sent, _) = seen.under_way[place];
                seen.under_way.drain(..=place);
                seen.latencies.push(now.saturating_since(sent).as_secs_f64());
            }
        }
    }
}

/// The TCP segment in a packet; none in any other.
fn tcp_of(packet: &[u8]) -> Option<Vec<u8>> {
    let view = ip::View::parse(packet).ok().filter(|view| view.protocol() == Protocol::TCP)?;
    Some(view.payload().to_vec())
}

/// The mean latency of ACKs and the median recovery of a run, in seconds.
pub(super) fn measure(scenario: &Scenario, seed: u64) -> Measurements {
    let mut network = Network::build(scenario, seed);
    let seen = Rc::new(RefCell::new(Seen::default()));
    network.engine.observe(network.nodes["terminal"], Terminal(Rc::clone(&seen)));
    network.engine.observe(network.nodes["server"], Server(Rc::clone(&seen)));
    let end = Instant::ZERO + scenario.duration;
    network.engine.run(end, 0);
    let seen = seen.borrow();
    let mut measured = Measurements::new();
    measured.note("ACK latency", mean(&seen.latencies));
    let first = seen.news.first().copied().unwrap_or(end);
    let recovery = |blocked: core::ops::Range<Instant>| {
        let next = seen.news.partition_point(|&at| at <= blocked.end);
        seen.news.get(next).unwrap_or(&end).saturating_since(blocked.end).as_secs_f64()
    };
    let met = blockages(scenario, seed).filter(|blocked| blocked.start > first && blocked.end < end);
    measured.note("recovery", Spread::of(met.map(recovery)).map(|spread| spread.median));
    measured
}
