//! The TUN device: opened, set up, and set up again when somebody else has taken it down or away.

use std::io;

use base::{Duration, Instant};

use super::{Gateway, GatewayError, Notice};
use crate::config::Config;
use crate::tun::Tun;
use crate::tun::netlink::{self, Settings, Watch};

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
    let settings = Settings {
        mtu: config.tun.mtu.0,
        addresses: &config.tun.addresses,
        routes: &config.tun.routes,
        gso_max_size,
    };
    netlink::configure(config.tun.name.as_str(), &settings)
}

impl Gateway {
    /// Gives the device what the configuration says.
    pub(super) fn configure_device(&self) -> io::Result<()> {
        configure(&self.config, self.super_segment, self.worker.tun.has_offloads())
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
        if !self.watch.came_up() {
            return Ok(());
        }
        match self.configure_device() {
            // It is down or away again: its next coming up, or reading from it, will tell.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENETDOWN)) => Ok(()),
            result => result
                .map_err(|error| GatewayError::Tun { name: self.config.tun.name.as_str().to_owned(), error }),
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
        notify(Notice::DeviceRestored(self.config.tun.name.as_str().to_owned()));
        Ok(())
    }
}

/// Between two looks at what all of many tunnels take.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
