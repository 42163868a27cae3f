//! The gateway daemon: event loops around the same hub that the lab runs. There is one, or one for each worker on a thread of its
//! own; this one is the first worker's and sees to all that concerns the whole gateway.
//!
//! Packets of the TUN device go into the hub's tunnels, and what these have to send leaves in batches, many datagrams in one call. Datagrams
//! that arrive go into them too, and what they complete goes to the TUN device.

mod account;
mod complaints;
mod device;
mod forwarding;
mod names;
mod notice;
mod peers;
pub mod query;
mod reload;
mod shown;
mod status;
mod telling;
mod worker;
mod workers;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::config::ConfigError;
use base::{Duration, Instant};
use link::{Endpoint, LineId};
use tunnel::hub::Unfit;
use tunnel::path::{Address, MOST_CARRIERS};
use tunnel::session::Rejection;
use tunnel::{Event, Hub, PeerId, WorkerId};

use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::config::{self, Config, Peer};
use crate::heap::Tidying;
use crate::privileges::{self, Kept};
use crate::random;
use crate::readiness::{Interest, Ready, joined, wait, wake_exactly};
use crate::routing::{Routing, RoutingError};
use crate::signals::{Signal, Signals};
use crate::tun::{Tun, Watch};
use names::Names;
use peers::Peers;
use query::Queries;
use reload::Reading;
use shown::Shown;
use telling::Telling;
use worker::{Paths, Worker};
use workers::{Hubs, Post, Workers};

