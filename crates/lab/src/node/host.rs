//! A host: TCP, UDP ports and the applications on them, attached to the network at port 0.

use core::net::IpAddr;

use base::wire::{ip, udp};
use base::{Instant, Packet};
use rustc_hash::FxHashMap;
use tcp::{ConnectionId, Event, TcpConfig};

use super::earlier;
use crate::engine::{Context, Deadlines, Input, Node, Port};
use crate::observe::WindowTrace;
use crate::observe::events::SenderWatch;
use crate::traffic::{Application, Progress, Turn, Turns};

/// A host with one address.
#[derive(Debug)]
pub struct Host {
    address: IpAddr,
    tcp: tcp::Host,
    applications: Vec<Application>,
    /// Which application a connection belongs to, by the connection's place.
    owners: Vec<Option<(ConnectionId, u32)>>,
    /// Which application waits at a TCP port.
    tcp_ports: FxHashMap<u16, u32>,
    /// Which application receives at a UDP port.
    udp_ports: FxHashMap<u16, u32>,
    /// Which applications wait for others.
    turns: Turns,
    /// Datagrams that applications have sent and the network has not had yet; empty between inputs.
    datagrams: Vec<Packet>,
    discarded: u64,
    /// When each application wants to act.
    deadlines: Deadlines,
    /// When the first application wants to act, or earlier.
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
        let mut deadlines = Deadlines::new();
        applications.iter().for_each(|application| deadlines.add(application.poll_timeout()));
        Self {
            address,
            tcp,
            applications_due: deadlines.first().map(|(due, _)| due),
            deadlines,
            tcp_ports: by_port(&applications, Application::listens_at),
            udp_ports: by_port(&applications, Application::receives_at),
            applications,
            owners: Vec::new(),
            turns: Turns::default(),
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

    /// Lets applications wait for others before they open their connections.
    pub fn take_turns(&mut self, turns: Vec<Turn>) {
        for &application in turns.iter().flat_map(|turn| &turn.behind) {
            self.applications[application].hold();
            self.note_deadline(application);
        }
        self.turns = Turns::new(turns);
        self.applications_due = self.deadlines.first().map(|(due, _)| due);
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

    fn note_deadline(&mut self, application: usize) {
        self.deadlines.set(application as u32, self.applications[application].poll_timeout());
    }

    fn handle_timeouts(&mut self, now: Instant) {
        if self.tcp.poll_timeout().is_some_and(|due| due <= now) {
            self.tcp.handle_timeout(now);
        }
        let mut due = Vec::new();
        while let Some((_, application)) = self.deadlines.first().filter(|&(due, _)| due <= now) {
            self.deadlines.set(application, None);
            due.push(application);
        }
        // Those that are due at once act in the order in which they were given.
        due.sort_unstable();
        for place in due {
            let application = &mut self.applications[place as usize];
            let mut left = MOST_ACTS;
            while left > 0 && application.poll_timeout().is_some_and(|due| due <= now) {
                left -= 1;
                if let Some(id) = application.handle_timeout(now, &mut self.tcp, &mut self.datagrams) {
                    own(&mut self.owners, id, place);
                }
            }
            self.note_deadline(place as usize);
        }
        self.applications_due = self.deadlines.first().map(|(due, _)| due);
    }

    /// Lets the applications act on TCP's events and TCP on the applications, until both are quiet.
    fn drain(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        self.sample(now);
        while let Some((connection, event)) = self.tcp.poll_event() {
            if let Event::Accepted { local_port } = event
                && let Some(&application) = self.tcp_ports.get(&local_port)
            {
                own(&mut self.owners, connection, application);
            }
            let Some(Some((_, owner))) =
                self.owners.get(connection.place()).filter(|it| it.is_some_and(|(id, _)| id == connection))
            else {
                continue;
            };
            let owner = *owner as usize;
            let progress = self.applications[owner].on_event(now, &mut self.tcp, connection, event);
            // What happened may let it act sooner; that it may act later shows when it is asked.
            let due_now = self.applications[owner].poll_timeout();
            self.deadlines.set(owner as u32, due_now);
            self.applications_due = earlier(self.applications_due, due_now);
            if matches!(event, Event::Closed | Event::Failed(_)) {
                // The last that is heard of it.
                self.owners[connection.place()] = None;
            }
            if progress == Progress::Finished {
                cx.reach_goal();
            }
            if progress != Progress::Going {
                for application in self.turns.on_ended(owner) {
                    self.applications[application].release(now);
                    self.note_deadline(application);
                }
                self.applications_due = self.deadlines.first().map(|(due, _)| due);
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
        let Some(&application) = self.udp_ports.get(&port) else { return false };
        if let Application::DatagramReceiver(receiver) = &mut self.applications[application as usize] {
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
            Input::Wake => self.handle_timeouts(cx.now()),
        }
        self.drain(cx);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.tcp.poll_timeout(), self.applications_due)
    }
}

/// Notes that a connection is an application's.
fn own(owners: &mut Vec<Option<(ConnectionId, u32)>>, connection: ConnectionId, application: u32) {
    if owners.len() <= connection.place() {
        owners.resize(connection.place() + 1, None);
    }
    owners[connection.place()] = Some((connection, application));
}

/// The first application at each port.
fn by_port(applications: &[Application], port: impl Fn(&Application) -> Option<u16>) -> FxHashMap<u16, u32> {
    let mut ports = FxHashMap::default();
    for (application, port) in applications.iter().map(port).enumerate() {
        if let Some(port) = port {
            ports.entry(port).or_insert(application as u32);
        }
    }
    ports
}

/// What an application does in one wake, at most; the engine stops one that goes on and on. Ours.
const MOST_ACTS: u32 = 1 << 20;

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
