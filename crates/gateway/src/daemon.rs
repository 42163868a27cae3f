//! The gateway daemon: one thread, one event loop, around the same link endpoint that the lab measures.
//!
//! Packets come from the TUN device into bounded queues, from there into the endpoint as it has room;
//! frames leave as the pacer allows, each sealed into one datagram, many datagrams in one call. What
//! arrives is opened in place and goes to the endpoint; what the endpoint completes goes to the TUN.

mod complaints;
mod congestion;
mod device;
mod inbound;
mod notice;
mod outbound;
mod pairing;
mod peer;
pub mod query;
mod reload;
mod splitting;
mod status;
mod survey;

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use base::config::ConfigError;
use base::{Duration, Instant, Rate};
use link::queue::Site;
use link::{Endpoint, Entry};

use crate::carrier::Carrier;
use crate::carrier::batch::Batch;
use crate::clock::Clock;
use crate::config::Config;
use crate::counters::{Counter, Reasons};
use crate::pacer::Pacer;
use crate::privileges;
use crate::random::Random;
use crate::readiness::{Interest, Ready, wait, wake_exactly};
use crate::session::{Event, Session, Timing};
use crate::signals::{Signal, Signals};
use crate::survey::Survey;
use crate::tun::Tun;
use crate::tun::netlink::Watch;
use complaints::Complaints;
use congestion::Congestion;
use peer::NamedPeer;
use query::Queries;
use splitting::Splitting;

pub use notice::Notice;
pub use status::{Status, read_status, replace};

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    clock: Clock,
    tun: Tun,
    watch: Watch,
    carrier: Carrier,
    session: Session,
    /// The peer, if it is known by name.
    named: Option<NamedPeer>,
    endpoint: Box<dyn Endpoint>,
    entry: Entry,
    splitting: Option<Box<Splitting>>,
    pacer: Pacer,
    batch: Batch,
    /// Whether the carrier's buffer is full, and the batch waits.
    blocked: bool,
    /// When a device whose queue was full is tried again.
    retry_at: Option<Instant>,
    /// Whether datagrams that come late are dropped, because the protocol infers losses from order.
    needs_order: bool,
    /// Congestion on the way here that packets are still to tell of.
    congestion: Congestion,
    /// Bytes that the carrier adds to a datagram.
    header_len: usize,
    /// The longest frame that a datagram holds.
    frame_limit: usize,
    survey: Survey,
    /// The rate and round trip that queue, endpoint and device were last made for.
    line: (Option<Rate>, Option<Duration>),
    /// Frames that are still to leave in a burst.
    train: Option<u64>,
    traffic: Traffic,
    rejected: Reasons,
    discarded: Reasons,
    /// What happened to the session since the last notice.
    events: Vec<Event>,
    complaints: Complaints,
    /// Since when nobody has answered, and after how much silence that is told.
    silent_since: Instant,
    silence_told: Duration,
    status_at: Instant,
    /// Where the status is asked for; `None` if its name is taken.
    queries: Option<Queries>,
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
    /// Packets written that were marked for congestion on the way here.
    ecn_marked: Counter,
    datagrams_sent: Counter,
    /// With all headers.
    bytes_sent: Counter,
    fillers_sent: Counter,
    /// Cut when the path carried more, and sent with leave to fragment them.
    datagrams_fragmented: Counter,
    /// No route, or longer than the device carries.
    datagrams_refused: Counter,
    datagrams_received: Counter,
    /// Overtaken on the way, where the protocol needs order.
    datagrams_dropped_late: Counter,
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

/// Silence that is told at first; then when it has become four times as long.
const SILENCE: Duration = Duration::from_secs(30);
/// Packets read from the TUN, or batches from the carrier, before the other direction has its turn.
const TURN: usize = 16;

