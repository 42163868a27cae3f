//! Bulk transfers of the kernel's TCP through pairs of gateways, each in a testbed of its own, many at a time.
//!
//! The gateways find each other over a channel without errors. Then the emulator is replaced by one with the channel in
//! question, whose realisation begins with it, and the transfer opens at a fixed time of that emulator's clock: so it
//! meets what the lab's transfer meets that opens at the same time with the same seed, if the lab's link is called as
//! the emulator's channel ([`crate::emulator::CHANNEL_NAME`]). The sender is the host at the hub.

mod flood;
mod transfer;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant, Rate};
use serde::Serialize;
use serde_json::Value;

use crate::comparison::configuration::Configuration;
use crate::comparison::content;
use crate::testbed::namespaces::{Room, check_namespaces};
use crate::testbed::{self, Link, Name, TestbedError};
use crate::workers::{self, lock};
use flood::Flood;
use gateway::clock::{Clock, sleep};
use gateway::signals::Signals;

/// One transfer to make.
#[derive(Clone, Debug)]
pub struct Case {
    /// The gateways' link; `None` for no gateways, so that the hosts meet the channel itself.
    pub link: Option<Link>,
    /// The gateways' split-connection proxy, if they have one.
    pub pep: Option<pep::Config>,
    /// The channel's rate towards the terminal.
    pub rate: Rate,
    /// Arguments of `emulate` that describe its channel, all but `errors`.
    pub channel: Vec<String>,
    /// Of that channel, as `emulate --errors` takes them.
    pub errors: String,
    /// Junk that looks like initiations and floods the hub's gateway meanwhile, in datagrams a second.
    pub flood: u32,
}

impl Case {
    /// What the emulator is told besides the channel.
    fn errors(&self) -> [String; 5] {
        ["--errors", &self.errors, "--stats", "1", "--json"].map(str::to_owned)
    }
}

/// How to make all of them.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The settings of the kernel's TCP.
    pub configuration: Configuration,
    /// Largest socket buffers of the hosts, in bytes; the kernel's own defaults if none.
    pub host_buffers: Option<u64>,
    /// Connections of each transfer, 1 or more.
    pub streams: u16,
    /// MTU of the TUN devices.
    pub mtu: u32,
    /// MTU of the carrier, which should hold such a packet in one datagram.
    pub carrier_mtu: u32,
    /// When a transfer opens, from the beginning of the channel's realisation; 2 s or more.
    pub opens: Duration,
    /// How long it lasts from then.
    pub duration: Duration,
    /// Transfers at a time.
    pub jobs: usize,
}

/// What a transfer came to.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Bytes that the receiving application read, all of them right.
    pub bytes: u64,
    /// Segments that the sender sent again.
    pub retransmissions: u64,
    /// What part of the time the gateways kept the line busy: towards the terminal, then from it.
    pub line_use: [f64; 2],
    /// How late the emulator delivered packets on average, in milliseconds.
    pub mean_lateness_ms: f64,
    /// Longest time by which the emulator delivered a packet late, in either direction, in milliseconds.
    pub greatest_lateness_ms: f64,
    /// Junk that was sent, in datagrams a second.
    pub flood: f64,
}

/// Most bytes that a transfer can take from its sender: socket buffers have room for a part of this.
const BUFFERS: u64 = 16 << 20;
/// For gateways to find each other while many others do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes the transfer of every case; `progress` hears of each. One that fails costs the others nothing: a testbed that does not come up, a process
/// that ends early, a connection that breaks, or a byte that changed on the way. Needs root.
///
/// # Errors
/// No right, or [`TestbedError::Interrupted`].
pub fn run(
    options: &Options,
    cases: &[Case],
    signals: &mut Signals,
    progress: impl FnMut(&Result<Run, TestbedError>),
) -> Result<Vec<Result<Run, TestbedError>>, TestbedError> {
    check_namespaces(&format!("lhbulk{}-probe", std::process::id()))?;
    let fastest = cases.iter().map(|case| case.rate.bits_in(options.duration) / 8).max().unwrap_or(0);
    let content = content((fastest + options.host_buffers.unwrap_or(0).max(BUFFERS)) as usize);
    // One is built at a time, so that building does not keep those that are under way from their time.
    let building = Mutex::new(());
    let work = |case: &Case, number, stop: &AtomicBool| {
        let built = lock(&building);
        let testbed = Testbed::up(options, case, number, stop);
        drop(built);
        match testbed.and_then(|testbed| testbed.measure(options, &content, stop)) {
            // No other will fare better.
            Err(
                error @ (TestbedError::Interrupted
                | TestbedError::Needs(_)
                | TestbedError::Name(_)
                | TestbedError::Exists(_)
                | TestbedError::Taken(_)),
            ) => Err(error),
            outcome => Ok(outcome),
        }
    };
    workers::carry_out(cases, options.jobs, signals, work, progress)
}

/// A testbed that is removed when dropped.
struct Testbed<'a> {
    options: testbed::Options,
    case: &'a Case,
}

