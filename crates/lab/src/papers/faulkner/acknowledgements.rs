//! Section 4.2.3: how long TCP's acknowledgements take over the uplink.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use base::Instant;

use crate::claims::Measurements;
use crate::observe::events::Segment;
use crate::run::Run;
use crate::statistics::mean;
use crate::study::probe::{Method, Probe, Trial};

/// `acknowledgement_latency`: mean seconds from when the terminal sends an acknowledgement into the queue before the uplink
/// until the server has it; those that the queue drops have none.
pub(super) const ACKNOWLEDGEMENTS: Probe = Probe {
    name: "acknowledgements",
    version: 1,
    quantities: &["acknowledgement_latency"],
    series: &[],
    method: Method::Run { watch: |watch| watch.host_events = true, read: measure },
};

/// What tells acknowledgements apart: the port, the acknowledged offset, the window and the SACK blocks.
type Mark = (u16, u64, u16, Box<[(u64, u64)]>);

fn mark(segment: &Segment) -> Option<Mark> {
    let bare = segment.len == 0;
    segment.ack.filter(|_| bare).map(|ack| (segment.from, ack, segment.window, segment.sack.clone()))
}

fn measure(_: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let mut sent: BTreeMap<Mark, VecDeque<Instant>> = BTreeMap::new();
    for (at, segment) in run.log.segments("terminal").filter(|(_, segment)| segment.sent) {
        if let Some(mark) = mark(segment) {
            sent.entry(mark).or_default().push_back(at);
        }
    }
    let mut latencies = Vec::new();
    for (at, segment) in run.log.segments("server").filter(|(_, segment)| !segment.sent) {
        let sent = mark(segment).and_then(|mark| sent.get_mut(&mark)?.pop_front());
        latencies.extend(sent.map(|sent| at.saturating_since(sent).as_secs_f64()));
    }
    measured.note("acknowledgement_latency", mean(&latencies));
    Ok(())
}
