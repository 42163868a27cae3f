//! The gateway daemon: one thread, one event loop, around the same hub that the lab runs.
//!
//! Packets of the TUN device go into the hub's tunnels, and what these have to send leaves in batches, many datagrams in one call. Datagrams
//! that arrive go into them too, and what they complete goes to the TUN device.

mod complaints;
mod device;
mod forwarding;
mod names;
mod notice;
mod peers;
pub mod query;
mod reload;
mod status;

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use base::config::ConfigError;
use base::{Duration, Instant};
use link::Endpoint;
use tunnel::hub::Unfit;
use tunnel::{Event, Hub};

use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::config::{Config, Peer};
use crate::privileges::{self, Kept};
use crate::random;
use crate::readiness::{Interest, Ready, wait, wake_exactly};
use crate::signals::{Signal, Signals};
use crate::tun::Tun;
use crate::tun::netlink::Watch;
use complaints::Complaints;
use forwarding::Traffic;
use names::Names;
use peers::Peers;
use query::Queries;
use reload::Reading;

pub use notice::Notice;
use peers::membership;
pub use status::{Status, read_status, replace};

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    clock: Clock,
    tun: Tun,
    watch: Watch,
    carrier: Carrier,
    hub: Hub,
    peers: Peers,
    /// Where peers are that are known by name.
    names: Names,
    /// When a device whose queue was full is tried again.
    retry_at: Option<Instant>,
    /// What the TUN device was last told of super-segments, and when that is to be looked at again.
    super_segment: Option<u32>,
    follow_at: Instant,
    traffic: Traffic,
    complaints: Complaints,
    status_at: Instant,
    /// Before that it is not written again, so that the status of many peers takes little of the time.
    status_free_at: Instant,
    /// Where the status is asked for; `None` if the system gives no socket for it.
    queries: Option<Queries>,
    /// The configuration that is being read again, and whether it is to be read once more.
    reading: Option<Reading>,
    reads_again: bool,
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
    /// A peer cannot be one.
    #[error("{0}")]
    Peers(String),
    /// Rights that it does not need cannot be given up.
    #[error("rights cannot be given up: {0}")]
    Rights(io::Error),
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

impl GatewayError {
    /// `peer` cannot be one beside the others.
    pub(crate) fn unfit(peer: &Peer, unfit: &Unfit) -> Self {
        Self::Peers(format!("{}: peer \"{}\": {unfit}", peer.origin.display(), peer.name()))
    }

    /// Rights could not be given up, by becoming `user` or otherwise.
    pub(crate) fn rights(user: Option<&str>, error: io::Error) -> Self {
        match user {
            Some(user) => Self::User { user: user.to_owned(), error },
            None => Self::Rights(error),
        }
    }
}

impl Gateway {
    /// Opens and configures the devices, and gives up all rights of this thread but that to configure them again.
    ///
    /// # Errors
    /// No key, no right, no such address, no place for the status file.
    pub fn new(config: Config) -> Result<Self, GatewayError> {
        let (mut hub, mut peers, mut names) = (hub(&config)?, Peers::default(), Names::new()?);
        peers.join(&config, &mut hub, &mut names)?;
        Self::around(config, hub, peers, names)
    }

    /// The same for the first peer alone, with an endpoint of the caller's instead of one of the configured protocol. Its frames must fit
    /// the carrier, and the peer must have one like it.
    ///
    /// # Errors
    /// As [`Gateway::new`].
    pub fn with_endpoint(config: Config, endpoint: Box<dyn Endpoint>) -> Result<Self, GatewayError> {
        let (mut hub, mut peers, mut names) = (hub(&config)?, Peers::default(), Names::new()?);
        if let Some(peer) = config.peers.first() {
            let id = hub.add_with_endpoint(membership(&config, peer)?, endpoint);
            let id = id.map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
            peers.joined(id, &config, peer, &mut names);
        }
        Self::around(config, hub, peers, names)
    }

    fn around(config: Config, hub: Hub, peers: Peers, names: Names) -> Result<Self, GatewayError> {
        let super_segment = hub.super_segment();
        let (tun, watch) = device::open(&config, super_segment)?;
        let carrier = Carrier::open(&config.carrier)
            .map_err(|error| GatewayError::Carrier { at: config.carrier.to_string(), error })?;
        // Before the rights are given up: an answer is believed by whom it comes from.
        let queries = Queries::open(config.tun.name.as_str(), random::system().seed()).ok();
        privileges::give_up(config.user.as_deref(), Kept::NetAdmin)
            .map_err(|error| GatewayError::rights(config.user.as_deref(), error))?;
        let gateway = Self {
            clock: Clock::start(),
            tun,
            watch,
            carrier,
            hub,
            peers,
            names,
            retry_at: None,
            super_segment,
            follow_at: Instant::ZERO,
            traffic: Traffic::default(),
            complaints: Complaints::default(),
            status_at: Instant::ZERO,
            status_free_at: Instant::ZERO,
            queries,
            reading: None,
            reads_again: false,
            config,
        };
        gateway.begin_status()?;
        privileges::files::restrict(gateway.status_directory()).map_err(GatewayError::Rights)?;
        Ok(gateway)
    }

