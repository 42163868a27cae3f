//! Traffic: the applications that run on a lab's hosts.

pub mod bulk;
mod role;

use base::Instant;
use tcp::{ConnectionId, Event};

pub use bulk::{BulkReceiver, BulkSender};
pub use role::{Opening, Role};

/// What an application did with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    Going,
    /// This event completed what the application is there for: one of the run's goals.
    Finished,
    /// The application has ended without a goal of its own.
    Ended,
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
    /// How it comes by its connection.
    #[must_use]
    pub const fn role(&self) -> &Role {
        match self {
            Self::BulkSender(sender) => sender.role(),
            Self::BulkReceiver(receiver) => receiver.role(),
        }
    }

    const fn role_mut(&mut self) -> &mut Role {
        match self {
            Self::BulkSender(sender) => sender.role_mut(),
            Self::BulkReceiver(receiver) => receiver.role_mut(),
        }
    }

    /// When the application next wants to act by itself.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.role().opens_at()
    }

    /// Lets it open its connection only when these applications of the same host have ended.
    pub fn wait_for(&mut self, applications: Vec<usize>) {
        self.role_mut().wait_for(applications);
    }

    /// The application with this number on the same host has ended.
    pub fn on_ended(&mut self, now: Instant, application: usize) {
        self.role_mut().on_ended(now, application);
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
