//! What rate-controlled sources came to.

use base::Instant;
use serde::Serialize;

use super::traffic::{Traffic, host};
use crate::engine::Engine;
use crate::network::Source;
use crate::node::Element;
use crate::traffic::latency::{Latencies, Latency};
use crate::traffic::progress::ProgressTrace;
use crate::traffic::{Application, DatagramReceiver, DatagramSender, RateReceiver, RateSender};

/// What one connection of a rate-controlled source, or its datagrams, came to.
#[derive(Clone, Debug, Serialize)]
pub struct SourceResult {
    /// The source's name in the scenario.
    pub name: String,
    /// The port at which one side waited for the other: no other connection of the run has it.
    pub port: u16,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// When it opened, in seconds; `None` if it never did.
    pub opened: Option<f64>,
    /// Bytes of records that the receiver read, those of a record that is not whole yet included.
    pub bytes: u64,
    /// Records generated.
    pub generated: u64,
    /// Records that found no room in the sending application's buffer.
    pub dropped: u64,
    /// Records that came, each counted once.
    pub delivered: u64,
    /// Records, not dropped, that had not come when the run ended. Over UDP: lost or still on their way.
    pub undelivered: u64,
    /// How long ago those were generated when the run ended, on average, in seconds; for TCP, if there are any.
    pub undelivered_age: Option<f64>,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came after one generated later.
    pub late: u64,
    /// From the generation of a record to its last byte's being read.
    pub latency: Option<Latency>,
    /// Whether the connection could not be opened, or broke.
    pub failed: bool,
    /// TCP data segments that its sender sent, first and again.
    pub segments_sent: u64,
    /// TCP data segments that its sender sent again.
    pub retransmissions: u64,
    /// Times that its sender's retransmission timer expired.
    pub timeouts: u64,
}

/// A source's two applications.
enum Ends<'a> {
    Tcp(&'a RateSender, &'a RateReceiver),
    Udp(&'a DatagramSender, &'a DatagramReceiver),
}

/// A source, as the run left it.
pub(super) struct Observed<'a> {
    source: &'a Source,
    engine: &'a Engine<Element>,
    ends: Ends<'a>,
}

impl<'a> Observed<'a> {
    pub(super) fn new(engine: &'a Engine<Element>, source: &'a Source) -> Self {
        let sender = &host(engine, source.from).applications()[source.sender];
        let receiver = &host(engine, source.to).applications()[source.receiver];
        let ends = match (sender, receiver) {
            (Application::RateSender(sender), Application::RateReceiver(receiver)) => {
                Ends::Tcp(sender, receiver)
            }
            (Application::DatagramSender(sender), Application::DatagramReceiver(receiver)) => {
                Ends::Udp(sender, receiver)
            }
            _ => unreachable!("a source names its applications"),
        };
        Self { source, engine, ends }
    }

    const fn samples(&self) -> &'a Latencies {
        match self.ends {
            Ends::Tcp(_, receiver) => receiver.latencies(),
            Ends::Udp(_, receiver) => receiver.latencies(),
        }
    }

    pub(super) fn result(&self, end: Instant) -> SourceResult {
        let latencies = self.samples();
        let common = SourceResult {
            name: self.source.name.clone(),
            port: self.source.port,
            transport: "udp",
            opened: self.opened_at().map(Instant::as_secs_f64),
            bytes: self.received(),
            generated: 0,
            dropped: 0,
            delivered: latencies.count(),
            undelivered: 0,
            undelivered_age: None,
            duplicates: 0,
            late: 0,
            latency: latencies.summary(),
            failed: false,
            segments_sent: 0,
            retransmissions: 0,
            timeouts: 0,
        };
        match self.ends {
            Ends::Tcp(sender, receiver) => {
                let sent = sender.statistics(host(self.engine, self.source.from).tcp());
                let undelivered = sender.generated() - sender.dropped() - common.delivered;
                let ages = u128::from(end.as_nanos()) * u128::from(undelivered)
                    - (sender.stamps() - receiver.stamps());
                SourceResult {
                    transport: "tcp",
                    generated: sender.generated(),
                    dropped: sender.dropped(),
                    undelivered,
                    undelivered_age: (undelivered > 0).then(|| ages as f64 / undelivered as f64 / 1e9),
                    failed: sender.has_failed() || receiver.has_failed(),
                    segments_sent: sent.data_segments_sent + sent.retransmissions,
                    retransmissions: sent.retransmissions,
                    timeouts: sent.timeouts.into(),
                    ..common
                }
            }
            Ends::Udp(sender, receiver) => SourceResult {
                generated: sender.sent(),
                undelivered: sender.sent() - common.delivered,
                duplicates: receiver.duplicates(),
                late: receiver.late(),
                ..common
            },
        }
    }
}

impl Traffic for Observed<'_> {
    fn name(&self) -> &str {
        &self.source.name
    }

    fn opened_at(&self) -> Option<Instant> {
        match self.ends {
            Ends::Tcp(sender, receiver) => sender.role().opened_at().or_else(|| receiver.role().opened_at()),
            Ends::Udp(sender, _) => sender.opened_at(),
        }
    }

    fn finished_at(&self) -> Option<Instant> {
        match self.ends {
            Ends::Tcp(_, receiver) => receiver.finished_at(),
            Ends::Udp(..) => None,
        }
    }

    fn is_complete(&self) -> bool {
        !self.source.ends || self.finished_at().is_some()
    }

    fn is_promised(&self) -> bool {
        matches!(self.ends, Ends::Tcp(..))
    }

    fn received(&self) -> u64 {
        match self.ends {
            Ends::Tcp(_, receiver) => receiver.received(),
            Ends::Udp(_, receiver) => receiver.received(),
        }
    }

    fn is_intact(&self) -> bool {
        match self.ends {
            Ends::Tcp(_, receiver) => receiver.is_intact(),
            Ends::Udp(_, receiver) => receiver.is_intact(),
        }
    }

    fn latencies(&self) -> Option<&Latencies> {
        Some(self.samples())
    }

    fn progress(&self) -> Option<(u16, &ProgressTrace)> {
        let trace = match self.ends {
            Ends::Tcp(_, receiver) => receiver.progress(),
            Ends::Udp(_, receiver) => receiver.progress(),
        };
        Some((self.source.port, trace?))
    }
}
