//! The least that a hub's processor time can be: packets from a TUN device, batched by where they go, and sent as they are.
//!
//! Packets, device, wire and batches are those of a hub that is measured. There are no sessions: nothing is
//! encrypted, and nobody answers. What is left is the kernel's part.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use base::wire::ip;
use base::{Duration, Instant};
use gateway::carrier::UdpCarrier;
use gateway::clock::Clock;
use gateway::readiness::{Interest, wait, wake_exactly};
use gateway::routing::Routing;
use gateway::signals::Signals;
use gateway::tun::{Settings, Tun};
use link::Marks;

use super::site::{FAR, HOSTS, PORT, host, lay_wire, number, terminal};
use super::traffic::{BURST, Traffic};
use super::{Options, Run};
use crate::testbed::TestbedError;
use crate::testbed::namespaces::Namespace;

/// What both ends of the wire count, and whether they are to end.
#[derive(Debug, Default)]
struct Counts {
    stop: AtomicBool,
    /// Bytes of packets that left, and nanoseconds of the processor that the sender took.
    sent: AtomicU64,
    nanos: AtomicU64,
}

/// Bytes of a datagram beyond its packet's, as a gateway's have.
const AROUND: usize = 50;
/// Before flags are looked at again.
const MOST_WAIT: Duration = Duration::from_millis(20);
/// Packets that are read before a batch leaves, as a gateway does.
const TURN: usize = 16;

/// Measures a sender to so many destinations.
pub(super) fn measure(options: &Options, peers: u32, signals: &mut Signals) -> Result<Run, TestbedError> {
    let id = std::process::id();
    let [hub, terminals] = ["bare", "sink"].map(|end| Namespace::new(format!("lhf{id}-{end}")));
    let run = lay_wire(&hub, &terminals).and_then(|()| between(&hub, &terminals, options, peers, signals));
    for namespace in [&hub, &terminals] {
        if namespace.exists() {
            namespace.delete()?;
        }
    }
    run
}

fn between(
    hub: &Namespace,
    terminals: &Namespace,
    options: &Options,
    peers: u32,
    signals: &mut Signals,
) -> Result<Run, TestbedError> {
    let counts = Arc::new(Counts::default());
    let (its, others) = (Arc::clone(&counts), Arc::clone(&counts));
    let threads = [terminals.enter(move || drain(&others))?, hub.enter(move || send(&its))?];
    let run = watch(hub, options, peers, &counts, signals);
    counts.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        end(thread)?;
    }
    run
}

fn end(thread: JoinHandle<io::Result<io::Result<()>>>) -> Result<(), TestbedError> {
    let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")));
    Ok(ended.flatten()?)
}

fn watch(
    hub: &Namespace,
    options: &Options,
    peers: u32,
    counts: &Counts,
    signals: &mut Signals,
) -> Result<Run, TestbedError> {
    let mut pass = |span| -> Result<(), TestbedError> {
        wait([Interest::read(signals.as_fd())], Some(span))?;
        if signals.received() { Err(TestbedError::Interrupted) } else { Ok(()) }
    };
    pass(Duration::from_secs(1))?;
    let traffic = Traffic::start(hub, 0..peers, host, options.rate, BURST)?;
    pass(Duration::from_secs(1))?;
    let read = || [&counts.sent, &counts.nanos].map(|count| count.load(Ordering::Relaxed) as f64);
    let (clock, before) = (Clock::start(), read());
    pass(options.duration)?;
    let (seconds, after) = (clock.now().saturating_since(Instant::ZERO).as_secs_f64(), read());
    let (gigabits, core) = ((after[0] - before[0]) * 8e-9, (after[1] - before[1]) * 1e-9);
    Ok(Run {
        peers,
        mbps: gigabits * 1e3 / seconds,
        offered_mbps: traffic.end() * 8e-6,
        hub_seconds_per_gbit: core / gigabits,
        hub_cores: core / seconds,
        ..Run::default()
    })
}

/// Takes what comes, and drops it.
fn drain(counts: &Counts) -> io::Result<()> {
    let mut carrier = UdpCarrier::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))?;
    while !counts.stop.load(Ordering::Relaxed) {
        while carrier.receive(|_, _, _, _| {})? {}
        wait([Interest::read(carrier.as_fd())], Some(MOST_WAIT))?;
    }
    Ok(())
}

/// Sends each packet to the terminal that has its destination, and those that come in a row in one call.
fn send(counts: &Counts) -> io::Result<()> {
    wake_exactly();
    let prefix = |text: String| text.parse().map_err(|_| io::Error::other(text));
    let (addresses, routes) = ([prefix(format!("{FAR}/32"))?], [prefix(HOSTS.to_owned())?]);
    let mut tun = Tun::open("sat0", true)?;
    Settings { mtu: 1400, addresses: &addresses, gso_max_size: None }.apply("sat0")?;
    Routing::new("sat0", &routes, None, false).set().map_err(io::Error::other)?;
    let carrier = UdpCarrier::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))?;
    let mut batch = Batch { carrier, to: terminal(0), bytes: Vec::new(), segment: 1 };
    while !counts.stop.load(Ordering::Relaxed) {
        for _ in 0..TURN {
            let Some(packet) = tun.read()? else { break };
            let Ok(IpAddr::V4(to)) = ip::View::parse(&packet).map(|view| view.dst()) else { continue };
            batch.push(terminal(number(to).wrapping_sub(number(host(0)))), &packet);
            counts.sent.fetch_add(packet.len() as u64, Ordering::Relaxed);
        }
        batch.leave();
        counts.nanos.store(processor_time().as_nanos(), Ordering::Relaxed);
        wait([Interest::read(tun.as_fd())], Some(MOST_WAIT))?;
    }
    Ok(())
}

struct Batch {
    carrier: UdpCarrier,
    to: Ipv4Addr,
    bytes: Vec<u8>,
    segment: usize,
}

impl Batch {
    fn push(&mut self, to: Ipv4Addr, packet: &[u8]) {
        let len = packet.len() + AROUND;
        if to != self.to || len != self.segment {
            self.leave();
            (self.to, self.segment) = (to, len);
        }
        self.bytes.extend_from_slice(packet);
        self.bytes.resize(self.bytes.len() + AROUND, 0);
    }

    fn leave(&mut self) {
        let to = SocketAddr::from((self.to, PORT));
        // What the wire has no room for is lost.
        let _ = self.carrier.send(to, None, Marks::default(), &self.bytes, self.segment);
        self.bytes.clear();
    }
}

/// What this thread has taken of the processor so far.
fn processor_time() -> Duration {
    let mut reading = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a time that outlives the call. Each thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut reading) };
    Duration::from_nanos(reading.tv_sec as u64 * 1_000_000_000 + reading.tv_nsec as u64)
}
