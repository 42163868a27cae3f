//! What ten times a second is seen of the senders and of the bottleneck.

use std::io;

use base::{Duration, Instant};
use tcp::Connection;

use crate::engine::{NodeId, Port};
use crate::network::{Network, Transfer};
use crate::node::Element;
use crate::run;

/// Between two looks.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// Looks without a segment sent after which a flow waits for its time-out: longer than a round trip with a full queue.
const SILENT_LOOKS: u32 = 5;

/// What is seen of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Sums over the looks: bytes of window, segments of window, and the erasure rate that the sender reckons with.
    pub(super) cwnd: f64,
    pub(super) segments: f64,
    pub(super) rate: f64,
    /// Looks at a window below ten segments that might have been smaller.
    pub(super) coarse: u32,
    /// Looks while it waited for a time-out.
    pub(super) waiting: u32,
    /// Windows and segment sizes between the bounds of the latter.
    pub(super) sizes: Vec<(f64, f64)>,
    /// Seconds of the time-outs that expired.
    pub(super) rtos: Vec<f64>,
    sent: u64,
    silent: u32,
    timeouts: u32,
    rto: f64,
}

impl Flow {
    fn look(&mut self, sender: &Connection, sizes: (u32, u32)) {
        let (cwnd, mss) = (sender.cwnd() as f64, f64::from(sender.mss()));
        self.cwnd += cwnd;
        self.segments += (cwnd / mss).floor();
        self.rate += sender.erasure_rate().unwrap_or(0.0);
        self.coarse += u32::from((cwnd / mss).floor() < 10.0 && sender.mss() > sizes.0);
        if sender.mss() > sizes.0 && sender.mss() < sizes.1 {
            self.sizes.push((cwnd, mss));
        }
        let (sent, timeouts) = (sender.statistics().segments_sent, sender.sender_statistics().timeouts);
        self.silent = if sent == self.sent { self.silent + 1 } else { 0 };
        self.waiting += u32::from(self.silent >= SILENT_LOOKS);
        if timeouts > self.timeouts {
            self.rtos.push(self.rto);
        }
        (self.sent, self.timeouts) = (sent, timeouts);
        self.rto = sender.rto().as_secs_f64();
    }
}

/// What is seen of a whole run.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) looks: u32,
    pub(super) flows: Vec<Flow>,
    /// Sums over the looks: packets in the bottleneck's queue, its average, and looks at an empty one.
    pub(super) queue: f64,
    pub(super) average: f64,
    /// Of the first flow and of the queue, over time in seconds.
    pub(super) window: Vec<(f64, f64)>,
    pub(super) mss: Vec<(f64, f64)>,
    pub(super) lengths: Vec<(f64, f64)>,
    pub(super) averages: Vec<(f64, f64)>,
    /// The erasure rate that senders reckon with, on average, over time.
    pub(super) mean_rates: Vec<(f64, f64)>,
    /// Blocks that a sender has begun, on average, over time.
    pub(super) mean_blocks: Vec<(f64, f64)>,
}

impl Samples {
    /// Runs the network to its `end`, and looks.
    ///
    /// # Errors
    /// Bytes arrived wrong.
    pub(super) fn take(network: &mut Network, end: Instant, sizes: (u32, u32)) -> io::Result<Self> {
        let mut samples = Self { flows: vec![Flow::default(); network.transfers.len()], ..Self::default() };
        let mut now = Instant::ZERO;
        while now < end {
            now = (now + INTERVAL).min(end);
            network.engine.run(now, 0);
            samples.look(network, now, sizes);
        }
        let is_wrong = |transfer: &&Transfer| !run::receiver(&network.engine, transfer).is_intact();
        match network.transfers.iter().find(is_wrong) {
            Some(transfer) => Err(io::Error::other(format!(
                "bytes arrived damaged in \"{}\", which is a bug in Longhaul",
                transfer.name
            ))),
            None => Ok(samples),
        }
    }

    fn look(&mut self, network: &Network, now: Instant, sizes: (u32, u32)) {
        self.looks += 1;
        for (flow, transfer) in self.flows.iter_mut().zip(&network.transfers) {
            if let Some(sender) = connection(network, transfer.from) {
                flow.look(sender, sizes);
            }
        }
        let seconds = now.as_secs_f64();
        if let Some(first) = network.transfers.first().and_then(|it| connection(network, it.from)) {
            self.window.push((seconds, first.cwnd() as f64 / 1000.0));
            self.mss.push((seconds, f64::from(first.mss()) / 100.0));
        }
        let rates = network.transfers.iter().filter_map(|it| connection(network, it.from)?.erasure_rate());
        let rates: Vec<f64> = rates.collect();
        self.mean_rates.push((seconds, rates.iter().sum::<f64>() / (rates.len() as f64).max(1.0)));
        let blocks = network.transfers.iter().filter_map(|it| connection(network, it.from)?.fec_statistics());
        let blocks: Vec<f64> = blocks.map(|code| code.blocks_sent as f64).collect();
        self.mean_blocks.push((seconds, blocks.iter().sum::<f64>() / (blocks.len() as f64).max(1.0)));
        let (length, average) = queue(network);
        self.queue += length;
        self.average += average;
        self.lengths.push((seconds, length));
        self.averages.push((seconds, average));
    }
}

/// A host's only connection.
pub(super) fn connection(network: &Network, host: NodeId) -> Option<&Connection> {
    match network.engine.node(host) {
        Element::Host(host) => host.tcp().connections().next().map(|(_, connection)| connection),
        _ => None,
    }
}

/// Packets in the bottleneck's queue, and the average that RED goes by.
fn queue(network: &Network) -> (f64, f64) {
    let (length, average) = match network.engine.node(network.links["bottleneck"]) {
        Element::Wire(wire) => (wire.end(Port(0)).queue().len(), wire.end(Port(0)).queue().average()),
        Element::Link(link) => (link.end(Port(0)).queues().len(), link.end(Port(0)).queues().average()),
        _ => (0, None),
    };
    (length as f64, average.unwrap_or(0.0))
}