impl<'a> Testbed<'a> {
    fn up(options: &Options, case: &'a Case, number: usize, stop: &AtomicBool) -> Result<Self, TestbedError> {
        let name = Name::new(&format!("lhb{}-{number}", std::process::id()))?;
        let mut channel = case.channel.clone();
        if case.link.is_none() {
            // This emulator is the only one: the devices that it makes are the hosts' way.
            channel.extend(case.errors());
        }
        let testbed = testbed::Options {
            name,
            link: case.link,
            pep: case.pep.clone(),
            channel,
            mtu: options.mtu,
            carrier_mtu: options.carrier_mtu,
            paths: testbed::Paths::default(),
            patience: PATIENCE,
        };
        testbed::up(&testbed, || stop.load(Ordering::Relaxed))?;
        let testbed = Self { options: testbed, case };
        for room in [Room::Host1, Room::Host2] {
            let namespace = testbed.options.name.namespace(room);
            namespace.set_parameters(&options.configuration.parameters())?;
            if let Some(most) = options.host_buffers {
                let (read, write) = (format!("4096 131072 {most}"), format!("4096 16384 {most}"));
                namespace.set_parameters(&[("ipv4/tcp_rmem", &read), ("ipv4/tcp_wmem", &write)])?;
            }
        }
        Ok(testbed)
    }

    fn measure(
        mut self,
        options: &Options,
        content: &std::sync::Arc<[u8]>,
        stop: &AtomicBool,
    ) -> Result<Run, TestbedError> {
        let name = self.options.name.clone();
        let mut said = 0;
        let clock = Clock::start();
        if self.case.link.is_some() {
            said = testbed::emulator_log(&name)?.len();
            self.options.channel.extend(self.case.errors());
            testbed::change_channel(&self.options)?;
        }
        let begun = self.begun(said, &clock, stop)?;
        let plan = transfer::Plan {
            controller: options.configuration.controller,
            streams: options.streams,
            opens: begun + options.opens,
            ends: begun + options.opens + options.duration,
            clock,
        };
        let flood = self.start_flood()?;
        let rooms = [Room::Host2, Room::Host1].map(|room| name.namespace(room));
        let outcome =
            transfer::carry_out(&rooms, &plan, content, stop).map_err(|error| match error.kind() {
                std::io::ErrorKind::Interrupted => TestbedError::Interrupted,
                _ => TestbedError::System(error),
            })?;
        let flood = flood.map_or(Ok(0.0), Flood::end)?;
        let report = self.report(said)?;
        self.check_gateways()?;
        let rate = self.case.rate.as_bps() as f64;
        let up_rate =
            self.case.link.map_or(rate, |link| link.up.fixed().map_or(rate, |rate| rate.as_bps() as f64));
        let seconds = report["seconds"].as_f64().unwrap_or(f64::NAN);
        let counted = |line: &str, key: &str| report[line][key].as_u64().unwrap_or(0) as f64;
        let both = |key: &str| [counted("down", key), counted("up", key)];
        let [late, delivered] = ["total_lateness_us", "delivered"].map(|key| both(key).iter().sum::<f64>());
        Ok(Run {
            bytes: outcome.bytes,
            retransmissions: outcome.retransmissions,
            line_use: [
                counted("down", "bytes") * 8.0 / seconds / rate,
                counted("up", "bytes") * 8.0 / seconds / up_rate,
            ],
            mean_lateness_ms: late / delivered.max(1.0) / 1000.0,
            greatest_lateness_ms: both("greatest_lateness_us").into_iter().fold(0.0, f64::max) / 1000.0,
            flood,
        })
    }

    fn start_flood(&self) -> Result<Option<Flood>, TestbedError> {
        let from = self.options.name.namespace(Room::Satellite);
        let per_second = self.case.flood;
        let flood = || Flood::start(&from, testbed::hub(), per_second);
        Ok((per_second > 0 && self.case.link.is_some()).then(flood).transpose()?)
    }

    /// When the emulator began, by our clock; `said` is the length of what its predecessor had to say.
    fn begun(&self, said: usize, clock: &Clock, stop: &AtomicBool) -> Result<Instant, TestbedError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(TestbedError::Interrupted);
            }
            if let Ok(report) = self.report(said) {
                let age = report["seconds"].as_f64().map_or(Duration::ZERO, Duration::from_secs_f64);
                return Ok(clock.now().saturating_sub(age));
            }
            if clock.now() > Instant::ZERO + PATIENCE {
                let log = testbed::emulator_log(&self.options.name)?;
                return Err(TestbedError::Process { what: "the emulator does not start".to_owned(), log });
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// The emulator's latest counters.
    fn report(&self, said: usize) -> Result<Value, TestbedError> {
        let log = testbed::emulator_log(&self.options.name)?;
        let report = log.get(said..).and_then(|log| {
            // The last line may not be complete.
            log.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok())
        });
        report.filter(|report| report["seconds"].is_f64()).ok_or_else(|| TestbedError::Process {
            what: "no counters from the emulator".to_owned(),
            log: log.get(said..).unwrap_or_default().trim().to_owned(),
        })
    }

    /// Whether both gateways live, with the session that they began with.
    fn check_gateways(&self) -> Result<(), TestbedError> {
        let name = &self.options.name;
        let gateways =
            if self.case.link.is_some() { [Room::Gateway1, Room::Gateway2].as_slice() } else { &[] };
        for &room in gateways {
            if !testbed::process(name, room)?.is_some_and(|process| process.is_alive()) {
                let what = format!("the gateway in {} has ended", room.name());
                return Err(TestbedError::Process { what, log: String::new() });
            }
        }
        Ok(())
    }
}

impl Drop for Testbed<'_> {
    fn drop(&mut self) {
        // Nothing more can be done about it here.
        let _ = testbed::down(&self.options.name);
    }
}
