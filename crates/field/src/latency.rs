//! What a download costs those who wait for answers beside it: `ping` through a pair of gateways, idle and loaded.
//!
//! The sender is the host at the hub, the receiver that at the terminal, from where the kernel's ICMP echo is asked for too. Each measurement
//! has a testbed of its own.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time;

use base::{Duration, Instant};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};

use crate::comparison::configuration::Controller;
use crate::comparison::transfer::panicked;
use crate::download::{Download, Kernel};
use crate::testbed::namespaces::Room;
use crate::testbed::{self, TestbedError};
use gateway::clock::Clock;

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

    let kernel = Kernel { controller: Some(plan.controller), is_multipath: false };
    let download = Download::start([&hub, &terminal], SocketAddr::from(TERMINAL), kernel)?;
    download.wait_until(plan.warm_up);
    let before = download.bytes();
    let loaded = plan.loaded;
    let beside = terminal.enter(move || ping(loaded))?;
    download.wait_until(plan.warm_up + plan.loaded);
    let bytes = download.bytes() - before;
    let beside = beside.join().map_err(|_| panicked())???;
    download.finish()?;
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
