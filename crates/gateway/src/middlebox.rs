//! The split-connection proxy by itself: between two TUN devices, with no link of ours.
//!
//! ```toml
//! lan = "lh-lan"                  # devices that the daemon makes: packets from the LAN are routed into the first,
//! wan = "lh-wan"                  # those from the bad link into the second
//! mtu = 1500                      # optional
//! user = "longhaul"               # optional: whom the daemon becomes once its devices are open
//!
//! [pep]                           # optional: `docs/pep.md` has all keys
//! link.congestion = "bbr"
//! ```
//!
//! Policy routing of the host brings packets here; what leaves goes into the device of the side that it came from, and the
//! host's usual routes take it on.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use base::config::ConfigError;
use base::{Duration, Instant, Rng};
use pep::{Proxy, Side};
use serde::Deserialize;

use crate::clock::Clock;
use tunnel::config::Mtu;
use tunnel::ingress::is_taken;
use tunnel::poll_super_segment;

use crate::config::InterfaceName;
use crate::daemon::GatewayError;
use crate::privileges::{self, Kept};
use crate::random;
use crate::readiness::{Interest, Ready, wait, wake_exactly};
use crate::signals::{Signal, Signals};
use crate::tun::Settings;
use crate::tun::{Tun, Written};

/// What its configuration file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The device that packets from the LAN are routed into.
    pub lan: InterfaceName,
    /// The device that packets from the bad link are routed into.
    pub wan: InterfaceName,
    /// Largest IP packet of both, in bytes, 576 to 65535.
    #[serde(default)]
    pub mtu: Mtu<1500>,
    /// Whom the daemon becomes once its devices are open.
    #[serde(default)]
    pub user: Option<String>,
    /// The proxy.
    #[serde(default)]
    pub pep: pep::Config,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not allowed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::about(&file, error))?;
        let config: Self = base::config::parse(&file, &text)?;
        if config.lan == config.wan {
            let device = config.lan.as_str();
            let message = format!("lan and wan are both \"{device}\"; allowed are two different devices");
            return Err(ConfigError::about(&file, message));
        }
        Ok(config)
    }
}

/// A running proxy.
#[derive(Debug)]
pub struct Middlebox {
    proxy: Proxy,
    clock: Clock,
    /// By side.
    devices: [Tun; 2],
    /// Packets that a device did not take.
    dropped: u64,
}

/// Packets read from a device before the other has its turn.
const TURN: usize = 16;

impl Middlebox {
    /// Makes the devices, and gives up all rights of this thread.
    ///
    /// # Errors
    /// No right, no TUN driver, or a name that is taken.
    pub fn new(config: &Config) -> Result<Self, GatewayError> {
        let open = |name: &InterfaceName| {
            let settings = Settings { mtu: config.mtu.0, addresses: &[], gso_max_size: None };
            let device = || {
                let tun = Tun::open(name.as_str(), true)?;
                settings.apply(name.as_str())?;
                Ok(tun)
            };
            device().map_err(|error| GatewayError::Tun { name: name.as_str().to_owned(), error })
        };
        let devices = [open(&config.lan)?, open(&config.wan)?];
        privileges::give_up(config.user.as_deref(), Kept::Nothing)
            .map_err(|error| GatewayError::rights(config.user.as_deref(), error))?;
        privileges::files::restrict(None).map_err(GatewayError::Rights)?;
        let mut rng = Rng::named(random::system().seed(), "proxy");
        let mut proxy = Proxy::new(config.pep.clone(), &mut rng);
        proxy.set_mtu(config.mtu.0.min(u32::from(u16::MAX)) as u16);
        Ok(Self { proxy, clock: Clock::start(), devices, dropped: 0 })
    }

    /// Runs until a signal asks to end.
    ///
    /// # Errors
    /// A device is gone.
    pub fn run(&mut self, signals: &mut Signals) -> io::Result<()> {
        wake_exactly();
        let mut ready = [Ready::default(); 3];
        loop {
            let [from_lan, from_link, from_signals] = ready;
            let now = self.clock.now();
            if from_signals.read && signals.poll() == Some(Signal::End) {
                return Ok(());
            }
            if self.proxy.poll_timeout().is_some_and(|due| due <= now) {
                self.proxy.handle_timeout(now);
            }
            for (side, ready) in [(Side::Lan, from_lan), (Side::Link, from_link)] {
                if ready.read {
                    self.receive(now, side)?;
                }
            }
            self.transmit(now);
            let due = self.proxy.poll_timeout().unwrap_or(Instant::MAX);
            let timeout = due.saturating_since(self.clock.now()).min(Duration::from_secs(1));
            let [lan, link] = &self.devices;
            let interests =
                [Interest::read(lan.as_fd()), Interest::read(link.as_fd()), Interest::read(signals.as_fd())];
            ready = wait(interests, Some(timeout))?;
        }
    }

    /// Takes packets from one side, a few at most; those that are not the proxy's go back, and on by the host's routes.
    fn receive(&mut self, now: Instant, side: Side) -> io::Result<()> {
        for _ in 0..TURN {
            let Some(mut packet) = self.devices[side as usize].read()? else { break };
            if !is_taken(&mut self.proxy, now, side, &mut packet) {
                let written = self.devices[side as usize].write(&packet);
                self.dropped += u64::from(written != Written::Yes);
            }
        }
        Ok(())
    }

    /// Sends what the proxy has. To the kernel it makes no difference which device a packet comes from, but for filters.
    fn transmit(&mut self, now: Instant) {
        // What leaves for the link makes room, of which senders on the LAN are to hear.
        for side in [Side::Link, Side::Lan] {
            let device = &mut self.devices[side.other() as usize];
            while let Some(train) = poll_super_segment(&mut self.proxy, now, side, true) {
                self.dropped += u64::from(device.deliver(&train) != Written::Yes);
            }
        }
    }

    /// What the proxy counted, by name, and packets that a device did not take.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.proxy.counters().named().to_vec();
        counters.push(("dropped", self.dropped));
        counters
    }
}
