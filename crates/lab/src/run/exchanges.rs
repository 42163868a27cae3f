//! What transactions came to.

use base::Instant;
use serde::Serialize;

use super::traffic::{Traffic, host};
use crate::engine::Engine;
use crate::network::Exchanges;
use crate::node::Element;
use crate::traffic::latency::{Latencies, Latency};
use crate::traffic::{Application, Client, Server};

/// What all transactions of one name came to.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionsResult {
    /// Their name in the scenario.
    pub name: String,
    /// When the first one started, in seconds; `None` if none did.
    pub opened: Option<f64>,
    /// Bytes of replies.
    pub bytes: u64,
    /// Transactions started.
    pub started: u64,
    /// Transactions whose reply came whole.
    pub completed: u64,
    /// Transactions whose connection could not be opened, broke, or ended too soon.
    pub failed: u64,
    /// Transactions under way when the run ended.
    pub under_way: u64,
    /// Starts that were left out because too many were under way.
    pub skipped: u64,
    /// From the opening of the connection to the reply's last byte.
    pub times: Option<Latency>,
}

/// Transactions, as the run left them.
pub(super) struct Observed<'a> {
    exchanges: &'a Exchanges,
    client: &'a Client,
    server: &'a Server,
}

impl<'a> Observed<'a> {
    pub(super) fn new(engine: &'a Engine<Element>, exchanges: &'a Exchanges) -> Self {
        Self { exchanges, client: client(engine, exchanges), server: server(engine, exchanges) }
    }
}

impl Traffic for Observed<'_> {
    fn name(&self) -> &str {
        &self.exchanges.name
    }

    fn opened_at(&self) -> Option<Instant> {
        self.client.opened_at()
    }

    fn finished_at(&self) -> Option<Instant> {
        self.client.finished_at()
    }

    fn is_complete(&self) -> bool {
        self.exchanges.count.is_none_or(|count| self.client.times().count() == count)
    }

    fn is_intact(&self) -> bool {
        self.client.is_intact() && self.server.is_intact()
    }

    fn received(&self) -> u64 {
        self.client.received()
    }

    fn latencies(&self) -> Option<&Latencies> {
        Some(self.client.times())
    }
}

/// The client of `exchanges`, as the run left it.
fn client<'a>(engine: &'a Engine<Element>, exchanges: &Exchanges) -> &'a Client {
    match &host(engine, exchanges.to).applications()[exchanges.client] {
        Application::Client(client) => client,
        _ => unreachable!("transactions name their client"),
    }
}

/// The server of `exchanges`, as the run left it.
fn server<'a>(engine: &'a Engine<Element>, exchanges: &Exchanges) -> &'a Server {
    match &host(engine, exchanges.from).applications()[exchanges.server] {
        Application::Server(server) => server,
        _ => unreachable!("transactions name their server"),
    }
}

pub(super) fn result(engine: &Engine<Element>, exchanges: &Exchanges) -> TransactionsResult {
    let client = client(engine, exchanges);
    TransactionsResult {
        name: exchanges.name.clone(),
        opened: client.opened_at().map(Instant::as_secs_f64),
        bytes: client.received(),
        started: client.started(),
        completed: client.times().count(),
        failed: client.failed(),
        under_way: client.under_way() as u64,
        skipped: client.skipped(),
        times: client.times().summary(),
    }
}
