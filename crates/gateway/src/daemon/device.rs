//! The TUN device: opened, set up and led into, and all of that again when somebody else has taken it down or away.

use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant, Prefix};

use super::names::Names;
use super::{Gateway, GatewayError, Notice};
use crate::config::{Config, Peer, WhenDown};
use crate::routing::{Routing, RoutingError};
use crate::tun::{Settings, Tun, Watch};

/// Opens the device with a queue for each worker and gives it what the configuration says. It hands over super-segments of `super_segment` bytes.
pub(super) fn open(
    config: &Config,
    super_segment: Option<u32>,
    workers: u32,
) -> Result<(Vec<Tun>, Watch), GatewayError> {
    let name = config.tun.name.as_str();
    let open = || {
        let wants_offloads = config.peers.iter().any(|peer| config.tunnel(peer).wants_offloads());
        let has_offloads = wants_offloads || config.peers.is_empty();
        let tuns = Tun::open_queues(name, has_offloads, workers)?;
        configure(config, super_segment, has_offloads)?;
        Ok((tuns, Watch::new(name)?))
    };
    open().map_err(|error| GatewayError::Tun { name: name.to_owned(), error })
}

fn configure(config: &Config, super_segment: Option<u32>, has_offloads: bool) -> io::Result<()> {
    // A device that was opened for super-segments and is to carry none any more gets one packet at a time.
    let gso_max_size = super_segment.or(Some(config.tun.mtu.0)).filter(|_| has_offloads);
    let settings = Settings { mtu: config.tun.mtu.0, addresses: &config.tun.addresses, gso_max_size };
    settings.apply(config.tun.name.as_str())
}

/// What is to be led into the device, around a carrier that sends from there. The device's own networks are by themselves.
pub(super) fn routing(config: &Config, carrier: Option<SocketAddr>) -> Routing {
    let drops = config.tun.when_down == WhenDown::Drop;
    let is_own = |network: &&Prefix| {
        let same = |own: &Prefix| own.len == network.len && own.masked() == network.masked();
        config.tun.addresses.iter().any(same)
    };
    let networks: Vec<Prefix> = config.tun.routes.iter().filter(|it| !is_own(it)).copied().collect();
    Routing::new(config.tun.name.as_str(), &networks, carrier, drops)
}

/// The peers that are called at an address.
fn called(config: &Config) -> impl Iterator<Item = (&Peer, SocketAddr)> {
    config.peers.iter().filter_map(|peer| Some((peer, peer.endpoint.as_ref()?.address()?)))
}

/// Sets the routes, default routes only if they need not wait.
fn set(config: &Config, routing: &mut Routing, names: &Names, has_default: bool) -> Result<(), GatewayError> {
    routing.go_around(called(config).map(|(_, address)| address).chain(names.addresses()).map(|it| it.ip()));
    let result = if has_default { routing.set() } else { routing.clone().without_default().set() };
    result.map_err(|error| GatewayError::Routes { name: routing.device().to_owned(), error })
}

/// Whether the device is down or away: its next coming up, or reading from it, will tell.
fn is_away(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENETDOWN))
}

/// A complaint if what is sent to this peer would go into the device itself.
fn looped(routing: &Routing, peer: &str, address: SocketAddr) -> Option<Notice> {
    let device = routing.device().to_owned();
    // Where the kernel gives no answer nothing can be said.
    let loops = routing.loops(address).unwrap_or(false);
    loops.then(|| Notice::Looped { peer: peer.to_owned(), address, device })
}

impl Gateway {
    /// Gives the device what the configuration says.
    fn configure_device(&self) -> io::Result<()> {
        configure(&self.config, self.super_segment, self.worker.tun.has_offloads())
    }

    /// Leads packets into the device, when all else that could fail has not.
    ///
    /// # Errors
    /// Somebody else's route is in the way, or the way to a peer leads through the device itself. Then nothing is set that was not set
    /// before.
    pub(super) fn lead(&mut self) -> Result<(), GatewayError> {
        let was_set = Routing::is_set(self.routing.device()).unwrap_or(true);
        let led = self.set_all_routes().and_then(|()| {
            let mut called = called(&self.config);
            let complaint = called.find_map(|(peer, address)| self.looped(peer.name(), address));
            complaint.map_or(Ok(()), |notice| Err(GatewayError::Peers(notice.to_string())))
        });
        if led.is_err() && !was_set {
            // The one complaint is enough.
            let _ = Routing::clear(self.routing.device());
        }
        led
    }