pub use notice::Notice;
use peers::membership;
pub use status::{Status, read_status, replace};

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    /// What this thread serves: all peers, or its part of them.
    worker: Worker,
    /// What others do.
    workers: Workers,
    watch: Watch,
    routing: Routing,
    /// Whether default routes no longer wait for names.
    has_default_route: bool,
    peers: Peers,
    /// Where peers are that are known by name.
    names: Names,
    /// What the TUN device was last told of super-segments, and when that is to be looked at again.
    super_segment: Option<u32>,
    follow_at: Instant,
    telling: Telling,
    tidying: Tidying,
    /// Where the status is asked for; `None` if the system gives no socket for it.
    queries: Option<Queries>,
    /// Where metrics are told and the page is shown, until that has begun.
    shown: Shown,
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
    #[error("TUN device {name}: {error}{}", Tun::remedy(error))]
    Tun {
        /// The device.
        name: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// Routes into it.
    #[error("TUN device {name}: {error}")]
    Routes {
        /// The device.
        name: String,
        /// What is wrong with them.
        error: RoutingError,
    },
    /// The carrier's socket or device.
    #[error("carrier at {at}: {error}")]
    Carrier {
        /// Where it listens, or the device.
        at: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// Where metrics are told, or a page is shown.
    #[error("[{table}] at {at}: {error}")]
    Listen {
        /// The table that says so.
        table: &'static str,
        /// Where.
        at: SocketAddr,
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
    /// A worker that is not the first.
    #[error("worker {number}: {reason}")]
    Worker {
        /// Its number.
        number: u32,
        /// What has happened.
        reason: String,
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
        if let Some(reason) = config.calls_itself() {
            let file = config.file.as_deref().unwrap_or(Path::new("")).display().to_string();
            return Err(ConfigError::about(&file, reason).into());
        }
        let (mut first, mut others) = hubs(&config, config.workers())?;
        let (mut peers, mut names) = (Peers::default(), Names::new()?);
        peers.join(&config, &mut Hubs { first: &mut first, others: &mut others }, &mut names)?;
        others.commit(Instant::ZERO);
        Self::around(config, first, others, peers, names)
    }

    /// Opens and configures the devices for the first peer alone, with the caller's endpoint instead of one of the
    /// configured protocol, and gives up all rights of this thread but that to configure them again. The endpoint's
    /// frames must fit the carrier, and the peer must have an endpoint like it.
    ///
    /// # Errors
    /// As [`Gateway::new`].
    pub fn with_endpoint(config: Config, endpoint: Box<dyn Endpoint>) -> Result<Self, GatewayError> {
        let (mut hub, others) = hubs(&config, 1)?;
        let (mut peers, mut names) = (Peers::default(), Names::new()?);
        if let Some(peer) = config.peers.first() {
            let membership = membership(&config, peer)?;
            let preshared = membership.preshared.clone();
            let id = hub.add_with_endpoint(membership, endpoint);
            let id = id.map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
            peers.joined(id, &config, peer, preshared, &mut names);
        }
        Self::around(config, hub, others, peers, names)
    }

    fn around(
        config: Config,
        first: Hub,
        mut others: Workers,
        peers: Peers,
        names: Names,
    ) -> Result<Self, GatewayError> {
        let super_segment = others.super_segment(&first);
        let count = first.worker().count();
        let (mut tuns, watch) = device::open(&config, super_segment, count)?;
        let mut paths = open_paths(&config, count)?;
        let of_carrier = |error| GatewayError::Carrier { at: config.carrier.to_string(), error };
        let bound = paths[0].carriers[0].local_addr().map_err(of_carrier)?;
        // One whose interface is away is at no port yet.
        let routing = device::routing(&config, config.carriers()[0].listen().or(bound));
        let shown = Shown::open(&config)?;
        // Before the rights are given up: an answer is believed by whom it comes from.
        let queries = Queries::open(config.tun.name.as_str(), random::system().seed()).ok();
        privileges::give_up(config.user.as_deref(), Kept::NetAdmin)
            .map_err(|error| GatewayError::rights(config.user.as_deref(), error))?;
        let (clock, mut posts) = (Clock::start(), Post::all(count)?);
        let worker = Worker::new(clock, tuns.remove(0), paths.remove(0), first, posts.next());
        others.equip(clock, tuns.into_iter().zip(paths).zip(posts))?;
        let mut gateway = Self {
            worker,
            workers: others,
            watch,
            routing,
            has_default_route: false,
            peers,
            names,
            super_segment,
            follow_at: Instant::ZERO,
            telling: Telling::default(),
            tidying: Tidying::default(),
            queries,
            shown,
            reading: None,
            reads_again: false,
            config,
        };
        gateway.begin_status()?;
        privileges::files::restrict(gateway.status_directory()).map_err(GatewayError::Rights)?;
        gateway.lead()?;
        Ok(gateway)
    }

    /// Runs until a signal asks to end; `notify` hears what happens. A configuration that was read from a file is read again
    /// when a signal asks for that.
    ///
    /// # Errors
    /// The TUN device or the socket is gone.
    pub fn run(&mut self, signals: &mut Signals, notify: impl FnMut(Notice)) -> Result<(), GatewayError> {
        let result = self.serve(signals, notify);
        let cleared = self.clear_routes(result.is_err());
        result.and(cleared)
    }

    fn serve(&mut self, signals: &mut Signals, mut notify: impl FnMut(Notice)) -> Result<(), GatewayError> {
        wake_exactly();
        notify(Notice::Started(self.introduction()));
        for absent in self.config.carriers().iter().filter_map(config::Carrier::absent_address) {
            notify(Notice::NotHere(absent));
        }
        if self.queries.is_none() {
            notify(Notice::NotAsked(self.config.tun.name.as_str().to_owned()));
        }
        self.start_workers()?;
        self.shown.start(&self.config)?;
        let mut ready = [Ready::default(); 7 + MOST_CARRIERS];
        loop {
            let [
                from_tun,
                from_signals,
                from_watch,
                from_resolver,
                from_queries,
                from_reading,
                from_post,
                from_carriers @ ..,
            ] = ready;
            let now = self.worker.clock.now();
            match if from_signals.read { signals.poll() } else { None } {
                Some(Signal::End) => {
                    self.remove_status();
                    self.take_leave(now, &mut notify);
                    return Ok(());
                }
                Some(Signal::Reload) => self.reload(&mut notify),
                None => {}
            }
            if from_reading.read {
                self.finish_reload(now, &mut notify);
            }
            self.worker.hub.handle_timeout(now);
            self.worker.receive(now, &from_carriers)?;
            if from_post.read {
                self.take_post(now);
            }
            self.tell(now, &mut notify)?;
            self.follow_names(now, from_resolver.read, &mut notify);
            self.worker.unblock(now, &from_carriers);
            if from_watch.read {
                self.restore_device(&mut notify)?;
            }
            if from_tun.read {
                self.worker.read_tun(now).or_else(|error| self.reopen_device(error, &mut notify))?;
            }
            self.worker.transmit(false);
            self.worker.deliver(now);
            self.follow_super_segment(now);
            self.follow_status(now, from_queries.read);
            self.tidying.handle_timeout(now);
            let now = self.worker.clock.now();
            let timeout = self.next_wake(now).saturating_since(now);
            let interests = [
                Interest::either(self.worker.tun.as_fd(), self.worker.hub.wants_packets(), false),
                Interest::read(signals.as_fd()),
                Interest::read(self.watch.as_fd()),
                Interest::read_if_any(self.names.fd()),
                Interest::read_if_any(self.queries.as_ref().and_then(|it| it.fd(now))),
                Interest::read_if_any(self.reading.as_ref().map(Reading::fd)),
                Interest::read_if_any(self.worker.post.as_ref().map(Post::fd)),
            ];
            ready = wait(joined(interests, self.worker.interests()), Some(timeout))?;
        }
    }

    /// Tells peers and hosts that the gateway ends, and whoever runs it what became of connections.
    fn take_leave(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) {
        let split = self.worker.close(now) + self.workers.end();
        let goes_on = self.config.pep.ack == pep::Acknowledgement::EndToEnd;
        notify(Notice::Ended { split, goes_on });
    }

    /// What this gateway is, and whom it waits for.
    fn introduction(&self) -> String {
        let Config { tun, carrier, peers, paths, .. } = &self.config;
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
        let hub = &self.worker.hub;
        let workers = match hub.worker().count() {
            1 => String::new(),
            count => format!(" on {count} workers"),
        };
        let over = match paths.len() {
            0 | 1 => self.config.carriers().first().unwrap_or(carrier).to_string(),
            count => format!("{count} paths ({})", self.config.path_names().join(", ")),
        };
        format!("{name} over {over}, {links}{workers}; {waits}; public key {}", hub.public_key())
    }

    fn follow_names(&mut self, now: Instant, answered: bool, notify: &mut impl FnMut(Notice)) {
        let is_due = self.names.poll_timeout().is_some_and(|due| due <= now);
        // While all are heard nothing is asked, so who falls silent is found by looking.
        if answered || is_due || self.follow_at <= now {
            let mut hubs = Hubs { first: &mut self.worker.hub, others: &mut self.workers };
            let mut resolved = Vec::new();
            self.names.follow(now, answered, &mut hubs, &mut |notice| {
                if let Notice::Resolved { name, address } = &notice {
                    resolved.push((name.clone(), *address));
                }
                notify(notice);
            });
            if !resolved.is_empty() {
                self.set_routes().into_iter().for_each(&mut *notify);
            }
            resolved.iter().filter_map(|(name, address)| self.looped(name, *address)).for_each(notify);
        }
    }

    fn tell(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) -> Result<(), GatewayError> {
        while let Some((from, reason)) = self.worker.complaints.poll() {
            notify(self.refusal(from, reason));
        }
        while let Some((id, event)) = self.worker.hub.poll_event() {
            self.tell_event(id, event, notify);
        }
        for (path, is_there) in std::mem::take(&mut self.worker.came_or_went) {
            let carrier = self.config.carriers().get(path).map(ToString::to_string).unwrap_or_default();
            let path = self.config.path_names().get(path).cloned().unwrap_or(carrier);
            notify(Notice::Interface { path, is_there });
        }
        self.take_reports(now, notify)
    }

    /// Somebody was refused: a peer by its name, if it has shown that it is one.
    fn refusal(&self, from: Address, reason: Rejection) -> Notice {
        let peer = match reason {
            Rejection::Disagreement(key) => self.config.peers.iter().find(|peer| peer.public_key == key),
            _ => None,
        };
        Notice::Refused { from, peer: peer.map(|peer| peer.name().to_owned()), reason }
    }

    fn tell_event(&mut self, id: PeerId, event: Event, notify: &mut impl FnMut(Notice)) {
        if matches!(event, Event::Established { .. } | Event::Silent { .. } | Event::Left { .. }) {
            let now = self.worker.clock.now();
            self.telling.hurry(now);
            self.tidying.ask(now);
        }
        let peer = self.peers.name(id);
        if let Event::Established { peer: Address::Udp(address), .. } = event {
            self.looped(peer, address).into_iter().for_each(&mut *notify);
        }
        let name = |line: LineId| self.config.path_name(usize::from(line.number()));
        notify(Notice::Tunnel { peer: peer.to_owned(), path: event.line().map(name), event });
    }

    /// When something is due, if nothing arrives before.
    fn next_wake(&mut self, now: Instant) -> Instant {
        [
            self.worker.hub.poll_timeout(now),
            self.worker.retry_at,
            self.tidying.poll_timeout(),
            self.names.poll_timeout(),
            self.names.fd().map(|_| self.follow_at),
            self.worker.carriers_due(),
            self.queries.as_ref().and_then(|it| it.poll_timeout(now)),
            self.poll_status(now),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(now + Duration::from_secs(1))
    }
}

/// The paths of so many workers.
fn open_paths(config: &Config, count: u32) -> Result<Vec<Paths>, GatewayError> {
    let names: Arc<[String]> = config.path_names().into();
    let paths = |_| Paths { carriers: Vec::new(), names: Arc::clone(&names) };
    let mut all: Vec<Paths> = (0..count).map(paths).collect();
    for carrier in config.carriers() {
        let opened = Carrier::open_all(&carrier, count);
        let opened = opened.map_err(|error| GatewayError::Carrier { at: carrier.to_string(), error })?;
        all.iter_mut().zip(opened).for_each(|(paths, carrier)| paths.carriers.push(carrier));
    }
    Ok(all)
}

/// The hubs of so many workers of the gateway that `config` describes, the first one's and the others', without peers yet.
fn hubs(config: &Config, count: u32) -> Result<(Hub, Workers), GatewayError> {
    let own = config.identity.load()?;
    config.check_identity(own.public())?;
    let hub = |worker| Hub::of_worker(worker, own.clone(), config.share.rate, random::system);
    let mut all = WorkerId::all(count).map(hub);
    let (mut first, mut others) = (all.next().expect("there is a first"), Workers::new(all.collect()));
    Hubs { first: &mut first, others: &mut others }.set_memory(config.share.memory.0 as usize);
    Ok((first, others))
}
