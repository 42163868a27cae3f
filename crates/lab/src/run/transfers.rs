//! What bulk transfers came to.

use base::Instant;
use serde::Serialize;

use super::traffic::{Traffic, host};
use crate::engine::Engine;
use crate::network::Transfer;
use crate::node::Element;
use crate::traffic::progress::ProgressTrace;
use crate::traffic::{Application, BulkReceiver, BulkSender};

/// What one connection came to.
#[derive(Clone, Debug, Serialize)]
pub struct TransferResult {
    /// The transfer's name in the scenario.
    pub name: String,
    /// The port at which one side waited for it: no other connection of the run has it.
    pub port: u16,
    /// Bytes that the application received in order.
    pub bytes: u64,
    /// When it opened, in seconds; `None` if it never did.
    pub opened: Option<f64>,
    /// From its opening to its last byte; `None` if it did not end.
    pub seconds: Option<f64>,
    /// Whether the connection broke.
    pub failed: bool,
    /// Data segments that its sender sent, first and again.
    pub segments_sent: u64,
    /// Data segments that its sender sent again.
    pub retransmissions: u64,
    /// Times that its sender's retransmission timer expired.
    pub timeouts: u64,
    /// Of those, the ones that the sender found to have been needless.
    pub spurious_timeouts: u64,
}

/// A transfer, as the run left it.
pub(super) struct Observed<'a> {
    transfer: &'a Transfer,
    engine: &'a Engine<Element>,
    receiver: &'a BulkReceiver,
}

impl<'a> Observed<'a> {
    pub(super) fn new(engine: &'a Engine<Element>, transfer: &'a Transfer) -> Self {
        Self { transfer, engine, receiver: receiver(engine, transfer) }
    }
}

impl Traffic for Observed<'_> {
    fn name(&self) -> &str {
        &self.transfer.name
    }

    fn opened_at(&self) -> Option<Instant> {
        opened_at(self.engine, self.transfer)
    }

    fn finished_at(&self) -> Option<Instant> {
        self.receiver.finished_at()
    }

    fn is_complete(&self) -> bool {
        self.transfer.size.is_none() || self.finished_at().is_some()
    }

    fn is_intact(&self) -> bool {
        self.receiver.is_intact()
    }

    fn received(&self) -> u64 {
        self.receiver.received()
    }

    fn progress(&self) -> Option<(u16, &ProgressTrace)> {
        Some((self.transfer.port, self.receiver.progress()?))
    }
}

pub(crate) fn receiver<'a>(engine: &'a Engine<Element>, transfer: &Transfer) -> &'a BulkReceiver {
    match &host(engine, transfer.to).applications()[transfer.receiver] {
        Application::BulkReceiver(receiver) => receiver,
        _ => unreachable!("a transfer names its receiver"),
    }
}

fn sender<'a>(engine: &'a Engine<Element>, transfer: &Transfer) -> &'a BulkSender {
    match &host(engine, transfer.from).applications()[transfer.sender] {
        Application::BulkSender(sender) => sender,
        _ => unreachable!("a transfer names its sender"),
    }
}

/// When the side that opens a transfer's connection did so.
fn opened_at(engine: &Engine<Element>, transfer: &Transfer) -> Option<Instant> {
    let by_sender = sender(engine, transfer).role().opened_at();
    by_sender.or_else(|| receiver(engine, transfer).role().opened_at())
}

pub(super) fn result(engine: &Engine<Element>, transfer: &Transfer) -> TransferResult {
    let receiver = receiver(engine, transfer);
    let sender = sender(engine, transfer);
    let sent = sender.statistics(host(engine, transfer.from).tcp());
    let opened = opened_at(engine, transfer);
    let since = |opened: Instant| Some(receiver.finished_at()?.saturating_since(opened).as_secs_f64());
    TransferResult {
        name: transfer.name.clone(),
        port: transfer.port,
        bytes: receiver.received(),
        opened: opened.map(Instant::as_secs_f64),
        seconds: opened.and_then(since),
        failed: sender.has_failed() || receiver.has_failed(),
        segments_sent: sent.data_segments_sent + sent.retransmissions,
        retransmissions: sent.retransmissions,
        timeouts: sent.timeouts.into(),
        spurious_timeouts: sent.spurious_timeouts.into(),
    }
}
