//! What a download costs those who wait for answers beside it: `ping` through a pair of gateways, idle and loaded.
//!
//! The sender is the host at the hub, the receiver that at the terminal, from where the kernel's ICMP echo is asked for too. Each measurement
//! has a testbed of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time;

use base::{Duration, Instant};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};

use crate::comparison::configuration::Controller;
use crate::comparison::transfer::{panicked, socket};
use crate::testbed::namespaces::Room;
use crate::testbed::{self, TestbedError};
use gateway::clock::{Clock, sleep};

/// When to measure what.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Of the download.
    pub controller: Controller,
    /// How long pings go alone.
    pub idle: Duration,
    /// How long the download goes before it counts.
    pub warm_up: Duration,
    /// How long both are measured together.
    pub loaded: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// Round trips of pings without a download, in milliseconds, in the order in which they were sent.
    pub idle_ms: Vec<f64>,
    /// Round trips of pings beside the download, in milliseconds, in the order in which they were sent.
    pub loaded_ms: Vec<f64>,
    /// Pings beside the download that were not answered.
    pub unanswered: usize,
    /// Bytes a second of the download, times eight, over a million.
    pub goodput_mbps: f64,
}

/// The host at the hub, who answers, and the one at the terminal, where the download goes.
const HUB: [u8; 4] = [10, 77, 2, 2];
const TERMINAL: ([u8; 4], u16) = ([10, 77, 1, 2], 7_000);
/// Between two pings.
const INTERVAL: Duration = Duration::from_millis(100);
/// For the last answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to look whether it is over.
const LOOK: time::Duration = time::Duration::from_millis(50);

/// Builds the testbed, measures, and removes the testbed.
///
/// # Errors
/// No right, a testbed that does not come up, a download that breaks.
pub fn measure(options: &testbed::Options, plan: &Plan) -> Result<Measured, TestbedError> {
    testbed::up(options, || false)?;
    let result = observe(options, plan);
    testbed::down(&options.name)?;
    Ok(result?)
}

fn observe(options: &testbed::Options, plan: &Plan) -> io::Result<Measured> {
    let [terminal, hub] = [Room::Host1, Room::Host2].map(|room| options.name.namespace(room));
    terminal.set_parameters(&[("ipv4/ping_group_range", "0 2147483647")])?;
    let idle = plan.idle;
    let alone = terminal.enter(move || ping(idle))?.join().map_err(|_| panicked())???;

    let (over, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (controller, told, count) = (plan.controller, Arc::clone(&over), Arc::clone(&received));
    let receiver = terminal.enter(move || receive(controller, &count, &told))?;
    let told = Arc::clone(&over);
    let sender = hub.enter(move || send(controller, &told))?;
    sleep(plan.warm_up);
    let before = received.load(Ordering::Relaxed);
    let loaded = plan.loaded;
    let beside = terminal.enter(move || ping(loaded))?;
    sleep(plan.loaded);
    let bytes = received.load(Ordering::Relaxed) - before;
    let beside = beside.join().map_err(|_| panicked())???;
    over.store(true, Ordering::Relaxed);
    receiver.join().map_err(|_| panicked())???;
    sender.join().map_err(|_| panicked())???;
    let answered = |round_trips: &[Option<f64>]| round_trips.iter().flatten().copied().collect();
    Ok(Measured {
        idle_ms: answered(&alone),
        loaded_ms: answered(&beside),
        unanswered: beside.iter().filter(|round_trip| round_trip.is_none()).count(),
        goodput_mbps: bytes as f64 * 8.0 / plan.loaded.as_secs_f64() / 1e6,
    })
}

/// Asks the hub's host for echoes (RFC 792) for a time; the round trips in milliseconds, none of those that were not answered.
fn ping(span: Duration) -> io::Result<Vec<Option<f64>>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    socket.connect(&SocketAddr::from((HUB, 0)).into())?;
    socket.set_read_timeout(Some(time::Duration::from_millis(1)))?;
    let clock = Clock::start();
    let (mut sent_at, mut round_trips): (Vec<Instant>, Vec<Option<f64>>) = (Vec::new(), Vec::new());
    let end = Instant::ZERO + span;
    loop {
        let now = clock.now();
        if now >= end && (round_trips.iter().all(Option::is_some) || now >= end + PATIENCE) {
            return Ok(round_trips);
        }
        if now < end && now >= Instant::ZERO + INTERVAL * sent_at.len() as u64 {
            sent_at.push(clock.now());
            round_trips.push(None);
            socket.send(&echo(sent_at.len() as u16 - 1))?;
        }
        let mut buffer = [0; 128];
        match (&socket).read(&mut buffer) {
            Ok(len) if len >= HEADER => {
                let number = usize::from(u16::from_be_bytes([buffer[6], buffer[7]]));
                if let (Some(sent), Some(round_trip)) = (sent_at.get(number), round_trips.get_mut(number)) {
                    *round_trip = Some(clock.now().saturating_since(*sent).as_secs_f64() * 1e3);
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// An echo request as long as `ping` has them; the kernel fills identifier and checksum in.
fn echo(number: u16) -> [u8; HEADER + 56] {
    let mut echo = [0; HEADER + 56];
    echo[0] = 8;
    echo[6..8].copy_from_slice(&number.to_be_bytes());
    echo
}

/// Bytes of an ICMP header.
const HEADER: usize = 8;

fn receive(controller: Controller, count: &AtomicU64, over: &AtomicBool) -> io::Result<()> {
    let at = SocketAddr::from(TERMINAL);
    let listener = socket(at, controller.name())?;
    listener.bind(&at.into())?;
    listener.listen(1)?;
    listener.set_nonblocking(true)?;
    let socket = loop {
        match listener.accept() {
            Ok((socket, _)) => break socket,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if over.load(Ordering::Relaxed) => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => sleep(Duration::from_millis(1)),
        }
    };
    socket.set_nonblocking(false)?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LOOK))?;
    let mut chunk = vec![0; 256 * 1024];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => _ = count.fetch_add(len as u64, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send(controller: Controller, over: &AtomicBool) -> io::Result<()> {
    let to = SocketAddr::from(TERMINAL);
    let socket = socket(to, controller.name())?;
    socket.connect(&to.into())?;
    socket.set_write_timeout(Some(LOOK))?;
    let mut stream = TcpStream::from(socket);
    let chunk = vec![0x55; 256 * 1024];
    while !over.load(Ordering::Relaxed) {
        match stream.write(&chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The receiver was the first to hear that it is over.
            Err(_) if over.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(())
}
