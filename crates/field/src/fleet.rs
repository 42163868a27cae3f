//! A hub's benchmark: `longhaul gateway` in a network namespace of its own, and a fleet of terminals in this process.
//!
//! The terminals are real: sessions, handshakes, links and timers are those of gateways. They have no TUN devices, so what comes out of
//! their tunnels is counted. All share one UDP socket, each with an address of its own (the whole network is local to their namespace).
//! Packets for them are sent into the hub's TUN device.

mod bare;
mod site;
mod terminals;
mod traffic;

use base::{Duration, Instant, Rate};
use gateway::clock::Clock;
use gateway::signals::Signals;
use serde::Serialize;

use crate::testbed::TestbedError;
use crate::testbed::namespaces::check_requirements;
use site::Site;
use terminals::Order;
use traffic::BURST;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of terminals, one after the other.
    pub peers: Vec<u32>,
    /// How long each is measured.
    pub duration: Duration,
    /// What is sent to all terminals together while they are active.
    pub rate: Rate,
    /// So many terminals to which nothing is sent, instead.
    pub idle: Option<u32>,
    /// What happens when all terminals, or the hub, begin anew, instead: for each number of `peers`.
    pub storm: bool,
    /// What happens to transfers while other peers come, change and go, instead: for each number of `peers`.
    pub reload: bool,
    /// Nothing but the packets' way through the kernel, instead: for each number of `peers`.
    pub bare: bool,
    /// Lines of the hub's `[link]` table, and of the terminals'.
    pub link: String,
    /// The hub's `workers`; `None` leaves that to it.
    pub workers: Option<u32>,
}

/// What one number of terminals came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// How many.
    pub peers: u32,
    /// Seconds until all had a session, from the first call.
    pub connected_seconds: f64,
    /// What came out at the terminals, in Mbit/s of packets.
    pub mbps: f64,
    /// What was sent to them.
    pub offered_mbps: f64,
    /// Seconds of one core that the hub took for a gigabit.
    pub hub_seconds_per_gbit: f64,
    /// Parts of one core that the hub took.
    pub hub_cores: f64,
    /// Memory of the hub, in bytes.
    pub hub_bytes: u64,
    /// Memory of the hub per terminal beyond that of a hub without any, in bytes; `None` unless the terminals are
    /// idle.
    pub hub_bytes_per_peer: Option<f64>,
    /// What happened in a storm.
    pub storm: Option<Storm>,
    /// What happened while the hub's configuration changed.
    pub reload: Option<Reload>,
}

/// All begin anew at once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Storm {
    /// Seconds from a restart of the hub until all terminals had a session again.
    pub hub_restart_seconds: f64,
    /// Seconds from a restart of all terminals but ten until all had one.
    pub terminals_restart_seconds: f64,
    /// The longest pause of a transfer to one of the ten meanwhile, in seconds.
    pub longest_pause_seconds: f64,
}

/// The hub's configuration is read again and again.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reload {
    /// How often it was.
    pub times: u32,
    /// Peers that came, changed or went each time.
    pub changes: u32,
    /// The longest pause of a transfer to any of the others meanwhile, in seconds.
    pub longest_pause_seconds: f64,
    /// The longest pause of a transfer to any of the others in an equally long time without reloads, in seconds.
    pub usual_pause_seconds: f64,
}

/// For all terminals to come in.
const PATIENCE: Duration = Duration::from_secs(120);
/// Terminals that go on while the others begin anew.
const OTHERS: u32 = 10;
/// Peers of which a third comes, a third changes its weight and a third goes with each reload.
const GUESTS: u32 = 30;
/// From one reload to the next, at least.
const BETWEEN: Duration = Duration::from_millis(300);

/// Runs all of it; `progress` hears each run.
///
/// # Errors
/// No right, or what the system says.
pub fn run(
    options: &Options,
    signals: &mut Signals,
    mut progress: impl FnMut(&Run),
) -> Result<Vec<Run>, TestbedError> {
    check_requirements()?;
    let numbers = options.idle.map_or_else(|| options.peers.clone(), |idle| vec![idle]);
    let mut runs = Vec::new();
    for peers in numbers {
        let run = match measure(options, peers, signals) {
            // What is measured already counts.
            Err(TestbedError::Interrupted) => break,
            run => run?,
        };
        progress(&run);
        runs.push(run);
    }
    Ok(runs)
}