impl Gateway {
    /// Opens and configures the devices, and gives the rights up that this took, if the configuration says so.
    ///
    /// # Errors
    /// No key, no right, no such address, no place for the status file.
    pub fn new(config: Config) -> Result<Self, GatewayError> {
        let rate = survey::of(&config).seeker.capacity();
        let line = survey::line(&config, config.carrier.frame_limit(), rate);
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
        let survey = survey::of(&config);
        let rate = survey.seeker.capacity();
        let site = Site { rate, seed: u64::from_ne_bytes(Random::system().draw()), name: "link" };
        let queue = link.queue(rate, None, config.tun.mtu.0);
        let key = config.session.load()?;
        let (tun, watch) = device::open(&config, rate)?;
        let carrier = Carrier::open(&config.carrier)
            .map_err(|error| GatewayError::Carrier { at: config.carrier.to_string(), error })?;
        // Before the rights are given up: an answer is believed by whom it comes from.
        let queries = Queries::open(config.tun.name.as_str()).ok();
        if let Some(user) = &config.user {
            privileges::drop_to(user).map_err(|error| GatewayError::User { user: user.clone(), error })?;
        }
        let (peer, random) = (config.carrier.peer(), Random::system());
        let session = Session::new(key, peer, &link.protocol.agreement(), timing(&config), random);
        let mut entry = Entry::new(&queue, &site, link.by_dscp(), capabilities);
        if link.sparse_flows {
            entry = entry.with_sparse_flows(&queue, &site);
        }
        let mut gateway = Self {
            clock: Clock::start(),
            session,
            named: NamedPeer::of(&config.carrier),
            entry,
            splitting: Splitting::of(&config, rate),
            endpoint,
            pacer: Pacer::new(link.rate.fixed(), link.fillers),
            survey,
            line: (rate, None),
            train: None,
            batch: Batch::default(),
            blocked: false,
            retry_at: None,
            needs_order: capabilities.needs_order,
            congestion: Congestion::default(),
            header_len: config.carrier.header_len(),
            frame_limit: config.carrier.frame_limit(),
            traffic: Traffic::default(),
            rejected: Reasons::default(),
            discarded: Reasons::default(),
            events: Vec::new(),
            complaints: Complaints::default(),
            silent_since: Instant::ZERO,
            silence_told: SILENCE,
            status_at: Instant::ZERO,
            queries,
            tun,
            watch,
            carrier,
            config,
        };
        gateway.set_datagram_age(&queue);
        gateway.begin_status()?;
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
        let mut ready = [Ready::default(); 6];
        loop {
            let [from_tun, from_carrier, from_signals, from_watch, from_resolver, from_queries] = ready;
            let now = self.clock.now();
            match if from_signals.read { signals.poll() } else { None } {
                Some(Signal::End) => {
                    self.remove_status();
                    return Ok(());
                }
                Some(Signal::Reload) => self.reload(now, &mut notify),
                None => {}
            }
            self.session.handle_timeout(now);
            self.handle_timeout(now);
            if from_carrier.read || self.carrier.poll_timeout().is_some_and(|due| due <= now) {
                self.receive(now)?;
            }
            self.handle_events(&mut notify);
            self.follow_name(now, from_resolver.read, &mut notify);
            self.watch_silence(now, &mut notify);
            self.follow_path(now, &mut notify);
            if self.retry_at.take_if(|at| *at <= now).is_some() {
                self.blocked = false;
            }
            if from_carrier.write {
                self.blocked = !self.carrier.flush();
            }
            if from_watch.read {
                self.restore_device()?;
            }
            if from_tun.read {
                self.read_tun(now).or_else(|error| self.reopen_device(error, &mut notify))?;
            }
            self.transmit(now);
            if self.status_at <= now {
                self.write_status();
                self.status_at = now + self.status_interval();
            }
            if let Some(mut queries) = self.queries.take_if(|_| from_queries.read) {
                queries.answer(now, || self.status());
                self.queries = Some(queries);
            }
            let now = self.clock.now();
            let timeout = self.next_wake(now).saturating_since(now);
            let interests = [
                Interest::either(self.tun.as_fd(), self.wants_packets(), false),
                Interest::either(self.carrier.as_fd(), true, self.wants_to_write()),
                Interest::read(signals.as_fd()),
                Interest::read(self.watch.as_fd()),
                Interest::read_if_any(self.named.as_ref().and_then(NamedPeer::fd)),
                Interest::read_if_any(self.queries.as_ref().and_then(|it| it.fd(now))),
            ];
            ready = wait(interests, Some(timeout))?;
        }
    }

    /// Whether to wait for the carrier to take more. A device with a full queue says nothing when it has room.
    fn wants_to_write(&self) -> bool {
        (self.blocked && self.retry_at.is_none()) || self.carrier.has_unsent()
    }

    /// What this gateway is, and what it waits for.
    fn introduction(&self) -> String {
        let Config { tun, carrier, link, .. } = &self.config;
        let rate = link.rate;
        let (name, protocol) = (tun.name.as_str(), link.protocol.name());
        let waits = match carrier.called() {
            Some(peer) => format!("calling {peer}"),
            None => "waiting for the peer to call".to_owned(),
        };
        format!("{name} over {carrier}, {protocol}, rate {rate}; {waits}")
    }

    /// Tells, once in a while, that nobody answers.
    fn watch_silence(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) {
        if self.session.is_heard(now) {
            self.silent_since = now;
            self.silence_told = SILENCE;
        }
        let silence = now.saturating_since(self.silent_since);
        if let Some(splitting) = &mut self.splitting {
            splitting.note_silence(now, silence);
        }
        if silence >= self.silence_told && self.session.called().is_some() {
            self.silence_told = self.silence_told.saturating_mul(4);
            notify(Notice::Unanswered { peer: self.session.called(), silence });
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
        let pairing = self.splitting.as_ref().and_then(|it| it.pairing_timeout());
        let control = [self.survey.poll_timeout(), pairing].into_iter().flatten().min();
        [
            transmit,
            control.filter(|_| self.session.is_heard(now)),
            self.retry_at,
            self.endpoint.poll_timeout(),
            self.splitting.as_ref().and_then(|it| it.poll_timeout()),
            self.session.poll_timeout(),
            self.named.as_ref().and_then(|named| named.poll_timeout(self.session.is_heard(now))),
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

/// Keep-alives leave room on a slow link.
fn timing(config: &Config) -> Timing {
    let bits = config.carrier.packet_limit() as u64 * 8;
    Timing::for_frames_of(config.link.rate.fixed().map_or(Duration::ZERO, |rate| rate.time_for(bits)))
}
