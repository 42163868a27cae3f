//! Our TCP in real time: hosts on a TUN device, and an application on them.
//!
//! The kernel sees a device behind which other hosts live. What it routes there goes to the [`tcp::Host`] with that
//! address, and what the hosts send goes back. One thread runs a stack, its application included; several stacks of
//! a process share a [`Clock`] where their times are to be compared.

pub mod exchange;
pub mod path;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;

use base::{Duration, Instant, Packet, Prefix, Rng};
use tcp::{ConnectionId, Event};

use gateway::clock::Clock;
use gateway::readiness::{Interest, wait, wake_exactly};
use gateway::tun::{Tun, Written};
use path::{Impairments, Path};
use tunnel::counters::Counter;

pub use exchange::Exchange;

/// What a stack is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The TUN device's name; it is made in the network namespace of the thread that opens the stack.
    pub device: String,
    /// Largest packet of the device, in bytes. A [`tcp::TcpConfig`] is told by its `mss`.
    pub mtu: u32,
    /// The hosts of the stack, an address each.
    pub hosts: Vec<IpAddr>,
    /// The kernel's own addresses on the device; their networks lead to it.
    pub kernel: Vec<Prefix>,
    /// What port numbers and initial sequence numbers derive from: a secret, but in a test.
    pub seed: u64,
    /// What happens to packets from the kernel and to packets towards it, for tests; nothing without it.
    pub impairments: Option<[Impairments; 2]>,
}

/// What uses the connections of a stack.
pub trait Application {
    /// Something happened to a connection of one of the `hosts`, the one at `address`.
    fn on_event(&mut self, now: Instant, hosts: &mut Hosts, address: IpAddr, id: ConnectionId, event: Event);

    /// When it wants to act by itself.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Acts by itself.
    fn handle_timeout(&mut self, _now: Instant, _hosts: &mut Hosts) {}

    /// Whether it has nothing more to do.
    fn is_finished(&self) -> bool;
}

/// The hosts of a stack, by address.
#[derive(Debug)]
pub struct Hosts(BTreeMap<IpAddr, tcp::Host>);

/// What a stack did with packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// From the kernel, taken by a connection.
    pub received: Counter,
    /// From the kernel, of no use to any host.
    pub discarded: Counter,
    /// To the kernel.
    pub sent: Counter,
    /// To the kernel, which did not take them.
    pub refused: Counter,
    /// Either way, lost on the bad path.
    pub lost: Counter,
}

/// TCP hosts on a TUN device.
#[derive(Debug)]
pub struct Stack {
    clock: Clock,
    tun: Tun,
    hosts: Hosts,
    /// From the kernel, and to it.
    paths: Option<[Path; 2]>,
    /// What happened so far.
    pub counters: Counters,
}

/// Packets taken from the device before the hosts have their turn.
const TURN: usize = 64;

impl Stack {
    /// Makes the device and brings it up.
    ///
    /// # Errors
    /// No such right, no TUN driver, a name or an address that is taken.
    pub fn open(options: &Options, clock: Clock) -> io::Result<Self> {
        let tun = Tun::open(&options.device, false)?;
        let settings =
            gateway::tun::Settings { mtu: options.mtu, addresses: &options.kernel, gso_max_size: None };
        settings.apply(&options.device)?;
        let host = |&address: &IpAddr| {
            (address, tcp::Host::new(address, Rng::named(options.seed, &format!("host {address}"))))
        };
        let paths = options.impairments.as_ref().map(|[from, to]| {
            [from.path(options.seed, "from the kernel"), to.path(options.seed, "to the kernel")]
        });
        Ok(Self {
            clock,
            tun,
            hosts: Hosts(options.hosts.iter().map(host).collect()),
            paths,
            counters: Counters::default(),
        })
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Its hosts.
    #[must_use]
    pub const fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Its hosts, to listen or connect on.
    pub const fn hosts_mut(&mut self) -> &mut Hosts {
        &mut self.hosts
    }

    /// Runs until the `application` has finished, or it is `until`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn run(&mut self, application: &mut dyn Application, until: Instant) -> io::Result<()> {
        wake_exactly();
        loop {
            self.take_in()?;
            self.handle_timeouts(application);
            self.drain(application);
            let now = self.clock.now();
            if application.is_finished() || until <= now {
                return Ok(());
            }
            let next = self.next_deadline(application).min(until);
            let timeout = (next != Instant::MAX).then(|| next.saturating_since(now));
            // What is due at once need not wait for the device.
            if timeout != Some(Duration::ZERO) {
                wait([Interest::read(self.tun.as_fd())], timeout)?;
            }
        }
    }

