//! The TUN device: opened, set up and led into, and all of that again when somebody else has taken it down or away.

use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};

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

/// Leads packets into the device, around a carrier that sends from `port`.
pub(super) fn lead(config: &Config, names: &Names, port: Option<u16>) -> Result<Routing, GatewayError> {
    let mut routing = routing(config, port);
    let mut lead = || {
        set(config, &mut routing, names)?;
        let mut called = called(config);
        let complaint = called.find_map(|(peer, address)| looped(&routing, peer.name(), address));
        complaint.map_or(Ok(()), |notice| Err(GatewayError::Peers(notice.to_string())))
    };
    if let Err(error) = lead() {
        // The one complaint is enough.
        let _ = Routing::clear(config.tun.name.as_str());
        return Err(error);
    }
    Ok(routing)
}

fn routing(config: &Config, port: Option<u16>) -> Routing {
    let drops = config.tun.when_down == WhenDown::Drop;
    Routing::new(config.tun.name.as_str(), &config.tun.routes, port, drops)
}

/// The peers that are called at an address.
fn called(config: &Config) -> impl Iterator<Item = (&Peer, SocketAddr)> {
    config.peers.iter().filter_map(|peer| Some((peer, peer.endpoint.as_ref()?.address()?)))
}

/// Sets the routes. Default routes have to wait while peers are called by names of which no address is known: the servers of names may
/// be behind the routes that are there now.
fn set(config: &Config, routing: &mut Routing, names: &Names) -> Result<(), GatewayError> {
    routing.go_around(called(config).map(|(_, address)| address).chain(names.addresses()).map(|it| it.ip()));
    let waits = routing.is_full() && !names.are_known();
    let result = if waits { routing.clone().without_default().set() } else { routing.set() };
    result.map_err(|error| GatewayError::Routes { name: routing.device().to_owned(), error })
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

    /// Leads other networks into the device from now on.
    pub(super) fn change_routes(&mut self, config: &Config) -> Result<(), GatewayError> {
        let port = self.routing.port();
        let former = std::mem::replace(&mut self.routing, routing(config, port));
        set(config, &mut self.routing, &self.names).inspect_err(|_| {
            self.routing = former;
            // What was set is there still, so that nothing is in the way.
            let _ = self.set_routes();
        })
    }

    /// Sets routes that are not there, or no longer.
    pub(super) fn set_routes(&mut self) -> Result<(), GatewayError> {
        set(&self.config, &mut self.routing, &self.names)
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
        let cleared = Routing::clear(name).map(|_| ());
        cleared.map_err(|error| GatewayError::Routes { name: name.to_owned(), error: error.into() })
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
    pub(super) fn restore_device(&mut self) -> Result<(), GatewayError> {
        if !self.watch.lost_something() {
            return Ok(());
        }
        // It is down or away again: its next coming up, or reading from it, will tell.
        let is_away = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENETDOWN));
        match self.configure_device() {
            Err(error) if is_away(&error) => return Ok(()),
            result => result.map_err(|error| GatewayError::Tun {
                name: self.config.tun.name.as_str().to_owned(),
                error,
            })?,
        }
        match self.set_routes() {
            Err(GatewayError::Routes {
                error: RoutingError::Kernel { error, .. } | RoutingError::System(error),
                ..
            }) if is_away(&error) => Ok(()),
            result => result,
        }
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
        self.set_routes()?;
        notify(Notice::DeviceRestored(self.config.tun.name.as_str().to_owned()));
        Ok(())
    }
}

/// Between two looks at what all of many tunnels take.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
