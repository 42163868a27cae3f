//! The channel in real time: rate, queue, delay and errors, packet by packet, between two ports.
//!
//! A port is a UDP socket or a TUN device. What comes in at port A crosses the channel's *down* line (towards
//! the terminal) and leaves at port B; the *up* line leads back. Air time counts whole IP packets: a
//! datagram counts with its UDP and IP headers, unless told otherwise ([`Overhead`]). Nothing is segmented or merged on the way, and
//! nobody is told that a packet is too long for the path: that is dropped in silence.

mod direction;
mod port;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use base::{Duration, Instant};
use channel::duplex;
use serde::Serialize;

use direction::Direction;
use gateway::clock::Clock;
use gateway::readiness::{Interest, Ready, wait, wake_exactly};
use gateway::signals::Signals;
use port::Port;
use tunnel::config::Overhead;

pub use direction::DirectionCounters;

/// Where packets enter and leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Two UDP sockets.
    Udp {
        /// The hub's side.
        a: UdpPort,
        /// The terminal's side.
        b: UdpPort,
    },
    /// Two TUN devices, created here, without offloads.
    Tun {
        /// The hub's side.
        a: String,
        /// The terminal's side.
        b: String,
    },
}

/// A UDP socket of the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPort {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where its packets go; without it, to where the latest one came from.
    pub peer: Option<SocketAddr>,
}

/// What an emulator does.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where packets enter and leave.
    pub ports: Ports,
    /// The channel between them. A recording that it names must be loaded.
    pub channel: duplex::Config,
    /// Root of every random stream.
    pub seed: u64,
    /// What each packet occupies of the line besides its bytes.
    pub overhead: Overhead,
    /// Packets that may wait for each line.
    pub queue: usize,
    /// Between two reports; none without it.
    pub report_every: Option<Duration>,
}

/// What an emulator did so far.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Since its start.
    pub seconds: f64,
    /// From A to B.
    pub down: DirectionCounters,
    /// From B to A.
    pub up: DirectionCounters,
}

/// A running emulator.
#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    ports: [Port; 2],
    /// What came in at port 0, then what came in at port 1.
    directions: [Direction; 2],
    overhead: Overhead,
    report_every: Option<Duration>,
    report_at: Instant,
}

/// The channel's name, from which its random streams derive: a link of this name in the lab meets the same realisation.
pub const CHANNEL_NAME: &str = "sat";
/// Packets taken from one port before the other has its turn.
const TURN: usize = 64;

impl Emulator {
    /// Opens both ports. The realisation of the errors starts now.
    ///
    /// # Errors
    /// A port cannot be opened.
    pub fn new(options: &Options) -> io::Result<Self> {
        let ports = match &options.ports {
            Ports::Udp { a, b } => [Port::udp(*a)?, Port::udp(*b)?],
            Ports::Tun { a, b } => [Port::tun(a)?, Port::tun(b)?],
        };
        let lines = options.channel.build(options.seed, CHANNEL_NAME);
        let directions = [lines.down, lines.up].map(|line| Direction::new(line, options.queue));
        Ok(Self {
            clock: Clock::start(),
            ports,
            directions,
            overhead: options.overhead,
            report_every: options.report_every,
            report_at: Instant::ZERO + options.report_every.unwrap_or(Duration::MAX),
        })
    }

    /// Runs until a signal asks to end; `report` hears the counters at the wanted interval.
    ///
    /// # Errors
    /// A port is gone.
    pub fn run(&mut self, signals: &mut Signals, mut report: impl FnMut(&Report)) -> io::Result<()> {
        wake_exactly();
        let mut ready = [Ready::default(); 3];
        loop {
            if ready[2].read && signals.received() {
                return Ok(());
            }
            for (from, ready) in ready[..2].iter().enumerate() {
                if ready.read {
                    self.take_in(from)?;
                }
                self.give_out(from);
            }
            let now = self.clock.now();
            if self.report_at <= now {
                report(&self.report());
                self.report_at = now.saturating_add(self.report_every.unwrap_or(Duration::MAX));
            }
            let next = self.directions.iter().filter_map(Direction::next_delivery).min();
            let next = next.unwrap_or(Instant::MAX).min(self.report_at);
            let timeout = (next != Instant::MAX).then(|| next.saturating_since(now));
            let [a, b] = &self.ports;
            ready = wait([a.interest(), b.interest(), Interest::read(signals.as_fd())], timeout)?;
        }
    }

    /// The counters so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let now = self.clock.now();
        let [down, up] = [0, 1].map(|from| DirectionCounters {
            dropped_at_entry: self.ports[from].overflows(),
            ..self.directions[from].counters()
        });
        Report { seconds: now.as_secs_f64(), down, up }
    }

    fn take_in(&mut self, from: usize) -> io::Result<()> {
        for _ in 0..TURN {
            let Some((packet, len)) = self.ports[from].read()? else { break };
            let on_line = self.overhead.on_line(len);
            self.directions[from].handle_packet(self.clock.now(), packet, len, on_line);
        }
        Ok(())
    }

    fn give_out(&mut self, from: usize) {
        let now = self.clock.now();
        while let Some(packet) = self.directions[from].poll_delivery(now) {
            if !self.ports[1 - from].write(&packet) {
                self.directions[from].counters.dropped_at_exit.increment();
            }
        }
    }
}
