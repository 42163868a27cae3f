//! One replication: how long the file takes, and what happened meanwhile.
//!
//! The time is from the first connection's SYN until the sender has all acknowledgements of all connections. What
//! happened is counted from that SYN on, so that a transfer before it, whose cached threshold the file uses, does not count.

use std::io;

use base::{Duration, Instant};

use super::{FILE, LINK, RECEIVER, SENDER, overshoot, recovery, terminal};
use crate::claims::Measurements;
use crate::observe::Flow;
use crate::observe::events::{Frame, LinkDirection, PacketMark, PacketStep, Segment, SenderState, What};
use crate::run::{Run, TransferResult, Watch};
use crate::scenario::Traffic;
use crate::study::probe::{Method, Probe, Trial};

/// `M`: seconds from the first SYN to the last acknowledgement of data, `inf` if the run ended before; `M50`: those until the first
/// 50,000 bytes are acknowledged; `X(name)`: what the claims name.
pub(super) const TRANSFER: Probe = Probe {
    name: "kojo-transfer",
    version: 2,
    quantities: &["M", "M50", "X"],
    series: &[],
    method: Method::Run { watch, read: measure },
};

/// The series of figure 3: `sent`, `again` and `acked`, kilobytes over seconds; of the run with this seed.
pub(super) const TRACE: Probe = Probe {
    name: "kojo-trace",
    version: 1,
    quantities: &[],
    series: &["sent", "again", "acked"],
    method: Method::Run { watch, read: draw },
};

/// Bytes of table 3's short transfer.
const SHORT: u64 = 50_000;

fn watch(watch: &mut Watch) {
    watch.flows = true;
    watch.events = true;
    watch.capacity = true;
}

/// A run as the probes see it: everything from the first SYN to the last acknowledgement, or to the run's end.
pub(super) struct Observed<'a> {
    pub(super) run: &'a Run,
    pub(super) transfers: Vec<&'a TransferResult>,
    /// The data of each connection at the sender, in the order of the transfers.
    pub(super) flows: Vec<&'a Flow>,
    pub(super) start: Instant,
    pub(super) end: Instant,
    /// Bytes of each connection.
    pub(super) size: u64,
    /// Changes of the senders' states.
    pub(super) states: Vec<(Instant, SenderState)>,
    /// What the sender and the receiver got.
    pub(super) acks: Vec<(Instant, &'a Segment)>,
    pub(super) received: Vec<(Instant, &'a Segment)>,
    /// The return link: steps of data packets, frames, and when its MAC buffer dropped any.
    pub(super) packets: Vec<(Instant, PacketMark)>,
    pub(super) frames: Vec<Frame>,
    pub(super) mac_drops: Vec<Instant>,
}

impl<'a> Observed<'a> {
    fn new(trial: &Trial<'_>, run: &'a Run) -> io::Result<Self> {
        let missing = |what: &str| io::Error::other(format!("the run has no {what}"));
        let Some(Traffic::Bulk(bulk)) = trial.scenario().traffic.get(FILE) else {
            return Err(missing("bulk transfer called file"));
        };
        let size = bulk.size.ok_or_else(|| missing("size of the file"))?.0;
        let transfers: Vec<_> = run.transfers.iter().filter(|transfer| transfer.name == FILE).collect();
        let opened = transfers.iter().filter_map(|transfer| transfer.opened).reduce(f64::min);
        let start = Instant::ZERO + Duration::from_secs_f64(opened.ok_or_else(|| missing("opening"))?);
        let flow = |transfer: &&TransferResult| run.flows.iter().find(|flow| flow.ports.1 == transfer.port);
        let flows: Vec<_> = transfers.iter().filter_map(flow).collect();
        let ends: Option<Vec<_>> = flows.iter().map(|flow| acked_at(flow, size)).collect();
        let done = ends.filter(|ends| ends.len() == transfers.len()).and_then(|ends| ends.into_iter().max());
        let end = done.unwrap_or(Instant::MAX);
        let during = |at: Instant| at >= start && at <= end;
        let log = &run.log;
        let up = LinkDirection::Up;
        let ports: Vec<u16> = transfers.iter().map(|transfer| transfer.port).collect();
        let states = log.sender_states(SENDER).filter(|(at, state)| during(*at) && ports.contains(&state.to));
        let acks = log.segments(SENDER).filter(|(at, s)| during(*at) && !s.sent && ports.contains(&s.from));
        let received =
            log.segments(RECEIVER).filter(|(at, s)| during(*at) && !s.sent && ports.contains(&s.to));
        let packets = log.packets(LINK, up).filter(|(at, mark)| during(*at) && mark.len > 0);
        let mut frames = log.frames(LINK, up);
        frames.retain(|frame| during(frame.on_air.start));
        let mac_drops = log.link_events(LINK, up).filter_map(|event| match event.what {
            What::FrameDropped { .. } if during(event.at) => Some(event.at),
            _ => None,
        });
        Ok(Self {
            run,
            flows,
            start,
            end,
            size,
            states: states.collect(),
            acks: acks.collect(),
            received: received.collect(),
            packets: packets.collect(),
            frames,
            mac_drops: mac_drops.collect(),
            transfers,
        })
    }

    /// Seconds since the first SYN.
    pub(super) fn since_start(&self, at: Instant) -> f64 {
        at.saturating_since(self.start).as_secs_f64()
    }

    /// What the terminal's end of the link counted.
    pub(super) fn counted(&self, name: &str) -> f64 {
        let counters = self.run.links.get(&LinkDirection::Up.of(LINK));
        counters.and_then(|counters| counters.get(name)).map_or(0.0, |count| *count as f64)
    }

    /// When a step of data packets happened.
    pub(super) fn steps(&self, step: PacketStep) -> impl Iterator<Item = (Instant, PacketMark)> {
        self.packets.iter().filter(move |(_, mark)| mark.step == step).copied()
    }
}

/// When so many bytes were acknowledged.
pub(super) fn acked_at(flow: &Flow, bytes: u64) -> Option<Instant> {
    let place = flow.acks.partition_point(|(_, acked)| *acked < bytes);
    flow.acks.get(place).map(|(at, _)| *at)
}

fn measure(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let observed = Observed::new(trial, run)?;
    let seconds =
        if observed.end == Instant::MAX { f64::INFINITY } else { observed.since_start(observed.end) };
    measured.set("M", &[], seconds);
    let short = observed.flows.first().and_then(|flow| acked_at(flow, SHORT));
    let short = short.map_or(f64::INFINITY, |at| observed.since_start(at));
    measured.set("M50", &[], short);
    let mut note = |name: &str, value: Option<f64>| {
        measured.set_or("X", &[name.into()], value, &format!("{name}: nothing of the kind happened"));
    };
    terminal::measure(&observed, &mut note);
    overshoot::measure(&observed, &mut note);
    recovery::measure(&observed, &mut note);
    Ok(())
}

fn draw(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    if !trial.is_first {
        return Ok(());
    }
    let observed = Observed::new(trial, run)?;
    let Some(flow) = observed.flows.first() else { return Ok(()) };
    let point = |at: Instant, bytes: u64| (observed.since_start(at), bytes as f64 / 1e3);
    let sent = |again: bool| {
        let segments = flow.segments.iter().filter(move |segment| segment.again == again);
        segments.map(|segment| point(segment.at, segment.offset)).collect::<Vec<_>>()
    };
    measured.set_series("sent", crate::drawing::thin(sent(false)));
    measured.set_series("again", sent(true));
    measured
        .set_series("acked", crate::drawing::thin(flow.acks.iter().map(|(at, b)| point(*at, *b)).collect()));
    Ok(())
}