    /// Leads other networks into the device from now on; what was led before. Default routes that are new wait for
    /// [`Gateway::set_routes`], when it is known who the peers are.
    pub(super) fn change_routes(&mut self, config: &Config) -> Result<Routing, GatewayError> {
        let carrier = self.routing.carrier();
        let former = std::mem::replace(&mut self.routing, routing(config, carrier));
        match set(config, &mut self.routing, &self.names, self.has_default_route) {
            Ok(()) => Ok(former),
            Err(error) => {
                self.change_routes_back(former);
                Err(error)
            }
        }
    }

    /// Leads what was led before.
    pub(super) fn change_routes_back(&mut self, former: Routing) {
        self.routing = former;
        // What was set is there still, so that nothing is in the way.
        let _ = self.set_all_routes();
    }

    /// Default routes have to wait while peers are called by names of which no address is known: the servers of names may be behind the
    /// routes that are there now. Once they are set they stay, or packets would leave in clear because of one more name.
    fn set_all_routes(&mut self) -> Result<(), GatewayError> {
        self.has_default_route |= self.routing.is_full() && self.names.are_known();
        set(&self.config, &mut self.routing, &self.names, self.has_default_route)
    }

    /// Sets routes that are not there, or no longer; a complaint if that cannot be.
    pub(super) fn set_routes(&mut self) -> Option<Notice> {
        match self.set_all_routes() {
            Ok(()) => None,
            Err(GatewayError::Routes {
                error: RoutingError::Kernel { error, .. } | RoutingError::System(error),
                ..
            }) if is_away(&error) => None,
            Err(error) => Some(Notice::NotLed(error.to_string())),
        }
    }

    /// A complaint if what is sent to this peer would go into the device itself.
    pub(super) fn looped(&self, peer: &str, address: SocketAddr) -> Option<Notice> {
        looped(&self.routing, peer, address)
    }

    /// The gateway ends, as asked for or by a failure: all routes are as they were before, unless packets are to go nowhere after a
    /// failure.
    pub(super) fn clear_routes(&self, is_failure: bool) -> Result<(), GatewayError> {
        if is_failure && self.config.tun.when_down == WhenDown::Drop {
            return Ok(());
        }
        let name = self.routing.device();
        Routing::clear(name)
            .map_err(|error| GatewayError::Routes { name: name.to_owned(), error: error.into() })
    }

    /// Has the device hand over what all tunnels take now.
    pub(super) fn follow_super_segment(&mut self, now: Instant) {
        if now < self.follow_at && self.worker.hub.len() > 1 {
            return;
        }
        self.follow_at = now + FOLLOW_INTERVAL;
        let super_segment = self.workers.super_segment(&self.worker.hub);
        if super_segment != self.super_segment {
            self.super_segment = super_segment;
            // Where that fails, somebody has taken the device, which is noticed elsewhere.
            let _ = self.configure_device();
        }
    }

    /// If the device was down and is up again, gives it back what the kernel has taken: routes, and addresses of IPv6.
    pub(super) fn restore_device(&mut self, notify: &mut impl FnMut(Notice)) -> Result<(), GatewayError> {
        if !self.watch.lost_something() {
            return Ok(());
        }
        match self.configure_device() {
            Err(error) if is_away(&error) => return Ok(()),
            result => result.map_err(|error| GatewayError::Tun {
                name: self.config.tun.name.as_str().to_owned(),
                error,
            })?,
        }
        self.set_routes().into_iter().for_each(notify);
        Ok(())
    }

    /// Makes the device anew if `error` says that it was removed.
    pub(super) fn reopen_device(
        &mut self,
        error: io::Error,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(), GatewayError> {
        if error.raw_os_error() != Some(libc::EBADFD) {
            return Err(error.into());
        }
        let name = self.config.tun.name.as_str();
        let attach = || {
            // The first makes it, and the others find it.
            self.worker.tun.attach()?;
            self.workers.attach()?;
            self.configure_device()?;
            Watch::new(name)
        };
        self.watch = attach().map_err(|error| GatewayError::Tun { name: name.to_owned(), error })?;
        self.set_routes().into_iter().for_each(&mut *notify);
        notify(Notice::DeviceRestored(self.config.tun.name.as_str().to_owned()));
        Ok(())
    }
}

/// Between two looks at what all of many tunnels take.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
