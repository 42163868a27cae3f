//! Series: what a run can be recorded for over time, each as a table for other programs.

use base::Instant;

use super::events::What;
use crate::run::{Run, Watch};
use crate::table::{Field, Table};

/// Something that happens over time.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// What a run has to keep for it.
    pub watch: fn(&mut Watch),
    /// Reads it.
    pub read: fn(&Run) -> Table,
}

/// All of them.
pub const SERIES: &[Series] = &[
    Series { name: "cwnd", watch: senders, read: |run| of_senders(run, &["cwnd", "ssthresh"]) },
    Series { name: "flight_size", watch: senders, read: |run| of_senders(run, &["flight_size"]) },
    Series { name: "rtt", watch: senders, read: |run| of_senders(run, &["srtt", "rttvar", "rto"]) },
    Series { name: "received", watch: |watch| watch.progress = true, read: received },
    Series { name: "latency", watch: |watch| watch.latencies = true, read: latency },
    Series { name: "segments", watch: |watch| watch.flows = true, read: segments },
    Series { name: "queue", watch: |watch| watch.queues = true, read: queue },
    Series { name: "tunnel", watch: |watch| watch.tunnels = true, read: tunnel },
];

fn senders(watch: &mut Watch) {
    watch.host_events = true;
}

/// Begins a row of a flow's, which is told by the ports of its connection: one of them no other has.
fn begin(table: &mut Table, run: &Run, ports: [u16; 2], at: Instant) {
    let transfers = run.transfers.iter().map(|it| (&it.name, it.port));
    let mut flows = transfers.chain(run.sources.iter().map(|it| (&it.name, it.port)));
    let flow = flows.find(|(_, port)| ports.contains(port));
    table.begin_row();
    table.set("flow", flow.map_or(Field::Nothing, |(name, _)| Field::Text(name.clone())));
    let port = flow.map_or(ports[0].min(ports[1]), |(_, port)| port);
    table.set("port", Field::Whole(port.into()));
    table.set("time_s", seconds(at));
}

fn seconds(at: Instant) -> Field {
    Field::Number(at.as_secs_f64())
}

fn of_flows(own: &[&str]) -> Table {
    table(&[&["flow", "port", "time_s"], own].concat())
}

fn table(columns: &[&str]) -> Table {
    Table::new(columns.iter().map(|&column| column.to_owned()))
}

/// Some of what senders go by, at every change of it.
fn of_senders(run: &Run, fields: &[&str]) -> Table {
    let mut table = of_flows(&[]);
    for event in run.log.events() {
        let What::Sender(state) = event.what else { continue };
        begin(&mut table, run, [state.from, state.to], event.at);
        for field in fields {
            let time = |time: Option<base::Duration>| Field::from(time.map(base::Duration::as_secs_f64));
            let (name, value) = match *field {
                "cwnd" => ("cwnd_bytes", Field::Whole(state.cwnd)),
                "ssthresh" => ("ssthresh_bytes", state.ssthresh.map_or(Field::Nothing, Field::Whole)),
                "flight_size" => ("flight_size_bytes", Field::Whole(state.flight_size)),
                "srtt" => ("srtt_s", time(state.srtt)),
                "rttvar" => ("rttvar_s", time(Some(state.rttvar))),
                _ => ("rto_s", time(Some(state.rto))),
            };
            table.set(name, value);
        }
    }
    table
}

/// What applications had received when.
fn received(run: &Run) -> Table {
    let mut table = of_flows(&["received_bytes"]);
    for received in &run.progress {
        for &(at, bytes) in &received.points {
            begin(&mut table, run, [received.port; 2], at);
            table.set("received_bytes", Field::Whole(bytes));
        }
    }
    table
}

/// How long records and transactions took.
fn latency(run: &Run) -> Table {
    let mut table = table(&["flow", "time_s", "latency_s", "bytes"]);
    for (name, samples) in &run.latencies {
        for sample in samples {
            table.begin_row();
            table.set("flow", Field::Text(name.clone()));
            table.set("time_s", seconds(sample.sent));
            table.set("latency_s", Field::Number(sample.latency.as_secs_f64()));
            table.set("bytes", Field::Whole(sample.bytes.into()));
        }
    }
    table
}

/// What connections sent.
fn segments(run: &Run) -> Table {
    let mut table = of_flows(&["offset_bytes", "len_bytes", "again"]);
    for flow in &run.flows {
        for segment in &flow.segments {
            begin(&mut table, run, [flow.ports.0, flow.ports.1], segment.at);
            table.set("offset_bytes", Field::Whole(segment.offset));
            table.set("len_bytes", Field::Whole(segment.len.into()));
            table.set("again", Field::Truth(segment.again));
        }
    }
    table
}

/// How long queues were.
fn queue(run: &Run) -> Table {
    let mut table = table(&["place", "time_s", "packets", "bytes", "average_packets"]);
    for (place, trace) in &run.queues {
        for mark in &trace.marks {
            table.begin_row();
            table.set("place", Field::Text(place.clone()));
            table.set("time_s", seconds(mark.at));
            table.set("packets", Field::Whole(mark.packets.into()));
            table.set("bytes", Field::Whole(mark.bytes));
            table.set("average_packets", Field::from(mark.average));
        }
    }
    table
}

/// What ends of tunnels found out about their paths.
fn tunnel(run: &Run) -> Table {
    let mut table = table(&["place", "time_s", "rate_bps", "capacity_bps", "queueing_s", "mtu_bytes"]);
    for (place, trace) in &run.tunnels {
        for sample in &trace.samples {
            let whole = |value: Option<u64>| value.map_or(Field::Nothing, Field::Whole);
            table.begin_row();
            table.set("place", Field::Text(place.clone()));
            table.set("time_s", seconds(sample.at));
            table.set("rate_bps", whole(sample.rate));
            table.set("capacity_bps", whole(sample.capacity));
            table.set("queueing_s", Field::Number(sample.queueing.as_secs_f64()));
            table.set("mtu_bytes", whole(sample.mtu.map(|mtu| mtu as u64)));
        }
    }
    table
}