    /// Runs until a signal asks to end; `notify` hears what happens. A configuration that was read from a file is read again
    /// when a signal asks for that.
    ///
    /// # Errors
    /// The TUN device or the socket is gone.
    pub fn run(&mut self, signals: &mut Signals, mut notify: impl FnMut(Notice)) -> Result<(), GatewayError> {
        wake_exactly();
        notify(Notice::Started(self.introduction()));
        if self.queries.is_none() {
            notify(Notice::NotAsked(self.config.tun.name.as_str().to_owned()));
        }
        let mut ready = [Ready::default(); 7];
        loop {
            let [from_tun, from_carrier, from_signals, from_watch, from_resolver, from_queries, from_reading] =
                ready;
            let now = self.clock.now();
            match if from_signals.read { signals.poll() } else { None } {
                Some(Signal::End) => {
                    self.remove_status();
                    return Ok(());
                }
                Some(Signal::Reload) => self.reload(&mut notify),
                None => {}
            }
            if from_reading.read {
                self.finish_reload(now, &mut notify);
            }
            self.hub.handle_timeout(now);
            if from_carrier.read || self.carrier.poll_timeout().is_some_and(|due| due <= now) {
                self.receive(now)?;
            }
            self.tell(&mut notify);
            self.follow_names(now, from_resolver.read, &mut notify);
            self.unblock(now, from_carrier.write);
            if from_watch.read {
                self.restore_device()?;
            }
            if from_tun.read {
                self.read_tun(now).or_else(|error| self.reopen_device(error, &mut notify))?;
            }
            self.transmit(false);
            self.deliver(now);
            self.follow_super_segment(now);
            if self.status_at <= now {
                self.write_status();
                let took = self.clock.now().saturating_since(now);
                self.status_free_at = now + took.saturating_mul(STATUS_SHARE);
                self.status_at = self.status_free_at.max(now + self.status_interval());
            }
            if let Some(mut queries) = self.queries.take_if(|it| from_queries.read || it.is_due(now)) {
                queries.serve(now, || self.status());
                let took = self.clock.now().saturating_since(now);
                queries.pause_until(now + took.saturating_mul(STATUS_SHARE));
                self.queries = Some(queries);
            }
            let now = self.clock.now();
            let timeout = self.next_wake(now).saturating_since(now);
            let interests = [
                Interest::either(self.tun.as_fd(), self.hub.wants_packets(), false),
                Interest::either(self.carrier.as_fd(), true, self.wants_to_write()),
                Interest::read(signals.as_fd()),
                Interest::read(self.watch.as_fd()),
                Interest::read_if_any(self.names.fd()),
                Interest::read_if_any(self.queries.as_ref().and_then(|it| it.fd(now))),
                Interest::read_if_any(self.reading.as_ref().map(Reading::fd)),
            ];
            ready = wait(interests, Some(timeout))?;
        }
    }

    /// Whether to wait for the carrier to take more. A device with a full queue says nothing when it has room.
    fn wants_to_write(&self) -> bool {
        (self.hub.is_blocked() && self.retry_at.is_none()) || self.carrier.has_unsent()
    }

    /// What this gateway is, and whom it waits for.
    fn introduction(&self) -> String {
        let Config { tun, carrier, peers, .. } = &self.config;
        let name = tun.name.as_str();
        let links = match &peers[..] {
            [peer] => format!("{}, rate {}", peer.link.protocol.name(), peer.link.rate),
            peers => format!("{} peers", peers.len()),
        };
        let called: Vec<_> = peers.iter().filter_map(|peer| peer.called(carrier)).collect();
        let waits = match &called[..] {
            [] if peers.len() == 1 => "waiting for the peer to call".to_owned(),
            [] => "waiting for them to call".to_owned(),
            [one] => format!("calling {one}"),
            several => format!("calling {} of them", several.len()),
        };
        format!("{name} over {carrier}, {links}; {waits}; public key {}", self.hub.public_key())
    }

    fn follow_names(&mut self, now: Instant, answered: bool, notify: &mut impl FnMut(Notice)) {
        let is_due = self.names.poll_timeout().is_some_and(|due| due <= now);
        // While all are heard nothing is asked, so who falls silent is found by looking.
        if answered || is_due || self.follow_at <= now {
            self.names.follow(now, answered, &mut self.hub, notify);
        }
    }

    fn tell(&mut self, notify: &mut impl FnMut(Notice)) {
        while let Some((from, reason)) = self.complaints.poll() {
            notify(Notice::Refused { from, reason });
        }
        let mut has_changed = false;
        while let Some((id, event)) = self.hub.poll_event() {
            has_changed |= matches!(event, Event::Established { .. } | Event::Lost);
            notify(Notice::Tunnel { peer: self.peers.name(id).to_owned(), event });
        }
        if has_changed {
            self.status_at = self.status_at.min(self.status_free_at);
        }
    }

    /// When something is due, if nothing arrives before.
    fn next_wake(&mut self, now: Instant) -> Instant {
        [
            self.hub.poll_timeout(now),
            self.retry_at,
            self.names.poll_timeout(),
            self.names.fd().map(|_| self.follow_at),
            self.carrier.poll_timeout(),
            self.queries.as_ref().and_then(|it| it.poll_timeout(now)),
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

/// The hub of the gateway that `config` describes, without peers yet.
fn hub(config: &Config) -> Result<Hub, GatewayError> {
    let own = config.identity.load()?;
    config.check_identity(own.public())?;
    let mut hub = Hub::new(own, config.share.rate, random::system);
    hub.set_memory(config.share.memory.0 as usize);
    Ok(hub)
}

/// What status takes of the time: at most one part in this many.
const STATUS_SHARE: u64 = 50;
