//! What the kernel's TCP gets over several paths: a download, and short requests beside it. Through a pair of gateways, and without them by
//! Multipath TCP (RFC 8684) over all paths or by plain TCP over the first.
//!
//! The server is at the hub, whoever downloads and asks at the terminal: hosts where there are gateways, else the ends of the paths
//! themselves.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use base::{Duration, Instant};
use serde::Serialize;

use crate::comparison::configuration::Controller;
use crate::comparison::content;
use crate::comparison::transfer::panicked;
use crate::download::{Download, Kernel};
use crate::objects::{Server, fetch};
use crate::testbed::namespaces::{Namespace, Room};
use crate::testbed::{self, TestbedError};
use gateway::clock::{Clock, sleep};

/// When to measure what.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Of all connections.
    pub controller: Controller,
    /// Multipath TCP over all paths; begins on this one. Without gateways only.
    pub multipath: Option<usize>,
    /// Limit of TCP's buffers, in bytes, in place of the kernel's.
    pub buffer_limit: Option<u64>,
    /// How long requests go alone.
    pub idle: Duration,
    /// How long the download counts, from its first SYN.
    pub download: Duration,
    /// How long requests go beside it then.
    pub loaded: Duration,
    /// Bytes of a reply.
    pub reply: usize,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// Bits of the download that came, over its time, in millions a second.
    pub goodput_mbps: f64,
    /// From the SYN of a request to the last byte of its reply, in milliseconds, each over a connection of its own, without a download.
    pub idle_ms: Vec<f64>,
    /// Beside the download.
    pub loaded_ms: Vec<f64>,
}

/// Hosts behind gateways.
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 2, 2)];
const DOWNLOAD_PORT: u16 = 7_000;
const REQUEST_PORT: u16 = 8_080;
/// Between the beginnings of two requests, at least.
const INTERVAL: Duration = Duration::from_millis(250);

/// Builds the testbed, measures, and removes the testbed.
///
/// # Errors
/// No right, a kernel without Multipath TCP where that is asked for, a testbed that does not come up, a connection that breaks.
pub fn measure(options: &testbed::Options, plan: &Plan) -> Result<Measured, TestbedError> {
    testbed::up(options, || false)?;
    let result = Site::prepare(options, plan).and_then(|site| Ok(site.observe(plan)?));
    testbed::down(&options.name)?;
    result
}

/// Both ends of a measurement: the terminal's and the hub's.
struct Site {
    rooms: [Namespace; 2],
    addresses: [Ipv4Addr; 2],
    kernel: Kernel,
}

impl Site {
    fn prepare(options: &testbed::Options, plan: &Plan) -> Result<Self, TestbedError> {
        let has_gateways = options.link.is_some();
        let rooms = if has_gateways { [Room::Host1, Room::Host2] } else { [Room::Gateway1, Room::Gateway2] };
        let rooms = rooms.map(|room| options.name.namespace(room));
        if let Some(limit) = plan.buffer_limit {
            let limits = [("rmem", 131_072), ("wmem", 16_384)]
                .map(|(name, usual)| (format!("ipv4/tcp_{name}"), format!("4096 {usual} {limit}")));
            let limits: Vec<(&str, &str)> = limits.iter().map(|(at, value)| (&**at, &**value)).collect();
            rooms.iter().try_for_each(|room| room.set_parameters(&limits))?;
        }
        if let Some(first) = plan.multipath {
            let others: Vec<usize> = (0..=options.paths.further.len()).filter(|at| *at != first).collect();
            join(&rooms, &others)?;
        }
        let addresses = if has_gateways { HOSTS } else { testbed::ends(plan.multipath.unwrap_or_default()) };
        let kernel = Kernel { controller: Some(plan.controller), is_multipath: plan.multipath.is_some() };
        Ok(Self { rooms, addresses, kernel })
    }

    fn observe(&self, plan: &Plan) -> io::Result<Measured> {
        let ([terminal, hub], [here, there]) = (&self.rooms, self.addresses);
        let content = content(plan.reply);
        let at = SocketAddr::from((there, REQUEST_PORT));
        let server = Server::start(hub, REQUEST_PORT, self.kernel, &content)?;
        let idle_ms = self.ask(at, &content, plan.idle)?.join().map_err(|_| panicked())???;

        let to = SocketAddr::from((here, DOWNLOAD_PORT));
        let download = Download::start([hub, terminal], to, self.kernel)?;
        download.wait_until(plan.download);
        let bytes = download.bytes();
        let asking = self.ask(at, &content, plan.loaded)?;
        download.wait_until(plan.download + plan.loaded);
        let loaded_ms = asking.join().map_err(|_| panicked())??;
        download.finish()?;
        server.finish()?;
        Ok(Measured {
            goodput_mbps: bytes as f64 * 8.0 / plan.download.as_secs_f64() / 1e6,
            idle_ms,
            loaded_ms: loaded_ms?,
        })
    }

    /// One request after the other for a time; what each took in milliseconds.
    fn ask(&self, at: SocketAddr, content: &Arc<[u8]>, span: Duration) -> io::Result<Asking> {
        let (kernel, content) = (self.kernel, Arc::clone(content));
        self.rooms[0].enter(move || {
            let (clock, mut took) = (Clock::start(), Vec::new());
            while clock.now() < Instant::ZERO + span {
                let began = clock.now();
                fetch(&mut kernel.connect(at)?, content.len(), &content)?;
                took.push(clock.now().saturating_since(began).as_secs_f64() * 1e3);
                sleep((began + INTERVAL).saturating_since(clock.now()));
            }
            Ok(took)
        })
    }
}

type Asking = JoinHandle<io::Result<io::Result<Vec<f64>>>>;

/// Has Multipath TCP use these paths beside the one on which it begins: each end tells its addresses, and takes the other's.
fn join(rooms: &[Namespace; 2], others: &[usize]) -> Result<(), TestbedError> {
    for (side, room) in rooms.iter().enumerate() {
        room.set_parameters(&[("mptcp/enabled", "1")])?;
        room.ip_batch("mptcp limits set subflows 8 add_addr_accepted 8\n")?;
        for other in others {
            let ([tun, _], at) = (testbed::tuns(*other), testbed::ends(*other)[side]);
            room.ip_batch(&format!("mptcp endpoint add {at} dev {tun} signal\n"))?;
        }
    }
    Ok(())
}
