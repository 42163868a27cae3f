//! Traffic: the applications that run on a lab's hosts.

pub mod bulk;
pub mod content;

use base::Instant;
use tcp::{ConnectionId, Event};

pub use bulk::{BulkReceiver, BulkSender};

/// What an application did with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    Going,
    /// This event completed what the application is there for.
    Finished,
}

/// An application on a host.
#[derive(Debug)]
pub enum Application {
    /// Sends a stream as fast as TCP takes it.
    BulkSender(BulkSender),
    /// Receives a stream and checks every byte.
    BulkReceiver(BulkReceiver),
}

impl Application {
    /// The port whose connections are this application's.
    #[must_use]
    pub const fn listens_at(&self) -> Option<u16> {
        match self {
            Self::BulkSender(sender) => sender.role().listens_at(),
            Self::BulkReceiver(receiver) => receiver.role().listens_at(),
        }
    }

    /// When the application next wants to act by itself.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::BulkSender(sender) => sender.role().opens_at(),
            Self::BulkReceiver(receiver) => receiver.role().opens_at(),
        }
    }

    /// Acts; the connection that it opened, if any.
    pub fn handle_timeout(&mut self, now: Instant, host: &mut tcp::Host) -> Option<ConnectionId> {
        match self {
            Self::BulkSender(sender) => sender.open(now, host),
            Self::BulkReceiver(receiver) => receiver.open(now, host),
        }
    }

    /// Takes an event of one of its connections.
    pub fn on_event(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        id: ConnectionId,
        event: Event,
    ) -> Progress {
        match self {
            Self::BulkSender(sender) => sender.on_event(now, host, id, event),
            Self::BulkReceiver(receiver) => receiver.on_event(now, host, id, event),
        }
    }
}
