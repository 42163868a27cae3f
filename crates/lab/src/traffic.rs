//! Traffic: the applications that run on a lab's hosts.

pub mod bulk;
pub mod datagram;
pub mod latency;
pub mod progress;
pub mod rate;
mod role;
mod schedule;
mod sending;
mod series;
pub mod transactions;
mod turns;

use base::{Instant, Packet};
use tcp::{ConnectionId, Event};

pub use bulk::{BulkReceiver, BulkSender};
pub use datagram::{DatagramReceiver, DatagramSender};
pub use rate::{RateReceiver, RateSender};
pub use role::{Opening, Role};
pub use schedule::Schedule;
pub use series::Series;
pub use transactions::{Client, Server};
pub use turns::{Turn, Turns};

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
    /// Sends records at a fixed rate over TCP.
    RateSender(Box<RateSender>),
    /// Receives them, and samples their latency.
    RateReceiver(Box<RateReceiver>),
    /// Sends records at a fixed rate over UDP.
    DatagramSender(Box<DatagramSender>),
    /// Receives them, and samples their latency.
    DatagramReceiver(Box<DatagramReceiver>),
    /// Opens a connection for each of its transactions.
    Client(Box<Client>),
    /// Answers every connection to its port.
    Server(Box<Server>),
}

impl Application {
    /// How it comes by its one connection; `None` if it has none, or many.
    #[must_use]
    pub const fn role(&self) -> Option<&Role> {
        match self {
            Self::BulkSender(sender) => Some(sender.role()),
            Self::BulkReceiver(receiver) => Some(receiver.role()),
            Self::RateSender(sender) => Some(sender.role()),
            Self::RateReceiver(receiver) => Some(receiver.role()),
            Self::DatagramSender(_) | Self::DatagramReceiver(_) | Self::Client(_) | Self::Server(_) => None,
        }
    }

    const fn role_mut(&mut self) -> Option<&mut Role> {
        match self {
            Self::BulkSender(sender) => Some(sender.role_mut()),
            Self::BulkReceiver(receiver) => Some(receiver.role_mut()),
            _ => None,
        }
    }

    /// The TCP port that it waits at.
    #[must_use]
    pub fn listens_at(&self) -> Option<u16> {
        match self {
            Self::Server(server) => Some(server.port()),
            _ => self.role().and_then(Role::listens_at),
        }
    }

    /// The UDP port that it receives at.
    #[must_use]
    pub const fn receives_at(&self) -> Option<u16> {
        match self {
            Self::DatagramReceiver(receiver) => Some(receiver.port()),
            _ => None,
        }
    }

    /// When the application next wants to act by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::RateSender(sender) => sender.poll_timeout(),
            Self::DatagramSender(sender) => sender.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
            _ => self.role().and_then(Role::opens_at),
        }
    }

    /// Lets a bulk transfer wait with opening its connection until it is [released](Application::release).
    pub fn hold(&mut self) {
        if let Some(role) = self.role_mut() {
            role.hold();
        }
    }

    /// What its opening waited for has happened.
    pub fn release(&mut self, now: Instant) {
        if let Some(role) = self.role_mut() {
            role.release(now);
        }
    }

    /// Keeps from now on when it received how much.
    pub fn watch_progress(&mut self) {
        match self {
            Self::BulkReceiver(receiver) => receiver.watch_progress(),
            Self::RateReceiver(receiver) => receiver.watch_progress(),
            Self::DatagramReceiver(receiver) => receiver.watch_progress(),
            _ => {}
        }
    }

    /// Acts once; the connection that it opened, if any. Datagrams that it sends are added to `datagrams`.
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        host: &mut tcp::Host,
        datagrams: &mut Vec<Packet>,
    ) -> Option<ConnectionId> {
        match self {
            Self::BulkSender(sender) => sender.handle_timeout(now, host),
            Self::BulkReceiver(receiver) => receiver.handle_timeout(now, host),
            Self::RateSender(sender) => sender.handle_timeout(now, host),
            Self::RateReceiver(receiver) => receiver.handle_timeout(now, host),
            Self::Client(client) => client.handle_timeout(now, host),
            Self::DatagramSender(sender) => {
                sender.handle_timeout(now, datagrams);
                None
            }
            Self::DatagramReceiver(_) | Self::Server(_) => None,
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
            Self::RateSender(sender) => sender.on_event(now, host, id, event),
            Self::RateReceiver(receiver) => receiver.on_event(now, host, id, event),
            Self::Client(client) => client.on_event(now, host, id, event),
            Self::Server(server) => server.on_event(now, host, id, event),
            Self::DatagramSender(_) | Self::DatagramReceiver(_) => Progress::Going,
        }
    }
}