fn measure(options: &Options, peers: u32, signals: &mut Signals) -> Result<Run, TestbedError> {
    if options.bare {
        return bare::measure(options, peers, signals);
    }
    let guests = if options.reload { GUESTS } else { 0 };
    let mut site = Site::up(peers + guests, options, signals)?;
    let connected_seconds = site.wait_for_all(PATIENCE)?;
    let mut run = Run { peers, connected_seconds, ..Run::default() };
    if options.storm {
        run.storm = Some(storm(&mut site, peers)?);
        return Ok(run);
    }
    if options.reload {
        run.reload = Some(reload(&mut site, peers, options)?);
        return Ok(run);
    }
    let is_idle = options.idle.is_some();
    // Until first measurements of the path are over, or sessions count as idle.
    site.pass(if is_idle { Duration::from_secs(30) } else { Duration::from_secs(2) })?;
    let traffic = if is_idle { None } else { Some(site.send_to(0..peers, options.rate, BURST)?) };
    site.pass(Duration::from_secs(1))?;
    let (before, counted) = (site.hub_seconds()?, site.received()?);
    let clock = Clock::start();
    site.pass(options.duration)?;
    let seconds = clock.now().saturating_since(Instant::ZERO).as_secs_f64();
    let (hub_seconds, bytes) = (site.hub_seconds()? - before, site.received()?.0 - counted.0);
    run.hub_bytes = site.hub_bytes()?;
    if let Some(traffic) = traffic {
        run.offered_mbps = traffic.end() * 8e-6;
    }
    run.mbps = bytes as f64 * 8e-6 / seconds;
    run.hub_seconds_per_gbit = hub_seconds / (bytes as f64 * 8e-9);
    run.hub_cores = hub_seconds / seconds;
    drop(site);
    if is_idle {
        let mut empty = Site::up(0, options, signals)?;
        empty.pass(Duration::from_secs(1))?;
        run.hub_bytes_per_peer =
            Some(run.hub_bytes.saturating_sub(empty.hub_bytes()?) as f64 / f64::from(peers));
    }
    Ok(run)
}

/// First the hub begins anew, then all terminals but a few that have transfers.
fn storm(site: &mut Site<'_>, peers: u32) -> Result<Storm, TestbedError> {
    // All have something to say now and then, and miss the answer.
    site.order(Order::Speak(Duration::from_secs(1)))?;
    site.pass(Duration::from_secs(3))?;
    let clock = Clock::start();
    site.restart_hub()?;
    site.wait_for_all(PATIENCE)?;
    let hub_restart_seconds = clock.now().saturating_since(Instant::ZERO).as_secs_f64();
    let others = OTHERS.min(peers / 2);
    let traffic = site.send_to(0..others, Rate::from_bps(u64::from(others.max(1)) * 1_000_000), 1)?;
    site.pass(Duration::from_secs(3))?;
    site.order(Order::Watch(others))?;
    site.order(Order::Restart)?;
    let terminals_restart_seconds = site.wait_for_all(PATIENCE)?;
    site.pass(Duration::from_secs(3))?;
    let (_, longest_pause) = site.received()?;
    traffic.end();
    Ok(Storm {
        hub_restart_seconds,
        terminals_restart_seconds,
        longest_pause_seconds: longest_pause.as_secs_f64(),
    })
}

/// Peers come, change and go while all others have transfers.
fn reload(site: &mut Site<'_>, peers: u32, options: &Options) -> Result<Reload, TestbedError> {
    let traffic = site.send_to(0..peers, options.rate, 1)?;
    site.pass(Duration::from_secs(2))?;
    let (clock, mut times) = (Clock::start(), 0);
    site.order(Order::Watch(peers))?;
    while clock.now() < Instant::ZERO + options.duration {
        site.configure(|number| match number.checked_sub(peers).map(|guest| (guest + times) % 3) {
            Some(0) => None,
            Some(1) => Some(2),
            _ => Some(1),
        })?;
        site.reload()?;
        site.pass(BETWEEN)?;
        times += 1;
    }
    let (_, longest) = site.received()?;
    let taken = clock.now().saturating_since(Instant::ZERO);
    site.order(Order::Watch(peers))?;
    site.pass(taken)?;
    let (_, usual) = site.received()?;
    traffic.end();
    Ok(Reload {
        times,
        changes: GUESTS,
        longest_pause_seconds: longest.as_secs_f64(),
        usual_pause_seconds: usual.as_secs_f64(),
    })
}
