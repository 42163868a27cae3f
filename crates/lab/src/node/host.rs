//! A host: TCP, UDP ports and the applications on them, attached to the network at port 0.

use core::net::IpAddr;

use base::wire::{ip, udp};
use base::{Instant, Packet};
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
    /// Which application receives at a UDP port; few enough to look through.
    udp_ports: Vec<(u16, usize)>,
    /// Datagrams that applications have sent and the network has not had yet; empty between inputs.
    datagrams: Vec<Packet>,
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
            udp_ports: udp_ports(&applications),
            applications,
            owners: FxHashMap::default(),
            datagrams: Vec::new(),
            discarded: 0,
            windows: None,
            senders: None,
        }
    }

    /// Opens the ports that its applications wait at; a port that two applications name is the first one's.
    pub fn listen(&mut self, config: &TcpConfig) {
        for port in self.applications.iter().filter_map(Application::listens_at) {
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

    /// Keeps from now on when its applications received how much.
    pub fn watch_progress(&mut self) {
        self.applications.iter_mut().for_each(Application::watch_progress);
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
            while application.poll_timeout().is_some_and(|due| due <= now) {
                let connection = application.handle_timeout(now, &mut self.tcp, &mut self.datagrams);
                self.owners.extend(connection.map(|connection| (connection, index)));
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
                && let Some(index) = self.applications.iter().position(|a| a.listens_at() == Some(local_port))
            {
                self.owners.insert(connection, index);
            }
            let Some(&owner) = self.owners.get(&connection) else { continue };
            let progress = self.applications[owner].on_event(now, &mut self.tcp, connection, event);
            // What happened may let it act sooner; that it may act later shows when it is asked.
            let due_now = self.applications[owner].poll_timeout();
            self.applications_due = earlier(self.applications_due, due_now);
            if matches!(event, Event::Closed | Event::Failed(_)) {
                // The last that is heard of it.
                self.owners.remove(&connection);
            }
            if progress == Progress::Finished {
                cx.reach_goal();
            }
            if progress != Progress::Going {
                self.applications.iter_mut().for_each(|application| application.on_ended(now, owner));
                self.applications_due = due(&self.applications);
            }
        }
        self.datagrams.drain(..).for_each(|packet| cx.send(Port(0), packet));
        while let Some(packet) = self.tcp.poll_transmit(now) {
            cx.send(Port(0), packet);
            self.sample(now);
        }
    }

    /// Hands a datagram to the application at its port; whether there was one.
    fn receive_datagram(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some((port, payload)) = datagram(self.address, packet) else { return false };
        let Some(&(_, index)) = self.udp_ports.iter().find(|(taken, _)| *taken == port) else { return false };
        if let Application::DatagramReceiver(receiver) = &mut self.applications[index] {
            receiver.on_datagram(now, payload);
        }
        true
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
                let taken = !self.udp_ports.is_empty() && self.receive_datagram(cx.now(), &packet);
                if !taken && self.tcp.handle_packet(cx.now(), &packet).is_err() {
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

fn udp_ports(applications: &[Application]) -> Vec<(u16, usize)> {
    let port = |(index, application): (usize, &Application)| Some((application.receives_at()?, index));
    applications.iter().enumerate().filter_map(port).collect()
}

/// Destination port and payload of a whole UDP datagram for `address`.
fn datagram(address: IpAddr, packet: &[u8]) -> Option<(u16, &[u8])> {
    let packet = ip::View::parse(packet).ok()?;
    if let ip::View::V4(v4) = &packet
        && (v4.is_fragment() || !v4.checksum_ok())
    {
        return None;
    }
    if packet.protocol() != ip::Protocol::UDP || packet.dst() != address {
        return None;
    }
    let view = udp::View::parse(packet.payload()).ok()?;
    let header = udp::Repr::parse(&view, packet.src(), packet.dst()).ok()?;
    Some((header.dst_port, view.payload()))
}
