//! The gateway daemon: one thread, one event loop, around the same link endpoint that the lab measures.
//!
//! Packets come from the TUN device into bounded queues, from there into the endpoint as it has room;
//! frames leave as the pacer allows, each sealed into one datagram, many datagrams in one call. What
//! arrives is opened in place and goes to the endpoint; what the endpoint completes goes to the TUN.

mod complaints;
mod inbound;
mod outbound;
mod status;

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use base::config::ConfigError;
use base::{Duration, Instant};
use link::queue::Site;
use link::{Endpoint, Entry, LineLimits, Protocol};

use crate::carrier::batch::Batch;
use crate::carrier::{Address, Carrier};
use crate::clock::Clock;
use crate::config::Config;
use crate::counters::{Counter, Reasons};
use crate::pacer::Pacer;
use crate::privileges;
use crate::random::Random;
use crate::readiness::{Interest, Ready, wait, wake_exactly};
use crate::session::{Event, Rejection, Session, Timing};
use crate::signals::Signals;
use crate::tun::Tun;
use crate::tun::netlink::{self, Settings};
use complaints::Complaints;

pub use status::{Status, read_status, replace};

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    clock: Clock,
    tun: Tun,
    carrier: Carrier,
    session: Session,
    endpoint: Box<dyn Endpoint>,
    entry: Entry,
    pacer: Pacer,
    batch: Batch,
    /// Whether the carrier's buffer is full, and the batch waits.
    blocked: bool,
    /// Whether datagrams that come late are dropped, because the protocol infers losses from order.
    needs_order: bool,
    /// Bytes that the carrier adds to a datagram.
    header_len: usize,
    /// The longest frame that a datagram holds.
    frame_limit: usize,
    traffic: Traffic,
    rejected: Reasons,
    discarded: Reasons,
    /// What happened to the session since the last notice.
    events: Vec<Event>,
    complaints: Complaints,
    status_at: Instant,
}

/// What passed, and what did not.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Traffic {
    tun_packets_read: Counter,
    tun_packets_written: Counter,
    /// The kernel's queue was full.
    tun_dropped_full: Counter,
    /// The kernel refused the packet.
    tun_dropped_refused: Counter,
    datagrams_sent: Counter,
    /// With all headers.
    bytes_sent: Counter,
    fillers_sent: Counter,
    /// No route, or longer than the path carries.
    datagrams_refused: Counter,
    datagrams_received: Counter,
    /// Overtaken on the way, where the protocol needs order.
    datagrams_dropped_late: Counter,
}

/// What a gateway tells whoever runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session is established with the gateway at this address.
    Established {
        /// Where the peer is.
        peer: Address,
        /// Whether it lost its state since the last session, so that the link starts afresh.
        restarted: bool,
    },
    /// There is no session any more.
    Lost,
    /// Somebody wants a session who cannot have one; told now and then only.
    Refused {
        /// Who.
        from: Address,
        /// Why not.
        reason: Rejection,
    },
}