    fn take_in(&mut self) -> io::Result<()> {
        for _ in 0..TURN {
            let Some(packet) = self.tun.read()? else { break };
            let now = self.clock.now();
            match &mut self.paths {
                Some([from_kernel, _]) => {
                    let arrives = from_kernel.handle_packet(now, packet);
                    self.counters.lost.add(u64::from(!arrives));
                }
                None => self.deliver(now, &packet),
            }
        }
        let now = self.clock.now();
        while let Some(packet) = self.paths.as_mut().and_then(|[from_kernel, _]| from_kernel.poll_packet(now))
        {
            self.deliver(now, &packet);
        }
        Ok(())
    }

    fn deliver(&mut self, now: Instant, packet: &[u8]) {
        let host = base::wire::ip::View::parse(packet).ok().and_then(|view| self.hosts.get_mut(view.dst()));
        match host.map(|host| host.handle_packet(now, packet)) {
            Some(Ok(())) => self.counters.received.increment(),
            Some(Err(_)) | None => self.counters.discarded.increment(),
        }
    }

    fn handle_timeouts(&mut self, application: &mut dyn Application) {
        let now = self.clock.now();
        for host in self.hosts.0.values_mut() {
            if host.poll_timeout().is_some_and(|due| due <= now) {
                host.handle_timeout(now);
            }
        }
        if application.poll_timeout().is_some_and(|due| due <= now) {
            application.handle_timeout(now, &mut self.hosts);
        }
    }

    /// Lets the application act on TCP's events and TCP on the application, until both are quiet.
    fn drain(&mut self, application: &mut dyn Application) {
        let now = self.clock.now();
        while let Some((address, id, event)) = self.hosts.poll_event() {
            application.on_event(now, &mut self.hosts, address, id, event);
        }
        while let Some(packet) = self.hosts.poll_transmit(now) {
            match &mut self.paths {
                Some([_, to_kernel]) => {
                    let arrives = to_kernel.handle_packet(now, packet);
                    self.counters.lost.add(u64::from(!arrives));
                }
                None => self.send(&packet),
            }
        }
        while let Some(packet) = self.paths.as_mut().and_then(|[_, to_kernel]| to_kernel.poll_packet(now)) {
            self.send(&packet);
        }
    }

    fn send(&mut self, packet: &Packet) {
        match self.tun.write(packet) {
            Written::Yes => self.counters.sent.increment(),
            Written::Full | Written::Refused => self.counters.refused.increment(),
        }
    }

    /// [`Instant::MAX`] if there is none.
    fn next_deadline(&self, application: &dyn Application) -> Instant {
        let hosts = self.hosts.0.values().filter_map(tcp::Host::poll_timeout);
        let paths = self.paths.iter().flatten().filter_map(Path::poll_timeout);
        hosts.chain(paths).chain(application.poll_timeout()).min().unwrap_or(Instant::MAX)
    }
}

impl Hosts {
    /// The host at `address`.
    #[must_use]
    pub fn get(&self, address: IpAddr) -> Option<&tcp::Host> {
        self.0.get(&address)
    }

    /// The host at `address`.
    pub fn get_mut(&mut self, address: IpAddr) -> Option<&mut tcp::Host> {
        self.0.get_mut(&address)
    }

    fn poll_event(&mut self) -> Option<(IpAddr, ConnectionId, Event)> {
        let event = |(address, host): (&IpAddr, &mut tcp::Host)| {
            host.poll_event().map(|(id, event)| (*address, id, event))
        };
        self.0.iter_mut().find_map(event)
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.0.values_mut().find_map(|host| host.poll_transmit(now))
    }
}
