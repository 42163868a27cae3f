//! What the paper's tables and most of its statements are about: the whole dumbbell over a whole run.

use std::io;

use base::{Duration, Instant};

use super::samples::{Flow, Samples, connection};
use crate::claims::Measurements;
use crate::engine::Port;
use crate::network::Network;
use crate::node::Element;
use crate::statistics::spearman;
use crate::study::probe::sharing::jain;
use crate::study::probe::{Method, Probe, Trial};

/// In Mbit/s of 2^20 bit/s, as the paper has them: `G` what the receivers got, `TH` what the senders put into the network, of
/// which `PF` and `RF` per cent are proactive and reactive repairs. Per flow: `TO` time-outs in 1000 s, as long as the paper's
/// runs, `mean_rto` seconds of those that expired, `wait_share` of the time spent waiting for one, `again_share` of them for a segment that had been sent again,
/// `episode_share` of all repairs begun. `cwnd_bytes`, `cwnd_segments`, `E`, `coarse_share` (a window below ten segments that could be
/// smaller) over time; `size_rank`: how segment sizes follow windows. `queue`, `average`, `idle`: of the bottleneck, `overflow` the
/// share of its packets that its limit dropped, `residual` the share of its packets that did not come out at the other end.
pub(super) const DUMBBELL: Probe = Probe {
    name: "dumbbell",
    version: 2,
    quantities: &[
        "G",
        "TH",
        "PF",
        "RF",
        "TO",
        "mean_rto",
        "wait_share",
        "again_share",
        "episode_share",
        "per_segment",
        "cwnd_bytes",
        "cwnd_segments",
        "E",
        "coarse_share",
        "size_rank",
        "queue",
        "average",
        "idle",
        "overflow",
        "jain",
        "residual",
    ],
    series: &["window", "mss_hundreds", "length", "red_average"],
    method: Method::Trial(measure),
};

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let seconds = scenario.duration.as_secs_f64();
    let mut network = Network::build(scenario, trial.seed);
    let sizes = (trial.number("least")? as u32, trial.number("most")? as u32);
    let samples = Samples::take(&mut network, Instant::ZERO + scenario.duration, sizes)?;
    let totals = Totals::of(&network);
    let megabits = |bytes: f64| bytes * 8.0 / seconds / f64::from(1 << 20);
    let flows = network.transfers.len() as f64;
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    measured.note("G", megabits(totals.received.iter().sum()));
    measured.note("TH", megabits(totals.sent));
    measured.note("PF", share(100.0 * totals.proactive, totals.sent));
    measured.note("RF", share(100.0 * totals.reactive, totals.sent));
    measured.note("TO", totals.timeouts / flows * 1000.0 / seconds);
    // Who has no code and heeds losses does not count these.
    measured.note("again_share", totals.timeouts_again.and_then(|again| share(again, totals.timeouts)));
    measured.note("episode_share", share(totals.timeouts, totals.timeouts + totals.recoveries));
    measured.note("per_segment", share(totals.timeouts, totals.segments));
    measured.note("jain", jain(&totals.received));
    note_flows(&samples, measured);
    let looks = f64::from(samples.looks);
    measured.note("queue", samples.queue / looks);
    measured.note("average", samples.average / looks);
    note_bottleneck(&network, scenario.duration, measured);
    if trial.is_first {
        measured.set_series("window", samples.window);
        measured.set_series("mss_hundreds", samples.mss);
        measured.set_series("length", samples.lengths);
        measured.set_series("red_average", samples.averages);
    }
    Ok(())
}

/// Means over flows and looks.
fn note_flows(samples: &Samples, measured: &mut Measurements) {
    let all = f64::from(samples.looks) * samples.flows.len() as f64;
    let mean = |of: fn(&Flow) -> f64| samples.flows.iter().map(of).sum::<f64>() / all;
    measured.note("cwnd_bytes", mean(|flow| flow.cwnd));
    measured.note("cwnd_segments", mean(|flow| flow.segments));
    measured.note("E", mean(|flow| flow.rate));
    measured.note("coarse_share", mean(|flow| flow.coarse.into()));
    measured.note("wait_share", mean(|flow| flow.waiting.into()));
    let rtos: Vec<f64> = samples.flows.iter().flat_map(|flow| flow.rtos.iter().copied()).collect();
    measured.note("mean_rto", (!rtos.is_empty()).then(|| rtos.iter().sum::<f64>() / rtos.len() as f64));
    let (windows, sizes): (Vec<f64>, Vec<f64>) =
        samples.flows.iter().flat_map(|it| it.sizes.iter().copied()).unzip();
    measured.note("size_rank", spearman(&windows, &sizes));
}

/// How busy the line was, what its queue had no room for, and what did not come out at its other end.
fn note_bottleneck(network: &Network, length: Duration, measured: &mut Measurements) {
    let (bits, rate, report, entered) = match network.engine.node(network.links["bottleneck"]) {
        Element::Wire(wire) => {
            let end = wire.end(Port(0));
            (end.counters().bytes * 8, end.line().rate(), end.report(), end.counters().sent)
        }
        Element::Link(link) => {
            let (end, report) = (link.end(Port(0)), link.end(Port(0)).report());
            (end.counters().bits.iter().sum(), end.line().rate(), report.clone(), report["queue-passed"])
        }
        _ => return,
    };
    measured.note("idle", 1.0 - bits as f64 / rate.bits_in(length) as f64);
    let (full, entered) = (report["queue-dropped-for-packets"] as f64, entered as f64);
    measured.note("overflow", full / (full + entered).max(1.0));
    measured.note("residual", 1.0 - report["packets-delivered"] as f64 / entered.max(1.0));
}

/// Sums over the flows.
#[derive(Default)]
struct Totals {
    /// Bytes that each receiver got in order.
    received: Vec<f64>,
    /// Bytes of packets that senders sent, headers included, and of these repairs.
    sent: f64,
    proactive: f64,
    reactive: f64,
    timeouts: f64,
    timeouts_again: Option<f64>,
    recoveries: f64,
    segments: f64,
}

impl Totals {
    fn of(network: &Network) -> Self {
        let mut totals = Self::default();
        for transfer in &network.transfers {
            let got = connection(network, transfer.to).map_or(0, |it| it.statistics().bytes_received);
            totals.received.push(got as f64);
            let Some(sender) = connection(network, transfer.from) else { continue };
            let counted = sender.sender_statistics();
            totals.timeouts += f64::from(counted.timeouts);
            totals.recoveries += f64::from(counted.recoveries);
            totals.segments += (counted.data_segments_sent + counted.retransmissions) as f64;
            if let Some(code) = sender.fec_statistics() {
                totals.proactive += code.proactive_bytes as f64;
                totals.reactive += code.reactive_bytes as f64;
                *totals.timeouts_again.get_or_insert(0.0) += code.timeouts_again as f64;
            }
        }
        for (name, link) in &network.links {
            if let (true, Element::Wire(wire)) = (name.starts_with("sender"), network.engine.node(*link)) {
                totals.sent += wire.end(Port(0)).counters().bytes as f64;
            }
        }
        totals
    }
}