/// Why a gateway cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The TUN device.
    #[error("TUN device {name}: {error}")]
    Tun {
        /// The device.
        name: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// The carrier's socket or device.
    #[error("carrier at {at}: {error}")]
    Carrier {
        /// Where it listens, or the device.
        at: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// The user that the daemon is to become.
    #[error("user {user}: {error}")]
    User {
        /// Its name.
        user: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// The status file cannot be written.
    #[error("status file {}: {error}", file.display())]
    Status {
        /// The file.
        file: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
    /// Anything else that the system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Packets read from the TUN, or batches from the carrier, before the other direction has its turn.
const TURN: usize = 16;

impl Gateway {
    /// Opens and configures the devices, and gives the rights up that this took, if the configuration says so.
    ///
    /// # Errors
    /// No key, no right, no such address, no place for the status file.
    pub fn new(config: Config) -> Result<Self, GatewayError> {
        let rate = config.link.rate.map(|rate| rate.0);
        let line = LineLimits::new(config.carrier.frame_limit(), rate);
        let endpoint = config.link.protocol.build(&line);
        Self::with_endpoint(config, endpoint)
    }

    /// The same, with an endpoint of the caller's instead of one of the configured protocol. Its frames must fit the
    /// carrier ([`Carrier::frame_limit`](crate::config::Carrier::frame_limit)), and the peer must have one like it.
    ///
    /// # Errors
    /// As [`Gateway::new`].
    pub fn with_endpoint(config: Config, endpoint: Box<dyn Endpoint>) -> Result<Self, GatewayError> {
        let link = config.link;
        let capabilities = endpoint.capabilities();
        let (rate, seed) = (link.rate.map(|rate| rate.0), u64::from_ne_bytes(Random::system().draw()));
        let site = Site { rate, seed, name: "link" };
        let key = config.session.load()?;
        let tun = open_tun(&config)?;
        let carrier = Carrier::open(&config.carrier)
            .map_err(|error| GatewayError::Carrier { at: config.carrier.to_string(), error })?;
        if let Some(user) = &config.user {
            privileges::drop_to(user).map_err(|error| GatewayError::User { user: user.clone(), error })?;
        }
        let (peer, random) = (config.carrier.peer(), Random::system());
        let session = Session::new(key, peer, &agreement(link.protocol), timing(&config), random);
        let gateway = Self {
            clock: Clock::start(),
            session,
            entry: Entry::new(&link.queue, &site, link.once_dscp, capabilities),
            endpoint,
            pacer: Pacer::new(link.rate.map(|rate| rate.0), link.fillers),
            batch: Batch::default(),
            blocked: false,
            needs_order: capabilities.needs_order,
            header_len: config.carrier.header_len(),
            frame_limit: config.carrier.frame_limit(),
            traffic: Traffic::default(),
            rejected: Reasons::default(),
            discarded: Reasons::default(),
            events: Vec::new(),
            complaints: Complaints::default(),
            status_at: Instant::ZERO,
            tun,
            carrier,
            config,
        };
        gateway.begin_status()?;
        Ok(gateway)
    }

    /// Runs until a signal asks to end; `notify` hears what happens.
    ///
    /// # Errors
    /// The TUN device or the socket is gone.
    pub fn run(&mut self, signals: &mut Signals, mut notify: impl FnMut(Notice)) -> Result<(), GatewayError> {
        wake_exactly();
        let mut ready = [Ready::default(); 3];
        loop {
            let [from_tun, from_carrier, from_signals] = ready;
            if from_signals.read && signals.received() {
                self.remove_status();
                return Ok(());
            }
            let now = self.clock.now();
            self.session.handle_timeout(now);
            self.handle_timeout(now);
            if from_carrier.read || self.carrier.poll_timeout().is_some_and(|due| due <= now) {
                self.receive(now)?;
            }
            self.handle_events(&mut notify);
            if from_carrier.write {
                self.blocked = !self.carrier.flush();
            }
            if from_tun.read {
                self.read_tun(now)?;
            }
            self.transmit(now);
            if self.status_at <= now {
                self.write_status();
                self.status_at = now + self.status_interval();
            }
            let now = self.clock.now();
            let timeout = self.next_wake(now).saturating_since(now);
            let interests = [
                Interest::either(self.tun.as_fd(), self.wants_packets(), false),
                Interest::either(self.carrier.as_fd(), true, self.blocked || self.carrier.has_unsent()),
                Interest::read(signals.as_fd()),
            ];
            ready = wait(interests, Some(timeout))?;
        }
    }

    fn handle_events(&mut self, notify: &mut impl FnMut(Notice)) {
        while let Some((from, reason)) = self.complaints.poll() {
            notify(Notice::Refused { from, reason });
        }
        while let Some(event) = self.session.poll_event() {
            self.events.push(event);
        }
        if self.events.is_empty() {
            return;
        }
        for event in self.events.drain(..) {
            match (event, self.session.peer()) {
                (Event::Established { restarted }, Some(peer)) => {
                    notify(Notice::Established { peer, restarted });
                }
                _ => notify(Notice::Lost),
            }
        }
        self.write_status();
    }

    /// When something is due, if nothing arrives before.
    fn next_wake(&self, now: Instant) -> Instant {
        let transmit = match (self.session.is_heard(now) && !self.blocked, self.endpoint.demand(now)) {
            (false, _) | (_, link::Demand::Nothing) => None,
            (_, link::Demand::Fresh) => Some(self.pacer.free_at()),
            (_, link::Demand::Filler) => Some(self.pacer.filler_at()),
        };
        [
            transmit,
            self.endpoint.poll_timeout(),
            self.session.poll_timeout(),
            self.carrier.poll_timeout(),
            Some(self.status_at),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(now + Duration::from_secs(1))
    }

    fn status_interval(&self) -> Duration {
        let interval =
            self.config.status.as_ref().map_or(Duration::from_secs(3600), |status| status.interval);
        interval.max(Duration::from_millis(10))
    }
}

/// What both ends must have in common.
fn agreement(protocol: Protocol) -> String {
    serde_json::to_string(&protocol).unwrap_or_else(|_| protocol.name().to_owned())
}

/// Keep-alives leave room on a slow link.
fn timing(config: &Config) -> Timing {
    let bits = config.carrier.packet_limit() as u64 * 8;
    Timing::for_frames_of(config.link.rate.map_or(Duration::ZERO, |rate| rate.0.time_for(bits)))
}

fn open_tun(config: &Config) -> Result<Tun, GatewayError> {
    let name = config.tun.name.as_str();
    let wrong = |error| GatewayError::Tun { name: name.to_owned(), error };
    let gso_max_size = config.link.super_segment(config.tun.mtu.0 as usize);
    let tun = Tun::open(name, gso_max_size.is_some()).map_err(wrong)?;
    let settings = Settings {
        mtu: config.tun.mtu.0,
        addresses: &config.tun.addresses,
        routes: &config.tun.routes,
        gso_max_size,
    };
    netlink::configure(name, &settings).map_err(wrong)?;
    Ok(tun)
}
