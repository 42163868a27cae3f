//! A host: TCP and the applications on it, attached to the network at port 0.

use core::net::IpAddr;

use base::Instant;
use rustc_hash::FxHashMap;
use tcp::{ConnectionId, Event, TcpConfig};

use super::earlier;
use crate::engine::{Context, Input, Node, Port};
use crate::observe::WindowTrace;
use crate::observe::events::SenderWatch;
use crate::traffic::{Application, Progress};

/// A host with one address.
#[derive(Debug)]
pub struct Host {
    address: IpAddr,
    tcp: tcp::Host,
    applications: Vec<Application>,
    /// Which application a connection belongs to.
    owners: FxHashMap<ConnectionId, usize>,
    discarded: u64,
    /// When the first application wants to act; kept, since the engine asks after every packet.
    applications_due: Option<Instant>,
    /// The windows of its connections, where they are watched.
    windows: Option<Box<WindowTrace>>,
    /// Logs the states of its connections, where events are logged.
    senders: Option<Box<SenderWatch>>,
}

impl Host {
    /// A host at `address` with its applications.
    #[must_use]
    pub fn new(address: IpAddr, tcp: tcp::Host, applications: Vec<Application>) -> Self {
        Self {
            address,
            tcp,
            applications_due: due(&applications),
            applications,
            owners: FxHashMap::default(),
            discarded: 0,
            windows: None,
            senders: None,
        }
    }

    /// Opens the ports that its applications wait at; a port that two applications name is the first one's.
    pub fn listen(&mut self, config: &TcpConfig) {
        for port in self.applications.iter().filter_map(|a| a.role().listens_at()) {
            // Err is a port that is taken.
            let _ = self.tcp.listen(port, config);
        }
    }

    /// The host's address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The applications, in the order in which they were given.
    #[must_use]
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// The host's TCP.
    #[must_use]
    pub const fn tcp(&self) -> &tcp::Host {
        &self.tcp
    }

    /// Keeps the windows of its connections from now on.
    pub fn watch_windows(&mut self) {
        self.windows.get_or_insert_default();
    }

    /// Logs the states of its connections from now on.
    pub fn watch_senders(&mut self, watch: SenderWatch) {
        self.senders = Some(Box::new(watch));
    }

    /// The windows of its connections, if they are watched.
    #[must_use]
    pub fn windows(&self) -> Option<&WindowTrace> {
        self.windows.as_deref()
    }

    /// Packets that arrived and were of no use.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }

    fn handle_timeouts(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        if self.tcp.poll_timeout().is_some_and(|due| due <= now) {
            self.tcp.handle_timeout(now);
        }
        for (index, application) in self.applications.iter_mut().enumerate() {
            if application.poll_timeout().is_some_and(|due| due <= now)
                && let Some(connection) = application.handle_timeout(now, &mut self.tcp)
            {
                self.owners.insert(connection, index);
            }
        }
        self.applications_due = due(&self.applications);
    }

    /// Lets the applications act on TCP's events and TCP on the applications, until both are quiet.
    fn drain(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        self.sample(now);
        while let Some((connection, event)) = self.tcp.poll_event() {
            if let Event::Accepted { local_port } = event
                && let Some(index) =
                    self.applications.iter().position(|a| a.role().listens_at() == Some(local_port))
            {
                self.owners.insert(connection, index);
            }
            let Some(&owner) = self.owners.get(&connection) else { continue };
            let progress = self.applications[owner].on_event(now, &mut self.tcp, connection, event);
            if progress == Progress::Finished {
                cx.reach_goal();
            }
            if progress != Progress::Going {
                self.applications.iter_mut().for_each(|application| application.on_ended(now, owner));
                self.applications_due = due(&self.applications);
            }
        }
        while let Some(packet) = self.tcp.poll_transmit(now) {
            cx.send(Port(0), packet);
            self.sample(now);
        }
    }

    fn sample(&mut self, now: Instant) {
        if let Some(windows) = &mut self.windows {
            windows.sample(now, &self.tcp);
        }
        if let Some(senders) = &mut self.senders {
            senders.sample(now, &self.tcp);
        }
    }
}

impl Node for Host {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match input {
            Input::Arrival(_, packet) => {
                if self.tcp.handle_packet(cx.now(), &packet).is_err() {
                    self.discarded += 1;
                }
            }
            Input::Wake => self.handle_timeouts(cx),
        }
        self.drain(cx);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.tcp.poll_timeout(), self.applications_due)
    }
}

/// When the first of them wants to act.
fn due(applications: &[Application]) -> Option<Instant> {
    applications.iter().filter_map(Application::poll_timeout).min()
}
